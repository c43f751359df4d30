"""NumPy's reductions and cumulative functions on lazy arrays."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from tensormagic.capture.errors.refusal import refuse
from tensormagic.capture.names import implements
from tensormagic.capture.numbers.classes import of_any_dtype
from tensormagic.capture.values.arguments import MISSING, axis_of, given, into_out, reduced_axis
from tensormagic.capture.values.casts import check_cast
from tensormagic.capture.values.operands import node_of
from tensormagic.capture.values.value import Tensor
from tensormagic.ir.errors import DTypeError, ShapeError
from tensormagic.ir.node import Node
from tensormagic.ir.size import nodes_of
from tensormagic.ir.type import Size, apply
from tensormagic.ops import fold as folds
from tensormagic.ops.bit_folds import BIT_FOLDS
from tensormagic.ops.fold import axes_of, fold, reduce_sum
from tensormagic.ops.form import to_form
from tensormagic.ops.leaf import constant, size_node
from tensormagic.ops.move import broadcast, concatenate, expand_dims, reshape
from tensormagic.ops.op import registry
from tensormagic.ops.pointwise import astype
from tensormagic.ops.scalars import scalar

__all__ = ["axis_of", "computed_in", "cumulative_of", "folded", "mean_of", "reduction_of", "variance"]


def _mask(where: Any, x: Node) -> Node | None:
    """Return the mask of ``where=``, in the shape of ``x``; None where every element counts."""
    if where is True or not given(where):
        return None
    mask = node_of(where)
    check_cast(mask.type.dtype, bool)
    if mask.type.ndim > x.type.ndim:
        raise ShapeError("input operand has more dimensions than allowed by the axis remapping")
    return broadcast(mask, x.type.shape)


def _number(value: Any, dtype: np.dtype[Any]) -> Node:
    return to_form(astype(node_of(value), dtype), "scalar") if not np.ndim(value) else astype(node_of(value), dtype)


def of_integers(name: str, x: Node, axis: Any, *, keepdims: bool) -> Node | None:
    """Return the fold by a ufunc of integers whose order does not matter, over any number of elements; None for any other."""
    return folded(BIT_FOLDS[name], x, axis, keepdims=keepdims) if name in BIT_FOLDS else None


def folded(
    op: folds.Fold, x: Node, axis: Any, *, keepdims: bool = False, initial: Any = MISSING, where: Any = True
) -> Node:
    """Return NumPy's reduction by ``op`` along ``axis``, with its ``where=`` and ``initial=``."""
    axes = axes_of(x, reduced_axis(axis, x.type.ndim))
    mask = _mask(where, x)
    if mask is not None:
        if op.start is None and not given(initial):
            raise ShapeError(
                f"reduction operation '{op.joins}' does not have an identity, "
                "so to use a where mask one has to specify 'initial'"
            )
        x = scalar.where(mask, x, _number(op.start(x.type.dtype) if op.start else initial, x.type.dtype))
    if given(initial) and op.start is None and any(x.type.shape[k] == 0 for k in axes):
        shape = tuple(s for k, s in enumerate(x.type.shape) if k not in axes)
        result = broadcast(_number(initial, x.type.dtype), shape)
        return expand_dims(result, axes) if keepdims else result
    result = fold(op, x if op.start or not given(initial) else _never_empty(x, axes, initial), axes)
    if given(initial):
        result = registry[op.joins](_number(initial, result.type.dtype), result)  # type: ignore[operator]
    return expand_dims(result, axes) if keepdims else result


def _never_empty(x: Node, axes: Sequence[int], initial: Any) -> Node:
    """Return ``x`` with ``initial`` appended along axes of data-dependent length: the extremum of an empty axis is then ``initial``."""
    for axis in axes:
        if nodes_of(x.type.shape[axis]):
            shape = tuple(1 if k == axis else s for k, s in enumerate(x.type.shape))
            x = concatenate([x, broadcast(_number(initial, x.type.dtype), shape)], axis)
    return x


def computed_in(x: Node, dtype: Any, out: Any) -> Node:
    """Return an operand cast to the dtype that NumPy reduces in: the given one, or one that ``out`` holds, too."""
    if given(dtype):
        return astype(x, dtype)
    wider = np.result_type(out.dtype, x.type.dtype) if isinstance(out, Tensor) else x.type.dtype
    return astype(x, wider) if x.type.inexact and x.type.dtype.kind == wider.kind else x


def reduction_of(op: folds.Fold) -> Any:
    """Return NumPy's reduction by ``op``, with NumPy's options."""

    def reduction(
        a: Any,
        axis: Any = None,
        dtype: Any = None,
        out: Any = None,
        keepdims: Any = False,
        initial: Any = MISSING,
        where: Any = True,
    ) -> Any:
        x = computed_in(node_of(a), dtype, out)
        result = folded(op, x, axis, keepdims=_wide(keepdims), initial=initial, where=where)
        return into_out(astype(result, dtype) if given(dtype) else result, out, op.name)

    return reduction


def _wide(keepdims: Any) -> bool:
    return given(keepdims) and bool(keepdims)


def _plain_reduction(op: folds.Fold) -> Any:
    general = reduction_of(op)

    def reduction(
        a: Any, axis: Any = None, out: Any = None, keepdims: Any = False, initial: Any = MISSING, where: Any = True
    ) -> Any:
        return general(a, axis, None, out, keepdims, initial, where)

    return reduction


implements(np.sum, method="sum")(reduction_of(folds.SUM))
implements(np.prod, method="prod")(reduction_of(folds.PROD))
implements(np.max, np.amax, method="max")(_plain_reduction(folds.MAX))
implements(np.min, np.amin, method="min")(_plain_reduction(folds.MIN))


@implements(np.any, method="any")
def any_(a: Any, axis: Any = None, out: Any = None, keepdims: Any = False, *, where: Any = True) -> Any:
    """Implement ``np.any``."""
    return _plain_reduction(folds.ANY)(a, axis, out, keepdims, MISSING, where)


@implements(np.all, method="all")
def all_(a: Any, axis: Any = None, out: Any = None, keepdims: Any = False, *, where: Any = True) -> Any:
    """Implement ``np.all``."""
    return _plain_reduction(folds.ALL)(a, axis, out, keepdims, MISSING, where)


def _arg(op: folds.Fold) -> Any:
    def reduction(a: Any, axis: Any = None, out: Any = None, *, keepdims: Any = False) -> Any:
        x = node_of(a)
        found = reduced_axis(axis, x.type.ndim)
        if isinstance(found, tuple):
            raise TypeError("'tuple' object cannot be interpreted as an integer")
        if found is None:
            flat = reshape(x, (-1,)) if x.type.ndim != 1 else x
            result = fold(op, flat, (0,))
            axes = tuple(range(x.type.ndim))
            return into_out(expand_dims(result, axes) if _wide(keepdims) else result, out, op.name)
        return into_out(fold(op, x, axes_of(x, found), keepdims=_wide(keepdims)), out, op.name)

    return reduction


implements(np.argmax, method="argmax")(_arg(folds.ARGMAX))
implements(np.argmin, method="argmin")(_arg(folds.ARGMIN))


# means ----------------------------------------------------------------------------------------------------------------


def _count(x: Node, axes: tuple[int, ...], mask: Node | None) -> Size | Node:
    """Return how many elements are taken together: a size, or for a mask the number of its true elements."""
    return folds.count(x, axes) if mask is None else reduce_sum(astype(mask, np.int64), axes)


def _over(total: Node, count: Size | Node) -> Node:
    divisor = count if isinstance(count, Node) else size_node(count)
    return astype(total / astype(divisor, np.promote_types(total.type.dtype, np.float32)), total.type.dtype)


def mean_of(x: Node, axes: tuple[int, ...], mask: Node | None = None) -> Node:
    """Return the mean over ``axes`` of the elements that ``mask`` selects, in NumPy's dtype for means."""
    if x.type.dtype.kind in "biu":
        x = astype(x, np.float64)
    kept = x if mask is None else scalar.where(mask, x, 0)
    if x.type.dtype == np.float16:  # NumPy sums in single precision, and divides before it rounds
        return astype(_over(reduce_sum(astype(kept, np.float32), axes), _count(x, axes, mask)), np.float16)
    return _over(reduce_sum(kept, axes), _count(x, axes, mask))


@implements(np.mean, method="mean")
def mean_(
    a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = False, *, where: Any = True
) -> Any:
    """Implement ``np.mean``."""
    x = of_any_dtype(node_of(a))
    mask = _mask(where, x)
    axes = axes_of(x, axis_of(axis))
    if given(dtype) and np.dtype(dtype).kind in "biu":
        result = _mean_in(x, axes, mask, np.dtype(dtype))
    else:
        result = mean_of(computed_in(x, dtype, out), axes, mask)
    return into_out(expand_dims(result, axes) if _wide(keepdims) else result, out, "mean")


def _mean_in(x: Node, axes: tuple[int, ...], mask: Node | None, dtype: np.dtype[Any]) -> Node:
    """Return a mean cast to integers, whose sum is cast to integers, too."""
    x = astype(x, dtype)
    total = astype(reduce_sum(x if mask is None else scalar.where(mask, x, 0), axes), dtype)
    count = _count(x, axes, mask)
    return astype(total / (count if isinstance(count, Node) else size_node(count)), dtype)


def refuse_spread_in(dtype: Any, x: Node) -> None:
    """Raise for a variance in another kind of number: NumPy casts in between, and takes the mean of that."""
    if given(dtype) and (np.dtype(dtype).kind != "f" or x.type.dtype.kind == "c"):
        refuse(
            f"a variance or a standard deviation in dtype {np.dtype(dtype)}",
            "Leave out dtype=, and convert the result.",
        )


def variance(
    x: Node,
    axes: tuple[int, ...],
    ddof: Any,
    mask: Node | None = None,
    centre: Node | None = None,
    dtype: np.dtype[Any] | None = None,
) -> Node:
    """Return the mean of the squared distances from the mean, as NumPy computes it; ``centre`` is the mean if it is given.

    Sums have the dtype ``dtype`` if it is given; the distances have the array's.
    """
    if centre is None:
        summed = x if dtype is None else astype(x, dtype)
        total = reduce_sum(summed if mask is None else scalar.where(mask, summed, 0), axes)
        centre = expand_dims(_over(total, _count(x, axes, mask)), axes)
    distance = x - centre
    squares = distance * distance if x.type.dtype.kind != "c" else scalar.real(distance * scalar.conjugate(distance))
    squares = squares if dtype is None else astype(squares, dtype)
    squares = squares if mask is None else scalar.where(mask, squares, 0)
    total = reduce_sum(squares, axes)
    if isinstance(ddof, int) and mask is None:
        return _over(total, apply("max", folds.count(x, axes) - ddof, 0))
    count = _count(x, axes, mask)
    count = count if isinstance(count, Node) else size_node(count)
    return _over(total, scalar.maximum(astype(count, np.float64) - node_of(ddof), 0))


@implements(np.var, method="var")
def var(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    ddof: Any = 0,
    keepdims: Any = False,
    *,
    where: Any = True,
    mean: Any = MISSING,
    correction: Any = MISSING,
) -> Any:
    """Implement ``np.var``."""
    x = of_any_dtype(node_of(a))
    mask = _mask(where, x)
    refuse_spread_in(dtype, x)
    if not given(dtype) and x.type.dtype.kind in "biu":
        x = astype(x, np.float64)
    if given(correction):
        if ddof != 0:
            raise ValueError("ddof and correction can't be provided simultaneously.")
        ddof = correction
    axes = axes_of(x, axis_of(axis))
    centre = node_of(mean) if given(mean) else None
    result = variance(x, axes, ddof, mask, centre, np.dtype(dtype) if given(dtype) else None)
    return into_out(expand_dims(result, axes) if _wide(keepdims) else result, out, "var")


@implements(np.std, method="std")
def std(
    a: Any, axis: Any = None, dtype: Any = None, out: Any = None, ddof: Any = 0, keepdims: Any = False, **options: Any
) -> Any:
    """Implement ``np.std``."""
    return into_out(scalar.sqrt(var(a, axis, dtype, None, ddof, keepdims, **options).node), out, "std")


@implements(np.ptp)
def ptp(a: Any, axis: Any = None, out: Any = None, keepdims: Any = False) -> Any:
    """Implement ``np.ptp``: the largest minus the smallest."""
    x, wide = computed_in(node_of(a), None, out), _wide(keepdims)
    largest, smallest = (folded(op, x, axis, keepdims=wide) for op in (folds.MAX, folds.MIN))
    return into_out(largest - smallest, out, "ptp")


@implements(np.count_nonzero)
def count_nonzero(a: Any, axis: Any = None, *, keepdims: bool = False) -> Any:
    """Implement ``np.count_nonzero``."""
    x = node_of(a)
    true = x if x.type.dtype.kind == "b" else scalar.not_equal(x, 0)
    found = folded(folds.SUM, true, axis, keepdims=keepdims)
    if axis is None and not keepdims and _counts_are_pythons():
        found = to_form(found, "python")
    return into_out(found, None, "count_nonzero")


@cache
def _counts_are_pythons() -> bool:
    """Return whether ``np.count_nonzero`` gives an integer of Python's, as before NumPy 2.3."""
    found: Any = np.count_nonzero(np.ones(1))
    return isinstance(found, int)


# cumulative -----------------------------------------------------------------------------------------------------------


def running(op: folds.Fold, x: Node, axis: Any) -> Node:
    """Return ``op`` along one axis, or along the flattened array."""
    if axis is None or not x.type.ndim:
        x, axis = (reshape(x, (-1,)) if x.type.ndim != 1 else x), (axis or 0)
    return folds.row(op, x, axes_of(x, axis_of(axis)))


def cumulative_of(op: folds.Fold) -> Any:
    """Return ``np.cumsum`` or ``np.cumprod``."""

    def cumulative(a: Any, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
        if isinstance(axis, tuple):
            raise DTypeError("'tuple' object cannot be interpreted as an integer")
        x = computed_in(node_of(a), dtype, out)
        result = running(op, x, axis)
        return into_out(astype(result, dtype) if given(dtype) else result, out, op.name)

    return cumulative


implements(np.cumsum, method="cumsum")(cumulative_of(folds.CUMSUM))
implements(np.cumprod, method="cumprod")(cumulative_of(folds.CUMPROD))


def _array_api(op: folds.Fold, first: int) -> Any:
    """Return ``np.cumulative_sum`` or ``np.cumulative_prod``."""

    def cumulative(
        x: Any, /, *, axis: Any = None, dtype: Any = None, out: Any = None, include_initial: bool = False
    ) -> Any:
        node = node_of(x)
        if isinstance(axis, tuple | list) and len(axis) != 1:
            raise ValueError("accumulate does not allow multiple axes")
        if axis is None and node.type.ndim > 1:
            raise ValueError("For arrays which have more than one dimension ``axis`` argument is required.")
        if not node.type.ndim:
            node = reshape(node, (1,))
        node = astype(node, dtype) if given(dtype) else node
        result = running(op, node, 0 if axis is None else axis)
        result = astype(result, dtype) if given(dtype) else result
        if include_initial:
            (k,) = axes_of(node, 0 if axis is None else axis)  # type: ignore[arg-type]
            shape = tuple(1 if j == k else s for j, s in enumerate(result.type.shape))
            result = concatenate([broadcast(constant(result.type.dtype.type(first)), shape), result], k)
        return into_out(result, out, op.name)

    return cumulative


implements(np.cumulative_sum)(_array_api(folds.CUMSUM, 0))
implements(np.cumulative_prod)(_array_api(folds.CUMPROD, 1))
