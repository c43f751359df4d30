"""Warnings of NumPy: captured functions give none; what looks at recorded ones is refused, and errors asked for are raised."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import tensormagic as tm

X = np.array([1.0, 0.0, -1.0])
QUIET: list[Any] = [
    lambda x: 1 / x,
    np.log,
    lambda x: np.mean(x[:0]),
    lambda x: np.var(x[:1], ddof=1),
    lambda x: np.nanmax(x * np.nan),
    lambda x: x[0] / x[1],
    lambda x: np.exp(x * 1000),
]


@pytest.mark.parametrize("function", QUIET)
def test_a_captured_function_gives_no_warning_of_numpys(function: Any) -> None:
    with warnings.catch_warnings(action="error"):
        found = tm.tensor(function)(X)
    with warnings.catch_warnings(action="ignore"):
        np.testing.assert_allclose(found, function(X))


def counted(x: Any) -> Any:
    with warnings.catch_warnings(record=True) as told:
        y = 1 / x
    return len(told), y


def any_told(x: Any) -> Any:
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        y = np.mean(x[:0])
    if told:
        return 0.0
    return y


def first_told(x: Any) -> Any:
    with warnings.catch_warnings(record=True) as told:
        y = np.log(x)
    return str(told[0].message), y


@pytest.mark.parametrize("function", [counted, any_told, first_told])
def test_who_asks_for_recorded_warnings_is_refused_by_name(function: Any) -> None:
    with pytest.raises(tm.CaptureError, match="look at recorded warnings"):
        tm.tensor(function).graph(X)


def test_who_silences_them_is_captured() -> None:
    def silent(x: Any) -> Any:
        with warnings.catch_warnings(record=True):
            return 1 / x

    assert tm.tensor(silent).graph(X) is not None
    np.testing.assert_array_equal(tm.tensor(silent)(X), [1, np.inf, -1])


def test_errors_that_are_asked_for_are_raised() -> None:
    def asks(x: Any) -> Any:
        with np.errstate(divide="raise"):
            return 5 / (x * 3)

    with pytest.raises(FloatingPointError, match="divide by zero"):
        tm.tensor(asks)(X)
