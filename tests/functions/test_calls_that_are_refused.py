"""A call that no graph holds is Python's, whatever stands in the way: drawn objects, effects in branches, caches, against Python."""

from __future__ import annotations

import ctypes
import decimal
import functools
import itertools
import logging
import random
import warnings
from collections.abc import Callable
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import tensormagic as tm
from tensormagic.ir.errors import TensorError

X = np.array([3.0, 1.0, 2.0])
pytestmark = pytest.mark.filterwarnings("ignore::tensormagic.PlainRunWarning")


class Unaware:
    """One that NumPy's arrays leave the operator to."""

    __array_ufunc__ = None

    def __init__(self, v: float) -> None:
        self.v = v

    def __add__(self, other: Any) -> Any:
        return "add", other * self.v

    def __radd__(self, other: Any) -> Any:
        return "radd", other * self.v

    __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = __pow__ = __rpow__ = __radd__

    def __lt__(self, other: Any) -> Any:
        return "less", other

    def __gt__(self, other: Any) -> Any:
        return "greater", other


class Reflected:
    """One that has the reflected operator alone."""

    def __radd__(self, other: Any) -> Any:
        return "radd", other

    def __rmul__(self, other: Any) -> Any:
        return "rmul", other


OBJECTS: dict[str, Callable[[], Any]] = {
    "a fraction": lambda: Fraction(1, 3),
    "a decimal": lambda: decimal.Decimal("1.5"),
    "one that arrays leave it to": lambda: Unaware(2.0),
    "one with the reflected operator": Reflected,
    "a masked array": lambda: np.ma.masked_array([1.0, 2.0, 4.0], [0, 1, 0]),
    "a matrix": lambda: np.asmatrix([1.0, 2.0, 4.0]),
    "a date": lambda: np.datetime64("2020-01-01"),
}
USES: dict[str, Callable[[Any, Any], Any]] = {
    "x + o": lambda x, o: x + o,
    "o + x": lambda x, o: o + x,
    "x * o": lambda x, o: x * o,
    "o / x": lambda x, o: o / x,
    "x - o": lambda x, o: x - o,
    "o ** x": lambda x, o: o**x,
    "x < o": lambda x, o: x < o,
    "o > x": lambda x, o: o > x,
    "in a list": lambda x, o: [x * 2, o, (o, x)],
    "sum": lambda x, o: sum([x, o]),
    "in a branch": lambda x, o: o + x if np.sum(x) > 1 else x - o,
    "np.add": lambda x, o: np.add(x, o),
    "a list of it": lambda x, o: [np.abs(x), [o]],
    "np.sum": lambda x, o: np.sum(o) + x,
}
ARGUMENTS = {"an array": X, "a float": 2.5, "an integer": 3, "a number of NumPy's": np.float64(0.5)}
REFUSED = "refused"


def told(value: Any) -> Any:
    """What is compared of a result."""
    if isinstance(value, list | tuple):
        return type(value), [told(v) for v in value]
    return type(value), str(getattr(value, "dtype", "")), repr(value) if "0x" not in repr(value) else ""


def outcome(function: Callable[..., Any], *args: Any) -> Any:
    try:
        with np.errstate(all="ignore"):
            return told(function(*args))
    except TensorError as error:
        return REFUSED, error.numpys_class.__name__
    except Exception as error:  # noqa: BLE001 (compared)
        return type(error).__name__, str(error)


def given_as(where: str, function: Callable[..., Any], x: Any, o: Any) -> Any:
    """What captured code gives whose object is an argument, a default or an attribute."""
    if where == "argument":
        return outcome(tm.tensor(lambda x, o, f=function: f(x, o)), x, o)
    if where == "default":
        return outcome(tm.tensor(lambda x, o=o, f=function: f(x, o)), x)
    return outcome(tm.tensor(lambda x, h, f=function: f(x, h.o)), x, SimpleNamespace(o=o))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", OBJECTS)
@pytest.mark.parametrize("where", ["argument", "default", "attribute"])
def test_objects_with_operators_of_their_own(name: str, where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Never another value; an error that is refused is one in Python, too, but for few."""
    monkeypatch.setattr(tm.config, "tier", "numpy")
    drawn = random.Random(f"{name} {where}").sample([*itertools.product(USES, ARGUMENTS)], 12)
    wrong, refused = [], 0
    for use, kind in drawn:
        expected = outcome(USES[use], ARGUMENTS[kind], OBJECTS[name]())
        found = given_as(where, USES[use], ARGUMENTS[kind], OBJECTS[name]())
        if found[0] == REFUSED:
            refused += not str(expected[0]).endswith("Error")
        elif found != expected:
            wrong.append((use, kind, expected, found))
    assert not wrong, "\n".join(map(str, wrong))
    assert refused <= 1


LOG: list[str] = []


class _Kept(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        LOG.append(record.getMessage())


LOGGER = logging.getLogger("tests of calls that are refused")
LOGGER.addHandler(_Kept())
LOGGER.setLevel(logging.INFO)
LOGGER.propagate = False
OWN = random.Random(5)


def warned(x: Any) -> Any:
    if x.sum() > 2:
        warnings.warn("large", UserWarning, stacklevel=1)
        x = x / 2
    return x


def drawn(x: Any) -> Any:
    if x.sum() > 2:
        x = x + random.random()
    return x + random.gauss(0, 1)


def drawn_of_its_own(x: Any) -> Any:
    first = OWN.random()
    for v in x:
        if v > first:
            x = x * OWN.uniform(1, 2)
    return x


def logged(x: Any) -> Any:
    for v in x:
        if v > 1:
            LOGGER.info("value %g", v)
    return x * 2


def annealed(x: Any) -> Any:
    best = x.sum()
    for _ in range(5):
        found = best + random.uniform(-1, 1)
        if found < best or random.random() < np.exp(best - found):
            best = found
    return best


EFFECTS = [warned, drawn, drawn_of_its_own, logged, annealed]


def _runs(function: Callable[..., Any]) -> list[Any]:
    random.seed(3)
    OWN.seed(4)
    LOG.clear()
    found = []
    for scale in (1.0, -1.0, 0.25, 2.0):
        with warnings.catch_warnings(record=True) as messages:
            warnings.simplefilter("always")
            found.append(function(X * scale).tolist())
        found.append([str(w.message) for w in messages if w.category is UserWarning])
        found += [hash(random.getstate()), hash(OWN.getstate()), [*LOG]]
    return found


@pytest.mark.parametrize("effect", EFFECTS, ids=lambda f: f.__name__)
def test_effects_in_branches_on_data(effect: Callable[..., Any]) -> None:
    assert _runs(tm.tensor(effect)) == _runs(effect)


def test_what_has_had_an_effect_is_not_run_again() -> None:
    """What is refused after such a call stays refused: Python would make it twice."""
    LOG.clear()

    def f(x: Any) -> Any:
        LOGGER.info("begun")
        return {x.sum(): 1}

    with pytest.raises(tm.CaptureError, match="a key of a dictionary"):
        tm.tensor(f)(X)
    assert LOG == ["begun"]


def test_functions_that_remember_their_results() -> None:
    def cached() -> tuple[Callable[..., Any], Any]:
        @functools.lru_cache(maxsize=4)
        def squared(v: float) -> float:
            return v * v

        return lambda x: squared(x) + squared(x) + x, squared

    (own, theirs), (function, ours) = cached(), cached()
    captured = tm.tensor(function)
    for v in (2.0, 2.0, 3.0, 2.5, 2.0):
        assert captured(v) == own(v)
        assert ours.cache_info() == theirs.cache_info()


def test_a_cache_that_the_capture_has_filled_is_not_asked_again() -> None:
    @functools.cache
    def squared(v: float) -> float:
        return v * v

    captured = tm.tensor(lambda x: squared(3.0) + squared(x))
    squared(5.0)
    with pytest.raises(tm.CaptureError, match="a key of a dictionary"):  # what was in the cache is not known
        captured(2.0)


def test_objects_of_c_are_pythons() -> None:
    assert tm.tensor(lambda x: ctypes.c_float(x).value)(0.1) == ctypes.c_float(0.1).value


def test_memory_that_is_shared_is_told() -> None:
    def f(a: Any, b: Any) -> Any:
        a += 1
        return b.sum()

    x, y = np.arange(5.0), np.arange(5.0)
    with pytest.warns(tm.PlainRunWarning, match="f is run as ordinary Python, at this call"):
        assert tm.tensor(f)(x[1:], x[:-1]) == f(y[1:], y[:-1])
    assert x.tolist() == y.tolist()


def test_a_number_of_more_than_64_bits_is_told() -> None:
    f = tm.tensor(lambda x: round(x * 1e20))
    with pytest.warns(tm.PlainRunWarning, match="at this call"):
        assert f(1.5) == round(1.5e20)


def test_a_refused_value_is_told_by_its_name() -> None:
    f = tm.tensor(lambda x, m: (x * m).sum())
    with pytest.warns(tm.PlainRunWarning, match="m is a MaskedArray"):
        assert f(X, np.ma.masked_array(X, [0, 1, 0])) == 13.0
    with pytest.raises(tm.DTypeError, match="m is a MaskedArray"):
        tm.grad(f)(X, np.ma.masked_array(X, [0, 1, 0]))
