"""Rewrites statements that branch or loop as calls of the run time with functions for their blocks, scope by scope.

``if``, ``for`` and ``while`` become functions for their blocks, which share the names of the code around them, and a
call that is told which names the blocks bind and which are needed afterwards. ``expressions.py`` rewrites the
expressions in them. Every node keeps the line and the columns of its origin.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence
from typing import Any

from tensormagic.capture.staging.loops.recursion import as_loop
from tensormagic.capture.staging.loops.simple_code import as_written, called_by
from tensormagic.capture.staging.messages import argument_texts
from tensormagic.capture.staging.syntax import formulas, liveness, matching
from tensormagic.capture.staging.syntax.bare_names import BareNames
from tensormagic.capture.staging.syntax.expressions import (
    LEFT,
    SUSPEND,
    Expressions,
    Scope,
    constant,
    is_movable,
    looks_at_frame,
)
from tensormagic.capture.staging.syntax.generated_code import arguments as _arguments
from tensormagic.capture.staging.syntax.generated_code import call as _call
from tensormagic.capture.staging.syntax.generated_code import thunk as _thunk
from tensormagic.capture.staging.syntax.jumps import STOPS, Jumps
from tensormagic.capture.staging.syntax.syntax_trees import placed_at, walk

_UNBRANCHED = (ast.Expr, ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Import, ast.ImportFrom, ast.Pass, ast.Delete)


def _plainly(call: ast.expr, written: ast.For | ast.While, like: ast.AST) -> ast.stmt:
    """Return what remains of a loop after its run-time call: Python runs it as ``written`` over the items left."""
    return placed_at(ast.With([ast.withitem(call, ast.Name(LEFT, ast.Store()))], [written]), like)


def _swallows(statement: ast.Try | ast.TryStar) -> bool:
    """Return whether ``finally`` discards an error by jumping elsewhere."""
    leaves = ast.Return | ast.Break | ast.Continue
    return any(isinstance(s, leaves) for f in statement.finalbody for s in walk(f))


def _attempted(statement: Any) -> Any:
    """Return a ``try`` whose body runs in a context in which its errors are known to be caught."""
    if statement.handlers or _swallows(statement):
        body = [BareNames().visit(s) for s in statement.body]
        inside = ast.With([ast.withitem(_call("attempting", statement))], body)
        statement.body = [placed_at(inside, statement)]
    return statement


def _fixed(statement: ast.AST) -> bool:
    """Return whether a statement must stay in its function: it suspends, reads the frame, or catches errors in special ways."""
    return any(
        isinstance(n, SUSPEND)
        or looks_at_frame(n)
        or (isinstance(n, ast.ImportFrom) and n.names[0].name == "*")
        or (isinstance(n, ast.Try) and _swallows(n))
        or isinstance(n, ast.TryStar)
        for n in liveness.own_nodes(statement)
    )


class Staging(Expressions):
    """Rewrites the statements of a cell, or of a function."""

    # whole pieces of code ---------------------------------------------------------------------------------------------

    def module(self, statements: list[ast.stmt], after: set[str]) -> list[ast.stmt]:
        """Return the statements of a cell, rewritten; the names ``after`` are needed later."""
        if all(isinstance(s, _UNBRANCHED) for s in statements):  # nothing needs to know which names are needed
            return [self._within(s) for s in statements]
        self.scope = Scope("module", always=liveness.read_in_scopes(statements))
        self.scope.changing = liveness.changed_by_scopes(statements)
        lowered: list[ast.stmt] = []
        for statement in matching.lowered(statements):
            lowered += _annotations(statement)
            lowered += [statement] if _fixed(statement) else Jumps().block([statement], None, tail=False)[0]
        return self.block(lowered, after)

    def function(self, node: ast.FunctionDef | ast.AsyncFunctionDef, first_line: int = 0) -> None:
        """Rewrite the body of a function in place; ``first_line`` is its own line, where its decorators were removed."""
        outer, self.scope = self.scope, Scope("function")
        if isinstance(node, ast.AsyncFunctionDef) or any(map(_fixed, node.body)):
            node.body = [self._within(s) for s in node.body]
        else:
            text = node.body[:1] if ast.get_docstring(node, clean=False) is not None else []
            node.body = matching.lowered(node.body[len(text) :])
            body = as_loop(node, first_line or node.lineno)
            declared = [s for b in body for s in liveness.own_nodes(b) if isinstance(s, ast.Global | ast.Nonlocal)]
            names = {n for s in declared for n in s.names}
            self.scope.shared = {n for s in declared if isinstance(s, ast.Global) for n in s.names}
            self.scope.always = liveness.read_in_scopes(body) | names
            self.scope.changing = liveness.changed_by_scopes(body)
            args = node.args
            own = {a.arg for a in (*args.posonlyargs, *args.args, *args.kwonlyargs, args.vararg, args.kwarg) if a}
            node.body = [*text, *self.block(Jumps().function(body), set())]
            missing = [n for n in self.scope.captured if n not in own | names]
            if missing:  # a function may share only what its surroundings bind
                never: ast.stmt = ast.Assign([ast.Name(n, ast.Store()) for n in missing], ast.Constant(None))
                node.body.insert(len(text), placed_at(ast.If(ast.Constant(False), [never], []), body[0]))
        self.scope = outer

    def block(self, statements: Sequence[ast.stmt], after: set[str]) -> list[ast.stmt]:
        """Return a block, rewritten; the names ``after`` are needed after it."""
        needed = [after]
        for statement in reversed(statements):
            needed.append(liveness.before(statement, needed[-1]))
        done: list[ast.stmt] = []
        for statement, behind in zip(statements, reversed(needed[:-1]), strict=True):
            done += self.statement(statement, behind)
        return done

    # statements -------------------------------------------------------------------------------------------------------

    def statement(self, statement: ast.stmt, after: set[str]) -> list[ast.stmt]:
        """Return what one statement becomes; the names ``after`` are needed after it."""
        if self.scope.kind == "class" or (self.scope.kind == "module" and _fixed(statement)):
            return [self._within(statement)]
        if isinstance(statement, ast.If):
            return self._if(statement, after)
        if isinstance(statement, ast.For):
            return self._for(statement, after)
        if isinstance(statement, ast.While) and is_movable(statement.test):
            return self._while(statement, after)
        if isinstance(statement, ast.Try | ast.With | ast.Match | ast.While):
            self._parts(statement, after | liveness.read(statement))
            told = (
                [placed_at(ast.Expr(_call("attempted", statement)), statement)]
                if isinstance(statement, ast.Try)
                else []
            )
            return [*told, _attempted(statement) if isinstance(statement, ast.Try) else statement]
        return [self._within(statement)]

    def _within(self, node: ast.stmt) -> Any:
        """Return a statement with its expressions rewritten."""
        return self.visit(node)

    def _parts(self, statement: Any, after: set[str]) -> None:
        """Rewrite the blocks and expressions of a statement that stays a statement, in place."""
        for part in (*getattr(statement, "handlers", []), *getattr(statement, "cases", [])):
            part.body = self.block(part.body, after)
        for name in ("body", "orelse", "finalbody"):
            if getattr(statement, name, None):
                setattr(statement, name, self.block(getattr(statement, name), after))
        for name in ("test", "subject"):
            if hasattr(statement, name):
                setattr(statement, name, self.visit(getattr(statement, name)))
        for item in getattr(statement, "items", []):
            given = self.visit(item.context_expr)
            item.context_expr = _call("managed", given, given)

    def _names(self, blocks: Sequence[Sequence[ast.AST]]) -> list[str]:
        names = {n: None for block in blocks for statement in block for n in liveness.bound_once(statement)}
        return [*names, *sorted(self.scope.changing - set(names))]

    def _part(self, name: str, body: list[ast.stmt], names: Iterable[str], like: ast.AST, *given: str) -> ast.stmt:
        """Return a function definition for a block, which binds ``names`` of the code around it."""
        names = list(names)
        self.scope.captured.update(dict.fromkeys(names))
        outside = [n for n in names if self.scope.kind == "module" or n in self.scope.shared]
        inside = [n for n in names if n not in outside]
        body = [_plain(s) for s in body] or [ast.Pass()]
        if inside:
            body.insert(0, ast.Nonlocal(inside))
        if outside:
            body.insert(0, ast.Global(outside))
        return placed_at(ast.FunctionDef(name, _arguments(*given), body, []), like)

    def _if(self, node: ast.If, after: set[str]) -> list[ast.stmt]:
        names = self._names([node.body, node.orelse])
        needed = tuple(n for n in names if n in after | self.scope.always | self.scope.changing)
        lists = tuple(sorted(liveness.lists_changed([*node.body, *node.orelse])))
        first, second = (self.block(block, after) for block in (node.body, node.orelse))
        call = _call(
            "branch", node.test, self.visit(node.test), ast.Name("__tensor_then__", ast.Load()),
            ast.Name("__tensor_else__", ast.Load()), constant((tuple(names), needed, lists)),
        )  # fmt: skip
        return [
            self._part("__tensor_then__", first, names, node),
            self._part("__tensor_else__", second, names, node),
            placed_at(ast.Expr(call), node.test),
        ]

    def _loop_names(self, node: ast.For | ast.While, after: set[str]) -> tuple[list[str], ast.expr]:
        targets: list[ast.AST] = [node.target] if isinstance(node, ast.For) else []
        names = self._names([[*targets, *node.body]])
        anyway = self.scope.always | self.scope.changing
        before, behind = liveness.entering(node, after) | anyway, after | anyway
        otherwise = liveness.rebound(node.body) | set(targets and liveness.bound_once(targets[0]))
        entering, leaving, anew = (tuple(n for n in names if n in some) for some in (before, behind, otherwise))
        stored = tuple(sorted(liveness.stored_into(node.body)))
        grown = tuple(sorted(liveness.appended_to(node.body)))
        lists = tuple(sorted(liveness.lists_changed(node.body)))
        return names, constant((tuple(names), entering, leaving, anew, stored, grown, lists))

    def _for(self, node: ast.For, after: set[str]) -> list[ast.stmt]:
        names, told = self._loop_names(node, after)
        behind = liveness.before_iteration(node, after)
        calls = called_by([node.target, *node.body])
        written = None if calls is None else formulas.within(as_written(node))
        body = self.block(node.body, behind)
        take = placed_at(ast.Assign([node.target], ast.Name("__tensor_next__", ast.Load())), node.target)
        stops: list[str] = getattr(node, STOPS, [])
        stop: ast.expr = constant(None)
        if stops:
            flags: list[ast.expr] = [placed_at(ast.Name(n, ast.Load()), node) for n in stops]
            either = flags[0] if len(flags) == 1 else placed_at(ast.BoolOp(ast.Or(), flags), node)
            stop = _thunk(self.visit(either))
        call = _call(
            "each", node.iter, self.visit(node.iter), ast.Name("__tensor_iteration__", ast.Load()), stop, told, constant(calls),
            constant(not isinstance(node.iter, ast.Call)),
        )  # fmt: skip
        part = self._part("__tensor_iteration__", [self._within(take), *body], names, node, "__tensor_next__")
        if written is None:
            return [part, placed_at(ast.Expr(call), node.iter)]
        written.iter = placed_at(ast.Name(LEFT, ast.Load()), node.iter)
        return [part, _plainly(call, written, node.iter)]

    def _while(self, node: ast.While, after: set[str]) -> list[ast.stmt]:
        names, told = self._loop_names(node, after)
        calls = called_by([node.test, *node.body])
        written = None if calls is None else formulas.within(as_written(node))
        body = self.block(node.body, liveness.before_iteration(node, after))
        test = _thunk(self.visit(node.test))
        call = _call(
            "repeat", node.test, test, ast.Name("__tensor_iteration__", ast.Load()), told, constant(calls)
        )  # fmt: skip
        part = self._part("__tensor_iteration__", body, names, node)
        if written is None:
            return [part, placed_at(ast.Expr(call), node.test)]
        written.test = placed_at(ast.BoolOp(ast.And(), [ast.Name(LEFT, ast.Load()), written.test]), node.test)
        return [part, _plainly(call, written, node.test)]

    # scopes -----------------------------------------------------------------------------------------------------------

    def visit_FunctionDef(self, node: ast.FunctionDef) -> Any:
        node.decorator_list = [self.visit(d) for d in node.decorator_list]
        node.args = self._defaults(node.args)
        if node.name == "__array__" and self.scope.kind == "class":
            node.decorator_list.append(_call("giving_arrays", node))
        self.function(node, min([node.lineno, *(d.lineno for d in node.decorator_list)]))
        return node

    visit_AsyncFunctionDef = visit_FunctionDef  # type: ignore[assignment]

    def _defaults(self, args: ast.arguments) -> ast.arguments:
        args.defaults = [self.visit(d) for d in args.defaults]
        args.kw_defaults = [None if d is None else self.visit(d) for d in args.kw_defaults]
        return args

    def visit_ClassDef(self, node: ast.ClassDef) -> Any:
        node.decorator_list = [self.visit(d) for d in node.decorator_list]
        outer, self.scope = self.scope, Scope("class")
        node.body = [self._within(s) for s in node.body]
        self.scope = outer
        return node

    def visit_Lambda(self, node: ast.Lambda) -> Any:
        node.args = self._defaults(node.args)
        outer, self.scope = self.scope, Scope("function")
        node.body = self.visit(node.body)
        self.scope = outer
        return node

    def visit_Raise(self, node: ast.Raise) -> Any:
        if node.exc is not None and self.scope.kind != "class":
            node.exc = argument_texts.visit_exception(node.exc)
        self.generic_visit(node)
        if node.exc is not None and self.scope.kind != "class":
            node.exc = _call("raised", node.exc, node.exc)
        return node

    def visit_Assert(self, node: ast.Assert) -> Any:
        movable = self.scope.kind != "class" and (node.msg is None or is_movable(node.msg))
        if node.msg is not None and movable:
            node.msg = argument_texts.visit(node.msg)
        self.generic_visit(node)
        if not movable:
            return node
        told = constant(None) if node.msg is None else _thunk(node.msg)
        return placed_at(ast.Expr(_call("asserted", node, node.test, told)), node)

    def visit_Try(self, node: ast.Try) -> Any:
        return _attempted(self.generic_visit(node))

    def visit_TryStar(self, node: ast.TryStar) -> Any:
        return _attempted(self.generic_visit(node))


def _annotations(statement: ast.stmt) -> list[ast.stmt]:
    """Return bare annotations for the names annotated within a loop or a branch of a cell, whose blocks become functions."""
    if isinstance(statement, _UNBRANCHED):
        return []
    found = [n for n in liveness.own_nodes(statement) if isinstance(n, ast.AnnAssign) and n.simple]
    return [ast.copy_location(ast.AnnAssign(n.target, n.annotation, None, 1), n) for n in found]


def _plain(statement: ast.stmt) -> ast.stmt:
    """Return a statement for a block that has become a function, where an annotated name may not be shared."""
    if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
        if statement.value is None:
            return ast.copy_location(ast.Pass(), statement)
        return ast.copy_location(ast.Assign([statement.target], statement.value), statement)
    for name in ("body", "orelse", "finalbody"):
        if isinstance(statement, ast.Try | ast.With | ast.If | ast.For | ast.While) and getattr(statement, name, None):
            setattr(statement, name, [_plain(s) for s in getattr(statement, name)])
    return statement
