"""What a function prints before an error, in a `try` and around it: what Python prints, and no line more."""

from __future__ import annotations

import contextlib
import io
import math
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tensormagic as tm
from tests.capture.harness import captured

PROGRAMS: list[Callable[..., Any]] = []


def program(function: Callable[..., Any]) -> Callable[..., Any]:
    """Enter a program of two arrays, of which either may have no root or logarithm."""
    PROGRAMS.append(function)
    return function


def root(v):
    print("root of", v)
    return math.sqrt(v)


@program
def one_after_another(x, y):
    a = root(x[0])
    b = root(y[0])
    print("end")
    return a, b


@program
def in_try_and_finally(x, y):
    try:
        a = root(x[0])
        b = root(y[0])
        print("both")
    finally:
        print("done")
    return a, b


@program
def caught(x, y):
    try:
        a = root(x[0])
        print("one")
        b = root(y[0])
        print("two")
    except ValueError as error:
        print("no:", error)
        a = b = 0.0
    else:
        print("both")
    finally:
        print("done")
    return a, b


class Managed:
    def __enter__(self):
        print("in")
        return self

    def __exit__(self, kind, error, trace):
        print("out", kind)
        return False


@program
def in_a_with(x, y):
    with Managed():
        a = math.sqrt(x[0])
        b = math.sqrt(y[0])
    return a, b


@program
def of_libraries(x, y):
    a = np.linalg.inv(np.diag(np.maximum(x, 0)))
    print("one")
    b = np.linalg.inv(np.diag(np.maximum(y, 0)))
    print("two")
    return a, b


@program
def in_a_loop(x, y):
    out = []
    for v in (x[0], y[0], x[1]):
        print("next", v)
        out.append(math.log(v))
        print("logarithm", out[-1])
    return out


@program
def before_and_after_a_raise(x, y):
    print("begin")
    if x[0] < 0:
        raise ValueError("below zero")
    print("checked")
    r = math.sqrt(y[0])
    print("end")
    return r


@program
def an_assertion_first(x, y):
    try:
        if x[0] < 0:
            raise AssertionError("below zero")
        print("asserted")
        return math.sqrt(y[0])
    finally:
        print("finally")


GIVEN = [(4.0, 1.0), (-4.0, 1.0), (4.0, -1.0), (-4.0, -1.0), (9.0, 2.0)]


def told(function: Callable[..., Any], *args: Any) -> tuple[Any, str]:
    """What a function gives, or raises, and what it prints."""
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        try:
            found = function(*args)
        except Exception as error:  # noqa: BLE001 (compared)
            found = type(error).__name__, str(error)
    return found, re.sub(
        r", got \S+", "", said.getvalue()
    )  # which Python 3.14 adds to what it says of a number (docs/limits.md)


@pytest.mark.parametrize("order", [1, -1])
@pytest.mark.parametrize("function", PROGRAMS, ids=lambda f: f.__name__)
def test_it_prints_what_python_prints(function: Callable[..., Any], tier: str, order: int):
    ours_of = tm.tensor(function)
    for a, b in GIVEN[::order]:
        x, y = np.array([a, 2.0]), np.array([b, 3.0])
        (ours, text), (theirs, expected) = told(ours_of, x, y), told(function, x, y)
        assert text == expected
        if isinstance(theirs, tuple) and isinstance(theirs[0], str):
            assert ours == theirs
        else:
            for one, other in zip(np.atleast_1d(ours), np.atleast_1d(theirs), strict=True):
                np.testing.assert_allclose(one, other, rtol=1e-14)


CELLS = {
    "straight on": ("print('a')\nr = np.linalg.inv(A)\nprint('b')\ns = np.linalg.inv(B)\nprint('c')", "a\nb\n"),
    "finally": (
        "try:\n    print('a')\n    r = np.linalg.inv(A)\n    print('b')\n    np.linalg.inv(B)\n    print('c')\nfinally:\n    print('d')",
        "a\nb\nd\n",
    ),
}


@pytest.mark.parametrize("name", CELLS)
def test_a_cell_prints_no_line_behind_an_error(name: str, capsys):
    source, expected = CELLS[name]
    found = captured(source, {"A": np.eye(2), "B": np.zeros((2, 2))})
    assert isinstance(found.error, np.linalg.LinAlgError)
    assert capsys.readouterr().out == expected


@contextlib.contextmanager
def section(name):
    print("begin", name)
    try:
        yield name.upper()
    finally:
        print("end", name)


def in_sections(x):
    with section("a") as a, section("b"):
        if x[0] > 3:
            raise ValueError(a)
        return x[0] + 1


def in_a_section(x):
    with section("a"):
        try:
            y = math.log(x[0])
        except ValueError:
            y = 0.0
    return y


@pytest.mark.parametrize("function", [in_sections, in_a_section])
def test_generators_of_context_managers_print_at_each_call(function: Callable[..., Any]):
    captured = tm.tensor(function)
    for a in (1.0, 5.0, -5.0, 5.0, 1.0):
        x = np.array([a])
        assert repr(told(captured, x)) == repr(told(function, x))
