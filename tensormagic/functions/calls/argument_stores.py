"""Stores of a captured function into its arguments: done when everything else has succeeded, into the caller's arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tensormagic import session
from tensormagic.capture.context import Capture
from tensormagic.capture.inputs import snapshots as inputs
from tensormagic.capture.numbers import numbers_taken
from tensormagic.capture.random.generators import State
from tensormagic.capture.stores.lent import Lent, show_all
from tensormagic.capture.stores.overlap import memory_of, share
from tensormagic.capture.tree import flatten, structure
from tensormagic.capture.values.value import Tensor
from tensormagic.ir.errors import CaptureError, SharedArgumentsError
from tensormagic.ops.effects.outside import Changed


@dataclass(frozen=True)
class Stores:
    """The stores of one trace.

    Parameters
    ----------
    label, names
        The function, and the names of its inputs.
    inputs
        The inputs that are stored into; the last results of the graph are their new contents.
    lies
        The memory layout that inputs must have, by number, where that matters: their strides, or None for C order
        without gaps. A reshape is a view only then, and so may order="K" be.
    looked_at
        The memory of lazy arrays that the trace has read and plain code has, too.
    same
        For each input the first one that is the same array, if the code has compared identities.
    held
        Objects with memory that are not inputs everywhere they occur: the trace may have read them directly.
    """

    label: str
    names: tuple[str, ...]
    inputs: tuple[int, ...]
    lies: dict[int, tuple[int, ...] | None]
    looked_at: tuple[Lent, ...]
    same: tuple[int, ...] = ()
    held: tuple[Any, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.inputs or self.lies or self.same)

    def fits(self, values: Sequence[Any]) -> bool:
        """Return whether inputs have the required memory layout, and are identical where they must be."""
        if self.same and same_of(values[: len(self.same)]) != self.same:
            return False
        return all(
            values[k].flags.c_contiguous if strides is None else values[k].strides == strides
            for k, strides in self.lies.items()
        )

    def check(self, values: Sequence[Any], given: Sequence[Any]) -> None:
        """Raise an error for values that cannot be stored into, or not as NumPy would.

        Parameters
        ----------
        values
            The values of the inputs.
        given
            The caller's own objects: an input that is none of these is a copy of one.
        """
        if not self.fits(values):
            raise Changed("an argument lies otherwise in memory than when the function was captured")
        constants = [part for v in self.held for part in memory_of(v)] if self.inputs else []
        for number in self.inputs:
            self._check_target(number, values, given, constants)

    def _check_target(self, number: int, values: Sequence[Any], given: Sequence[Any], constants: Sequence[Any]) -> None:
        target, name = values[number], self.names[number]
        if isinstance(target, State):
            return
        if not any(target is v or _is_alike(target, v) for v in given):
            raise CaptureError(
                f"{self.label} stores into its argument {name}, which is not a NumPy array", f"Pass np.asarray({name})."
            )
        if not target.flags.writeable:
            raise ValueError("assignment destination is read-only")
        arrays = [(k, v) for k, v in enumerate(values) if k != number and isinstance(v, np.ndarray)]
        beside = [self.names[k] for k, v in arrays if share(target, v)]
        if any(share(target, v) for v in constants):
            beside.append("an array that an object holds")
        lazy = [lent.name or "a lazy array that it reads" for lent in self.looked_at if lent.lies_in(target)]
        beside += lazy
        if beside:
            refused = (
                CaptureError if lazy else SharedArgumentsError
            )  # Python, which would run instead, has no lazy arrays
            raise refused(
                f"{self.label} stores into its argument {name}, which shares memory with {beside[0]}",
                f"Pass a copy: {name}.copy().",
            )

    def commit(self, results: list[Any], values: Sequence[Any]) -> list[Any]:
        """Store into the caller's arrays, and return the results of the function."""
        count = len(results) - len(self.inputs)
        for number, result in zip(self.inputs, results[count:], strict=True):
            if isinstance(values[number], State):
                values[number].give_back(result)
            else:
                numbers_taken.store(values[number], result)
        return results[:count]


def committed(capture: Capture, label: str) -> None:
    """Store into arrays that a call found under names, and into lent memory, if it ran over lazy values."""
    show_all(capture.outside.unshown)
    found = [v.place.buffer for v in capture.names.lifted.values() if isinstance(v, Tensor) and v.place.buffer.stored]
    stored = list(dict.fromkeys(b for b in found if b.array is not None))
    if not stored:
        return
    values = session.compute([b.node for b in stored], [f"{b.name}, which {label} stores into" for b in stored])
    inputs.secure_all()
    for buffer, value in zip(stored, values, strict=True):
        np.copyto(buffer.array, value, casting="same_kind")


def _is_alike(target: np.ndarray[Any, Any], value: Any) -> bool:
    """Return whether a value is another view of exactly the same memory, as is made of a memory map each time."""
    return (
        isinstance(value, np.ndarray)
        and value.flags.writeable
        and value.__array_interface__ == target.__array_interface__
        and value.strides == target.strides
    )


def same_of(values: Sequence[Any]) -> tuple[int, ...]:
    """Return for each value the first one that is the same array."""
    first: dict[int, int] = {}
    return tuple([first.setdefault(id(v), k) if isinstance(v, np.ndarray) else k for k, v in enumerate(values)])


def stores_of(
    label: str,
    tensors: Sequence[Tensor],
    values: Sequence[Any] | None,
    looked_at: Sequence[Lent] = (),
    same: tuple[int, ...] = (),
) -> Stores:
    """Return what a body has stored into the lazy arrays of its inputs; ``values`` are these inputs, if their memory layout matters."""
    buffers = {id(t.place.buffer): k for k, t in enumerate(tensors) if t.place.buffer.stored}
    names = tuple(t.place.buffer.name for t in tensors)
    lies = {
        k: None if v.flags.c_contiguous else v.strides
        for k, v in enumerate(values or ())
        if isinstance(v, np.ndarray) and v.ndim and not isinstance(v, State)
    }
    return Stores(label, names, tuple(buffers.values()), lies, tuple(dict.fromkeys(looked_at)), same)


def unchanged(containers: Any, label: str, call: Callable[[], Any]) -> Any:
    """Return the result of ``call()``; raise if it has changed one of ``containers``, since its caller would not see that."""
    before, form = flatten(containers)[0], structure(containers)
    try:
        result = call()
    except Exception as error:
        if not isinstance(error, CaptureError) and _has_changed(containers, before, form):
            raise _container_changed(label) from error
        raise
    if _has_changed(containers, before, form):
        raise _container_changed(label)
    return result


def _has_changed(containers: Any, before: list[Any], form: Any) -> bool:
    after = flatten(containers)[0]
    return structure(containers) != form or any(a is not b for a, b in zip(before, after, strict=True))


def _container_changed(label: str) -> CaptureError:
    return CaptureError(f"{label} changes a container that is an argument", "Make a new one, and return it.")
