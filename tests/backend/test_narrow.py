"""Narrow rows: functions over the elements of a tile's rows side by side, and rows along several axes, with NumPy's numbers."""

from __future__ import annotations

import numpy as np
import pytest

import tensormagic as tm
from tensormagic.backend.printing.narrow_text import NARROW

pytestmark = pytest.mark.usefixtures("on_two_threads")


def columns(x, w):
    return np.exp(x).mean(0)


def weighted(x, w):
    return np.tanh(np.abs(x) * w).sum(0), np.tanh(x * w).max(1)


def softmax(x, w):
    e = np.exp(x - x.max(1)[:, None])
    return e / e.sum(1)[:, None]


def powers(x, w):
    return (np.abs(x) ** w).sum(1)


def powers_of_rows(x, w):
    return (np.abs(x) ** x.mean(1)[:, None]).sum(1)


def several(x, w):
    return (np.exp(x) * np.log1p(np.abs(x - x.mean(1)[:, None]))).sum(1)


def counted(x, w):
    """The nest is inside a loop."""
    for k in range(50):
        x = x - 0.1 * np.exp(x - x.max(1)[:, None]) / (k + 1)
    return x


def chosen(x, w):
    return np.where(x > 0, np.exp(-x), x - x.min(1)[:, None]).argmax(1), np.exp(x[:, ::-1] * w).sum(1)


FUNCTIONS = (columns, weighted, softmax, powers, powers_of_rows, several, counted, chosen)


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_any_width(function, dtype):
    own, single = np.random.default_rng(3), dtype == "float32"
    run = tm.tensor(function)
    for width in (1, 2, 3, 7, 8, 9, 30, NARROW - 1, NARROW, NARROW + 1, 200):
        for rows in (0, 1, 5, 1030):
            if rows == 0 and function is columns:  # nan, with a warning
                continue
            x, w = own.normal(size=(rows, width)).astype(dtype), own.uniform(0.5, 2, width).astype(dtype)
            got, want = run(x, w), function(x, w)
            for a, b in zip(got, want, strict=True) if isinstance(want, tuple) else [(got, want)]:
                assert a.dtype == b.dtype
                np.testing.assert_allclose(a, b, rtol=3e-6 if single else 3e-14, atol=1e-6 if single else 3e-15)


def pairs(x, y):
    return ((x[:, None, :] - y[None, :, :]) ** 2).sum(2)


def triples(x, y):
    z = x[:3] * 2
    return np.exp(-np.abs(x[:, None, None, :] * y[None, :, None, :] - z[None, None, :, :]).mean(3))


def grown(x, y):
    """Pairs of the first rows, none of them to begin with, in a loop."""
    total = np.zeros(len(y))
    for k in range(len(x)):
        total = total + k * ((x[:k, None, :] - y[None, :, :]) ** 2).sum(2).sum(0)
    return total


@pytest.mark.parametrize("function", [pairs, triples, grown])
def test_rows_along_several_axes(function):
    own, run = np.random.default_rng(5), tm.tensor(function)
    for rows, others in ((0, 5), (5, 0), (1, 1), (3, 1), (1, 50), (37, 29), (9, 300)):
        for width in (1, 3, 10, 70, 1500):
            x, y = own.normal(size=(rows, width)), own.normal(size=(others, width))
            np.testing.assert_allclose(run(x, y), function(x, y), rtol=3e-14, atol=1e-300)


@pytest.mark.parametrize("width", [1, 3, 200])
def test_sums_of_no_rows(width):
    run = tm.tensor(lambda x: (x * 2).sum(0))
    run(np.ones((3, width)))
    for _ in range(3):
        left = [np.full(width, 1.5) for _ in range(50)]
        del left
        np.testing.assert_array_equal(run(np.ones((0, width))), np.zeros(width))


def test_special_values():
    values = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 800.0, -800.0, 1.0])
    x = np.random.default_rng(1).choice(values, (300, 5))
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(np.isnan(tm.tensor(softmax)(x, x[0])), np.isnan(softmax(x, x[0])))
        np.testing.assert_allclose(tm.tensor(columns)(x, x[0]), columns(x, x[0]), rtol=1e-15)


@pytest.mark.parametrize(
    ("function", "kind", "two"),
    [
        (columns, "float64[n, m]", 1),
        (softmax, "float64[n, m]", 1),
        (softmax, "float64[n, 64]", 0),
        (softmax, "float64[n]", 0),
    ],
)
def test_where_there_are_two_ways(function, kind, two):
    one = (lambda x: np.exp(x - x.max()).sum()) if kind == "float64[n]" else lambda x: function(x, x)
    assert str(tm.compile(one, kind).code).count(f" < {NARROW}:") == two
