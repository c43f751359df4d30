"""NumPy's functions that join and split arrays, on lazy arrays: concatenate, the stacks, split and the like."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from tensormagic.capture.errors.refusal import refuse
from tensormagic.capture.library.ordering import as_indices
from tensormagic.capture.library.shaping import at_least
from tensormagic.capture.names import implements
from tensormagic.capture.numbers import undecided_dtypes
from tensormagic.capture.numbers.known_values import static_value
from tensormagic.capture.values.arguments import (
    array_alone,
    done,
    extent_number,
    into_out,
    known,
    of_rank,
    one_axis,
    pad_empty_axes,
    shape_of,
    tensor,
)
from tensormagic.capture.values.casts import cast_error, cast_to
from tensormagic.capture.values.operands import array_of_rows, is_ours, node_of
from tensormagic.capture.values.value import Tensor, as_size, in_c_order, wrap
from tensormagic.ir.errors import BoundsError, ShapeError
from tensormagic.ir.node import Node
from tensormagic.ir.size import nodes_of
from tensormagic.ir.type import Type, apply, hint
from tensormagic.ops.effects.checks import require
from tensormagic.ops.fold import CUMSUM, reduce_sum, row
from tensormagic.ops.form import to_form
from tensormagic.ops.indices import sorting
from tensormagic.ops.indices.gather import gather
from tensormagic.ops.indices.scatter import scatter_add
from tensormagic.ops.leaf import constant, constant_value, iota, size_node, size_of
from tensormagic.ops.move import broadcast, concatenate, expand_dims, reshape, slice_, transpose
from tensormagic.ops.move_kind import same, show
from tensormagic.ops.pointwise import astype
from tensormagic.ops.scalars import scalar


def _promoted(arrays: Sequence[Any], dtype: Any = None, casting: str = "same_kind") -> list[Node]:
    nodes = [node_of(a) for a in arrays]
    common = np.result_type(*(n.type.dtype for n in nodes)) if dtype is None else np.dtype(dtype)
    return [cast_to(n, common, casting) for n in nodes]


def _weakly(t: Type) -> Any:
    """Return what NumPy promotes: the dtype, or a Python number for a weak type."""
    return t.dtype.type(0).item() if t.form == "python" else t.dtype


def _rows(arrays: Any) -> Node | None:
    """Return the array of a list that a loop has filled; None for other lists."""
    rows: Node | None = (
        arrays.stacks[0]
        if is_ours(arrays) and hasattr(arrays, "stacks") and len(arrays.stacks) == 1
        else array_of_rows(arrays)
    )
    if rows is None or not nodes_of(rows.type.shape[0]):
        return rows
    return require(rows, scalar.greater(size_node(rows.type.shape[0]), 0), "need at least one array to join")


@implements(np.concatenate)
def concatenate_(
    arrays: Any, /, axis: int | None = 0, out: Any = None, *, dtype: Any = None, casting: str = "same_kind"
) -> Any:
    """Implement ``np.concatenate``."""
    if isinstance(arrays, Iterator):
        np.concatenate(iter(()))  # type: ignore[call-overload]  (it raises)
    rows = _rows(arrays)
    if rows is not None and rows.type.ndim > 1:
        parts = [_joined(rows, one_axis(axis, rows.type.ndim - 1))] if axis is not None else [rows]
    else:
        parts = list(arrays)
    if not parts:
        raise ShapeError("need at least one array to concatenate")
    if out is not None and dtype is not None:
        raise TypeError("concatenate() only takes `out` or `dtype` as an argument, but both were provided.")
    fixed = dtype is not None
    if axis is None and not fixed:  # a Python number leaves the dtype to others only here
        dtype = np.result_type(*(_weakly(node_of(p).type) for p in parts))
    nodes = _promoted(parts, dtype, casting)
    if any(not n.type.ndim for n in nodes) and axis is not None:
        raise ShapeError("zero-dimensional arrays cannot be concatenated")
    if axis is None:
        nodes, axis = [reshape(n, (-1,)) for n in nodes], 0
    whole = concatenate(nodes, one_axis(axis, nodes[0].type.ndim))
    return into_out(whole if fixed else undecided_dtypes.joined(whole, map(node_of, parts)), out, "concatenate")


def _joined(rows: Node, axis: int) -> Tensor:
    """Return the rows of an array, laid end to end along one of their axes."""
    front = transpose(rows, (*range(1, axis + 1), 0, *range(axis + 1, rows.type.ndim)))
    shape = front.type.shape
    return wrap(reshape(front, (*shape[:axis], shape[axis] * shape[axis + 1], *shape[axis + 2 :])))


@implements(np.stack)
def stack(arrays: Any, axis: int = 0, out: Any = None, **options: Any) -> Any:
    """Implement ``np.stack``."""
    rows = _rows(arrays)
    if rows is not None and out is None and not options:
        return in_c_order(done(transpose(rows, _first_moved_to(one_axis(axis, rows.type.ndim), rows.type.ndim))))
    nodes = [node_of(a) for a in arrays]
    if not nodes:
        raise ShapeError("need at least one array to stack")
    first = nodes[0].type.shape
    if any(len(n.type.shape) != len(first) or not all(map(same, n.type.shape, first)) for n in nodes):
        raise ShapeError("all input arrays must have the same shape")
    position = one_axis(axis, nodes[0].type.ndim + 1)
    return concatenate_([expand_dims(n, (position,)) for n in nodes], position, out, **options)


def _first_moved_to(position: int, rank: int) -> tuple[int, ...]:
    order = list(range(1, rank))
    order.insert(position, 0)
    return tuple(order)


@implements(np.hstack)
def hstack(tup: Any, **options: Any) -> Any:
    """Implement ``np.hstack``."""
    rows = _rows(tup)
    if rows is not None and not options:
        return done(rows) if rows.type.ndim == 1 else concatenate_(tup, 0 if rows.type.ndim == 2 else 1)
    nodes = [at_least(node_of(a), 1) for a in tup]
    return concatenate_(nodes, 0 if nodes and nodes[0].type.ndim == 1 else 1, **options)


@implements(np.vstack, getattr(np, "row_stack", np.vstack))
def vstack(tup: Any, **options: Any) -> Any:
    """Implement ``np.vstack``."""
    rows = _rows(tup)
    if rows is not None and not options:
        return (
            done(reshape(rows, (-1, 1) if rows.type.ndim == 1 else rows.type.shape))
            if rows.type.ndim < 3
            else concatenate_(tup)
        )
    return concatenate_([at_least(node_of(a), 2) for a in tup], 0, **options)


@implements(np.dstack)
def dstack(tup: Any) -> Any:
    """Implement ``np.dstack``."""
    return concatenate_([at_least(node_of(a), 3) for a in tup], 2)


@implements(np.column_stack)
def column_stack(tup: Any) -> Any:
    """Implement ``np.column_stack``."""
    rows = _rows(tup)
    if rows is not None and rows.type.ndim < 3:
        return done(transpose(rows, (1, 0)) if rows.type.ndim == 2 else reshape(rows, (1, -1)))
    nodes = [node_of(a) for a in tup]
    return concatenate_([reshape(n, (-1, 1)) if n.type.ndim < 2 else n for n in nodes], 1)


@implements(np.block)
def block(arrays: Any) -> Any:
    """Implement ``np.block``: the innermost lists are joined along the last axis, those around them along the axis before."""
    depth = _depth(arrays)
    rank = max(depth, *(node_of(leaf).type.ndim for leaf in _leaves(arrays)))

    def joined(part: Any, level: int) -> Node:
        if level == depth:
            node = node_of(part)
            return reshape(node, (*[1] * (rank - node.type.ndim), *node.type.shape)) if node.type.ndim < rank else node
        return node_of(concatenate_([joined(p, level + 1) for p in part], axis=level - depth))

    return done(joined(arrays, 0)).copy()


def _depth(part: Any) -> int:
    if isinstance(part, tuple):
        raise TypeError("np.block takes lists of arrays, not tuples")
    if not isinstance(part, list):
        return 0
    depths = {_depth(p) for p in part}
    if not depths:
        raise ValueError("List depths are mismatched: an empty list in np.block")
    if len(depths) > 1:
        raise ValueError("List depths are mismatched in np.block")
    return 1 + depths.pop()


def _leaves(part: Any) -> list[Any]:
    return [leaf for p in part for leaf in _leaves(p)] if isinstance(part, list) else [part]


@implements(np.append)
def append(arr: Any, values: Any, axis: int | None = None) -> Any:
    """Implement ``np.append``."""
    parts = (tensor(arr), tensor(values))
    return concatenate_(parts, axis) if axis is not None else concatenate_([p.reshape(-1) for p in parts])


# splitting ------------------------------------------------------------------------------------------------------------


def _parts(x: Tensor, bounds: Sequence[Any], axis: int) -> list[Any]:
    edges = [0, *bounds, None]
    return [x[(slice(None),) * axis + (slice(a, b),)] for a, b in itertools.pairwise(edges)]


def _sections(value: Any) -> int | None:
    """Return the number of sections; None if the places to cut at are given."""
    value = known(value, "the sections of a split")
    return int(value) if np.ndim(value) == 0 else None


@implements(np.array_split)
def array_split(ary: Any, indices_or_sections: Any, axis: int = 0) -> Any:
    """Implement ``np.array_split``: views, the first ones longer by one where the sections are not equal."""
    x = tensor(ary)
    axis = one_axis(axis, x.ndim)
    parts = _sections(indices_or_sections)
    if parts is None:
        return _parts(x, list(indices_or_sections), axis)
    if parts <= 0:
        raise ValueError("number sections must be larger than 0.")
    length, extras = divmod(int(x.shape[axis]), parts)
    return _parts(x, [length * k + min(k, extras) for k in range(1, parts)], axis)


@implements(np.split)
def split(ary: Any, indices_or_sections: Any, axis: int = 0) -> Any:
    """Implement ``np.split``: views."""
    x = tensor(ary)
    parts = _sections(indices_or_sections)
    if parts is not None and isinstance(ary, list | tuple):
        raise AttributeError(f"{type(ary).__name__!r} object has no attribute 'shape'")
    if parts is not None and int(x.shape[one_axis(axis, x.ndim)]) % parts:
        raise ShapeError("array split does not result in an equal division")
    return array_split(x, indices_or_sections, axis)


def _split_along(name: str, axis: int, rank: int) -> Any:
    def cut(ary: Any, indices_or_sections: Any) -> Any:
        x = tensor(ary)
        if x.ndim < rank:
            raise ValueError(f"{name} only works on arrays of {rank} or more dimensions")
        return split(x, indices_or_sections, 0 if x.ndim == 1 else axis)

    return cut


implements(np.hsplit)(_split_along("hsplit", 1, 1))
implements(np.vsplit)(_split_along("vsplit", 0, 2))
implements(np.dsplit)(_split_along("dsplit", 2, 3))


@implements(np.unstack)
def unstack(x: Any, /, *, axis: int = 0) -> Any:
    """Implement ``np.unstack``."""
    array = array_alone(x)
    if not array.ndim:
        raise ValueError("Input array must be at least 1-d.")
    axis = one_axis(axis, array.ndim)
    return tuple(array[(slice(None),) * axis + (k,)] for k in range(int(array.shape[axis])))


# inserting and leaving out --------------------------------------------------------------------------------------------


@implements(np.insert)
def insert(arr: Any, obj: Any, values: Any, axis: int | None = None) -> Any:
    """Implement ``np.insert``: a stable sort of the places says where each old and each new slice goes."""
    x = node_of(arr)
    if axis is None:
        x, axis = reshape(x, (x.type.size,)) if x.type.ndim != 1 else x, 0
    axis = one_axis(axis, x.type.ndim)
    if isinstance(obj, slice):
        obj = np.arange(*obj.indices(extent_number(x, axis)))
    places = as_indices(obj)
    if places.type.dtype.kind == "b":
        refuse("np.insert at a mask", "Use np.flatnonzero(mask).")
    new = astype(node_of(values), x.type.dtype)
    new = of_rank(new, x.type.ndim)
    if not places.type.ndim:  # one place: the values' own axis says how many are inserted
        if node_of(values).type.ndim and x.type.ndim > 1:
            new = _first_to(new, axis)
        places = broadcast(reshape(places, (1,)), (new.type.shape[axis],))
    elif places.type.ndim > 1:
        raise ShapeError("index array argument obj to insert must be one dimensional or scalar")
    else:
        count = new.type.shape[axis] if places.type.shape[0] == 1 else places.type.shape[0]
        places = broadcast(places, (count,))
    places = _within(places, x, axis)
    extent, added = x.type.shape[axis], places.type.shape[0]
    new = broadcast(new, tuple(added if k == axis else s for k, s in enumerate(x.type.shape)))
    places = scalar.where(scalar.less(places, 0), places + size_node(extent), astype(places, np.int64))
    keys = concatenate([iota((extent,), 0) * 2 + 1, places * 2], 0)
    order = sorting.argsort(keys, 0, "stable")
    return done(gather(concatenate([x, new], axis), order, axis))


def _first_to(values: Node, axis: int) -> Node:
    """Return values for one place with their first axis along the axis of insertion, as NumPy lays them out."""
    order = [*range(1, axis + 1), 0, *range(axis + 1, values.type.ndim)]
    return transpose(values, tuple(order))


def _within(places: Node, x: Node, axis: int) -> Node:
    """Return places to insert at, checked to be in bounds: at once if they are known, else when the graph runs."""
    extent = x.type.shape[axis]
    numbers, seen = constant_value(places), hint(extent)
    message = f"index is out of bounds for axis {axis}"
    if numbers is not None and seen is not None and ((numbers < -seen) | (numbers > seen)).any():
        raise BoundsError(f"{message} with size {seen}")
    size = size_node(extent)
    inside = scalar.logical_and(scalar.greater_equal(places, -size), scalar.less_equal(places, size))
    return require(places, inside, message, "index")


@implements(np.delete)
def delete(arr: Any, obj: Any, axis: int | None = None) -> Any:
    """Implement ``np.delete``: of slices that are known, or as a mask of those that are left."""
    x = node_of(arr)
    if axis is None:
        x, axis = reshape(x, (x.type.size,)) if x.type.ndim != 1 else x, 0
    axis = one_axis(axis, x.type.ndim)
    if isinstance(obj, Tensor) and not obj.ndim and obj.dtype.kind in "iu" and constant_value(obj.node) is None:
        return done(_without_one(x, obj.node, axis))
    if isinstance(obj, Tensor):
        return done(x)[(slice(None),) * axis + (done(_kept(x, obj.node, axis)),)]
    kept = np.delete(np.arange(extent_number(x, axis)), obj)
    return done(gather(x, constant(kept), axis))


def _kept(x: Node, places: Node, axis: int) -> Node:
    """Return the mask of the slices that ``np.delete`` keeps: those not masked, or not equal to any index."""
    extent = x.type.shape[axis]
    if places.type.dtype.kind == "b":
        if places.type.ndim != 1 or not same(places.type.shape[0], extent):
            raise ShapeError("boolean array argument obj to delete must be one dimensional and match the axis length")
        return scalar.logical_not(places)
    if places.type.dtype.kind not in "iu":
        raise BoundsError("arrays used as indices must be of integer (or boolean) type")
    taken = gather(iota((extent,), 0), reshape(places, (-1,)), 0)  # an IndexError where one is out of bounds
    hits = scatter_add(broadcast(constant(np.int64(0)), (extent,)), taken, constant(np.int64(1)))
    return scalar.equal(hits, 0)


def _without_one(x: Node, place: Node, axis: int) -> Node:
    place = gather(iota((x.type.shape[axis],), 0), place, 0)  # an IndexError where it is out of bounds
    ramp = iota((x.type.shape[axis] - 1,), 0)
    return gather(x, ramp + astype(scalar.greater_equal(ramp, place), np.int64), axis)


# repeating and turning ------------------------------------------------------------------------------------------------


@implements(np.tile)
def tile(A: Any, reps: Any) -> Any:
    """Implement ``np.tile`` by numbers that are known."""
    x = node_of(A)
    counts = shape_of(known(reps, "the counts of np.tile"))
    rank = max(len(counts), x.type.ndim)
    counts = (1,) * (rank - len(counts)) + counts
    shape = (1,) * (rank - x.type.ndim) + x.type.shape
    wide = reshape(x, tuple(s for extent in shape for s in (1, extent)))
    stretched = broadcast(wide, tuple(s for count, extent in zip(counts, shape, strict=True) for s in (count, extent)))
    result = reshape(stretched, tuple(count * extent for count, extent in zip(counts, shape, strict=True)))
    return done(result if rank else to_form(result, "array"))


@implements(np.repeat, method="repeat")
def repeat(a: Any, repeats: Any, axis: int | None = None) -> Any:
    """Implement ``np.repeat``: by one number for all, or by a number for each."""
    x = node_of(a)
    if axis is None or (not x.type.ndim and axis in {0, -1}):
        x, axis = reshape(x, (-1,)), 0
    axis = one_axis(axis, x.type.ndim)
    if np.ndim(repeats):
        return done(gather(x, _repeated(node_of(repeats), x, axis), axis))
    shape, count = x.type.shape, shape_of(repeats)[0]
    if isinstance(count, int) and count < 0:
        raise ValueError("repeats may not contain negative values.")
    wide = broadcast(expand_dims(x, (axis + 1,)), (*shape[: axis + 1], count, *shape[axis + 1 :]))
    return done(reshape(wide, (*shape[:axis], shape[axis] * count, *shape[axis + 1 :])))


def _repeated(counts: Node, x: Node, axis: int) -> Node:
    """Return the source index of each element of the result, whose length is the sum of the counts."""
    extent = x.type.shape[axis]
    if counts.type.ndim != 1:
        raise ShapeError("object too deep for desired array")
    if counts.type.dtype.kind not in "biu":
        raise cast_error(counts.type.dtype, np.int64)
    numbers, length = constant_value(counts), counts.type.shape[0]
    if numbers is not None and isinstance(length, int) and length != 1:
        return constant(np.repeat(np.arange(extent_number(x, axis)), np.broadcast_to(numbers, (length,))))
    if not same(counts.type.shape[0], extent) and counts.type.shape[0] != 1:
        raise ShapeError(
            f"operands could not be broadcast together with shape {show((extent,))} {show(counts.type.shape)}"
        )
    counts = broadcast(astype(counts, np.int64), (extent,))
    counts = require(counts, scalar.greater_equal(counts, 0), "repeats may not contain negative values.")
    ends = row(CUMSUM, counts, (0,))
    total = as_size(wrap(reduce_sum(counts, (0,))))
    return sorting.searchsorted(ends, iota((total,), 0), "right")


@implements(np.resize)
def resize(a: Any, new_shape: Any) -> Any:
    """Implement ``np.resize``: the elements over and over."""
    x, shape = reshape(node_of(a), (-1,)), shape_of(new_shape)
    total: Any = 1
    for s in shape:
        total = total * s
    if x.type.size == 0:
        return done(broadcast(constant(x.type.dtype.type(0)), shape))
    x = pad_empty_axes(x, (0,), 0)
    return done(reshape(gather(x, scalar.remainder(iota((total,), 0), size_node(x.type.size)), 0), shape))


@implements(np.roll)
def roll(a: Any, shift: Any, axis: Any = None) -> Any:
    """Implement ``np.roll``."""
    x = node_of(a)
    if axis is None:
        return tensor(roll(reshape(x, (-1,)), shift, 0)).reshape(x.type.shape)
    axes = [one_axis(k, x.type.ndim) for k in (axis if isinstance(axis, tuple | list) else (axis,))]
    shifts = _shifts(shift)
    if len(axes) > 1 and len(shifts) > 1 and len(axes) != len(shifts):
        raise ValueError("'shift' and 'axis' should be scalars or 1D sequences")
    for k, (s, axis_) in enumerate(zip(shifts * len(axes), axes * len(shifts), strict=False)):
        if k < max(len(shifts), len(axes)):
            x = _rolled(x, s, axis_)
    return done(x)


def _shifts(shift: Any) -> list[Any]:
    """Return by how much ``np.roll`` moves elements: the numbers of a sequence, or one number."""
    rank = node_of(shift).type.ndim
    if rank > 1:
        raise ValueError("'shift' and 'axis' should be scalars or 1D sequences")
    if rank and isinstance(shift, Tensor) and nodes_of(shift.type.shape[0]):
        refuse("np.roll by a data-dependent number of shifts", "Write one np.roll for each axis.")
    return [_whole(s) for s in (shift if rank else [shift])]


def _whole(shift: Any) -> Any:
    if isinstance(shift, float | np.floating | np.bool_):
        return int(shift)
    return wrap(astype(shift.node, np.int64)) if isinstance(shift, Tensor) and shift.dtype.kind in "bf" else shift


def _rolled(x: Node, shift: Any, axis: int) -> Node:
    extent = x.type.shape[axis]
    if extent in {0, 1}:
        return x
    count = scalar.maximum(size_node(extent), 1) if nodes_of(extent) else size_node(extent)
    if isinstance(shift, Tensor) and size_of(shift.node) is None and static_value(shift.node) is None:
        return gather(x, scalar.remainder(iota((extent,), 0) - shift.node, count), axis)
    if nodes_of(extent):
        return gather(x, scalar.remainder(iota((extent,), 0) - node_of(shift), count), axis)
    by = apply("mod", as_size(shift), extent)
    if by == 0:
        return x

    def part(start: Any, length: Any) -> Node:
        return slice_(x, tuple((start, length, 1) if d == axis else (0, s, 1) for d, s in enumerate(x.type.shape)))

    return concatenate([part(extent - by, by), part(0, extent - by)], axis)
