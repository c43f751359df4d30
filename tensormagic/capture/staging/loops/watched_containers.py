"""Containers that stand for elements of lists on tapes: a change to one would be lost, and is refused."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tensormagic.capture import context
from tensormagic.capture.python import usercode
from tensormagic.capture.staging.trials.attributes import differs
from tensormagic.capture.staging.trials.needs_python import NeedsPython

_MUTABLE = (list, dict, set)


def watch(value: Any) -> Any:
    """Note what the containers in a value hold; return the value."""
    capture = context.current()
    if capture is not None and isinstance(value, (*_MUTABLE, tuple)):
        if isinstance(value, _MUTABLE):
            frame = usercode.user_frame()
            where = None if frame is None else usercode.span(frame)
            capture.heap.watched.append((value, value.copy(), where))
            capture.heap.listed[id(value)] = value
        for part in value.values() if isinstance(value, dict) else value:
            watch(part)
    return value


def is_watched(value: Any) -> bool:
    """Return whether a container is, or stands for, an element of such a list."""
    capture = context.current()
    return capture is not None and capture.heap.listed.get(id(value)) is value


def follow(values: Iterable[Any], made: Any) -> Any:
    """Watch a value made for one of several if one of these is watched; return it."""
    return watch(made) if isinstance(made, _MUTABLE) and any(map(is_watched, values)) else made


def refuse_changed(since: int) -> list[Any]:
    """Raise if a container noted from the number ``since`` on has changed; return these, which are not watched any more."""
    capture = context.current()
    if capture is None:
        return []
    noted, capture.heap.watched[since:] = capture.heap.watched[since:], []
    for now, before, where in noted:
        if differs(now, before):
            error = _changes()
            if where is not None:
                error.tensor_site = where  # type: ignore[attr-defined]  (of the code that may be over by now)
            raise error
    return [now for now, *_ in noted]


def refuse_grown(containers: Iterable[Any]) -> None:
    """Raise where code on trial has appended to a watched list."""
    if any(map(is_watched, containers)):
        raise _changes()


def _changes() -> NeedsPython:
    return NeedsPython(
        "a list that is an element of a list changes, and the outer one grows a data-dependent number of times",
        "Keep its values in names of their own, and append a tuple of them when they are complete.",
    )
