"""Loops as regions: an iteration is traced over stand-ins for what it changes, until their types stay as they are.

What a loop carries are the names that an iteration binds and that a later iteration, or the code behind the loop, reads, the items
of containers that it replaces, and the arrays made before it that it stores into. All else is constant.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tensormagic.capture import context, number_classes, undecided
from tensormagic.capture.number_classes import Classes
from tensormagic.capture.refusal import values_are_there
from tensormagic.capture.staging import merged
from tensormagic.capture.staging.aliases import is_own
from tensormagic.capture.staging.carries import CarriedSlot, Carry, Names, check_kept, codes_of, split
from tensormagic.capture.staging.containers import Once, StandIns
from tensormagic.capture.staging.lists import Append, appended, extend, own_lists, put, start_of
from tensormagic.capture.staging.merged import Parts, apart
from tensormagic.capture.staging.regions import around, fitting, graph_of, settled, zeros_of
from tensormagic.capture.staging.sharing import (
    Iterations,
    Leaf,
    arrays_of,
    follow,
    keep_out,
    lost,
    memory,
    none_held,
    numbers_of,
    once_each,
    pairs,
    reached,
    writeable,
)
from tensormagic.capture.staging.slots import UNBOUND, Slot
from tensormagic.capture.staging.trial import BeginsWeakly, Grows, Journaled, NeedsPython, Outcome, World, attempt
from tensormagic.capture.staging.watched import refuse_changed
from tensormagic.capture.stores.place import Buffer, serials
from tensormagic.capture.tree import flatten
from tensormagic.capture.value import Tensor, wrap
from tensormagic.ir import site
from tensormagic.ir.node import Node, topological
from tensormagic.ir.size import Size, nodes_of
from tensormagic.ir.type import python
from tensormagic.ops.leaf import CONSTANT, constant, size_node
from tensormagic.ops.regions import control
from tensormagic.ops.scalars import scalar

PASSES = 12  # tracings of one iteration, at most


class Loop:
    """One loop that is being staged.

    Parameters
    ----------
    functions
        The iteration and what is asked between iterations, for what they can reach.
    names
        What the syntax says of it.
    run
        Runs one iteration; gives whether to go on, as ``(before the iteration, after it)``.
    once
        Whether at least one iteration is known to run.
    lists
        Lists that an iteration appends to, beside those that the syntax names.
    over
        What the loop goes over.
    varies
        Whether arrays may have another length from iteration to iteration.
    """

    def __init__(
        self,
        functions: Sequence[Any],
        names: Names,
        run: Callable[[], tuple[Any, Any]],
        *,
        once: bool,
        lists: Sequence[list[Any] | Journaled] = (),
        over: Any = None,
        varies: bool = False,
    ) -> None:
        self.varies = varies
        self.over = over
        self.names = names
        self.run = run
        self.once = once
        self.label = f"the loop in {context.here()}"
        self.world = World(functions)
        self.slots = {n: self.world.slot(functions[0], n) for n in names.bound}
        self.carried: dict[Slot, CarriedSlot] = {}
        self.buffers: dict[Buffer, Carry] = {}
        self.dropped: set[Slot | Buffer] = set()  # what was carried, and is not changed by an iteration after all
        self.settled = False
        self.index: Node | None = None  # of an iteration
        self.outcome = Outcome()
        self.appended: list[Append] = []
        self.kept: dict[Buffer, list[Buffer]] = {}  # where the arrays that the last iteration has appended are
        self.shares = Iterations(self._is_known)
        self.stand_ins = StandIns(self.world)
        own_lists(self.world, functions, names.grown, lists)
        self._begin()

    # what is carried --------------------------------------------------------------------------------------------------

    def _begin(self) -> None:
        """A first guess: numbers and arrays that an iteration reads and binds anew, and what it stores into by name."""
        for name in self.names.entering:
            value = self.slots[name].get()
            in_place = isinstance(value, Tensor) and value.type.form == "array" and name not in self.names.anew
            if value is not UNBOUND and not in_place and apart(value).numeric:
                self._carry(self.slots[name], value)
        for name in self.names.stored:
            value = self.slots[name].get() if name in self.slots else self._seen(name)
            if (
                isinstance(value, Tensor)
                and value.type.form == "array"
                and (name not in self.slots or self.slots[name] not in self.carried)
            ):
                self._carry_buffer(value.place.buffer)

    def _seen(self, name: str) -> Any:
        return next((s.get() for s in self.world.variables.values() if s.name == name), None)

    def _carry(self, slot: Slot, value: Any, like: Parts | None = None) -> None:
        """Carry what a slot holds: ``value``, or zeros in the form of ``like``, where it holds nothing yet."""
        parts = apart(value) if like is None else like
        if not parts.numeric:
            raise NeedsPython(
                f"{slot.said} changes from iteration to iteration, but is not a number", "Use numbers and arrays."
            )
        self._check_sizes(slot, parts)
        starts = list(parts.nodes) if like is None else [zeros_of(n.type) for n in parts.nodes]
        values = [Carry(slot.said, s, s.type) for s in starts]
        conditions: list[Carry | None] = []
        for defined in parts.defined:
            start = constant(False) if like is not None else defined
            known = start is None or (like is not None and slot.internal)
            conditions.append(None if known or start is None else Carry(slot.said, start, python(bool)))
        self.carried[slot] = CarriedSlot(slot, parts, values, conditions)

    def _carry_buffer(self, buffer: Buffer) -> None:
        self.buffers.setdefault(buffer, Carry.of_buffer(buffer.name or "an array", buffer.node))

    # tracing ----------------------------------------------------------------------------------------------------------

    def trace(self) -> None:
        """Trace iterations until nothing new is carried and no type changes."""
        for _ in range(PASSES):
            self.settled, watched = True, self._watched()
            self.outcome = attempt(self.world, self._iteration)
            refuse_changed(watched)
            learnt = self._learn()
            self._slots()
            self._stores()
            if self.settled and not learnt:
                self.appended = appended(self.outcome)
                once_each(self.outcome.slots)
                self._unshared()
                self._none_lost()
                return
        raise NeedsPython(
            f"{self.label} changes the types of its variables", "Begin with the types that an iteration ends with."
        )

    def _watched(self) -> int:
        capture = context.current()
        return 0 if capture is None else len(capture.watched)

    def check_begin(self) -> None:
        """Raise where the first iteration computes with a number of Python's, and so otherwise than the later ones."""
        for carry in (c for s in self.carried.values() for c in s.values):
            begins, becomes = carry.start.type, carry.becomes
            if not self.once or becomes is None or becomes.form == "python":
                continue
            if becomes != carry.type or (becomes.dtype != begins.dtype and np.can_cast(becomes.dtype, begins.dtype)):
                raise BeginsWeakly(
                    f"{self.label}: {carry.label} begins as {begins} and becomes {becomes}",
                    "Begin with the type that it becomes.",
                )

    def _unshared(self) -> None:
        """Raise where an iteration stores into an array that the iteration before may have appended to a list."""
        arrays = any(b is not None for a in self.appended for b in a.buffers)
        if arrays and any(t.place.buffer.version for c in self.carried.values() for t in c.given):
            raise NeedsPython(f"{self.label} stores into what it appends to a list", "Append a copy of it.")

    def _none_lost(self) -> None:
        """Raise where an iteration needs what a store has changed in a way that is not known."""
        appended = [n for a in self.appended for n in a.parts.nodes]
        said = lost([*(c.end for c in self._carries() if c.end is not None), *appended], self.world.nodes())
        if said is not None:
            raise NeedsPython(f"{self.label}: {said}", "Work on copies.")

    def _carries(self) -> list[Carry]:
        """All that is carried."""
        return [c for s in self.carried.values() for c in s.carries] + [*self.buffers.values()]

    def _given(self) -> dict[Any, Tensor]:
        """The stand-ins of what slots hold."""
        return {(c.slot, k): t for c in self.carried.values() for k, t in enumerate(c.given)}

    def _learn(self) -> bool:
        """Find out what the carried arrays share; whether that was not known."""

        def arrays(value: Callable[[Slot], Any]) -> dict[Any, Leaf]:
            return {(s, k): a for s in self.carried for k, a in enumerate(arrays_of(value(s)))}

        before = arrays(lambda s: s.get())
        after = arrays(lambda s: self.outcome.slots.get(s, s.get()))
        return self.shares.learn(before, self._given(), after, self.opened)

    def _is_known(self, buffer: Buffer) -> bool:
        """Whether others than what is carried know an array."""
        return not is_own(buffer, list(self.carried), [self.over])

    def _iteration(self) -> tuple[Any, Any]:
        why = f"{self.label} assigns it only in some iterations"
        for buffer, carry in self.buffers.items():
            buffer.put(carry.question.asked(carry.fresh()))
        for slot in self.slots.values():
            if slot not in self.carried and slot.name not in self.names.entering:
                slot.set(UNBOUND)
        for carried in self.carried.values():
            before = carried.slot.get()
            carried.install(why)
            self.stand_ins.install(before, carried.slot.get())
        self.shares.install(self._given())
        self.opened = next(serials)
        return self.run()

    def _slots(self) -> None:
        """Compare what slots hold after an iteration with what they held before."""
        changed = dict(self.outcome.slots)
        for slot, carried in list(self.carried.items()):
            self._compare(carried, changed.pop(slot, slot.get()))
        for slot, value in changed.items():
            own = slot is self.slots.get(slot.name)
            read_later = not own or slot.name in self.names.entering
            if read_later and not merged.same_value(value, slot.get()):
                self._grow(slot, value)

    def _grow(self, slot: Slot, value: Any) -> None:
        """Carry a slot that was taken for constant."""
        check_kept(slot, value)
        self.settled = False
        before = slot.get()
        if before is UNBOUND:
            self._carry(slot, None, like=self._apart(slot, value))
        else:
            self._carry(slot, before)

    def _apart(self, slot: Slot, value: Any, *, asked: bool = False) -> Parts:
        if not merged.same_value(value, slot.get()):
            none_held([value], {memory(s.array) for s in self.world.arrays}, slot)
        return self.outcome.seen(lambda: apart(value, asked=asked or slot.internal))

    def _compare(self, carried: CarriedSlot, value: Any) -> None:
        slot = carried.slot
        check_kept(slot, value)
        parts = self._apart(slot, value)
        if parts.form != carried.parts.form:
            raise merged.unlike(slot.name, f"{self.label} gives", (slot.get(), value))
        unchanged = all(e is c.value for e, c in zip(parts.nodes, carried.values, strict=True))
        if unchanged and slot not in self.dropped and slot.get() is not UNBOUND and not any(carried.conditions):
            del self.carried[slot]  # traced again with what it is
            self.dropped.add(slot)
            self.settled = False
            return
        ends = zip(parts.nodes, parts.defined, carried.values, carried.conditions, strict=True)
        for k, (end, defined, carry, condition) in enumerate(ends):
            self.settled &= carry.settle(self.label, end, varies=self.varies) & carry.settle_class(self.label, end)
            if condition is not None:
                self.settled &= condition.settle(self.label, constant(True) if defined is None else defined)
            elif defined is not None and not slot.internal:
                carried.conditions[k] = Carry(slot.said, constant(True), python(bool))
                self.settled = False

    def _stores(self) -> None:
        """Carry the arrays that an iteration stores into."""
        for buffer, (node, *_) in self.outcome.buffers.items():
            carry = self.buffers.get(buffer)
            if carry is None:
                self._carry_buffer(buffer)
                self.settled = False
            elif carry.question.unasked(node) is carry.value and buffer not in self.dropped:
                del self.buffers[buffer]
                self.dropped.add(buffer)
                self.settled = False
            else:
                self.settled &= carry.settle(self.label, carry.question.unasked(node))
        for carried in list(self.carried.values()):
            if any(t.place.buffer.version for t in carried.given):
                self._stored_into_carry(carried)

    def _stored_into_carry(self, carried: CarriedSlot) -> None:
        """A name that an iteration both stores into and binds anew: right only where nobody else knows the array."""
        after = self.outcome.slots.get(carried.slot)
        value = carried.slot.get()
        if isinstance(value, Tensor) and isinstance(after, Tensor) and after.place is carried.given[0].place:
            del self.carried[carried.slot]  # bound to what it was bound to: it is only stored into
            self.dropped.add(carried.slot)
            self._carry_buffer(value.place.buffer)
            self.settled = False
            return
        if not self._alone(carried):
            raise NeedsPython(
                f"{self.label} stores into {carried.slot.said} and also assigns it: each iteration may store into another array",
                f"Store into a copy, or assign {carried.slot.said} only once.",
            )

    def _alone(self, carried: CarriedSlot) -> bool:
        """Whether names that exchange their arrays are the only ones that reach these: then only values matter."""
        own = {c.given[0].place.buffer: c for c in self.carried.values() if len(c.given) == 1}
        ends = [(s, self.outcome.slots.get(s, s.get())) for s in self.carried]
        wholes = [(s, v.place) for s, v in ends if isinstance(v, Tensor) and v.type.form == "array"]
        if any(p.parent is not None for _, p in wholes) or len({id(p.buffer) for _, p in wholes}) < len(wholes):
            return False
        moved = [own[p.buffer] for s, p in wholes if p.buffer in own and own[p.buffer].slot is not s]
        slots = list(dict.fromkeys([carried.slot, *(c.slot for c in moved)]))
        starts = [s.get() for s in slots]
        return all(isinstance(v, Tensor) and is_own(v.place.buffer, slots, [self.over]) for v in starts)

    def is_lazy(self, index: Node | None) -> bool:
        """Whether there is anything in the loop but Python's own numbers, and ``index``."""
        starts = [v for s in self.carried if s.get() is not UNBOUND for v in flatten(s.get())[0]]
        if self.buffers or any(isinstance(v, Tensor) for v in starts):
            return True
        carries = [c for s in self.carried.values() for c in s.carries]
        last = [(s, v) for s, v in self.outcome.slots.items() if s not in self.carried and v is not UNBOUND]
        ends = [c.end for c in carries if c.end is not None] + [n for one in last for n in self._apart(*one).nodes]
        ends += [n for a in self.appended for n in a.parts.nodes]
        stand_ins = {index, *(c.stand_in for c in carries)}
        nodes = topological(ends, stop=lambda n: n in stand_ins)
        return any(n.op is not CONSTANT and n not in stand_ins and not n.needs for n in nodes)

    # what it gives ----------------------------------------------------------------------------------------------------

    def stacks(self, count: Size, index: Node) -> list[Carry]:
        """The carries of what iterations append."""
        found: list[Carry] = []
        for value in (n for a in self.appended for n in a.parts.nodes):
            start = start_of(value, count)
            carry = Carry("a list", start, start.type)
            carry.end = put(carry.fresh(), value, index)
            found.append(carry)
        return found

    def emit(
        self, build: Callable[[list[Carry]], Sequence[Node]], ran: Node | None, stacks: Sequence[Carry] = ()
    ) -> None:
        """Build the region, and do what the loop has done: all of it, or nothing where an array refuses a store.

        ``build`` makes the region for the carries; ``ran`` says whether any iteration has run, None where one has for sure;
        ``stacks`` hold what iterations append.
        """
        leaving = [s for s in self.outcome.slots if s is self.slots.get(s.name) and s.name in self.names.leaving]
        bound = dict.fromkeys([*self.carried, *leaving])
        ends = {s: (s.get(), self.outcome.slots.get(s, s.get())) for s in bound}
        choices = self.stand_ins.choices(ends, self.outcome, once=ran is None)
        for slot, (may, _) in choices.items():
            may.refuse(slot)
        asked = values_are_there()
        attempt(self.world, lambda: self._emit(build, ran, stacks, asked=asked), lambda _result: True)
        for slot, (may, alone) in choices.items():
            may.note(slot, alone=alone)

    def _emit(
        self,
        build: Callable[[list[Carry]], Sequence[Node]],
        ran: Node | None,
        stacks: Sequence[Carry],
        *,
        asked: bool,
    ) -> None:
        last, plain = self._last()
        carries = [c for s in self.carried.values() for c in s.carries]
        carries += [*self.buffers.values(), *(c for _, _, own, _ in last for c in (*own, *codes_of(own))), *stacks]
        begun = {c: c.start.type.dtype for c in carries if ran is not None and not c.type.shape}
        if ran is not None:
            for carry in (c for c in carries if not c.axes):
                carry.start = settled(carry.start, carry.type, ran, f"{self.label}: {carry.label}")
        ends = {
            c: context.record(c.outside(n)) for c, n in zip(carries, build(carries) if carries else (), strict=True)
        }
        self._classify(carries, ends, asked=asked)
        for carry, dtype in begun.items():  # it is still what it began as where no iteration has run
            undecided.note(ends[carry], dtype)
        made: list[tuple[Any, Any, list[Tensor]]] = []
        starts = {s: s.get() for s in (*self.carried, *(slot for slot, *_ in last))}
        after = {s: self.outcome.slots.get(s, v) for s, v in starts.items()}
        once = Once()
        for slot, value in plain:
            slot.set(value if value is UNBOUND else once.of((self.outcome.slots[slot],), value))
        for buffer in sorted(self.buffers, key=lambda b: (b.depends, b.born)):
            carry = self.buffers[buffer]
            (buffer.put if buffer.depends else buffer.store)(carry.question.asked(ends[carry]))
        for slot, carried in self.carried.items():
            pairs = zip(carried.values, carried.conditions, strict=True)
            tensors = [self._result(slot, ends[v], ends[d] if d else None) for v, d in pairs]
            slot.set(once.of((starts[slot], after[slot])[ran is None :], carried.parts.build(tensors)))
            made.append((starts[slot], after[slot], tensors))
        for slot, parts, own, defined in last:
            tensors = [self._result(slot, ends[c], _either(d, ran)) for c, d in zip(own, defined, strict=True)]
            slot.set(once.of((starts[slot], after[slot])[ran is None :], parts.build(tensors)))
            made.append((starts[slot], after[slot], tensors))
        if stacks:
            self.kept = extend(self.appended, [ends[c] for c in stacks])
        self._share(made, list(starts))

    def _classify(self, carries: Sequence[Carry], ends: dict[Carry, Node], *, asked: bool) -> None:
        """Note of which classes the numbers are that the loop leaves; where that can be ``asked``, they are of these."""
        coded = {c: Classes(ends[c.code], c.classes) for c in carries if c.code is not None}
        coded = {c: found for c, found in coded.items() if c.code is not None and (not self.once or c.code.varies)}
        if not asked:
            for carry, classes in coded.items():
                number_classes.note(ends[carry], classes)
        elif coded:
            beside = [n for c, n in ends.items() if not c.axes]
            decided = number_classes.decide({ends[c]: found for c, found in coded.items()}, beside)
            ends.update({c: decided[ends[c]] for c in coded})

    def _result(self, slot: Slot, node: Node, defined: Node | None) -> Tensor:
        return merged.result(node, defined, slot.said, f"{self.label} may have no iteration that assigns it")

    def _share(self, made: Sequence[tuple[Any, Any, list[Tensor]]], slots: list[Slot]) -> None:
        """Note which arrays share memory in Python: with arrays made before the loop, and among each other."""
        own = {t.place.buffer for t in self._given().values()}
        found: list[tuple[Tensor, set[Buffer], set[Buffer]]] = []
        for start, end, tensors in made:
            first = [reached(a) for a in arrays_of(start)] if not self.once else []
            first += [set()] * (len(tensors) - len(first))  # it is that very array where no iteration has run
            found += zip(tensors, first, map(reached, arrays_of(end)), strict=True)
        shared: list[list[Buffer]] = []
        for _, first, last in found:
            older = [b for b in first | last if b.born < self.opened and b not in own and not is_own(b, slots)]
            shared.append([*older, *(k for b in last for k in self.kept.get(b, []))])
        for i, j in pairs([[f[1] for f in found], [f[2] for f in found]]):
            shared[i].append(found[j][0].place.buffer)
            shared[j].append(found[i][0].place.buffer)
        follow((f[0], s) for f, s in zip(found, shared, strict=True))
        for start, end, tensors in made:
            none = [None] * len(tensors)
            arrays, numbers = ([form(v) or none for v in (start, end)] for form in (arrays_of, numbers_of))
            for value, first, last, *held in zip(tensors, *arrays, *numbers, strict=True):
                keep_out(value, first, last)
                value.place.buffer.writeable = writeable(*(held[1:] if self.once else held))

    def _last(self) -> tuple[list[tuple[Slot, Parts, list[Carry], list[Node | None]]], list[tuple[Slot, Any]]]:
        """What the last iteration leaves in names that no iteration reads: numbers with a carry each, and other values.

        With the carries goes what says whether a name is bound without an iteration, None where it is for sure.
        """
        found: list[tuple[Slot, Parts, list[Carry], list[Node | None]]] = []
        plain: list[tuple[Slot, Any]] = []
        for slot, value in self.outcome.slots.items():
            if slot in self.carried or slot is not self.slots.get(slot.name):
                continue
            if slot.name not in self.names.leaving:
                plain.append((slot, UNBOUND))
            elif self.once and (value is None or type(value) in {bool, int, float, complex, str}):
                plain.append((slot, value))  # the same in every iteration
            elif (last := self._of_last_iteration(parts := self._apart(slot, value, asked=True))) is not None:
                plain.append((slot, last))
            else:  # every iteration binds it
                found.append((slot, parts, *self._ends(slot, parts)))
        return found, plain

    def _of_last_iteration(self, parts: Parts) -> Any:
        """What the last iteration leaves, where that is numbers that depend on its index alone: worked out behind the loop."""
        if not self.once or self.index is None or self.outcome.result[1] is not False or not parts.numeric:
            return None
        within = topological(parts.nodes)
        iterations = self._own_leaves() - {self.index}
        plain = all(not n.type.shape and n.type.form != "array" for n in parts.nodes) and not any(parts.defined)
        if not plain or any(n in iterations or context.may_fail(n) for n in within):
            return None
        if any(map(number_classes.is_noted, parts.nodes)):
            return None
        last = scalar.subtract(size_node(self.index["within"][1]), constant(1))
        return parts.build([wrap(n) for n in site.substituted(parts.nodes, {self.index: last})])

    def _check_sizes(self, slot: Slot, parts: Parts) -> None:
        """Refuse a shape that mentions what is known in one iteration only."""
        sizes = [a for n in parts.nodes for s in n.type.shape for a in nodes_of(s)]
        if self._own_leaves() & set(topological(sizes)):
            raise NeedsPython(
                f"{self.label} gives {slot.said} a shape that differs from iteration to iteration",
                "Fill an array of the largest size.",
            )

    def _own_leaves(self) -> set[Node]:
        """What differs from iteration to iteration to begin with: the index and the stand-ins."""
        carries = [c for s in self.carried.values() for c in s.carries]
        return {n for n in (self.index, *(c.stand_in for c in (*carries, *self.buffers.values()))) if n is not None}

    def _ends(self, slot: Slot, parts: Parts) -> tuple[list[Carry], list[Node | None]]:
        """The carries of what the last iteration leaves, and whether its name is bound without an iteration."""
        if not parts.numeric:
            raise NeedsPython(f"{slot.said} is not a number, but is read after {self.label}", "Use numbers and arrays.")
        self._check_sizes(slot, parts)
        before = slot.get()
        starts = [zeros_of(n.type) for n in parts.nodes]
        unbound = before is UNBOUND and not slot.internal
        defined: list[Node | None] = [constant(False) if unbound else None for _ in starts]
        if not self.once and before is not UNBOUND:
            old = apart(before)
            if old.form != parts.form:
                raise merged.unlike(
                    slot.name, f"{self.label} may have no iteration: it leaves", (before, "what an iteration gives")
                )
            starts, defined = list(old.nodes), list(old.defined)
        carries: list[Carry] = []
        for start, end in zip(starts, parts.nodes, strict=True):
            carry = Carry(slot.said, start, start.type)
            while not carry.settle(self.label, end) & carry.settle_class(self.label, end):
                pass
            carry.fresh()
            carries.append(carry)
        return carries, defined


def _either(defined: Node | None, ran: Node | None) -> Node | None:
    """Whether a name is bound behind a loop: None where it is for sure."""
    if defined is None or ran is None:
        return None
    return ran if defined is constant(False) else scalar.logical_or(defined, ran)


def counted(loop: Loop, count: Node, index: Node) -> None:
    """A ``loop`` region: as many iterations as ``count`` says."""

    def build(carries: list[Carry]) -> Sequence[Node]:
        stand_ins, ends, starts = split(carries)
        free = around(ends, [index, *stand_ins], runs=loop.once)
        body = graph_of(ends, [index, *stand_ins, *free])
        given = fitting(body, [*starts, *free], ran, first=1)
        return control.loop(count, body, given[: len(starts)], given[len(starts) :])

    ran = None if loop.once else scalar.greater(count, 0)
    loop.emit(build, ran, loop.stacks(index["within"][1], index))


def conditional(loop: Loop, test: Node, ran: Node | None, index: tuple[Node, Node] | None = None) -> None:
    """A ``while`` region: iterations as long as ``test`` holds before them.

    ``index`` counts the iterations: what it is in an iteration, and what it is where ``test`` is asked.
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
        free = list(dict.fromkeys([*around([test], asked), *around(ends, own, runs=ran is None)]))
        graphs = graph_of([test], [*asked, *free]), graph_of(ends, [*own, *free])
        given = fitting(graphs[1], fitting(graphs[0], [*starts, *free], None), ran)
        return control.while_loop(*graphs, given[: len(starts)], given[len(starts) :])[: len(carries)]

    loop.emit(build, ran)
