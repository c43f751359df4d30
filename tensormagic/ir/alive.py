"""Facts about objects that are stored for as long as the objects live."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator
from functools import wraps
from typing import Generic, TypeVar

T = TypeVar("T")
K = TypeVar("K")
_UNKNOWN = object()


def once_for_each(find: Callable[[K], T]) -> Callable[[K], T]:
    """Return a cached version of a function of a class: results live as long as the class, without keeping it alive."""
    found: weakref.WeakKeyDictionary[K, T] = weakref.WeakKeyDictionary()

    @wraps(find)
    def known(one: K) -> T:
        value = found.get(one, _UNKNOWN)
        if value is _UNKNOWN:
            value = found[one] = find(one)
        return value  # type: ignore[return-value]

    return known


class Alive(Generic[T]):
    """A set of weak references to objects that several threads may change and iterate over.

    Objects are compared by identity; an iteration visits those that were in the set when it began.

    A ``WeakSet`` is not enough: an object that dies in one thread may leave the set while another thread iterates over
    it. Here the references are copied first, which the interpreter does in one step.
    """

    def __init__(self) -> None:
        self._held: weakref.WeakValueDictionary[int, T] = weakref.WeakValueDictionary()

    def add(self, one: T) -> None:
        """Add ``one`` for as long as something else keeps it alive."""
        self._held[id(one)] = one

    def discard(self, one: T) -> None:
        """Remove ``one``, if it is in the set."""
        self._held.pop(id(one), None)

    def __contains__(self, one: object) -> bool:
        return self._held.get(id(one)) is one

    def __iter__(self) -> Iterator[T]:
        return iter([one for reference in self._held.valuerefs() if (one := reference()) is not None])

    def __bool__(self) -> bool:
        return len(self._held) > 0
