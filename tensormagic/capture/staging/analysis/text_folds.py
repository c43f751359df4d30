"""Sums, means and extremes in function texts: unknown numbers while a text is read, and folds of arrays when rules are tried.

Each array then has as many axes as there are nested sums over axes. Rules see as much in that as in the actual
arrays.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, NamedTuple

from tensormagic.capture.library.reductions import mean_of, variance
from tensormagic.ir.node import Node, topological
from tensormagic.ir.size import symbol
from tensormagic.ir.type import Type
from tensormagic.ops import fold as folds
from tensormagic.ops.leaf import PARAMETER, parameter
from tensormagic.ops.move import expand_dims, reshape
from tensormagic.ops.pointwise import Cast, astype
from tensormagic.ops.scalars import scalar


class UnseenError(Exception):
    """Raised for something in a text for which it is not known what rules make of it."""


class Folded(NamedTuple):
    """Represents a fold: its element, its function, the degrees of freedom that it subtracts, and its axes as written."""

    name: str
    element: Node
    ddof: int
    axes: Any
    keeps_axes: bool


_Axes = tuple[int, ...]
FOLDS: dict[str, Callable[[Node, _Axes, int], Node]] = {
    "sum": lambda x, axes, _: folds.reduce_sum(x, axes),
    "mean": lambda x, axes, _: mean_of(x, axes),
    "var": variance,
    "std": variance,  # functions that are a fold and its root, when the axes are equal
    "max": lambda x, axes, _: folds.fold(folds.MAX, x, axes),
    "min": lambda x, axes, _: folds.fold(folds.MIN, x, axes),
}
"""Functions of one array that rules are asked about, by their names: of an array, axes and degrees of freedom."""
SAME = {"amax": "max", "amin": "min"}
"""Other names of these."""
OF_ONE: dict[str, Callable[[Node], Node]] = {
    "var": lambda x: (x - x) * (x - x),
    "std": lambda x: scalar.sqrt((x - x) * (x - x)),
}
"""Those that give something else of one element than that."""


def arrays_of(results: Sequence[Node], folded: Mapping[Node, Folded], numbers: AbstractSet[Node]) -> list[Node]:
    """Return the nodes that numbers are computed from, as arrays; folded values and unknown numbers become arrays of one length.

    Parameters
    ----------
    results
        The numbers.
    folded
        For unknown numbers: what is folded there.
    numbers
        Others, which are the same for all elements.

    Raises
    ------
    UnseenError
        If one array is folded over axes written in two ways, or what is folded has no axes.
    """
    return _Arrays(folded, numbers, _rank(results, folded, numbers)).through(results)


class _Arrays:
    """Makes arrays with so many axes for numbers."""

    def __init__(self, folded: Mapping[Node, Folded], numbers: AbstractSet[Node], rank: int) -> None:
        self._folded, self._numbers = folded, numbers
        self._shape = tuple([symbol(f"length{k}") for k in range(rank)])
        self._made: dict[Node, Node] = {}
        self._axes: dict[Node, Any] = {}  # for what is folded: the axes as written

    def through(self, nodes: Sequence[Node]) -> list[Node]:
        """Return the replacements of nodes, and of all that they are computed from."""
        for node in topological(nodes):
            if node not in self._made:
                self._made[node] = self._array(node)
        return [self._made[n] for n in nodes]

    def _array(self, node: Node) -> Node:
        if node in self._folded:
            return self._fold(self._folded[node])
        if node.op is PARAMETER:
            t = Type(node.type.dtype, self._shape)
            return node if _is_number(node, self._numbers) else parameter(node["index"], t)
        if not node.args:
            return node
        args = _aligned([self._made[a] for a in node.args])
        return astype(args[0], node.type.dtype) if isinstance(node.op, Cast) else node.op(*args)  # type: ignore[operator]

    def _fold(self, what: Folded) -> Node:
        (array,) = self.through([what.element])
        there = [k for k, extent in enumerate(array.type.shape) if extent != 1]
        if not there or self._axes.setdefault(array, what.axes) != what.axes:
            raise UnseenError
        own = tuple(there if what.axes is None else there[-1:])
        found = FOLDS[what.name](array, own, what.ddof)
        if what.keeps_axes:
            found = expand_dims(found, own)
        elif what.axes is None and found.type.shape:
            found = reshape(found, ())
        return scalar.sqrt(found) if what.name == "std" else found


def _aligned(args: list[Node]) -> list[Node]:
    """Return operands with their first axes aligned: the last axes have been folded, and numbers have none."""
    most = max(a.type.ndim for a in args)
    return [expand_dims(a, tuple(range(a.type.ndim, most))) if 0 < a.type.ndim < most else a for a in args]


def _rank(results: Sequence[Node], folded: Mapping[Node, Folded], numbers: AbstractSet[Node]) -> int:
    """Return how many axes arrays need, so that each nested sum has one."""
    left: dict[Node, float] = {}  # the number of sums over axes that all of a node passes through
    most = 1

    def through(nodes: Sequence[Node]) -> None:
        nonlocal most
        for node in topological(nodes):
            if node in left:
                continue
            what = folded.get(node)
            if what is not None:
                through([what.element])
                left[node] = math.inf if what.axes is None else left[what.element] + 1
                most = max(most, left[what.element] + 1) if left[what.element] < math.inf else most
            elif node.args:
                left[node] = min(left[a] for a in node.args)
            else:
                left[node] = 0 if node.op is PARAMETER and not _is_number(node, numbers) else math.inf

    through(results)
    return int(most)


def _is_number(leaf: Node, numbers: AbstractSet[Node]) -> bool:
    """Return whether an unknown number is the same for all elements."""
    return leaf in numbers or leaf.type.form != "scalar"
