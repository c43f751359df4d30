"""Aliases after branches, loops and recursion: the union of each array's possible buffers over all paths."""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tensormagic.capture.staging.branches.merged_values import Partial, is_number
from tensormagic.capture.staging.branches.slots import UNBOUND, Slot
from tensormagic.capture.staging.trials.needs_python import ForeignArrayError
from tensormagic.capture.stores.alias import Alternative, attach, beside, follow, knows, part_of, reach
from tensormagic.capture.stores.place import Buffer
from tensormagic.capture.tree import flatten
from tensormagic.capture.values.value import Tensor
from tensormagic.ir.graph import Graph
from tensormagic.ir.node import Node, topological
from tensormagic.ops.effects.checks import REQUIRE

Leaf = Tensor | None  # an array in a value; None for other leaves


def arrays_of(value: Any) -> list[Leaf]:
    """Return, for each number and array in a value, in order, its lazy array; None for numbers."""
    return [v if isinstance(v, Tensor) and v.type.form == "array" else None for v in numbers_of(value)]


def numbers_of(value: Any) -> list[Any]:
    """Return the numbers and arrays in a value, NumPy's own among them, in order."""
    return [] if value is UNBOUND else [v for v in flatten(value)[0] if is_number(v)]


def once_each(slots: Mapping[Slot, Any]) -> None:
    """Raise if two names hold views of one NumPy array: each of them would become a separate array."""
    found: dict[int, Slot] = {}
    for slot, value in slots.items():
        for leaf in [] if value is UNBOUND else flatten(value)[0]:
            if isinstance(leaf, np.ndarray) and found.setdefault(memory(leaf), slot) is not slot:
                raise ForeignArrayError(
                    f"{found[memory(leaf)].said} and {slot.said} are the same array, which is not captured",
                    "Make it with np.array, or work on a copy.",
                )


def memory(array: np.ndarray[Any, Any]) -> int:
    """Return the id of the object that owns the memory of a NumPy array."""
    while isinstance(array.base, np.ndarray):
        array = array.base
    return id(array)


def none_held(values: Iterable[Any], known: Collection[int], slot: Slot) -> None:
    """Raise if a slot would hold a view of a NumPy array that has other references; arrays are known by their ``memory``."""
    leaves = (leaf for value in values for leaf in flatten(value)[0])
    if any(isinstance(leaf, np.ndarray) and memory(leaf) in known for leaf in leaves):
        raise ForeignArrayError(
            f"{slot.said} is one array or another depending on data, and one of them is not captured",
            "Make it with np.array, or work on a copy.",
        )


def reached(leaf: Leaf) -> set[Buffer]:
    """Return the buffers that an array may share memory with."""
    return set() if leaf is None else reach(leaf.place.buffer)


def pairs(sides: Sequence[Sequence[set[Buffer]]]) -> Iterable[tuple[int, int]]:
    """Return the index pairs of values that share memory on one of several branches; each branch lists what its values reach."""
    for reaches in sides:
        for j, second in enumerate(reaches):
            yield from ((i, j) for i, first in enumerate(reaches[:j]) if first & second)


def join(values: Sequence[Tensor], known: Sequence[Iterable[Buffer]], related: Iterable[tuple[int, int]] = ()) -> None:
    """Record that each value may be a part of the buffers ``known`` for it, or of a ``related`` value, without knowing which part.

    Stores into them are refused, and they must not be read after a store into what they may be a part of.
    """
    shared = [[*buffers] for buffers in known]
    for i, j in related:
        shared[i].append(values[j].place.buffer)
        shared[j].append(values[i].place.buffer)
    arrays = ((v.place.buffer, buffers) for v, buffers in zip(values, shared, strict=True) if v.type.form == "array")
    for own in [own for own, buffers in arrays if part_of(own, buffers)]:
        follow(own)


@dataclass(frozen=True, eq=False)
class Joined:
    """Represents a number or an array that is one of several, depending on data.

    Parameters
    ----------
    value
        The lazy array or number that represents it.
    ways
        The array that it is on each branch, or None.
    places
        The places of older arrays that it may be; None where they are not known.
    beside
        Further buffers that it may be a view of in Python.
    told
        The branches on which it surely is one of the places.
    """

    value: Tensor
    ways: tuple[Leaf, ...]
    places: list[Alternative] | None = None
    beside: Sequence[Buffer] = ()
    told: Container[int] = ()

    @property
    def placed(self) -> bool:
        """Return whether it is known which of the older arrays it may be."""
        return self.places is not None and not isinstance(self.value, Partial)

    def unplaced(self, is_older: Callable[[Buffer], bool]) -> list[set[Buffer]]:
        """Return the buffers it may share memory with on each branch, except older arrays that are known exactly."""
        placed = self.placed
        return [
            {b for b in reached(leaf) if not (placed and (way in self.told or is_older(b)))}
            for way, leaf in enumerate(self.ways)
        ]

    def settle(self) -> bool:
        """Make it an alias of its places; return whether these are known and possible."""
        return self.placed and (not self.places or attach(self.value.place.buffer, self.places))

    def older(self, is_older: Callable[[Buffer], bool]) -> list[Buffer]:
        """Return the older arrays that it may be a view of, on any branch."""
        return [*filter(is_older, set[Buffer]().union(*map(reached, self.ways))), *self.beside]


def share(joined: Sequence[Joined], is_older: Callable[[Buffer], bool]) -> None:
    """Make arrays aliases of the places they are, or record what they may share memory with if the places are unknown.

    The join after branches, loops and recursive functions: a value is a part of an existing array (by
    ``is_older``), or of something it shares with another value on the same branch.
    """
    related = list(pairs([*zip(*(one.unplaced(is_older) for one in joined), strict=True)]))
    unsettled = {k for pair in related for k in pair}
    settled = [k not in unsettled and one.settle() for k, one in enumerate(joined)]
    known = [() if exact else one.older(is_older) for one, exact in zip(joined, settled, strict=True)]
    join([one.value for one in joined], known, related)
    for k in unsettled:
        if joined[k].placed:
            knows(joined[k].value.place.buffer, joined[k].places or ())
    for one, exact in zip(joined, settled, strict=True):
        if not (exact and one.places):
            keep_out(one.value, *one.ways)


def keep_out(value: Tensor, *leaves: Leaf) -> None:
    """Refuse stores into ``value`` if they are refused for one of the arrays it may be."""
    own = value.place.buffer
    found = [text for leaf in leaves if leaf is not None for text in leaf.place.buffer.alias.beside]
    if value.type.form == "array":
        beside(own, *(text for text in dict.fromkeys(found) if text not in own.alias.beside))


def writeable(*numbers: Any) -> bool | None:
    """Return whether an array that is one of these may be stored into; None if that is data-dependent."""
    found = {v.place.writeable for v in numbers if isinstance(v, Tensor) and v.type.form == "array"}
    found |= {bool(v.flags.writeable) for v in numbers if isinstance(v, np.ndarray)}
    return found.pop() if len(found) == 1 else None if found else True


def lost(results: Iterable[Node], known: set[Node]) -> str | None:
    """Return a message about a value that is lost when ``results`` are computed after ``known`` ones; None if there is none."""
    pending, seen = [list(results)], set[Graph]()
    while pending:
        for node in topological(pending.pop(), stop=lambda n: n in known):
            if node.op is REQUIRE and node["error"] == "capture":
                return str(node["message"])
            graphs = [g for g in node.params.values() if isinstance(g, Graph) and g not in seen]
            seen.update(graphs)
            pending += [list(g.results) for g in graphs]
    return None


class Iterations:
    """Finds what the values that a loop carries may share memory with at the beginning of an iteration, iteration by iteration.

    Parameters
    ----------
    is_known
        Whether an array made before the loop is known to others than what the loop carries.
    """

    def __init__(self, is_known: Callable[[Buffer], bool]) -> None:
        self.is_known = is_known
        self.older: dict[Any, set[Buffer]] = {}
        self.related: set[tuple[Any, Any]] = set()
        self.writeable: dict[Any, bool | None] = {}

    def install(self, given: dict[Any, Tensor]) -> None:
        """Let stand-ins share memory as known so far, and be read-only if they must."""
        for key, value in given.items():
            value.place.buffer.writeable = self.writeable.get(key, True)
        numbers = {key: k for k, key in enumerate(given)}
        related = [(numbers[a], numbers[b]) for a, b in self.related if a in numbers and b in numbers]
        join([*given.values()], [self.older.get(k, ()) for k in given], related)

    def learn(self, before: dict[Any, Leaf], given: dict[Any, Tensor], after: dict[Any, Leaf], opened: int) -> bool:
        """Add what arrays share that are carried ``before`` the loop and ``after`` an iteration; return whether there was anything new.

        ``opened`` is when the iteration began, in the count of buffers.
        """
        keys = [*given]
        own = {t.place.buffer for t in given.values()}
        sides = [[reached(held.get(k)) for k in keys] for held in (before, after)]
        size = self._size()
        known_writeable = dict(self.writeable)
        for key in keys:
            first, last = before.get(key), after.get(key)
            kept = last is not None and last.place.buffer is given[key].place.buffer
            self.writeable[key] = writeable(first, None if kept else last)
        for k, (key, *reaches) in enumerate(zip(keys, *sides, strict=True)):
            old = {b for b in set().union(*reaches) if b.born < opened and b not in own}
            known = self.older.setdefault(key, set())
            known |= {b for b in old - known if self.is_known(b)}
            for side in sides:
                side[k] = side[k] - known  # whatever may be one of these is notified of stores there
        self.related.update((keys[i], keys[j]) for i, j in pairs(sides))
        return self._size() > size or any(known_writeable.get(k, True) != w for k, w in self.writeable.items())

    def _size(self) -> int:
        return sum(map(len, self.older.values())) + len(self.related)
