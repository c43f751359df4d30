"""Which gradients belong to which variables, and the warning where one is used after its variable has changed.

It compares what a variable is with what it was; it does not know how gradients are made.
"""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tensormagic.capture import inputs
from tensormagic.capture.value import Tensor
from tensormagic.ir.errors import StaleGradientWarning
from tensormagic.ir.node import Node

__all__ = ["Gradients"]

_ANEW = "*"  # every gradient may be bound anew here
_RUNS_CELLS = {"run_cell_magic", "run_line_magic", "run_cell", "magic"}
_LOOP = """{gradient} is the gradient at the {name} of {cell}; {name} has changed since. Name the cell, and call it:
    step = tm.value_and_grad(NAME, ("{name}",))
    for k in range(100):
        value, (g,) = step({name}={name})
        {name} -= lr * g"""


@dataclass
class _Bound:
    """One gradient: the lazy value that was bound, the variable's node at that time, and the cell."""

    gradient: Tensor
    name: str
    node: Node
    cell: str
    warned: bool = False


class Gradients:
    """The gradients that cells have bound in a notebook."""

    def __init__(self) -> None:
        self._bound: dict[str, _Bound] = {}

    def bind(self, gradients: Mapping[str, Any], nodes: Mapping[str, Node], cell: str, space: dict[str, Any]) -> None:
        """Bind ``grad_A`` for each A; warns where that name is in use for something else."""
        for name, gradient in gradients.items():
            if not name.isidentifier():  # a part of a container
                continue
            bound = f"grad_{name}"
            mine = self._bound.get(bound)
            if bound in space and (mine is None or space[bound] is not mine.gradient):
                message = f"{bound} was a variable of the notebook; it is now the gradient with respect to {name}"
                warnings.warn_explicit(message, UserWarning, cell, 1)
            self._bound[bound] = _Bound(gradient, name, nodes[name], cell)
            space[bound] = gradient

    def check(self, text: str, space: Mapping[str, Any]) -> None:
        """Warn, once for each gradient, where ``text`` uses one whose variable has changed or changes on the way."""
        held = {n: b for n, b in self._bound.items() if not b.warned and n in text and space.get(n) is b.gradient}
        if not held:
            return
        try:
            tree = ast.parse(text)
        except SyntaxError:
            return
        changed = {b.name for b in held.values() if not _is(space.get(b.name), b.node, b.name)}
        for name in _used_after(tree, changed, {n: b.name for n, b in held.items()}):
            bound = held[name]
            bound.warned = True
            message = _LOOP.format(gradient=name, name=bound.name, cell=bound.cell)
            line = next(k for k, row in enumerate(text.splitlines(), 1) if name in row)
            warnings.warn_explicit(message, StaleGradientWarning, "this cell", line)


def _is(value: Any, node: Node, name: str) -> bool:
    """Whether a variable still is what the gradient was computed for."""
    if isinstance(value, Tensor):
        return value.node is node
    return value is not None and inputs.lift(value, name) is node


def _used_after(tree: ast.AST, changed: set[str], variables: Mapping[str, str]) -> list[str]:
    """The gradients that are read after their variables have changed, in the order in which Python runs the code."""
    found: dict[str, None] = {}
    for name, stored in _events(tree):
        if name == _ANEW:
            return list(found)
        if not stored and variables.get(name) in changed:
            found.setdefault(name)
        elif stored and name in variables.values():
            changed.add(name)
        elif stored and name in variables:
            return list(found)  # bound anew: no gradient of ours any more
    return list(found)


def _events(node: ast.AST) -> Iterator[tuple[str, bool]]:
    """Names with whether they are stored into, as code reads and stores them; the body of a loop twice."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef):
        return
    if isinstance(node, ast.Name):
        yield node.id, not isinstance(node.ctx, ast.Load)
    elif isinstance(node, ast.Assign | ast.AugAssign | ast.AnnAssign):
        yield from _events(node.value) if node.value is not None else ()
        for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
            yield from _stored(target)
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _RUNS_CELLS:
        for argument in node.args:
            yield from _events(argument)
        yield _ANEW, True
    elif isinstance(node, ast.keyword) and node.arg == "out":
        yield from _stored(node.value)
    else:
        for _ in range(2 if isinstance(node, ast.For | ast.While) else 1):
            for child in ast.iter_child_nodes(node):
                yield from _events(child)


def _stored(target: ast.expr) -> Iterator[tuple[str, bool]]:
    """What an assignment to ``target`` changes: ``w``, and also ``w[0]``."""
    if isinstance(target, ast.Tuple | ast.List):
        for part in target.elts:
            yield from _stored(part)
    elif isinstance(target, ast.Starred):
        yield from _stored(target.value)
    elif isinstance(target, ast.Subscript):
        yield from _events(target.slice)
        yield from _stored(target.value)
    elif isinstance(target, ast.Name):
        yield target.id, True
