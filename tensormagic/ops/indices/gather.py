"""Elements by integer arrays: whole slices by one index each, or one index for each element along an axis.

Negative indices count from the end; an index out of bounds is NumPy's ``IndexError`` when the graph runs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import Any

import numpy as np

from tensormagic.ir.errors import BoundsError, DTypeError, ShapeError
from tensormagic.ir.node import Node, as_size, make
from tensormagic.ir.operation import Guard
from tensormagic.ir.size import is_at_least
from tensormagic.ir.type import Size, Type, lower_bound, product
from tensormagic.ops.move import BROADCAST, broadcast, reshape, transpose
from tensormagic.ops.move_kind import broadcast_shapes, normalise_axis, same, show
from tensormagic.ops.op import Tangent, Value
from tensormagic.ops.opaque import Opaque, Store, along_axis
from tensormagic.ops.pointwise import astype, in_single
from tensormagic.ops.rows import Axes, Mixed
from tensormagic.ops.update import zeros_like


def check_indices(indices: Node) -> None:
    """Raise DTypeError for indices that are not integers."""
    if indices.type.dtype.kind not in "biu":
        raise DTypeError(f"cannot take elements by an array of dtype {indices.type.dtype}: indices are integers")


def _array(dtype: np.dtype[Any], shape: tuple[Size, ...]) -> Type:
    return Type(dtype, shape, "array" if shape else "scalar")


# whole slices by one index each ---------------------------------------------------------------------------------------


def gather_shape(x: Node, indices: Node, axis: int) -> tuple[Size, ...]:
    """Return the shape of the slices of ``x`` along ``axis`` that ``indices`` select."""
    shape = x.type.shape
    return (*shape[:axis], *indices.type.shape, *shape[axis + 1 :])


def _gather_type(args: tuple[Node, ...], params: Mapping[str, Any]) -> Type:
    x, indices = args
    check_indices(indices)
    found = _array(x.type.dtype, gather_shape(x, indices, params["axis"]))
    if x.type.shape[params["axis"]] == 0 and (lower_bound(found.size) or 0) > 0:
        raise BoundsError("cannot do a non-empty take from an empty axes.")
    return found


def _gather_tangent(node: Node, tangents: Sequence[Tangent]) -> Tangent:
    return None if tangents[0] is None else make(GATHER, (tangents[0], node.args[1]), axis=node["axis"])


def _gather_back(node: Node, cotangent: Node, _linear: Sequence[bool]) -> Sequence[Tangent]:
    from tensormagic.ops.indices.scatter import SCATTER_ADD

    x, indices = node.args
    return in_single(SCATTER_ADD, (zeros_like(x), indices, cotangent), axis=node["axis"]), None


def _gather_numpy(x: Value, indices: Value, axis: int) -> Value:
    if np.size(x):
        return np.take(x, indices, axis=axis)
    places: Any = (*(slice(None),) * axis, np.asarray(indices, np.int64))
    return x[places]  # np.take does not check indices into empty arrays


@dataclass(frozen=True, eq=False, kw_only=True)
class Gather(Opaque):
    """Slices along an axis, by one index each."""

    def expression(self, node: Node, given: Sequence[str], scope: Any) -> str | None:
        x, indices = given
        if not node.type.shape or not node.args[1].type.shape:
            return None
        slow = f"{scope.text.object(_gather_numpy)}({x}, {indices}, {node['axis']})"
        return f"{x}.take({indices}, {node['axis']}) if {x}.size else {slow}"


def _gather_rows(node: Node, axes: Axes, _rows: Size) -> int:
    """Return the axis of rows: of the indices, if a whole table is indexed, or of ``x``, if the indices are the same for all rows."""
    (own, picked), axis = axes, node["axis"]
    if own is None and picked is not None:
        return axis + picked
    if own is None or picked is not None or own == axis:
        raise Mixed("picks rows")
    return own if own < axis else own - 1 + node.args[1].type.ndim


def _gather_apart(node: Node) -> Node | None:
    from tensormagic.ops.indices.few_rows import rows_of_gather

    return rows_of_gather(node)


def are_indices(values: Node, extent: Size) -> bool:
    """Return whether integers are known to be in bounds of an axis, and nonnegative."""
    count = _count(values)
    return count is not None and is_at_least(extent - count, 0)


def _count(values: Node) -> Size | None:
    """Return an exclusive upper bound of nonnegative integers, such as places in axes laid end to end, or None if not known."""
    low, high = values.bounds
    if low is not None and high is not None:
        return high + 1 if is_at_least(low, 0) else None
    for last, before in permutations(values.args) if values.op.infix == "+" else ():
        end = last.bounds[1]
        if end is None or before.op.infix != "*" or last.bounds[0] != 0:
            continue
        for inner, outer in permutations(before.args):
            length = as_size(inner.args[0] if inner.op is BROADCAST else inner)
            if length == end + 1 and (count := _count(outer)) is not None:
                return count * (end + 1)
    return None


def may_miss(node: Node) -> bool:
    """Return whether an index along the node's axis may be out of bounds."""
    return not are_indices(node.args[1], node.args[0].type.shape[node["axis"]])


GATHER = Gather(
    name="gather",
    in_numpy="np.take",
    takes=True,
    apart_rows=_gather_apart,
    raises=may_miss,
    split_rows=_gather_rows,
    types=_gather_type,
    numpy=_gather_numpy,
    tangent=_gather_tangent,
    back=_gather_back,
    stacked=lambda *stack: _gather_stacked(*stack),
    doc="The slices along an axis that an integer array selects: np.take.",
)


def gather(x: Node, indices: Node, axis: int | None = None) -> Node:
    """Return ``np.take``; ``axis=None`` takes from the flattened array."""
    if axis is None:
        x, axis = reshape(x, (x.type.size,)), 0
    if not x.type.ndim:
        x = reshape(x, (1,))
    return make(GATHER, (x, indices), axis=normalise_axis(axis, x.type.ndim))


def sum_tangent(node: Node, tangents: Sequence[Tangent]) -> Tangent:
    """Return the tangent of a scatter-add, which is linear in the base and in the values added."""
    x, indices, values = node.args
    base, _, part = tangents
    if base is None and part is None:
        return None
    if part is None:
        return base
    base = zeros_like(x) if base is None else base
    return make(node.op, (base, indices, astype(part, values.type.dtype)), **node.params)


def places_along(x: Node, indices: Node, axis: int) -> Node:
    """Return the batched indices, repeated for each element of batched arrays ``x`` whose ``axis`` is in front."""
    size, *own = indices.type.shape
    _, *shape = x.type.shape
    rest = (*shape[:axis], *shape[axis + 1 :])
    places = reshape(astype(indices, np.int64), (size, product(tuple(own)), *[1] * len(rest)))
    return broadcast(places, (*places.type.shape[:2], *rest))


def to_front(x: Node, first: int, count: int) -> Node:
    """Return ``x`` with ``count`` axes, from axis ``first`` on, moved directly after the batch axis."""
    moved = range(first, first + count)
    return transpose(x, (0, *moved, *(k for k in range(1, x.type.ndim) if k not in moved)))


def from_front(x: Node, first: int, count: int) -> Node:
    """Return the inverse of :func:`to_front`."""
    rest = range(count + 1, x.type.ndim)
    return transpose(x, (0, *rest[: first - 1], *range(1, count + 1), *rest[first - 1 :]))


def _gather_stacked(node: Node, args: Sequence[Node], batched: Sequence[bool], size: Size) -> Node:
    """Return the node for a batch: batched indices take along their own array's axis, unbatched indices as before."""
    x, indices = args
    axis, count = node["axis"], node.args[1].type.ndim
    if not batched[1]:
        return make(GATHER, (x, indices), axis=axis + 1)
    if not batched[0]:
        found = make(GATHER, (x, indices), axis=axis)
        return transpose(found, (axis, *(k for k in range(found.type.ndim) if k != axis)))
    taken = take_along_axis(to_front(x, axis + 1, 1), places_along(x, indices, axis), 1)
    own = indices.type.shape[1:]
    return from_front(reshape(taken, (size, *own, *taken.type.shape[2:])), axis + 1, count)


# one index for each element -------------------------------------------------------------------------------------------


def _others_fit(x: Node, indices: Node, axis: int) -> bool:
    pairs = enumerate(zip(x.type.shape, indices.type.shape, strict=True))
    return all(k == axis or same(s, t) for k, (s, t) in pairs)


def _along_type(args: tuple[Node, ...], params: Mapping[str, Any]) -> Type:
    x, indices = args[0], args[1]
    if indices.type.dtype.kind not in "iu":
        raise DTypeError(f"cannot take elements by an array of dtype {indices.type.dtype}: indices are integers")
    if x.type.ndim != indices.type.ndim or not _others_fit(x, indices, params["axis"]):
        raise ShapeError(
            f"indices of shape {show(indices.type.shape)} do not fit an array of shape {show(x.type.shape)} "
            f"along axis {params['axis']}"
        )
    return _array(x.type.dtype, indices.type.shape)


def _along_guards(node: Node) -> list[Guard]:
    x, indices = node.args[0], node.args[1]
    pairs = enumerate(zip(x.type.shape, indices.type.shape, strict=True))
    return [(s, "==", t) for k, (s, t) in pairs if k != node["axis"] and s != t]


def _take_along_tangent(node: Node, tangents: Sequence[Tangent]) -> Tangent:
    return None if tangents[0] is None else make(TAKE_ALONG_AXIS, (tangents[0], node.args[1]), axis=node["axis"])


def _take_along_back(node: Node, cotangent: Node, _linear: Sequence[bool]) -> Sequence[Tangent]:
    x, indices = node.args
    return in_single(ADD_ALONG_AXIS, (zeros_like(x), indices, cotangent), axis=node["axis"]), None


TAKE_ALONG_AXIS = Opaque(
    name="take_along_axis",
    in_numpy="np.take_along_axis",
    takes=True,
    raises=True,
    split_rows=along_axis,
    types=_along_type,
    numpy=np.take_along_axis,
    tangent=_take_along_tangent,
    back=_take_along_back,
    check=_along_guards,
    doc="Along an axis, for each place the element that an integer array of the same rank selects.",
)


def take_along_axis(x: Node, indices: Node, axis: int | None = -1) -> Node:
    """Return ``np.take_along_axis``: the other axes broadcast; ``axis=None`` takes from the flattened array."""
    if axis is None:
        x, axis = reshape(x, (x.type.size,)), 0
    axis = normalise_axis(axis, x.type.ndim)
    if x.type.ndim != indices.type.ndim:
        raise ShapeError("`indices` and `arr` must have the same number of dimensions")

    def without(node: Node) -> tuple[Size, ...]:
        return (*node.type.shape[:axis], *node.type.shape[axis + 1 :])

    others = broadcast_shapes([without(x), without(indices)])

    def stretched(node: Node) -> Node:
        return broadcast(node, (*others[:axis], node.type.shape[axis], *others[axis:]))

    return make(TAKE_ALONG_AXIS, (stretched(x), stretched(indices)), axis=axis)


def _add_along_type(args: tuple[Node, ...], params: Mapping[str, Any]) -> Type:
    x, indices, values = args
    _along_type((x, indices), params)
    wanted = indices.type.shape
    if len(wanted) != values.type.ndim or not all(same(s, t) for s, t in zip(wanted, values.type.shape, strict=True)):
        raise ShapeError(
            f"values of shape {show(values.type.shape)} cannot be added where a shape of {show(wanted)} is indexed"
        )
    return Type(x.type.dtype, x.type.shape)


def _add_along_numpy(x: Value, indices: Value, values: Value, axis: int) -> Value:
    shape = np.shape(indices)
    places = [np.arange(n).reshape([-1 if j == k else 1 for j in range(len(shape))]) for k, n in enumerate(shape)]
    np.add.at(x, tuple(indices if k == axis else place for k, place in enumerate(places)), values)
    return x


def _add_along_back(node: Node, cotangent: Node, linear: Sequence[bool]) -> Sequence[Tangent]:
    back = make(TAKE_ALONG_AXIS, (cotangent, node.args[1]), axis=node["axis"]) if linear[2] else None
    return cotangent if linear[0] else None, None, back


def _add_along_guards(node: Node) -> list[Guard]:
    _, indices, values = node.args
    return _along_guards(node) + [
        (s, "==", t) for s, t in zip(indices.type.shape, values.type.shape, strict=True) if s != t
    ]


ADD_ALONG_AXIS = Store(
    name="add_along_axis",
    joins="add",
    split_rows=along_axis,
    types=_add_along_type,
    numpy=_add_along_numpy,
    tangent=sum_tangent,
    back=_add_along_back,
    check=_add_along_guards,
    doc="x with values added, along an axis, where an integer array of the same rank says; repeated places add up.",
)
