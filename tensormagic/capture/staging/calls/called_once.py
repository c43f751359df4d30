"""Code that is called once for all elements or examples, where Python calls it for each: it may only compute.

What it changes in lists, dictionaries and objects, and what it draws from Python's random numbers, would be done only
once, and be the same for all. Where a second call changes nothing more and gives the same, all calls do.
"""

from __future__ import annotations

import io
import operator
import random
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from tensormagic.capture import context
from tensormagic.capture.foreign import side_effects
from tensormagic.capture.staging.branches.slots import Slot
from tensormagic.capture.staging.trials.needs_python import NeedsPython
from tensormagic.capture.staging.trials.world import CHECKS, World
from tensormagic.capture.stores.place import Buffer, ask_all, serials
from tensormagic.capture.tree import flatten, tensors_in
from tensormagic.capture.values.operands import node_of
from tensormagic.capture.values.value import Tensor
from tensormagic.ir.errors import CaptureError
from tensormagic.ir.node import Node

_OWN: Any = getattr(random, "_inst")  # noqa: B009 (the generator behind the functions of ``random``)


class _WorldWithRandom(World):
    """A world that also covers Python's random generators and text buffers."""

    def __init__(self, reached: Iterable[Any]) -> None:
        self.outside: dict[int, tuple[Any, Any]] = {id(_OWN): (_OWN, _state(_OWN))}
        super().__init__(reached)
        self.calls = side_effects.count_outside_classes()

    def _look_at_object(self, value: Any) -> None:
        if isinstance(value, random.Random | io.StringIO | io.BytesIO):
            self.outside[id(value)] = value, _state(value)
        super()._look_at_object(value)

    @property
    def has_effects(self) -> bool:
        """Return whether something outside of lists, dictionaries and objects has changed, or may have."""
        return side_effects.count_outside_classes() != self.calls or any(
            _state(v) != was for v, was in self.outside.values()
        )

    def found(self) -> dict[Slot, Any] | None:
        """Return what has changed; None where items were added or removed."""
        ask_all()
        try:
            return {slot: value for slot, value in self.changes().items() if slot.key != CHECKS}
        except NeedsPython:
            return None

    def was(self, slot: Slot) -> Any:
        """Return the former value of a variable or an item."""
        if (place := (id(slot.holder), slot.key)) in self.values:
            return self.values[place]
        return next(before for container, before in self.containers if container is slot.holder)[slot.key]

    def restore(self) -> None:
        """Restore everything, also random generators and text buffers."""
        super().restore()
        for value, was in self.outside.values():
            if _state(value) != was:
                _set_state(value, was)


def _state(value: Any) -> Any:
    return value.getstate() if isinstance(value, random.Random) else (value.getvalue(), value.tell())


def _set_state(value: Any, was: Any) -> None:
    if isinstance(value, random.Random):
        value.setstate(was)
        return
    value.seek(0)
    value.truncate()
    value.write(was[0])
    value.seek(was[1])


def call_once_for_all(
    run: Callable[[], Any],
    reached: Iterable[Any],
    refused: Callable[[], CaptureError],
    stored: Callable[[], Iterable[Buffer]] = tuple,
    equal: Callable[[Sequence[Node], Sequence[Node]], bool] = operator.eq,
) -> Any:
    """Return the result of ``run``, called once to represent many calls.

    Parameters
    ----------
    run
        The call.
    reached
        The user's functions involved, and their arguments.
    refused
        Makes the error for calls that would give different results.
    stored
        Called afterwards: the shared arrays into which it has stored.
    equal
        Whether values equal others that were computed differently.
    """
    capture = context.current()
    if capture is None:
        return run()
    reached = list(reached)
    before = _WorldWithRandom(reached)
    capture.heap.once.append((before.iterators, refused))
    try:
        result = run()
        changes = before.found() != {} or any(True for _ in stored())
        if before.has_effects or (changes and not _is_the_same_again(capture, run, reached, result, equal)):
            try:
                raise refused()
            finally:  # making the error may read what has changed
                before.restore()
    finally:
        capture.heap.once.pop()
    return result


def _is_the_same_again(
    capture: context.Capture, run: Callable[[], Any], reached: Iterable[Any], result: Any, equal: Callable[..., bool]
) -> bool:
    """Return whether a second call changes nothing more, and gives the same."""
    journal: dict[Buffer, Any] = {}
    now = _WorldWithRandom(reached)
    held = {id(t): node_of(t) for t in (*now.tensors, *tensors_in(result))}
    start = next(serials)
    capture.heap.journals.append(journal)
    try:
        again = run()
        found = None if now.has_effects else now.found()
        pairs: list[tuple[Any, Any]] = [(b.node, was[0]) for b, was in journal.items() if b.born < start]
        if found is None or not all(_alike(v, now.was(s), pairs) for s, v in found.items()):
            return False
        if not _alike(again, result, pairs):
            return False
        nodes = [(a, b) if isinstance(a, Node) else (node_of(a), held.get(id(b))) for a, b in pairs]
        return all(b is not None for _, b in nodes) and equal([a for a, _ in nodes], [b for _, b in nodes])
    except Exception:  # noqa: BLE001 (what the first call has found is not there any more)
        return False
    finally:
        capture.heap.journals[:] = [j for j in capture.heap.journals if j is not journal]
        for buffer, (node, version, was_stored) in journal.items():
            buffer.hold(node)
            buffer.version, buffer.stored = version, was_stored
        now.restore()


def _alike(value: Any, other: Any, pairs: list[tuple[Any, Any]]) -> bool:
    """Return whether two values are equal numbers, texts or containers; append pairs of lazy ones, which must be equal, to ``pairs``."""
    if value is other:
        return True
    if type(value) is not type(other):
        return False
    if isinstance(value, Tensor):
        pairs.append((value, other))
        return True
    if isinstance(value, str | bytes | int | float | complex | np.generic):
        return repr(value) == repr(other)
    leaves, others = flatten(value)[0], flatten(other)[0]
    if len(leaves) != len(others) or (len(leaves) == 1 and leaves[0] is value):
        return False
    return all(_alike(a, b, pairs) for a, b in zip(leaves, others, strict=True))
