"""A function of a few numbers, at points of a grid or of a star, and at one point: values and slopes. It knows no widgets."""

from __future__ import annotations

import math
import time
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any

import numpy as np

from tensormagic.capture.tree import flatten, structure
from tensormagic.capture.values.value import Tensor
from tensormagic.functions.batching import vmap
from tensormagic.functions.calls.function import Function
from tensormagic.functions.gradients.derivatives import derived, value_and_grad
from tensormagic.functions.gradients.jacobians import jacobian
from tensormagic.functions.reads.name_reads import place_of
from tensormagic.functions.reads.reading import is_moving
from tensormagic.ir.errors import CaptureError, DifferentiationError
from tensormagic.notebook.live.ranges import MOST_SPANS, Parameter

_COUNTS = {1: 121, 2: 41}  # grid points along each axis
_RAYS = 33  # points along each axis of a star
_SLICE = 31  # points along each axis of a slice
_FEWEST = 3
_MOST_SECONDS = 2.0  # that a sweep may take, as the first calls tell
_CALLS, _FAST, _MOST_TIMING = 5, 5e-4, 0.2  # first calls, the seconds from which one is enough, and of all but the last
_MOST_NUMBERS = 30_000  # in a star of numbers, which goes to the page as float64
_MOST_PARTS = 60_000  # in a star of arrays, which goes as float32
_MOST_ELEMENTS = 4_000_000  # of the largest input, times the points that are computed at once
_LARGEST = 4096  # elements of an array that is shown
_MOST_SLOPES = 20_000  # elements of its Jacobian
_STEPS_PER_RANGE = 10  # of a descent where it is steepest


@dataclass(frozen=True, eq=False)
class Sweep:
    """Values on a grid, with the slopes in each direction.

    Parameters
    ----------
    axes
        The numbers along each axis.
    values
        One for each point of the grid.
    slopes
        One array like ``values`` for each axis; None if there is no derivative.
    """

    axes: tuple[np.ndarray, ...]
    values: np.ndarray
    slopes: tuple[np.ndarray, ...] | None

    kind = "grid"

    def packed(self) -> bytes:
        """Return all numbers one after another, as little-endian float64: axes, values, slopes."""
        return b"".join(a.astype("<f8").tobytes() for a in (*self.axes, self.values, *(self.slopes or ())))

    def steepest(self) -> list[float]:
        """Return the largest slope along each axis, without its sign."""
        return [largest(s) for s in self.slopes or ()]


@dataclass(frozen=True, eq=False)
class Star:
    """Values along a line in each direction through one point, with the gradients there.

    Parameters
    ----------
    centre
        The point.
    axes
        The numbers along each axis, the centre's among them.
    values
        The elements of the value for each point of each axis, one axis after another.
    slopes
        The slope in each direction for each of these points; None if there is no derivative, and for arrays.
    """

    centre: tuple[float, ...]
    axes: tuple[np.ndarray, ...]
    values: np.ndarray
    slopes: np.ndarray | None

    kind = "star"

    def packed(self) -> bytes:
        """Return all numbers one after another: the centre, axes, values, slopes. Little-endian float64, float32 for arrays."""
        kind = "<f8" if self.values.shape[1] == 1 else "<f4"
        parts = [np.array(self.centre), *self.axes, self.values, *([] if self.slopes is None else [self.slopes])]
        return b"".join(a.astype(kind).tobytes() for a in parts)

    def steepest(self) -> list[float]:
        """Return the largest slope along each axis, without its sign."""
        return [] if self.slopes is None else [largest(column) for column in self.slopes.T]


def largest(values: np.ndarray) -> float:
    """Return the largest finite magnitude; 1 where there is none."""
    found = np.abs(values[np.isfinite(values)])
    return float(found.max()) if found.size and found.max() > 0 else 1.0


_NOTHING = Function(lambda *given: None, "nothing")


class Numbers:
    """A function of parameters whose value is one real number, or an array of them, with its gradient.

    Parameters
    ----------
    function : Function
        The function; it finds the arguments that are no parameters itself.
    parameters : sequence of Parameter
        The arguments that move.

    Raises
    ------
    TypeError
        If the function returns something else than real numbers.
    ValueError
        If there are more numbers than a view can move.
    """

    def by_name(self, rows: np.ndarray) -> dict[str, np.ndarray]:
        """Return points, one per row, as an array for each parameter."""
        found: dict[str, np.ndarray] = {}
        begin = 0
        for p in self.parameters:
            found[p.name] = rows[:, begin : begin + len(p.spans)].reshape(-1, *p.shape)
            begin += len(p.spans)
        return found

    def __init__(self, function: Function, parameters: Sequence[Parameter]) -> None:
        self.parameters = tuple(parameters)
        self.spans = tuple(s for p in parameters for s in p.spans)
        if len(self.spans) > MOST_SPANS:
            raise ValueError(f"a live view moves at most {MOST_SPANS} numbers, and not {len(self.spans)}")
        names = [p.name for p in parameters]

        def body(*args: Any) -> Any:
            return function(**dict(zip(names, args, strict=True)))

        given = Function(
            body, function.name, tuple(names), reads=function.reads, roots=function.roots, math=function.math
        )
        self._plain = derived(given, "live", body)  # that it is constant somewhere is to be seen, not to be warned of
        self._name = function.name
        self._both: Function | None = None
        self._batched: dict[bool, Function] = {}
        self._seconds = 0.0
        self._each: float | None = None  # seconds for a point of a sweep
        self._most = _MOST_SECONDS
        self.shape: tuple[int, ...] = ()
        self.has_slopes = False
        self.why = ""
        self.begin(self.start)

    def begin(self, point: Sequence[float]) -> None:
        """Make the first call, which tells the shape of the value, whether it has slopes, and how long a call takes."""
        arguments = self._arguments(point)
        self._refuse_stores(arguments)
        self.shape = self._shape_of(self._plain(*arguments))
        self._batched = {}
        self.has_slopes, self.why = False, self._slopes_refused()
        if not self.why:
            self._both = self._with_slopes()
            try:
                self._both(*arguments)
                self.has_slopes = True
            except DifferentiationError as error:
                self.why = str(error.args[0]) if error.args else "there is no derivative"
        self._seconds, self._each = self._time(point), None

    def _time(self, point: Sequence[float]) -> float:
        """Return the seconds of a call: the least of several where the first is neither fast nor slow, as other work may delay it."""
        times: list[float] = []
        while not times or (len(times) < _CALLS and min(times) > _FAST and sum(times) < _MOST_TIMING):
            start = time.perf_counter()
            self.at(point)
            times.append(time.perf_counter() - start)
        return min(times)

    def forget(self) -> None:
        """Release the programs and derivatives; nothing can be computed afterwards."""
        for function in (self._plain, self._both, *self._batched.values()):
            if function is not None:
                function.forget()
        self._both, self._batched, self._plain = None, {}, _NOTHING

    def _shape_of(self, value: Any) -> tuple[int, ...]:
        """Return the shape of what the function gives, where that can be shown."""
        shown = (
            np.asarray(value) if isinstance(value, np.ndarray | np.number | np.bool_ | complex | float | int) else None
        )
        if shown is None or shown.dtype.kind not in "biuf" or shown.ndim > 2:
            what = type(value).__name__ if shown is None else f"{shown.dtype}[{', '.join(map(str, shown.shape))}]"
            raise TypeError(
                f"a live view shows a real number, vector or matrix, but {self._name} gives {what}; "
                "reduce it with np.sum(...), or select a part"
            )
        if not 0 < shown.size <= _LARGEST:
            raise TypeError(f"a live view shows 1 to {_LARGEST} elements, but {self._name} gives {shown.size}")
        return shown.shape

    def _slopes_refused(self) -> str:
        if any(p.whole for p in self.parameters):
            return "whole numbers have no slope"
        if math.prod(self.shape) * len(self.spans) > _MOST_SLOPES:
            return f"there would be {math.prod(self.shape) * len(self.spans)} numbers"
        return ""

    def _with_slopes(self) -> Function:
        """Return the function that gives the value and its slopes in each parameter."""
        every = tuple(range(len(self.parameters)))
        if not self.shape:
            return value_and_grad(self._plain, every)
        slopes = jacobian(self._plain, every)

        def body(*args: Any) -> Any:
            return self._plain.body(*args), slopes.body(*args)

        return derived(self._plain, "slopes", body)

    def _refuse_stores(self, arguments: Sequence[Any]) -> None:
        """Refuse what would change something else at every move: stores, and draws from the notebook's generators."""
        given, _ = self._plain.kind(tuple(arguments), {})
        stores = self._plain.specialise(given)[0].stores
        if stores.inputs:
            names = ", ".join(stores.names[k] if k < len(stores.names) else "an array" for k in stores.inputs)
            raise CaptureError(
                f"{self._name} changes {names}, and a live view would do so at every move",
                "Work on a copy, or make the generator inside the function.",
            )

    @property
    def start(self) -> tuple[float, ...]:
        """Return where the parameters start."""
        return tuple(v for p in self.parameters for v in p.start)

    def _arguments(self, point: Sequence[float]) -> list[Any]:
        rest = iter(point)
        return [p.argument([next(rest) for _ in p.spans]) for p in self.parameters]

    def at(self, point: Sequence[float]) -> tuple[np.ndarray, np.ndarray | None]:
        """Return the value at a point, one number for each span, and the slope of each of its elements along each span."""
        arguments = self._arguments(point)
        if not self.has_slopes or self._both is None:
            value, slopes = self._plain(*arguments), None
        else:
            value, found = self._both(*arguments)
            parts = [np.asarray(g, dtype=float).reshape(*self.shape, -1) for g in found]
            slopes = np.moveaxis(np.concatenate(parts, axis=-1), -1, 0)
        if np.shape(value) != self.shape:
            raise ValueError(
                f"the value has shape {np.shape(value)} here, and {self.shape} where the view starts; "
                "a live view shows arrays of one shape"
            )
        return np.array(value, dtype=float), slopes

    # many points ------------------------------------------------------------------------------------------------------

    def sweep(self, centre: Sequence[float], seconds: float = _MOST_SECONDS) -> Sweep | Star:
        """Return values and slopes on a grid; for more than two numbers, and for arrays, on a star through ``centre``.

        It takes about ``seconds`` at most, as estimated from the first call and earlier sweeps.
        """
        self._most = seconds
        if len(self.spans) <= 2 and not self.shape:
            return self._grid(_COUNTS[len(self.spans)])
        return self._star(tuple(centre))

    def slice(self, along: tuple[int, int], centre: Sequence[float]) -> Sweep:
        """Return values and slopes on a grid in the plane of two numbers, with the others as in ``centre``."""
        return self._grid(_SLICE, along, centre)

    def _affordable(self, count: int, points: Callable[[int], int]) -> int:
        """Return at most ``count``, the number of points along an axis; less where all ``points`` of them would take too long."""
        each = self._seconds if self._each is None else self._each
        while count > _FEWEST and points(count) * each > self._most:
            count -= max(count // 8, 1)
        return count

    def _grid(self, count: int, along: Sequence[int] = (), centre: Sequence[float] = ()) -> Sweep:
        places = list(along) or list(range(len(self.spans)))
        count = self._affordable(count, lambda n: n ** len(places))
        axes = tuple(self.spans[k].grid(count) for k in places)
        mesh = np.stack([m.ravel() for m in np.meshgrid(*axes, indexing="ij")])
        points = np.repeat(np.array(centre or self.start)[:, None], mesh.shape[1], axis=1)
        points[places] = mesh
        values, slopes = self._table(points)
        shape = tuple(len(a) for a in axes)
        found = None if slopes is None else tuple(slopes[:, k, 0].reshape(shape) for k in places)
        return Sweep(axes, values.reshape(shape), found)

    def _star(self, centre: tuple[float, ...]) -> Star:
        spans, size = len(self.spans), math.prod(self.shape)
        each = spans * (size if self.shape else 1 + spans)  # numbers for one more point along all axes
        most = _MOST_PARTS if self.shape else _MOST_NUMBERS
        count = self._affordable(min(_RAYS, max(most // each, _FEWEST)), lambda n: n * spans)
        axes = tuple(np.union1d(s.grid(count), [c]) for s, c in zip(self.spans, centre, strict=True))
        points = np.repeat(np.array(centre)[:, None], sum(map(len, axes)), axis=1)
        begin = 0
        for k, axis in enumerate(axes):
            points[k, begin : begin + len(axis)] = axis
            begin += len(axis)
        values, slopes = self._table(points, slopes=not self.shape)
        return Star(centre, axes, values, None if slopes is None else slopes[:, :, 0])

    def _table(self, points: np.ndarray, *, slopes: bool = True) -> tuple[np.ndarray, np.ndarray | None]:
        """Return the elements of the value at each point, and their slopes along each span."""
        begin, slopes = time.perf_counter(), slopes and self.has_slopes
        most = max((np.size(v) for v in self._held()), default=1)
        chunk = max(_MOST_ELEMENTS // max(most, math.prod(self.shape) * len(self.spans)), 1)
        rows: list[tuple[np.ndarray, np.ndarray | None]] = []
        if not any(p.whole for p in self.parameters):
            try:
                rows = [self._batch(points[:, k : k + chunk], slopes=slopes) for k in range(0, points.shape[1], chunk)]
            except Exception:  # noqa: BLE001 (what cannot be batched, or fails at a point, is computed one by one)
                rows = []
        rows = rows or [self._single(point, slopes=slopes) for point in points.T]
        values = np.concatenate([v for v, _ in rows])
        self._each = (time.perf_counter() - begin) / points.shape[1]
        return values, np.concatenate([s for _, s in rows if s is not None]) if slopes else None

    def _batch(self, points: np.ndarray, *, slopes: bool) -> tuple[np.ndarray, np.ndarray | None]:
        rest = iter(points)
        stacks = [p.stack([next(rest) for _ in p.spans]) for p in self.parameters]
        count, size = points.shape[1], math.prod(self.shape)
        both = self._both if slopes else None
        if slopes not in self._batched:
            self._batched[slopes] = vmap(self._plain if both is None else both)
        made = self._batched[slopes](*stacks)
        values, found = (made, None) if both is None else made
        values = np.broadcast_to(np.asarray(values, dtype=float).reshape(-1, size), (count, size))
        if found is None:
            return values, None
        parts = [np.asarray(g, dtype=float).reshape(count, size, -1) for g in found]
        return values, np.moveaxis(np.concatenate(parts, axis=-1), -1, 1)

    def _single(self, point: np.ndarray, *, slopes: bool) -> tuple[np.ndarray, np.ndarray | None]:
        size, spans = math.prod(self.shape), len(self.spans)
        try:
            value, found = self.at(point.tolist())
        except Exception:  # noqa: BLE001 (there is no value at this point: a gap; where the slider stands, it is told)
            return np.full((1, size), np.nan), np.full((1, spans, size), np.nan)
        return value.reshape(1, size), None if found is None or not slopes else found.reshape(1, spans, size)

    # descent ----------------------------------------------------------------------------------------------------------

    def rate(self, sweep: Sweep | Star) -> float:
        """Return a rate of descent: where it is steepest, a step is a tenth of a range. One digit."""
        steepest = sweep.steepest()
        if not steepest or self.shape:
            return 0.0
        lengths = [(s.high - s.low) / slope for s, slope in zip(self.spans, steepest, strict=True)]
        found = min(lengths) / _STEPS_PER_RANGE
        return float(f"{found:.0e}") if 0 < found < math.inf else 1.0

    def descent(self, point: Sequence[float], rate: float, steps: int) -> np.ndarray:
        """Return steps against the gradient, within the ranges: a row for each point, with its value and its gradient."""
        low, high = np.array([s.low for s in self.spans]), np.array([s.high for s in self.spans])
        end = time.perf_counter() + _MOST_SECONDS
        here = np.array(point, dtype=float)
        rows: list[np.ndarray] = []
        for _ in range(steps + 1):
            value, slopes = self.at(here.tolist())
            if slopes is None or not (np.isfinite(value).all() and np.isfinite(slopes).all()):
                break
            rows.append(np.concatenate([here, value.reshape(1), slopes.ravel()]))
            there = np.clip(here - rate * slopes.ravel(), low, high)
            if np.array_equal(there, here) or time.perf_counter() > end:
                break
            here = there
        return np.array(rows).reshape(len(rows), 2 * len(self.spans) + 1)

    # what it reads ----------------------------------------------------------------------------------------------------

    def _reads(self) -> Mapping[tuple[str, int], tuple[str, Mapping[str, Any]]]:
        functions = [self._plain, *([self._both] if self._both is not None else [])]
        return {place_of(read): read for f in functions for read in f.reads}

    def _held(self) -> list[Any]:
        return [space[name] for name, space in self._reads().values() if name in space and is_moving(space[name])]

    def inputs(self) -> dict[tuple[str, int], Any]:
        """Return keys that identify the present values of the names that the function reads besides its parameters."""
        return {place: mark(space[name]) if name in space else None for place, (name, space) in self._reads().items()}


class _Same:
    """An object as itself: equal to nothing else, and kept, so that nothing else gets its place."""

    def __init__(self, value: Any) -> None:
        self._value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and self._value is other._value

    def __hash__(self) -> int:
        return id(self._value)


_SETTLED = (
    bool,
    bytes,
    range,
    type,
    np.dtype,
    np.ufunc,
    ModuleType,
    FunctionType,
    BuiltinFunctionType,
    type(None),
    type(...),
)


def mark(value: Any) -> Any:
    """Return a key that changes when a value does, by another object or by stores into it."""
    if isinstance(value, np.ndarray):
        part = value.reshape(-1)[:: max(value.size // _MOST_ELEMENTS, 1)]  # a sample of a very large value
        return value.dtype.str, value.shape, zlib.crc32(np.ascontiguousarray(part).tobytes())
    if isinstance(value, int | float | complex | str | np.generic):
        return type(value), repr(value)  # nan is equal to nan here
    if isinstance(value, Tensor):
        return _Same(value.node)  # which a store into it changes
    if isinstance(value, tuple | list | dict):
        leaves, _ = flatten(value)
        return structure(value), [mark(leaf) for leaf in leaves]
    return _Same(value if isinstance(value, _SETTLED) else object())  # what can change inside may have changed
