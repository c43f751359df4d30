"""Formulas of Python's numbers as they are written: arithmetic with calls of functions, whose operands are names.

Before each it is checked whether its operands are numbers and no lazy values: if so,
:mod:`~tensormagic.capture.staging.numbers.number_formulas` computes it.
"""

from __future__ import annotations

import ast
import copy
import math
from collections.abc import Iterator
from functools import cache
from typing import Any, TypeVar

import numpy as np

from tensormagic.capture.staging.syntax.generated_code import arguments, call
from tensormagic.capture.staging.syntax.syntax_trees import cloned, placed_at, walk
from tensormagic.ops.op import registry

_ARITHMETIC = (ast.Add, ast.Sub, ast.Mult, ast.Div, ast.Pow)
Tree = TypeVar("Tree", bound=ast.AST)


def are_in(tree: ast.AST) -> bool:
    """Return whether code has formulas."""
    return any(isinstance(n, ast.BinOp | ast.Call) and names_in(n) is not None for n in walk(tree))


def names_in(node: ast.expr) -> set[str] | None:
    """Return the names of a formula's operands; None if it is no formula."""
    parts = [*_parts(node)]
    if None in parts:
        return None
    operators = [type(p.op) for p in parts if isinstance(p, ast.BinOp)]
    calls = sum(isinstance(p, ast.Call) for p in parts)
    steep = calls or ast.Pow in operators or ast.Div in operators  # sums and products alone have no other forms
    found = {p.id for p in parts if isinstance(p, ast.Name)}
    return found if steep and len(operators) + calls > 1 and (found or _numbers_in(node)) else None


def _parts(node: ast.expr) -> Iterator[ast.expr | None]:
    """Yield the nodes of a formula, with None for any node that a formula cannot have."""
    yield node
    match node:
        case ast.Constant(value=value) if type(value) in {int, float}:
            return
        case ast.Name():
            return
        case ast.UnaryOp(op=ast.USub() | ast.UAdd(), operand=operand):
            yield from _parts(operand)
        case ast.BinOp(left=left, op=op, right=right) if isinstance(op, _ARITHMETIC):
            yield from _parts(left)
            yield from _parts(right)
        case ast.Call(
            func=ast.Name(id=name) | ast.Attribute(value=ast.Name(), attr=name), args=[_, *_] as args, keywords=[]
        ) if name in _functions():
            for argument in args:
                yield from _parts(argument)
        case _:
            yield None


@cache
def _functions() -> set[str]:
    """Return the names of functions of numbers in NumPy, SciPy and Python."""
    of_elements = {name for name, op in registry.items() if op.kind == "pointwise"}
    return {"abs", *vars(math), *(n for n, f in vars(np).items() if isinstance(f, np.ufunc)), *of_elements}


def _numbers_in(node: ast.expr) -> list[ast.Constant]:
    """Return the non-integer numbers in a formula."""
    parts = [p for p in _parts(node) if isinstance(p, ast.Constant)]
    return [p for p in parts if isinstance(p.value, float) and not p.value.is_integer()]


def of_numbers(node: ast.expr) -> tuple[ast.expr, ast.expr]:
    """Return two expressions: whether the operands of a formula are numbers, and the formula of numbers."""
    body = cloned(node)
    functions: dict[str, ast.expr] = {}
    for called_ in [p for p in _parts(body) if isinstance(p, ast.Call)]:
        name = "__tensor_" + ast.unparse(called_.func).replace(".", "_")
        functions[name] = called_.func
        called_.func = ast.copy_location(ast.Name(name, ast.Load()), called_.func)
    operands: dict[str, ast.expr] = {n: ast.Name(n, ast.Load()) for n in sorted(names_in(node) or ())}
    if not operands:
        apart = _NamedConstants()
        body, operands = apart.visit(body), apart.found
    names = ast.Tuple([ast.Constant(n) for n in operands], ast.Load())
    values, function = ast.Tuple([*operands.values()], ast.Load()), ast.Lambda(arguments(*operands, *functions), body)
    known = ast.Tuple([*functions.values()], ast.Load())
    text = ast.Constant(ast.unparse(body))
    return call("has_form", node, copy.copy(text), *operands.values()), call(
        "formula", node, text, function, values, names, known
    )


def within(tree: Tree) -> Tree:
    """Return code that Python runs as written, except that the formulas in it check their operands."""
    return _Within().visit(tree)


class _Within(ast.NodeTransformer):
    def visit(self, node: ast.AST) -> Any:
        if not isinstance(node, ast.BinOp | ast.Call) or names_in(node) is None:
            return self.generic_visit(node)
        return placed_at(ast.IfExp(*of_numbers(node), node), node)


class _NamedConstants(ast.NodeTransformer):
    """Replaces non-integer constants by names."""

    def __init__(self) -> None:
        self.found: dict[str, ast.expr] = {}

    def visit_Constant(self, node: ast.Constant) -> ast.expr:
        if not isinstance(node.value, float) or node.value.is_integer():
            return node
        name = f"__tensor_{len(self.found)}"
        self.found[name] = node
        return ast.copy_location(ast.Name(name, ast.Load()), node)
