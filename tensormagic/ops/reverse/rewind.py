"""Reverse mode of a loop: the loop, which also records what its derivative reads, and a backward loop that reads the records.

Records are stacks, arrays with an axis for the iterations, if their sizes are known before the loop runs; otherwise
tapes. Cotangents of constants are gathered in carries of the backward loop, so that what an iteration reads is added
to in place.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from typing import Any

import numpy as np

from tensormagic.ir import site
from tensormagic.ir.graph import Graph
from tensormagic.ir.node import Node, as_size, make, topological
from tensormagic.ir.size import Size, atoms, is_at_least, nodes_of
from tensormagic.ir.substituting import substitute
from tensormagic.ir.type import Type
from tensormagic.ops.form import to_form
from tensormagic.ops.indices.scatter import SCATTER_ADD, SCATTER_SET
from tensormagic.ops.leaf import constant, index_node, size_node, size_of
from tensormagic.ops.move import broadcast, reshape, slice_
from tensormagic.ops.op import Tangent
from tensormagic.ops.opaque import items
from tensormagic.ops.pointwise import astype
from tensormagic.ops.regions.loops import LOOP, unindexed, widened
from tensormagic.ops.regions.region import (
    Pulled,
    derivatives,
    graph_over,
    instantiated,
    like,
    matched,
    stand_in,
    symbols_in,
    tangent_type,
    unused,
    witnesses,
)
from tensormagic.ops.reverse.residuals import residuals, restored
from tensormagic.ops.reverse.spans import block_length, in_blocks
from tensormagic.ops.reverse.support import DEEPEST, Search, is_steep, support
from tensormagic.ops.reverse.support_regions import mark, marked
from tensormagic.ops.reverse.tape import empty_tape, is_tape, read_tape, record, tape_type
from tensormagic.ops.scalars.scalar import equal, logical_not, logical_or
from tensormagic.ops.tangents import masked, masked_by
from tensormagic.ops.update import ADD_AT, set_at


@dataclass(frozen=True)
class History:
    """The record of the values of one node.

    Parameters
    ----------
    value
        The node of the body.
    shape
        The shape of the values, outside; None if they go on a tape.
    """

    value: Node
    shape: tuple[Size, ...] | None

    def start(self, iterations: Size | None) -> Node:
        """Return the record before the first iteration."""
        if self.shape is None or iterations is None:
            return empty_tape(self.value.type)
        return broadcast(constant(self.value.type.dtype.type(0)), (iterations, *self.shape))

    def slot(self, iterations: Size | None) -> Node:
        """Return a parameter for the record inside a body, for this number of iterations."""
        t = self.value.type
        if self.shape is None or iterations is None:
            return stand_in("record", tape_type(t))
        return stand_in("record", Type(t.dtype, (iterations, *t.shape)))

    def written(self, slot: Node, index: Node) -> Node:
        """Return the record with the value of one iteration stored."""
        if is_tape(slot):
            return record(slot, index, self.value)
        shape = self.value.type.shape
        place = ((_size(index), 1, 1), *((0, s, 1) for s in shape))
        return set_at(slot, reshape(self.value, (1, *shape)), place)

    def read(self, slot: Node, index: Node, shape: tuple[Size, ...]) -> Node:
        """Return the value of one iteration, of this shape."""
        t = self.value.type
        if is_tape(slot):
            return read_tape(slot, index, Type(t.dtype, shape, t.form))
        part = reshape(slice_(slot, ((_size(index), 1, 1), *((0, s, 1) for s in slot.type.shape[1:]))), shape)
        return part if shape else to_form(part, t.form)


def _size(index: Node) -> Size:
    size = as_size(index)
    if size is None:
        message = f"{index!r} is no index"
        raise TypeError(message)
    return size


def _common_mask(output: Node, total: Node) -> tuple[Node, bool] | None:
    """Return the condition (and whether zeros come first) that masks everything added to ``total``, or None if there is none."""
    found: set[tuple[Node, bool]] = set()
    while output is not total:
        if output.op.name != "add":
            return None
        output, part = output.args
        mask = masked(part)
        if mask is None:
            return None
        found.add((mask[0], mask[2]))
    return found.pop() if len(found) == 1 else None


Touch = Callable[[Node], Node]  # from a mark of the changed elements before an addition to the mark after it


def _touching(output: Node, total: Node) -> list[Touch] | None:
    """Return functions that mark the parts that the additions to ``total`` change, in order, or None if one changes all of it."""
    found: list[Touch] = []
    while output is not total:
        step = _added_under(output) or _added_to_part(output) or _added_by_index(output)
        if step is None:
            return None
        output, touch = step
        found.append(touch)
    return found[::-1]


def _added_to_part(output: Node) -> tuple[Node, Touch] | None:
    """Return the base of an addition to a slice, and a function that marks the slice, or None."""
    if output.op is not ADD_AT or not all(step == 1 for _, _, step in output["slices"]):
        return None
    part = output.args[1].type.shape
    if part == output.type.shape:
        return None

    def touch(mark: Node) -> Node:
        return set_at(mark, broadcast(constant(np.True_), part), output["slices"])

    return output.args[0], touch


def _added_by_index(output: Node) -> tuple[Node, Touch] | None:
    """Return the base of an addition by index, and a function that marks the indices, or None."""
    if output.op is not SCATTER_ADD:
        return None
    base, indices, part = output.args

    def touch(mark: Node) -> Node:
        return make(SCATTER_SET, (mark, indices, broadcast(constant(np.True_), part.type.shape)), **output.params)

    return base, touch


def _where(condition: Node) -> Touch:
    return lambda mark: logical_or(mark, broadcast(condition, mark.type.shape))


def _added_under(output: Node) -> tuple[Node, Touch] | None:
    """Return the base of a conditional addition, and a function that marks where its condition holds, or None.

    The condition is a mask, or that of a branch whose other side adds nothing.
    """
    if output.op.name == "add":
        mask = masked(output.args[1])
        return None if mask is None else (output.args[0], _where(logical_not(mask[0]) if mask[2] else mask[0]))
    node, place = (output.args[0], output["index"]) if output.op.name == "item" else (output, 0)
    if node.op.name != "cond":
        return None
    predicate, *operands = node.args
    for graph, condition in ((node["otherwise"], predicate), (node["then"], logical_not(predicate))):
        if graph.results[place] in graph.parameters:
            return operands[graph.parameters.index(graph.results[place])], _where(condition)
    return None


def _has_steep(graph: Graph) -> bool:
    """Return whether a graph contains a function whose slope may be infinite."""
    inner = [v for n in graph.nodes for _, v in n.param_items if isinstance(v, Graph)]
    return any(n.op.steep for n in graph.nodes) or any(map(_has_steep, inner))


class Rewind:
    """Reverse mode of one loop: see :meth:`tensormagic.ops.regions.region.Region.pull`."""

    def __init__(
        self, node: Node, cotangents: Sequence[Tangent], wanted: Sequence[bool], sums: Sequence[Tangent]
    ) -> None:
        self.node, self.cotangents, self.sums = node, cotangents, sums
        self.counted: bool = node.op.counted
        self.first = int(self.counted)
        self.body: Graph = node["body"]
        self.carries: int = node["carries"]
        self.own = self.body.parameters[self.first :]
        self.operands = node.args[self.first :]
        self.sizes, _ = matched(unindexed(self.body, self.first), self.operands, node.op.name)
        for p in self.own[: self.carries]:
            self.sizes.pop(p, None)  # it differs between iterations
        self.counter = None if self.counted else self._counter()
        flags = [w and p.type.inexact for w, p in zip(wanted[self.first :], self.own, strict=True)]
        self.newest = stand_in(
            "newest", Type(np.dtype(bool), (), "scalar")
        )  # whether an iteration of the backward loop is the first one
        self.back, self.fixed, self.replaced = self._active([k for k, flag in enumerate(flags) if flag])

    def _counter(self) -> int | None:
        """Return the carry that counts the iterations of a while loop from zero, or None."""
        for k, (p, result) in enumerate(zip(self.own, self.body.results, strict=False)):
            if size_of(self.operands[k]) == 0 and result.op.name == "add" and p in result.args:
                steps = [size_of(a) for a in result.args if a is not p]
                if steps == [1]:
                    return k
        return None

    def _active(self, moving: list[int]) -> tuple[list[int], list[int], set[int]]:
        """Return the carries and constants that derivatives go through, and the carries that every iteration replaces."""
        results, count = self.body.results, self.carries
        while True:
            nodes = derivatives().active(results, [self.own[k] for k in moving])
            grown = sorted({*moving, *(k for k in range(count) if results[k] in nodes and results[k].type.inexact)})
            if grown == moving:
                break
            moving = grown
        reached = {k for k in moving if k < count and self.cotangents[k] is not None}
        feeds = {k: self._fed_by(k, moving) for k in moving if k < count}
        while True:
            more = {j for k in reached for j in feeds[k] if j < count} - reached
            if not more:
                break
            reached |= more
        constants = {j for k in reached for j in feeds[k] if j >= count}
        replaced = {k for k in reached if not any(k in feeds[j] for j in reached)}
        return sorted(reached), sorted(constants), replaced

    def _fed_by(self, carry: int, moving: Sequence[int]) -> set[int]:
        """Return the moving operands that the next value of a carry depends on."""
        active = derivatives().active([self.body.results[carry]], [self.own[k] for k in moving])
        needed: set[Node] = set()
        pending = [self.body.results[carry]]
        while pending:
            node = pending.pop()
            if node in active and node not in needed:
                needed.add(node)
                pending += node.args
        return {k for k in moving if self.own[k] in needed}

    # the backward pass of the body

    def pulled(self) -> Pulled:
        """Return the recording loop, and the cotangents."""
        node = self.node
        back: list[Tangent] = [None] * len(node.args)
        if not self.back:
            return Pulled(items(node), back, set())
        pulled = [stand_in("cotangent", tangent_type(self.body.results[k].type)) for k in self.back]
        totals = [stand_in("sum", tangent_type(self.own[k].type)) for k in self.fixed]
        wrt = [self.own[k] for k in (*self.back, *self.fixed)]
        found, outputs, left_out = self._iteration_back(pulled, totals, wrt)
        masks = self._masks(outputs[len(self.back) :], totals)
        marks = self._marks(outputs[len(self.back) :], totals, masks)
        outputs += [*(after for _, _, after in left_out), *(after for _, after in marks.values())]
        linear = [*pulled, *totals, *(mark for mark, _, _ in left_out), *(mark for mark, _ in marks.values())]
        index = self.body.parameters[: self.first] if self.counter is None else [self.own[self.counter]]
        saved = residuals(outputs, [*linear, self.newest], [*index, *self.own[self.carries :]], self.sizes)
        iterations = size_of(node.args[0]) if self.counted else None
        iterations = None if iterations is None or nodes_of(iterations) else iterations
        length = block_length(iterations, self.body, self.own[: self.carries], saved, self.sizes)
        if length and iterations is not None:
            return self._divided(iterations, length)
        histories = [History(value, self._outside(value)) for value in saved]
        ends, records, count = self._forward(found[: self.carries], histories, iterations)
        hidden = {*masks, *marks}
        self.sums = [None if k - self.first in hidden else s for k, s in enumerate(self.sums)]
        starts = [start for _, start, _ in left_out]
        starts += [broadcast(constant(np.False_), self.operands[k].type.shape) for k in marks]
        last = self._backward(outputs, histories, records, iterations, count, linear, starts)
        masks |= {k: partial(masked_by, end) for k, end in zip(marks, last[len(wrt) + len(left_out) :], strict=True)}
        for k, end in zip((*self.back, *self.fixed), last, strict=False):
            back[self.first + k] = masks[k](end) if k in masks else end
        return Pulled(ends, back, {self.first + k for k in self.fixed if k not in masks})

    def _iteration_back(
        self, pulled: Sequence[Node], totals: Sequence[Node], wrt: Sequence[Node]
    ) -> tuple[Sequence[Node], list[Node], list[tuple[Node, Node, Node]]]:
        """Return the results of the body, the cotangents of one iteration, and marks of where those of carries may be nonzero.

        An element that later code does not read is left out of the cotangent of the iteration that stored it, also if
        the slope there is infinite. Each mark is a triple: the mark, its first value, and its value after an
        iteration.
        """
        found, outputs = self._pulled_through(pulled, totals, wrt, {})
        seen = {k: (c, mark(c)) for k, c in zip(self.back, pulled, strict=True) if self._may_leave_out(k, c)}
        starts = {k: support(self._cotangent(k), Search(2 * DEEPEST, steep=True)) for k in seen}
        marks = {k: seen[k] for k in seen if starts[k] is not None}
        while more := self._left_out(outputs, marks, [k for k in seen if k not in marks]):
            marks |= {k: seen[k] for k in more}
        if not marks:
            return found, outputs, []
        found, outputs = self._pulled_through(pulled, totals, wrt, {k: m for k, (_, m) in marks.items()})
        after = self._left_out(outputs, marks, list(marks))
        begin = {k: marked(starts[k], self.operands[k]) for k in marks}  # in sizes known outside
        return found, outputs, [(m, begin[k], marked(after.get(k), m)) for k, (_, m) in marks.items()]

    def _left_out(
        self, outputs: Sequence[Node], marks: Mapping[int, tuple[Node, Node]], among: Sequence[int]
    ) -> dict[int, Node]:
        """Return where cotangents may be nonzero after an iteration, given the marks before it, for carries with elements left out."""
        look = Search(2 * DEEPEST, steep=True, known=dict(marks.values()))
        found = {k: support(outputs[self.back.index(k)], look) for k in among}
        return {k: s for k, s in found.items() if s is not None}

    def _pulled_through(
        self, pulled: Sequence[Node], totals: Sequence[Node], wrt: Sequence[Node], marks: Mapping[int, Node]
    ) -> tuple[Sequence[Node], list[Node]]:
        """Return the results of the body and its cotangents; the marks apply to products, and not to sums and stores."""
        seeds: list[Tangent] = [None] * self.carries
        there: dict[Node, Node] = {}
        for k, c in zip(self.back, pulled, strict=True):
            seed = seeds[k] = self._seed(k, c, marks.get(k))
            if k in marks:
                there[seed] = c
        fixed = [self.own[k] for k in self.fixed]
        found, parts = derivatives().pull([*self.body.results, *fixed], [*seeds, *totals], wrt)
        return found, site.substituted([like(c, p) for c, p in zip(parts, wrt, strict=True)], there)

    def _cotangent(self, carry: int) -> Node:
        return like(self.cotangents[carry], self.operands[carry])

    def _may_leave_out(self, carry: int, cotangent: Node) -> bool:
        """Return whether it is worth knowing where a cotangent may be nonzero."""
        whole = not cotangent.type.shape or is_tape(cotangent) or carry in self.replaced
        return not whole and _has_steep(self.body)

    def _seed(self, carry: int, cotangent: Node, left_out: Node | None) -> Node:
        """Return the cotangent of an iteration's result, masked where the result is not read."""
        result = self.body.results[carry]
        if left_out is not None:
            return masked_by(left_out, like(cotangent, result))
        if carry not in self.replaced or not is_steep(result):
            return cotangent
        seed = like(cotangent, result)
        return masked_by(broadcast(self.newest, seed.type.shape), seed)

    def _divided(self, iterations: Size, length: int) -> Pulled:
        """Return the recording loop and the cotangents for the loop in blocks, of which only the initial states are kept."""
        moving = [*self.back, *self.fixed]
        standing = {k: stand_in("operand", self.operands[k].type) for k in moving}
        operands = [standing.get(k, v) for k, v in enumerate(self.operands)]
        results = in_blocks(self.node, operands, iterations, length)
        found, parts = derivatives().pull(results, self.cotangents, list(standing.values()))
        there = {n: n for n in (*self.cotangents, *self.node.args) if n is not None}
        there.update((stand, self.operands[k]) for k, stand in standing.items())
        every = site.substituted([*found, *(p for p in parts if p is not None)], there)
        rest = iter(every[len(found) :])
        back: list[Tangent] = [None] * len(self.node.args)
        for k, part in zip(moving, parts, strict=True):
            back[self.first + k] = None if part is None else next(rest)
        return Pulled(tuple(every[: len(found)]), back, set())

    def _masks(self, outputs: Sequence[Node], totals: Sequence[Node]) -> dict[int, Callable[[Node], Node]]:
        """Return the constants whose cotangents are masked by one condition at every iteration, and the functions that mask them."""
        found: dict[int, Callable[[Node], Node]] = {}
        known = dict(zip(self.own[self.carries :], self.operands[self.carries :], strict=True))
        for k, output, total in zip(self.fixed, outputs, totals, strict=True):
            mask = _common_mask(output, total)
            if mask is None or any(
                n.op.name in {"parameter", "input"} and n not in known for n in topological([mask[0]])
            ):
                continue
            (condition,) = instantiated([mask[0]], known, self.sizes)
            found[k] = partial(masked_by, condition, zero_first=mask[1])
        return found

    def _marks(
        self, outputs: Sequence[Node], totals: Sequence[Node], masks: Mapping[int, Any]
    ) -> dict[int, tuple[Node, Node]]:
        """Return marks of where cotangents of constants change, before and after an iteration, if masks differ between iterations."""
        found: dict[int, tuple[Node, Node]] = {}
        for k, output, total in zip(self.fixed, outputs, totals, strict=True):
            if k in masks or not self.operands[k].args or is_tape(total):
                continue
            before = mark(total)
            touches = _touching(output, total)
            if touches and (output.op not in {ADD_AT, SCATTER_ADD} or is_steep(self.operands[k])):
                found[k] = before, reduce(lambda now, touch: touch(now), touches, before)
            elif touches is None and is_steep(self.operands[k]):
                after = support(output, Search(2 * DEEPEST, steep=True, known={total: before}))
                found |= {} if after is None else {k: (before, marked(after, before))}
        return found

    def _outside(self, value: Node) -> tuple[Size, ...] | None:
        """Return the shape of a value, if it is the same at every iteration and known outside, or None otherwise, and for a tape."""
        inner = value.type.shape
        if is_tape(value) or any(nodes_of(s) or any(a not in self.sizes for a in atoms(s)) for s in inner):
            return None
        shape = tuple(substitute(s, self.sizes) for s in inner)
        return None if any(nodes_of(s) for s in shape) else shape

    def _iterations_inside(self, iterations: Size | None) -> Size | None:
        """Return the number of iterations as a fresh symbol of the body, or as a number."""
        if iterations is None or isinstance(iterations, int):
            return iterations
        return next(unused(self.body.nodes, is_at_least(iterations, 2)))

    def _forward(
        self, results: Sequence[Node], histories: Sequence[History], iterations: Size | None
    ) -> tuple[tuple[Node, ...], list[Node], Node]:
        """Return the results of the recording loop, the records, and the number of iterations."""
        node, carries = self.node, self.carries
        zero = constant(0)
        counter = [stand_in("iteration", zero.type)] if not self.counted and self.counter is None else []
        index = counter[0] if counter else self.body.parameters[0] if self.counted else self.own[self.counter or 0]
        inside = self._iterations_inside(iterations)
        slots = [h.slot(inside) for h in histories]
        extra = [*counter, *slots]
        order = [*self.own[:carries], *extra, *self.own[carries:]]
        written = [h.written(s, index) for h, s in zip(histories, slots, strict=True)]
        for history, kept in zip(histories, written, strict=True):
            site.inherit(kept, history.value)
        counted = [c + 1 for c in counter]
        for number in counted:
            site.inherit(number, node)
        nexts = [*results, *counted, *written]
        params: dict[str, Any] = {
            "body": graph_over([*self.body.parameters[: self.first], *order], nexts, self.body),
            "carries": carries + len(extra),
        }
        if not self.counted:
            params["test"] = widened(node["test"], self.own, order)
        starts = [*(zero for _ in counter), *(h.start(iterations) for h in histories)]
        arguments = [*node.args[: self.first], *self.operands[:carries], *starts, *self.operands[carries:]]
        ends = items(make(node.op, arguments, **params))
        count = node.args[0] if self.counted else ends[carries] if counter else ends[self.counter or 0]
        return ends[:carries], list(ends[carries + len(counter) :]), count

    def _backward(
        self,
        outputs: Sequence[Node],
        histories: Sequence[History],
        records: Sequence[Node],
        iterations: Size | None,
        count: Node,
        linear: Sequence[Node],
        marks: Sequence[Node],
    ) -> tuple[Node, ...]:
        """Return the cotangents of the carries and of the constants after the backward loop."""
        inside = self._iterations_inside(iterations)
        slots = [h.slot(inside) for h in histories]
        number = [stand_in("count", count.type)] if inside is None else []
        extent = _size(number[0]) if inside is None else inside
        index = index_node("back", 0, extent)
        place = size_node(extent - 1 - _size(index))
        known: dict[Node, Node] = {self.newest: equal(index, 0)}
        if self.counted or self.counter is not None:
            own = self.body.parameters[0] if self.counter is None else self.own[self.counter]
            known[own] = to_form(astype(place, own.type.dtype), own.type.form)
            site.inherit(known[own], self.node)
        results = restored(
            outputs, [h.value for h in histories], lambda k, shape: histories[k].read(slots[k], place, shape), known
        )
        constants = self.own[self.carries :]
        fixed = [*number, *slots, *constants]
        given = [*(count for _ in number), *records, *self.operands[self.carries :]]
        inner, outer = witnesses(results, [*linear, *fixed], self._sizes_with(inside, iterations))
        graph = graph_over([index, *linear, *fixed, *inner], results)
        starts = [
            *(like(self.cotangents[k], self.operands[k]) for k in self.back),
            *(like(self.sums[self.first + k], self.operands[k]) for k in self.fixed),
        ]
        starts += marks
        return items(make(LOOP, [count, *starts, *given, *outer], body=graph, carries=len(starts)))

    def _sizes_with(self, inside: Size | None, iterations: Size | None) -> dict[Any, Size]:
        sizes = dict(self.sizes)
        if iterations is not None:
            sizes.update((a, iterations) for a in symbols_in([inside]))
        return sizes
