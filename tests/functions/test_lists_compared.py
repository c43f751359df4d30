"""Lists and tuples of lazy numbers compared, and `in`: what Python answers, and of which class the answer is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tensormagic as tm
from tensormagic.ir.errors import CaptureError

PROGRAMS: list[Callable[..., Any]] = []


def program(function: Callable[..., Any]) -> Callable[..., Any]:
    """Enter a program of two arrays."""
    PROGRAMS.append(function)
    return function


@program
def equality(x, y):
    return list(x) == list(y), tuple(x) != tuple(y), [x[0], 1] == [y[0], 1], [x[0]] == [y[0], y[1]], list(x) == tuple(x)


@program
def order(x, y):
    a, b = tuple(x), tuple(y)
    return a < b, a <= b, a > b, a >= b, x.tolist() < y.tolist(), (x[0], 1) < (y[0], 2), a[:2] < b, a > ()


@program
def beside_texts(x, y):
    return (x[0], "a") == (y[0], "b"), ("a", x[0]) < ("b", y[0]), [None, x[0]] == [None, y[0]]


@program
def nested(x, y):
    return [[x[0], x[1]], [x[2]]] == [[y[0], y[1]], [y[2]]], ((x[0], 1), 2) <= ((y[0], 1), 2)


@program
def membership(x, y):
    v = y[1]
    return v in x, v in list(x), 2.0 in x.tolist(), v not in (x[0], x[1]), x[0] in [1.0, 2.0], [x[0]] in [[1.0], [2.0]]


@program
def branches(x, y):
    if list(x) == list(y):
        return "same"
    if tuple(x) < tuple(y):
        return "before"
    return "behind"


@program
def each_once(x, y):
    seen = []
    for v in x:
        if v not in seen:
            seen.append(v)
    return seen


@program
def where_the_least_is(x, y):
    best = (float("inf"), None)
    for i, v in enumerate(x):
        best = min(best, (v, i))
    return best


@program
def dictionaries(x, y):
    return {"a": x[0], "b": 1} == {"b": 1, "a": y[0]}, {"a": x[0]} != {"b": x[0]}, [{"a": x[1]}] == [{"a": y[1]}]


@program
def pairs_that_are_new(x, y):
    pairs = []
    for a in x:
        for b in y:
            if a < b and (a, b) not in pairs:
                pairs.append((a, b))
    return pairs


@program
def until_it_comes_back(x, y):
    path, v = [], x[0]
    while v not in path:
        path.append(v)
        v = (v * 2) % 7
    return path, v


class Version:
    def __init__(self, major, minor):
        self.parts = major, minor

    def __eq__(self, other):
        return self.parts == other.parts

    def __lt__(self, other):
        return self.parts < other.parts

    __hash__ = None  # type: ignore[assignment]


@program
def of_objects(x, y):
    a, b = Version(x[0], x[1]), Version(y[0], y[1])
    return a == b, a < b, [a] == [b], a in [b, b], (a, 1) == (b, 1)


GIVEN = [
    ([1.0, 2.0, 4.0], [1.0, 2.0, 4.0]),
    ([1.0, 2.0, 4.0], [1.0, 3.0, 4.0]),
    ([5.0, 2.0, 5.0], [1.0, 2.0, 9.0]),
    ([1.0, 2.0, np.nan], [1.0, np.nan, 4.0]),
    ([1.0, 2.0, 4.0], [1.0, 2.0, 4.0]),
]


@pytest.mark.parametrize("function", PROGRAMS, ids=lambda f: f.__name__)
def test_as_python_compares(function: Callable[..., Any]):
    captured = tm.tensor(function)
    for a, b in GIVEN:
        x, y = np.array(a), np.array(b)
        assert repr(captured(x, y)) == repr(function(x, y))


def test_lists_of_arrays_are_no_truth_value():
    f = tm.tensor(lambda x, y: [x, 1] == [y, 1])
    with pytest.raises(ValueError, match="truth value of an array"):
        f(np.ones(2), np.zeros(2))
    assert f(np.ones(1), np.ones(1)) is True


def test_what_has_no_order_is_an_error_where_python_asks_it():
    f = tm.tensor(lambda x: (x[0], 1) < (1.0, None))
    assert f(np.zeros(1)) == np.True_
    with pytest.raises(TypeError, match="not supported between instances of 'int' and 'NoneType'"):
        f(np.ones(1))


def test_arrays_behind_numbers_are_refused():
    """Python asks them only where the numbers are equal."""
    f = tm.tensor(lambda x, y: [x[0], x] == [y[0], y])
    with pytest.raises(CaptureError, match="hold arrays"):
        f.graph(np.ones(2), np.zeros(2))
