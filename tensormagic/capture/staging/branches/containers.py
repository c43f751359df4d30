"""Lists, dictionaries and records chosen by a data-dependent condition: a stand-in represents them, and none of these may change."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tensormagic.capture import context
from tensormagic.capture.errors.refusal import values_are_there
from tensormagic.capture.numbers.deferred import parts_of
from tensormagic.capture.python import usercode
from tensormagic.capture.staging.branches.slots import UNBOUND, Slot
from tensormagic.capture.staging.loops.watched_containers import follow
from tensormagic.capture.staging.trials.aliases import lead_elsewhere
from tensormagic.capture.staging.trials.needs_python import NeedsPython
from tensormagic.capture.staging.trials.trial import Outcome
from tensormagic.capture.staging.trials.world import World
from tensormagic.capture.tree import is_container, items_of, parts_in
from tensormagic.ir.node import Node

ADVICE = "Change each in its own branch, or work on copies."


Way = tuple[Any, Node, Any]  # the stand-in of a container, a condition, and the container that it then is


@dataclass(frozen=True, eq=False)
class ChosenContainers:
    """Represents containers one of which a name refers to, and their stand-in.

    Parameters
    ----------
    said
        The name.
    place
        Where it was bound.
    made, behind
        The stand-ins, and the containers.
    contents
        The containers' contents at that time.
    known
        Whether one of them has, or may have, other references: none may change any more.
    ways
        Stand-ins by condition, with the container each is then; as far as that is known.
    """

    said: str
    place: str
    made: Sequence[Any]
    behind: Sequence[Any]
    contents: Sequence[Sequence[Any]]
    known: bool
    ways: Sequence[Way] = ()

    @property
    def changed(self) -> bool:
        """Return whether one of them holds other objects now."""
        return any(_differ(b, parts_in(c)) for b, c in zip(self.contents, (*self.made, *self.behind), strict=True))

    def check(self) -> None:
        """Raise if a container has changed that may not."""
        if self.known and self.changed:
            kind = type(self.behind[0]).__name__
            raise NeedsPython(
                f"{self.said} is one of several {kind}s, depending on data ({self.place}), and one of these is changed",
                ADVICE,
            )


@dataclass(frozen=True)
class PossibleContainers:
    """Represents the older containers that a name may refer to, and whether one of them has other references."""

    containers: Sequence[Any]
    known: bool

    def refuse(self, slot: Slot) -> None:
        """Raise if one of several containers with other references would be bound, and Python can find out which."""
        if self.known and values_are_there():
            kind = type(self.containers[0]).__name__
            raise NeedsPython(f"{slot.said} is one of several {kind}s, depending on data", ADVICE)

    def note(self, slot: Slot, sides: Sequence[tuple[Node, Any]] = (), *, alone: bool = True) -> None:
        """Record that a slot holds the stand-in of one of them; unless ``alone``, another name may refer to it, too.

        ``sides`` are its values by condition.
        """
        capture = context.current()
        if not self.containers or capture is None:
            return
        made = list(changeable(slot.get()))
        contents = [parts_in(c) for c in (*made, *self.containers)]
        known = self.known or not alone
        ways = [way for holds, side in sides for way in _conditions(slot.get(), holds, side)]
        capture.heap.chosen.append(
            ChosenContainers(slot.said, usercode.here(), made, self.containers, contents, known, ways)
        )


NOTHING = PossibleContainers((), known=False)


def _conditions(made: Any, holds: Node, side: Any) -> Iterator[Way]:
    """Yield, for each container in ``made``, the condition and the container of ``side`` that it then is."""
    if not is_container(made) or type(made) is not type(side):
        return
    inside = items_of(made), items_of(side)
    if len(inside[0]) == len(inside[1]):
        yield made, holds, side
        for one, other in zip(*inside, strict=True):
            yield from _conditions(one, holds, other)


def changeable(value: Any) -> Iterator[Any]:
    """Yield the lists, dictionaries and records in a value, itself too: these may have other references, and change."""
    pending = [value]
    while pending:
        found = pending.pop()
        pending += parts_of(found)
        if is_container(found):
            if not isinstance(found, tuple) and not getattr(type(found), "__dataclass_params__", _CHANGEABLE).frozen:
                yield found
            pending += parts_in(found)


class _CHANGEABLE:
    frozen = False


class SharedStandIns:
    """Makes one stand-in for a container that several names hold, the same for all of them."""

    def __init__(self) -> None:
        self._made: dict[tuple[int, ...], tuple[Any, Any]] = {}

    def of(self, values: tuple[Any, ...], made: Any) -> Any:
        """Return ``made`` for one of ``values``; for the same values again, the first one made."""
        if not any(found is v for v in values if v is not UNBOUND for found in changeable(v)):
            return made
        return follow(values, self._made.setdefault(tuple(map(id, values)), (made, values))[0])


class OlderContainers:
    """Represents the containers that existed before code ran.

    Parameters
    ----------
    world
        What the code can reach, as it was.
    """

    def __init__(self, world: World) -> None:
        self.known = {id(c) for c, _ in world.containers}

    def among(self, values: Iterable[Any], slots: Sequence[Slot], outcomes: Sequence[Outcome]) -> PossibleContainers:
        """Return the existing containers among ``values``, and whether one has references other than ``slots``.

        Raises
        ------
        NeedsPython
            If one of the ``outcomes`` has changed one of them; its contents are restored.
        """
        made = {id(c): one.behind for o in outcomes for one in o.chosen for c in one.made}
        inside = (c for v in values if v is not UNBOUND for c in changeable(v))
        found = [c for c in _behind(inside, made) if _is_among(c, self.known)]
        changed = {id(s.holder) for o in outcomes for s in o.slots} | {id(g) for o in outcomes for g, _ in o.grown}
        if any(_is_among(c, changed) for c in found):
            raise NeedsPython("whether a list that is changed gets another name depends on data", ADVICE)
        others = [s for s in slots if all(s.holder is not c for c in found)]
        return PossibleContainers(found, bool(found) and (_stand_for_others(found) or lead_elsewhere(found, others)))


def _is_among(container: Any, ids: set[int]) -> bool:
    """Return whether a container, or the dictionary of its attributes, is one of those with these ids."""
    return id(container) in ids or id(getattr(container, "__dict__", None)) in ids


class StandIns:
    """Represents the containers that, in an iteration, stand for those that names held before it.

    Parameters
    ----------
    world
        What the loop can reach.
    """

    def __init__(self, world: World) -> None:
        self.older = OlderContainers(world)
        self.installed: dict[int, tuple[Any, Sequence[Any], Any]] = {}

    def install(self, before: Any, now: Any) -> None:
        """Record that a name holds ``now`` in place of its value ``before`` the loop."""
        self.installed |= {id(c): (c, parts_in(c), before) for c in changeable(now)}

    def choices(
        self, slots: Mapping[Slot, tuple[Any, Any]], outcome: Outcome, *, once: bool
    ) -> dict[Slot, tuple[PossibleContainers, bool]]:
        """Return, for each slot, the containers that it may refer to, from its values before the loop and after an iteration.

        The ``outcome`` is that of the iteration; ``once``: there is surely one.
        """
        made: dict[int, Iterable[Any]] = {id(c): one.behind for one in outcome.chosen for c in one.made}
        made |= {key: list(changeable(before)) for key, (_, _, before) in self.installed.items()}
        changed = self._changed(slots, outcome, made)
        found: dict[Slot, list[Any]] = {}
        for slot, (before, after) in slots.items():
            found[slot] = [*_behind(_containers_in(after), made), *([] if once else _containers_in(before))]
        names = {
            id(after): {id(c) for c in found[slot]} for slot, (_, after) in slots.items()
        }  # of one container: they stay so
        times = Counter(k for containers in names.values() for k in containers)
        may = {slot: self.older.among(containers, list(slots), [outcome]) for slot, containers in found.items()}
        if any(may[slot].known and any(before is b for b in changed) for slot, (before, _) in slots.items()):
            raise NeedsPython("iterations change a list that may be a different one each time", ADVICE)
        return {slot: (may[slot], all(times[id(c)] == 1 for c in containers)) for slot, containers in found.items()}

    def _changed(
        self, slots: Mapping[Slot, tuple[Any, Any]], outcome: Outcome, made: Mapping[int, Iterable[Any]]
    ) -> list[Any]:
        """Return the existing containers with a single name that the iteration changes."""
        changed = [before for c, parts, before in self.installed.values() if _differ(parts, parts_in(c))]
        changed += _behind((c for one in outcome.chosen if one.changed for c in one.behind), made)
        if changed and (not _have_one_name(changed, slots) or self.older.among(changed, list(slots), ()).known):
            raise NeedsPython("an iteration changes a list that has two names", ADVICE)
        return changed


def _containers_in(value: Any) -> Iterable[Any]:
    """Return the containers and objects in what a slot holds."""
    return () if value is UNBOUND else changeable(value)


def _have_one_name(changed: Sequence[Any], slots: Mapping[Slot, tuple[Any, Any]]) -> bool:
    """Return whether each ``changed`` container was in one slot, and after the iteration no two slots share a container."""
    after = [id(c) for _, value in slots.values() for c in _containers_in(value)]
    before = Counter(id(c) for value, _ in slots.values() for c in _containers_in(value))
    if len(set(after)) < len(after) or any(before[id(c)] > 1 for v in changed for c in _containers_in(v)):
        return False
    return not _stand_for_others(changed)


def _behind(containers: Iterable[Any], made: Mapping[int, Iterable[Any]]) -> Iterator[Any]:
    """Yield the containers themselves, or those that they stand for: ``made`` has these by the stand-in's id."""
    for container in containers:
        if id(container) in made:
            yield from _behind(made[id(container)], made)
        else:
            yield container


def _stand_for_others(values: Iterable[Any]) -> bool:
    """Return whether a container in ``values`` stands for several with other references, or is one of these."""
    capture = context.current()
    made = {
        id(c)
        for one in (capture.heap.chosen if capture is not None else ())
        if one.known
        for c in (*one.made, *one.behind)
    }
    return any(id(c) in made for v in values if v is not UNBOUND for c in changeable(v))


def _differ(before: Sequence[Any], now: Sequence[Any]) -> bool:
    return len(before) != len(now) or any(a is not b for a, b in zip(before, now, strict=True))
