"""Finds references to an array: whether a name that a loop both stores into and rebinds is the only one."""

from __future__ import annotations

import gc
import inspect
import sys
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from types import CodeType, FrameType, FunctionType, ModuleType
from typing import Any

import numpy as np

from tensormagic.capture import context
from tensormagic.capture.inputs.notebook_names import content
from tensormagic.capture.staging.branches.slots import Slot
from tensormagic.capture.staging.syntax.source import is_part
from tensormagic.capture.stores.alias import reach
from tensormagic.capture.stores.place import Buffer, Place
from tensormagic.capture.values.value import Tensor
from tensormagic.ir.modules import is_users, module_of
from tensormagic.ops.effects.checks import REQUIRE
from tensormagic.ops.leaf import INPUT

_DEPTH = 6  # depth of nested containers
_MOST = 1_000_000  # objects that are visited, at most
_NUMBERS = {np.dtype(c).type for c in "?bhilqBHILQefdFD"}
_ATOMS = {int, float, complex, bool, str, bytes, type(None), np.ndarray, ModuleType, CodeType, FrameType, *_NUMBERS}
_ARRAYS = (Tensor, Place)
# No object of these classes keeps the user's arrays in its attributes.
_TESTS = {"_pytest", "pytest", "pluggy", "hypothesis"}
_LIBRARIES = {"numpy", "tensormagic", "builtins", "IPython", "ipykernel", *_TESTS}
# Our own modules, whose objects hold no value of the user's.
_MACHINERY = {
    "tensormagic.capture.context",
    "tensormagic.capture.inputs.namespace",
    "tensormagic.capture.staging.trials.trial",
}


@contextmanager
def holding(value: Any) -> Generator[None]:
    """Record, for the block, that the sequence being iterated over references its arrays, without any variable for it."""
    capture = context.current()
    if capture is None:
        yield
        return
    capture.heap.held.append(value)
    try:
        yield
    finally:
        capture.heap.held.pop()


def is_own(buffer: Buffer, slots: Sequence[Slot], held: Sequence[Any] = ()) -> bool:
    """Return whether an array was made by the captured code and is reachable only through the variables ``slots``.

    ``held`` are further objects to search, beside variables and sequences being iterated over.
    """
    parts, capture = reach(buffer), context.current()
    if capture is None or not all(map(_was_made, parts)):
        return False
    return not _lead_to([*held, *capture.heap.held, *_others(slots)], parts, slots)


def _was_made(buffer: Buffer) -> bool:
    first = buffer.first
    while first.op is REQUIRE:
        first = first.args[0]
    given = (
        first.op is INPUT and bool(buffer.name) and not buffer.alias.from_region
    )  # an argument, to which the caller may hold a reference
    return not (given or buffer.array is not None or buffer.shared or buffer.alias.beside)


def lead_elsewhere(wanted: Sequence[Any], slots: Sequence[Slot]) -> bool:
    """Return whether a ``wanted`` object is reachable by more than the variables ``slots``: from an iterated sequence, or a caller."""
    capture = context.current()
    if capture is not None and any(id(w) in capture.callers.containers for w in wanted):
        return True
    held = () if capture is None else capture.heap.held
    return _lead_to([*held, *_others(slots)], wanted, slots)


def _others(slots: Sequence[Slot]) -> Iterator[Any]:
    """Yield the values of the running code's variables, except ``slots``."""
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
            own = own and is_part(frame.f_code)
        frame = frame.f_back


def _lead_to(values: Iterable[Any], wanted: Iterable[Any], slots: Sequence[Slot]) -> bool:
    """Return whether values lead to a ``wanted`` object through nested containers; True if there are too many to search."""
    goals = {id(w) for w in wanted}
    seen = {id(s.holder) for s in slots}
    level = list(values)
    for _ in range(_DEPTH + 1):
        inside: list[Any] = []
        for value in level:
            if type(value) in _ATOMS or (key := id(value)) in seen:
                continue
            seen.add(key)
            if key in goals:
                return True
            if isinstance(value, _ARRAYS):
                if _reaches(value, goals):
                    return True
            elif id(getattr(value, "__dict__", None)) not in seen:
                inside += () if type(value) is list and _leads_nowhere(value, goals) else _parts(value, seen)
        level = inside
        if len(seen) + len(level) > _MOST:
            return True
    return False


def _leads_nowhere(values: list[Any], goals: set[int]) -> bool:
    """Return whether a list leads to no goal because it holds only numbers and unaliased arrays: a quick check of all at once."""
    kinds = set(map(type, values)) - _ATOMS
    if not all(issubclass(k, Tensor) for k in kinds) or not goals.isdisjoint(map(id, values)):
        return False
    buffers = {v.place.buffer for v in values if type(v) in kinds}
    return goals.isdisjoint(map(id, buffers)) and not any(b.alias.of for b in buffers)


def _reaches(value: Tensor | Place, goals: set[int]) -> bool:
    """Return whether an array may share memory with one of the goals."""
    buffer = (value if isinstance(value, Place) else value.place).buffer
    return id(buffer) in goals or (bool(buffer.alias.of) and not goals.isdisjoint(map(id, reach(buffer))))


def _parts(value: Any, seen: set[int]) -> Iterable[Any]:
    """Return the objects that a container, an iterator, a function or an object of the user's holds."""
    if isinstance(value, dict):
        return list(value.values())
    if isinstance(value, list | tuple | set):
        return value
    if isinstance(value, FunctionType):
        return [*(value.__defaults__ or ()), *(content(c) for c in value.__closure__ or () if id(c) not in seen)]
    if isinstance(value, type):
        return [*vars(value).values(), *value.__bases__] if _is_users_class(value) else ()
    module = module_of(type(value))
    if module.startswith("tensormagic.capture."):  # rows that are iterated over, ``x.flat``
        return gc.get_referents(value) if module not in _MACHINERY else ()
    own = module == "builtins" or module.partition(".")[0] not in _LIBRARIES
    return gc.get_referents(value) if own else ()  # of bound methods and generators too


_NOT_USERS = (_LIBRARIES - {"builtins"}) | (sys.stdlib_module_names - {"__main__", "builtins"})


def _is_users_class(value: type) -> bool:
    """Return whether a class may keep the user's arrays: a class made by Python code, and not a library's."""
    return bool(value.__flags__ & 1 << 9) and value.__module__.partition(".")[0] not in _NOT_USERS
