"""Containers that stand for elements of lists whose elements lie on tapes: a change of one would be lost, and is refused."""

from __future__ import annotations

from typing import Any

from tensormagic.capture import context
from tensormagic.capture.staging.attributes import differs
from tensormagic.capture.staging.needs_python import NeedsPython

_MUTABLE = (list, dict, set)


def watch(value: Any) -> Any:
    """Note what the containers in a value hold; gives the value."""
    capture = context.current()
    if capture is not None and isinstance(value, (*_MUTABLE, tuple)):
        if isinstance(value, _MUTABLE):
            capture.heap.watched.append((value, value.copy()))
        for part in value.values() if isinstance(value, dict) else value:
            watch(part)
    return value


def refuse_changed(since: int) -> None:
    """Raise where one of those noted from the number ``since`` on has changed; they are not looked at any more."""
    capture = context.current()
    if capture is None:
        return
    noted, capture.heap.watched[since:] = capture.heap.watched[since:], []
    if any(differs(now, before) for now, before in noted):
        raise NeedsPython(
            "a list that is an element of a list changes, and the outer one grows a data-dependent number of times",
            "Keep its values in names of their own, and append a tuple of them when they are complete.",
        )
