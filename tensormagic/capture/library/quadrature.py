"""``scipy.integrate`` on samples: Simpson's rule and the running trapezoid sum."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from tensormagic.capture import context
from tensormagic.capture.errors.refusal import refuse
from tensormagic.capture.library import signal
from tensormagic.capture.library.joining import concatenate_
from tensormagic.capture.names import implements
from tensormagic.capture.values.arguments import one_axis, tensor
from tensormagic.capture.values.operands import build
from tensormagic.capture.values.value import Tensor, wrap
from tensormagic.ir.type import apply, hint
from tensormagic.ops.form import to_form
from tensormagic.ops.move import broadcast
from tensormagic.ops.pointwise import astype
from tensormagic.ops.scalars import scalar
from tensormagic.ops.update import zeros_like


def _along(x: Tensor, axis: int, index: Any) -> Tensor:
    return x[(slice(None),) * axis + (index,)]


def _ratio(left: Any, right: Tensor) -> Tensor:
    """Return ``left / right``, and 0 where that divides by 0."""
    zero = build(scalar.equal, right, 0)
    return build(scalar.where, zero, 0.0, build(scalar.divide, left, build(scalar.where, zero, 1.0, right)))


def _spacings(x: Any, y: Tensor, axis: int) -> Tensor:
    """Return the spacings of samples along an axis, broadcast to the samples' axes."""
    places = tensor(x)
    if places.ndim == 1:
        places = places.reshape([*[1] * axis, -1, *[1] * (y.ndim - axis - 1)])
    elif places.ndim != y.ndim:
        raise ValueError("If given, shape of x must be 1-D or the same as y.")
    return _along(places, axis, slice(1, None)) - _along(places, axis, slice(None, -1))


@implements("scipy.integrate.trapezoid")
def trapezoid(y: Any, x: Any = None, dx: Any = 1.0, axis: int = -1) -> Any:
    """Implement ``scipy.integrate.trapezoid``: NumPy's, in the dtype of the samples."""
    values = tensor(y)
    result = signal.trapezoid(values, x, dx, axis)
    return wrap(astype(result.node, values.dtype if values.type.inexact else np.float64))


@implements("scipy.integrate.cumulative_trapezoid")
def cumulative_trapezoid(y: Any, x: Any = None, dx: Any = 1.0, axis: int = -1, initial: Any = None) -> Any:
    """Implement ``scipy.integrate.cumulative_trapezoid``."""
    values = tensor(y)
    axis = one_axis(axis, values.ndim)
    if initial not in {None, 0}:
        raise ValueError("`initial` must be `None` or `0`.")
    step = dx if x is None else _spacings(x, values, axis)
    means = step * (_along(values, axis, slice(1, None)) + _along(values, axis, slice(None, -1))) / 2.0
    result = means.cumsum(axis)
    if initial is None:
        return result
    first = _along(result, axis, slice(0, 1))
    return concatenate_([wrap(zeros_like(first.node)), result], axis)


def _odd(count: Any) -> bool:
    """Return whether the number of samples is odd; guard this, and that there are more than two."""
    number = hint(count)
    if number is None:
        refuse("scipy.integrate.simpson of samples whose number depends on data", "Compute them in an earlier cell.")
    capture = context.current()
    if capture is not None and not isinstance(count, int):
        capture.guards.append((apply("mod", count, 2), "==", number % 2))
        capture.guards.append((count, "==", 2) if number == 2 else (count, ">=", 3))
    return number % 2 == 1


@implements("scipy.integrate.simpson")
def simpson(y: Any, x: Any = None, *, dx: Any = 1.0, axis: int = -1) -> Any:
    """Implement ``scipy.integrate.simpson``, with Cartwright's correction for an even number of samples."""
    values = tensor(y)
    axis = one_axis(axis, values.ndim)
    steps = None if x is None else _spacings(x, values, axis)
    count = values.type.shape[axis]
    if _odd(count):
        return _parabolas(values, steps, dx, axis, None)
    last, before = _along(values, axis, -1), _along(values, axis, -2)
    if hint(count) == 2:
        width = dx if steps is None else _along(steps, axis, -1)
        return 0.5 * width * (last + before) + 0.0
    result = _parabolas(values, steps, dx, axis, -1)
    if steps is None:
        step = tensor(dx)
        own = 0.0 if step.type.form == "python" else step.dtype
        first = second = wrap(to_form(astype(step.node, _of_widths(own, values)), "array"))
    else:
        first, second = (_width(_along(steps, axis, k), values) for k in (-2, -1))
    alpha = _ratio(second * second * 2 + first * second * 3, 6 * (second + first))
    beta = _ratio(second * second + first * second * 3.0, 6 * first)
    eta = _ratio(second * second * second, 6 * first * (first + second))
    whole = result + (alpha * last + beta * before - eta * _along(values, axis, -3))
    return wrap(astype(whole.node, result.dtype)) if whole.ndim else whole


def _width(x: Tensor, y: Tensor) -> Tensor:
    return wrap(astype(x.node, _of_widths(x.dtype, y)))


def _of_widths(own: Any, y: Tensor) -> Any:
    """Return the dtype of interval widths in SciPy."""
    if _is_double() or not y.type.inexact:
        return np.float64
    return np.result_type(own, np.dtype(y.dtype.char.lower()))


@functools.cache
def _is_double() -> bool:
    """Return whether SciPy computes widths in float64 whatever the dtype of the samples, as it did before 1.18."""
    import scipy.integrate

    four = np.arange(4, dtype=np.float32)
    return np.asarray(scipy.integrate.simpson(four, x=four)).dtype == np.float64


def _parabolas(y: Tensor, steps: Tensor | None, dx: Any, axis: int, end: int | None) -> Tensor:
    """Return the sum over pairs of intervals, of all samples or of all but the last."""
    stop = 0 if end is None else end
    parts = (slice(0, stop - 2, 2), slice(1, stop - 1, 2), slice(2, end, 2))
    low, mid, high = (_along(y, axis, part) for part in parts)
    if steps is None:
        total = (low + 4.0 * mid + high).sum(axis)
        result = total * (dx / 3.0)
        return wrap(astype(result.node, total.dtype)) if total.ndim and _is_double() else result
    first, second = (_width(_along(steps, axis, part), y) for part in (slice(0, end, 2), slice(1, end, 2)))
    width, product, ratio = first + second, first * second, _ratio(first, second)
    terms = low * (-_ratio(1.0, ratio) + 2.0) + mid * (width * _ratio(width, product)) + high * (-ratio + 2.0)
    whole = width / 6.0 * terms
    return wrap(broadcast(whole.node, whole.type.shape)).sum(axis)
