"""The methods of ufuncs that fold: reduce, accumulate and reduceat, on lazy arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tensormagic.capture.errors.refusal import refuse
from tensormagic.capture.library.ordering import as_indices
from tensormagic.capture.library.reductions import folded, of_integers, running
from tensormagic.capture.library.statistics import nan_extreme
from tensormagic.capture.values.arguments import (
    MISSING,
    done,
    extent_number,
    given,
    one_axis,
    pad_empty_axes,
    reduced_axis,
)
from tensormagic.capture.values.casts import cast_error
from tensormagic.capture.values.operands import node_of
from tensormagic.capture.values.value import Tensor
from tensormagic.ir.errors import BoundsError
from tensormagic.ir.node import Node
from tensormagic.ops import fold as folds
from tensormagic.ops.effects.checks import require
from tensormagic.ops.fold import axes_of, fold, reduce_sum
from tensormagic.ops.leaf import constant, iota, size_node
from tensormagic.ops.move import broadcast, concatenate, expand_dims, reshape, slice_, transpose
from tensormagic.ops.pointwise import Pointwise, astype
from tensormagic.ops.scalars import scalar
from tensormagic.ops.scalars.comparison import fmax, fmin, logical_and, logical_or, logical_xor, maximum, minimum

_LIMIT = 256  # the most steps that a fold without an op of its own is unrolled to
_FOLDS: dict[Pointwise, folds.Fold] = {
    scalar.add: folds.SUM,
    scalar.multiply: folds.PROD,
    maximum: folds.MAX,
    minimum: folds.MIN,
    logical_and: folds.ALL,
    logical_or: folds.ANY,
}
_RUNNING = {scalar.add: folds.CUMSUM, scalar.multiply: folds.CUMPROD, maximum: folds.CUMMAX, minimum: folds.CUMMIN}
_TRUTH = {logical_and: folds.CUMMIN, logical_or: folds.CUMMAX}


def method_of(ufunc: Any, op: Pointwise | None, method: str, operands: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """Return ``ufunc.reduce``, ``.accumulate`` or ``.reduceat`` of lazy operands."""
    if ufunc is np.float_power:
        kind = np.complex128 if node_of(operands[0]).type.dtype.kind == "c" else np.float64
        op, options = scalar.power, {"dtype": kind, **options}
    if op is None and ufunc.nin == 2:
        refuse(f"{ufunc.__name__}.{method}", "Write it as a loop.")
    if ufunc.nin != 2 or op is None:
        raise ValueError(f"{method} only supported for binary functions")
    if method == "reduce" and ufunc.identity is not None and op not in _FOLDS:
        options["nothing"] = ufunc.identity
    return _METHODS[method](op, *operands, **options)


def _cast(x: Node, dtype: Any) -> Node:
    return astype(x, dtype) if given(dtype) else x


def _reduce(
    op: Pointwise,
    array: Any,
    axis: Any = 0,
    dtype: Any = None,
    out: Any = None,
    keepdims: Any = False,
    initial: Any = MISSING,
    where: Any = True,
    nothing: Any = None,
) -> Tensor:
    del out
    x = _cast(node_of(array), dtype)
    wide = bool(keepdims)
    known = _FOLDS.get(op)
    if known is not None:
        return done(_cast(folded(known, x, axis, keepdims=wide, initial=initial, where=where), dtype))
    if where is not True or given(initial):
        refuse(f"np.{op.name}.reduce with where= or initial=", "Use np.where first, or combine the results yourself.")
    if op in {fmax, fmin}:
        return nan_extreme(op.name)(array, axis, keepdims=wide)
    result_type = op.resolve([x.type, x.type])[1]
    whole = None
    if not all(isinstance(s, int) for s in x.type.shape):
        whole = of_integers(op.name, astype(x, result_type), axis, keepdims=wide)
    if whole is not None:
        return done(whole)
    x = astype(x, result_type) if result_type.kind == "f" and not x.type.inexact else x
    axes = axes_of(x, reduced_axis(axis, x.type.ndim))
    result = _along(op, x, axes, nothing)
    return done(expand_dims(result, axes) if wide else result)


def _along(op: Pointwise, x: Node, axes: tuple[int, ...], nothing: Any) -> Node:
    """Reduce by an op along axes; ``nothing`` is NumPy's identity for empty axes, or None if there is none."""
    if nothing is not None and any(x.type.shape[k] == 0 for k in axes):
        kept = tuple(s for k, s in enumerate(x.type.shape) if k not in axes)
        one = constant(x.type.dtype.type(nothing)) if op is not logical_xor else constant(np.False_)
        return broadcast(one, kept)
    if op is scalar.logaddexp and x.type.dtype.kind == "f":
        return fold(folds.LOGSUMEXP, pad_empty_axes(x, axes, -np.inf), axes)
    if op is logical_xor:
        odd = scalar.remainder(reduce_sum(astype(scalar.not_equal(x, 0), np.int64), axes), 2)
        return scalar.equal(odd, 1)
    result = _written_out(op, x, axes, "reduce")[-1]
    return result if nothing is None else op(constant(x.type.dtype.type(nothing)), result)


def _steps(x: Node, axis: int, name: str) -> list[Node]:
    count = extent_number(x, axis)
    if count == 0:
        raise ValueError(f"zero-size array to reduction operation {name} which has no identity")
    if count > _LIMIT:
        refuse(f"np.{name} over {count} elements", f"It is unrolled for at most {_LIMIT} elements.")
    rest = tuple(s for k, s in enumerate(x.type.shape) if k != axis)

    def element(place: int) -> Node:
        part = slice_(x, tuple((place, 1, 1) if k == axis else (0, s, 1) for k, s in enumerate(x.type.shape)))
        return reshape(part, rest)

    return [element(place) for place in range(count)]


def _written_out(op: Pointwise, x: Node, axes: tuple[int, ...], method: str) -> list[Node]:
    """Return every value of the accumulator, over one axis."""
    if len(axes) != 1:
        refuse(f"np.{op.name}.{method} over several axes", "Reduce them one after the other.")
    first, *rest = _steps(x, axes[0], f"{op.name}.{method}")
    found = [first]
    for element in rest:
        found.append(op(found[-1], element))
    return found


def _accumulate(op: Pointwise, array: Any, axis: Any = 0, dtype: Any = None, out: Any = None) -> Tensor:
    del out
    x = _cast(node_of(array), dtype)
    if not x.type.ndim:
        raise TypeError("cannot accumulate on a scalar")
    if op in _RUNNING:
        return done(_cast(running(_RUNNING[op], x, axis), dtype))
    if op in _TRUTH:
        return done(running(_TRUTH[op], astype(x, bool), axis))
    axis = one_axis(axis, x.type.ndim)
    found = _written_out(op, x, (axis,), "accumulate")
    dtype = np.result_type(*(n.type.dtype for n in found))
    return done(concatenate([expand_dims(astype(n, dtype), (axis,)) for n in found], axis))


def _neutral(op: Pointwise, dtype: np.dtype[Any]) -> Any:
    if op in {maximum, minimum}:
        low = op is maximum
        if dtype.kind == "f":
            return dtype.type(-np.inf if low else np.inf)
        if dtype.kind == "b":
            return np.bool_(not low)
        return dtype.type(np.iinfo(dtype).min if low else np.iinfo(dtype).max)
    return dtype.type({scalar.add: 0, scalar.multiply: 1, logical_and: 1, logical_or: 0}[op])


def _reduceat(op: Pointwise, array: Any, indices: Any, axis: Any = 0, dtype: Any = None, out: Any = None) -> Tensor:
    """Return the folds of the slices from each index to the next; of one element if the next is not larger."""
    del out
    if op not in _FOLDS or (op in {maximum, minimum} and node_of(array).type.dtype.kind == "c"):
        refuse(f"np.{op.name}.reduceat", f"Those of {', '.join(o.name for o in _FOLDS)} are captured.")
    x = _cast(node_of(array), dtype)
    axis = one_axis(axis, x.type.ndim)
    starts = as_indices(indices)
    if starts.type.dtype.kind not in "iu":
        raise cast_error(np.float64, np.int64)
    if x.type.shape[axis] == 0 and starts.type.shape[0] != 0:
        raise BoundsError(f"index 0 out-of-bounds in {op.name}.reduceat [0, 0)")
    extent = size_node(x.type.shape[axis])
    inside = scalar.logical_and(scalar.greater_equal(starts, 0), scalar.less(starts, extent))
    starts = require(astype(starts, np.int64), inside, f"index out-of-bounds in {op.name}.reduceat", "index")
    count = starts.type.shape[0]
    following = concatenate([slice_(starts, ((1, count - 1, 1),)), reshape(astype(extent, np.int64), (1,))], 0)
    ends = scalar.where(scalar.less(starts, following), following, starts + 1)
    order = (*(k for k in range(x.type.ndim) if k != axis), axis)
    rows = transpose(x, order)
    wide = expand_dims(rows, (rows.type.ndim - 1,))
    place = iota((count, x.type.shape[axis]), 1)
    taken = scalar.logical_and(
        scalar.greater_equal(place, expand_dims(starts, (1,))), scalar.less(place, expand_dims(ends, (1,)))
    )
    parts = scalar.where(taken, wide, constant(_neutral(op, x.type.dtype)))
    result = fold(_FOLDS[op], parts, (rows.type.ndim,))
    back = (*range(axis), x.type.ndim - 1, *range(axis, x.type.ndim - 1))
    return done(_cast(transpose(result, back), dtype))


_METHODS: dict[str, Callable[..., Any]] = {"reduce": _reduce, "accumulate": _accumulate, "reduceat": _reduceat}
