"""Stores by integer arrays, as new arrays: elements or slices along an axis are set to values, or combined with them.

Negative indices count from the end; an index out of bounds is NumPy's ``IndexError`` when the graph runs. Where an
index is repeated, the last value stays (``scatter_set``), or every value is combined (``np.add.at`` and the like).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from tensormagic.ir.errors import ShapeError
from tensormagic.ir.node import Node, make
from tensormagic.ir.operation import Guard
from tensormagic.ir.type import Size, Type
from tensormagic.ops.fold import PROD, fold
from tensormagic.ops.indices.gather import (
    ADD_ALONG_AXIS,
    GATHER,
    check_indices,
    from_front,
    gather_shape,
    may_miss,
    places_along,
    sum_tangent,
    to_front,
)
from tensormagic.ops.leaf import CONSTANT, constant, constant_value, iota, is_constant_zero, size_node
from tensormagic.ops.move import broadcast, lead, reshape
from tensormagic.ops.move_kind import normalise_axis, same, show
from tensormagic.ops.op import Tangent, Value
from tensormagic.ops.opaque import Opaque, Store
from tensormagic.ops.pointwise import astype, in_single
from tensormagic.ops.rows import Axes, Found, Mixed
from tensormagic.ops.scalars import scalar
from tensormagic.ops.update import zeros_like


def _type(args: tuple[Node, ...], params: Mapping[str, Any]) -> Type:
    x, indices, values = args
    check_indices(indices)
    wanted = gather_shape(x, indices, params["axis"])
    fits = len(wanted) == values.type.ndim and all(same(s, t) for s, t in zip(wanted, values.type.shape, strict=True))
    if not fits:
        raise ShapeError(
            f"shape mismatch: value array of shape {show(values.type.shape)} could not be broadcast "
            f"to indexing result of shape {show(wanted)}"
        )
    return Type(x.type.dtype, x.type.shape)


def _guards(node: Node) -> list[Guard]:
    x, indices, values = node.args
    pairs = zip(gather_shape(x, indices, node["axis"]), values.type.shape, strict=True)
    return [(s, "==", t) for s, t in pairs if s != t]


def _numpy(ufunc: Any = None) -> Callable[..., Value]:
    def store(x: Value, indices: Value, values: Value, axis: int) -> Value:
        place: Any = (*(slice(None),) * axis, np.asarray(indices, np.int64))
        if ufunc is None:
            x[place] = values
        else:
            ufunc.at(x, place, values)
        return x

    return store


def _stacked(node: Node, args: Sequence[Node], batched: Sequence[bool], size: Size) -> Node:
    """Return the node for a batch: batched indices store into one long array that holds the batch, unbatched ones as before."""
    x, indices, values = (lead(a, b, size) if k != 1 else a for k, (a, b) in enumerate(zip(args, batched, strict=True)))
    axis, count = node["axis"], node.args[1].type.ndim
    if not batched[1]:
        return make(node.op, (x, indices, values), axis=axis + 1)
    front = to_front(x, axis + 1, 1)
    _, extent, *rest = front.type.shape
    long = reshape(front, (size * extent, *rest))
    flat = places_in_stack(indices, extent, size)
    stored = make(node.op, (long, flat, to_front(values, axis + 1, count)), axis=0)
    return from_front(reshape(stored, front.type.shape), axis + 1, 1)


def places_in_stack(indices: Node, extent: Size, size: Size) -> Node:
    """Return indices into each of ``size`` arrays of ``extent`` as indices into all of them end to end; out of bounds stays so."""
    index = astype(indices, np.int64)
    length = size_node(extent)
    inside = scalar.logical_and(scalar.greater_equal(index, -length), scalar.less(index, length))
    position = scalar.where(scalar.less(index, 0), index + length, index)
    return scalar.where(inside, position + iota(index.type.shape, 0) * length, size_node(size * extent))


# set ------------------------------------------------------------------------------------------------------------------


def _set_tangent(node: Node, tangents: Sequence[Tangent]) -> Tangent:
    x, indices, values = node.args
    base, _, part = tangents
    if base is None and part is None:
        return None
    base = zeros_like(x) if base is None else base
    part = zeros_like(values) if part is None else part
    return make(SCATTER_SET, (base, indices, part), axis=node["axis"])


def _set_back(node: Node, cotangent: Node, linear: Sequence[bool]) -> Sequence[Tangent]:
    x, indices, values = node.args
    axis = node["axis"]
    base = (
        make(SCATTER_SET, (cotangent, indices, zeros_like(values, cotangent.type.dtype)), axis=axis)
        if linear[0]
        else None
    )
    part: Tangent = None
    if linear[2]:
        part = make(GATHER, (cotangent, indices), axis=axis)
        stays = None if are_unique(indices) else _stays(indices, x.type.shape[axis])
        if stays is not None:
            shape = (*indices.type.shape, *[1] * (x.type.ndim - axis - 1))
            part = scalar.where(reshape(stays, shape), part, zeros_like(part))
    return base, None, part


def are_unique(indices: Node) -> bool:
    """Return whether indices are known at capture to be distinct."""
    if indices.op.name == "places":
        return True
    if indices.op is not CONSTANT:
        return not indices.type.ndim
    known = indices["bits"].array()
    return known.size <= 1 or (bool(known.min() >= 0 or known.max() < 0) and len(np.unique(known)) == known.size)


def _stays(indices: Node, extent: Size) -> Node:
    """Return for each index whether it is the last one of its place, so that its value stays."""
    flat = reshape(indices, (indices.type.size,))
    order = iota(flat.type.shape, 0)
    last = make(SCATTER_SET, (broadcast(constant(np.int64(0)), (extent,)), flat, order), axis=0)
    return reshape(scalar.equal(make(GATHER, (last, flat), axis=0), order), indices.type.shape)


def _scattered_rows(node: Node, axes: Axes, _rows: Size) -> Found:
    """Return the axis of rows in the result, if places are the same for all rows; else the name of the op that combines rows."""
    (own, picked, given), axis, count = axes, node["axis"], node.args[1].type.ndim
    if picked is None:
        if own is None or own == axis or given != (own if own < axis else own - 1 + count):
            raise Mixed("stores into some of the rows")
        return own
    if own is not None or given != axis + picked:
        raise Mixed("stores into rows that are picked")
    if not node.op.joins:
        raise Mixed("sets places that rows name, of which the last one counts")
    if node.op is SCATTER_ADD and not is_constant_zero(node.args[0]):
        raise Mixed("adds rows to an array")  # the base would be added once for each chunk
    return node.op.joins


def _set_apart(node: Node) -> Node | None:
    """Return a store of a single value as a mask of stored places and ``where``, for which the order of rows does not matter, or None."""
    x, indices, values = node.args
    known = constant_value(values)
    if known is None or not known.size or known.tobytes() != np.full_like(known, known.flat[0]).tobytes():
        return None
    blank, marks = (broadcast(constant(np.bool_(b)), v.type.shape) for b, v in ((False, x), (True, values)))
    named = make(SCATTER_MAXIMUM, (blank, indices, marks), axis=node["axis"])
    return scalar.where(named, broadcast(constant(known.flat[0]), x.type.shape), x)


SCATTER_SET = Store(
    name="scatter_set",
    raises=may_miss,
    split_rows=_scattered_rows,
    apart_rows=_set_apart,
    types=_type,
    numpy=_numpy(),
    tangent=_set_tangent,
    back=_set_back,
    stacked=_stacked,
    check=_guards,
    doc="x with the slices along an axis that an integer array names set to values; of repeated indices the last one counts.",
)

# add ------------------------------------------------------------------------------------------------------------------


def _add_back(node: Node, cotangent: Node, linear: Sequence[bool]) -> Sequence[Tangent]:
    back = make(GATHER, (cotangent, node.args[1]), axis=node["axis"]) if linear[2] else None
    return cotangent if linear[0] else None, None, back


def _add_stacked(node: Node, args: Sequence[Node], batched: Sequence[bool], size: Size) -> Node:
    if not batched[1]:
        return _stacked(node, args, batched, size)
    x, indices, values = (lead(a, b, size) for a, b in zip(args, batched, strict=True))
    axis, count = node["axis"], node.args[1].type.ndim
    places = places_along(x, indices, axis)
    added = reshape(to_front(values, axis + 1, count), places.type.shape)
    return from_front(make(ADD_ALONG_AXIS, (to_front(x, axis + 1, 1), places, added), axis=1), axis + 1, 1)


def _add_apart(node: Node) -> Node | None:
    """Return a scatter-add as one into zeros, added to the base, or None if the base is zero already."""
    x, indices, values = node.args
    if is_constant_zero(x):
        return None
    return scalar.add(x, make(SCATTER_ADD, (zeros_like(x), indices, values), axis=node["axis"]))


SCATTER_ADD = Store(
    name="scatter_add",
    raises=may_miss,
    joins="add",
    split_rows=_scattered_rows,
    apart_rows=_add_apart,
    types=_type,
    numpy=_numpy(np.add),
    tangent=sum_tangent,
    back=_add_back,
    stacked=_add_stacked,
    check=_guards,
    doc="x with values added to the slices along an axis that an integer array names; repeated indices add up.",
)

# multiply, maximum, minimum -------------------------------------------------------------------------------------------


def _taken(x: Node, node: Node) -> Node:
    """Return the slices of ``x`` that the node's indices select."""
    return make(GATHER, (x, node.args[1]), axis=node["axis"])


def _multiply_tangent(node: Node, tangents: Sequence[Tangent]) -> Tangent:
    x, indices, values = node.args
    base, _, part = tangents
    axis = node["axis"]
    result = zeros_like(x)
    if base is not None:
        ones = broadcast(constant(x.type.dtype.type(1)), x.type.shape)
        result = make(SCATTER_MULTIPLY, (ones, indices, values), axis=axis) * base
    if part is not None:
        added = astype(_taken(x, node) * _others(node) * part, x.type.dtype)
        result = make(SCATTER_ADD, (result, indices, added), axis=axis)
    return None if base is None and part is None else result


def _others(node: Node) -> Node:
    """Return for each value the product of the other values at its place, from a table of all pairs: zeros are right at any order."""
    x, indices, values = node.args
    axis, count = node["axis"], indices.type.ndim
    flat = astype(reshape(indices, (indices.type.size,)), np.int64)
    length = size_node(x.type.shape[axis])
    flat = scalar.where(scalar.less(flat, 0), flat + length, flat)
    (n,) = flat.type.shape
    shape = values.type.shape
    before, after = shape[:axis], shape[axis + count :]
    pair = (n, n)
    alike = scalar.equal(broadcast(reshape(flat, (n, 1)), pair), broadcast(flat, pair))
    other = scalar.logical_and(alike, scalar.not_equal(iota(pair, 0), iota(pair, 1)))
    wide = (*before, n, n, *after)
    chosen = scalar.where(
        broadcast(reshape(other, (n, n, *[1] * len(after))), wide),
        broadcast(reshape(values, (*before, 1, n, *after)), wide),
        values.type.dtype.type(1),
    )
    return reshape(fold(PROD, chosen, (axis + 1,)), shape)


def _extreme_tangent(node: Node, tangents: Sequence[Tangent]) -> Tangent:
    """Return the tangent of the winning element, shared evenly among ties, as for the maximum of an array."""
    x, indices, values = node.args
    base, _, part = tangents
    axis, dtype = node["axis"], node.type.dtype
    if base is None and part is None:
        return None
    own = astype(scalar.equal(x, node), dtype)
    given = astype(scalar.equal(values, _taken(node, node)), dtype)
    winners = make(SCATTER_ADD, (own, indices, given), axis=axis)
    result = zeros_like(x) if base is None else own * base
    if part is not None:
        result = make(SCATTER_ADD, (result, indices, astype(given * part, dtype)), axis=axis)
    return result / winners


SCATTER_MULTIPLY = Store(
    name="scatter_multiply",
    raises=may_miss,
    joins="multiply",
    types=_type,
    numpy=_numpy(np.multiply),
    tangent=_multiply_tangent,
    stacked=_stacked,
    check=_guards,
    doc="x multiplied by values at the slices along an axis that an integer array names; repeated indices multiply on.",
)
SCATTER_MAXIMUM = Store(
    name="scatter_maximum",
    raises=may_miss,
    joins="maximum",
    split_rows=_scattered_rows,
    types=_type,
    numpy=_numpy(np.maximum),
    tangent=_extreme_tangent,
    stacked=_stacked,
    check=_guards,
    doc="The larger of x and of every value that an integer array sends there, along an axis.",
)
SCATTER_MINIMUM = Store(
    name="scatter_minimum",
    raises=may_miss,
    joins="minimum",
    split_rows=_scattered_rows,
    types=_type,
    numpy=_numpy(np.minimum),
    tangent=_extreme_tangent,
    stacked=_stacked,
    check=_guards,
    doc="The smaller of x and of every value that an integer array sends there, along an axis.",
)


def scatter(op: Opaque, x: Node, indices: Node, values: Node, axis: int = 0) -> Node:
    """Return the node of the store ``op`` along ``axis``, with values broadcast to the indexed shape."""
    axis = normalise_axis(axis, x.type.ndim)
    stored = broadcast(values, gather_shape(x, indices, axis))
    return (in_single if op.joins else make)(op, (x, indices, stored), axis=axis)


def scatter_set(x: Node, indices: Node, values: Node, axis: int = 0) -> Node:
    """Return ``x[indices] = values`` along ``axis``, as a new array, with values cast to the dtype of ``x``."""
    return scatter(SCATTER_SET, x, indices, astype(values, x.type.dtype), axis)


def scatter_add(x: Node, indices: Node, values: Node, axis: int = 0) -> Node:
    """Return ``np.add.at(x, indices, values)`` along ``axis``, as a new array, with values cast to the dtype of ``x``."""
    return scatter(SCATTER_ADD, x, indices, astype(values, x.type.dtype), axis)
