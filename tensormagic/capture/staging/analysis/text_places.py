"""Places in arrays as their indices are written: one place written in two ways is one, as ``x[i + 1]`` and ``x[1 + i]``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, cast

SIZE = "size"  # the length of an unknown array: an index is counted from its end then


class Linear(NamedTuple):
    """Represents an integer as a linear combination of unknown ones plus a number."""

    times: frozenset[tuple[Any, int]]
    number: int

    def plus(self, other: Linear, factor: int = 1) -> Linear:
        """Return the sum of this integer and ``factor`` times another."""
        times = dict(self.times)
        for symbol, count in other.times:
            times[symbol] = times.get(symbol, 0) + count * factor
        return linear(times, self.number + other.number * factor)

    @property
    def known(self) -> int | None:
        """Return the integer if it has no unknown part; else None. One below zero counts from the end of an array."""
        return None if self.times else self.number


def linear(times: Mapping[Any, int], number: int) -> Linear:
    """Return the integer that is the sum of ``number`` and so many times each symbol."""
    return Linear(frozenset((s, n) for s, n in times.items() if n), number)


ZERO = linear({}, 0)
_END = frozenset({(SIZE, 1)})


class At(NamedTuple):
    """Represents one index along an axis."""

    place: Linear


class Between(NamedTuple):
    """Represents a slice along an axis; without ``upper``, to its end."""

    lower: Linear
    upper: Linear | None


class New(NamedTuple):
    """Represents a new axis."""

    new: str = "axis"


FULL = Between(ZERO, None)
Item = At | Between | New


class Place(NamedTuple):
    """Represents a place in an array, axis by axis; trailing axes that are left out are read whole."""

    items: tuple[Item, ...]

    @property
    def whole(self) -> bool:
        """Return whether the place is the whole array."""
        return not self.items

    def may_be_whole(self, indices: Sequence[Any]) -> bool:
        """Return whether a slice may cover a whole axis.

        Captured code knows no more of a bound that depends on an outer loop's index.
        """
        ends = [i.upper for i in self.items if isinstance(i, Between) and i.lower == ZERO]
        return any(
            u is not None and (u.known is None or u.known >= 0) and not any(s in indices for s, _ in u.times)
            for u in ends
        )


def place(items: list[Item]) -> Place:
    """Return a place, without the trailing axes that are read whole."""
    while items and items[-1] == FULL:
        items = items[:-1]
    return Place(tuple(items))


def at(index: Linear) -> At:
    """Return one index along an axis."""
    return At(linear({}, index.number) if index.times == _END and index.number < 0 else index)


def between(lower: Linear | None, upper: Linear | None) -> Between:
    """Return a slice along an axis."""
    if upper is not None and upper.times == _END and upper.number <= 0:
        upper = linear({}, upper.number) if upper.number else None
    return Between(lower or ZERO, upper)


def adds_axes(place: Any) -> bool:
    """Return whether a place is the whole array, apart from new axes of length 1."""
    return isinstance(place, Place) and all(i == FULL or isinstance(i, New) for i in place.items)


def within(outer: Any, inner: Any) -> Place | None:
    """Return the place in an array of a place in a view of it; None where that is not known."""
    if not isinstance(outer, Place) or not isinstance(inner, Place):
        return None
    found, rest = list[Item](), list(inner.items)
    for item in outer.items:
        while not isinstance(item, At) and rest and isinstance(rest[0], New):
            found.append(rest.pop(0))
        if isinstance(item, At) or not rest:
            found.append(item)
        elif isinstance(item, New):
            first = rest.pop(0)
            if first != FULL:
                return None
            found.append(item)
        else:
            one = _within(item, cast("At | Between", rest.pop(0)))
            if one is None:
                return None
            found.append(one)
    return place(found + rest)


def _within(outer: Between, inner: At | Between) -> At | Between | None:
    if isinstance(inner, At):
        index = _moved(outer, inner.place)
        return None if index is None else at(index)
    lower = _moved(outer, inner.lower)
    upper = outer.upper if inner.upper is None else _moved(outer, inner.upper)
    return None if lower is None or (inner.upper is not None and upper is None) else Between(lower, upper)


def _moved(outer: Between, index: Linear) -> Linear | None:
    """Return the index in the array for an index into a slice: counted from its beginning, or from its end."""
    if index.known is None or index.known >= 0:
        return _plus(outer.lower, index)
    return index if outer.upper is None else _plus(outer.upper, index)


def _plus(begin: Linear, index: Linear) -> Linear | None:
    """Return the sum of two integers; None if it would count from the other end of the axis."""
    found = begin.plus(index)
    crosses = begin.known is not None and found.known is not None and (found.known < 0) != (begin.known < 0)
    return None if crosses else found
