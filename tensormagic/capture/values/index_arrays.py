"""Indices with arrays in them, to be read or stored into: masks, and integers that select along axes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tensormagic.capture.errors.refusal import refuse
from tensormagic.capture.library.ordering import as_indices
from tensormagic.capture.library.selection import coordinates
from tensormagic.capture.numbers.known_values import static_value
from tensormagic.capture.values.operands import node_of
from tensormagic.capture.values.value import Tensor
from tensormagic.ir.errors import BoundsError, ShapeError
from tensormagic.ir.node import Node
from tensormagic.ir.size import Size, hint, nodes_of, product, size_text
from tensormagic.ops.effects.checks import require
from tensormagic.ops.indices.gather import gather
from tensormagic.ops.indices.position import merged
from tensormagic.ops.leaf import constant, constant_value, iota, size_node, size_of
from tensormagic.ops.move import broadcast, concatenate, reshape, transpose
from tensormagic.ops.move_kind import broadcast_shapes, same, show
from tensormagic.ops.scalars import scalar

Items = list[Any]


@dataclass(frozen=True)
class Index:
    """Represents an index with arrays in it: a view, and the axes of it that arrays select from.

    Parameters
    ----------
    view
        The array with the slices and new axes of the index applied.
    places, arrays
        Axes of ``view``, and for each the integers that select along it.
    mask, at
        Instead of these: a single mask, the only array in the index, and the first axis of ``view`` that it covers.
    apart
        Whether other entries separate the arrays: the selected axes come first then.
    alone
        Whether the mask is the whole index.
    """

    view: Tensor
    places: tuple[int, ...]
    arrays: tuple[Node, ...]
    mask: Node | None
    at: int
    apart: bool
    alone: bool = False


def is_mask(item: Any) -> bool:
    """Return whether an index entry is a mask."""
    if isinstance(item, bool | np.bool_):
        return True
    if isinstance(item, list):
        return bool(item) and not any(isinstance(v, Tensor) for v in item) and np.asarray(item).dtype == bool
    return getattr(item, "dtype", None) == np.bool_


def chooses(item: Any) -> bool:
    """Return whether an entry is an array, a mask or an integer that is known only when the graph runs."""
    if item is None or isinstance(item, slice) or item is Ellipsis:
        return False
    return is_mask(item) or getattr(item, "ndim", 0) > 0 or _is_open(item)


def _is_open(item: Any) -> bool:
    return isinstance(item, Tensor) and size_of(item.node) is None and static_value(item.node) is None


def kept(item: Any, advanced: bool) -> list[Any]:
    """Return what replaces an entry when only slices and new axes are applied."""
    if not advanced:
        return [item]
    return [slice(None)] * (node_of(item).type.ndim if is_mask(item) else 1)


def resolve(x: Tensor, items: Items, *, numbers_first: bool = True) -> Index:
    """Return what the entries select in ``x``, if there are arrays among them; integers beside a mask are applied first if possible."""
    advanced = [k for k, i in enumerate(items) if not (i is None or isinstance(i, slice))]
    apart = advanced[-1] - advanced[0] >= len(advanced)
    masks = [k for k in advanced if is_mask(items[k])]
    others = [k for k in advanced if k not in masks]
    if len(masks) == 1 and not (any(chooses(items[k]) for k in others) if numbers_first else others):
        at = sum(i is None or isinstance(i, slice) for i in items[: masks[0]])
        node = fitting(node_of(items[masks[0]]), x.node, _axis(items, masks[0]))
        return Index(_view(x, items, set(masks)), (), (), node, at, apart, len(items) == 1)
    places: list[int] = []
    arrays: list[Node] = []
    axis = 0
    for k in range(len(items)):
        found = _found(x, items, k, [items[n] for n in advanced]) if k in advanced else []
        places += range(axis, axis + len(found))
        arrays += found
        axis += len(found) or 1
    return Index(_view(x, items, set(advanced)), tuple(places), tuple(arrays), None, 0, apart)


def _found(x: Tensor, items: Items, k: int, arrays: Items) -> list[Node]:
    """Return the integer arrays of entry ``k``, along the axes it selects from; raise at once for a known one that is out of bounds."""
    item, axis = items[k], _axis(items, k)
    if is_mask(item):
        node = node_of(item)
        if not node.type.ndim:
            refuse(
                "a store with an index that has a truth value beside arrays",
                "Store through np.where(condition, new, old).",
            )
        return coordinates(fitting(node, x.node, axis))
    node = as_indices(item)
    if node.type.dtype.kind not in "iu":
        raise BoundsError("arrays used as indices must be of integer (or boolean) type")
    if not node.type.shape or names_any(arrays):
        within_bounds(node, x.type.shape[axis], axis, x)
    return [node]


def shape_of(arrays: Sequence[Node]) -> tuple[Size, ...]:
    """Return the common shape of the arrays of an index."""
    try:
        return broadcast_shapes([n.type.shape for n in arrays])
    except ShapeError:
        shapes = " ".join(show(n.type.shape) for n in arrays)
        raise BoundsError(
            f"shape mismatch: indexing arrays could not be broadcast together with shapes {shapes}"
        ) from None


def _view(x: Tensor, items: Items, keep: set[int]) -> Tensor:
    """Return ``x`` with all entries applied but those in ``keep``, whose axes stay whole."""
    return x[(*(part for k, item in enumerate(items) for part in kept(item, k in keep)), Ellipsis)]


def _axis(items: Items, k: int) -> int:
    """Return the first axis of the array that entry ``k`` covers."""
    return sum(0 if i is None else node_of(i).type.ndim if is_mask(i) else 1 for i in items[:k])


# as indices into one axis ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Arranged:
    """Represents index arrays into several axes, converted to indices into one merged axis, the first.

    Parameters
    ----------
    indices
        Into the merged axes.
    order
        The permutation that brought these axes to the front.
    extents, rest
        The extents of the merged axes and of the others.
    shape
        The common shape of the arrays.
    position
        Where the axes of ``shape`` are in the result.
    """

    indices: Node
    order: tuple[int, ...]
    extents: tuple[Size, ...]
    rest: tuple[Size, ...]
    shape: tuple[Size, ...]
    position: int

    @property
    def result(self) -> tuple[Size, ...]:
        """Return the shape of what the index selects."""
        return (*self.rest[: self.position], *self.shape, *self.rest[self.position :])

    def back(self, stored: Node) -> Node:
        """Return the view's value from that of the merged array."""
        apart = reshape(stored, (*self.extents, *self.rest))
        return transpose(apart, tuple(self.order.index(k) for k in range(len(self.order))))

    def taken(self, front: Node) -> Node:
        """Return the selected elements, in NumPy's order of axes."""
        found = gather(front, self.indices, 0)
        count = len(self.shape)
        others = range(count, found.type.ndim)
        return transpose(found, (*others[: self.position], *range(count), *others[self.position :]))


def arranged(index: Index) -> tuple[Node, Arranged]:
    """Return the view with the axes that arrays select from merged and in front, and the way back."""
    node = index.view.node
    shape = shape_of(index.arrays)
    places = index.places
    others = tuple(k for k in range(node.type.ndim) if k not in places)
    extents = tuple(node.type.shape[k] for k in places)
    rest = tuple(node.type.shape[k] for k in others)
    front = reshape(transpose(node, (*places, *others)), (product(extents), *rest))
    nodes = [broadcast(n, shape) for n in index.arrays]
    flat = nodes[0] if len(nodes) == 1 else merged(extents, nodes, places)
    return front, Arranged(flat, (*places, *others), extents, rest, shape, 0 if index.apart else places[0])


# whether it fits -----------------------------------------------------------------------------------------------------


def fitting(mask: Node, x: Node, first: int) -> Node:
    """Return ``mask`` for the axes of ``x`` from ``first`` on; raise where extents differ, or check it when the graph runs.

    An axis of extent 0 fits every axis, as in NumPy: such a mask selects nothing.
    """
    wanted = x.type.shape[first : first + mask.type.ndim]
    selects = 0 not in mask.type.shape
    mask = _covering(mask, wanted) if selects else mask
    for axis, (own, extent) in enumerate(zip(wanted, mask.type.shape, strict=True), first):
        if extent != 0 and (not same(own, extent) or (extent == 1) != (own == 1)):
            raise BoundsError(
                f"boolean index did not match indexed array along axis {axis}; size of axis is {size_text(own)} "
                f"but size of corresponding boolean axis is {size_text(extent)}"
            )
    return broadcast(mask if selects else constant(False), wanted)


def _covering(mask: Node, wanted: Sequence[Size]) -> Node:
    """Return a mask extended to the axes that it covers, where extents are data-dependent.

    A check when the graph runs ensures that each extent equals the axis's, or is 0.
    """
    for axis, (own, extent) in enumerate(zip(wanted, mask.type.shape, strict=True)):
        if own == extent or not (nodes_of(own) or nodes_of(extent)):
            continue
        size = size_node(extent)
        fits = scalar.logical_or(scalar.equal(size, 0), scalar.equal(size, size_node(own)))
        end = broadcast(constant(False), (*mask.type.shape[:axis], 1, *mask.type.shape[axis + 1 :]))
        places = require(scalar.minimum(iota((own,), 0), size), fits, _NOT_COVERED, "index")
        mask = gather(concatenate([mask, end], axis), places, axis)
    return mask


_NOT_COVERED = "boolean index did not match indexed array: the size of an axis is not that of the boolean axis"


def names_any(arrays: list[Any]) -> bool:
    """Return whether the arrays of an index surely select elements; otherwise out-of-bounds values do not matter."""
    if any(map(is_mask, arrays)):
        return False
    return all(hint(as_indices(i).type.size) not in {None, 0} for i in arrays)


def within_bounds(index: Node, extent: Size, axis: int, x: Tensor) -> None:
    """Raise at once for an index that is known and out of bounds."""
    known, size = constant_value(index), hint(extent)
    if known is not None and size is not None and known.size and index.type.size != 0:
        wrong = known[(known < -size) | (known >= size)]
        if wrong.size:
            raise BoundsError(
                f"index {wrong.ravel()[0]} is out of bounds for axis {axis} with size {size}",
                f"The array has shape {show(x.type.shape)}.",
            )
