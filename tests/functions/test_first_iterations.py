"""Loops whose first iteration gives an array another dtype: that one stands alone, and the others are one loop."""

from __future__ import annotations

import numpy as np
import pytest

import tensormagic as tm

pytestmark = pytest.mark.filterwarnings("ignore::tensormagic.PlainRunWarning")  # data may decide which dtype it is

M = np.array([[2.0, 1.0], [1.0, 3.0]])


def power(v, n):
    size = 0
    for _ in range(n):
        w = M @ v
        new = np.sqrt(w @ w)
        v = w / new
        if abs(new - size) < 1e-9:
            break
        size = new
    return size, v


def halves(v, n):
    for k in range(n):
        v = v / 2 + k
    return v


def left_by_return(v, n):
    for k in range(n):
        v = v * 1.5
        if v.sum() > 40:
            return v, k
    return v, -1


def left_at_once(v, n):
    for _ in range(n):
        if v[0] > 10:
            break
        v = v * 1.5
    return v


def skipped(v, n):
    t = v
    for k in range(n):
        if k == 3:
            continue
        v = v * 0.5
        t = t + v
        if v.max() < 0.01:
            break
    return t, v


def wider_twice(v, n):
    for k in range(n):
        v = v + (np.int8(1) if k < 2 else np.int16(1) if k < 4 else 1.0)
    return v


LOOPS = [power, halves, left_by_return, left_at_once, skipped, wider_twice]


@pytest.mark.parametrize("function", LOOPS)
@pytest.mark.parametrize(
    "start", [np.array([1, 2]), np.array([11, 2]), np.array([1, 2], np.int8), np.array([1.0, 2.0])]
)
def test_values_are_those_of_python(function, start):
    captured = tm.tensor(function)
    for count in (1, 2, 8, 9, 10, 60):
        for _ in range(2):
            wanted, found = function(start, count), captured(start, count)
            several = isinstance(wanted, tuple)
            for a, b in zip(wanted, found, strict=True) if several else [(wanted, found)]:
                assert type(a) is type(b)
                assert np.asarray(a).dtype == np.asarray(b).dtype
                np.testing.assert_allclose(b, a, rtol=1e-12)


@pytest.mark.parametrize("function", [power, halves, left_by_return, skipped])
def test_graphs_are_as_long_for_few_iterations_as_for_many(function):
    def length(count):
        return len(list(tm.trace(lambda v: function(v, count), "int64[2]").nodes))

    assert length(12) == length(200)


@pytest.mark.parametrize("function", [power, halves, skipped])
def test_derivatives_go_through_the_first_iteration(function):
    def loss(x):
        found = function(np.array([1, 2]), 20)
        v = found[1] if isinstance(found, tuple) else found
        return np.sum(np.sin(x * v))

    slope = (loss(0.3 + 1e-6) - loss(0.3 - 1e-6)) / 2e-6
    np.testing.assert_allclose(tm.grad(loss)(0.3), slope, rtol=1e-6)
