"""Which values and gradients belong to which variables, and what is said where these have changed since.

It compares what a variable is with what it was; it does not know how gradients are made.
"""

from __future__ import annotations

import ast
import warnings
import weakref
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from tensormagic.capture import home, inputs
from tensormagic.capture.value import Tensor
from tensormagic.ir.errors import StaleGradientWarning
from tensormagic.ir.node import Node, topological
from tensormagic.ops.leaf import CONSTANT, INPUT

__all__ = ["Gradients", "Origins"]

_ANEW = "*"  # every gradient may be bound anew here
_RUNS_CELLS = {"run_cell_magic", "run_line_magic", "run_cell", "magic"}
_LOOP = """{gradient} belongs to the {name} that {cell} read; {name} has changed since, but {gradient} has not. {advice}:
    import tensormagic as tm
    step = tm.value_and_grad({function}, ("{name}",))
    for k in range(100):
        value, (g,) = step({name}={name})
        {name} -= 0.1 * g"""

_NAMED = "Give that cell a name (%%tensor objective --grad ...), run it again, and compute the gradient in every step"


@dataclass
class _Bound:
    """One gradient: the lazy value that was bound, the variable's node at that time, and the cell."""

    gradient: Tensor
    name: str
    node: Node
    cell: str
    function: str = ""  # what the cell is called, if it has a name
    warned: bool = False


class Gradients:
    """The gradients that cells have bound in a notebook."""

    def __init__(self) -> None:
        self._bound: dict[str, _Bound] = {}

    def held(self, space: Mapping[str, Any]) -> set[str]:
        """The names of a notebook that are gradients."""
        return {name for name, bound in self._bound.items() if space.get(name) is bound.gradient}

    def bind(
        self,
        gradients: Mapping[str, Any],
        nodes: Mapping[str, Node],
        cell: str,
        space: dict[str, Any],
        function: str = "",
    ) -> None:
        """Bind ``grad_A`` for each A, of a cell that may be called ``function``; warns where that name is in use for something else."""
        for name, gradient in gradients.items():
            if not name.isidentifier():  # a part of a container
                continue
            bound = f"grad_{name}"
            mine = self._bound.get(bound)
            if bound in space and (mine is None or space[bound] is not mine.gradient):
                message = (
                    f"{bound} was a variable of the notebook, and is now the gradient with respect to {name}; "
                    "if you need both, give yours another name"
                )
                warnings.warn_explicit(message, UserWarning, cell, 1)
            self._bound[bound] = _Bound(gradient, name, nodes[name], cell, function)
            space[bound] = gradient

    def check(self, text: str, space: Mapping[str, Any], cell: str, above: int = 0) -> None:
        """Warn, once for each gradient, where the text of ``cell`` uses one whose variable has changed or changes on the way.

        ``above`` are the cell's lines before the text.
        """
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
            advice = "Compute the gradient in every step" if bound.function else _NAMED
            function = bound.function or "objective"
            message = _LOOP.format(gradient=name, name=bound.name, cell=bound.cell, advice=advice, function=function)
            lines = (n.lineno for n in ast.walk(tree) if isinstance(n, ast.Name) and n.id == name)
            warnings.warn_explicit(message, StaleGradientWarning, cell, above + min(lines, default=1))


class Origins:
    """Which cell each variable of a notebook is from, and from which one it was when captured code has read it."""

    def __init__(self) -> None:
        self._held: dict[str, int] = {}  # the identity of each variable's value
        self._cells: dict[str, str] = {}  # the cell that has bound it, or stored into it
        self._read: weakref.WeakKeyDictionary[Node, dict[str, str]] = weakref.WeakKeyDictionary()

    def read(self, found: Mapping[str, Tensor]) -> None:
        """Captured code has read these variables, as they are."""
        for name, tensor in found.items():
            if tensor.node.op is not CONSTANT:
                self._read.setdefault(tensor.node, {})[name] = self._cells.get(name, "")

    def after(self, cell: str, text: str, space: Mapping[str, Any]) -> None:
        """A cell of this text has run: what it has bound, and what it has stored into, is from there."""
        stored = stored_in(text)
        for name in home.variables(space):
            value = id(space[name])
            if not name.startswith("_") and (self._held.get(name) != value or name in stored):
                self._held[name] = value
                self._cells[name] = cell

    def note(self, node: Node, cell: str, space: Mapping[str, Any]) -> str:
        """``computed for w of In[4]; w is now from In[7]``; empty where nothing has changed, or the value's own cell did it."""
        if not self._read:
            return ""
        parts: list[str] = []
        nodes = topological([node])
        below = set(nodes)
        for part in nodes:
            for name, origin in self._read.get(part, {}).items():
                now = self._cells.get(name, "")
                held = space.get(name)
                if name not in space or now == cell or _unchanged(held, part):
                    continue
                if (
                    isinstance(held, Tensor) and held.node in below
                ):  # computed for what it is now, which came from what it was
                    continue
                was = f"{name} of {origin}" if origin and origin != now else f"an earlier {name}"
                told = f"is now from {now}" if now and now != origin else "has changed since"
                parts.append(f"computed for {was}; {name} {told}")
        return " · ".join(dict.fromkeys(parts))


@lru_cache(maxsize=16)
def stored_in(text: str) -> frozenset[str]:
    """The names that a cell binds or stores into, as far as its text says it."""
    try:
        tree = ast.parse(text)
    except SyntaxError:
        return frozenset()
    return frozenset(name for name, stored in _events(tree, 1) if stored)


def _unchanged(value: Any, node: Node) -> bool:
    """Whether a variable still has the value that was read; so where that cannot be told."""
    if isinstance(value, Tensor):
        return value.node is node
    if node.op is not INPUT:
        return False
    read = node["source"].value
    if not isinstance(value, np.ndarray | np.generic | float | complex) or read is None:
        return True
    now, then = np.asarray(value), np.asarray(read)
    if now.shape != then.shape or now.dtype != then.dtype:
        return False
    return now is then or np.ascontiguousarray(now).tobytes() == np.ascontiguousarray(then).tobytes()


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


def _events(node: ast.AST, rounds: int = 2) -> Iterator[tuple[str, bool]]:
    """Names with whether they are stored into, as code reads and stores them; the body of a loop as often as said."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef):
        return
    if isinstance(node, ast.Name):
        yield node.id, not isinstance(node.ctx, ast.Load)
    elif isinstance(node, ast.Assign | ast.AugAssign | ast.AnnAssign):
        yield from _events(node.value, rounds) if node.value is not None else ()
        for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
            yield from _stored(target, rounds)
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _RUNS_CELLS:
        for argument in node.args:
            yield from _events(argument, rounds)
        yield _ANEW, True
    elif isinstance(node, ast.keyword) and node.arg == "out":
        yield from _stored(node.value, rounds)
    else:
        for _ in range(rounds if isinstance(node, ast.For | ast.While) else 1):
            for child in ast.iter_child_nodes(node):
                yield from _events(child, rounds)


def _stored(target: ast.expr, rounds: int) -> Iterator[tuple[str, bool]]:
    """What an assignment to ``target`` changes: ``w``, and also ``w[0]``."""
    if isinstance(target, ast.Tuple | ast.List):
        for part in target.elts:
            yield from _stored(part, rounds)
    elif isinstance(target, ast.Starred):
        yield from _stored(target.value, rounds)
    elif isinstance(target, ast.Subscript):
        yield from _events(target.slice, rounds)
        yield from _stored(target.value, rounds)
    elif isinstance(target, ast.Name):
        yield target.id, True
