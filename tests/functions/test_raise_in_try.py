# ruff: noqa: TRY300, TRY301 (as it is written)
"""`raise` and `assert` on data in a `try`: each way has a trace of its own, and a call goes the way that its data say."""

from __future__ import annotations

import contextlib
import enum
import io
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tensormagic as tm
from tensormagic.functions.calls import first_call
from tensormagic.ir.errors import CaptureError

PROGRAMS: list[Callable[..., Any]] = []


def program(function: Callable[..., Any]) -> Callable[..., Any]:
    """Enter a program."""
    PROGRAMS.append(function)
    return function


class TooBigError(Exception):
    def __init__(self, v):
        super().__init__(f"bad value {v}")
        self.v = v


def checked(v):
    if v > 10:
        raise TooBigError(v)
    return v


def positive(x):
    if x.sum() < 0:
        raise ValueError("negative sum")
    if np.isnan(x).any():
        raise ValueError("nan")
    return np.log(x.sum())


@program
def caught_where_it_is_raised(x):
    try:
        if x[0] < 0:
            raise ValueError(f"negative: {x[0]}")
        r = math.sqrt(x[0])
    except ValueError as error:
        print("error:", error)
        print(f"{error} / {error!s}", str(error))
        r = 0.0
    return r


@program
def an_assertion(x):
    try:
        if not x[0] > 0:  # which pytest would rewrite, were it an assert
            raise AssertionError("must be positive")
        return x[0] ** 0.5
    except AssertionError as error:
        print("assertion", error)
    return -1.0


@program
def of_a_function_for_each(x):
    out = []
    for v in x:
        try:
            out.append(checked(v))
        except TooBigError as error:
            print(error)
            out.append(error.v / 10)
    return out


@program
def of_a_function(x):
    try:
        return positive(x)
    except ValueError as error:
        print(repr(error), error.args)
        return float("nan")


@program
def one_of_two(x):
    try:
        if x[0] > 5:
            raise KeyError("k")
        if x[0] > 3:
            raise ValueError("v")
        y = x * 2
    except (KeyError, ValueError) as error:
        print(type(error).__name__, error, repr(error), error.args)
        y = x * 0
    else:
        print("fine")
    finally:
        print("end")
    return y


@program
def again_and_again(x):
    for attempt in range(3):
        try:
            x = x / 2
            if x[0] > 1:
                raise RuntimeError("again")
            break
        except RuntimeError as error:
            print(attempt, error)
    else:
        print("gave up")
    return x, attempt


@program
def after_a_store(x):
    y = np.zeros(2)
    try:
        y[0] = x[0]
        if x[0] > 5:
            raise ValueError("big")
        y[1] = x[1]
    except ValueError:
        y[:] = -1
    return y


@program
def into_another_error(x):
    try:
        if x[0] < 0:
            raise ValueError("inner")
        return "ok"
    except ValueError as error:
        raise RuntimeError("outer") from error


@program
def out_of_a_loop(x):
    n = 0
    try:
        for v in x:
            if v < 0:
                raise StopIteration
            n += 1
    except StopIteration:
        print("stopped")
    return n


def told(function: Callable[..., Any], *args: Any) -> tuple[str, str]:
    """What a function gives, or raises, and what it prints."""
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        try:
            found = repr(function(*args))
        except Exception as error:  # noqa: BLE001 (compared)
            found = f"raised {error!r}"
    return found, said.getvalue()


GIVEN = [[4.0, 20.0], [-4.0, 2.0], [40.0, 2.0], [40.0, 20.0], [np.nan, 1.0], [4.0, 20.0], [-1.0, -1.0]]


@pytest.mark.parametrize("order", [1, -1])
@pytest.mark.parametrize("function", PROGRAMS, ids=lambda f: f.__name__)
def test_as_python_goes(function: Callable[..., Any], order: int):
    captured = tm.tensor(function)
    for x in GIVEN[::order]:
        assert told(captured, np.array(x)) == told(function, np.array(x))


def test_the_derivative_is_that_of_the_way_that_is_gone():
    def f(x):
        try:
            if x[0] < 0:
                raise ValueError("negative")
            r = x[0] ** 2
        except ValueError:
            r = x[0] ** 3
        return r * x[1]

    derived = tm.grad(f)
    for a in (2.0, -2.0, 3.0, -3.0):
        x = np.array([a, 5.0])
        np.testing.assert_allclose(derived(x), [2 * a * 5, a * a] if a > 0 else [3 * a * a * 5, a**3])


@pytest.mark.parametrize("caught", [ValueError, Exception])
def test_loops_without_end_are_refused(caught: type[Exception]):
    def f(x):
        s = 0.0
        while True:
            try:
                s = s + x[0]
                if s > 5000:
                    raise ValueError(s)
            except caught:
                if s > 5000:
                    return s

    with pytest.raises(tm.CaptureError, match="more than 64 conditions on data"):
        tm.tensor(f).graph(np.ones(2))


def test_loops_of_few_iterations_are_pythons():
    def f(x):
        s = n = 0
        while n < 6:
            n += 1
            try:
                s = s + x[0]
                if s > 5:
                    raise ValueError(s)
            except ValueError as error:
                return error.args[0] * n
        return s

    captured = tm.tensor(f)
    for a in (1.0, 2.5, 0.4, 1.0):
        assert captured(np.array([a])) == f(np.array([a]))


class Level(enum.IntEnum):
    HIGH = 3


class Held:
    def __init__(self) -> None:
        self.w = np.array([1.0, 2.0])

    def __mul__(self, by: float) -> Held:  # Python runs it as it is written
        return self


held = Held()
numbers = iter(())


def tried(x):
    try:
        for v in x:
            if v < 0:
                raise TooBigError(v)
    except TooBigError:
        pass
    held.w *= 2


def by_level(x):
    tried(x)
    return x * Level.HIGH


def by_an_iterator(x):
    tried(x)
    return x * next(numbers)


@pytest.fixture
def _state(monkeypatch):
    monkeypatch.setattr(held, "w", np.array([1.0, 2.0]))
    monkeypatch.setitem(globals(), "numbers", iter([1.0, 2.0, 3.0]))
    monkeypatch.setattr(first_call, "enabled", False)


@pytest.mark.usefixtures("_state")
def test_a_call_that_is_captured_twice_changes_what_it_reads_once():
    captured, x = tm.tensor(by_level), np.array([0.5, -1.0])
    for k in range(3):
        np.testing.assert_array_equal(captured(x), x * 3)
        np.testing.assert_array_equal(held.w, np.array([1.0, 2.0]) * 2 ** (k + 1))


@pytest.mark.usefixtures("_state")
def test_a_call_that_cannot_be_captured_twice_is_refused():
    with pytest.raises(CaptureError, match="what it may have changed in numbers"):
        tm.tensor(by_an_iterator)(np.array([0.5, -1.0]))
    np.testing.assert_array_equal(held.w, [1.0, 2.0])


@pytest.mark.usefixtures("_state")
def test_a_call_that_is_captured_once_takes_from_an_iterator_once():
    np.testing.assert_array_equal(tm.tensor(by_an_iterator)(np.array([0.5, 1.0])), [0.5, 1.0])
    np.testing.assert_array_equal(held.w, [2.0, 4.0])
