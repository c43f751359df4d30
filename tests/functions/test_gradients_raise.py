"""A gradient is there where its function has a value: what the function raises, the gradient raises, and what a `try` catches, it knows."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tensormagic as tm

WORDS = r"math domain error|expected a (positive|nonnegative) input"  # the latter from Python 3.14 on
X = np.array([1.1, -0.3, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 1.0, 1.0, 2.0])


def in_a_loop(x):
    total = 0.0
    for v in x:
        total += math.log(v)
    return total


def in_a_branch(x):
    return math.log(x[1]) if x[0] > 1 else x[1] * 2


FAILING: dict[str, Callable[..., Any]] = {
    "a logarithm": lambda x: math.log(x[1]) + x[0],
    "a root that nothing needs": lambda x: 0 * math.sqrt(x[1]) + x[0],
    "in a loop": in_a_loop,
    "in a comprehension": lambda x: sum([math.log(v) for v in x]),
    "in a branch": in_a_branch,
}


def caught(x):
    try:
        r = math.log(x[1])
    except ValueError:
        r = x[1] ** 2
    return r + x.sum()


def caught_in_a_loop(x):
    total = 0.0
    for v in x[:4]:
        try:
            total += math.log(v)
        except ValueError:
            total += v * v
    return total


def of(maker: str, f: Callable[..., Any], x: Any) -> Any:
    """A gradient, by one of the functions that give it."""
    if maker == "value_and_grad":
        return tm.value_and_grad(f)(x)[1]
    return getattr(tm, maker)(f)(x)


@pytest.mark.parametrize("maker", ["grad", "value_and_grad", "jacobian"])
@pytest.mark.parametrize("name", FAILING)
def test_what_the_function_raises(name: str, maker: str):
    f = FAILING[name]
    with pytest.raises(ValueError, match=WORDS):
        f(X)
    with pytest.raises(ValueError, match=WORDS):
        of(maker, f, X)
    there = np.abs(X)
    near = [(f(there + d) - f(there - d)) / 2e-6 for d in 1e-6 * np.eye(len(X))]
    np.testing.assert_allclose(of(maker, f, there), near, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("maker", ["grad", "value_and_grad", "jacobian"])
@pytest.mark.parametrize("f", [caught, caught_in_a_loop], ids=lambda f: f.__name__)
def test_which_part_of_a_try_runs(f: Callable[..., Any], maker: str):
    derived = getattr(tm, maker)(f)
    for x in (np.abs(X), X, np.abs(X), -X):
        near = [(f(x + d) - f(x - d)) / 2e-6 for d in 1e-6 * np.eye(len(X))]
        found = derived(x)
        np.testing.assert_allclose(found[1] if maker == "value_and_grad" else found, near, rtol=1e-6, atol=1e-8)
