"""Computes sums of matrix products over the iterations of a loop as one product over all iterations, after the loop.

``G = G + A_t.T @ D_t`` at each iteration becomes one product of arrays with all iterations side by side: arrays that
the loop reads iteration by iteration are used as they are, and computed values are stacked. The weights' gradient of
a recurrent net is such a sum.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import reduce
from math import prod
from typing import Any

from tensormagic.ir.graph import Graph, bare_symbol
from tensormagic.ir.node import Node, as_size, make, topological
from tensormagic.ir.size import Size, atoms, hint, is_at_least, nodes_of, product
from tensormagic.ir.substituting import substitute
from tensormagic.ir.type import Type
from tensormagic.ops.contract import CONTRACT, LETTERS, einsum, split
from tensormagic.ops.leaf import constant, constant_value, size_of
from tensormagic.ops.move import RESHAPE, SLICE, broadcast, reshape, slice_
from tensormagic.ops.opaque import items
from tensormagic.ops.regions.loops import LOOP, unindexed
from tensormagic.ops.regions.region import graph_over, matched, stand_in
from tensormagic.ops.scalars.scalar import add
from tensormagic.ops.update import set_at


@dataclass(frozen=True)
class Turned:
    """A value of each iteration as a slice of an array outside the loop: at place ``i`` for iteration ``i``, or counted from the end."""

    outside: Node
    backwards: bool


@dataclass
class _Loop:
    """A counted loop, with the facts found about it."""

    node: Node
    body: Graph = field(init=False)
    carries: int = field(init=False)

    def __post_init__(self) -> None:
        self.body, self.carries = self.node["body"], self.node["carries"]
        self.index, *self.own = self.body.parameters
        self.operands = self.node.args[1:]
        self.iterations = size_of(self.node.args[0])
        self.sizes, _ = matched(unindexed(self.body, 1), self.operands, "loop")
        within = self.index.params.get("within") or (None, None)
        last: Size = -1 if within[1] is None else within[1]
        known = isinstance(last, int) or bare_symbol(last) is not None
        self.inside: Size = last if known else -1  # the number of iterations, in the sizes of the body

    def read_by_iteration(self, value: Node) -> Turned | None:
        """Return the constant array of which ``value`` is the iteration's slice, or None for another value."""
        while value.op is RESHAPE:
            value = value.args[0]
        if value.op is not SLICE or value.args[0] not in self.own[self.carries :] or self.iterations is None:
            return None
        (first, extent, step), *rest = value["slices"]
        source = value.args[0]
        fixed = not any(nodes_of(s) for start, length, _ in rest for s in (start, length))
        at = as_size(self.index)
        if (extent, step) != (1, 1) or not fixed or at is None:
            return None
        offset, backwards = first - at, False
        if self.index in nodes_of(offset):
            offset, backwards = first + at - (self.inside - 1), True
        if nodes_of(offset):
            return None
        operand = self.operands[self.own.index(source)]
        other = tuple((substitute(start, self.sizes), substitute(length, self.sizes), by) for start, length, by in rest)
        slices = ((substitute(offset, self.sizes), self.iterations, 1), *other)
        return Turned(slice_(operand, slices), backwards)


def summed_after(node: Node) -> dict[Node, Node]:
    """Return replacements for the results of a loop that sums products over its iterations; empty if it does not."""
    if node.op is not LOOP:
        return {}
    iterations = size_of(node.args[0])
    if iterations is None or nodes_of(iterations) or not is_at_least(iterations, 2):
        return {}
    loop = _Loop(node)
    return {} if loop.inside == -1 else _Sums(loop).goals()


def _terms(result: Node, carry: Node) -> list[Node] | None:
    """Return the terms added to a carry, or None if the result is no such sum."""
    found: list[Node] = []
    while result is not carry:
        if result.op is not add or result.types[0].shape != carry.type.shape:
            return None
        left, right = result.args
        inner, term = (left, right) if carry in topological([left]) else (right, left)
        found.append(term)
        result = inner
    return found


class _Sums:
    """The sums of products in one loop."""

    def __init__(self, loop: _Loop) -> None:
        self.loop = loop
        self.stacked: dict[Node, bool] = {}  # values that are stacked for all iterations, and whether in reverse order
        self.taken: dict[int, list[tuple[Node, Turned | None, Turned | None]]] = {}
        self.rest: dict[int, list[Node]] = {}

    def goals(self) -> dict[Node, Node]:
        """Return the replacements for the results of the loop."""
        for k in range(self.loop.carries):
            self._look(k)
        return self._rebuilt() if self.taken else {}

    def _look(self, k: int) -> None:
        loop = self.loop
        carry, result = loop.own[k], loop.body.results[k]
        if result.op is not add or not carry.type.shape or not carry.type.inexact:
            return
        terms = _terms(result, carry)
        others = [r for j, r in enumerate(loop.body.results) if j != k]
        if not terms or carry in topological([*terms, *others, *loop.body.checked]):
            return
        if self._read_between(k):
            return
        taken = [found for term in terms if (found := self._product(term)) is not None]
        if taken:
            self.taken[k] = taken
            products = {term for term, _, _ in taken}
            self.rest[k] = [term for term in terms if term not in products]

    def _read_between(self, k: int) -> bool:
        """Return whether a partial sum has a reader other than the next addition."""
        loop = self.loop
        chain: set[Node] = set()
        result = loop.body.results[k]
        carry = loop.own[k]
        while result is not carry:
            chain.add(result)
            result = next(a for a in result.args if a is carry or carry in topological([a]))
        users = [n for n in loop.body.nodes for a in n.args if a in chain and n not in chain]
        return bool(users)

    def _product(self, term: Node) -> tuple[Node, Turned | None, Turned | None] | None:
        """Return a product of two values of an iteration, at least one of which is a slice of an array outside the loop, or None."""
        if term.op is not CONTRACT:
            return None
        first, second = (self.loop.read_by_iteration(a) for a in term.args)
        known = first or second
        if known is None or (first and second and first.backwards != second.backwards):
            return None
        computed = [x for x, own in zip(term.args, (first, second), strict=True) if own is None]
        beside = term.args[first is None]
        if any(self.stacked.get(x, known.backwards) != known.backwards or not self._fits(x) for x in computed):
            return None
        if not all(self._pays(x, beside, term) for x in computed):
            return None
        self.stacked.update(dict.fromkeys(computed, known.backwards))
        return term, first, second

    def _pays(self, value: Node, beside: Node, term: Node) -> bool:
        """Return whether stacking a value costs no more than the sums: it differs between iterations, and is not larger than the others.

        A value that the loop only reads would be copied at each iteration, and a matrix that meets a vector is too
        large.
        """
        moving = {self.loop.index, *self.loop.own[: self.loop.carries]}
        larger = max(_elements(beside), _elements(term))
        return not moving.isdisjoint(topological([value])) and _elements(value) <= larger

    def _fits(self, value: Node) -> bool:
        """Return whether the size of a value is the same at every iteration and known outside."""
        sizes = self.loop.sizes
        return not any(nodes_of(s) or any(a not in sizes for a in atoms(s)) for s in value.type.shape)

    # the loop without these sums

    def _rebuilt(self) -> dict[Node, Node]:
        loop = self.loop
        iterations = loop.iterations
        values = list(self.stacked)
        slots = [stand_in("stack", Type(v.type.dtype, (loop.inside, *v.type.shape))) for v in values]
        kept = [k for k in range(loop.carries) if self.rest.get(k, [None])]
        nexts = [_sum([loop.own[k], *self.rest[k]]) if k in self.rest else loop.body.results[k] for k in kept]
        written = [self._written(v, slot) for v, slot in zip(values, slots, strict=True)]
        order = [*(loop.own[k] for k in kept), *slots, *loop.own[loop.carries :]]
        body = graph_over([loop.index, *order], [*nexts, *written], loop.body)
        starts = [
            broadcast(
                constant(v.type.dtype.type(0)),
                (iterations, *(substitute(s, loop.sizes) for s in v.type.shape)),  # type: ignore[arg-type]
            )
            for v in values
        ]
        operands = [*(loop.operands[k] for k in kept), *starts, *loop.operands[loop.carries :]]
        ends = items(make(LOOP, [loop.node.args[0], *operands], body=body, carries=len(kept) + len(values)))
        after = dict(zip(kept, ends, strict=False))
        stacks = dict(zip(values, ends[len(kept) :], strict=True))
        return {
            old: self._sum(k, after, stacks) if k in self.taken else after[k] for k, old in enumerate(items(loop.node))
        }

    def _written(self, value: Node, slot: Node) -> Node:
        at: Any = as_size(self.loop.index)
        place = self.loop.inside - 1 - at if self.stacked[value] else at
        shape = value.type.shape
        return set_at(slot, reshape(value, (1, *shape)), ((place, 1, 1), *((0, s, 1) for s in shape)))

    def _sum(self, k: int, after: dict[int, Node], stacks: dict[Node, Node]) -> Node:
        start = after.get(k, self.loop.operands[k])
        value = constant_value(start)
        before = [] if value is not None and not value.any() else [start]
        return _sum([*before, *(self._whole(taken, stacks) for taken in self.taken[k])])

    def _whole(self, taken: tuple[Node, Turned | None, Turned | None], stacks: dict[Node, Node]) -> Node:
        """Return one product over all iterations."""
        term, *turned = taken
        (a, b), out = split(term["subscripts"])
        letter = next(c for c in LETTERS if c not in a + b)
        shared = [c for c in a if c in b and c not in out]
        operands = [
            stacks[v] if own is None else self._shaped(own, v) for v, own in zip(term.args, turned, strict=True)
        ]
        if all(list(own[: len(shared)]) == shared for own in (a, b)):  # all rows in one axis: a product of two matrices
            a, b = a[len(shared) :], b[len(shared) :]
            operands = [_merged(v, len(shared)) for v in operands]
        return einsum(f"{letter}{a},{letter}{b}->{out}", *operands)

    def _shaped(self, own: Turned, value: Node) -> Node:
        shape = tuple(substitute(s, self.loop.sizes) for s in value.type.shape)
        return reshape(own.outside, (own.outside.type.shape[0], *shape))


def _elements(value: Node) -> int:
    """Return the number of elements of a value, by the sizes seen at capture."""
    return prod(hint(s) or _UNSEEN for s in value.type.shape)


_UNSEEN = 32
"""The value assumed for a size that was not seen at capture."""


def _sum(terms: Sequence[Node]) -> Node:
    """Return the sum of one or more terms."""
    return reduce(add, terms)


def _merged(value: Node, count: int) -> Node:
    """Return a value with its first axis and ``count`` more merged into one."""
    shape = value.type.shape
    return reshape(value, (product(shape[: count + 1]), *shape[count + 1 :]))
