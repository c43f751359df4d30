"""``tm.check_grads``: derivatives compared with finite differences of the values, in both modes and to any order."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from tensormagic.capture.tree import flatten
from tensormagic.functions.calls.callables import of_callable
from tensormagic.functions.calls.function import Function
from tensormagic.functions.gradients.derivatives import jvp
from tensormagic.functions.gradients.disagreement import disagreement, near, paired
from tensormagic.functions.gradients.finite_differences import Slope, longer, longest, slope
from tensormagic.functions.gradients.linear import vjp
from tensormagic.functions.gradients.objects import Part, is_object, standing_in, taken_apart
from tensormagic.functions.tracing import traced_over
from tensormagic.ir.errors import DerivativeCheckError, DifferentiationError

_MODES = {"forward": "forward", "fwd": "forward", "reverse": "reverse", "rev": "reverse"}
_RTOL = 1e-6


def check_grads(
    fun: Any,
    args: Any,
    order: int = 1,
    modes: str | Sequence[str] = ("forward", "reverse"),
    *,
    rtol: float = _RTOL,
    seed: int = 0,
) -> None:
    """Check the derivatives of a function at a point against finite differences of its values, along random directions.

    The first order is checked against extrapolated differences of the plain function in NumPy's longest floats, or a complex
    step if that agrees; each further order against finite differences of the order before it.

    Parameters
    ----------
    fun
        A function of arrays, or of containers and objects that hold arrays, or a cell's NAME.
    args
        Its arguments, in a tuple; integers and other values without a derivative are held fixed.
    order
        The highest order of derivatives.
    modes
        ``"forward"`` and ``"reverse"`` (or ``"fwd"`` and ``"rev"``): how each order is taken.
    rtol
        The largest error allowed, relative to the largest element.
    seed
        Seed of the random directions.

    Raises
    ------
    DerivativeCheckError
        If they differ; the message names the mode, the order, and the operation and line that disagree.

    References
    ----------
    The complex step: W. Squire and G. Trapp, "Using complex variables to estimate derivatives of real functions", SIAM Review 40
    (1998), 110-112.

    Examples
    --------
    >>> import numpy as np
    >>> check_grads(lambda x: np.sin(x) * x, (np.array([0.3, 1.2]),), order=2)
    """
    given = tuple(args) if isinstance(args, tuple) else (args,)
    wanted = [_mode(m) for m in ([modes] if isinstance(modes, str) else modes)]
    if not _variables(given):
        raise DifferentiationError(
            "there is nothing to check: no argument is a float, or an array of floats",
            "Convert it: astype(float), or write 2.0 for 2.",
        )
    check = _Check(wanted, rtol, np.random.default_rng(seed))
    check.all_of(_Level(fun, given, _plain(fun)), order, ())


def _mode(name: str) -> str:
    if name not in _MODES:
        raise DifferentiationError(f"there is no mode {name!r}: modes are 'forward' and 'reverse'")
    return _MODES[name]


def _plain(fun: Any) -> Callable[..., Any] | None:
    """Return the function as Python and NumPy run it, or None if there is none."""
    return None if isinstance(fun, Function) or not callable(fun) else fun


def _is_float(value: Any) -> bool:
    return isinstance(value, float | complex | np.ndarray | np.inexact) and np.asarray(value).dtype.kind in "fc"


def _variables(args: Any) -> list[Any]:
    """Return the variables: floats and arrays of floats among the arguments, and those in objects."""
    leaves = flatten(args)[0]
    inside = {part.key: part for v in leaves if is_object(v) for part in taken_apart(v, type(v).__name__).parts}
    return [*filter(_is_float, leaves), *inside.values()]


@dataclass(frozen=True)
class _Level:
    """A function at a point, and the same function without capture."""

    fun: Any
    args: tuple[Any, ...]
    plain: Callable[..., Any] | None = None

    @property
    def points(self) -> list[Any]:
        """The leaves with derivatives, in double precision."""
        return [_double(v.value if isinstance(v, Part) else v) for v in _variables(self.args)]

    @contextmanager
    def arranged(self, moved: Sequence[Any]) -> Generator[tuple[Any, ...]]:
        """Yield the arguments with other values in the places of those with derivatives, in objects too."""
        leaves, build = flatten(self.args)
        every = list(zip(_variables(self.args), moved, strict=True))
        rest = iter([v for variable, v in every if not isinstance(variable, Part)])
        with standing_in([(variable, v) for variable, v in every if isinstance(variable, Part)]):
            yield build(iter([next(rest) if _is_float(v) else v for v in leaves]))

    def of_floats(self, *moved: Any) -> Any:
        """Return the function's result, as a function of the variables alone."""
        with self.arranged(moved) as args:
            return of_callable(self.fun).body(*args)

    def by_plain(self, moved: Sequence[Any]) -> list[Any]:
        """Return the leaves of the result with derivatives, as Python and NumPy compute them."""
        if self.plain is None:
            raise TypeError
        with self.arranged(moved) as args:
            return _floats(self.plain(*args))

    @property
    def captured(self) -> Function:
        """The function of the variables alone, as a captured function."""
        own = of_callable(self.fun)
        return Function(self.of_floats, own.name, reads=own.reads, math=own.math)

    def numeric(self, values: list[Any]) -> list[Any]:
        """Return the leaves of the result with derivatives, by the captured function."""
        return _floats(self.captured(*values))

    def exact(self, values: list[Any]) -> list[Any]:
        """Return the leaves of the result by plain NumPy, in the precision of ``values``."""
        found = self.by_plain(values)
        if any(np.asarray(v).dtype not in {longest(np.dtype("d")), longest(np.dtype("D"))} for v in found):
            raise TypeError
        return found

    def reordered(self) -> bool:
        """Return whether NumPy orders elements differently in long floats, as partitioning may."""
        if self.plain is None:
            return False
        short, long = (self.by_plain(v) for v in (self.points, longer(self.points)))
        return any(_is_reordered(*pair) for pair in zip(short, long, strict=True))


def _is_reordered(one: Any, other: Any) -> bool:
    """Return whether two arrays have the same elements, and not in the same places."""
    if one.shape != other.shape or not one.size or np.allclose(one, other, 1e-6, 0.0, equal_nan=True):
        return False
    return np.allclose(np.sort(one, axis=None), np.sort(other, axis=None), 1e-6, 0.0, equal_nan=True)


def _double(value: Any) -> Any:
    array = np.asarray(value)
    kind = np.complex128 if array.dtype.kind == "c" else np.float64
    return array.astype(kind) if isinstance(value, np.ndarray) else kind(value)


def _floats(tree: Any) -> list[Any]:
    return [np.asarray(v) for v in flatten(tree)[0] if np.asarray(v).dtype.kind in "fc"]


class _Check:
    """Checks one function and its derivatives."""

    def __init__(self, modes: Sequence[str], rtol: float, random: np.random.Generator) -> None:
        self.modes, self.rtol, self.random = modes, rtol, random

    def directions(self, values: Sequence[Any]) -> list[Any]:
        """Return random directions of a length of about 1."""
        found: list[Any] = []
        for v in values:
            array = np.asarray(v)
            move = self.random.normal(size=array.shape)
            if array.dtype.kind == "c":
                move = move + 1j * self.random.normal(size=array.shape)
            scaled = np.asarray(move / max(1.0, np.sqrt(array.size)))
            found.append(scaled if array.shape else scaled[()])
        return found

    def all_of(self, level: _Level, order: int, before: tuple[str, ...]) -> None:
        """Check one level, and the derivatives of it by each mode."""
        points = level.points
        moves = self.directions(points)
        expected = _slope(level, points, moves)
        function = level.captured
        weights = self.directions(expected.values)
        for mode in self.modes:
            if mode == "forward":
                self._forward(level, function, points, moves, expected, before)
            else:
                self._reverse(level, function, points, moves, expected, weights, before)
        if order <= 1:
            return
        for mode in self.modes:
            if mode == "forward":
                after = _Level(lambda *x: jvp(function, x, tuple(moves))[1], tuple(points))
            else:
                after = _Level(lambda *x: _pulled(function, x, weights), tuple(points))
            self.all_of(after, order - 1, (*before, mode))

    def _forward(
        self,
        level: _Level,
        function: Function,
        points: list[Any],
        moves: list[Any],
        expected: Slope,
        before: tuple[str, ...],
    ) -> None:
        found = _floats(jvp(function, tuple(points), tuple(moves))[1])
        for ours, other, error in zip(found, expected.values, expected.errors, strict=True):
            if not near(ours, other, error, self.rtol):
                self._fail("forward", before, ours, other, level, moves)

    def _reverse(
        self,
        level: _Level,
        function: Function,
        points: list[Any],
        moves: list[Any],
        expected: Slope,
        weights: list[Any],
        before: tuple[str, ...],
    ) -> None:
        found = _floats(_pulled(function, tuple(points), weights))
        back = sum(paired(c, m) for c, m in zip(found, moves, strict=True))
        ahead = sum(paired(w, e) for w, e in zip(weights, expected.values, strict=True))
        error = sum(e * float(np.abs(w).sum()) for w, e in zip(weights, expected.errors, strict=True))
        if not near(back, ahead, error, self.rtol):
            self._fail("reverse", before, back, ahead, level, moves)

    def _fail(self, mode: str, before: tuple[str, ...], ours: Any, other: Any, level: _Level, moves: list[Any]) -> None:
        graph, values = traced_over(level.captured, level.points)
        culprit = disagreement(graph, values, dict(zip(graph.parameters, moves, strict=False)))
        order = len(before) + 1
        path = " after ".join([mode, *reversed(before)])
        what = f": {culprit} disagrees with its values" if culprit else ""
        raise DerivativeCheckError(
            f"order {order} ({path}) of {of_callable(level.fun).name} gives {_shown(ours)}, and differences {_shown(other)}{what}",
            "" if culprit else "No single operation disagrees: perhaps the function has no derivative at this point.",
        )


def _pulled(function: Function, points: tuple[Any, ...], weights: list[Any]) -> Any:
    value, pull = vjp(function, *points)
    leaves, build = flatten(value)
    rest = iter(weights)
    return pull(build(iter([next(rest) if np.dtype(v.dtype).kind in "fc" else v for v in map(_array_like, leaves)])))


def _array_like(value: Any) -> Any:
    return value if hasattr(value, "dtype") else np.asarray(value)


def _slope(level: _Level, points: list[Any], moves: list[Any]) -> Slope:
    with np.errstate(all="ignore"):
        try:
            found = slope(level.exact, longer(points), longer(moves))
            return slope(level.numeric, points, moves) if level.reordered() else found
        except Exception:  # noqa: BLE001 (what does not take long floats is run as it was captured)
            return slope(level.numeric, points, moves)


def _shown(value: Any) -> str:
    array = np.asarray(value, np.complex128 if np.asarray(value).dtype.kind == "c" else np.float64)
    return np.array2string(array, precision=9, threshold=6)
