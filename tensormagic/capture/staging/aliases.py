"""Who else knows an array: whether a name that a loop both stores into and binds anew is the only one that reaches it."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator, Sequence
from types import FrameType, FunctionType
from typing import Any

import numpy as np

from tensormagic.capture import context
from tensormagic.capture.staging.sharing import reach
from tensormagic.capture.staging.source import PART_NAME, is_users
from tensormagic.capture.staging.trial import Slot
from tensormagic.capture.stores.place import Buffer
from tensormagic.capture.value import Tensor
from tensormagic.ops.effects.checks import REQUIRE
from tensormagic.ops.leaf import INPUT

_DEPTH = 6  # of containers in containers
_MOST = 1_000_000  # objects that are looked at
_ATOMS = {int, float, complex, bool, str, bytes, type(None), np.ndarray}
# Of these no object keeps the user's arrays in its attributes.
_LIBRARIES = {"numpy", "tensormagic", "builtins", "IPython", "ipykernel", "_pytest", "pytest", "pluggy", "hypothesis"}


def is_own(buffer: Buffer, slots: Sequence[Slot]) -> bool:
    """Whether an array was made by the code that is captured, and is reached by the variables ``slots`` alone."""
    parts = reach(buffer)
    if context.current() is None or not all(map(_was_made, parts)):
        return False
    return not _lead_to(_others(slots), parts, slots)


def _was_made(buffer: Buffer) -> bool:
    first = buffer.first
    while first.op is REQUIRE:
        first = first.args[0]
    given = first.op is INPUT and bool(buffer.name)  # an argument, which whoever calls may know
    return not (given or buffer.array is not None or buffer.shared or buffer.overlaps)


def is_held_elsewhere(value: Any, slots: Sequence[Slot]) -> bool:
    """Whether more than the variables ``slots`` lead to an object."""
    return _lead_to(_others(slots), [value], slots)


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


def _lead_to(values: Iterable[Any], wanted: Iterable[Any], slots: Sequence[Slot]) -> bool:
    """Whether values lead to one of the ``wanted`` objects, through containers in containers; very many values are taken to."""
    goals = {id(w) for w in wanted}
    seen = {id(s.holder) for s in slots}
    level = list(values)
    for _ in range(_DEPTH + 1):
        inside: list[Any] = []
        for value in level:
            if type(value) in _ATOMS or id(value) in seen:
                continue
            seen.add(id(value))
            if id(value) in goals:
                return True
            if isinstance(value, Tensor):
                if not goals.isdisjoint(map(id, reach(value.place.buffer))):
                    return True
            elif id(getattr(value, "__dict__", None)) not in seen:
                inside += _parts(value, seen)
        level = inside
        if len(seen) + len(level) > _MOST:
            return True
    return False


def _parts(value: Any, seen: set[int]) -> Iterable[Any]:
    """What a container, a function or an object of the user's holds."""
    if isinstance(value, dict):
        return list(value.values())
    if isinstance(value, list | tuple | set):
        return value
    if isinstance(value, FunctionType):
        return [*(value.__defaults__ or ()), *(_content(c) for c in value.__closure__ or () if id(c) not in seen)]
    return list(vars(value).values()) if is_users_object(value) else ()


def _content(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # not filled yet
        return None


def is_users_object(value: Any) -> bool:
    """Whether a value is an object whose attributes may be the user's."""
    module = type(value).__module__.partition(".")[0]
    return hasattr(value, "__dict__") and not isinstance(value, type) and module not in _LIBRARIES
