"""Folds: ops that run along axes with an accumulator, and drop the axes or keep every step; and numerically stable functions of rows."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tensormagic.ir.errors import ShapeError
from tensormagic.ir.node import Node, make
from tensormagic.ir.stored import SINGLE, is_stored
from tensormagic.ir.type import Size
from tensormagic.ops.fold_kind import Fold, Row, count
from tensormagic.ops.indices.gather import take_along_axis
from tensormagic.ops.leaf import iota, size_node
from tensormagic.ops.move import broadcast, expand_dims, flip, reshape, transpose
from tensormagic.ops.move_kind import normalise_axis
from tensormagic.ops.op import Op, Value
from tensormagic.ops.pointwise import astype
from tensormagic.ops.scalars import scalar
from tensormagic.ops.scalars.scalar import equal, exp, less_equal, log, multiply, where
from tensormagic.ops.tangents import multiply_by


def axes_of(x: Node, axis: int | tuple[int, ...] | None) -> tuple[int, ...]:
    """Return the axes that NumPy's ``axis`` means, sorted."""
    if axis is None:
        return tuple(range(x.type.ndim))
    found = [normalise_axis(a, x.type.ndim) for a in (axis if isinstance(axis, tuple) else (axis,))]
    if len(set(found)) != len(found):
        raise ShapeError("duplicate value in 'axis'")
    return tuple(sorted(found))


def fold(op: Op, x: Node, axes: tuple[int, ...], *, keepdims: bool = False) -> Node:
    """Return ``x`` reduced by ``op`` over ``axes``; with ``keepdims`` they stay with extent 1."""
    result = _taken_together(op, x, axes)
    return expand_dims(result, axes) if keepdims else result


def _taken_together(op: Op, x: Node, axes: tuple[int, ...]) -> Node:
    """Return ``op`` over ``axes``; bfloat16 values are accumulated in single precision."""
    dtype = x.type.dtype
    if not is_stored(dtype):
        return make(op, (x,), axes=axes)
    result = make(op, (astype(x, SINGLE),), axes=axes)
    return astype(result, dtype) if result.type.dtype == SINGLE else result


def spread(node: Node, like: Node, axes: tuple[int, ...]) -> Node:
    """Return the result of a fold over ``axes`` of ``like``, broadcast back to the shape of ``like``."""
    return broadcast(expand_dims(node, axes), like.type.shape)


def _widen(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return NumPy's accumulator dtype for sums and products: the platform integer for smaller ones."""
    if dtype.kind in "bi":
        return np.dtype(np.int64)
    return np.dtype(np.uint64) if dtype.kind == "u" else dtype


def _sum(x: np.ndarray[Any, Any], axis: Any) -> Value:
    """Return NumPy's sum; booleans are counted, which is several times as fast."""
    return np.intp(np.count_nonzero(x)) if axis is None and x.dtype == np.bool_ else np.add.reduce(x, axis=axis)


SUM = Fold(
    name="sum",
    linear="first",
    keeps_sign=True,
    joins="add",
    numpy=_sum,
    result=_widen,
    start=lambda dtype: dtype.type(0),
    step="{0} + {1}",
    tangent=lambda node, t: reduce_sum(t, node["axes"]),
    back=lambda node, ct: spread(ct, node.args[0], node["axes"]),
    doc="The sum over axes.",
)


def reduce_sum(x: Node, axes: tuple[int, ...], *, keepdims: bool = False) -> Node:
    """Return ``np.sum``."""
    return fold(SUM, x, axes, keepdims=keepdims)


def _product_tangent(node: Node, t: Node) -> Node:
    x, axes = node.args[0], node["axes"]
    return reduce_sum(multiply_by(prod_others(x, axes), t), axes)


PROD = Fold(
    name="prod",
    keeps_sign=True,
    joins="multiply",
    numpy=lambda x, axis: np.multiply.reduce(x, axis=axis),
    result=_widen,
    start=lambda dtype: dtype.type(1),
    step="{0} * {1}",
    tangent=_product_tangent,
    doc="The product over axes.",
)


def _extreme_tangent(node: Node, t: Node) -> Node:
    """Return the tangent of an extremum: the mean of the tangents at the extreme elements."""
    x, axes = node.args[0], node["axes"]
    hit = equal(x, spread(node, x, axes))
    ties = reduce_sum(astype(hit, t.type.dtype), axes)
    return reduce_sum(where(hit, t, 0), axes) / ties


MAX = Fold(
    name="max",
    keeps_sign=True,
    joins="maximum",
    picks=True,
    numpy=lambda x, axis: np.maximum.reduce(x, axis=axis),
    step="maximum",
    tangent=_extreme_tangent,
    doc="The largest element over axes; nan if there is one.",
)
MIN = Fold(
    name="min",
    keeps_sign=True,
    joins="minimum",
    picks=True,
    numpy=lambda x, axis: np.minimum.reduce(x, axis=axis),
    step="minimum",
    tangent=_extreme_tangent,
    doc="The smallest element over axes; nan if there is one.",
)


def _bool(_dtype: np.dtype[Any]) -> np.dtype[Any]:
    return np.dtype(bool)


def _int(_dtype: np.dtype[Any]) -> np.dtype[Any]:
    return np.dtype(np.int64)


ANY = Fold(
    name="any",
    joins="logical_or",
    numpy=lambda x, axis: np.logical_or.reduce(x, axis=axis),
    result=_bool,
    start=lambda _: False,
    step="{0} or {1} != 0",
    differentiable=False,
    doc="Whether any element is true.",
)
ALL = Fold(
    name="all",
    joins="logical_and",
    numpy=lambda x, axis: np.logical_and.reduce(x, axis=axis),
    result=_bool,
    start=lambda _: True,
    step="{0} and {1} != 0",
    differentiable=False,
    doc="Whether all elements are true.",
)


def _one_axis(function: Callable[..., Value]) -> Callable[[Any, Any], Value]:
    def call(x: Any, axis: Any) -> Value:
        return function(x, axis=None if isinstance(axis, tuple) else axis)

    return call


ARGMAX = Fold(
    name="argmax",
    sequential=True,
    numpy=_one_axis(np.argmax),
    result=_int,
    differentiable=False,
    positional=True,
    doc="The index of the first largest element.",
)
ARGMIN = Fold(
    name="argmin",
    sequential=True,
    numpy=_one_axis(np.argmin),
    result=_int,
    differentiable=False,
    positional=True,
    doc="The index of the first smallest element.",
)


def _logsumexp_numpy(x: Any, axis: Any) -> Value:
    top = np.max(x, axis=axis, keepdims=True)
    shift = np.where(np.isfinite(top), top, 0).astype(x.dtype)
    with np.errstate(divide="ignore"):
        return (np.log(np.sum(np.exp(x - shift), axis=axis, keepdims=True)) + shift).sum(axis=axis, dtype=x.dtype)


def _finite_top(x: Node, axes: tuple[int, ...]) -> Node:
    """Return the maximum over ``axes``, or 0 if it is infinite, so that subtracting it keeps the other elements."""
    top = fold(MAX, x, axes)
    return where(less_equal(top * 0, 0), top, 0)


def _logsumexp_body(node: Node) -> Node:
    x, axes = node.args[0], node["axes"]
    shift = _finite_top(x, axes)
    return log(reduce_sum(exp(x - spread(shift, x, axes)), axes)) + shift


def _shares(node: Node) -> Node:
    """Return the share of each element in the sum of exponentials: softmax, or its limit if the sum is infinite."""
    x, axes = node.args[0], node["axes"]
    top = fold(MAX, x, axes)
    no_limit = scalar.isinf(top)
    largest = scalar.logical_and(equal(x, spread(top, x, axes)), scalar.greater(x, 0))
    ties = reduce_sum(astype(largest, x.type.dtype), axes)
    at_limit = astype(largest, x.type.dtype) / spread(scalar.maximum(ties, 1), x, axes)
    safe = where(spread(no_limit, x, axes), 0, x)
    return where(spread(no_limit, x, axes), at_limit, row(SOFTMAX, safe, axes))


LOGSUMEXP = Fold(
    name="logsumexp",
    in_numpy="scipy.special.logsumexp",
    weight=30,
    joins="logaddexp",
    numpy=_logsumexp_numpy,
    kinds="f",
    tangent=lambda node, t: reduce_sum(multiply_by(_shares(node), t), node["axes"]),
    body=_logsumexp_body,
    doc="log(sum(exp(x))), without overflow.",
)


# folds that keep the shape --------------------------------------------------------------------------------------------


def row(op: Op, x: Node, axes: tuple[int, ...]) -> Node:
    """Return ``op`` along ``axes`` of ``x``."""
    return _taken_together(op, x, axes)


def _cumulative(ufunc: np.ufunc) -> Callable[[Any, Any], Value]:
    def call(x: Any, axis: Any) -> Value:
        return ufunc.accumulate(x, axis=axis if isinstance(axis, int) else 0, dtype=_widen(x.dtype))

    return call


CUMSUM = Row(
    name="cumsum",
    sequential=True,
    numpy=_cumulative(np.add),
    result=_widen,
    start=lambda dtype: dtype.type(0),
    tangent=lambda node, t: row(CUMSUM, t, node["axes"]),
    back=lambda node, ct: flip(row(CUMSUM, flip(ct, node["axes"]), node["axes"]), node["axes"]),
    doc="The running sum along an axis.",
)


def _cumprod_tangent(node: Node, t: Node) -> Node:
    """Return the tangent of ``cumprod``, by the n-by-n array whose k-th row holds the first k factors.

    It is correct for zero factors, at every order.
    """
    x, (axis,) = node.args[0], node["axes"]
    n = x.type.shape[axis]
    wide = (*x.type.shape[:axis], n, *x.type.shape[axis:])
    lower = less_equal(iota(wide, axis + 1), iota(wide, axis))
    factors = where(lower, broadcast(expand_dims(x, (axis,)), wide), 1)
    change = where(lower, broadcast(expand_dims(t, (axis,)), wide), 0)
    return reduce_sum(multiply_by(prod_others(factors, (axis + 1,)), change), (axis + 1,))


CUMPROD = Row(
    name="cumprod",
    sequential=True,
    numpy=_cumulative(np.multiply),
    result=_widen,
    start=lambda dtype: dtype.type(1),
    tangent=_cumprod_tangent,
    doc="The running product along an axis.",
)


def _running_extreme(ufunc: np.ufunc) -> Callable[[Any, Any], Value]:
    def call(x: Any, axis: Any) -> Value:
        return ufunc.accumulate(x, axis=axis if isinstance(axis, int) else 0)

    return call


def _running_tangent(node: Node, t: Node) -> Node:
    """Return the tangent of the first element equal to the running extreme, found by a running maximum of the places of new extremes."""
    x, (axis,) = node.args[0], node["axes"]
    place = iota(node.type.shape, axis)
    before = take_along_axis(node, scalar.maximum(place - 1, 0), axis)
    new = scalar.logical_or(equal(place, 0), scalar.not_equal(node, before))
    return take_along_axis(t, row(CUMMAX, where(new, place, 0), (axis,)), axis) if x.type.ndim else t


CUMMAX = Row(
    name="cummax",
    in_numpy="np.maximum.accumulate",
    sequential=True,
    numpy=_running_extreme(np.maximum),
    tangent=_running_tangent,
    doc="The largest element so far along an axis; nan from the first nan on.",
)
CUMMIN = Row(
    name="cummin",
    in_numpy="np.minimum.accumulate",
    sequential=True,
    numpy=_running_extreme(np.minimum),
    tangent=_running_tangent,
    doc="The smallest element so far along an axis; nan from the first nan on.",
)


def _others_numpy(x: Any, axis: Any) -> Value:
    axes = axis if isinstance(axis, tuple) else tuple(range(x.ndim)) if axis is None else (axis,)
    moved = np.moveaxis(x, axes, range(x.ndim - len(axes), x.ndim))
    flat = moved.reshape(*moved.shape[: x.ndim - len(axes)], math.prod(x.shape[k] for k in axes))
    before, after = np.ones_like(flat), np.ones_like(flat)
    before[..., 1:] = np.cumprod(flat[..., :-1], axis=-1)
    after[..., :-1] = np.cumprod(flat[..., :0:-1], axis=-1)[..., ::-1]
    return np.moveaxis((before * after).reshape(moved.shape), range(x.ndim - len(axes), x.ndim), axes)


def _others_tangent(node: Node, t: Node) -> Node:
    """Return the tangent of ``prod_others``, by the n-by-n array that leaves out one factor per row.

    It is correct for zero factors, at every order.
    """
    x, axes = node.args[0], node["axes"]
    order = (*(k for k in range(x.type.ndim) if k not in axes), *axes)
    kept = tuple(x.type.shape[k] for k in order[: x.type.ndim - len(axes)])
    n = count(x, axes)

    def flat(v: Node) -> Node:
        return reshape(transpose(v, order), (*kept, n))

    rank = len(kept)
    wide = (*kept, n, n)
    own = equal(iota(wide, rank), iota(wide, rank + 1))
    factors = where(own, 1, broadcast(expand_dims(flat(x), (rank,)), wide))
    change = where(own, 0, broadcast(expand_dims(flat(t), (rank,)), wide))
    result = reduce_sum(multiply_by(prod_others(factors, (rank + 1,)), change), (rank + 1,))
    shape = (*kept, *(x.type.shape[k] for k in axes))
    return transpose(reshape(result, shape), tuple(order.index(k) for k in range(x.type.ndim)))


PROD_OTHERS = Row(
    name="prod_others",
    numpy=_others_numpy,
    tangent=_others_tangent,
    doc="For each element the product of all others: the derivative of prod, correct also where factors are zero.",
)


def prod_others(x: Node, axes: tuple[int, ...]) -> Node:
    """Return for each element the product of the other elements over ``axes``."""
    return row(PROD_OTHERS, x, axes)


class Softmax(Row):
    """Softmax along axes: ``exp(x) / sum(exp(x))``; beside an infinity, the other elements stay numbers.

    With ``params["whole"]`` it is ``softmax(x - max(x))``, which makes such a row nan.
    """

    def evaluate(self, node: Node, values: Sequence[Value], size: Callable[[Size], int]) -> Value:
        if "whole" not in node.params:
            return super().evaluate(node, values, size)
        x = np.asarray(values[0])
        return super().evaluate(node, [x - np.max(x, axis=node["axes"], keepdims=True)], size)


def whole_softmax(x: Node, axes: tuple[int, ...]) -> Node:
    """Return ``softmax(x - max(x))``: the same numbers, but a row with an infinity is all nan."""
    return make(SOFTMAX, (x,), axes=axes, whole=True)


def ordinary(dtype: np.dtype[Any]) -> float:
    """Return the largest exponent for which softmax subtracts no maximum.

    Up to there a sum of exponentials neither overflows nor underflows, and the difference would cost accuracy.
    """
    return math.log(float(np.finfo(dtype).max)) / 2 if dtype.itemsize > _NARROW else -1.0


_NARROW = 2
"""In floats of at most this many bytes, a sum of a few hundred exponentials overflows."""


def _softmax_numpy(x: Any, axis: Any) -> Value:
    top = np.max(x, axis=axis, keepdims=True)
    limits = np.finfo(x.dtype)
    ordinary = (
        np.log(float(limits.max)) / 2 if x.itemsize > 2 else -1.0
    )  # its source is shown by itself, so it uses no names of the module
    shift = np.where(np.abs(top) <= ordinary, 0, np.clip(top, limits.min, limits.max))
    e = np.exp(x - shift.astype(x.dtype))
    return e / np.sum(e, axis=axis, keepdims=True)


def _softmax_body(node: Node) -> Node:
    x, axes = node.args[0], node["axes"]
    top = fold(MAX, x, axes)
    if "whole" not in node.params:
        most = float(np.finfo(x.type.dtype).max)
        clipped = scalar.minimum(scalar.maximum(top, -most), most)
        top = where(less_equal(scalar.absolute(top), ordinary(x.type.dtype)), 0, clipped)
    e = exp(x - spread(top, x, axes))
    return multiply(e, spread(1 / reduce_sum(e, axes), x, axes))


def _softmax_tangent(node: Node, t: Node) -> Node:
    change = multiply_by(node, t)
    return change - multiply(node, spread(reduce_sum(change, node["axes"]), node, node["axes"]))


SOFTMAX = Softmax(
    name="softmax",
    in_numpy="scipy.special.softmax",
    weight=30,
    not_negative=True,
    numpy=_softmax_numpy,
    kinds="f",
    tangent=_softmax_tangent,
    body=_softmax_body,
    doc="exp(x) / sum(exp(x)), without overflow.",
)


def _log_softmax_body(node: Node) -> Node:
    x, axes = node.args[0], node["axes"]
    shifted = x - spread(_finite_top(x, axes), x, axes)
    return shifted - spread(log(reduce_sum(exp(shifted), axes)), x, axes)


def _log_softmax_numpy(x: Any, axis: Any) -> Value:
    top = np.max(x, axis=axis, keepdims=True)
    shifted = x - np.where(np.isfinite(top), top, 0).astype(x.dtype)
    return shifted - np.log(np.sum(np.exp(shifted), axis=axis, keepdims=True))


LOG_SOFTMAX = Row(
    name="log_softmax",
    in_numpy="scipy.special.log_softmax",
    weight=30,
    numpy=_log_softmax_numpy,
    kinds="f",
    tangent=lambda node, t: (
        t - spread(reduce_sum(multiply_by(row(SOFTMAX, node.args[0], node["axes"]), t), node["axes"]), t, node["axes"])
    ),
    body=_log_softmax_body,
    doc="log(softmax(x)), without underflow.",
)


def mean(x: Node, axes: tuple[int, ...]) -> Node:
    """Return the sum divided by the count, in NumPy's dtype for means."""
    if x.type.dtype.kind in "biu":
        x = astype(x, np.float64)
    return reduce_sum(x, axes) / astype(size_node(count(x, axes)), x.type.dtype)
