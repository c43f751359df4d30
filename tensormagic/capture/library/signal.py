"""NumPy's functions of sampled functions, on lazy arrays: diff, gradient, trapezoid, interp, unwrap, convolve, correlate."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensormagic.capture import context
from tensormagic.capture.library.choosing import choose_from
from tensormagic.capture.library.joining import concatenate_
from tensormagic.capture.names import implements
from tensormagic.capture.values.arguments import agreeing, done, given, known, one_axis, several_axes, tensor
from tensormagic.capture.values.casts import cast_error
from tensormagic.capture.values.operands import build, node_of
from tensormagic.capture.values.value import Tensor, wrap
from tensormagic.ir.errors import DTypeError, ShapeError
from tensormagic.ir.node import Node
from tensormagic.ir.size import nodes_of
from tensormagic.ir.type import Size, apply, hint
from tensormagic.ops.convolution import convolve
from tensormagic.ops.effects.checks import require
from tensormagic.ops.indices import sorting
from tensormagic.ops.indices.gather import gather
from tensormagic.ops.leaf import size_node
from tensormagic.ops.move import broadcast, flip, reshape, slice_
from tensormagic.ops.scalars import scalar


def _along(x: Tensor, axis: int, part: Any) -> Tensor:
    """Return ``x[..., part, ...]`` with ``part`` at ``axis``."""
    return x[(slice(None),) * axis + (part,)]


# differences ----------------------------------------------------------------------------------------------------------


@implements(np.diff)
def diff(
    a: Any,
    n: int = 1,
    axis: int = -1,
    prepend: Any = np._NoValue,  # type: ignore[attr-defined] # noqa: SLF001 (NumPy's mark)
    append: Any = np._NoValue,  # type: ignore[attr-defined] # noqa: SLF001 (NumPy's mark)
) -> Any:
    """Implement ``np.diff``."""
    n = int(known(n, "the order of np.diff"))
    x = tensor(a)
    if n == 0:
        return a
    if n < 0:
        raise ValueError(f"order must be non-negative but got {n}")
    if not x.ndim:
        raise ShapeError("diff requires input that is at least one dimensional")
    axis = one_axis(axis, x.ndim)
    x = _extended(x, axis, prepend, append)
    for _ in range(n):
        high, low = _along(x, axis, slice(1, None)), _along(x, axis, slice(None, -1))
        x = build(scalar.not_equal, high, low) if x.dtype.kind == "b" else high - low
    return x


def _extended(x: Tensor, axis: int, before: Any, after: Any) -> Tensor:
    """Return ``x`` with the values of ``prepend`` and ``append`` at its ends; numbers are broadcast."""
    parts: list[Any] = [x]
    for place, value in ((0, before), (None, after)):
        if not given(value):
            continue
        node = node_of(value)
        if not node.type.ndim:
            node = broadcast(node, tuple(1 if k == axis else s for k, s in enumerate(x.type.shape)))
        parts.insert(len(parts) if place is None else 0, node)
    return x if len(parts) == 1 else concatenate_(parts, axis)


@implements(np.ediff1d)
def ediff1d(ary: Any, to_end: Any = None, to_begin: Any = None) -> Any:
    """Implement ``np.ediff1d``."""
    x = tensor(ary).ravel()
    parts = [x[1:] - x[:-1]]
    for value, place in ((to_end, 1), (to_begin, 0)):
        if value is None:
            continue
        if not np.can_cast(node_of(value).type.dtype, x.dtype, "same_kind"):
            raise DTypeError(
                "dtype of `to_end` or `to_begin` must be compatible with input `ary` under same_kind rule."
            )
        parts.insert(place * len(parts), tensor(value).ravel().astype(x.dtype))
    return concatenate_(parts) if len(parts) > 1 else parts[0]


_TOO_SMALL = (
    "Shape of array too small to calculate a numerical gradient, at least (edge_order + 1) elements are required."
)


@implements(np.gradient)
def gradient(f: Any, *varargs: Any, axis: Any = None, edge_order: int = 1) -> Any:
    """Implement ``np.gradient``: central differences inside, differences of order ``edge_order`` at the ends."""
    x = tensor(f)
    x = x.astype(np.float64) if x.type.dtype.kind in "iu" else x  # booleans are subtracted, which is an error
    axes = tuple(range(x.ndim)) if axis is None else several_axes(axis, x.ndim)
    if edge_order > 2:
        raise ValueError("'edge_order' greater than 2 not supported")
    spacings = _spacings(varargs, x, axes)
    found = []
    for k, spacing in zip(axes, spacings, strict=True):
        extent = hint(x.type.shape[k])
        if extent is not None and extent < edge_order + 1:
            raise ShapeError(_TOO_SMALL)
        if nodes_of(x.type.shape[k]):
            x = wrap(require(x.node, scalar.greater(size_node(x.type.shape[k]), edge_order), _TOO_SMALL))
        found.append(_derivative(x, k, spacing, edge_order))
    return found[0] if len(axes) == 1 else tuple(found)


def _spacings(given_: tuple[Any, ...], x: Tensor, axes: tuple[int, ...]) -> list[Any]:
    """Return, for each axis, a number or the distances of its coordinates."""
    if not given_:
        return [1.0] * len(axes)
    values = [v if isinstance(v, int | float) else tensor(v) for v in given_]
    if len(values) == 1 and not np.ndim(values[0]):
        return values * len(axes)
    if len(values) != len(axes):
        raise TypeError("invalid number of arguments")
    pairs = zip(values, axes, strict=True)
    return [_distances(v, x, axis) if isinstance(v, Tensor) and v.ndim else v for v, axis in pairs]


def _distances(v: Tensor, x: Tensor, axis: int) -> Tensor:
    if v.ndim != 1:
        raise ShapeError("distances must be either scalars or 1d")
    message = "when 1d, distances must match the length of the corresponding dimension"
    found = wrap(agreeing(v.node, v.type.shape[0], x.type.shape[axis], message))
    return diff(found if found.type.inexact else found.astype(np.float64))


def _derivative(x: Tensor, axis: int, spacing: Any, edge_order: int) -> Tensor:
    """Return the derivative along one axis."""
    low, mid, high = (_along(x, axis, s) for s in (slice(None, -2), slice(1, -1), slice(2, None)))
    if not np.ndim(spacing):
        inside = (high - low) / (2.0 * spacing)
    else:
        wide = [1] * x.ndim
        first, second = (s.reshape([*wide[:axis], -1, *wide[axis + 1 :]]) for s in (spacing[:-1], spacing[1:]))
        general = _uneven(first, second, low, mid, high)
        even = build(scalar.equal, spacing, spacing[0]).all()  # NumPy treats equal distances as one number
        inside = choose_from(even, (high - low) / (2.0 * spacing[0]), general)
    edge = _first_order if edge_order == 1 else _second_order
    return concatenate_([edge(x, axis, spacing, 1), inside, edge(x, axis, spacing, -1)], axis).astype(x.dtype)


def _uneven(first: Tensor, second: Tensor, low: Tensor, mid: Tensor, high: Tensor) -> Tensor:
    a = -second / (first * (first + second))
    b = (second - first) / (first * second)
    c = first / (second * (first + second))
    return a * low + b * mid + c * high


def _at(x: Tensor, axis: int, place: int) -> Tensor:
    return _along(x, axis, slice(place, place + 1) if place != -1 else slice(-1, None))


def _first_order(x: Tensor, axis: int, spacing: Any, sign: int) -> Tensor:
    step = spacing if not np.ndim(spacing) else spacing[0 if sign == 1 else -1]
    return (_at(x, axis, 1) - _at(x, axis, 0) if sign == 1 else _at(x, axis, -1) - _at(x, axis, -2)) / step


def _second_order(x: Tensor, axis: int, spacing: Any, sign: int) -> Tensor:
    places = (0, 1, 2) if sign == 1 else (-3, -2, -1)
    low, mid, high = (_at(x, axis, p) for p in places)
    if not np.ndim(spacing):
        even = (-1.5 / spacing, 2.0 / spacing, -0.5 / spacing)
        a, b, c = even if sign == 1 else tuple(-v for v in reversed(even))
        return a * low + b * mid + c * high
    first, second = (spacing[k] for k in ((0, 1) if sign == 1 else (-2, -1)))
    if sign == 1:
        a = -(2.0 * first + second) / (first * (first + second))
        b, c = (first + second) / (first * second), -first / (second * (first + second))
    else:
        a, b = second / (first * (first + second)), -(second + first) / (first * second)
        c = (2.0 * second + first) / (second * (first + second))
    return a * low + b * mid + c * high


@implements(np.trapezoid, getattr(np, "trapz", np.trapezoid))
def trapezoid(y: Any, x: Any = None, dx: Any = 1.0, axis: int = -1) -> Any:
    """Implement ``np.trapezoid``."""
    values = tensor(y)
    axis = one_axis(axis, values.ndim)
    step = dx
    if x is not None:
        places = tensor(x)
        step = diff(places, axis=axis if places.ndim > 1 else -1)
        if places.ndim == 1:
            step = step.reshape([*[1] * axis, -1, *[1] * (values.ndim - axis - 1)])
    high, low = _along(values, axis, slice(1, None)), _along(values, axis, slice(None, -1))
    return (step * (high + low) / 2.0).sum(axis)


@implements(np.unwrap)
def unwrap(p: Any, discont: Any = None, axis: int = -1, *, period: Any = 2 * np.pi) -> Any:
    """Implement ``np.unwrap``: jumps larger than half the period are removed."""
    x = tensor(p)
    axis = one_axis(axis, x.ndim)
    change = diff(x, axis=axis)
    discont = period / 2 if discont is None else discont
    high, ambiguous = period / 2, True
    if change.dtype.kind in "iu" and isinstance(period, int):
        high, rest = divmod(period, 2)
        ambiguous = rest == 0
    low = -high
    folded = build(scalar.remainder, change - low, period) + low
    if ambiguous:
        at_edge = build(scalar.logical_and, build(scalar.equal, folded, low), build(scalar.greater, change, 0))
        folded = choose_from(at_edge, high, folded)
    correction = choose_from(build(scalar.less, abs(change), discont), 0, folded - change)
    rest = _along(x, axis, slice(1, None)) + correction.cumsum(axis)
    return concatenate_([_along(x, axis, slice(0, 1)), rest], axis).astype(folded.dtype)


# interpolation --------------------------------------------------------------------------------------------------------


@implements(np.interp)
def interp(x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None, period: Any = None) -> Any:
    """Implement ``np.interp``: the line between the two neighbours in ``xp``, which are found by bisection."""
    places, knots, values = tensor(x), tensor(xp), tensor(fp)
    if places.dtype.kind == "c" or knots.dtype.kind == "c":
        raise cast_error(np.complex128, np.float64)
    if knots.ndim != 1 or values.ndim != 1:
        raise ShapeError("Data points must be 1-D sequences")
    alike = "fp and xp are not of the same length" + ("." if period is None else "")
    values = wrap(agreeing(values.node, knots.type.shape[0], values.type.shape[0], alike))
    if knots.type.shape[0] == 0:
        raise ShapeError("array of sample points is empty")
    form = places.type.form
    places, knots = (v.astype(np.float64) for v in (places, knots))
    values = values.astype(np.complex128 if values.dtype.kind == "c" else np.float64)
    if period is not None:
        places, knots, values, left, right = _periodic(places, knots, values, period)
    result = _interpolated(places, knots, values, left, right)
    return result if form != "array" or places.ndim else done(result.node)


def _periodic(places: Tensor, knots: Tensor, values: Tensor, period: Any) -> tuple[Any, ...]:
    """Return the knots of one period, sorted, with the last one before and the first one after."""
    if not isinstance(period, Tensor) and period == 0:
        raise ValueError("period must be a non-zero value")
    period = abs(period)
    places, knots = (build(scalar.remainder, v, period) for v in (places, knots))
    order = sorting.argsort(knots.node)
    knots, values = (done(gather(v.node, order)) for v in (knots, values))
    knots = concatenate_([knots[-1:] - period, knots, knots[0:1] + period])
    return places, knots, concatenate_([values[-1:], values, values[0:1]]), None, None


def _interpolated(places: Tensor, knots: Tensor, values: Tensor, left: Any, right: Any) -> Tensor:
    count = knots.type.shape[0]
    first, last = values[0], values[-1]
    left, right = first if left is None else left, last if right is None else right
    x = places.node
    if count == 1:
        inside: Any = first
    else:
        place = sorting.searchsorted(knots.node, x, "right") - 1
        low = scalar.minimum(scalar.maximum(place, 0), size_node(count - 2))
        x0, x1 = (gather(knots.node, k) for k in (low, low + 1))
        y0, y1 = (gather(values.node, k) for k in (low, low + 1))
        slope = (y1 - y0) / (x1 - x0)
        line = slope * (x - x0) + y0
        inside = scalar.where(scalar.equal(x, x0), y0, scalar.where(scalar.equal(x, knots[-1].node), last.node, line))
    result = choose_from(build(scalar.less, places, knots[0]), left, inside)
    result = choose_from(build(scalar.greater, places, knots[-1]), right, result)
    return choose_from(build(scalar.isnan, places), places if values.dtype.kind == "f" else places + 0j, result)


# convolution ----------------------------------------------------------------------------------------------------------


def _mode(mode: Any) -> str:
    names = ("valid", "same", "full")
    found = names[mode] if isinstance(mode, int) else str(mode).lower()
    if found not in names:
        raise ValueError(f"mode must be one of 'valid', 'same', or 'full' (got {mode!r})")
    return found


def _row(value: Any, name: str) -> Node:
    node = node_of(value)
    if node.type.ndim > 1:
        raise ShapeError("object too deep for desired array")
    node = node if node.type.ndim else reshape(node, (1,))
    if node.type.shape[0] == 0:
        raise ShapeError(f"{name} cannot be empty")
    return node


def _centre(whole: Node, n: Size, m: Size, mode: str) -> Node:
    """Return the part of a full convolution of ``n`` and ``m <= n`` elements that ``mode`` selects."""
    if mode == "full":
        return whole
    if mode == "valid":
        return slice_(whole, ((m - 1, n - m + 1, 1),))
    return slice_(whole, ((apply("floordiv", m - 1, 2), n, 1),))


def _ordered(n: Size, m: Size) -> bool:
    """Return whether ``m > n`` for the sizes seen at capture, which the graph is then guarded by."""
    capture = context.current()
    seen = [hint(s) if capture is None else capture.specialise(s) for s in (n, m)] if n != m else [1, 1]
    return None not in seen and (seen[1] or 0) > (seen[0] or 0)


@implements(np.convolve)
def convolve_(a: Any, v: Any, mode: Any = "full") -> Any:
    """Implement ``np.convolve``."""
    mode = _mode(mode)
    x, y = _row(a, "a"), _row(v, "v")
    if mode != "full" and _ordered(x.type.shape[0], y.type.shape[0]):
        x, y = y, x
    n, m = x.type.shape[0], y.type.shape[0]
    if hint(n) is None or hint(m) is None:  # which one is longer is known only when the graph runs
        n, m = apply("max", n, m), apply("min", n, m)
    return done(_centre(convolve(x, y), n, m, mode))


@implements(np.correlate)
def correlate(a: Any, v: Any, mode: Any = "valid") -> Any:
    """Implement ``np.correlate``: the convolution with the second one reversed and conjugated."""
    mode = _mode(mode)
    x, y = node_of(a), node_of(v)
    if not (x.type.ndim and y.type.ndim):
        raise ValueError("object of too small depth for desired array")
    x, y = _row(x, "a"), _row(y, "v")
    y = scalar.conjugate(y) if y.type.dtype.kind == "c" else y
    whole = convolve(x, flip(y, (0,)))
    n, m = x.type.shape[0], y.type.shape[0]
    if mode == "full":
        return done(whole)
    if hint(n) is None or hint(m) is None:
        longer = scalar.greater_equal(size_node(n), size_node(m))
        message = "np.correlate of an array whose length depends on data, and is shorter than the second one here, is not captured"
        whole, n, m = require(whole, longer, message, "capture"), apply("max", n, m), apply("min", n, m)
    if not _ordered(n, m):
        return done(_centre(whole, n, m, mode))
    if mode == "same":  # NumPy correlates the longer with the shorter and reverses the result
        return done(flip(_centre(flip(whole, (0,)), m, n, mode), (0,)))
    return done(_centre(whole, m, n, mode))
