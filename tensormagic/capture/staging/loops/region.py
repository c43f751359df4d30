"""Builds the region of a traced ``for`` or ``while``, and assigns what it leaves in names, lists and arrays."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from tensormagic.capture import context
from tensormagic.capture.errors.refusal import values_are_there
from tensormagic.capture.numbers import classes as number_classes
from tensormagic.capture.numbers import undecided_dtypes
from tensormagic.capture.numbers.classes import Classes
from tensormagic.capture.staging.branches import merged_values
from tensormagic.capture.staging.branches.containers import SharedStandIns
from tensormagic.capture.staging.branches.lifted_values import aligned
from tensormagic.capture.staging.branches.merged_values import Parts, apart
from tensormagic.capture.staging.branches.shared_arrays import (
    Joined,
    Leaf,
    arrays_of,
    keep_out,
    numbers_of,
    reached,
    share,
    writeable,
)
from tensormagic.capture.staging.branches.slots import UNBOUND, Slot
from tensormagic.capture.staging.loops.appended_lists import extend, put, start_of
from tensormagic.capture.staging.loops.array_origins import Origins
from tensormagic.capture.staging.loops.carries import Carry, codes_of, split
from tensormagic.capture.staging.loops.fixpoint import Loop
from tensormagic.capture.staging.loops.watched_containers import watch
from tensormagic.capture.staging.regions import around, fitting, graph_of, settled
from tensormagic.capture.staging.trials.aliases import is_own
from tensormagic.capture.staging.trials.needs_python import Grows, NeedsPython
from tensormagic.capture.staging.trials.trial import attempt
from tensormagic.capture.stores.place import Buffer
from tensormagic.capture.values.value import Tensor, wrap
from tensormagic.ir import site
from tensormagic.ir.node import Node, topological
from tensormagic.ir.size import Size
from tensormagic.ir.type import python
from tensormagic.ops.effects import failing
from tensormagic.ops.leaf import CONSTANT, constant, size_node
from tensormagic.ops.regions import control
from tensormagic.ops.scalars import scalar

Last = tuple[Slot, Parts, list[Carry], list[Node | None]]
"""A name that the last iteration binds, what it holds, the carries of that, and whether it is bound without an iteration."""
_TRUTH = python(bool)


class RegionBuilder:
    """Represents the region of a traced loop being built, whose results are then assigned to what the loop has changed.

    Parameters
    ----------
    loop
        The loop.
    ran
        Whether any iteration has run; None if one surely has.
    stacks
        The carries of appended values.
    """

    def __init__(self, loop: Loop, ran: Node | None, stacks: Sequence[Carry] = ()) -> None:
        self.loop = loop
        self.ran = ran
        self.stacks = stacks
        self.kept: dict[Buffer, list[Buffer]] = {}  # where the arrays that the last iteration has appended are

    def emit(self, build: Callable[[list[Carry]], Sequence[Node]]) -> None:
        """Build the region and do what the loop has done: all of it, or nothing where an array refuses a store.

        ``build`` makes the region for the carries.
        """
        leaving = [
            s for s in self.loop.outcome.slots if s is self.loop.slots.get(s.name) and s.name in self.loop.names.leaving
        ]
        bound = dict.fromkeys([*self.loop.carried, *leaving])
        ends = {s: (s.get(), self.loop.outcome.slots.get(s, s.get())) for s in bound}
        choices = self.loop.stand_ins.choices(ends, self.loop.outcome, once=self.ran is None)
        for slot, (may, _) in choices.items():
            may.refuse(slot)
        asked = values_are_there()
        attempt(self.loop.world, lambda: self._emit(build, asked=asked), lambda _result: True)
        for slot, (may, alone) in choices.items():
            sides = [] if self.ran is None else [(scalar.logical_not(self.ran), ends[slot][0])]
            may.note(slot, sides, alone=alone)

    def _emit(self, build: Callable[[list[Carry]], Sequence[Node]], *, asked: bool) -> None:
        last, plain = self._last()
        held = {s: s.get() for s in (*self.loop.carried, *(slot for slot, *_ in last))}
        left = {s: self.loop.outcome.slots.get(s, v) for s, v in held.items()}
        starts, after = dict(held), dict(left)
        for slot, value in held.items():
            carried = self.loop.carried.get(slot)
            if carried is not None:
                starts[slot], after[slot] = carried.start, carried.fitted(left[slot])[1]
            elif not self.loop.once:
                starts[slot], after[slot] = aligned(value, left[slot], slot.said)
        origins = self._origins(starts, after)
        ends = self._built(build, last, origins, asked=asked)
        once = SharedStandIns()
        for slot, value in plain:
            slot.set(value if value is UNBOUND else once.of((self.loop.outcome.slots[slot],), value))
        for buffer in sorted(self.loop.buffers, key=lambda b: (b.alias.depends, b.born)):
            carry = self.loop.buffers[buffer]
            changed = self.loop.outcome.buffers.get(buffer)
            buffer.leave(carry.question.asked(ends[carry]), stored=changed is not None and changed[2])
        made: list[tuple[Slot, Any, Any, list[Tensor]]] = []
        for slot, parts, tensors in self._left(ends, last):
            slot.set(once.of((held[slot], left[slot])[self.ran is None :], parts.build(tensors)))
            made.append((slot, starts[slot], after[slot], tensors))
        if self.stacks:
            kept = extend(self.loop.appended, [ends[c] for c in self.stacks], asked=asked)
            self.kept = kept.arrays
            bound = [slot for slot, *_ in (*last, *plain) if slot.get() is not UNBOUND]
            for slot, (own, now) in itertools.product(bound, kept.holders):
                if self.loop.outcome.slots[slot] is own:  # a list that has a name, too
                    slot.set(now)
        watch(tuple(self.loop.noted))  # since code after the loop may change one of them
        self._share(made, origins, ends, list(starts))

    def _built(
        self, build: Callable[[list[Carry]], Sequence[Node]], last: Sequence[Last], origins: Origins, *, asked: bool
    ) -> dict[Carry, Node]:
        """Return the value of each carry after the region, which is built here."""
        carries = [c for s in self.loop.carried.values() for c in s.carries]
        carries += [
            *self.loop.buffers.values(),
            *(c for _, _, own, _ in last for c in (*own, *codes_of(own))),
            *self.stacks,
            *origins.carries,
        ]
        begun = {c: c.start.type.dtype for c in carries if self.ran is not None and not c.type.shape}
        if self.ran is not None:
            for carry in (c for c in carries if not c.axes):
                carry.start = settled(carry.start, carry.type, self.ran, f"{self.loop.label}: {carry.label}")
        ends = {
            c: context.record(c.outside(n)) for c, n in zip(carries, build(carries) if carries else (), strict=True)
        }
        self._classify(carries, ends, asked=asked)
        for carry in (c for c in carries if self.ran is None and c.type == _TRUTH and c.end is not None):
            if carry.end.op is CONSTANT:  # type: ignore[union-attr]  (as above)
                ends[carry] = carry.end  # type: ignore[assignment]
        for carry, dtype in begun.items():  # the start value is still there if no iteration has run
            undecided_dtypes.note(ends[carry], dtype)
        return ends

    def _left(self, ends: dict[Carry, Node], last: Sequence[Last]) -> Iterator[tuple[Slot, Parts, list[Tensor]]]:
        """Yield the numbers and arrays that names hold after the loop: carried ones, and those of the last iteration."""
        for slot, carried in self.loop.carried.items():
            pairs = zip(carried.values, carried.conditions, strict=True)
            yield slot, carried.parts, [self._result(slot, ends[v], ends[d] if d else None) for v, d in pairs]
        for slot, parts, own, defined in last:
            pairs = zip(own, defined, strict=True)
            yield slot, parts, [self._result(slot, ends[c], _either(d, self.ran)) for c, d in pairs]

    def _classify(self, carries: Sequence[Carry], ends: dict[Carry, Node], *, asked: bool) -> None:
        """Record the classes of the numbers that the loop leaves; if they can be ``asked``, set them."""
        coded = {c: Classes(ends[c.code], c.classes) for c in carries if c.code is not None}
        if self.loop.once:  # numbers that each iteration makes of one class are of that class
            alike = {
                c: t for c in coded if c.code is not None and (t := number_classes.class_of(c.code.end)) is not None
            }
            ends.update({c: context.record(number_classes.as_class(ends[c], t)) for c, t in alike.items()})
            coded = {c: found for c, found in coded.items() if c not in alike}
        if not asked:
            for carry, classes in coded.items():
                number_classes.note(ends[carry], classes)
        elif coded:
            beside = [n for c, n in ends.items() if not c.axes]
            decided = number_classes.decide({ends[c]: found for c, found in coded.items()}, beside)
            ends.update({c: decided[ends[c]] for c in coded})

    def _result(self, slot: Slot, node: Node, defined: Node | None) -> Tensor:
        return merged_values.result(
            node, defined, slot.said, f"{self.loop.label} may have no iteration that assigns it"
        )

    def _is_older(self, slots: list[Slot]) -> Callable[[Buffer], bool]:
        """Return a predicate: whether an array existed before the loop and is referenced by others than these slots."""
        own = {t.place.buffer for t in self.loop.given().values()}
        return lambda b: b.born < self.loop.opened and b not in own and not is_own(b, slots)

    def _origins(self, starts: Mapping[Slot, Any], after: Mapping[Slot, Any]) -> Origins:
        """Return which of the existing arrays each array is that names hold after the loop."""
        given = {t.place.buffer: key for key, t in self.loop.given().items()}
        leaves: dict[tuple[Slot, int], tuple[Leaf, Leaf, bool]] = {}
        for slot, start in starts.items():
            last = arrays_of(after[slot])
            first = arrays_of(start) or [None] * len(last)
            pairs = zip(first, last, strict=True) if len(first) == len(last) else ()
            leaves |= {(slot, k): (*pair, slot in self.loop.carried) for k, pair in enumerate(pairs)}
        return Origins(leaves, given, self._is_older(list(starts)), self.ran)

    def _share(
        self,
        made: Sequence[tuple[Slot, Any, Any, list[Tensor]]],
        origins: Origins,
        ends: Mapping[Carry, Node],
        slots: list[Slot],
    ) -> None:
        """Note which arrays share memory in Python: with arrays made before the loop, and among each other."""
        found, before = list[Joined](), list[Leaf]()
        for slot, start, end, tensors in made:
            none = [None] * len(tensors)
            arrays, numbers = ([form(v) or none for v in (start, end)] for form in (arrays_of, numbers_of))
            for k, (value, first, last, *held) in enumerate(zip(tensors, *arrays, *numbers, strict=True)):
                beside = [k for b in reached(last) for k in self.kept.get(b, [])]
                places = None if beside else origins.of((slot, k), ends)
                ways = (None if self.loop.once else first, last)
                found.append(Joined(value, ways, places, beside, (0, 1) if origins.is_exact((slot, k)) else ()))
                value.place.buffer.writeable = writeable(*(held[1:] if self.loop.once else held))
                before.append(first)
        share(found, self._is_older(slots))
        for one, first in zip(found, before, strict=True):
            keep_out(one.value, first)  # an iteration may have had the array, even where the final value never is it

    def _last(self) -> tuple[list[Last], list[tuple[Slot, Any]]]:
        """Return what the last iteration leaves in names that no iteration reads: numbers with a carry each, and other values.

        With the carries goes the condition under which a name is bound without an iteration; None if it surely is.
        """
        found: list[Last] = []
        plain: list[tuple[Slot, Any]] = []
        for slot, value in self.loop.outcome.slots.items():
            if slot in self.loop.carried or slot is not self.loop.slots.get(slot.name):
                continue
            if slot.name not in self.loop.names.leaving:
                plain.append((slot, UNBOUND))
            elif slot.internal and value is None:  # read only where it is bound
                plain.append((slot, value))
            elif self.loop.once and (value is None or type(value) in {bool, int, float, complex, str}):
                plain.append((slot, value))  # the same in every iteration
            elif (last := self._of_last_iteration(parts := self.loop.parts_of(slot, value, asked=True))) is not None:
                plain.append((slot, last))
            else:  # every iteration binds it
                found.append((slot, *self._ends(slot, value, parts)))
        return found, plain

    def _of_last_iteration(self, parts: Parts) -> Any:
        """Return what the last iteration leaves if it depends on its index alone, recomputed after the loop; else None."""
        if (
            not self.loop.once
            or self.loop.index is None
            or self.loop.outcome.result[1] is not False
            or not parts.numeric
        ):
            return None
        within = topological(parts.nodes)
        iterations = self.loop.own_leaves() - {self.loop.index}
        plain = all(not n.type.shape and n.type.form != "array" for n in parts.nodes) and not any(parts.defined)
        if not plain or any(n in iterations or failing.may_fail(n) for n in within):
            return None
        if any(map(number_classes.noted, parts.nodes)):
            return None
        last = scalar.subtract(size_node(self.loop.index["within"][1]), constant(1))
        return parts.build([wrap(n) for n in site.substituted(parts.nodes, {self.loop.index: last})])

    def _ends(self, slot: Slot, value: Any, parts: Parts) -> tuple[Parts, list[Carry], list[Node | None]]:
        """Return what the last iteration leaves, its carries, and whether its name is bound without an iteration."""
        before = slot.get()
        if not self.loop.once and not slot.internal:
            before, value = aligned(before, value, slot.said)
            parts = self.loop.parts_of(slot, value, asked=True)
        if not parts.numeric:
            raise NeedsPython(
                f"{slot.said} is not a number, but is read after {self.loop.label}", "Use numbers and arrays."
            )
        starts = [self.loop.nothing_like(slot, n) for n in parts.nodes]
        unbound = before is UNBOUND and not slot.internal
        defined: list[Node | None] = [constant(False) if unbound else None for _ in starts]
        if not self.loop.once and before is not UNBOUND:
            old = apart(before)
            if old.form != parts.form:
                raise merged_values.unlike(
                    slot.name,
                    f"{self.loop.label} may have no iteration: it leaves",
                    (before, "what an iteration gives"),
                )
            starts, defined = [self.loop.begun(slot, n) for n in old.nodes], list(old.defined)
        carries: list[Carry] = []
        for start, end in zip(starts, parts.nodes, strict=True):
            carry = Carry(slot.said, start, start.type)
            while not carry.settle(self.loop.label, end, varies=self.loop.varies) & carry.settle_class(
                self.loop.label, end
            ):
                pass
            carry.fresh()
            carries.append(carry)
        return parts, carries, defined


def _either(defined: Node | None, ran: Node | None) -> Node | None:
    """Return whether a name is bound after a loop: None if it surely is."""
    if defined is None or ran is None:
        return None
    return ran if defined is constant(False) else scalar.logical_or(defined, ran)


def _stacks(loop: Loop, count: Size, index: Node) -> list[Carry]:
    """Return the carries of the values that iterations append."""
    found: list[Carry] = []
    for value in (n for a in loop.appended for n in a.nodes):
        start = start_of(value, count)
        carry = Carry("a list", start, start.type)
        carry.end = put(carry.fresh(), value, index)
        found.append(carry)
    return found


def counted(loop: Loop, count: Node, index: Node) -> None:
    """Stage a ``loop`` region that runs ``count`` iterations."""

    def build(carries: list[Carry]) -> Sequence[Node]:
        stand_ins, ends, starts = split(carries)
        free = around(ends, [index, *stand_ins], runs=loop.once, known=loop.world.nodes())
        body = graph_of(ends, [index, *stand_ins, *free])
        given = fitting(body, [*starts, *free], ran, first=1)
        return control.loop(count, body, given[: len(starts)], given[len(starts) :])

    ran = None if loop.once else scalar.greater(count, 0)
    RegionBuilder(loop, ran, _stacks(loop, index["within"][1], index)).emit(build)


def conditional(loop: Loop, test: Node, ran: Node | None, index: tuple[Node, Node] | None = None) -> None:
    """Stage a ``while`` region that runs iterations as long as ``test`` holds before them.

    ``index`` counts the iterations: its value in an iteration, and its value when ``test`` is evaluated.
    """
    if loop.appended:
        raise Grows(
            f"a list grows in {loop.label} a data-dependent number of times", "Fill an array of the largest size."
        )

    def build(carries: list[Carry]) -> Sequence[Node]:
        own, ends, starts = split(carries)
        asked = list(own)
        if index is not None:
            own, asked = [*own, index[0]], [*own, index[1]]
            ends, starts = [*ends, scalar.add(index[0], constant(1))], [*starts, constant(0)]
        inside = around(ends, own, runs=ran is None, known=loop.world.nodes())
        free = list(dict.fromkeys([*around([test], asked), *inside]))
        graphs = graph_of([test], [*asked, *free]), graph_of(ends, [*own, *free])
        given = fitting(graphs[1], fitting(graphs[0], [*starts, *free], None), ran)
        return control.while_loop(*graphs, given[: len(starts)], given[len(starts) :])[: len(carries)]

    RegionBuilder(loop, ran).emit(build)
