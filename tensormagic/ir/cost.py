"""The cost of nodes, by the sizes seen at capture: operations, and bytes stored. Knows ops by their kind and weight alone."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from math import prod
from typing import Any

from tensormagic.ir.graph import Graph
from tensormagic.ir.node import Node, as_size, is_constant, topological
from tensormagic.ir.rewriting.second_looks import second_looks
from tensormagic.ir.size import Size, evaluate, hint

_UNSEEN = 32
"""The value assumed for a size that was not seen at capture."""

_KINDS = {"leaf": 1, "move": 1, "pointwise": 20, "fold": 10, "update": 10, "contract": 50, "region": 100, "opaque": 200}
PRICE = 24
"""How many operations a rule may add for each element of a result to gain accuracy."""
_PRODUCT = 4  # a multiplication and an addition
_PASS = 2  # an element that is read and written
_MATRIX = 50  # the weight of a library's function of a matrix, a product of its extents


def weight(node: Node) -> int:
    """Return the cost of the op of ``node``, in units of half an addition; a weak constant costs less than a strong one."""
    if is_constant(node):
        return 1 if node.type.form == "scalar" else 2
    return node.op.weight or _KINDS.get(node.op.kind, 20)


@dataclass(frozen=True)
class Cost:
    """Operations, in units of half an addition, and bytes stored between kernels."""

    operations: int = 0
    stored: int = 0

    def __add__(self, other: Cost) -> Cost:
        return Cost(self.operations + other.operations, self.stored + other.stored)

    def __mul__(self, times: int) -> Cost:
        return Cost(self.operations * times, self.stored * times)

    def within(self, other: Cost, results: Iterable[Node], *, even: bool = False) -> bool:
        """Return whether this cost is no more than ``other``, plus what accuracy of ``results`` may cost unless ``even``.

        That allowance is one more pass, or an exponential for each element of a result, which is stored in any case. A
        byte counts as half an addition, and bytes do not matter if the total is less than half.
        """
        roots = list(results)
        if 2 * (self.operations + self.stored) <= other.operations + other.stored:
            return True
        if even:
            return self.operations <= other.operations and self.stored <= other.stored + _bytes(roots)
        price = PRICE * sum(map(elements, roots)) + other.operations // 4
        return self.operations <= other.operations + price and self.stored <= other.stored + 2 * _bytes(roots)


def _bytes(nodes: Iterable[Node]) -> int:
    return sum(elements(n) * max(t.dtype.itemsize for t in n.types) for n in nodes)


def elements(node: Node) -> int:
    """Return the number of elements in the results of ``node``."""
    if len(node.types) == 1:
        return prod(map(elements_of, node.types[0].shape))
    return sum(prod(map(elements_of, t.shape)) for t in node.types)


def cost(nodes: Iterable[Node]) -> Cost:
    """Return the cost of these nodes alone."""
    operations = stored = 0
    for node in nodes:
        if node.op.kind == "pointwise" and node.args:
            operations += weight(node) * elements(node)
        else:
            one = _cost(node)
            operations += one.operations
            stored += one.stored
    return Cost(operations, stored)


def cost_of_graph(results: Iterable[Node]) -> Cost:
    """Return the cost of all that ``results`` need, except for nodes that only a rarely needed second evaluation computes."""
    nodes = topological(list(results))
    rare = second_looks(nodes)
    folds = {n for n in nodes if n.op.kind == "fold" and n.args[0] in rare}
    return cost(n for n in nodes if n not in rare and n not in folds)


def _cost(node: Node) -> Cost:
    """Return the cost of a node that is no element-wise function."""
    kind = node.op.kind
    if not node.args or kind == "leaf" or (kind == "move" and len(node.args) == 1) or node.op.hands_on:
        return Cost()  # checks are the same before and after a rule
    if kind == "update":  # done in place if nothing else reads the old value
        return Cost(_PASS * elements(node.args[1]), elements(node.args[1]) * node.type.dtype.itemsize)
    stored = sum(prod(map(elements_of, t.shape)) * t.dtype.itemsize for t in node.types)
    if kind in {"contract", "opaque"}:  # a library needs stored operands
        computed = [a for a in node.args if a.op.kind == "pointwise"]
        stored += sum(elements(a) * a.type.dtype.itemsize for a in computed)
    return Cost(_operations(node, kind), stored) if kind != "region" else _region(node)


def _operations(node: Node, kind: str) -> int:
    if kind == "contract":
        letters = node["subscripts"].partition("->")[0].replace(",", "")
        sizes = [s for a in node.args for s in a.type.shape]
        return _PRODUCT * prod(map(elements_of, dict(zip(letters, sizes, strict=True)).values()))
    if node.op.takes:
        return _PASS * elements(node)
    if kind == "opaque":
        first = node.args[0]
        return weight(node) * elements(first) * max(map(elements_of, first.types[0].shape[-2:]), default=1) // _MATRIX
    most = max(elements(node), *(elements(a) for a in node.args))
    if kind != "fold":
        return weight(node) * most
    return most * (weight(node) - _PASS * 3 if node.op.weight else _PASS)  # passes are fused


def _region(node: Node) -> Cost:
    """Return the cost of a region's bodies, times the number of iterations if that is known."""
    bodies = [v for v in node.params.values() if isinstance(v, Graph)]
    iterations = as_size(node.args[0]) if node.op.counted else 1
    times = _UNSEEN if iterations is None else elements_of(iterations)
    return sum((cost_of_graph(g.results) for g in bodies), Cost()) * times


def elements_of(size: Any) -> int:
    """Return a size as seen at capture, or a guess."""
    seen: Size | None = hint(size)
    return seen if isinstance(seen, int) else _guessed(size)


@lru_cache(maxsize=1024)
def _guessed(size: Size) -> int:
    try:
        return max(evaluate(size, lambda a: getattr(a, "hint", None) or _UNSEEN), 0)
    except ArithmeticError:
        return _UNSEEN
