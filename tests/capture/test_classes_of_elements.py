# ruff: noqa: PERF401 (lists grow in all ways)
"""Elements of lists that loops, branches and comprehensions fill: each is of the class that it has in Python, wherever it is read."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tensormagic as tm
from tensormagic.capture.tree import flatten
from tests.capture.harness import check

X = np.array([3.0, -1.0, 2.0, 5.0, -2.0, 1.0, 7.0, 8.0, 9.0, 10.0, 11.0])
PROGRAMS: list[Callable[..., Any]] = []


def program(function: Callable[..., Any]) -> Callable[..., Any]:
    """Enter a program."""
    PROGRAMS.append(function)
    return function


@program
def begins_with_an_integer(x):
    out = [1]
    for v in x:
        if v > 0:
            out.append(v)
    return out[0], out[-1], out[0] / 2, out[0] * np.float32(1), out


@program
def begins_with_a_float(x):
    out = [1.5]
    for v in x:
        if v > 4:
            out.append(v)
    print(out[0], out[-1], out)
    return out[0], out[1:], max(out), sum(out)


@program
def some_are_integers(x):
    out = [0]
    for v in x:
        if v > 1:
            out.append(v)
        else:
            out += [1, 2.5]
    return out, out[1], isinstance(out[0], float), np.array(out)


@program
def of_pairs(x):
    out = []
    for v in x:
        if v > 1:
            out.append((v, 1))
        elif v > 0:
            out.append((0, v))
    return out, out[0], out[-1][0]


@program
def clipped(x):
    out = [max(0, v) for v in x]
    print(out, out[0], out[1])
    return out, sum(out), max(out), out[1:3], out[0] / 2, np.array(out), np.mean(out), [u * 2 for u in out]


@program
def clipped_and_chosen(x):
    out = [v if v > 2 else 0 for v in x if v > -2]
    return out, out[0], out[1:4], len(out)


@program
def appended_by_a_loop_of_known_length(x):
    out = []
    for i in range(11):
        v = x[i] if x[i] > 0 else 0.0
        out.append(v)
    total = 0
    for o in out:
        total += o
    return total, out[1], out, np.array(out[1:4])


@program
def in_order(x):
    out = sorted([max(0, v) for v in x])
    return out, out[0], out[-1]


@program
def in_order_of_keys(x):
    a = [max(0, x[0]), max(0, x[3]), min(x[5], 1)]
    a.sort(key=lambda v: -v)
    return a, a[0], a[2]


@program
def recurrence(x):
    h = [0]
    for i in range(len(x)):
        h.append(0.9 * h[-1] + x[i])
    return h, h[0], h[-1], np.array(h), np.diff(h)


@program
def until_it_is_near(x):
    h = [1]
    while abs(h[-1] - x[0]) > 1e-3:
        h.append(h[-1] - (h[-1] - x[0]) / 2)
    print(len(h), h[0], h[-1])
    return h, np.array(h), h[1:], h[-1], sum(h)


@program
def truths(x):
    out = [True]
    for v in x:
        if v > 0:
            out.append(v > 1)
    return out[0], out[-1]


def told(function: Callable[..., Any], *args: Any) -> tuple[Any, str]:
    """What a function gives, and what it prints."""
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        found = function(*args)
    return found, said.getvalue()


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64])
@pytest.mark.parametrize("function", PROGRAMS, ids=lambda f: f.__name__)
def test_in_functions(function: Callable[..., Any], dtype: Any):
    captured = tm.tensor(function)
    for x in (X, -X, np.ones(11), X):
        given = x.astype(dtype)
        ours, text = told(captured, given)
        theirs, expected = told(function, given)
        assert text == expected
        for a, b in zip(flatten(ours)[0], flatten(theirs)[0], strict=True):
            assert type(a) is type(b)
            np.testing.assert_allclose(a, b, rtol=1e-6 if dtype is np.float32 else 1e-14, strict=True)


CELLS = [
    "out = [1]\nfor v in x:\n    if v > 0:\n        out.append(v)\na, b = out[0], out[-1]",
    "out = []\nfor v in x:\n    if v > 0:\n        out.append(v)\n    else:\n        out.append(0)\na, b = out[0], out[1]",
    "out = [v if v > 0 else 0 for v in x]\na, b, m = out[0], out[1], np.array(out)",
    "out = [v if v > 2 else 0 for v in x if v > 0]\na, b, s = out[0], out[-1], sorted(out)",
    "out = []\nfor i in range(11):\n    out.append(x[i] if x[i] > 0 else 0)\na = out[1] / 2",
    "out, i = [0], 0\nwhile out[-1] < 9 and i < 9:\n    out.append(out[-1] + x[i] if x[i] > 0 else 1)\n    i += 1\na = out[0]",
]


@pytest.mark.parametrize("source", CELLS)
def test_in_cells(source: str):
    for x in (X, -X):
        check(source, x=x)


def test_gradients_go_through_them():
    def loss(w, x):
        h = [0]
        for i in range(len(x)):
            h.append(0.9 * h[-1] + w * x[i])
        kept = [max(0, v) for v in h]
        return h[-1] ** 2 + np.mean(h) + sum(kept) + np.array(kept).max()

    ours = tm.grad(loss)(0.3, X)
    near = (loss(0.3 + 1e-6, X) - loss(0.3 - 1e-6, X)) / 2e-6
    np.testing.assert_allclose(ours, near, rtol=1e-7)


def test_an_array_that_numpy_makes_of_another_dtype_is_left_to_python():
    """Of ones alone NumPy makes an array of integers."""
    f = tm.tensor(lambda x: np.array([max(1, v) for v in x]))
    for x in (X, np.ones(11), X):
        expected = np.array([max(1, v) for v in x])
        np.testing.assert_array_equal(f(x), expected, strict=True)


def test_gradients_go_through_arrays_of_them():
    def f(x):
        return (np.array([max(1, v) for v in x]) * x).sum()

    for x in (X + 2.5, np.ones(11)):
        np.testing.assert_array_equal(tm.grad(f)(x), np.where(x > 1, 2 * x, 1))
