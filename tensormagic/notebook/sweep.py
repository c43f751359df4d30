"""A function of a few numbers, on a grid and at one point: values and slopes. It knows functions, and no widgets."""

from __future__ import annotations

import math
import time
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tensormagic.capture.tree import flatten, structure
from tensormagic.functions.batching import vmap
from tensormagic.functions.derivatives import derived, value_and_grad
from tensormagic.functions.function import Function
from tensormagic.functions.reading import is_moving, place_of, settled
from tensormagic.ir.errors import CaptureError, DifferentiationError

__all__ = ["MOST_SPANS", "Numbers", "Parameter", "Span", "Sweep", "parameter"]

MOST_SPANS = 6
_COUNTS = {1: 121, 2: 41, 3: 11, 4: 6, 5: 4, 6: 3}  # grid points along each axis
_FEWEST = 3
_MOST_SECONDS = 2.0  # that a sweep may take, as the first call tells
_MOST_ELEMENTS = 4_000_000  # of the largest input, times the points that are computed at once
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
        Its place in that parameter, where that is a vector.
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
    index: int | None
    low: float
    high: float
    steps: int
    step: float
    whole: bool

    @property
    def label(self) -> str:
        """The name, with the place in a vector."""
        return self.name if self.index is None else f"{self.name}[{self.index}]"

    def grid(self, count: int) -> np.ndarray:
        """At most ``count`` numbers from end to end; the whole ones alone, where it holds these."""
        if not self.whole:
            return np.linspace(self.low, self.high, count)
        all_of_them = np.minimum(self.low + np.arange(self.steps + 1) * self.step, self.high)
        chosen = np.linspace(0, self.steps, min(count, self.steps + 1)).round().astype(int)
        return all_of_them[chosen]


@dataclass(frozen=True)
class Parameter:
    """One argument that is moved: a number, or a vector of a few, with the ranges of its numbers and where it starts."""

    name: str
    spans: tuple[Span, ...]
    start: tuple[float, ...]

    @property
    def is_vector(self) -> bool:
        """Whether it is an array of numbers."""
        return self.spans[0].index is not None

    @property
    def whole(self) -> bool:
        """Whether it is a Python int."""
        return self.spans[0].whole

    def argument(self, numbers: Sequence[float]) -> Any:
        """What the function is called with."""
        if self.is_vector:
            return np.array(numbers, dtype=float)
        return int(numbers[0]) if self.whole else float(numbers[0])

    def stack(self, columns: Sequence[np.ndarray]) -> np.ndarray:
        """What the function is called with at several points at once."""
        if self.is_vector:
            return np.stack(columns, axis=1)
        return columns[0].astype(int) if self.whole else columns[0]


def parameter(name: str, ends: Sequence[Any], start: Any = None) -> Parameter:
    """A parameter from ``(low, high)`` or ``(low, high, step)``.

    Parameters
    ----------
    name : str
        What it is called.
    ends : sequence
        Numbers, or for a vector arrays of the ends of its numbers. Whole numbers where all three are ints.
    start : number or array, optional
        Where it starts. Default: in the middle. What lies outside starts at the nearer end. A vector also makes numbers
        in ``ends`` the same for all of its own.

    Raises
    ------
    ValueError
        For ends that are not finite or not in order, and for a step that is not positive.
    TypeError
        For ends that are no numbers.
    """
    if len(ends) not in {2, 3}:
        raise ValueError(f"{name} takes (low, high) or (low, high, step), and this has {len(ends)} parts")
    try:
        parts = [np.asarray(e, dtype=float) for e in ends]
        begin = None if start is None else np.asarray(start, dtype=float)
    except (TypeError, ValueError):
        raise TypeError(f"{name} takes numbers from low to high, and this is {ends!r}") from None
    shape = np.broadcast_shapes(*(p.shape for p in parts), () if begin is None else begin.shape)
    if len(shape) > 1 or shape == (0,):
        raise ValueError(f"{name} is a number or a vector of a few, and this has shape {shape}")
    whole = len(ends) == 3 and not shape and all(isinstance(e, int | np.integer) for e in ends)
    columns = [np.broadcast_to(p, shape).ravel() for p in parts]
    spans = tuple(
        _span(name, k if shape else None, [float(c[k]) for c in columns], whole) for k in range(len(columns[0]))
    )
    middles = [_nearest(s, (s.low + s.high) / 2) for s in spans]
    if begin is not None:
        middles = [
            min(max(v, s.low), s.high) for v, s in zip(np.broadcast_to(begin, shape).ravel(), spans, strict=True)
        ]
    return Parameter(name, spans, tuple(float(round(v) if whole else v) for v in middles))


def _span(name: str, index: int | None, ends: list[float], whole: bool) -> Span:
    low, high = ends[:2]
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise ValueError(f"{name} goes from a number to a larger one, and not from {low:g} to {high:g}")
    step = ends[2] if len(ends) == 3 else (high - low) / _STEPS
    if not (math.isfinite(step) and step > 0):
        raise ValueError(f"the step of {name} is a positive number, and not {step:g}")
    steps = max(math.ceil((high - low) / step - 1e-9), 1)
    if steps > _MOST_STEPS:
        raise ValueError(f"from {low:g} to {high:g} by {step:g}, {name} has {steps} steps; the most are {_MOST_STEPS}")
    return Span(name, index, low, high, steps, step, whole)


def _nearest(span: Span, value: float) -> float:
    """The nearest value that the slider stops at."""
    return min(span.low + round((value - span.low) / span.step) * span.step, span.high)


@dataclass(frozen=True, eq=False)
class Sweep:
    """Values on a grid, and the slopes in each direction where there are any.

    Parameters
    ----------
    axes
        The numbers along each axis.
    values
        One for each point of the grid.
    slopes
        One array like ``values`` for each axis; None where there is no derivative.
    """

    axes: tuple[np.ndarray, ...]
    values: np.ndarray
    slopes: tuple[np.ndarray, ...] | None

    def packed(self) -> bytes:
        """All numbers one after another, as little-endian float64: axes, values, slopes."""
        return b"".join(a.astype("<f8").tobytes() for a in (*self.axes, self.values, *(self.slopes or ())))


class Numbers:
    """A function of parameters that gives one real number, with its gradient.

    Parameters
    ----------
    function : Function
        What is computed; arguments that are no parameters are its own to find.
    parameters : sequence of Parameter
        What is moved.

    Raises
    ------
    TypeError
        Where the function gives something else than one real number.
    """

    def __init__(self, function: Function, parameters: Sequence[Parameter]) -> None:
        self.parameters = tuple(parameters)
        self.spans = tuple(s for p in parameters for s in p.spans)
        names = [p.name for p in parameters]

        def body(*args: Any) -> Any:
            return function(**dict(zip(names, args, strict=True)))

        given = Function(
            body, function.name, tuple(names), reads=function.reads, changes=function.changes, math=function.math
        )
        self._plain = derived(given, "live", body)  # that it is constant somewhere is to be seen, not to be warned of
        self._name = function.name
        self._moving = [k for k, p in enumerate(parameters) if not p.whole]
        self._both = value_and_grad(self._plain, tuple(self._moving)) if self._moving else None
        self.has_slopes = False
        self.why = "" if self._moving else "whole numbers have no slope"
        self._seconds = 0.0
        self._begin()

    def _begin(self) -> None:
        """The first call: what the function gives, whether it has slopes, and how long it takes."""
        start = self.start
        self._refuse_stores()
        value = self._plain(*self._arguments(start))
        shown = np.asarray(value)
        if shown.shape != () or shown.dtype.kind not in "biuf":
            what = (
                f"{shown.dtype}[{', '.join(map(str, shown.shape))}]" if shown.dtype != object else type(value).__name__
            )
            raise TypeError(
                f"a live view shows a function that gives one real number, and {self._name} gives {what}; "
                "np.sum(...), or an index, makes one number of it"
            )
        if self._both is not None and len(self._moving) == len(self.parameters):
            try:
                self._both(*self._arguments(start))
                self.has_slopes = True
            except DifferentiationError as error:
                self.why = str(error.args[0]) if error.args else "there is no derivative"
        elif self._both is not None:
            self.why = "whole numbers have no slope"
        begin = time.perf_counter()
        self.at(start)
        self._seconds = time.perf_counter() - begin

    def _refuse_stores(self) -> None:
        """Refuse what would change something else at every move: stores, and draws from the notebook's generators."""
        given, _ = self._plain.kind(tuple(self._arguments(self.start)), {})
        stores = self._plain.specialise(given)[0].stores
        if stores.inputs:
            names = ", ".join(stores.names[k] if k < len(stores.names) else "an array" for k in stores.inputs)
            raise CaptureError(
                f"{self._name} changes {names}, and a live view would do so at every move",
                "Work on a copy, or on a generator made inside.",
            )

    @property
    def start(self) -> tuple[float, ...]:
        """Where the parameters start."""
        return tuple(v for p in self.parameters for v in p.start)

    def _arguments(self, point: Sequence[float]) -> list[Any]:
        rest = iter(point)
        return [p.argument([next(rest) for _ in p.spans]) for p in self.parameters]

    def at(self, point: Sequence[float]) -> tuple[float, tuple[float, ...] | None]:
        """The value at a point, one number for each span, and the gradient."""
        arguments = self._arguments(point)
        if not self.has_slopes or self._both is None:
            return float(self._plain(*arguments)), None
        value, gradients = self._both(*arguments)
        return float(value), tuple(float(v) for g in gradients for v in np.ravel(g))

    def sweep(self) -> Sweep:
        """Values and slopes on a grid, by one call of the batched function where that can be had."""
        count = _COUNTS[len(self.spans)]
        while count > _FEWEST and count ** len(self.spans) * self._seconds > _MOST_SECONDS:
            count -= max(count // 8, 1)
        axes = tuple(s.grid(count) for s in self.spans)
        points = np.stack([m.ravel() for m in np.meshgrid(*axes, indexing="ij")])
        table = self._table(points)
        shape = tuple(len(a) for a in axes)
        slopes = tuple(row.reshape(shape) for row in table[1:]) if self.has_slopes else None
        return Sweep(axes, table[0].reshape(shape), slopes)

    def _table(self, points: np.ndarray) -> np.ndarray:
        """A row of values, then one of slopes for each span."""
        most = max((np.size(v) for v in self._held()), default=1)
        chunk = max(_MOST_ELEMENTS // max(most, 1), 1)
        if not any(p.whole for p in self.parameters):
            try:
                cuts = range(0, points.shape[1], chunk)
                return np.concatenate([self._batch(points[:, k : k + chunk]) for k in cuts], axis=1)
            except Exception:  # noqa: BLE001, S110 (what cannot be batched, or fails at a point, is computed one by one)
                pass
        return np.stack([self._single(point) for point in points.T], axis=1)

    def _batch(self, points: np.ndarray) -> np.ndarray:
        rest = iter(points)
        stacks = [p.stack([next(rest) for _ in p.spans]) for p in self.parameters]
        size = points.shape[1]
        if not self.has_slopes or self._both is None:
            return np.broadcast_to(np.asarray(vmap(self._plain)(*stacks), dtype=float), (1, size))
        values, gradients = vmap(self._both)(*stacks)
        rows = [np.asarray(g, dtype=float).reshape(size, -1).T for g in gradients]
        return np.concatenate([np.asarray(values, dtype=float).reshape(1, size), *rows])

    def _single(self, point: np.ndarray) -> np.ndarray:
        rows = 1 + len(self.spans) * self.has_slopes
        try:
            value, gradient = self.at(point.tolist())
        except Exception:  # noqa: BLE001 (there is no value at this point: a gap; where the slider stands, it is told)
            return np.full(rows, np.nan)
        return np.array([value, *(gradient or ())])

    # what it reads ----------------------------------------------------------------------------------------------------

    def _reads(self) -> Mapping[tuple[str, int], tuple[str, Mapping[str, Any]]]:
        functions = [self._plain, *([self._both] if self._both is not None else [])]
        return {place_of(read): read for f in functions for read in f.reads}

    def _held(self) -> list[Any]:
        return [space[name] for name, space in self._reads().values() if name in space and is_moving(space[name])]

    def inputs(self) -> dict[tuple[str, int], Any]:
        """What identifies the present values of the names that the function reads beside its parameters."""
        return {place: _mark(space[name]) if name in space else None for place, (name, space) in self._reads().items()}


class _Same:
    """An object as itself: equal to nothing else, and kept, so that nothing else gets its place."""

    def __init__(self, value: Any) -> None:
        self._value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and self._value is other._value

    def __hash__(self) -> int:
        return id(self._value)


def _mark(value: Any) -> Any:
    """What changes when a value does, by another object or by stores into it."""
    if isinstance(value, np.ndarray):
        part = value.reshape(-1)[:: max(value.size // _MOST_ELEMENTS, 1)]  # enough of what is very large
        return value.dtype.str, value.shape, zlib.crc32(np.ascontiguousarray(part).tobytes())
    if isinstance(value, int | float | complex | str | np.generic):
        return type(value), repr(value)  # nan is equal to nan here
    if isinstance(value, tuple | list | dict):
        leaves, _ = flatten(value)
        return structure(value), [_mark(leaf) for leaf in leaves]
    return _Same(value if settled(value) else object())  # what can change inside may have changed
