"""The largest and the smallest of many floats in compiled loops: nans, zeros of both signs, infinities, any axis."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tensormagic as tm
from tensormagic.backend.planning.plan import plan_graph

INF, NAN = np.inf, np.nan
PIECES = [
    [0.0, -0.0, -1.0],
    [-0.0, 0.0, 1.0],
    [-0.0, -0.0, -2.0],
    [-0.0, -0.0, 2.0],
    [0.0, 0.0, 1.0],
    [NAN, 1.0, 2.0],
    [1.0, NAN, -INF],
    [2.0, 1.0, -NAN],
    [-INF, -INF, -INF],
    [INF, 3.0, -INF],
]


def ordered(values: np.ndarray, largest: bool) -> tuple[float, bool]:
    """The extremum where 0.0 is above -0.0, and its sign."""
    if np.isnan(values).any():
        return NAN, False
    number = values.max() if largest else values.min()
    zeros = values[values == 0]
    if number == 0:
        return 0.0, bool(np.signbit(zeros).all() if largest else np.signbit(zeros).any())
    return float(number), bool(np.signbit(number))


pytestmark = pytest.mark.usefixtures("by_numba")


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("piece", PIECES)
@pytest.mark.parametrize("largest", [True, False])
def test_nans_and_zeros(piece: list[float], dtype: type, largest: bool) -> None:
    fold = tm.tensor((lambda x: np.max(x)) if largest else (lambda x: np.min(x)))
    for count in (1, 2, 7, 41):
        for turned in (piece, piece[::-1]):
            x = np.array(turned * count, dtype)
            found = np.asarray(fold(x))
            number, negative = ordered(x, largest)
            np.testing.assert_array_equal(found, dtype(number))
            assert np.isnan(number) or np.signbit(found) == negative


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize(
    "function",
    [
        lambda x: np.max(x),
        lambda x: np.min(x * 2 + 1),
        lambda x: np.max(x, 0),
        lambda x: np.min(x, 1),
        lambda x: np.max(x, axis=(1, 2)),
        lambda x: np.max(x, axis=(0, 2)),
        lambda x: np.max(abs(x), -1, keepdims=True) - np.min(x, -1, keepdims=True),
    ],
)
def test_axes(function: Callable[[Any], Any], dtype: type) -> None:
    for shape in ((3, 5, 1), (40, 33, 17), (2, 3, 1030)):
        x = np.random.default_rng(0).normal(size=shape).astype(dtype)
        np.testing.assert_array_equal(np.asarray(tm.tensor(function)(x)), function(x))


def test_one_nan_anywhere_shows() -> None:
    largest = tm.tensor(lambda x: np.max(x))
    for place in (0, 1, 500, 70_001):
        x = np.random.default_rng(1).normal(size=70_002)
        x[place] = NAN
        assert np.isnan(np.asarray(largest(x)))


def test_a_loop_has_no_step_that_waits_for_six_instructions() -> None:
    largest = tm.tensor(lambda x: np.max(x, 1))
    graph = largest.graph(np.ones((3, 4)))
    (source,) = plan_graph(graph).sources
    assert "larger(" in source
    assert "max_propagate(" not in source
