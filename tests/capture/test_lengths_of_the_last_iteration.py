"""What the last iteration of a loop leaves in a name that no iteration reads, where its length differs from iteration to iteration."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tensormagic as tm


def bound_before(x: Any, least: float) -> Any:
    k = 0
    last = x
    while x.sum() > least and k < 9:
        gone = x > x.mean()
        last = x[gone]
        x = x[~gone] + 0.1
        k += 1
    return x, last, k


def begun_as_none(x: Any, least: float) -> Any:
    last = None
    while len(x) > 1 and x.sum() > least:
        last = np.unique(x)
        x = x[1:]
    return x, last


def bound_inside(x: Any, least: float) -> Any:
    while True:
        last = np.concatenate([x, x[x > least]])
        x = x[x < x.max()]
        if len(x) < 2 or x.sum() < least:
            break
    return x, last


def of_rows(x: Any, least: float) -> Any:
    rows, left, k = np.stack([x, -x], axis=1), np.zeros((0, 2)), 0
    while len(rows) and k < 5:
        out = rows[:, 0] < least + k
        left = rows[out]
        rows = rows[~out]
        k += 1
    return rows, left


@pytest.mark.parametrize("function", [bound_before, begun_as_none, bound_inside, of_rows])
@pytest.mark.parametrize("tier", ["numpy", "numba"])
def test_it_is_what_python_leaves(function: Callable[..., Any], tier: str) -> None:
    captured = tm.tensor(function)
    for seed, least in ((0, -5.0), (1, 0.3), (2, 99.0), (3, -99.0)):
        x = np.random.default_rng(seed).normal(size=7)
        with tm.config.using(tier=tier):
            found = captured(x.copy(), least)
        for a, b in zip(found, function(x.copy(), least), strict=True):
            if b is None:
                assert a is None
            else:
                np.testing.assert_array_equal(a, b, strict=isinstance(b, np.ndarray))


def test_it_is_in_the_graph() -> None:
    assert "while" in tm.compile(bound_before, np.arange(5.0), 1.0).graph.ops
