"""Which array from before a loop each array is that the loop leaves: a number that the iterations carry says it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from tensormagic.capture.staging.branches.shared_arrays import Leaf
from tensormagic.capture.staging.loops.carries import Carry
from tensormagic.capture.stores.alias import Alternative, all_hold, places
from tensormagic.capture.stores.place import Buffer, Place
from tensormagic.ir.node import Node
from tensormagic.ir.type import python
from tensormagic.ops.form import to_form
from tensormagic.ops.leaf import constant
from tensormagic.ops.scalars import scalar

Key = Any  # an array: the slot that holds it, and its number there
_OWN = 0  # the number that stands for memory allocated in the loop


class Origins:
    """Represents which older arrays each array that a loop leaves may be.

    Parameters
    ----------
    leaves
        For each array, what it is before the loop and after an iteration, and whether the loop carries it.
    given
        The stand-ins of carried arrays, in an iteration.
    is_older
        Whether an array existed before the loop and has other references.
    ran
        Whether there is an iteration; None if there surely is one.
    """

    def __init__(
        self,
        leaves: Mapping[Key, tuple[Leaf, Leaf, bool]],
        given: Mapping[Buffer, Key],
        is_older: Callable[[Buffer], bool],
        ran: Node | None,
    ) -> None:
        self.ran = ran
        self._given = given
        self._is_older = is_older
        self._carried = {key for key, (_, _, carried) in leaves.items() if carried}
        self._find(leaves)
        if any(may and _OWN in may and len(may) > 1 and self._moves(key) for key, may in self._may.items()):
            begun = {first.place.buffer for first, _, carried in leaves.values() if carried and first is not None}
            self._is_older = lambda b: b in begun or is_older(b)  # arrays that change places in the loop, too
            self._find(leaves)
        self._codes: dict[Key, Carry] = {}
        for key in leaves:
            if self._may[key] is not None and not self._is_plain(key):
                self._code(key)

    def _find(self, leaves: Mapping[Key, tuple[Leaf, Leaf, bool]]) -> None:
        """Find what each array may be."""
        self._places: list[Place] = []
        self._begins = {key: self._numbered(first, self._is_older, parts=True) for key, (first, _, _) in leaves.items()}
        self._ends = {
            key: self._numbered(last, lambda b: b in self._given or self._is_older(b))
            for key, (_, last, _) in leaves.items()
        }
        self._may = self._found()

    def _moves(self, key: Key) -> bool:
        """Return whether an iteration may leave an array that another name, or entry, had before it."""
        return any(not isinstance(one, int) and one != key for _, one in self._ends[key] or ())

    def _numbered(
        self, leaf: Leaf, is_older: Callable[[Buffer], bool], *, parts: bool = False
    ) -> list[tuple[Node | None, Any]] | None:
        """Return what an array may be, with conditions: the number of an older place, or the key of a carried array.

        None where that is not known.
        """
        found = [] if leaf is None else places(leaf.place, is_older)
        if found is None or not (parts or all(a.place.parent is None for a in found)):
            return None  # a view taken in an iteration is the iteration's own
        return [(a.holds, self._given.get(a.place.buffer) or self._number(a.place)) for a in found]

    def _number(self, place: Place) -> int:
        known = next((k for k, p in enumerate(self._places) if p is place or _is_all_of(p, place)), None)
        if known is None:
            self._places.append(place)
        return len(self._places) if known is None else known + 1

    def _found(self) -> dict[Key, set[int] | None]:
        """Return the numbers that each array may have after an iteration, or before the first one; None where they are not known."""
        may: dict[Key, set[int] | None] = {key: set() for key in self._ends}
        changed = True
        while changed:
            changed = False
            for key, was in may.items():
                now = self._after(key, may)
                if now != was:
                    may[key], changed = now, True
        return may

    def _after(self, key: Key, may: Mapping[Key, set[int] | None]) -> set[int] | None:
        begins, ends = self._begins[key], self._ends[key]
        if may[key] is None or begins is None or ends is None:
            return None
        found = set(may[key] or ())
        for among in [begins, ends] if self._carried_or_none(key) else [ends]:
            found |= set() if _is_one_for_sure(among) else {_OWN}
            for _, one in among:
                if isinstance(one, int):
                    found.add(one)
                elif (theirs := may[one]) is None:
                    return None
                else:
                    found |= theirs
        return found

    def _carried_or_none(self, key: Key) -> bool:
        """Return whether it matters what an array is before the loop."""
        return key in self._carried or self.ran is not None

    def _is_plain(self, key: Key) -> bool:
        """Return whether no number need be carried for an array: each iteration leaves the same one, or all leave one."""
        may, ends = self._may[key], self._ends[key]
        return not ends or len(may or ()) == 1 or (ends[0][0] is None and isinstance(ends[0][1], int))

    def _code(self, key: Key) -> Carry:
        """Return the carry of the number that says which array it is, from iteration to iteration."""
        if key not in self._codes:
            start = _number_that_holds((holds, constant(one)) for holds, one in self._begins[key] or ())
            carry = self._codes[key] = Carry("which array it is", start, python(int))
            carry.fresh()
            ends = [
                (h, constant(one) if isinstance(one, int) else self._stand_in(one)) for h, one in self._ends[key] or ()
            ]
            carry.end = _number_that_holds(ends)
        return self._codes[key]

    def _stand_in(self, key: Key) -> Node:
        made = self._code(key).stand_in
        assert made is not None  # noqa: S101 (it was made there)
        return made

    @property
    def carries(self) -> list[Carry]:
        """Return the carries that the loop needs for these numbers."""
        return [*self._codes.values()]

    def is_exact(self, key: Key) -> bool:
        """Return whether an array is surely an older one, and so has no memory of its own."""
        may = self._may.get(key)
        return may is not None and _OWN not in may

    def of(self, key: Key, ends: Mapping[Carry, Node]) -> list[Alternative] | None:
        """Return the places that an array may be after the loop; None if they are not known."""
        may = self._may.get(key)
        if may is None:
            return None
        if key in self._codes:
            code = ends[self._codes[key]]
            return [
                Alternative(to_form(scalar.equal(code, constant(k)), "python"), self._places[k - 1])
                for k in sorted(may - {_OWN})
            ]
        if len(may) == 1:
            return [Alternative(None, self._places[k - 1]) for k in may - {_OWN}]
        found = [Alternative(self.ran, self._places[one - 1]) for _, one in self._ends[key] or ()]
        if self.ran is not None:
            none = to_form(scalar.logical_not(self.ran), "python")
            found += [Alternative(all_hold(none, h), self._places[one - 1]) for h, one in self._begins[key] or ()]
        return found


def _is_all_of(known: Place, place: Place) -> bool:
    return known.parent is None and place.parent is None and known.buffer is place.buffer


def _is_one_for_sure(among: Sequence[tuple[Node | None, Any]]) -> bool:
    """Return whether one of the conditions surely holds."""
    holds = [h for h, _ in among]
    return None in holds or any(to_form(scalar.logical_not(h), "python") in holds for h in holds if h is not None)


def _number_that_holds(among: Iterable[tuple[Node | None, Node]]) -> Node:
    """Return a node with the number whose condition holds."""
    found = constant(_OWN)
    for holds, number in among:
        found = number if holds is None else scalar.where(holds, number, found)
    return to_form(found, "python")
