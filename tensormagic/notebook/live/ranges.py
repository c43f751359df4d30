"""What a live view moves: numbers, small vectors and matrices, each with its range and where it starts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

MOST_SPANS = 64  # of all parameters of a view
_STEPS = 200  # of a slider without a step of its own
_MOST_STEPS = 100_000


@dataclass(frozen=True)
class Span:
    """The range of one slider: both ends belong to it.

    Parameters
    ----------
    name
        The parameter that it is a part of.
    index
        Its place in that parameter, where that is a vector or a matrix.
    low, high
        The ends.
    steps
        How many steps there are from the one to the other; the last may be shorter.
    step
        The length of the others.
    whole
        Whether it holds whole numbers.
    """

    name: str
    index: tuple[int, ...] | None
    low: float
    high: float
    steps: int
    step: float
    whole: bool

    @property
    def label(self) -> str:
        """Return the name, with the place in a vector or a matrix."""
        return self.name if self.index is None else f"{self.name}[{', '.join(map(str, self.index))}]"

    def grid(self, count: int) -> np.ndarray:
        """At most ``count`` numbers from end to end; the whole ones alone, where it holds these."""
        if not self.whole:
            return np.linspace(self.low, self.high, count)
        all_of_them = np.minimum(self.low + np.arange(self.steps + 1) * self.step, self.high)
        chosen = np.linspace(0, self.steps, min(count, self.steps + 1)).round().astype(int)
        return all_of_them[chosen]


@dataclass(frozen=True)
class Parameter:
    """One argument that is moved: a number, a vector or a matrix, with the ranges of its numbers and where it starts."""

    name: str
    shape: tuple[int, ...]
    spans: tuple[Span, ...]
    start: tuple[float, ...]

    @property
    def whole(self) -> bool:
        """Return whether it is a Python int."""
        return self.spans[0].whole

    def argument(self, numbers: Sequence[float]) -> Any:
        """Return the argument of the function."""
        if self.shape:
            return np.array(numbers, dtype=float).reshape(self.shape)
        return int(numbers[0]) if self.whole else float(numbers[0])

    def inside(self, numbers: Sequence[float]) -> list[float]:
        """Return the numbers, each at the nearer end of its range where it is outside of that."""
        return [min(max(v, s.low), s.high) for v, s in zip(numbers, self.spans, strict=True)]

    def stack(self, columns: Sequence[np.ndarray]) -> np.ndarray:
        """Return the arguments of the function at several points at once."""
        if self.shape:
            return np.stack(columns, axis=1).reshape(-1, *self.shape)
        return columns[0].astype(int) if self.whole else columns[0]


def parameter(name: str, ends: Sequence[Any], start: Any = None) -> Parameter:
    """Return a parameter from ``(low, high)`` or ``(low, high, step)``.

    Parameters
    ----------
    name : str
        Its name.
    ends : sequence
        Numbers; for a vector or a matrix, arrays of the ends of its elements. The parameter is integral if all three
        are ints.
    start : number or array, optional
        Where it starts; clipped to the ends. Default: in the middle. If this is an array, numbers in ``ends`` hold for
        each of its elements.

    Raises
    ------
    ValueError
        If the ends are not finite or not in order, or the step is not positive.
    TypeError
        If the ends are no numbers.
    """
    if len(ends) not in {2, 3}:
        raise ValueError(f"{name} takes (low, high) or (low, high, step), not {len(ends)} parts")
    try:
        parts = [np.asarray(e, dtype=float) for e in ends]
        begin = None if start is None else np.asarray(start, dtype=float)
    except (TypeError, ValueError):
        raise TypeError(f"{name} takes numbers from low to high, not {ends!r}") from None
    try:
        shape = np.broadcast_shapes(*(p.shape for p in parts), () if begin is None else begin.shape)
    except ValueError:
        raise ValueError(f"the ends of {name} and its start have shapes that do not fit") from None
    if len(shape) > 2 or 0 in shape:
        raise ValueError(f"{name} must be a number, a small vector or a small matrix, but has shape {shape}")
    if math.prod(shape) > MOST_SPANS:
        raise ValueError(f"a live view moves at most {MOST_SPANS} numbers, but {name} has {math.prod(shape)}")
    whole = len(ends) == 3 and not shape and all(isinstance(e, int | np.integer) for e in ends)
    columns = [np.broadcast_to(p, shape).ravel() for p in parts]
    places = list(np.ndindex(*shape)) if shape else [None]
    spans = tuple(_span(name, place, [float(c[k]) for c in columns], whole) for k, place in enumerate(places))
    middles = [_nearest(s, (s.low + s.high) / 2) for s in spans]
    if begin is not None:
        numbers = np.broadcast_to(begin, shape).ravel()
        if not np.isfinite(numbers).all():
            raise ValueError(f"{name} must start at a number, not at {numbers[~np.isfinite(numbers)][0]}")
        middles = [min(max(float(v), s.low), s.high) for v, s in zip(numbers, spans, strict=True)]
    return Parameter(name, shape, spans, tuple(float(round(v) if whole else v) for v in middles))


def widened(ends: Sequence[Any], start: Any) -> Sequence[Any]:
    """Return the ends of a range, further apart where a number begins outside; by whole steps where there is a step."""
    number = isinstance(start, int | float | np.integer | np.floating) and math.isfinite(start)
    plain = len(ends) in {2, 3} and all(isinstance(e, int | float) and math.isfinite(e) for e in ends)
    if not number or not plain or ends[0] >= ends[1] or ends[0] <= start <= ends[1]:
        return ends
    low, high, *rest = ends
    if rest and not rest[0] > 0:
        return ends
    if rest:
        step = rest[0]
        low -= step * max(math.ceil((low - start) / step), 0)
        high += step * max(math.ceil((start - high) / step), 0)
        return (low, high, step)
    return (min(low, start), max(high, start))


def _span(name: str, index: tuple[int, ...] | None, ends: list[float], whole: bool) -> Span:
    low, high = ends[:2]
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise ValueError(f"{name} must go from a smaller to a larger number, not from {low:g} to {high:g}")
    step = ends[2] if len(ends) == 3 else (high - low) / _STEPS
    if not (math.isfinite(step) and step > 0):
        raise ValueError(f"the step of {name} must be a positive number, not {step:g}")
    steps = max(math.ceil((high - low) / step - 1e-9), 1)
    if steps > _MOST_STEPS:
        raise ValueError(f"from {low:g} to {high:g} by {step:g}, {name} has {steps} steps, but at most {_MOST_STEPS}")
    return Span(name, index, low, high, steps, step, whole)


def _nearest(span: Span, value: float) -> float:
    """Return the nearest value that the slider stops at."""
    return min(span.low + round((value - span.low) / span.step) * span.step, span.high)
