"""Compute sums and stores of masked elements in one pass over all elements, without indices.

``x[m].sum()`` becomes the sum of ``np.where(m, x, 0)``, and ``x[m] = f(x[m])`` becomes ``np.where(m, f(x), x)``:
one pass, in which neither indices nor selected elements are stored. What is computed of the selected elements has
to be cheap, as it is computed of all. NumPy itself is faster with a selection, so only kernels are made so.
"""

from __future__ import annotations

from collections.abc import Container, Sequence

from tensormagic.backend.planning.fusion import may_round
from tensormagic.ir.cost import weight
from tensormagic.ir.node import Node, topological
from tensormagic.ir.site import substituted
from tensormagic.ops.fold import ALL, ANY, PROD, SUM, fold
from tensormagic.ops.indices.gather import GATHER
from tensormagic.ops.indices.scatter import SCATTER_ADD, SCATTER_SET
from tensormagic.ops.indices.selection import PLACES
from tensormagic.ops.indices.unselected import of_all
from tensormagic.ops.leaf import constant
from tensormagic.ops.move import BROADCAST
from tensormagic.ops.pointwise import Pointwise
from tensormagic.ops.scalars.scalar import add, where

_FOLDS = {SUM, PROD, ANY, ALL}  # reductions with an identity
_MOST = 16  # most work per element, in half additions


def of_all_elements(results: Sequence[Node]) -> list[Node]:
    """Return ``results`` with such sums and stores computed from all elements, if other rounding than NumPy's is allowed."""
    found = list(results)
    while goals := _goals(found) if may_round() else {}:  # a replacement may contain another one
        found = substituted(found, goals)
    return found


def _goals(results: Sequence[Node]) -> dict[Node, Node]:
    """Return replacements for sums and stores of mask selections."""
    nodes = topological(results)
    shown = set(results)
    found = [_of_all(n, nodes, shown) for n in nodes if n.op is PLACES]
    return {old: new for ends in found for old, new in (ends or {}).items()}


def _of_all(places: Node, nodes: Sequence[Node], shown: Container[Node]) -> dict[Node, Node] | None:
    """Return replacements for all sums and stores of one mask's selection, or None if it has other uses, or costs too much."""
    every = _Every(places)
    ends: dict[Node, Node] = {}
    for node in nodes:
        if not any(arg is places or arg in every.made for arg in node.args):
            continue
        end = every.end(node)
        if end is not None:
            ends[node] = end
        elif node in shown or not every.reads(node):
            return None
    return ends if places not in shown and every.operations <= _MOST else None


class _Every:
    """The counterparts, over all elements, of nodes computed from selected elements: ``made``."""

    def __init__(self, places: Node) -> None:
        self.made: dict[Node, Node] = {}
        self.operations = 0
        self._places, self._mask = places, places.args[0]

    def reads(self, node: Node) -> bool:
        """Record what a node computes; False if it is not element-wise."""
        if node.op is GATHER:
            fits = node.args[1] is self._places and node.args[0].type.shape == self._mask.type.shape
        else:
            fits = isinstance(node.op, Pointwise) and node.type.shape == self._places.type.shape
        found = self._all(node) if fits else None
        if found is not None:
            self.made[node] = found
            self.operations += weight(node) if isinstance(node.op, Pointwise) else 0
        return found is not None

    def end(self, node: Node) -> Node | None:
        """Return the replacement for a sum, or for a store to where the elements were, or None."""
        if node.op in _FOLDS:
            x, dtype = self._of(node.args[0]), node.args[0].type.dtype
            nothing = constant(dtype.type(node.op.start(dtype)))  # type: ignore[attr-defined]
            return None if x is None else fold(node.op, where(self._mask, x, nothing), (0,))  # type: ignore[arg-type]
        if node.op is not SCATTER_SET and node.op is not SCATTER_ADD:
            return None
        whole, places, values = node.args
        x = self._of(values)
        fits = whole.type.shape == self._mask.type.shape and values.type.dtype == whole.type.dtype
        if x is None or places is not self._places or whole in self.made or not fits:
            return None
        return where(self._mask, add(whole, x) if node.op is SCATTER_ADD else x, whole)

    def _of(self, node: Node) -> Node | None:
        """Return the counterpart of ``node`` over all elements, if known; a number stays itself."""
        if node in self.made or (node.type.shape and node.op is not BROADCAST):
            return self.made.get(node)
        return self._all(node)

    def _all(self, node: Node) -> Node | None:
        return of_all(node, self._of, self._places, -1, self._mask.type.shape[0])
