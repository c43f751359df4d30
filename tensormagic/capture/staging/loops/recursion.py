"""Turns a function that ends in a call of itself into a loop: its parameters take the arguments of that call, and it begins again."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from tensormagic.capture.staging.syntax import liveness
from tensormagic.capture.staging.syntax.syntax_trees import walk

ITSELF = (
    "__tensor_itself__"  # the function that checks at run time whether the name of a function still means the function
)


def as_loop(node: ast.FunctionDef | ast.AsyncFunctionDef, line: int) -> list[ast.stmt]:
    """Return the body of a function, as a loop if it ends in calls of itself; ``line`` is where the function begins."""
    body, names = node.body, _parameters(node)
    if names is None or not (liveness.read_in_scopes(body) | {"*"}).isdisjoint(names):
        return body
    calls = _SelfCalls(node.name, names, line)
    turned = calls.block(body, tail=True)
    if not calls.found:
        return body
    if not _returns(turned):
        turned.append(ast.copy_location(ast.Return(ast.Constant(None)), body[-1]))
    return [ast.copy_location(ast.While(ast.copy_location(ast.Constant(True), body[0]), turned, []), body[0])]


def _parameters(node: ast.FunctionDef | ast.AsyncFunctionDef) -> list[str] | None:
    args = node.args
    if args.vararg or args.kwarg or args.kwonlyargs or isinstance(node, ast.AsyncFunctionDef):
        return None
    return [a.arg for a in (*args.posonlyargs, *args.args)]


def _returns(statements: Sequence[ast.stmt]) -> bool:
    return bool(statements) and isinstance(statements[-1], ast.Return)


class _SelfCalls:
    """Replaces each returned call of the function itself by assignments to its parameters."""

    def __init__(self, name: str, parameters: list[str], line: int) -> None:
        self.name = name
        self.parameters = parameters
        self.line = line
        self.found = False

    def block(self, statements: list[ast.stmt], *, tail: bool) -> list[ast.stmt]:
        """Return a block with such calls replaced; ``tail``: the function ends after it."""
        done: list[ast.stmt] = []
        for k, statement in enumerate(statements):
            done += self.statement(statement, tail=tail and k == len(statements) - 1)
        return done

    def statement(self, statement: ast.stmt, *, tail: bool) -> list[ast.stmt]:
        """Return what replaces one statement; those inside loops, ``try`` and ``with`` stay unchanged."""
        if isinstance(statement, ast.If):
            statement.body = self.block(statement.body, tail=tail)
            statement.orelse = self.block(statement.orelse, tail=tail)
        elif isinstance(statement, ast.Return) and statement.value is not None and self._mentions(statement.value):
            return self.value(statement.value, statement)
        return [statement]

    def _mentions(self, value: ast.expr) -> bool:
        if isinstance(value, ast.IfExp):
            return self._mentions(value.body) or self._mentions(value.orelse)
        return self._arguments(value) is not None

    def value(self, value: ast.expr, like: ast.stmt) -> list[ast.stmt]:
        """Return the statements that return ``value``, or that begin the function again."""
        if isinstance(value, ast.IfExp) and self._mentions(value):
            return [
                ast.copy_location(
                    ast.If(value.test, self.value(value.body, like), self.value(value.orelse, like)), like
                )
            ]
        given = self._arguments(value)
        back = ast.copy_location(ast.Return(value), like)
        if given is None:
            return [back]
        self.found = True
        targets: list[ast.expr] = [ast.Name(n, ast.Store()) for n in self.parameters]
        again: list[ast.stmt] = [
            ast.Assign([ast.Tuple(targets, ast.Store())], ast.Tuple(given, ast.Load())),
            ast.Continue(),
        ]
        asked = ast.Call(ast.Name(ITSELF, ast.Load()), [ast.Name(self.name, ast.Load()), ast.Constant(self.line)], [])
        choice = ast.copy_location(ast.If(asked, again, [back]), like)
        for made in walk(choice):
            if not hasattr(made, "lineno"):
                ast.copy_location(made, like)
        return [choice]

    def _arguments(self, value: ast.expr) -> list[ast.expr] | None:
        """Return the arguments of a call of the function itself, one for each parameter; None for anything else."""
        if not (isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id == self.name):
            return None
        named = {k.arg: k.value for k in value.keywords}
        given = [*value.args, *(named[n] for n in self.parameters[len(value.args) :] if n in named)]
        fits = len(given) == len(self.parameters) == len(value.args) + len(named)
        return given if fits and not any(isinstance(a, ast.Starred) for a in value.args) else None
