"""A set of what is still alive, which several threads may add to and go over."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Iterator
from typing import Generic, TypeVar

T = TypeVar("T")


class Alive(Generic[T]):
    """Weak references to objects; going over them goes over those that were there when that began."""

    def __init__(self) -> None:
        self._held: weakref.WeakSet[T] = weakref.WeakSet()
        self._lock = threading.RLock()

    def add(self, one: T) -> None:
        """Have ``one``, as long as somebody else has it."""
        with self._lock:
            self._held.add(one)

    def discard(self, one: T) -> None:
        """Be without ``one``."""
        with self._lock:
            self._held.discard(one)

    def __contains__(self, one: object) -> bool:
        return one in self._held

    def __iter__(self) -> Iterator[T]:
        with self._lock:
            return iter(list(self._held))

    def __bool__(self) -> bool:
        return len(self._held) > 0
