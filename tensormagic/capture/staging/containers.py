"""Lists, dictionaries and records of which data choose one: another one stands for them, so that none of these may change any more."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tensormagic.capture import context
from tensormagic.capture.refusal import values_are_there
from tensormagic.capture.staging.aliases import lead_elsewhere
from tensormagic.capture.staging.slots import UNBOUND, Slot
from tensormagic.capture.staging.trial import NeedsPython, World
from tensormagic.capture.tree import is_container, parts_in

ADVICE = "Change each of them in its branch, or bind copies of them."


@dataclass(frozen=True, eq=False)
class Chosen:
    """Containers that one name may mean, and what stands for them.

    Parameters
    ----------
    said
        That name.
    place
        Where it was bound.
    made, behind
        What stands for the containers, and these.
    contents
        What each of them held then, where nobody may change them any more.
    """

    said: str
    place: str
    made: Sequence[Any]
    behind: Sequence[Any]
    contents: Sequence[Sequence[Any]] = ()

    def check(self) -> None:
        """Raise where one of them has changed that nobody may change."""
        if any(_differ(b, parts_in(c)) for b, c in zip(self.contents, (*self.made, *self.behind), strict=False)):
            kind = type(self.behind[0]).__name__
            raise NeedsPython(
                f"{self.said} is one of several {kind}s, depending on data ({self.place}), and one of these is changed",
                ADVICE,
            )


@dataclass(frozen=True)
class May:
    """The containers that a name may mean, of those that were there before; and whether others know one of them."""

    containers: Sequence[Any]
    known: bool

    def refuse(self, slot: Slot) -> None:
        """Raise where one of several containers that others know would be bound, and Python can find out which."""
        if self.known and values_are_there():
            kind = type(self.containers[0]).__name__
            raise NeedsPython(f"{slot.said} is one of several {kind}s, depending on data", ADVICE)

    def note(self, slot: Slot, *, alone: bool = True) -> None:
        """Note that a slot holds what stands for one of them; where it is not ``alone``, another name may mean the same one."""
        capture = context.current()
        if not self.containers or capture is None:
            return
        made = list(changeable(slot.get()))
        contents = [parts_in(c) for c in (*made, *self.containers)] if self.known or not alone else ()
        capture.chosen.append(Chosen(slot.said, context.here(), made, self.containers, contents))


NOTHING = May((), known=False)


def changeable(value: Any) -> Iterator[Any]:
    """The lists, dictionaries and records in a value, itself too: what somebody else may know, and change."""
    pending = [value]
    while pending:
        found = pending.pop()
        if is_container(found):
            if not isinstance(found, tuple) and not getattr(type(found), "__dataclass_params__", _CHANGEABLE).frozen:
                yield found
            pending += parts_in(found)


class _CHANGEABLE:
    frozen = False


class Older:
    """The containers that were there before code ran.

    Parameters
    ----------
    world
        What the code can reach, as it was.
    """

    def __init__(self, world: World) -> None:
        self.known = {id(c) for c, _ in world.containers}

    def among(self, values: Iterable[Any], slots: Sequence[Slot]) -> May:
        """Those of the containers in ``values`` that were there, and whether others than ``slots`` know one."""
        found = [c for v in values if v is not UNBOUND for c in changeable(v) if self._was_there(c)]
        others = [s for s in slots if all(s.holder is not c for c in found)]
        return May(found, bool(found) and lead_elsewhere(found, others))

    def _was_there(self, container: Any) -> bool:
        return id(container) in self.known or id(getattr(container, "__dict__", None)) in self.known


class StandIns:
    """The containers that stand, in an iteration, for those that names held before it.

    Parameters
    ----------
    world
        What the loop can reach.
    """

    def __init__(self, world: World) -> None:
        self.older = Older(world)
        self.installed: dict[int, tuple[Any, Sequence[Any], Any]] = {}

    def install(self, before: Any, now: Any) -> None:
        """Note that a name holds ``now`` in place of what it held ``before`` the loop."""
        self.installed |= {id(c): (c, parts_in(c), before) for c in changeable(now)}

    def choices(
        self, slots: Mapping[Slot, tuple[Any, Any]], chosen: Iterable[Chosen], *, once: bool
    ) -> dict[Slot, tuple[May, bool]]:
        """For what slots held before the loop, and hold after an iteration: the containers that each may mean, and it alone.

        What an iteration has ``chosen`` is one of its containers; ``once`` says that there is an iteration for sure.
        """
        self._check_alone([after for _, after in slots.values()])
        made = {id(c): one.behind for one in chosen for c in one.made}
        found: dict[Slot, list[Any]] = {}
        for slot, (before, after) in slots.items():
            now = [*self._behind(changeable(after), made)] if after is not UNBOUND else []
            found[slot] = [*now, *([] if once or before is UNBOUND else changeable(before))]
        times = Counter(k for containers in found.values() for k in {id(c) for c in containers})
        return {
            slot: (self.older.among(containers, list(slots)), all(times[id(c)] == 1 for c in containers))
            for slot, containers in found.items()
        }

    def _behind(self, containers: Iterable[Any], made: Mapping[int, Iterable[Any]]) -> Iterator[Any]:
        """What containers are, or stand for."""
        for container in containers:
            if id(container) in self.installed:
                yield from changeable(self.installed[id(container)][2])
            elif id(container) in made:
                yield from self._behind(made[id(container)], made)
            else:
                yield container

    def _check_alone(self, values: Iterable[Any]) -> None:
        """Raise where two names hold one container after an iteration, and iterations change such."""
        ids = [id(c) for v in values if v is not UNBOUND for c in changeable(v)]
        if len(set(ids)) < len(ids) and any(_differ(b, parts_in(c)) for c, b, _ in self.installed.values()):
            raise NeedsPython("an iteration changes a list that has two names", ADVICE)


def _differ(before: Sequence[Any], now: Sequence[Any]) -> bool:
    return len(before) != len(now) or any(a is not b for a, b in zip(before, now, strict=True))
