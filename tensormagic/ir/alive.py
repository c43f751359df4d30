"""What is known of objects as long as they are alive."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator
from functools import wraps
from typing import Generic, TypeVar

T = TypeVar("T")
K = TypeVar("K")
_UNKNOWN = object()


def once_for_each(find: Callable[[K], T]) -> Callable[[K], T]:
    """A function of a class, whose result is kept as long as the class is there: caches must not keep the user's classes alive."""
    found: weakref.WeakKeyDictionary[K, T] = weakref.WeakKeyDictionary()

    @wraps(find)
    def known(one: K) -> T:
        value = found.get(one, _UNKNOWN)
        if value is _UNKNOWN:
            value = found[one] = find(one)
        return value  # type: ignore[return-value]

    return known


class Alive(Generic[T]):
    """A set of weak references to objects, which several threads may add to and go over.

    They are told apart by identity; going over them goes over those that were there when that began.

    A WeakSet would do but for threads: an object that ends in one of them may leave the set while another goes over it. All references of
    a dictionary are copied in one step of the interpreter.
    """

    def __init__(self) -> None:
        self._held: weakref.WeakValueDictionary[int, T] = weakref.WeakValueDictionary()

    def add(self, one: T) -> None:
        """Have ``one``, as long as somebody else has it."""
        self._held[id(one)] = one

    def discard(self, one: T) -> None:
        """Be without ``one``."""
        self._held.pop(id(one), None)

    def __contains__(self, one: object) -> bool:
        return self._held.get(id(one)) is one

    def __iter__(self) -> Iterator[T]:
        return iter([one for reference in self._held.valuerefs() if (one := reference()) is not None])

    def __bool__(self) -> bool:
        return len(self._held) > 0
