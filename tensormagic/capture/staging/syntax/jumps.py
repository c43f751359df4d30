"""Replaces ``break``, ``continue`` and ``return`` inside other statements by names that hold whether a jump was taken.

After this pass a block is left at its end alone, so that it can become a function, or a region of the graph.
"""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tensormagic.capture.staging.syntax.syntax_trees import walk

RETURNED = "__tensor_returned__"
VALUE = "__tensor_value__"
STOPS = "tensor_stops"  # the field of a lowered ``for`` that names the flags that end it

_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)


@dataclass
class _Loop:
    """Represents the loop that a block belongs to, and the names of its jump flags, if there are any."""

    broken: str
    skipped: str
    breaks: bool = False
    skips: bool = False


def assign(name: str, value: ast.expr, like: ast.AST) -> ast.stmt:
    """Return the statement ``name = value``, at the position of ``like``."""
    return ast.copy_location(ast.Assign([ast.Name(name, ast.Store())], value), like)


def own_statements(statements: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield the statements and those within them, but not those of functions and classes."""
    pending = list(reversed(statements))
    while pending:
        statement = pending.pop()
        yield statement
        if not isinstance(statement, _SCOPES):
            pending += [part for block in blocks(statement) for part in block]


def blocks(statement: ast.stmt) -> list[list[ast.stmt]]:
    """Return the blocks of a compound statement."""
    found = [getattr(statement, name, []) for name in ("body", "orelse", "finalbody")]
    parts = [*getattr(statement, "handlers", []), *getattr(statement, "cases", [])]
    return [block for block in [*found, *(part.body for part in parts)] if block]


def leaves(statements: Sequence[ast.stmt]) -> bool:
    """Return whether a block always jumps before its end."""
    return bool(statements) and _leaves(statements[-1], raising=False)


def ends(statements: Sequence[ast.stmt]) -> bool:
    """Return whether a block never reaches its end, by a jump or an error."""
    return any(_leaves(s, raising=True) for s in statements)


def _leaves(last: ast.stmt, *, raising: bool) -> bool:
    if isinstance(last, ast.Return | ast.Break | ast.Continue):
        return True
    if isinstance(last, ast.Raise):
        return raising
    if isinstance(last, ast.While) and raising:
        endless = isinstance(last.test, ast.Constant) and bool(last.test.value)
        return endless and not any(isinstance(s, ast.Break) for s in _of_loop(last.body))
    if isinstance(last, ast.With) and raising:
        return ends(last.body)
    inside = ends if raising else leaves
    return isinstance(last, ast.If) and inside(last.body) and inside(last.orelse)


def _of_loop(statements: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield the statements that belong to a loop and not to one inside it."""
    for statement in statements:
        yield statement
        if isinstance(statement, ast.For | ast.While):
            yield from _of_loop(statement.orelse)
        elif not isinstance(statement, _SCOPES):
            for block in blocks(statement):
                yield from _of_loop(block)


class Jumps:
    """Lowers the jumps of one function, or of one statement of a cell."""

    def __init__(self) -> None:
        self.serial = itertools.count(1)
        self.returns = False  # whether some return stands inside another statement
        self.flagged = False  # whether such a return leaves something to be skipped

    def function(self, body: list[ast.stmt]) -> list[ast.stmt]:
        """Return the body of a function in which no ``return`` stands inside another statement."""
        nested = [s for s in own_statements(body) if isinstance(s, ast.Return) and s not in body]
        self.returns = bool(nested)
        if self.returns and not ends(body):
            body = [*body, ast.copy_location(ast.Return(ast.Constant(None)), body[-1])]
        lowered, _ = self.block(body, None, tail=True)
        if not self.returns:
            return lowered
        first = [assign(RETURNED, ast.Constant(False), body[0])] if self.flagged else []
        return [*first, *lowered, ast.copy_location(ast.Return(ast.Name(VALUE, ast.Load())), nested[-1])]

    def block(
        self, statements: Sequence[ast.stmt], loop: _Loop | None, *, tail: bool
    ) -> tuple[list[ast.stmt], set[str]]:
        """Return a block without jumps, and the names of flags that may say after it that a jump was taken.

        ``tail``: nothing follows the block in its loop, or in its function.
        """
        done: list[ast.stmt] = []
        rest = list(statements)
        while rest:
            statement = rest.pop(0)
            if isinstance(statement, ast.If) and rest:
                rest = _moved(statement, rest)
            lowered, flags = self.statement(statement, loop, tail=tail and not rest)
            done += lowered
            if isinstance(statement, ast.Return | ast.Break | ast.Continue):
                return done, flags
            if flags and rest:
                inner, more = self.block(rest, loop, tail=tail)
                return [*done, _unless(flags, inner, rest[0])], flags | more
            if flags:
                return done, flags
        return done, set()

    def statement(self, statement: ast.stmt, loop: _Loop | None, *, tail: bool) -> tuple[list[ast.stmt], set[str]]:
        """Return one statement without jumps, and the names of its flags."""
        if isinstance(statement, ast.Return):
            return self._return(statement, tail=tail and loop is None)
        if isinstance(statement, ast.Break | ast.Continue) and loop is not None:
            return _jump(statement, loop, tail=tail)
        if isinstance(statement, ast.If):
            statement.body, flags = self.block(statement.body, loop, tail=tail)
            statement.orelse, more = self.block(statement.orelse, loop, tail=tail)
            return [_filled(statement)], flags | more
        if isinstance(statement, ast.For | ast.While):
            return self._loop(statement, loop)
        if isinstance(statement, ast.With):
            statement.body, flags = self.block(statement.body, loop, tail=tail)
            return [_filled(statement)], flags
        if isinstance(statement, ast.Try):
            return self._try(statement, loop)
        if isinstance(statement, ast.Match):
            flags = set[str]()
            for case in statement.cases:
                case.body, more = self.block(case.body, loop, tail=tail)
                case.body = case.body or [ast.copy_location(ast.Pass(), statement)]
                flags |= more
            return [statement], flags
        return [statement], set()

    def _return(self, statement: ast.Return, *, tail: bool) -> tuple[list[ast.stmt], set[str]]:
        if not self.returns:
            return [statement], set()
        value = statement.value or ast.copy_location(ast.Constant(None), statement)
        done = [assign(VALUE, value, statement)]
        if tail:
            return done, set()
        self.flagged = True
        return [*done, assign(RETURNED, ast.Constant(True), statement)], {RETURNED}

    def _loop(self, statement: ast.For | ast.While, outer: _Loop | None) -> tuple[list[ast.stmt], set[str]]:
        if isinstance(statement, ast.While) and not statement.orelse:
            _move_test_inside(statement)
        number = next(self.serial)
        loop = _Loop(f"__tensor_break{number}__", f"__tensor_continue{number}__")
        body, flags = self.block(statement.body, loop, tail=True)
        if loop.skips:
            body = [assign(loop.skipped, ast.Constant(False), statement), *body]
        otherwise, statement.orelse = statement.orelse, []
        statement.body = body
        _filled(statement)
        stops = ([loop.broken] if loop.breaks else []) + ([RETURNED] if RETURNED in flags else [])
        done: list[ast.stmt] = [assign(loop.broken, ast.Constant(False), statement)] if loop.breaks else []
        setattr(statement, STOPS, stops)
        if isinstance(statement, ast.While) and stops:
            going = _none_of(stops, statement.test)
            statement.test = ast.copy_location(ast.BoolOp(ast.And(), [going, statement.test]), statement.test)
        done.append(statement)
        left = flags & {RETURNED}
        if otherwise:
            inner, more = self.block(otherwise, outer, tail=False)
            done += [_unless(stops, inner, otherwise[0])] if stops else inner
            left |= more
        return done, left

    def _try(self, statement: ast.Try, loop: _Loop | None) -> tuple[list[ast.stmt], set[str]]:
        statement.body, flags = self.block(statement.body, loop, tail=False)
        after, more = self.block(statement.orelse, loop, tail=False)
        statement.orelse = [_unless(flags, after, statement.orelse[0])] if after and flags else after
        for handler in statement.handlers:
            handler.body, found = self.block(handler.body, loop, tail=False)
            more |= found
        statement.finalbody, found = self.block(statement.finalbody, loop, tail=False)
        return [_filled(statement)], flags | more | found


def _jump(statement: ast.Break | ast.Continue, loop: _Loop, *, tail: bool) -> tuple[list[ast.stmt], set[str]]:
    if isinstance(statement, ast.Break):
        loop.breaks = True
        return [assign(loop.broken, ast.Constant(True), statement)], {loop.broken}
    if tail:
        return [ast.copy_location(ast.Pass(), statement)], set()
    loop.skips = True
    return [assign(loop.skipped, ast.Constant(True), statement)], {loop.skipped}


def _move_test_inside(statement: ast.While) -> None:
    """Make a test that binds names the first statement of the loop."""
    if any(isinstance(n, ast.NamedExpr) for n in walk(statement.test)):
        stop = ast.copy_location(ast.UnaryOp(ast.Not(), statement.test), statement.test)
        leave = ast.copy_location(ast.Break(), statement.test)
        statement.body = [ast.copy_location(ast.If(stop, [leave], []), statement.test), *statement.body]
        statement.test = ast.copy_location(ast.Constant(True), statement.test)


def _moved(statement: ast.If, rest: list[ast.stmt]) -> list[ast.stmt]:
    """Move what follows an ``if`` with a jump on one branch into the other branch; return what still follows."""
    first, second = leaves(statement.body), leaves(statement.orelse)
    if first and not second:
        statement.orelse = [*statement.orelse, *rest]
    elif second and not first:
        statement.body = [*statement.body, *rest]
    elif not first:
        return rest
    return []


def _filled(statement: ast.stmt) -> ast.stmt:
    """Return a statement whose first block is not empty."""
    body: list[ast.stmt] = getattr(statement, "body", [statement])
    if not body:
        body.append(ast.copy_location(ast.Pass(), statement))
    return statement


def _none_of(flags: Sequence[str] | set[str], like: ast.AST) -> ast.expr:
    names: list[ast.expr] = [ast.copy_location(ast.Name(n, ast.Load()), like) for n in sorted(flags)]
    any_of = names[0] if len(names) == 1 else ast.copy_location(ast.BoolOp(ast.Or(), names), like)
    return ast.copy_location(ast.UnaryOp(ast.Not(), any_of), like)


def _unless(flags: Sequence[str] | set[str], statements: list[ast.stmt], like: ast.stmt) -> ast.stmt:
    """Return ``statements`` under the condition that no jump was taken."""
    body = statements or [ast.copy_location(ast.Pass(), like)]
    return ast.copy_location(ast.If(_none_of(flags, like), body, []), like)
