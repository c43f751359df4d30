"""Iterators that a staged loop advances: the items it took are gone for every other holder."""

from __future__ import annotations

import gc
import inspect
import itertools
import re
from collections.abc import Container, Iterator
from types import FrameType, GeneratorType
from typing import Any

from tensormagic.capture import context
from tensormagic.capture.inputs.stand_ins import StandIn
from tensormagic.capture.python import builtin_facts, usercode
from tensormagic.capture.staging.loops.ranges import Items
from tensormagic.capture.staging.trials.needs_python import NeedsPython
from tensormagic.capture.staging.trials.trial import refuse_taken
from tensormagic.ir.modules import is_users
from tensormagic.ir.size import Size


def refuse_held(iterator: Any) -> None:
    """Refuse to take a data-dependent number of values from an iterator that other code can go on with."""
    if is_held(iterator):
        kind = getattr(iterator, "own_class", type(iterator))
        raise NeedsPython(
            f"a loop takes a data-dependent number of values from a {kind.__name__} that also has another name",
            "Iterate over a list, or make the iterator in the `for` statement.",
        )


def is_staged(function: Any) -> bool:
    """Return whether a function is the user's code, in which it can be seen what is taken from an iterator."""
    code = getattr(getattr(function, "__func__", function), "__code__", None)
    return code is not None and is_users(code.co_filename)


_IN_FRAMES = builtin_facts.called(builtin_facts.IN_FRAMES)


def guarding_iterators(function: Any, own: Any) -> Any:
    """Return a replacement of ``own`` for code on trial that refuses to take items from iterators that existed before the trial."""
    refuse_taken(getattr(function, "__self__", None))
    if not callable(own) or any(function is one for one in _IN_FRAMES):
        return own

    def call(*args: Any, **options: Any) -> Any:
        for value in args:
            refuse_taken(value)
        return own(*args, **options)

    return call


class Counted(Items):
    """Represents ``itertools.count()``, an endless sequence of integers: a loop over it ends under a data-dependent condition."""

    def __init__(self, start: int, step: int) -> None:
        self.start = start
        self.step = step

    def count(self) -> Size:
        return _ENDLESS

    def at(self, index: Any) -> Any:
        return self.start + self.step * index

    def __iter__(self) -> Iterator[Any]:
        return map(self.at, itertools.count())


_ENDLESS = 1 << 62


def counted_by(value: Any) -> Counted | None:
    """Return the numbers of an ``itertools.count`` that nothing else holds; None for anything else."""
    if type(value) is not itertools.count:
        return None
    found = _NUMBERS.fullmatch(repr(value))  # its state cannot be read otherwise in every version of Python
    if found is None or is_held(value):
        return None
    return Counted(int(found[1]), int(found[2] or 1))


_NUMBERS = re.compile(r"count\((-?\d+)(?:, (-?\d+))?\)")


def is_held(iterator: Any, by: Any = None) -> bool:
    """Return whether code other than the holder ``by`` can take from an iterator, or from one that it takes from."""
    capture, frames = context.current(), list(_frames())
    named = {id(v) for frame in frames if not usercode.is_ours(frame) for v in frame.f_locals.values()}
    ours = {id(v) for v in (capture.heap.held if capture else None, *(f.f_locals for f in frames))}
    ours |= {id(by), id(getattr(by, "__dict__", None))}
    pending: list[tuple[Any, Any]] = [(iterator, None)]
    seen = set[int]()
    while pending:
        value, owner = pending.pop()
        ours |= {id(pending)}
        if id(value) in named or _has_other_referrers(value, ours | {id(owner)}):
            return True
        seen.add(id(value))
        owner = vars(value) if isinstance(value, StandIn) else value
        pending += zip(_sources(owner, seen), itertools.repeat(owner))
    return False


def _frames() -> Iterator[FrameType]:
    """Yield the frames of the running code; those of staged code hold the user's variables."""
    frame = inspect.currentframe()
    while frame is not None:
        yield frame
        frame = frame.f_back


def _sources(iterator: Any, seen: Container[int]) -> list[Any]:
    """Return the iterators that an iterator takes from itself."""
    held = gc.get_referents(iterator)
    held += [
        v for several in held if type(several) is tuple for v in several
    ]  # those of `zip`, which holds them in a tuple
    return [v for v in held if hasattr(type(v), "__next__") and id(v) not in seen]


def _has_other_referrers(value: Any, known: Container[int]) -> bool:
    """Return whether an object other than ``known`` ones, running frames and call arguments refers to a value."""
    found = gc.get_referrers(value)
    return any(not isinstance(r, FrameType | tuple) and id(r) not in known and not _is_package_object(r) for r in found)


def _is_package_object(value: Any) -> bool:
    return isinstance(value, GeneratorType) and value.gi_frame is not None and usercode.is_ours(value.gi_frame)
