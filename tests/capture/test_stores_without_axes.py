"""Loops that store into an array without axes: `n[()] += v`, `n[...] = v`, `n *= v`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tensormagic as tm


def added(x):
    n = np.zeros(())
    for v in x:
        n[()] += v
    return n * 2


def carried_on(x):
    n = np.zeros(())
    for i in range(len(x)):
        n[...] = n * 0.5 + x[i]
    return n + x


def beside_a_stack(x):
    n, h = np.zeros(()), np.zeros(len(x))
    for i in range(len(x)):
        n[()] = x[i] ** 2
        h[i] = n
    return h, n


def in_branches(x):
    n = np.ones(())
    for v in x:
        if v > 0:
            n *= v
        else:
            n[()] = 1 - n
    return float(n)


def in_a_while(x):
    n, i = np.zeros(()), 0
    while i < len(x) and n < 3.7:
        n[()] += x[i]
        i += 1
    return n, i


def stored_last(x):
    n = np.zeros(())
    for v in x:
        n[()] = v
    return n


def of_an_array_of_numbers(x):
    n = np.array(1)
    for v in x:
        n[()] = v * 2
    return n, n.dtype.name


PROGRAMS = [added, carried_on, beside_a_stack, in_branches, in_a_while, stored_last, of_an_array_of_numbers]


@pytest.mark.parametrize("function", PROGRAMS, ids=lambda f: f.__name__)
def test_calls(function, tier):
    x = np.array([3.0, -1.0, 2.0, 0.5])
    assert repr(tm.tensor(function)(x)) == repr(function(x))
    assert repr(tm.compile(function, x)(x)) == repr(function(x))


def test_an_argument_is_stored_into():
    def largest(x, n):
        for v in x:
            n[()] = max(n, v)
        return n

    n = np.array(1.0)
    assert tm.tensor(largest)(np.array([0.5, 4.0, 2.0]), n) is n
    assert n == 4.0


@pytest.mark.parametrize(
    "function", [added, in_branches, lambda x: in_a_while(x)[0] * 1.0], ids=["added", "branches", "while"]
)
def test_gradients(function: Any):
    x = np.array([3.0, -1.0, 2.0, 0.5])
    numeric = [(function(x + s) - function(x - s)) / 2e-6 for s in np.eye(4) * 1e-6]
    assert np.allclose(tm.grad(function)(x), numeric, rtol=1e-6, atol=1e-8)
