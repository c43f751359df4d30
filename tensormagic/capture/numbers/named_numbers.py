"""Numbers that a cell assigns to a name: they are inputs of later code, like numbers of earlier cells."""

from __future__ import annotations

import ast
from collections import Counter
from typing import Any

import numpy as np

from tensormagic.capture import context
from tensormagic.capture.staging.syntax.syntax_trees import walk
from tensormagic.capture.values.operands import input_tensor

NAMED = "__tensor_number__"


def with_numbers(tree: ast.Module) -> ast.Module:
    """Return a cell in which a number assigned to a name, by its only binding, goes through the capture."""
    bound = Counter(_bound(tree))
    for statement in tree.body:
        if isinstance(statement, ast.Assign) and len(statement.targets) > 1:
            if statement is not tree.body[-1]:  # its name is set by the cell
                _named_each(statement, bound)
        elif isinstance(statement, ast.Assign):
            statement.value = _named(statement.targets[0], statement.value, bound)
        elif isinstance(statement, ast.AnnAssign) and statement.value is not None:
            statement.value = _named(statement.target, statement.value, bound)
    return tree


def _named_each(statement: ast.Assign, bound: Counter[str]) -> None:
    """Make each name an input of its own in ``q = r = 3.0``."""
    names = [t.id for t in statement.targets if isinstance(t, ast.Name) and bound[t.id] == 1]
    known = not isinstance(statement.value, ast.Name) and _may_be_a_number(statement.value)
    if known and len(names) == len(statement.targets):
        statement.targets = [ast.copy_location(ast.Tuple(statement.targets, ast.Store()), statement.targets[0])]
        statement.value = _call(statement.value, *names)


def _bound(tree: ast.Module) -> list[str]:
    nodes = list(walk(tree))
    names = [n.id for n in nodes if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Load)]
    return names + [name for n in nodes if isinstance(n, ast.Global | ast.Nonlocal) for name in n.names]


def _named(target: ast.expr, value: ast.expr, bound: Counter[str]) -> ast.expr:
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
        if not any(isinstance(e, ast.Starred) for e in (*target.elts, *value.elts)):
            value.elts = [_named(t, v, bound) for t, v in zip(target.elts, value.elts, strict=True)]
        return value
    if not isinstance(target, ast.Name) or bound[target.id] != 1:
        return value
    return _call(value, target.id) if _may_be_a_number(value) and not isinstance(value, ast.Name) else value


def _call(value: ast.expr, *names: str) -> ast.expr:
    call = ast.Call(ast.Name(NAMED, ast.Load()), [value, *map(ast.Constant, names)], [])
    for made in (call, call.func, *call.args[1:]):
        ast.copy_location(made, value)
    return call


def _may_be_a_number(value: ast.expr) -> bool:
    """Return whether an expression consists of numbers, names and attributes."""
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


def named(value: Any, *names: str) -> Any:
    """Return a number that a cell names, as an input; anything else unchanged. For several names, return one value each."""
    return _input(value, names[0]) if len(names) == 1 else tuple(_input(value, name) for name in names)


def _input(value: Any, name: str) -> Any:
    capture = context.current()
    if capture is None or not isinstance(value, float | complex | np.inexact):
        return value
    tensor = input_tensor(value, name)
    if tensor is None:
        return value
    capture.names.numbers[tensor.node] = value
    return tensor
