"""Replaces Python's lists by lists of data-dependent length while code that appends to them is tried."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from tensormagic.capture import context
from tensormagic.capture.numbers import classes as number_classes
from tensormagic.capture.staging.branches.slots import Slot
from tensormagic.capture.staging.loops.grown_lists import GrownList, Untyped
from tensormagic.capture.staging.loops.watched_containers import refuse_grown, watch
from tensormagic.capture.staging.trials.aliases import lead_elsewhere
from tensormagic.capture.staging.trials.trial import trial
from tensormagic.capture.staging.trials.world import World
from tensormagic.capture.values.list_elements import Stack
from tensormagic.ir.plain_texts import key_text

PASSES = 12


@dataclass(frozen=True, eq=False)
class ReplacedLists:
    """Represents Python lists that are replaced by lists of data-dependent length, with their variables."""

    slots: list[Slot]
    before: list[list[Any]]
    made: list[GrownList]

    def back(self) -> None:
        """Restore Python's lists in the variables."""
        for slot, value in zip(self.slots, self.before, strict=True):
            slot.set(value)

    def listed(self) -> None:
        """In cells, extend Python's lists by what was appended: elements of arrays whose length is computed."""
        stacks = [m.stacks if m.like is not None else [] for m in self.made]
        classes = [m.several for m in self.made]
        beside = [*(m.count.node for m in self.made), *(n for nodes in stacks for n in nodes)]
        types = iter(number_classes.computed([c for several in classes for c in several], beside))
        self.back()
        for value, made, nodes, several in zip(self.before, self.made, stacks, classes, strict=True):
            count, known = int(made.count.numpy()), [next(types) for _ in several]
            if made.like is not None and count > len(made.first):
                each = zip(nodes, made.types, several, known, strict=True)
                rows = [Stack(n, t.form, count, c, own).elements for n, t, c, own in each]
                value.extend(
                    watch(made.like.build(list(parts))) for parts in [*zip(*rows, strict=True)][len(made.first) :]
                )


def growing(functions: Sequence[Any], names: Sequence[str], stage: Callable[[], None]) -> ReplacedLists:
    """Run ``stage`` with the lists of ``names`` as lists of data-dependent length; put them back if it fails."""
    slots = _lists(World(functions), names)
    before = [s.get() for s in slots]
    refuse_grown(before)
    found = ReplacedLists(slots, before, [GrownList(v) for v in before])
    for slot, value in zip(slots, found.made, strict=True):
        slot.set(value)
    try:
        until_typed(found.made, stage)
    except BaseException:
        found.back()
        raise
    return found


def until_typed(made: Sequence[GrownList], stage: Callable[[], None]) -> None:
    """Run ``stage`` until the types of what lists hold are known."""
    for passes in range(1, PASSES + 1):
        try:
            stage()
        except Untyped as error:
            if passes == PASSES or not any(error.grown is m for m in made):
                raise
            error.grown.prepare()
        else:
            return


def retyped(stage: Callable[[], None]) -> None:
    """Run ``stage``, again if it appends values of other types to a list than before."""
    for passes in range(1, PASSES + 1):
        try:
            stage()
        except Untyped as error:
            if passes == PASSES or trial() is not None:
                raise
            error.grown.widen()
        else:
            return


def _lists(world: World, names: Sequence[str]) -> list[Slot]:
    """Return the variables, items and attributes whose lists nothing else refers to; none that the caller passed in."""
    found: list[Slot] = []
    capture = context.current()
    callers = {} if capture is None else capture.callers.containers
    for slot in [s for s in world.variables.values() if s.name in names]:
        value = slot.get()
        inside = value if isinstance(value, dict) else getattr(value, "__dict__", None)
        items = [Slot(inside, k, f"{slot.name}[{key_text(k)}]") for k in inside] if isinstance(inside, dict) else []
        found += [s for s in (slot, *items) if type(s.get()) is list and id(s.get()) not in callers]
    return [
        s
        for s in found
        if not lead_elsewhere([s.get()], [s]) and not any(s.get() is t.get() for t in found if t is not s)
    ]
