"""A few picked rows, and the place of an extreme element, as folds over all rows, for which rows can be split."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensormagic.ir.node import Node, make
from tensormagic.ir.type import Size
from tensormagic.ops.fold import ARGMAX, MAX, MIN, fold, spread
from tensormagic.ops.indices.gather import GATHER
from tensormagic.ops.leaf import constant, iota, size_node
from tensormagic.ops.move import CONCATENATE, RESHAPE, broadcast, expand_dims
from tensormagic.ops.pointwise import astype
from tensormagic.ops.scalars import scalar

FEW = 8  # rows that are picked one by one, each by a pass over all rows


def place_of_extreme(node: Node) -> Node:
    """Return ``argmax`` or ``argmin`` as a minimum over the places of the extreme element, or of nan if there is one."""
    x, axes = node.args[0], node["axes"]
    if x.op is RESHAPE and x.type.ndim == 1 and x.args[0].type.ndim > 1:  # argmax of the flattened array
        x = x.args[0]
        axes = tuple(range(x.type.ndim))
    top = spread(fold(MAX if node.op is ARGMAX else MIN, x, axes), x, axes)
    there = scalar.logical_or(scalar.equal(x, top), scalar.not_equal(x, x))
    place, stride = _all(0, x), constant(np.int64(1))
    count: Size = 1
    for axis in reversed(axes):
        place = scalar.add(place, scalar.multiply(iota(x.type.shape, axis), broadcast(stride, x.type.shape)))
        count = count * x.type.shape[axis]
        stride = astype(size_node(count), np.dtype(np.int64))
    beyond = broadcast(stride, x.type.shape)
    least = fold(MIN, scalar.where(there, place, beyond), axes)
    return scalar.minimum(scalar.maximum(least, _all(0, least)), broadcast(_last(count), least.type.shape))


def _last(count: Size) -> Node:
    return astype(size_node(count - 1), np.dtype(np.int64))


def rows_of_slice(node: Node) -> Node | None:
    """Return a slice of few elements along one axis as a stack of single rows, or None if no axis, or several, is that short."""
    x = node.args[0]
    short = [
        k
        for k, (_, length, _) in enumerate(node["slices"])
        if not isinstance(x.type.shape[k], int) and isinstance(length, int) and length <= FEW
    ]
    if len(short) != 1:
        return None
    (axis,) = short
    start, length, step = node["slices"][axis]
    rows = [_row(x, axis, astype(size_node(start + k * step), np.dtype(np.int64))) for k in range(length)]
    picked = _stacked(rows, axis) if rows else None
    if picked is None:
        return None
    others = tuple((0, length, 1) if k == axis else s for k, s in enumerate(node["slices"]))
    return make(node.op, (picked,), slices=others)


def rows_of_gather(node: Node) -> Node | None:
    """Return few elements along an axis as single rows, or None if the indices are not known to be in bounds."""
    x, index = node.args
    axis = node["axis"]
    count = index.type.size
    if not isinstance(count, int) or not 0 < count <= FEW or index.type.ndim > 1:
        return None
    low, high = index.op.bounds(index)
    if low != 0 or high is None or high != x.type.shape[axis] - 1:
        return None
    if not index.type.ndim:
        return _row(x, axis, index)
    return _stacked([_row(x, axis, make(GATHER, (index, constant(np.int64(k))), axis=0)) for k in range(count)], axis)


def _row(x: Node, axis: int, place: Node) -> Node | None:
    """Return row number ``place``, as the maximum over a row masked with the lowest value, or None if the dtype has no lowest value."""
    lowest = _lowest(x.type.dtype)
    if lowest is None:
        return None
    mine = scalar.equal(iota(x.type.shape, axis), broadcast(astype(place, np.dtype(np.int64)), x.type.shape))
    return fold(MAX, scalar.where(mine, x, _all(lowest, x)), (axis,))


def _stacked(rows: list[Node | None], axis: int) -> Node | None:
    known = [expand_dims(r, (axis,)) for r in rows if r is not None]
    if len(known) != len(rows):
        return None
    return known[0] if len(known) == 1 else make(CONCATENATE, known, axis=axis)


def _all(value: Any, like: Node) -> Node:
    dtype = np.dtype(np.int64) if isinstance(value, int) else value.dtype
    return broadcast(constant(np.asarray(value, dtype)[()]), like.type.shape)


def _lowest(dtype: np.dtype[Any]) -> Any:
    """Return the lowest value of a dtype, or None."""
    if dtype.kind == "b":
        return np.False_
    if dtype.kind in "iu":
        return dtype.type(np.iinfo(dtype).min)
    return dtype.type(-np.inf) if dtype.kind == "f" else None
