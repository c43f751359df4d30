"""NumPy's order statistics on lazy arrays: median, quantile, percentile, by every method, and those that ignore nan.

An order statistic sorts the rows once; a place between two elements, which the method computes, says which two, and
how much of each.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from tensormagic.capture.errors.refusal import refuse
from tensormagic.capture.library.reductions import computed_in
from tensormagic.capture.library.statistics import fitting
from tensormagic.capture.names import implements
from tensormagic.capture.values.arguments import given, into_out, listed_axes
from tensormagic.capture.values.operands import node_of
from tensormagic.ir.errors import BoundsError, DTypeError, ShapeError
from tensormagic.ir.node import Node
from tensormagic.ir.size import is_at_least, nodes_of
from tensormagic.ir.type import Size, apply
from tensormagic.ops import fold as folds
from tensormagic.ops.effects.checks import in_range, require
from tensormagic.ops.fold import CUMSUM, axes_of, reduce_sum, row
from tensormagic.ops.form import to_form
from tensormagic.ops.indices import sorting
from tensormagic.ops.indices.gather import gather, take_along_axis
from tensormagic.ops.leaf import constant, constant_value, size_node
from tensormagic.ops.move import broadcast, concatenate, expand_dims, reshape, slice_, transpose
from tensormagic.ops.pointwise import astype
from tensormagic.ops.scalars import scalar

Virtual = Callable[[Node, Node], Node]
_NO_ELEMENT = "index -1 is out of bounds for axis 0 with size 0"
_OF_NO_INTEGERS = (
    "a quantile of a data-dependent number of integers, here none, is not captured: its dtype would be another one"
)
_JUST_ABOVE_1 = float(np.nextafter(1.0, 2.0))


def _weighted(alpha: float, beta: float) -> Virtual:
    return lambda n, q: n * q + (alpha + q * (1 - alpha - beta)) - 1


def _step(index: Node, back: Callable[[Node, Node], Node]) -> Node:
    """Return the integer place after ``index``, or the one before where ``back(gamma, index)``."""
    before = scalar.floor(index)
    place = scalar.where(back(index - before, index), before, before + 1)
    return scalar.maximum(astype(place, np.int64), 0)


def _odd_tie(gamma: Node, index: Node) -> Node:
    odd = scalar.equal(scalar.remainder(scalar.floor(index), 2), 1)
    return scalar.logical_and(scalar.equal(gamma, 0), odd)


# The place of a quantile among n sorted elements: an integer, or one between two elements (Hyndman and Fan 1996, and
# NumPy's own).
_WHOLE: dict[str, Virtual] = {
    "inverted_cdf": lambda n, q: _step(n * q - 1, lambda gamma, _: scalar.equal(gamma, 0)),
    "closest_observation": lambda n, q: _step(n * q - 1 - 0.5, _odd_tie),
    "lower": lambda n, q: astype(scalar.floor((n - 1) * q), np.int64),
    "higher": lambda n, q: astype(scalar.ceil((n - 1) * q), np.int64),
    "nearest": lambda n, q: astype(scalar.rint((n - 1) * q), np.int64),
}
_BETWEEN: dict[str, Virtual] = {
    "linear": lambda n, q: (n - 1) * q,
    "averaged_inverted_cdf": lambda n, q: n * q - 1,
    "interpolated_inverted_cdf": _weighted(0, 1),
    "hazen": _weighted(0.5, 0.5),
    "weibull": _weighted(0, 0),
    "median_unbiased": _weighted(1 / 3.0, 1 / 3.0),
    "normal_unbiased": _weighted(3 / 8.0, 3 / 8.0),
    "midpoint": lambda n, q: 0.5 * (scalar.floor((n - 1) * q) + scalar.ceil((n - 1) * q)),
}


def _gamma(method: str, gamma: Node, index: Node) -> Node:
    """Return the share of the upper element."""
    if method == "averaged_inverted_cdf":
        return scalar.where(scalar.equal(gamma, 0), 0.5, 1.0)
    if method == "midpoint":
        return scalar.where(scalar.equal(scalar.remainder(index, 1), 0), 0.0, 0.5)
    return gamma


class Rows:
    """Represents the sorted rows that order statistics are computed from, the axes merged into them, and their lengths.

    Parameters
    ----------
    x
        The array.
    axis
        The axes that are merged, as NumPy writes them.
    skip
        Whether nan is left out; else it makes the statistic nan.
    weights
        What each element counts for, in the shape of ``x``.
    """

    def __init__(self, x: Node, axis: Any, *, skip: bool, weights: Node | None = None) -> None:
        self.axes = axes_of(x, listed_axes(axis))
        rest = tuple(k for k in range(x.type.ndim) if k not in self.axes)
        self.kept = tuple(x.type.shape[k] for k in rest)
        self.length = folds.count(x, self.axes)
        self.skip = skip and x.type.inexact
        merged = self._merged(x, rest)
        self.weights: Node | None = None
        if weights is None:
            self.rows = sorting.sort(merged)
        else:
            order = sorting.argsort(merged)
            self.rows = take_along_axis(merged, order)
            self.weights = take_along_axis(self._merged(weights, rest), order)

    def not_empty(self, *, skip: bool) -> None:
        """Let the graph raise NumPy's error if the rows are empty; with ``skip`` refuse, since NumPy would return a float."""
        if nodes_of(self.length) and not is_at_least(self.length, 1):
            some = scalar.greater_equal(size_node(self.length), 1)
            found = (_OF_NO_INTEGERS, "capture") if skip else (_NO_ELEMENT, "index")
            self.rows = require(self.rows, some, *found)

    def of_one_at_least(self) -> None:
        """Pad rows that may be empty with one nan, which is then the result; with 0 for integers."""
        if not nodes_of(self.length) or is_at_least(self.length, 1):
            return
        nothing = constant(self.rows.type.dtype.type(np.nan if self.rows.type.inexact else 0))
        missing = broadcast(nothing, (*self.kept, apply("max", 1 - self.length, 0)))
        self.rows = concatenate([self.rows, missing], len(self.kept))
        self.length = self.rows.type.shape[-1]

    def _merged(self, x: Node, rest: tuple[int, ...]) -> Node:
        return reshape(transpose(x, (*rest, *self.axes)), (*self.kept, self.length))

    @property
    def count(self) -> Node:
        """Return the number of elements that count; one for each row where nan is ignored."""
        if not self.skip:
            return size_node(self.length)
        numbers = scalar.logical_not(scalar.isnan(self.rows))
        return reduce_sum(astype(numbers, np.int64), (len(self.kept),))

    def take(self, places: Node) -> Node:
        """Return the elements at ``places``: of shape (…,) for all rows, or (…, rows) for each row its own."""
        if not self.skip and self.weights is None:
            outer = places.type.ndim - len(self.kept)
            found = gather(self.rows, reshape(places, places.type.shape[:outer]), len(self.kept))
            return _to_front(found, len(self.kept))
        outer_shape = places.type.shape[: places.type.ndim - len(self.kept)]
        count: Size = 1
        for s in outer_shape:
            count = count * s
        places = broadcast(places, (*outer_shape, *self.kept))
        flat = _to_back(reshape(places, (count, *self.kept)))
        safe = scalar.maximum(scalar.minimum(flat, size_node(self.length - 1)), 0)
        found = take_along_axis(self.rows, safe, len(self.kept))
        return reshape(_to_front(found, len(self.kept)), (*outer_shape, *self.kept))

    def unless_spoilt(self, result: Node) -> Node:
        """Return ``result``, with nan for rows that contain nan (with ``skip``: contain nothing else)."""
        if not self.rows.type.inexact:
            return result
        place = 0 if self.skip else self.length - 1
        slices = (*((0, s, 1) for s in self.kept), (place, 1, 1))
        last = reshape(slice_(self.rows, slices), self.kept)
        return scalar.where(scalar.isnan(last), astype(last, result.type.dtype), result)

    def widened(self, result: Node) -> Node:
        """Return ``result`` with the merged axes as extents of 1."""
        outer = result.type.ndim - len(self.kept)
        if not self.axes and not result.type.shape:
            return to_form(result, "array")
        return expand_dims(result, tuple(k + outer for k in self.axes))


def _to_front(x: Node, first: int) -> Node:
    """Return ``x`` with the axes from ``first`` on moved to the front."""
    return transpose(x, (*range(first, x.type.ndim), *range(first)))


def _to_back(x: Node) -> Node:
    """Return ``x`` with the first axis moved to the end."""
    return transpose(x, (*range(1, x.type.ndim), 0))


def _lerp(low: Node, high: Node, t: Node, rest: Node) -> Node:
    """Return the interpolated value between two, from the nearer end, as NumPy computes it; ``rest`` is ``1 - t``."""
    change = high - low
    return scalar.where(scalar.greater_equal(t, 0.5), high - change * rest, low + change * t)


def _quantile(rows: Rows, q: Node, method: str, *, weak: bool) -> Node:
    """Return the quantiles ``q`` of the rows, with the axes of ``q`` in front."""
    if method not in _WHOLE and method not in _BETWEEN:
        raise ValueError(f"{method!r} is not a valid method. Use one of: {[*_WHOLE, *_BETWEEN]}")
    q = expand_dims(q, tuple(range(q.type.ndim, q.type.ndim + len(rows.kept))))
    n = rows.count
    if q.type.dtype.kind == "i":  # the least or the largest
        return rows.unless_spoilt(rows.take((n - 1) * q))
    if method in _WHOLE:
        return rows.unless_spoilt(rows.take(_WHOLE[method](n, q)))
    if n.type.shape and q.type.dtype.kind == "f" and _shares_are_narrowed():
        n = astype(n, q.type.dtype)  # for each row, it is Python's number
    index = _BETWEEN[method](n, q)
    before = scalar.floor(index)
    top = n - 1
    last = scalar.greater_equal(index, top)
    first = scalar.less(index, 0)
    low = scalar.where(last, top, scalar.where(first, 0, astype(before, np.int64)))
    high = scalar.where(last, top, scalar.where(first, 0, astype(before, np.int64) + 1))
    gamma = _gamma(method, index - scalar.where(last, -1, scalar.where(first, 0, before)), index)
    shares = gamma, 1 - gamma
    if weak:
        shares = _weak(shares[0], rows.rows.type.dtype), _weak(shares[1], rows.rows.type.dtype)
    return rows.unless_spoilt(_lerp(rows.take(low), rows.take(high), *shares))


def _weak(gamma: Node, dtype: np.dtype[Any]) -> Node:
    """Return a share given as a Python number, in a form that does not widen floats."""
    if not gamma.type.shape:
        return to_form(gamma, "python")
    return astype(gamma, dtype) if dtype.kind == "f" else gamma


def _of_nothing(rows: Rows) -> Node:
    """Return the quantiles of no elements, where nan is ignored: one nan, however many quantiles there are."""
    dtype = rows.rows.type.dtype if rows.rows.type.inexact else np.dtype(float)
    return broadcast(constant(dtype.type(np.nan)), rows.kept)


def _weighted_quantile(rows: Rows, q: Node) -> Node:
    """Return the first element up to which the weights add up to the share ``q`` of all."""
    weights = rows.weights
    if weights is None:
        raise AssertionError
    last = len(rows.kept)
    weights = require(weights, scalar.greater_equal(weights, 0), "Weights must be non-negative.")
    if rows.skip:
        weights = scalar.where(scalar.isnan(rows.rows), 0, weights)
    sums = row(CUMSUM, astype(weights, np.float64), (last,))
    whole = slice_(sums, (*((0, s, 1) for s in rows.kept), (rows.length - 1, 1, 1)))
    some = scalar.logical_and(scalar.isfinite(whole), scalar.greater(whole, 0))
    shares = sums / require(whole, some, "Weights included NaN, inf or were all zero.")
    shares = scalar.where(scalar.equal(shares, 0), -1.0, shares)
    wanted = expand_dims(q, tuple(range(q.type.ndim, q.type.ndim + last + 1)))
    place = reduce_sum(astype(scalar.less(shares, wanted), np.int64), (q.type.ndim + last,))
    result = rows.unless_spoilt(rows.take(scalar.minimum(place, rows.count - 1)))
    return result if result.type.shape else to_form(result, "array")


def _share(q: Node, scale: int, *, whole: bool) -> Node:
    """Return the quantile as a fraction between 0 and 1; an integer, for which NumPy picks elements exactly, stays an integer."""
    known = constant_value(q)
    if known is not None:
        _checked(constant(np.asarray(known, float) / scale), _ranges(scale))
    share = to_form(q, "scalar") if q.type.form == "python" else q
    if scale != 1:
        share = scalar.divide(share, scale)
    elif not share.type.inexact:
        share = astype(share, np.int64 if whole and share.type.dtype.kind in "bi" else np.float64)
    return _checked(share, _ranges(scale))


def _narrowed(q: Node, dtype: np.dtype[Any]) -> Node:
    """Return a share in the dtype of the elements, if this NumPy converts it."""
    as_they_are = q.type.form != "python" or dtype.kind != "f" or not _shares_are_narrowed()
    return q if as_they_are else astype(to_form(q, "scalar"), dtype)


@functools.cache
def _shares_are_narrowed() -> bool:
    """Return whether this NumPy converts a share that is a Python number to the dtype of the floats, as before 2.4."""
    return bool(np.quantile(np.array([0, 0, 1], np.float32), 0.5 + 2.0**-40) == 0)


def _ranges(scale: int) -> str:
    return "Percentiles must be in the range [0, 100]" if scale != 1 else "Quantiles must be in the range [0, 1]"


def _quantile_like(name: str, scale: int, *, skip: bool) -> Callable[..., Any]:
    def quantile(
        a: Any,
        q: Any,
        axis: Any = None,
        out: Any = None,
        overwrite_input: bool = False,
        method: str = "linear",
        keepdims: Any = False,
        *,
        weights: Any = None,
    ) -> Any:
        del overwrite_input  # the overwritten input cannot be read later
        x, share = node_of(a), node_of(q)
        if x.type.dtype.kind == "c":
            raise DTypeError("a must be an array of real numbers")
        if share.type.ndim > 2:
            raise ShapeError("q must be a scalar or 1d")
        share = _narrowed(share, x.type.dtype)
        weak = share.type.form == "python"
        share = _share(share, scale, whole=method == "linear" and scale == 1)
        if weights is not None and method != "inverted_cdf":
            raise ValueError(f"Only method 'inverted_cdf' supports weights. Got: {method}.")
        if skip and method in _BETWEEN and not x.type.inexact and nodes_of(x.type.size):
            x = astype(x, np.float64)  # of no elements it is nan
        rows = Rows(
            x, axis, skip=skip, weights=None if weights is None else fitting(node_of(weights), x, listed_axes(axis))
        )
        if rows.length == 0:
            if not skip:
                raise BoundsError(_NO_ELEMENT)
            result = _of_nothing(rows)
        else:
            if not skip or not x.type.inexact:
                rows.not_empty(skip=skip)
            if not skip or not share.type.ndim:
                rows.of_one_at_least()
            result = _quantile(rows, share, method, weak=weak) if weights is None else _weighted_quantile(rows, share)
        return into_out(rows.widened(result) if given(keepdims) and keepdims else result, out, name)

    return quantile


def _checked(q: Node, message: str) -> Node:
    """Return ``q``, checked to be between 0 and 1: at once if it is known, else when the graph runs."""
    values = constant_value(q)
    if values is None:
        return in_range(q, 0, constant(_JUST_ABOVE_1), message)
    if not ((values >= 0) & (values <= 1)).all():
        raise ValueError(message)
    return q


implements(np.quantile)(_quantile_like("np.quantile", 1, skip=False))
implements(np.percentile)(_quantile_like("np.percentile", 100, skip=False))
implements(np.nanquantile)(_quantile_like("np.nanquantile", 1, skip=True))
implements(np.nanpercentile)(_quantile_like("np.nanpercentile", 100, skip=True))


def _median(name: str, *, skip: bool) -> Callable[..., Any]:
    def median(a: Any, axis: Any = None, out: Any = None, overwrite_input: bool = False, keepdims: Any = False) -> Any:
        del overwrite_input  # the overwritten input cannot be read later
        x = node_of(a)
        x = computed_in(x, None, out) if x.type.inexact else astype(x, np.float64)
        if x.type.dtype.kind == "c":
            refuse(f"{name} of complex numbers", "Take the real part.")
        rows = Rows(x, axis, skip=skip)
        if rows.length == 0:
            nothing = broadcast(constant(x.type.dtype.type(np.nan)), rows.kept)
            return into_out(rows.widened(nothing) if given(keepdims) and keepdims else nothing, out, name)
        rows.of_one_at_least()
        n = rows.count
        if rows.skip:
            low, high = scalar.floor_divide(n - 1, 2), scalar.floor_divide(n, 2)
        else:
            low, high = (size_node(apply("floordiv", rows.length - k, 2)) for k in (1, 0))
        both = rows.take(_rowwise(low, rows)) + rows.take(_rowwise(high, rows))
        middle = (both + constant(x.type.dtype.type(0))) / 2  # a mean, which is never -0.0
        result = rows.unless_spoilt(middle)
        return into_out(rows.widened(result) if given(keepdims) and keepdims else result, out, name)

    return median


def _rowwise(places: Node, rows: Rows) -> Node:
    """Return places without outer axes in the shape that :meth:`Rows.take` reads."""
    return places if rows.skip else expand_dims(astype(places, np.int64), tuple(range(len(rows.kept))))


median = _median("np.median", skip=False)
implements(np.median)(median)
implements(np.nanmedian)(_median("np.nanmedian", skip=True))
