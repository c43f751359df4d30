"""Computes values that depend only on the loop index and on constants for all iterations at once, without the loop.

``y[k] = exp(x[k])`` at each iteration stores one array of all of them, and ``total += x[k] * w[k]`` adds them up
afterwards. This is done where no iteration holds more than it stores or reads anyway, so that no memory is needed
that grows with the number of iterations.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tensormagic.ir.cost import cost_of_graph, elements, elements_of
from tensormagic.ir.errors import TensorError
from tensormagic.ir.graph import Graph
from tensormagic.ir.node import Node, as_size, topological
from tensormagic.ir.size import Size, atoms, is_at_least, nodes_of
from tensormagic.ops.fold import reduce_sum
from tensormagic.ops.leaf import index_node, iota, size_of
from tensormagic.ops.move import SLICE, expand_dims, reshape, slice_, transpose
from tensormagic.ops.opaque import items
from tensormagic.ops.regions.loops import LOOP, unindexed
from tensormagic.ops.regions.region import instantiated, matched
from tensormagic.ops.scalars.scalar import add
from tensormagic.ops.update import SET, set_at
from tensormagic.transform.batch import batch

SILENT = frozenset(("leaf", "pointwise", "move", "fold", "contract"))
"""Kinds of ops that raise nothing."""


def at_once(results: Sequence[Node], *, real: bool = False) -> dict[Node, Node]:
    """Return replacements for the results of loops whose iterations are independent, if they cost no more.

    Before rules of the level ``real``, products do not count: a sum of products becomes a product of sums.
    """
    goals: dict[Node, Node] = {}
    for node in topological(results):
        iterations = size_of(node.args[0]) if node.op is LOOP else None
        if iterations is not None and not nodes_of(iterations) and is_at_least(iterations, 2):
            goals |= {
                old: new for old, new in Iterations(node, iterations).goals().items() if pays(old, new, real=real)
            }
    return goals


def pays(old: Node, new: Node, *, real: bool) -> bool:
    """Return whether ``new`` costs no more, apart from storing or adding to the initial values."""
    before, after = cost_of_graph([old]), cost_of_graph([new])
    bytes_ = elements(new) * new.type.dtype.itemsize
    room = _BEGIN * elements(new)
    return after.operations <= before.operations + room and (real or after.stored <= before.stored + bytes_)


_BEGIN = 4  # an addition and a store


class Iterations:
    """One counted loop whose values are computed for all iterations at once."""

    def __init__(self, loop: Node, iterations: Size) -> None:
        self.loop, self.iterations = loop, iterations
        self.body: Graph = loop["body"]
        self.index, *self.own = self.body.parameters
        self.carries = self.own[: loop["carries"]]

    def goals(self) -> dict[Node, Node]:
        found: dict[Node, Node] = {}
        for k, end in enumerate(items(self.loop)):
            new = self._carry(k)
            if new is not None and new.type == end.type:
                found[end] = new
        return found

    def _carry(self, k: int) -> Node | None:
        carry, result = self.own[k], self.body.results[k]
        others = [r for j, r in enumerate(self.body.results) if j != k]
        if carry in topological(others):
            return None
        if result.op is SET and result.args[0] is carry and carry.type.shape:
            value, first, *rest = result.args[1], *result["slices"]
            whole = [(0, s, 1) for s in carry.type.shape[1:]]
            if rest != whole or first != (as_size(self.index), 1, 1):
                return None
            stack = self.stack(value)
            start = self.loop.args[1 + k]
            slices = ((0, self.iterations, 1), *((0, s, 1) for s in start.type.shape[1:]))
            shape = (self.iterations, *start.type.shape[1:])
            return None if stack is None else set_at(start, reshape(stack, shape), slices)
        if result.op is add and carry in result.args and result.type.dtype.kind == "f":
            value = result.args[1 - result.args.index(carry)]
            stack = self.stack(value) if self.is_there(value) else None
            if stack is None:
                return None
            return add(self.loop.args[1 + k], reduce_sum(stack, (0,)))
        return None

    def is_there(self, value: Node) -> bool:
        """Return whether the values of all iterations are no larger than an array that the iterations read."""
        nodes = set(topological([value]))
        read = [a for a, p in zip(self.loop.args[1:], self.own, strict=True) if p in nodes]
        whole = elements(value) * max(elements_of(self.iterations), 1)
        return any(elements(a) >= whole for a in read)

    def stack(self, value: Node) -> Node | None:
        """Return the values of all iterations, along a first axis, or None if iterations depend on each other or need more memory."""
        nodes = topological([value])
        if not self._alone(value, nodes):
            return None
        operands = self.loop.args[1:]
        try:
            sizes, _ = matched(unindexed(self.body, 1), operands, "loop")
            iteration = index_node("iteration", 0, self.iterations)
            sizes[self.index] = as_size(iteration)  # type: ignore[assignment] (a size)
            known = {self.index: iteration, **dict(zip(self.own, operands, strict=True))}
            if any(a not in sizes for n in nodes for s in n.type.shape for a in atoms(s)):
                return None
            (outside,) = instantiated([value], known, sizes)
            stacks = {
                n: one
                for n in topological([outside])
                if (one := side_by_side(n, iteration, self.iterations)) is not None
            }
            (found,) = batch([outside], {iteration: iota((self.iterations,), 0), **stacks}, self.iterations)
        except (TensorError, NotImplementedError):
            return None
        return found

    def _alone(self, value: Node, nodes: Sequence[Node]) -> bool:
        if any(p in nodes for p in self.carries) or self.index not in nodes or self.body.checked:
            return False
        if any(n.op.kind not in SILENT or len(n.types) != 1 for n in nodes):
            return False
        moving = {self.index}
        for n in nodes:
            if any(a in moving for a in n.needs):
                moving.add(n)
        computed = (n for n in moving if n.type.shape and n.op.kind != "move")
        return all(elements(n) <= elements(value) for n in computed)


def side_by_side(node: Node, iteration: Node, iterations: Size) -> Node | None:
    """Return the slices of all iterations, along a first axis, for a slice that moves by one place per iteration, or None for another."""
    if node.op is not SLICE or iteration in topological([node.args[0]]):
        return None
    slices = list(node["slices"])
    found = moving_axis(slices, iteration)
    if found is None:
        return None
    k, first, step = found
    slices[k] = (first, iterations, step)
    whole = slice_(node.args[0], tuple(slices))
    front = transpose(whole, (k, *(j for j in range(whole.type.ndim) if j != k)))
    return expand_dims(front, (k + 1,))


def moving_axis(slices: Sequence[tuple[Size, Size, int]], iteration: Node) -> tuple[int, Size, int] | None:
    """Return the axis along which a slice moves by one place per iteration, its first place, and the step, or None for other slices."""
    at: Any = as_size(iteration)
    axes = [k for k, s in enumerate(slices) if iteration in {a for e in s[:2] for a in nodes_of(e)}]
    if len(axes) != 1 or slices[axes[0]][1:] != (1, 1):
        return None
    (k,) = axes
    start = slices[k][0]
    step = 1 if not nodes_of(start - at) else -1
    first = start - at if step == 1 else start + at
    return None if nodes_of(first) else (k, first, step)
