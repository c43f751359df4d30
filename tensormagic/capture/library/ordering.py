"""Sorting, and elements by their indices, on lazy arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensormagic.capture.errors.refusal import refuse, refuse_foreign_store
from tensormagic.capture.hooks import hooks
from tensormagic.capture.names import FUNCTIONS, implements
from tensormagic.capture.values.arguments import (
    agreeing,
    array_alone,
    by_mode,
    done,
    into_out,
    one_axis,
    pad_empty_axes,
    tensor,
)
from tensormagic.capture.values.operands import has_lazy, node_of
from tensormagic.capture.values.value import Tensor, wrap
from tensormagic.ir.errors import ShapeError
from tensormagic.ir.node import Node
from tensormagic.ir.size import is_at_least, nodes_of
from tensormagic.ir.type import product
from tensormagic.ops.effects.checks import require
from tensormagic.ops.fold import axes_of
from tensormagic.ops.indices import gather, sorting
from tensormagic.ops.leaf import constant, iota, size_node
from tensormagic.ops.move import broadcast, reshape
from tensormagic.ops.pointwise import astype
from tensormagic.ops.scalars import scalar


def _no_order(name: str, order: Any) -> None:
    if order is not None:
        refuse(f"{name} with order=", "order= is for structured arrays: leave it out.")


@implements(np.sort)
def sort(
    a: Any, axis: int | None = -1, kind: str | None = None, order: Any = None, *, stable: bool | None = None
) -> Any:
    """Implement ``np.sort``: a sorted copy."""
    _no_order("np.sort", order)
    return done(sorting.sort(node_of(a), axis, kind, stable=stable))


@implements(np.argsort, method="argsort")
def argsort(
    a: Any, axis: int | None = -1, kind: str | None = None, order: Any = None, *, stable: bool | None = None
) -> Any:
    """Implement ``np.argsort``."""
    _no_order("np.argsort", order)
    return done(sorting.argsort(node_of(a), axis, kind, stable=stable))


def _sort_in_place(
    self: Tensor, axis: int = -1, kind: str | None = None, order: Any = None, *, stable: bool | None = None
) -> None:
    _no_order("sort", order)
    self[...] = wrap(sorting.sort(self.node, axis, kind, stable=stable))


hooks.methods["sort"] = _sort_in_place


@implements(np.take, method="take")
def take(a: Any, indices: Any, axis: int | None = None, out: Any = None, mode: str = "raise") -> Any:
    """Implement ``np.take``; an index out of bounds is an IndexError, or with ``mode`` wraps around or is clipped."""
    x, index = node_of(a), as_indices(indices)
    if axis is not None and not x.type.shape:  # one element, along an axis of its own
        x = reshape(x, (1,))
    if axis is not None:
        number = axes_of(x, axis)[0]
        before, behind = x.type.shape[:number], x.type.shape[number + 1 :]
        empty = x.type.shape[number] == 0 and any(nodes_of(s) for s in before)
        if 0 in before or empty or (mode == "clip" and 0 in behind):  # NumPy checks no index then
            nothing = broadcast(constant(x.type.dtype.type(0)), (*before, *index.type.shape, *behind))
            if empty:
                none = scalar.equal(size_node(product((*before, *index.type.shape, *behind))), 0)
                nothing = require(nothing, none, "cannot do a non-empty take from an empty axes.", "index")
            return into_out(nothing, out, "take")
        if any(nodes_of(s) and not is_at_least(s, 1) for s in before):
            x, index = _of_rows(x, index, number)
    if mode != "raise":
        extent = size_node(x.type.size if axis is None else x.type.shape[axes_of(x, axis)[0]])
        index = by_mode(index, extent, mode)
    return into_out(gather.gather(x, index, None if axis is None else int(axis)), out, "take")


def _of_rows(x: Node, index: Node, axis: int) -> tuple[Node, Node]:
    """Return the operands of a ``take`` along an axis after others.

    If these others have no element for some data, no index is checked then.
    """
    extent = x.type.shape[axis]
    none = scalar.equal(size_node(product(x.type.shape[:axis])), 0)
    if not is_at_least(extent, 1) and index.type.size != 0:
        there = scalar.logical_or(none, scalar.greater(size_node(extent), 0))
        index = require(index, there, "cannot do a non-empty take from an empty axes.", "index")
    return pad_empty_axes(x, (axis,), 0), scalar.where(none, index.type.dtype.type(0), index)


def as_indices(value: Any) -> Node:
    """Return an operand as an array of indices: an empty list holds integers."""
    if isinstance(value, list | tuple) and not has_lazy(value) and not np.size(value):
        return node_of(np.zeros(np.shape(value), np.int64))
    node = node_of(value)
    return astype(node, np.int64) if node.type.form == "python" else node


@implements(np.take_along_axis)
def take_along_axis(arr: Any, indices: Any, axis: int | None = -1) -> Any:
    """Implement ``np.take_along_axis``."""
    index = array_alone(indices, "dtype").node
    if index.type.dtype.kind not in "iu":
        raise IndexError("`indices` must be an integer array")
    if axis is None and index.type.ndim != 1:
        raise ShapeError("when axis=None, `indices` must have a single dimension.")
    return done(gather.take_along_axis(array_alone(arr).node, index, axis))


@implements(np.put_along_axis)
def put_along_axis(arr: Any, indices: Any, values: Any, axis: int | None) -> None:
    """Implement ``np.put_along_axis``: a store through arrays of indices, one for each axis."""
    if not isinstance(arr, Tensor):
        refuse_foreign_store("np.put_along_axis")
    index = node_of(indices)
    if index.type.dtype.kind not in "iu":
        raise IndexError("`indices` must be an integer array")
    target = arr
    if axis is None:
        if index.type.ndim != 1:
            raise ShapeError("when axis=None, `indices` must have a single dimension.")
        target, axis = arr.reshape(-1), 0
    axis = one_axis(axis, target.ndim)
    if index.type.ndim != target.ndim:
        raise ShapeError("`indices` and `arr` must have the same number of dimensions")
    places = [wrap(index) if k == axis else _ramp(target.type.shape[k], k, target.ndim) for k in range(target.ndim)]
    target[tuple(places)] = values


def _ramp(extent: Any, axis: int, rank: int) -> Tensor:
    """Return the index along one axis, in a shape that broadcasts with the others'."""
    return wrap(reshape(iota((extent,), 0), tuple(extent if k == axis else 1 for k in range(rank))))


# places ---------------------------------------------------------------------------------------------------------------


@implements(np.searchsorted, method="searchsorted")
def searchsorted(a: Any, v: Any, side: str = "left", sorter: Any = None) -> Any:
    """Implement ``np.searchsorted``."""
    rows = node_of(a)
    if sorter is not None:
        rows = gather.gather(rows, node_of(sorter), 0)
    return done(sorting.searchsorted(rows, node_of(v), side))


@implements(np.lexsort)
def lexsort(keys: Any, axis: int = -1) -> Any:
    """Implement ``np.lexsort``: a stable sort by each key, the last one last."""
    rows = [node_of(k) for k in (tensor(keys) if isinstance(keys, Tensor | np.ndarray) else keys)]
    if not rows:
        raise TypeError("need sequence of keys with len > 0 in lexsort")
    shape, alike = rows[0].type.shape, "all keys need to be the same shape"
    if any(row.type.ndim != len(shape) for row in rows):
        raise ShapeError(alike)
    for k, row in enumerate(rows):
        for own, extent in zip(row.type.shape, shape, strict=True):
            rows[k] = agreeing(rows[k], own, extent, alike)
    if not shape:  # one element to sort
        return done(constant(np.int64(0)))
    axis = one_axis(axis, len(shape))
    order = sorting.argsort(rows[0], axis, "stable")
    for key in rows[1:]:
        order = gather.take_along_axis(
            order, sorting.argsort(gather.take_along_axis(key, order, axis), axis, "stable"), axis
        )
    return done(order)


def _parted(name: str, whole: Any) -> Any:
    def part(a: Any, kth: Any, axis: int | None = -1, kind: str = "introselect", order: Any = None) -> Any:
        """Implement ``np.partition`` or ``np.argpartition``, in the order that NumPy produces."""
        del kind
        _no_order(name, order)
        x = node_of(a)
        x, axis = (reshape(x, (x.type.size,)), 0) if axis is None else (x, one_axis(axis, x.type.ndim))
        extent = x.type.shape[axis]
        if extent == 0:
            return done(x if whole is sorting.partition else sorting.argsort(x, axis))
        places = astype(node_of(kth), np.int64)
        inside = scalar.logical_and(
            scalar.greater_equal(places, -size_node(extent)), scalar.less(places, size_node(extent))
        )
        if not is_at_least(extent, 1):
            inside = scalar.logical_or(inside, scalar.equal(size_node(extent), 0))
        return done(whole(require(x, inside, "kth out of bounds"), places, axis))

    return part


implements(np.partition)(_parted("np.partition", sorting.partition))
implements(np.argpartition, method="argpartition")(_parted("np.argpartition", sorting.argpartition))


def _partition_in_place(self: Tensor, kth: Any, axis: int = -1, kind: str = "introselect", order: Any = None) -> None:
    self[...] = FUNCTIONS[np.partition](self, kth, axis, kind, order)


hooks.methods["partition"] = _partition_in_place
implements(np.sort_complex)(lambda a: _sort_complex(a))


def _sort_complex(a: Any) -> Any:
    x = node_of(a)
    single = x.type.dtype.char in "bhBHF"
    return done(sorting.sort(astype(x, np.complex64 if single else np.complex128)))
