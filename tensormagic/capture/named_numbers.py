"""Numbers that a cell names: they are inputs of what follows, as numbers that an earlier cell has named."""

from __future__ import annotations

import ast
from collections import Counter
from typing import Any

import numpy as np

from tensormagic.capture import context
from tensormagic.capture.operands import input_tensor

NAMED = "__tensor_number__"


def with_numbers(tree: ast.Module) -> ast.Module:
    """A cell whose numbers go through the capture where a statement of its own names them, and nothing else binds that name."""
    bound = Counter(_bound(tree))
    for statement in tree.body:
        if isinstance(statement, ast.Assign) and all(_is_once(t, bound) for t in statement.targets[1:]):
            statement.value = _named(statement.targets[0], statement.value, bound)
        elif isinstance(statement, ast.AnnAssign) and statement.value is not None:
            statement.value = _named(statement.target, statement.value, bound)
    return tree


def _is_once(target: ast.expr, bound: Counter[str]) -> bool:
    return isinstance(target, ast.Name) and bound[target.id] == 1


def _bound(tree: ast.Module) -> list[str]:
    nodes = list(ast.walk(tree))
    names = [n.id for n in nodes if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Load)]
    return names + [name for n in nodes if isinstance(n, ast.Global | ast.Nonlocal) for name in n.names]


def _named(target: ast.expr, value: ast.expr, bound: Counter[str]) -> ast.expr:
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
        if not any(isinstance(e, ast.Starred) for e in (*target.elts, *value.elts)):
            value.elts = [_named(t, v, bound) for t, v in zip(target.elts, value.elts, strict=True)]
        return value
    if not isinstance(target, ast.Name) or not _is_once(target, bound):
        return value
    if isinstance(value, ast.Name) or not _may_be_a_number(value):
        return value
    call = ast.Call(ast.Name(NAMED, ast.Load()), [value, ast.Constant(target.id)], [])
    for made in (call, call.func, call.args[1]):
        ast.copy_location(made, value)
    return call


def _may_be_a_number(value: ast.expr) -> bool:
    """Whether an expression is made of numbers, names and attributes."""
    match value:
        case ast.Constant():
            return isinstance(value.value, int | float | complex)
        case ast.UnaryOp(operand=operand):
            return _may_be_a_number(operand)
        case ast.BinOp(left=left, right=right):
            return _may_be_a_number(left) and _may_be_a_number(right)
        case ast.Call(func=function, args=[argument], keywords=[]):
            name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
            return name.startswith(("float", "complex")) and (
                isinstance(argument, ast.Constant) or _may_be_a_number(argument)
            )
        case _:
            return isinstance(value, ast.Name | ast.Attribute)


def named(value: Any, name: str) -> Any:
    """What captured code has for a number that a cell names: an input; anything else as it is."""
    capture = context.current()
    if capture is None or not isinstance(value, float | complex | np.inexact):
        return value
    tensor = input_tensor(value, name)
    if tensor is None:
        return value
    capture.numbers[tensor.node] = value
    return tensor


__all__ = ["NAMED", "named", "with_numbers"]
