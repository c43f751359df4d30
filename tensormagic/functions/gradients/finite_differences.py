"""Directional derivatives by function values alone: extrapolated central differences in the longest floats, and complex steps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

Values = list[Any]
Numeric = Callable[[Values], Values]

_STEPS = (2.0**-4, 2.0**-7, 2.0**-11, 2.0**-16)
_ROWS = 5
_COMPLEX_STEP = 1e-100


@dataclass(frozen=True)
class Slope:
    """The directional derivative of each value, and an estimate of its error."""

    values: Values
    errors: list[float]


def longest(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return the longest float, or complex number, of the kind of ``dtype``."""
    return np.dtype(np.clongdouble if dtype.kind == "c" else np.longdouble)


def longer(values: Sequence[Any]) -> Values:
    """Return arrays and numbers in the longest precision; numbers become rank-0 arrays."""
    return [np.asarray(v).astype(longest(np.asarray(v).dtype)) for v in values]


def slope(function: Numeric, points: Values, moves: Values) -> Slope:
    """Return the derivative of ``function`` at ``points`` along ``moves``.

    Central differences are extrapolated from several initial steps, and the table whose last two rows agree best is
    taken. If a complex step agrees with it, that is taken instead: it has no cancellation error.
    """
    tables = [_extrapolated(function, points, moves, step) for step in _STEPS]
    best: Values = []
    errors: list[float] = []
    for k in range(len(tables[0][0])):
        found = [(apart, value) for values, errors_of in tables for value, apart in [(values[k], errors_of[k])]]
        apart, value = min(found, key=lambda pair: pair[0] if np.isfinite(pair[0]) else np.inf)
        best.append(value)
        errors.append(apart)
    return _by_complex_step(function, points, moves, Slope(best, errors))


def _extrapolated(function: Numeric, points: Values, moves: Values, step: float) -> tuple[Values, list[float]]:
    rows = [_central(function, points, moves, step / 2**k) for k in range(_ROWS)]
    columns = list(zip(*rows, strict=True))
    found = [_limit(list(column)) for column in columns]
    return [value for value, _ in found], [apart for _, apart in found]


def _limit(column: Values) -> tuple[Any, float]:
    """Return Richardson's extrapolation, and how much its last stage has changed."""
    before = column[-1]
    for order in range(1, len(column)):
        before = column[-1]
        column = [(4**order * b - a) / (4**order - 1) for a, b in pairwise(column)]
    return column[0], float(np.max(np.abs(column[0] - before), initial=0.0))


def _central(function: Numeric, points: Values, moves: Values, step: float) -> Values:
    up, down = (function([x + s * step * d for x, d in zip(points, moves, strict=True)]) for s in (1, -1))
    return [(np.asarray(a) - np.asarray(b)) / (2 * step) for a, b in zip(up, down, strict=True)]


def _by_complex_step(function: Numeric, points: Values, moves: Values, known: Slope) -> Slope:
    if any(np.asarray(x).dtype.kind == "c" for x in points) or any(v.dtype.kind == "c" for v in known.values):
        return known
    shifted = [x + 1j * _COMPLEX_STEP * d for x, d in zip(points, moves, strict=True)]
    try:
        found = [np.imag(v) / _COMPLEX_STEP for v in function(shifted)]
    except Exception:  # noqa: BLE001 (whatever does not take complex numbers is no place for complex steps)
        return known
    values, errors = list(known.values), list(known.errors)
    for k, (ours, other) in enumerate(zip(found, known.values, strict=True)):
        size = float(np.max(np.abs(other), initial=0.0))
        if np.max(np.abs(ours - other), initial=0.0) <= 10 * known.errors[k] + 1e-12 * size:
            values[k], errors[k] = ours, 0.0
    return Slope(values, errors)
