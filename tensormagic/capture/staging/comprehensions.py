"""Comprehensions and generator expressions: loops that fill an array, where their turns are alike."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tensormagic.capture import context
from tensormagic.capture.staging import raising
from tensormagic.capture.staging.carries import Names
from tensormagic.capture.staging.lists import FEW
from tensormagic.capture.staging.ranges import items_of
from tensormagic.capture.staging.repeating import PlainPython, staged_each
from tensormagic.capture.staging.truth import Forcing


def comprehended(iterable: Any, turn: Callable[..., Any], single: bool) -> list[Any]:
    """``[turn(item) for item in iterable]``: a loop that fills an array, where the turns are alike."""
    one = turn if single else lambda item: turn(*item)
    found = _filled(iterable, turn, one)
    if found is UNFORCED:
        with Forcing():
            return [one(item) for item in iterable]
    return [one(item) for item in iterable] if found is None else found


def generated(iterable: Any, turn: Callable[..., Any], single: bool) -> Any:
    """``(turn(item) for item in iterable)``."""
    return Generated(iterable, turn, turn if single else lambda item: turn(*item))


class Generated:
    """A generator expression: Python's, unless a function that goes over all of it at once asks for a list."""

    def __init__(self, iterable: Any, turn: Callable[..., Any], one: Callable[[Any], Any]) -> None:
        self.turn = turn
        self.one = one
        self.iterable = iterable if items_of(iterable) is not None else iter(iterable)
        self.running: Any = None

    def __iter__(self) -> Any:
        return self

    def __next__(self) -> Any:
        if self.running is None:
            self.running = map(self.one, self.iterable)
        return next(self.running)

    def whole(self) -> Any:
        """A list of everything, where it is a region that makes it; else itself."""
        found = _filled(self.iterable, self.turn, self.one) if self.running is None else None
        return self if found is None or found is UNFORCED else found


UNFORCED: list[Any] = []  # says that Python goes over something, and that what it asks for is to be computed


def _filled(iterable: Any, turn: Callable[..., Any], one: Callable[[Any], Any]) -> list[Any] | None:
    """A list of what the turns give, made by a region; None or ``UNFORCED`` where Python makes it."""
    items = items_of(iterable) if context.current() is not None else None
    count = 0 if items is None else items.count()
    if items is None or (isinstance(count, int) and count <= FEW):
        return None
    found: list[Any] = []

    def run(item: Any) -> None:
        found.append(one(item))

    run.__wrapped__ = turn  # type: ignore[attr-defined]  (what it reaches is what the user's function reaches)
    try:
        staged_each(items, run, None, Names((), (), (), (), ()), [found])
    except PlainPython:
        return None
    except Exception:  # noqa: BLE001 (Python goes over it, and meets the same error, if it is one)
        return UNFORCED
    raising.settle()
    return found
