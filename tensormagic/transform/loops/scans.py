"""Replaces loops that carry running sums, products or extremes, and store them at each iteration, by scans of whole arrays.

``total = total + x[k]; out[k] = total`` is ``np.cumsum``, with the same order of sums; so are ``y[k] = y[k - 1] +
x[k]``, and functions of such sums. It is done where nothing else needs the loop: otherwise both would be computed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

import numpy as np

from tensormagic.ir.cost import elements, weight
from tensormagic.ir.errors import TensorError
from tensormagic.ir.graph import Graph
from tensormagic.ir.node import Node, as_size, topological
from tensormagic.ir.operation import Operation
from tensormagic.ir.site import substituted
from tensormagic.ir.size import Size, atoms, is_at_least, nodes_of
from tensormagic.ops.fold import CUMMAX, CUMMIN, CUMPROD, CUMSUM, row
from tensormagic.ops.form import FORM, to_form
from tensormagic.ops.leaf import constant, constant_value, index_node, iota, is_constant_zero, size_of
from tensormagic.ops.move import broadcast, concatenate, flip, reshape, slice_, transpose
from tensormagic.ops.op import Op
from tensormagic.ops.opaque import items
from tensormagic.ops.regions.loops import unindexed
from tensormagic.ops.regions.region import instantiated, matched, stand_in
from tensormagic.ops.scalars.scalar import add, maximum, minimum, multiply, negative, subtract
from tensormagic.ops.update import ADD_AT, SET, set_at
from tensormagic.transform.batch import batch
from tensormagic.transform.loops.iterations import SILENT, side_by_side
from tensormagic.transform.loops.stacks import loops_of
from tensormagic.transform.loops.stored_places import Places, Slices, at, bare, is_inside, places_of

_SCANS: dict[Operation, tuple[Op, float]] = {
    add: (CUMSUM, 0.0),
    multiply: (CUMPROD, 1.0),
    maximum: (CUMMAX, -np.inf),
    minimum: (CUMMIN, np.inf),
}
"""The functions that combine a carry with a value: each with its scan along an axis, and its neutral number."""
_SAME_BITS = frozenset((add, multiply))  # of two zeros, an extremum may return either one


def scanned(results: Sequence[Node], rounded: Collection[str] | None) -> dict[Node, Node]:
    """Return replacements for arrays in which loops store running sums and the like, place by place.

    Parameters
    ----------
    results
        The requested nodes.
    rounded
        If bits must stay the same: the functions whose results do not depend on an element's position. None for all
        functions.
    """
    goals: dict[Node, Node] = {}
    for loop, ends in loops_of(results).items():
        iterations = size_of(loop.args[0])
        if iterations is None or nodes_of(iterations) or not is_at_least(iterations, 1) or loop["body"].checked:
            continue
        if all(r.op not in {SET, ADD_AT} for r in loop["body"].results):
            continue
        try:
            goals |= _Loop(loop, iterations, rounded).goals(ends)
        except (TensorError, NotImplementedError):
            continue
    return goals


class _Carry(NamedTuple):
    """A carry: its initial value and its next value."""

    start: Node
    next: Node


class _Scan(NamedTuple):
    """One step of a scan: the value that a carry is combined with at each iteration, and the op."""

    op: Operation
    value: Node


class _Loop:
    """One counted loop, with its carries as placeholder nodes until they are expressed for every iteration."""

    def __init__(self, loop: Node, iterations: Size, rounded: Collection[str] | None) -> None:
        body: Graph = loop["body"]
        index, *own = body.parameters
        self.loop, self.iterations, self.rounded = loop, iterations, rounded
        self.starts, constants = loop.args[1 : 1 + loop["carries"]], loop.args[1 + loop["carries"] :]
        sizes, _ = matched(unindexed(body, 1), loop.args[1:], "loop")
        self.iteration = index_node("iteration", 0, iterations)
        sizes[index] = as_size(self.iteration)  # type: ignore[assignment] (a size)
        self.slots = [stand_in(f"carry{k}", t) for k, t in enumerate(loop.types)]
        known = {index: self.iteration, **dict(zip(own, (*self.slots, *constants), strict=True))}
        whole = all(a in sizes for n in body.nodes for t in n.types for s in t.shape for a in atoms(s))
        self.ends = instantiated(body.results, known, sizes) if whole else []
        self.outside = {*loop.args}
        self.carries: dict[Node, _Carry] = {}
        self.stores: dict[int, Places] = {}
        self.befores: dict[
            int, Node
        ] = {}  # for arrays whose previous element the next iteration reads: a stand-in for that element
        self.stacks: dict[Node, Node | None] = {}

    def goals(self, ends: Iterable[Node]) -> dict[Node, Node]:
        """Return replacements for those of ``ends`` that need no loop."""
        if not self.ends:
            return {}  # sizes differ between iterations
        every = list(items(self.loop))
        read = {every.index(end) for end in ends}
        self._note_carries()
        found = {k: new for k in sorted(read & self.stores.keys()) if (new := self._stored(k)) is not None}
        scans = {s for k in found for s in self._reached([self.ends[k]]) if self._scan(s) is not None}
        for k in sorted(read - found.keys()):
            last = self._last(self.slots[k]) if self.slots[k] in scans else None
            if last is not None:
                found[k] = last
        rest = self._reached([self.ends[k] for k in read - found.keys()])
        if rest & scans:  # these scans would be computed twice
            found = {k: new for k, new in found.items() if not self._reached([self.ends[k]]) & scans}
        return {every[k]: new for k, new in found.items() if new.type == every[k].type and self._pays(k, scans)}

    def _pays(self, k: int, scans: set[Node]) -> bool:
        """Return whether a result without the loop is as fast as in one compiled loop; a scan is stored before functions of it."""
        if k not in self.stores:
            return True  # the last value of the scan
        direct = self.stores[k].step > 0 and bare(self._value(k)) in {bare(self.carries[s].next) for s in scans}
        used = self._reached([self.ends[k]])
        values = [self.ends[k], *(self.carries[s].next for s in used)]
        computed = topological(values, stop=self.outside.__contains__)
        return direct or not used & scans or any(weight(n) >= _FUNCTION and n.op.kind == "pointwise" for n in computed)

    def _reached(self, roots: Sequence[Node]) -> set[Node]:
        """Return the carries that ``roots`` depend on at any iteration."""
        found: set[Node] = set()
        stack = list(roots)
        while stack:
            for n in topological([stack.pop()], stop=self.outside.__contains__):
                if n in self.carries and n not in found:
                    found.add(n)
                    stack.append(self.carries[n].next)
        return found

    # carries

    def _note_carries(self) -> None:
        """Record the next value of each carry, and for stored places what the next iteration reads."""
        if not self.ends:
            return
        for k in range(len(self.slots)):
            self._take(k)
        for k, (slot, start) in enumerate(zip(self.slots, self.starts, strict=True)):
            if k not in self.stores:
                self.carries[slot] = _Carry(start, self.ends[k])
            elif k in self.befores:
                first = slice_(start, self.stores[k].first_before)
                self.carries[self.befores[k]] = _Carry(first, self._value(k))

    def _value(self, k: int) -> Node:
        """Return the value that an iteration stores into carry ``k``."""
        end = self.ends[k]
        if end.op is not ADD_AT or (self.rounded is None and is_constant_zero(self.starts[k])):
            return end.args[1]
        return add(slice_(self.starts[k], end["slices"]), end.args[1])

    def _take(self, k: int) -> None:
        """Replace the reads of carry ``k`` if it is an array stored place by place."""
        slot, start, end = self.slots[k], self.starts[k], self.ends[k]
        found = places_of(slot, end, self.ends, self.iteration, self.outside)
        if found is None or start.type != slot.type:
            return
        if found.before and not is_inside(found.first_before, start.type.shape):
            return
        reads = {n: slice_(start, n["slices"]) for n in found.ahead}
        for n in found.before:
            reads[n] = self.befores.setdefault(k, stand_in(f"before{k}", n.type))
        self.stores[k] = found
        for parts in (dict.fromkeys(found.just, end.args[1]), reads):
            self.ends = substituted(self.ends, parts) if parts else self.ends

    def _scan(self, slot: Node) -> _Scan | None:
        """Return the step of the scan that a carry is, or None if it is no running sum or the like."""
        start, end = self.carries[slot]
        end = bare(end)
        own = [k for k, a in enumerate(end.args) if bare(a) is slot]
        if len(own) != 1 or end.op not in (_SCANS if own == [1] else {subtract, *_SCANS}):
            return None
        other = reshape(end.args[1 - own[0]], slot.type.shape)
        found = _Scan(add, negative(other)) if end.op is subtract else _Scan(end.op, other)
        dtype = slot.type.dtype
        fits = {start.type.dtype, other.type.dtype, end.type.dtype} == {dtype}
        plain = dtype.kind == "f" and dtype.itemsize >= _LEAST
        same = self.rounded is None or found.op in _SAME_BITS
        return found if fits and plain and same and slot not in self._nodes(found.value) else None

    def _nodes(self, value: Node) -> list[Node]:
        """Return the nodes that an iteration computes for ``value``."""
        return topological([value], stop=lambda n: n in self.outside or n in self.carries)

    # all iterations at once

    def _after(self, slot: Node) -> Node | None:
        """Return the carry after each iteration, along a first axis, or None if it is not known."""
        if slot not in self.stacks:
            self.stacks[slot] = None
            scan = self._scan(slot)
            start, end = self.carries[slot]
            if scan is not None:
                stack = self._stack(scan.value)
                self.stacks[slot] = None if stack is None else self._joined(scan, start, stack)
            elif slot not in self._nodes(end):
                self.stacks[slot] = self._stack(end)
        return self.stacks[slot]

    def _before(self, slot: Node) -> Node | None:
        """Return the carry before each iteration, along a first axis, or None if it is not known."""
        after = self._after(slot)
        start = self.carries[slot].start
        if after is None or start.type.dtype != after.type.dtype:
            return None
        first = reshape(start, (1, *after.type.shape[1:]))
        return concatenate([first, _rows(after, 0, self.iterations - 1)], 0)

    def _last(self, slot: Node) -> Node | None:
        """Return the carry after the last iteration, or None if it is not known."""
        after = self._after(slot)
        if after is None:
            return None
        last = reshape(_rows(after, self.iterations - 1, 1), slot.type.shape)
        return last if slot.type.shape else to_form(last, slot.type.form)

    def _joined(self, scan: _Scan, start: Node, stack: Node) -> Node:
        """Return a scan along the first axis, beginning with ``start``."""
        along, nothing = _SCANS[scan.op]
        stack = reshape(stack, (self.iterations, *(s for s in stack.type.shape[1:] if s != 1)))
        known = constant_value(start.args[0] if start.op is FORM else start)
        if known is not None and bool(np.all(known == nothing)):
            if (
                scan.op is add and self.rounded is not None and not np.signbit(known).all()
            ):  # the result of a sum from 0.0 is never -0.0
                stack = add(stack, broadcast(constant(known.dtype.type(0)), stack.type.shape))
            return row(along, stack, (0,))
        first = scan.op(reshape(start, (1, *stack.type.shape[1:])), _rows(stack, 0, 1))  # type: ignore[operator]
        return row(along, set_at(stack, first, at(_all(stack), 0, 0)), (0,))

    def _stack(self, value: Node) -> Node | None:
        """Return the values of all iterations, along a first axis, or None if this is impossible or costs more."""
        scans = {bare(c.next): slot for slot, c in self.carries.items() if self._scan(slot) is not None}
        nodes = topological([value], stop=lambda n: n in self.outside or n in self.carries or n in scans)
        moving = {self.iteration, *self.carries, *scans}
        stacks = {self.iteration: iota((self.iterations,), 0)}
        for n in nodes:
            one = None
            if n in scans:
                one = self._after(scans[n])
            elif n in self.carries:
                one = self._before(n)
            elif any(a in moving for a in n.needs):
                moving.add(n)
                if not self._fits(n, value):
                    return None
                one = side_by_side(n, self.iteration, self.iterations)
            if one is not None:
                stacks[n] = reshape(one, (self.iterations, *n.type.shape))
            elif n in scans or n in self.carries:
                return None
        (found,) = batch([value], stacks, self.iterations)
        shape = value.type.shape
        return broadcast(reshape(value, (1, *shape)), (self.iterations, *shape)) if found is None else found

    def _fits(self, node: Node, value: Node) -> bool:
        """Return whether ``node``, on which ``value`` depends, may be computed for all iterations at once."""
        kind = node.op.kind
        if kind not in SILENT or len(node.types) != 1:
            return False
        if self.rounded is not None and kind not in {"leaf", "move"} and node.op.name not in self.rounded:
            return False
        return kind == "move" or not node.type.shape or elements(node) <= elements(value)

    def _stored(self, k: int) -> Node | None:
        """Return the array of a store after the loop, or None if it cannot be computed without the loop."""
        store, start = self.stores[k], self.starts[k]
        value = self._value(k)
        stack = self._stack(value)
        if stack is None or stack.type.dtype != start.type.dtype:
            return None
        first, axis = store.first, store.axis
        shape = [s for j, s in enumerate(value.type.shape) if j != axis]
        front = reshape(stack, (self.iterations, *shape))
        if store.step < 0:
            front, first = flip(front, (0,)), first - (self.iterations - 1)
        order = [*range(1, axis + 1), 0, *range(axis + 1, len(shape) + 1)]
        slices = list(store.slices)
        slices[axis] = (first, self.iterations, 1)
        return set_at(start, transpose(front, tuple(order)), tuple(slices))


_FUNCTION = 20
"""The weight of functions that are several times as fast when many elements are computed together."""
_LEAST = 4  # bytes of a number: shorter ones are accumulated in longer ones


def _all(node: Node) -> Slices:
    return tuple((0, s, 1) for s in node.type.shape)


def _rows(stack: Node, first: Size, count: Size) -> Node:
    return slice_(stack, ((first, count, 1), *_all(stack)[1:]))
