"""NumPy's averages and correlations on lazy arrays, and the reductions that ignore nan."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tensormagic.capture.errors.refusal import refuse
from tensormagic.capture.library.choosing import clip
from tensormagic.capture.library.diagonals import diag
from tensormagic.capture.library.reductions import (
    computed_in,
    cumulative_of,
    folded,
    mean_,
    mean_of,
    reduction_of,
    refuse_spread_in,
    variance,
)
from tensormagic.capture.library.shaping import squeeze
from tensormagic.capture.names import implements
from tensormagic.capture.values.arguments import MISSING, done, given, into_out, listed_axes, reduced_axis
from tensormagic.capture.values.operands import build, node_of
from tensormagic.capture.values.value import wrap
from tensormagic.ir.errors import DTypeError, ShapeError
from tensormagic.ir.node import Node
from tensormagic.ops import fold as folds
from tensormagic.ops.contract import matmul
from tensormagic.ops.effects.checks import not_zero, require
from tensormagic.ops.fold import axes_of, fold, reduce_sum
from tensormagic.ops.form import to_form
from tensormagic.ops.leaf import constant_value, size_node
from tensormagic.ops.move import broadcast, concatenate, expand_dims, reshape, transpose
from tensormagic.ops.move_kind import same
from tensormagic.ops.pointwise import astype
from tensormagic.ops.scalars import scalar
from tensormagic.ops.scalars.complex_parts import from_parts

# averages and correlations --------------------------------------------------------------------------------------------


@implements(np.average)
def average(a: Any, axis: Any = None, weights: Any = None, returned: bool = False, *, keepdims: Any = False) -> Any:
    """Implement ``np.average``."""
    x = node_of(a)
    axes = axes_of(x, listed_axes(axis))
    wide = given(keepdims) and bool(keepdims)
    if weights is None:
        mean = mean_of(x, axes)
        result = expand_dims(mean, axes) if wide else mean
        count = to_form(astype(size_node(folds.count(x, axes)), result.type.dtype), "scalar")
        scale = broadcast(count, result.type.shape)
        return (done(result), done(scale)) if returned else done(result)
    w = fitting(node_of(weights), x, listed_axes(axis))
    least = [np.float64] if x.type.dtype.kind in "biu" else []
    dtype = np.result_type(x.type.dtype, w.type.dtype, *least)
    scale = reduce_sum(astype(w, dtype), tuple(range(w.type.ndim)) if axis is None else axes, keepdims=wide)
    scale = not_zero(scale, "Weights sum to zero, can't be normalized")
    result = reduce_sum(astype(x, dtype) * astype(w, dtype), axes, keepdims=wide) / scale
    return (done(result), done(broadcast(scale, result.type.shape))) if returned else done(result)


def fitting(w: Node, x: Node, axis: Any) -> Node:
    """Return weights with as many axes as the array: weights for some axes are broadcast along the others."""
    if w.type.ndim == x.type.ndim and all(map(same, w.type.shape, x.type.shape)):
        return w
    if axis is None:
        raise TypeError("Axis must be specified when shapes of a and weights differ.")
    axes = axis if isinstance(axis, tuple) else (axis,)
    axes = tuple(a % x.type.ndim for a in axes)
    if w.type.ndim != len(axes) or not all(same(s, x.type.shape[k]) for s, k in zip(w.type.shape, axes, strict=True)):
        raise ShapeError("Shape of weights must be consistent with shape of a along specified axis.")
    w = transpose(w, tuple(int(k) for k in np.argsort(axes)))
    wide = reshape(w, tuple(s if k in axes else 1 for k, s in enumerate(x.type.shape)))
    return broadcast(wide, x.type.shape)


def _variables(m: Any, dtype: Any, *, rowvar: bool) -> Node:
    """Return observations as a matrix, with a row for each variable."""
    x = node_of(m)
    if x.type.ndim > 2:
        raise ShapeError("m has more than 2 dimensions")
    rows = astype(x if x.type.ndim == 2 else reshape(x, (1, *x.type.shape) if x.type.ndim else (1, 1)), dtype)
    return rows if rowvar or (x.type.ndim < 2 and rows.type.shape[0] == 1) else transpose(rows, (1, 0))


def _counted(weights: Any, observations: Any, name: str) -> Node:
    w = node_of(weights)
    if w.type.ndim > 1:
        raise RuntimeError(f"cannot handle multidimensional {name}")
    if not same(w.type.shape[0], observations):
        raise RuntimeError(f"incompatible numbers of samples and {name}")
    values = constant_value(w)
    if name == "fweights" and w.type.dtype.kind == "f":
        if values is None:
            refuse("np.cov with fweights that are not integers", "Convert them with astype(int).")
        if (values != np.around(values)).any():
            raise DTypeError("fweights must be integer")
    w = astype(scalar.real(w) if w.type.dtype.kind == "c" else w, np.float64)
    return require(w, scalar.logical_not(scalar.less(w, 0)), f"{name} cannot be negative")


@implements(np.cov)
def cov(
    m: Any,
    y: Any = None,
    rowvar: bool = True,
    bias: bool = False,
    ddof: Any = None,
    fweights: Any = None,
    aweights: Any = None,
    *,
    dtype: Any = None,
) -> Any:
    """Implement ``np.cov``."""
    if ddof is not None and ddof != int(ddof):
        raise ValueError("ddof must be integer")
    kinds = [node_of(v).type.dtype for v in (m, y) if v is not None]
    dtype = np.result_type(*kinds, np.float64) if dtype is None else np.dtype(dtype)
    if dtype.kind not in "fc":
        raise DTypeError(f"np.cov subtracts the means in place, and {dtype} cannot hold them: pass a float dtype")
    x = _variables(m, dtype, rowvar=rowvar)
    if y is not None:
        x = concatenate([x, _variables(y, dtype, rowvar=rowvar)], 0)
    ddof = int(not bias) if ddof is None else int(ddof)
    count = x.type.shape[1]
    repeats = None if fweights is None else _counted(fweights, count, "fweights")
    shares = None if aweights is None else _counted(aweights, count, "aweights")
    w = shares if repeats is None else repeats if shares is None else repeats * shares
    factor, mean = _normalised(x, w, ddof, shares)
    centred = x - expand_dims(mean, (1,))
    other = centred if w is None else centred * w
    product = matmul(centred, scalar.conjugate(transpose(other, (1, 0))))
    return squeeze(done(product * scalar.divide(1, factor)))


def _normalised(x: Node, w: Node | None, ddof: int, aweights: Node | None) -> tuple[Node, Node]:
    """Return the divisor of the products, never negative, and the mean of each variable."""
    if w is None:
        number = astype(size_node(x.type.shape[1]), np.float64) - ddof
        return scalar.maximum(number, 0.0), mean_of(x, (1,))
    total = not_zero(reduce_sum(w, (0,)), "Weights sum to zero, can't be normalized")
    mean = reduce_sum(x * w, (1,)) / total
    if ddof == 0:
        number = total
    elif aweights is None:
        number = total - ddof
    else:
        number = total - ddof * reduce_sum(w * aweights, (0,)) / total
    return scalar.maximum(number, 0.0), mean


@implements(np.corrcoef)
def corrcoef(x: Any, y: Any = None, rowvar: bool = True, *, dtype: Any = None) -> Any:
    """Implement ``np.corrcoef``."""
    c = cov(x, y, rowvar, dtype=dtype)
    if not c.ndim:
        return c / c
    spread = np.sqrt(diag(c).real)
    c = c / spread[:, None] / spread[None, :]
    if c.dtype.kind == "c":
        return build(from_parts, clip(c.real.copy(), -1, 1), clip(c.imag.copy(), -1, 1))
    return clip(c, -1, 1)


# without nan ----------------------------------------------------------------------------------------------------------


def _numbers(x: Node) -> Node | None:
    """Return the mask of the elements other than nan; None for integers."""
    return scalar.logical_not(scalar.isnan(x)) if x.type.inexact else None


def _combined(mask: Node | None, where: Any, x: Node) -> Node | None:
    if where is True or not given(where):
        return mask
    chosen = broadcast(node_of(where), x.type.shape)
    return chosen if mask is None else scalar.logical_and(mask, chosen)


def _wide(node: Node, axes: tuple[int, ...], keepdims: Any) -> Node:
    return expand_dims(node, axes) if given(keepdims) and keepdims else node


def _without_nan(plain: Callable[..., Any], neutral: float) -> Callable[..., Any]:
    """Return a sum or a product, total or cumulative, that ignores nan."""

    def reduction(a: Any, *args: Any, **options: Any) -> Any:
        x = node_of(a)
        mask = _numbers(x)
        return plain(a if mask is None else wrap(scalar.where(mask, x, neutral)), *args, **options)

    return reduction


implements(np.nansum)(_without_nan(reduction_of(folds.SUM), 0.0))
implements(np.nanprod)(_without_nan(reduction_of(folds.PROD), 1.0))
implements(np.nancumsum)(_without_nan(cumulative_of(folds.CUMSUM), 0.0))
implements(np.nancumprod)(_without_nan(cumulative_of(folds.CUMPROD), 1.0))


def _nan_extreme(op: folds.Fold, far: float) -> Callable[..., Any]:
    """Return ``np.nanmax`` or ``np.nanmin``, whose result is nan where there is nothing else."""

    def reduction(
        a: Any, axis: Any = None, out: Any = None, keepdims: Any = False, initial: Any = MISSING, where: Any = True
    ) -> Any:
        x = node_of(a)
        wide = given(keepdims) and bool(keepdims)
        mask = _numbers(x)
        if mask is None:
            return into_out(folded(op, x, axis, keepdims=wide, initial=initial, where=where), out, f"nan{op.name}")
        result = folded(op, scalar.where(mask, x, far), axis, keepdims=wide, initial=initial, where=where)
        if not given(initial):
            some = folded(folds.ANY, mask, axis, keepdims=wide)
            result = scalar.where(some, result, np.nan)
        return into_out(result, out, f"nan{op.name}")

    return reduction


_EXTREMES = {"fmax": _nan_extreme(folds.MAX, -np.inf), "fmin": _nan_extreme(folds.MIN, np.inf)}
implements(np.nanmax)(_EXTREMES["fmax"])
implements(np.nanmin)(_EXTREMES["fmin"])


def nan_extreme(name: str) -> Callable[..., Any]:
    """Return the reduction by ``np.fmax`` or ``np.fmin``, which ignores nan."""
    return _EXTREMES[name]


def _nan_place(op: folds.Fold, far: float) -> Callable[..., Any]:
    """Return ``np.nanargmax`` or ``np.nanargmin``, which raise ValueError where there is nothing but nan."""

    def reduction(a: Any, axis: Any = None, out: Any = None, *, keepdims: Any = False) -> Any:
        x = node_of(a)
        if isinstance(axis, tuple | list | bool):
            raise TypeError(f"{type(axis).__name__!r} object cannot be interpreted as an integer")
        mask = _numbers(x)
        found = reduced_axis(axis, x.type.ndim)
        axes = axes_of(x, found)
        flat = reshape(x, (-1,)) if found is None and x.type.ndim != 1 else x
        if mask is None:
            result = fold(op, flat, (0,) if found is None else axes)
        else:
            result = fold(op, scalar.where(reshape(mask, flat.type.shape), flat, far), (0,) if found is None else axes)
            result = require(result, fold(folds.ANY, mask, axes), "All-NaN slice encountered")
        return into_out(_wide(result, axes, keepdims), out, f"nan{op.name}")

    return reduction


implements(np.nanargmax)(_nan_place(folds.ARGMAX, -np.inf))
implements(np.nanargmin)(_nan_place(folds.ARGMIN, np.inf))


@implements(np.nanmean)
def nanmean(
    a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = False, *, where: Any = True
) -> Any:
    """Implement ``np.nanmean``."""
    x = node_of(a)
    mask = _combined(_numbers(x), where, x)
    if given(dtype) and np.dtype(dtype).kind in "biu":
        if x.type.inexact:
            raise DTypeError("If a is inexact, then dtype must be inexact")
        return mean_(a, axis, dtype, out, keepdims, where=where)
    x = computed_in(x, dtype, out)
    axes = axes_of(x, listed_axes(axis) if mask is None else reduced_axis(listed_axes(axis), x.type.ndim))
    return into_out(_wide(mean_of(x, axes, mask), axes, keepdims), out, "nanmean")


def _spread(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    ddof: Any = 0,
    keepdims: Any = False,
    *,
    where: Any = True,
    mean: Any = MISSING,
    correction: Any = MISSING,
) -> Node:
    x = node_of(a)
    mask = _combined(_numbers(x), where, x)
    refuse_spread_in(dtype, x)
    x = x if given(dtype) or x.type.inexact else astype(x, np.float64)
    axes = axes_of(x, listed_axes(axis) if mask is None else reduced_axis(listed_axes(axis), x.type.ndim))
    if given(correction):
        if ddof != 0:
            raise ValueError("ddof and correction can't be provided simultaneously.")
        ddof = correction
    kind = np.dtype(dtype) if given(dtype) else None
    result = variance(x, axes, ddof, mask, node_of(mean) if given(mean) else None, kind)
    if mask is not None:
        count = reduce_sum(astype(mask, np.int64), axes)
        result = scalar.where(scalar.less_equal(count - node_of(ddof), 0), np.nan, result)
    return _wide(result, axes, keepdims)


@implements(np.nanvar)
def nanvar(a: Any, axis: Any = None, dtype: Any = None, out: Any = None, *options: Any, **named: Any) -> Any:
    """Implement ``np.nanvar``."""
    return into_out(_spread(a, axis, dtype, *options, **named), out, "nanvar")


@implements(np.nanstd)
def nanstd(a: Any, axis: Any = None, dtype: Any = None, out: Any = None, *options: Any, **named: Any) -> Any:
    """Implement ``np.nanstd``."""
    return into_out(scalar.sqrt(_spread(a, axis, dtype, *options, **named)), out, "nanstd")
