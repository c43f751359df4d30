"""Marks, in the text of a first call, the operations that are examined for lost digits and the like."""

from __future__ import annotations

import ast
from typing import Any

from tensormagic.capture.staging.analysis.cancelling import (
    DEEP,
    DENOMINATOR,
    DIFFERENCE,
    DIVISOR,
    EXPONENTIAL,
    POWER,
    QUOTIENT,
)
from tensormagic.capture.staging.syntax.syntax_trees import cloned, copied, placed_at

CALL = "add"  # NumPy's functions, beside operators


def name_of(kind: str, operation: str = "", place: bool = False) -> str:
    """Return the name of the marked form of an operation."""
    return f"__tensor_{kind}_{operation}{'_' * place}_"


def marked(node: Any, kind: str) -> ast.AST:
    """Return a node that marks an operation or its operands, as ``kind`` says."""
    if kind == EXPONENTIAL:
        return _call(name_of(kind), [node])
    node = copied(node)
    if isinstance(node, ast.Call) and kind in {DIFFERENCE, DEEP}:
        return _call(name_of(kind, CALL, len(node.args) > 2), node.args)
    if isinstance(node, ast.Call):
        at = 1 if kind == POWER else 0
        node.args = [_call(name_of(kind), [a]) if k == at else a for k, a in enumerate(node.args)]
        return node
    right = kind in {POWER, DENOMINATOR, QUOTIENT, DIVISOR}
    if isinstance(node, ast.AugAssign):
        whole = (name_of(DIVISOR if kind == QUOTIENT else kind), [node.value])
        node.value = _call(
            *whole if right else (name_of(kind, _operator(node), True), [_loaded(node.target), node.value])
        )
        return node
    if kind == QUOTIENT:
        node.left, kind = _call(name_of(kind), [node.left]), DIVISOR
    if right:
        node.right = _call(name_of(kind), [node.right])
        return node
    return _call(name_of(kind, _operator(node)), [node.left, node.right])


def _operator(node: Any) -> str:
    return node.op.__class__.__name__


def _loaded(target: ast.expr) -> ast.expr:
    made = cloned(target)
    if isinstance(made, ast.Name | ast.Subscript):
        made.ctx = ast.Load()
    return made


def _call(name: str, args: list[ast.expr]) -> ast.expr:
    return placed_at(ast.Call(ast.Name(name, ast.Load()), args, []), args[0])
