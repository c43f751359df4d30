"""Who else knows an array: whether a name that a loop both stores into and binds anew is the only one that reaches it."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Sequence
from types import FrameType, FunctionType
from typing import Any

from tensormagic.capture import context
from tensormagic.capture.staging.sharing import reach
from tensormagic.capture.staging.source import PART_NAME, is_users
from tensormagic.capture.staging.trial import Slot
from tensormagic.capture.stores.place import Buffer
from tensormagic.capture.value import Tensor
from tensormagic.ops.checks import REQUIRE
from tensormagic.ops.leaf import INPUT

_DEPTH = 6  # of containers in containers


def is_own(buffer: Buffer, slots: Sequence[Slot]) -> bool:
    """Whether an array was made by the code that is captured, and is reached by the variables ``slots`` alone."""
    parts = reach(buffer)
    if context.current() is None or not all(map(_was_made, parts)):
        return False
    holders = {id(s.holder) for s in slots}
    return not any(_leads_to(value, b, holders, _DEPTH) for value in _others(slots) for b in parts)


def _was_made(buffer: Buffer) -> bool:
    first = buffer.first
    while first.op is REQUIRE:
        first = first.args[0]
    given = first.op is INPUT and bool(buffer.name)  # an argument, which whoever calls may know
    return not (given or buffer.array is not None or buffer.shared or buffer.overlaps)


def is_held_elsewhere(value: Any, slots: Sequence[Slot]) -> bool:
    """Whether more than the variables ``slots`` lead to an object."""
    holders = {id(s.holder) for s in slots}
    return any(_leads_to(v, value, holders, _DEPTH) for v in _others(slots))


def _others(slots: Sequence[Slot]) -> Iterator[Any]:
    """What the variables of the running code hold, but for ``slots``."""
    frame: FrameType | None = inspect.currentframe()
    names = {s.name for s in slots}
    keys = {(id(s.holder), s.key) for s in slots}
    own, seen = True, set[int]()
    while frame is not None:
        if is_users(frame.f_code.co_filename):
            space = frame.f_globals
            if frame.f_locals is not space:
                yield from (v for n, v in frame.f_locals.items() if not (own and n in names))
            if id(space) not in seen:
                seen.add(id(space))
                yield from (v for n, v in list(space.items()) if (id(space), n) not in keys)
            own = own and frame.f_code.co_name == PART_NAME
        frame = frame.f_back


def _leads_to(value: Any, buffer: Any, holders: set[int], depth: int) -> bool:
    if value is buffer:
        return True
    if id(value) in holders or id(getattr(value, "__dict__", None)) in holders:
        return False
    if isinstance(value, Tensor):
        return isinstance(buffer, Buffer) and buffer in reach(value.place.buffer)
    parts: list[Any] = []
    if isinstance(value, dict):
        parts = list(value.values())
    elif isinstance(value, list | tuple | set):
        parts = list(value)
    elif isinstance(value, FunctionType):
        cells = [c for c in value.__closure__ or () if id(c) not in holders]
        parts = [*(value.__defaults__ or ()), *(_content(c) for c in cells)]
    elif is_users_object(value):
        parts = list(vars(value).values())
    return depth > 0 and any(_leads_to(v, buffer, holders, depth - 1) for v in parts)


def _content(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # not filled yet
        return None


def is_users_object(value: Any) -> bool:
    """Whether a value is an object whose attributes may be the user's."""
    module = type(value).__module__.partition(".")[0]
    return (
        hasattr(value, "__dict__")
        and not isinstance(value, type)
        and module not in {"numpy", "tensormagic", "builtins", "IPython"}
    )
