"""Finds simple code, which Python may run as written where nothing it reaches is lazy: arithmetic, items, loops, calls by name.

Only the syntax is looked at here. What its calls call, and what it reaches, is checked when it is to run
(:mod:`~tensormagic.capture.staging.loops.plain_loops`).
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any, TypeGuard, TypeVar

from tensormagic.capture.inputs.items import ITEM
from tensormagic.capture.staging.syntax.jumps import STOPS
from tensormagic.capture.staging.syntax.syntax_trees import cloned, placed_at, walk

Loop = TypeVar("Loop", ast.For, ast.While, ast.ListComp)

_SIMPLE = (
    ast.Assign, ast.AugAssign, ast.If, ast.For, ast.While, ast.Pass, ast.Expr, ast.Name, ast.Constant, ast.BinOp,
    ast.UnaryOp, ast.BoolOp, ast.Compare, ast.IfExp, ast.Subscript, ast.Tuple, ast.expr_context, ast.operator,
    ast.unaryop, ast.boolop, ast.cmpop, ast.List, ast.Slice, ast.JoinedStr, ast.FormattedValue,
)  # fmt: skip
_METHODS = {"append", "get", "add", "pop", "insert", "extend"}  # methods of lists, dictionaries and sets
_LEAVING = (ast.Return, ast.Break, ast.Continue)


def called_by(statements: Sequence[ast.AST], *, whole: bool = False) -> tuple[str, ...] | None:
    """Return the names that simple code calls, and the attributes that it reads, as ``f`` or ``math.sin``; None for other code.

    Parameters
    ----------
    statements
        The code.
    whole
        Whether it is a function's whole body, which may be left anywhere.
    """
    found: dict[str, None] = {}
    understood: set[int] = set()  # parts of calls that are covered by now: what is called comes before its parts
    for statement in statements:
        for node in walk(statement):
            if id(node) in understood or isinstance(node, _SIMPLE) or (whole and isinstance(node, _LEAVING)):
                continue
            told = _names_used(node)
            if told is None:
                return None
            found.update(dict.fromkeys(told[0]))
            understood.update(map(id, told[1]))
    bound = {n.id for s in statements for n in walk(s) if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Load)}
    return None if any(name.partition(".")[0] in bound for name in found) else tuple(found)


def _names_used(node: ast.AST) -> tuple[list[str], list[ast.AST]] | None:
    """Return the names that a syntax node calls or reads, and which of its parts they cover; None if it is not simple code."""
    if isinstance(node, ast.keyword):
        return None if node.arg is None else ([], [])
    if _is_read(node):
        return [_dotted(node.args[0]) or ""], [*walk(node)]
    if isinstance(node, ast.Call):
        name = _dotted(node.func)
        if _is_of_a_container(node):
            return [], [node.func]
        return None if name is None else ([name], [node.func])
    name = _dotted(node) if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load) else None
    return ([name], []) if name else None


def as_written(loop: Loop) -> Loop:
    """Return a copy of a lowered loop or comprehension for Python, in which a ``for`` ends where a jump was taken."""
    made: Loop = _PlainAttributeReads().visit(cloned(loop))
    for node in [n for n in walk(made) if isinstance(n, ast.For) and getattr(n, STOPS, [])]:
        flags: list[ast.expr] = [ast.Name(n, ast.Load()) for n in getattr(node, STOPS)]
        taken = flags[0] if len(flags) == 1 else ast.BoolOp(ast.Or(), flags)
        node.body = [*node.body, placed_at(ast.If(taken, [ast.Break()], []), node.body[-1])]
    return made


def _is_read(node: ast.AST) -> TypeGuard[ast.Call]:
    """Return whether a syntax node reads an attribute of a name, such as ``np.pi``, through the capture."""
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == ITEM
        and _dotted(node.args[0]) is not None
        and isinstance(node.args[0], ast.Attribute)
    )


class _PlainAttributeReads(ast.NodeTransformer):
    """Replaces attribute reads through the capture by plain ones: in such code they are constants of modules."""

    def visit_Call(self, node: ast.Call) -> Any:
        self.generic_visit(node)
        return node.args[0] if _is_read(node) else node


def _is_of_a_container(call: ast.Call) -> bool:
    return (
        isinstance(call.func, ast.Attribute)
        and call.func.attr in _METHODS
        and isinstance(call.func.value, ast.Name | ast.Subscript | ast.IfExp)
    )


def _dotted(node: ast.AST) -> str | None:
    if isinstance(node, ast.Name):
        return node.id
    return (
        f"{node.value.id}.{node.attr}" if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) else None
    )
