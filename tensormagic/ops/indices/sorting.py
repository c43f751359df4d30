"""Sorting along an axis, and searching in sorted rows; the derivative of a sort follows the elements to their new places."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from tensormagic.ir.errors import AxisError, CaptureError, DTypeError, ShapeError
from tensormagic.ir.node import Node, make
from tensormagic.ir.type import Size, Type
from tensormagic.ops.fold import reduce_sum
from tensormagic.ops.indices.gather import take_along_axis
from tensormagic.ops.move import lead, reshape
from tensormagic.ops.move_kind import normalise_axis
from tensormagic.ops.op import Tangent, Value
from tensormagic.ops.opaque import Opaque, along_axis
from tensormagic.ops.pointwise import astype
from tensormagic.ops.rows import Axes, Mixed, common_axis
from tensormagic.ops.scalars import scalar

_KINDS = {"quicksort", "heapsort", "stable", "mergesort"}


def _checked(args: tuple[Node, ...]) -> Type:
    t = args[0].type
    if t.dtype.kind not in "biufc":
        raise DTypeError(f"sort does not take an array of dtype {t.dtype}")
    return t


def _sort_type(args: tuple[Node, ...], _params: Mapping[str, Any]) -> Type:
    t = _checked(args)
    return Type(t.dtype, t.shape)


def _argsort_type(args: tuple[Node, ...], _params: Mapping[str, Any]) -> Type:
    return Type(np.dtype(np.int64), _checked(args).shape)


def _sort_tangent(node: Node, tangents: Sequence[Tangent]) -> Tangent:
    if tangents[0] is None:
        return None
    order = make(ARGSORT, node.args, axis=node["axis"], kind="stable")
    return take_along_axis(tangents[0], order, node["axis"])


SORT = Opaque(
    name="sort",
    in_numpy="np.sort",
    each=5000,
    split_rows=along_axis,
    types=_sort_type,
    numpy=np.sort,
    tangent=_sort_tangent,
    doc="The elements along an axis, ascending; nan last.",
)
ARGSORT = Opaque(
    name="argsort",
    in_numpy="np.argsort",
    each=5000,
    split_rows=along_axis,
    types=_argsort_type,
    numpy=np.argsort,
    tangent=lambda _node, _tangents: None,
    doc="The indices that sort along an axis.",
)


ROW_ORDER = Opaque(
    name="row_order",
    each=5000,
    types=lambda args, _params: Type(np.dtype(np.int64), args[0].type.shape[:1]),
    numpy=lambda rows: np.lexsort(rows.T[::-1]) if rows.shape[1] else np.arange(len(rows)),
    tangent=lambda _node, _tangents: None,
    stacked=lambda _node, _args, _batched, _size: _no_stack(),
    doc="The indices that sort the rows of a matrix, by their first elements first.",
)


def _no_stack() -> Node:
    raise CaptureError("np.unique along an axis has no rule for batches", "Take it of each example in a loop.")


def row_order(rows: Node) -> Node:
    """Return the indices that sort rows lexicographically, first element first; equal rows keep their order."""
    return make(ROW_ORDER, (rows,))


def _build(op: Opaque, x: Node, axis: int | None, kind: str | None, stable: bool | None) -> Node:
    if kind is not None and stable is not None:
        message = "`kind` and `stable` parameters can't be provided at the same time. Use only one of them."
        raise ValueError(message)
    if kind is not None and kind not in _KINDS:
        message = f"sort kind must be one of 'quick', 'heap', or 'stable' (got '{kind}')"
        raise ValueError(message)
    if axis is None:
        x, axis = reshape(x, (x.type.size,)), -1
    if op is ARGSORT and not x.type.ndim:
        x = reshape(x, (1,))  # as NumPy does, only for this function
    if not x.type.ndim:
        raise AxisError(f"axis {axis} is out of bounds for array of dimension 0")
    return make(op, (x,), axis=normalise_axis(axis, x.type.ndim), kind="stable" if stable else kind)


def sort(x: Node, axis: int | None = -1, kind: str | None = None, *, stable: bool | None = None) -> Node:
    """Return ``np.sort``; ``axis=None`` sorts the flattened array."""
    return _build(SORT, x, axis, kind, stable)


def argsort(x: Node, axis: int | None = -1, kind: str | None = None, *, stable: bool | None = None) -> Node:
    """Return ``np.argsort``; ``axis=None`` sorts the flattened array."""
    return _build(ARGSORT, x, axis, kind, stable)


# partitions -----------------------------------------------------------------------------------------------------------


def _by_rows(function: Callable[..., Value]) -> Callable[..., Value]:
    """Return ``np.partition`` or ``np.argpartition`` for stacks: after ``stack`` leading axes, each row has its own places."""

    def run(x: Value, places: Value, axis: int, stack: int = 0) -> Value:
        if not stack:
            return function(x, places, axis)
        rows = [function(x[k], places[k], axis - stack) for k in np.ndindex(x.shape[:stack])]
        return np.reshape(rows, x.shape) if rows else function(x, 0, axis)

    return run


def _partition_tangent(node: Node, tangents: Sequence[Tangent]) -> Tangent:
    """Return the tangent moved as the elements were, whatever order NumPy chose: elements are matched by rank."""
    if tangents[0] is None:
        return None
    x, axis = node.args[0], node["axis"]
    order, back = (make(ARGSORT, (v,), axis=axis, kind="stable") for v in (x, node))
    ranks = make(ARGSORT, (back,), axis=axis, kind="stable")
    return take_along_axis(take_along_axis(tangents[0], order, axis), ranks, axis)


def _partition_stacked(node: Node, args: Sequence[Node], batched: Sequence[bool], size: Size) -> Node:
    x, places = lead(args[0], batched[0], size), args[1]
    own = node.params.get("stack", 0)
    stack = {"stack": own + 1} if own or batched[1] else {}
    places = lead(places, batched[1], size) if stack else places
    return make(node.op, (x, places), axis=node["axis"] + 1, **stack)


def _partition_rows(node: Node, axes: Axes, rows: Size) -> int:
    return along_axis(node, axes[:1], rows)


PARTITION = Opaque(
    name="partition",
    in_numpy="np.partition",
    each=5000,
    split_rows=_partition_rows,
    types=_sort_type,
    numpy=_by_rows(np.partition),
    tangent=_partition_tangent,
    stacked=_partition_stacked,
    doc="The elements along an axis in NumPy's order: those at some places as if sorted, smaller ones before them.",
)
ARGPARTITION = Opaque(
    name="argpartition",
    in_numpy="np.argpartition",
    each=5000,
    split_rows=_partition_rows,
    types=_argsort_type,
    numpy=_by_rows(np.argpartition),
    tangent=lambda _node, _tangents: None,
    stacked=_partition_stacked,
    doc="The indices that partition along an axis.",
)


def partition(x: Node, places: Node, axis: int) -> Node:
    """Return ``np.partition`` of an array of at least one axis, at places that are inside."""
    return make(PARTITION, (x, places), axis=axis)


def argpartition(x: Node, places: Node, axis: int) -> Node:
    """Return ``np.argpartition`` of an array of at least one axis, at places that are inside."""
    return make(ARGPARTITION, (x, places), axis=axis)


# places among sorted elements -----------------------------------------------------------------------------------------


def _search_type(args: tuple[Node, ...], _params: Mapping[str, Any]) -> Type:
    if args[0].type.ndim != 1:
        raise ShapeError("object too deep for desired array" if args[0].type.ndim else "object of too small depth")
    shape = args[1].type.shape
    return Type(np.dtype(np.int64), shape, "array" if shape else "scalar")


def _search_stacked(node: Node, args: Sequence[Node], batched: Sequence[bool], size: Size) -> Node:
    """Return the node for a batch: unbatched sorted rows are searched as before; for batched ones the smaller elements are counted."""
    rows, values = args
    if not batched[0]:
        return make(SEARCHSORTED, (rows, values), **node.params)
    values = lead(values, batched[1], size)
    inner = values.type.ndim - 1
    wide = reshape(rows, (size, *[1] * inner, rows.type.shape[1]))
    values = reshape(values, (*values.type.shape, 1))
    before = scalar.less(wide, values) if node["side"] == "left" else scalar.less_equal(wide, values)
    return reduce_sum(astype(before, np.int64), (inner + 1,))


def _search_rows(_node: Node, axes: Axes, _rows: Size) -> int:
    if axes[0] is not None:
        raise Mixed("searches in the rows")
    return common_axis(axes[1:])


SEARCHSORTED = Opaque(
    name="searchsorted",
    in_numpy="np.searchsorted",
    each=5000,
    split_rows=_search_rows,
    types=_search_type,
    numpy=np.searchsorted,
    tangent=lambda _node, _tangents: None,
    stacked=_search_stacked,
    doc="The places at which elements would have to be inserted into sorted ones.",
)


def searchsorted(rows: Node, values: Node, side: str = "left") -> Node:
    """Return ``np.searchsorted`` of one sorted row."""
    if side not in {"left", "right"}:
        message = f"side must be one of 'left' or 'right' (got {side!r})"
        raise ValueError(message)
    dtype = np.result_type(rows.type.dtype, values.type.dtype)
    return make(SEARCHSORTED, (astype(rows, dtype), astype(values, dtype)), side=side)
