"""NumPy's indexing, as slices, dropped and new axes, and gathers; unsupported indices are refused at the user's line."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from tensormagic.capture.context import settle, trying
from tensormagic.capture.stores.layout import Layout
from tensormagic.ir.bounds import floor_of_nodes
from tensormagic.ir.errors import BoundsError, CaptureError, DTypeError
from tensormagic.ir.node import Node
from tensormagic.ir.size import Size, apply, atom, hint, is_at_least, nodes_of
from tensormagic.ops.indices.position import position
from tensormagic.ops.leaf import size_node
from tensormagic.ops.move import Slices, reshape, slice_
from tensormagic.ops.move_kind import show
from tensormagic.ops.scalars import scalar
from tensormagic.ops.update import set_at


@dataclass(frozen=True)
class Basic:
    """Represents a basic index: the part of every axis, and the resulting shape."""

    slices: Slices
    shape: tuple[Size, ...]

    def take(self, x: Node) -> Node:
        """Return the part of ``x`` that the index selects."""
        return reshape(slice_(x, self.slices), self.shape)

    @property
    def part(self) -> tuple[Size, ...]:
        """Return the shape of the part before axes are dropped and added."""
        return tuple(length for _, length, _ in self.slices)


def expand(index: Any, ndim: int) -> list[Any]:
    """Return the index with one entry an axis (and None for new ones), its ellipsis expanded."""
    items = [_as_mask(listed(i)) for i in (index if isinstance(index, tuple) else (index,))]
    return spelt_out(items, ndim, sum(_axes_used(i) for i in items if i is not Ellipsis and i is not None))


def listed(item: Any) -> Any:
    """Return an index entry, with a tuple or a range as a list: an array of indices."""
    return list(item) if isinstance(item, tuple | range) else item


def has_ellipsis(index: Any) -> bool:
    """Return whether an ellipsis is written in an index."""
    return index is Ellipsis or (isinstance(index, tuple) and any(i is Ellipsis for i in index))


def spelt_out(items: list[Any], ndim: int, used: int) -> list[Any]:
    """Return the entries of an index that uses ``used`` of ``ndim`` axes, with the ellipsis expanded to full slices."""
    if used > ndim:
        raise BoundsError(f"too many indices for array: array is {ndim}-dimensional, but {used} were indexed")
    ellipses = [k for k, i in enumerate(items) if i is Ellipsis]
    if len(ellipses) > 1:
        raise BoundsError("an index can only have a single ellipsis ('...')")
    at = ellipses[0] if ellipses else len(items)
    return items[:at] + [slice(None)] * (ndim - used) + items[at + 1 :]


def _as_mask(item: Any) -> Any:
    """Return a list of booleans as the array that NumPy makes of it; other entries unchanged."""
    if isinstance(item, list) and item and all(isinstance(v, bool | list) for v in item):
        found = np.asarray(item)
        return found if found.dtype == bool else item
    return item


def _axes_used(item: Any) -> int:
    if isinstance(item, bool | np.bool_):
        return 0
    dtype = getattr(item, "dtype", None)
    return int(item.ndim) if dtype is not None and dtype == np.bool_ else 1


_LISTS = list | np.ndarray


def is_array(item: Any) -> bool:
    """Return whether an index entry is an array of indices (or a list)."""
    return isinstance(item, _LISTS) or hasattr(item, "lazy") or (hasattr(item, "ndim") and item.ndim > 0)


def basic(items: list[Any], shape: tuple[Size, ...], as_size: Any) -> Basic:
    """Return the basic index ``items`` into an array of ``shape``; ``as_size`` turns an entry into a size."""
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
    dtype = getattr(item, "dtype", None)
    if not hasattr(item, "__index__") or (dtype is not None and dtype.kind not in "iu"):
        raise BoundsError(
            "only integers, slices (`:`), ellipsis (`...`), numpy.newaxis (`None`) and integer or boolean arrays are valid indices"
        )
    return as_size(item)


def _position(index: Size, extent: Size, axis: int, shape: tuple[Size, ...]) -> Size:
    """Return an index counted from the front; data-dependent signs and bounds are handled when the graph runs."""
    seen, size = hint(index), hint(extent)
    if seen is not None and size is not None and not -size <= seen < size:
        if trying():  # an error only if this branch is taken
            return atom(position(index, extent, axis))
        raise BoundsError(
            f"index {seen} is out of bounds for axis {axis} with size {size}", f"The array has shape {show(shape)}."
        )
    negative = _is_negative(index)
    if negative is not None:
        found = index + extent if negative else index
        if not (nodes_of(index) or nodes_of(extent)) or (_holds(found) and _holds(extent - 1 - found)):
            return found
    return atom(position(index, extent, axis))


def _is_negative(index: Size) -> bool | None:
    """Return whether an index counts from the end; None if that is data-dependent."""
    if isinstance(index, int):
        return index < 0
    if not nodes_of(index):
        return (hint(index) or 0) < 0
    return False if is_at_least(index, 0) else True if is_at_least(-1 - index, 0) else None


def _holds(size: Size) -> bool:
    """Return whether ``size >= 0``: always, or for the shapes seen, with a guard of the slice."""
    if is_at_least(size, 0):
        return True
    found = floor_of_nodes(size) if nodes_of(size) else None
    return found is not None and (hint(found) or 0) >= 0


def _slice(item: slice, extent: Size, as_size: Any) -> tuple[Size, Size, int]:
    step = 1 if item.step is None else _whole(item.step, as_size)
    if not isinstance(step, int):
        raise CaptureError("the step of a slice must be a known number", "Write the step as a number.")
    if step == 0:
        raise ValueError("slice step cannot be zero")
    start = None if item.start is None else _bound(_whole(item.start, as_size), extent, step)
    stop = None if item.stop is None else _bound(_whole(item.stop, as_size), extent, step)
    if step > 0:
        first = 0 if start is None else start
        length = _length(extent if stop is None else stop, first)
        return first, settle(length if step == 1 else apply("floordiv", length + (step - 1), step)), step
    first = extent - 1 if start is None else start
    length = _length(first, -1 if stop is None else stop)
    return first, settle(apply("floordiv", length + (-step - 1), -step)), step


def _whole(item: Any, as_size: Any) -> Size:
    dtype = getattr(item, "dtype", None)
    if not hasattr(item, "__index__") or (dtype is not None and dtype.kind not in "biu"):
        raise DTypeError("slice indices must be integers or None or have an __index__ method")
    return as_size(item)


def _length(last: Size, first: Size) -> Size:
    difference = last - first
    return difference if nodes_of(difference) and _holds(difference) else apply("max", difference, 0)


def _bound(bound: Size, extent: Size, step: int) -> Size:
    """Return a slice's bound, counted from the front and clipped to the axis as Python does."""
    negative = _is_negative(bound)
    if negative is None:
        below = scalar.less(size_node(bound), 0)
        bound = atom(scalar.where(below, size_node(bound + extent), size_node(bound)))
    elif negative:
        bound = bound + extent
    low: Size = 0 if step > 0 else -1
    high: Size = extent if step > 0 else extent - 1
    if negative is not False and not (nodes_of(bound) and _holds(bound - low)):
        bound = apply("max", bound, low)
    return bound if nodes_of(bound) and _holds(high - bound) else apply("min", bound, high)


def put_part(part: Basic, old: Node, new: Node) -> Node:
    """Return ``old`` with the part of a basic index replaced."""
    if part.slices and part.slices == tuple((0, size, 1) for size in old.type.shape):
        return reshape(new, part.part)
    return set_at(old, reshape(new, part.part), part.slices)


@dataclass(frozen=True)
class PartLayout:
    """Represents where the part of a basic index lies in its array.

    Parameters
    ----------
    items
        The index in sizes, an entry an axis; None for new axes.
    """

    items: list[Any]

    def __call__(self, layout: Layout) -> Layout:
        """Return the layout of the part, given the array's layout."""
        return _layout_of_part(layout, self.items)

    def of(self, array: Layout, number: Callable[[Size], int]) -> Layout:
        """Return the part of an array; ``number`` gives the number of a size."""

        def known(item: Any) -> Any:
            return None if item is None else number(item)

        slices = [
            slice(*map(known, (i.start, i.stop, i.step))) if isinstance(i, slice) else known(i) for i in self.items
        ]
        return array[(*slices, ...)]


def in_sizes(items: list[Any], as_size: Callable[[Any], Size]) -> list[Any]:
    """Return an index with its integers as sizes, so that it holds no lazy values beyond the call."""

    def sized(item: Any) -> Any:
        if isinstance(item, slice):
            return slice(*map(sized, (item.start, item.stop, item.step)))
        return None if item is None else as_size(item)

    return [*map(sized, items)]


def _layout_of_part(layout: Layout, items: list[Any]) -> Layout:
    """Return the layout of the part that a basic index takes, with sizes as numbers.

    A slice with data-dependent bounds along the first remaining axis keeps a contiguous layout.

    Raises
    ------
    ValueError
        For other data-dependent bounds: the layout is not known then.
    """

    def number(item: Any) -> Any:
        return None if item is None else hint(item) or 0

    def is_open(item: Any) -> bool:
        return any(b is not None and hint(b) is None for b in (item.start, item.stop))

    found: list[Any] = []
    slices = [i for i in items if isinstance(i, slice)]
    for item in items:
        if isinstance(item, slice) and is_open(item):
            whole = all(i == slice(None) for i in slices if i is not item)
            if item is not slices[0] or not whole or item.step not in {None, 1} or not layout.flags.c_contiguous:
                raise ValueError
            found.append(slice(None))
        elif isinstance(item, slice):
            found.append(slice(number(item.start), number(item.stop), number(item.step)))
        else:
            found.append(number(item))
    return layout[tuple(found)]
