"""NumPy's indexing, as slices, dropped and new axes, and gathers; what is not captured yet is refused at the line."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from tensormagic.capture.context import settle
from tensormagic.ir.errors import BoundsError, CaptureError
from tensormagic.ir.node import Node
from tensormagic.ir.type import Size, apply, hint
from tensormagic.ops.move import Slices, reshape, show, slice_


@dataclass(frozen=True)
class Basic:
    """A basic index: the part of every axis, and the shape that is left."""

    slices: Slices
    shape: tuple[Size, ...]

    def take(self, x: Node) -> Node:
        """The part of ``x``."""
        return reshape(slice_(x, self.slices), self.shape)

    @property
    def part(self) -> tuple[Size, ...]:
        """The shape of the part before axes are dropped and added."""
        return tuple(length for _, length, _ in self.slices)


def expand(index: Any, ndim: int) -> list[Any]:
    """The index with one entry an axis (and None for new ones), its ellipsis spelt out."""
    items = list(index) if isinstance(index, tuple) else [index]
    used = sum(_axes_used(i) for i in items if i is not Ellipsis and i is not None)
    if used > ndim:
        raise BoundsError(f"too many indices for array: array is {ndim}-dimensional, but {used} were indexed")
    ellipses = [k for k, i in enumerate(items) if i is Ellipsis]
    if len(ellipses) > 1:
        raise BoundsError("an index can only have a single ellipsis ('...')")
    at = ellipses[0] if ellipses else len(items)
    return items[:at] + [slice(None)] * (ndim - used) + items[at + 1 :]


def _axes_used(item: Any) -> int:
    dtype = getattr(item, "dtype", None)
    return int(item.ndim) if dtype is not None and dtype == np.bool_ and getattr(item, "ndim", 0) else 1


def is_array(item: Any) -> bool:
    """Whether an index entry is an array of indices (or a list)."""
    return isinstance(item, list | np.ndarray) or (hasattr(item, "ndim") and item.ndim > 0)


def basic(items: list[Any], shape: tuple[Size, ...], as_size: Any) -> Basic:
    """The basic index ``items`` into an array of ``shape``; ``as_size`` turns an entry into a size."""
    slices: list[tuple[Size, Size, int]] = []
    left: list[Size] = []
    axis = 0
    for item in items:
        if item is None:
            left.append(1)
            continue
        extent = shape[axis]
        if isinstance(item, slice):
            part = _slice(item, extent, as_size)
            slices.append(part)
            left.append(part[1])
        else:
            slices.append((_position(_integer(item, as_size), extent, axis, shape), 1, 1))
        axis += 1
    return Basic(tuple(slices), tuple(left))


def _integer(item: Any, as_size: Any) -> Size:
    if not hasattr(item, "__index__"):
        raise BoundsError(
            "only integers, slices (`:`), ellipsis (`...`), numpy.newaxis (`None`) and integer or boolean arrays are valid indices"
        )
    return as_size(item)


def _position(index: Size, extent: Size, axis: int, shape: tuple[Size, ...]) -> Size:
    seen, size = hint(index), hint(extent)
    if seen is not None and size is not None and not -size <= seen < size:
        raise BoundsError(
            f"index {seen} is out of bounds for axis {axis} with size {size}", f"The array has shape {show(shape)}."
        )
    negative = index < 0 if isinstance(index, int) else seen is not None and seen < 0
    return index + extent if negative else index


def _slice(item: slice, extent: Size, as_size: Any) -> tuple[Size, Size, int]:
    step = 1 if item.step is None else as_size(item.step)
    if not isinstance(step, int):
        raise CaptureError("the step of a slice has to be a number that is known", "Write the step as a number.")
    if step == 0:
        raise ValueError("slice step cannot be zero")
    start = None if item.start is None else _bound(as_size(item.start), extent, step)
    stop = None if item.stop is None else _bound(as_size(item.stop), extent, step)
    if step > 0:
        first = 0 if start is None else start
        last = extent if stop is None else stop
        length = apply("max", last - first, 0)
        return first, settle(length if step == 1 else apply("floordiv", length + (step - 1), step)), step
    first = extent - 1 if start is None else start
    last = -1 if stop is None else stop
    length = apply("max", first - last, 0)
    return first, settle(apply("floordiv", length + (-step - 1), -step)), step


def _bound(bound: Size, extent: Size, step: int) -> Size:
    """A slice's bound, counted from the front and kept within the axis as Python does."""
    negative = bound < 0 if isinstance(bound, int) else (hint(bound) or 0) < 0
    if negative:
        bound = bound + extent
    low: Size = 0 if step > 0 else -1
    high: Size = extent if step > 0 else extent - 1
    clipped = apply("max", bound, low) if negative else bound
    return apply("min", clipped, high)
