"""Operations that NumPy has no single call for, as functions of NumPy's own calls: the reference tier's, to be read and kept."""

from __future__ import annotations

import ast
import builtins
import inspect
import textwrap
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from types import FunctionType
from typing import Any

_KNOWN = {"np", "math"}  # what a helper may read from outside


@lru_cache(maxsize=256)
def helper_lines(function: Callable[..., Any], name: str) -> tuple[str, ...]:
    """Return the source of ``function`` under another name, without annotations; empty if it needs more than NumPy.

    Examples
    --------
    >>> def twice(x: float) -> float:
    ...     return 2 * x
    >>> helper_lines(twice, "double")
    ('def double(x):', '    return 2 * x')
    """
    if not isinstance(function, FunctionType) or function.__closure__:
        return ()
    try:
        definition = _definition(function)
    except (OSError, TypeError, SyntaxError):
        return ()
    if definition is None or _foreign(definition):
        return ()
    plain = _Plain(definition.name, name).visit(definition)
    return tuple(ast.unparse(ast.fix_missing_locations(plain)).splitlines())


def is_lambda(function: Any) -> bool:
    """Return whether a function is a lambda."""
    return getattr(function, "__name__", "") == "<lambda>"


def _definition(function: FunctionType) -> ast.FunctionDef | None:
    """Return the definition of a function; a lambda (if only one on its line has these parameters) as a function of one line, or None."""
    if not is_lambda(function):
        found = ast.parse(textwrap.dedent(inspect.getsource(function))).body[0]
        return found if isinstance(found, ast.FunctionDef) else None
    lines, _ = inspect.findsource(function)
    line, names = function.__code__.co_firstlineno, function.__code__.co_varnames[: function.__code__.co_argcount]
    there = (n for n in ast.walk(ast.parse("".join(lines))) if isinstance(n, ast.Lambda) and n.lineno == line)
    match [n for n in there if tuple(a.arg for a in _arguments(n)) == names]:
        case [one]:
            text = f"def _({ast.unparse(one.args)}):\n    return {ast.unparse(one.body)}"
            return next(n for n in ast.walk(ast.parse(text)) if isinstance(n, ast.FunctionDef))
        case _:
            return None


def _foreign(definition: ast.FunctionDef) -> set[str]:
    """Return the names that a definition reads beside NumPy's, Python's and its own, not counting annotations."""
    code = [n for statement in definition.body for n in ast.walk(statement)]
    noted = {id(n) for note in _annotations(code) for n in ast.walk(note)}
    names = [n for n in code if isinstance(n, ast.Name) and id(n) not in noted]
    own = {n.id for n in names if isinstance(n.ctx, ast.Store)}.union(*map(_bound, (definition, *code)))
    return {n.id for n in names if n.id not in own and n.id not in _KNOWN and not hasattr(builtins, n.id)}


def _annotations(code: Iterable[ast.AST]) -> Iterator[ast.expr]:
    """Yield the annotations of variables and of functions."""
    for node in code:
        if isinstance(node, ast.AnnAssign):
            yield node.annotation
        elif isinstance(node, ast.FunctionDef):
            yield from filter(None, [node.returns, *(a.annotation for a in _arguments(node))])


def _bound(node: ast.AST) -> set[str]:
    """Return the names that a function, a lambda or an import binds."""
    if isinstance(node, ast.Import | ast.ImportFrom):
        return {(a.asname or a.name).partition(".")[0] for a in node.names}
    own = {node.name} if isinstance(node, ast.FunctionDef) else set[str]()
    return own | {a.arg for a in _arguments(node)} if isinstance(node, ast.FunctionDef | ast.Lambda) else own


def _arguments(node: ast.FunctionDef | ast.Lambda) -> list[ast.arg]:
    given = node.args
    return [*given.posonlyargs, *given.args, *given.kwonlyargs, *(a for a in (given.vararg, given.kwarg) if a)]


class _Plain(ast.NodeTransformer):
    """Removes annotations and docstring, and renames."""

    def __init__(self, old: str, new: str) -> None:
        self.old = old
        self.new = new

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef:
        self.generic_visit(node)
        node.name = self.new if node.name == self.old else node.name
        node.returns = None
        if ast.get_docstring(node) is not None:
            del node.body[0]
        return node

    def visit_arg(self, node: ast.arg) -> ast.arg:
        node.annotation = None
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.stmt:
        self.generic_visit(node)
        if node.value is None:
            return ast.copy_location(ast.Pass(), node)
        return ast.fix_missing_locations(ast.copy_location(ast.Assign([node.target], node.value), node))

    def visit_Name(self, node: ast.Name) -> ast.Name:
        node.id = self.new if node.id == self.old else node.id
        return node
