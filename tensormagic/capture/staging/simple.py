"""Code that Python may run as it is written, where nothing that it reaches is lazy: arithmetic, items, loops, calls by name.

This is what its syntax says. What its calls call, and what it reaches, is asked when it is to run (:mod:`.plainly`).
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import TypeVar

from tensormagic.capture.staging.jumps import STOPS
from tensormagic.capture.staging.trees import cloned, placed_at, walk

Loop = TypeVar("Loop", ast.For, ast.While)

_SIMPLE = (
    ast.Assign, ast.AugAssign, ast.If, ast.For, ast.While, ast.Pass, ast.Expr, ast.Name, ast.Constant, ast.BinOp,
    ast.UnaryOp, ast.BoolOp, ast.Compare, ast.IfExp, ast.Subscript, ast.Tuple, ast.expr_context, ast.operator,
    ast.unaryop, ast.boolop, ast.cmpop, ast.List, ast.Slice,
)  # fmt: skip
_METHODS = {"append", "get", "add", "pop", "insert", "extend"}  # of lists, dictionaries and sets
_LEAVING = (ast.Return, ast.Break, ast.Continue)


def called_by(statements: Sequence[ast.AST], *, whole: bool = False) -> tuple[str, ...] | None:
    """What simple code calls and asks modules for, as ``f`` or ``math.sin``; None for other code.

    Parameters
    ----------
    statements
        The code.
    whole
        Whether it is a function's whole body, which may be left anywhere.
    """
    found: dict[str, None] = {}
    understood: set[int] = set()  # parts of calls that are known by now: what is called comes before its parts
    for statement in statements:
        for node in walk(statement):
            if id(node) in understood or isinstance(node, _SIMPLE):
                continue
            if isinstance(node, ast.Call) and not node.keywords:
                if not _is_of_a_container(node):
                    name = _dotted(node.func)
                    if name is None:
                        return None
                    found[name] = None
                understood.add(id(node.func))
            elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load) and (name := _dotted(node)):
                found[name] = None
            elif not (whole and isinstance(node, _LEAVING)):
                return None
    bound = {n.id for s in statements for n in walk(s) if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Load)}
    return None if any(name.partition(".")[0] in bound for name in found) else tuple(found)


def as_written(loop: Loop) -> Loop:
    """A copy of a lowered loop for Python, in which a ``for`` ends where a jump was taken."""
    made = cloned(loop)
    for node in [n for n in walk(made) if isinstance(n, ast.For) and getattr(n, STOPS, [])]:
        flags: list[ast.expr] = [ast.Name(n, ast.Load()) for n in getattr(node, STOPS)]
        taken = flags[0] if len(flags) == 1 else ast.BoolOp(ast.Or(), flags)
        node.body = [*node.body, placed_at(ast.If(taken, [ast.Break()], []), node.body[-1])]
    return made


def _is_of_a_container(call: ast.Call) -> bool:
    return (
        isinstance(call.func, ast.Attribute)
        and call.func.attr in _METHODS
        and isinstance(call.func.value, ast.Name | ast.Subscript | ast.IfExp)
    )


def _dotted(node: ast.expr) -> str | None:
    if isinstance(node, ast.Name):
        return node.id
    return (
        f"{node.value.id}.{node.attr}" if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) else None
    )
