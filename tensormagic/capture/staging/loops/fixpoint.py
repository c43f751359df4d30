"""Traces loops: an iteration is traced over stand-ins for what it changes, again until their types no longer change.

A loop carries the names that an iteration binds and that a later iteration, or the code after the loop, reads, the
items of containers that it replaces, and the arrays made before it that it stores into. All else is constant.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tensormagic.capture import context
from tensormagic.capture.numbers.alternatives import texts_among
from tensormagic.capture.python import usercode
from tensormagic.capture.staging.branches import merged_values
from tensormagic.capture.staging.branches.containers import StandIns
from tensormagic.capture.staging.branches.lifted_values import aligned
from tensormagic.capture.staging.branches.merged_values import Parts, apart
from tensormagic.capture.staging.branches.shared_arrays import (
    Iterations,
    Leaf,
    arrays_of,
    lost,
    memory,
    none_held,
    once_each,
)
from tensormagic.capture.staging.branches.slots import UNBOUND, Slot
from tensormagic.capture.staging.loops.appended_lists import Append, appended, own_lists
from tensormagic.capture.staging.loops.carries import CarriedSlot, Carry, Lengths, Names, Varies, check_kept
from tensormagic.capture.staging.loops.unchanged_entries import Unchanged
from tensormagic.capture.staging.loops.watched_containers import is_watched, refuse_changed, watch
from tensormagic.capture.staging.regions import zeros_of
from tensormagic.capture.staging.trials.aliases import is_own
from tensormagic.capture.staging.trials.needs_python import BeginsWeakly, NeedsPython
from tensormagic.capture.staging.trials.trial import Outcome, attempt, trial
from tensormagic.capture.staging.trials.world import Journaled, World
from tensormagic.capture.stores.place import Buffer, serials
from tensormagic.capture.tree import flatten
from tensormagic.capture.values.value import Tensor
from tensormagic.ir.node import Node, topological
from tensormagic.ir.size import Size, nodes_of
from tensormagic.ir.type import Type, python
from tensormagic.ops.leaf import CONSTANT, constant

PASSES = 12  # tracings of one iteration, at most
_TEXTS = 8  # texts that a variable may hold, over all passes, while each pass finds more of them


class Loop:
    """Represents one loop being staged.

    Parameters
    ----------
    functions
        The iteration and what is called between iterations, for their reach.
    names
        What the syntax says of it.
    run
        Runs one iteration; returns whether to go on, as ``(before the iteration, after it)``.
    once
        Whether at least one iteration is known to run.
    lists
        Further lists that an iteration appends to, beside those in the syntax.
    over
        What the loop iterates over.
    varies
        Whether arrays may change their length from iteration to iteration.
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
        self.label = f"the loop in {usercode.here()}"
        self.world = World(functions)
        self.slots = {n: self.world.slot(functions[0], n) for n in names.bound}
        self.carried: dict[Slot, CarriedSlot] = {}
        self.buffers: dict[Buffer, Carry] = {}
        self.lengths = Lengths()
        self.dropped: set[Slot | Buffer] = set()  # carries that an iteration turned out not to change
        self.texts: dict[
            Slot, list[int]
        ] = {}  # for a variable that holds one of several texts: how many there were, pass by pass
        self.settled = False
        self.index: Node | None = None  # the nodes of one iteration
        self.outcome = Outcome()
        self.appended: list[Append] = []
        self.noted: list[Any] = []  # containers that are elements of grown lists
        self.elements: set[Slot] = set()  # the slots that an iteration leaves with one of them
        self.shares = Iterations(self._is_known)
        self.stand_ins = StandIns(self.world)
        own_lists(self.world, functions, names.grown, lists)
        self._begin()

    # what is carried --------------------------------------------------------------------------------------------------

    def _begin(self) -> None:
        """Make a first guess of the carries: what an iteration reads and rebinds, and what it stores into by name."""
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

    def _carry(self, slot: Slot, value: Any, like: Parts | None = None, stays: Unchanged | None = None) -> None:
        """Carry the content of a slot: ``value``, or zeros in the form of ``like`` where it is unbound, without what ``stays``."""
        stays = stays or Unchanged()
        value = stays.without(value)
        parts = stays.built(apart(value)) if like is None else like
        if not parts.numeric:
            raise NeedsPython(
                f"{slot.said} changes from iteration to iteration, but is not a number", "Use numbers and arrays."
            )
        starts = list(parts.nodes) if like is None else [self.nothing_like(slot, n) for n in parts.nodes]
        values = [Carry(slot.said, s, s.type) for s in starts]
        conditions: list[Carry | None] = []
        for defined in parts.defined:
            start = constant(False) if like is not None else defined
            known = start is None or (like is not None and slot.internal)
            conditions.append(None if known or start is None else Carry(slot.said, start, python(bool)))
        start = UNBOUND if like is not None else value
        self.carried[slot] = CarriedSlot(slot, parts, values, conditions, start, stays=stays)

    def _carry_buffer(self, buffer: Buffer) -> None:
        self.buffers.setdefault(buffer, Carry.of_buffer(buffer.name or "an array", buffer.node))

    # tracing ----------------------------------------------------------------------------------------------------------

    def trace(self) -> None:
        """Trace iterations until nothing new is carried and no type changes."""
        needed = {*self.names.entering, *self.names.leaving}
        unneeded = {slot for name, slot in self.slots.items() if name not in needed}
        for _ in range(PASSES):
            self.settled, watched = True, self._watched()
            self.outcome = attempt(self.world, self._iteration, unneeded=unneeded)
            self.noted = refuse_changed(watched)
            learnt = self._learn()
            self._slots()
            self._elements()
            self._stores()
            if self.settled and not learnt and self.lengths.hold():
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
        return 0 if capture is None else len(capture.heap.watched)

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
            raise NeedsPython(f"{self.label} stores into an array that it appends to a list", "Append a copy of it.")

    def _none_lost(self) -> None:
        """Raise where an iteration needs what a store has changed in a way that is not known."""
        appended = [n for a in self.appended for n in a.nodes]
        said = lost([*(c.end for c in self._carries() if c.end is not None), *appended], self.world.nodes())
        if said is not None:
            raise NeedsPython(f"{self.label}: {said}", "Work on copies.")

    def _carries(self) -> list[Carry]:
        """Return all carries of the loop."""
        return [c for s in self.carried.values() for c in s.carries] + [*self.buffers.values()]

    def given(self) -> dict[Any, Tensor]:
        """Return the stand-ins for what the slots hold, by slot and number."""
        return {(c.slot, k): t for c in self.carried.values() for k, t in enumerate(c.given)}

    def _learn(self) -> bool:
        """Record which memory the carried arrays share; return whether any of it was not known."""

        def arrays(value: Callable[[Slot], Any]) -> dict[Any, Leaf]:
            return {(s, k): a for s in self.carried for k, a in enumerate(arrays_of(value(s)))}

        before = arrays(lambda s: self.carried[s].start)
        after = arrays(lambda s: self.carried[s].fitted(self.outcome.slots.get(s, s.get()))[1])
        return self.shares.learn(before, self.given(), after, self.opened)

    def _is_known(self, buffer: Buffer) -> bool:
        """Return whether an array has references other than the carries."""
        return not is_own(buffer, list(self.carried), [self.over])

    def _iteration(self) -> tuple[Any, Any]:
        why = f"{self.label} assigns it only in some iterations"
        self.lengths.here.clear()
        for buffer, carry in self.buffers.items():
            buffer.put(carry.question.asked(carry.fresh(self.lengths)))
        for slot in self.slots.values():
            if slot not in self.carried and slot.name not in self.names.entering:
                slot.set(UNBOUND)
        for carried in self.carried.values():
            before = carried.slot.get()
            carried.install(why, self.lengths)
            self.stand_ins.install(before, carried.slot.get())
            if carried.slot in self.elements:
                watch(carried.slot.get())
        self.shares.install(self.given())
        self.opened = next(serials)
        if (running := trial()) is not None:
            running.iteration = self.opened
        return self.run()

    def _slots(self) -> None:
        """Compare slots after an iteration with their values before it."""
        changed = dict(self.outcome.slots)
        for slot, carried in list(self.carried.items()):
            self._compare(carried, changed.pop(slot, slot.get()))
        for slot, value in changed.items():
            own = slot is self.slots.get(slot.name)
            read_later = (not own or slot.name in self.names.entering) and not (slot.internal and value is None)
            if read_later and not merged_values.same_value(value, slot.get()):
                self._grow(slot, value)

    def _elements(self) -> None:
        """Note which slots an iteration leaves with an element of a grown list: the next one may not change it."""
        found = {s for s in self.carried if is_watched(self.outcome.slots.get(s))}
        self.settled &= found <= self.elements
        self.elements |= found

    def _grow(self, slot: Slot, value: Any) -> None:
        """Carry a slot that was assumed constant."""
        check_kept(slot, value)
        self.settled = False
        before = slot.get()
        if before is UNBOUND:
            self._carry(slot, None, like=self.parts_of(slot, value))
        else:
            self._carry(slot, aligned(before, value, slot.said)[0])

    def parts_of(self, slot: Slot, value: Any, *, asked: bool = False) -> Parts:
        """Return what a slot would hold after an iteration, as parts."""
        if not merged_values.same_value(value, slot.get()):
            none_held([value], {memory(s.array) for s in self.world.arrays}, slot)
        return self.outcome.seen(lambda: apart(value, asked=asked or slot.internal))

    def _compare(self, carried: CarriedSlot, value: Any) -> None:
        slot = carried.slot
        check_kept(slot, value)
        if self._stays(carried, value):
            return
        like, value = carried.fitted(value)
        parts = self.parts_of(slot, value)
        if parts.form != carried.parts.form and apart(like).form == parts.form:
            self.settled = False  # it may be None: traced again as an optional value
            self._refuse_longer(slot, like)
            begun = carried.start is not UNBOUND
            self._carry(slot, aligned(carried.start, value, slot.said)[0], like=None if begun else parts)
            return
        if parts.form != carried.parts.form:
            raise merged_values.unlike(slot.name, f"{self.label} gives", (slot.get(), value))
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

    def _refuse_longer(self, slot: Slot, value: Any) -> None:
        """Raise if a text with numbers in it gets longer in each pass, as with ``out += f"{v} "``: this does not end."""
        found = self.texts.setdefault(slot, [])
        found.append(texts_among(value))
        if len(found) > 1 and found[-1] > found[-2] and sum(found) > _TEXTS:
            raise NeedsPython(
                f"{self.label} makes {slot.said} a longer text in each iteration, with numbers that depend on data",
                "Keep the texts in a list, and join them after the loop.",
            )

    def _stays(self, carried: CarriedSlot, value: Any) -> bool:
        """Find entries that the iteration leaves unchanged, which means tracing again with them; return whether there are any."""
        slot, known = carried.slot, carried.stays.paths
        found = [] if slot in self.dropped else carried.unchanged(value)
        if [*found] == known or (not found and not known):
            return False
        if known:  # in another tracing it does not
            self.dropped.add(slot)
        start = carried.stays.within(carried.start)
        self._carry(slot, start, stays=Unchanged(start, () if known else found))
        self.settled = False
        return True

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
        """Settle a name that an iteration both stores into and binds anew: this is right only if nothing else refers to the array."""
        after = self.outcome.slots.get(carried.slot)
        value = carried.slot.get()
        if isinstance(value, Tensor) and isinstance(after, Tensor) and after.place is carried.given[0].place:
            del self.carried[carried.slot]  # bound to the same array as before: it is only stored into
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
        """Return whether only names that exchange arrays among themselves reach these arrays: then only values matter."""
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
        """Return whether anything in the loop is lazy beside ``index`` and numbers computed from Python's own; arrays always count."""
        starts = [v for s in self.carried if s.get() is not UNBOUND for v in flatten(s.get())[0]]
        if self.buffers or any(isinstance(v, Tensor) for v in starts):
            return True
        stand_ins = {index, *(c.stand_in for c in self._carries())}
        nodes = topological(self._left(), stop=lambda n: n in stand_ins)
        computed = (n for n in nodes if n.op is not CONSTANT and n not in stand_ins)
        return any(not n.needs or any(t.form == "array" for t in n.types) for n in computed)

    def _left(self) -> list[Node]:
        """Return the nodes of all numbers and arrays that an iteration leaves in carries, in other names and in lists."""
        last = [(s, v) for s, v in self.outcome.slots.items() if s not in self.carried and v is not UNBOUND]
        parts = [self.parts_of(*one) for one in last] + [a.parts for a in self.appended]
        return [c.end for c in self._carries() if c.end is not None] + [n for p in parts for n in p.nodes]

    def nothing_like(self, slot: Slot, node: Node) -> Node:
        """Return zeros as a placeholder for what no iteration has left yet.

        Along an axis whose length is known only in an iteration, they have length 0.
        """
        return zeros_of(node.type.with_shape(self._outside(slot, node.type), node.type.form))

    def begun(self, slot: Slot, node: Node) -> Node:
        """Return a name's value before the loop, replaced by zeros like an iteration's value if shapes differ."""
        return node if self._outside(slot, node.type) == node.type.shape else self.nothing_like(slot, node)

    def _outside(self, slot: Slot, t: Type) -> tuple[Size, ...]:
        """Return a shape outside of the loop, with 0 for a length that is known only in an iteration; raise if lengths may not differ."""
        own = self.own_leaves()
        shape = tuple(0 if own & set(topological(nodes_of(s))) else s for s in t.shape)
        if shape != t.shape and not self.varies:
            raise Varies(
                f"{self.label} gives {slot.said} a shape that differs from iteration to iteration",
                "Fill an array of the largest size.",
            )
        return shape

    def own_leaves(self) -> set[Node]:
        """Return the leaves that differ from iteration to iteration: the index and the stand-ins."""
        carries = [c for s in self.carried.values() for c in s.carries]
        return {n for n in (self.index, *(c.stand_in for c in (*carries, *self.buffers.values()))) if n is not None}
