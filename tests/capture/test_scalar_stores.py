"""NumPy's scalars that are stored into arrays of integers: which ones have to fit, and which ones are cut, is NumPy's own."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import tensormagic as tm

VALUES = [
    np.uint8([254, 1]),
    np.int64([300, -1]),
    np.int64([2**40, 3]),
    np.float64([300.7, 2]),
    np.float32([np.nan, 1]),
    np.float64([np.inf, 1]),
    np.uint64([2**63 + 1, 3]),
    np.int8([-1, 1]),
    np.bool_([True, False]),
]


def element(a: Any, v: Any) -> Any:
    a[0] = v[0]
    a[1] = v[1]
    return a


def part(a: Any, v: Any) -> Any:
    a[:1] = v[0]
    return a


def fill(a: Any, v: Any) -> Any:
    a.fill(v[0])
    return a


def listed(a: Any, v: Any) -> Any:
    a[:2] = [v[0], v[1]]
    return a


def masked(a: Any, v: Any) -> Any:
    a[a == 0] = v[0]
    return a


def chosen(a: Any, v: Any) -> Any:
    a[[0, 1]] = v[0]
    return a


def ended(run: Any, dtype: str, values: Any) -> Any:
    with warnings.catch_warnings(action="ignore"):
        try:
            return np.asarray(run(np.zeros(3, dtype), values)).tolist()
        except (OverflowError, ValueError) as error:
            return type(error)


@pytest.mark.parametrize("dtype", ["i1", "u1", "i2", "i8", "u8"])
@pytest.mark.parametrize("store", [element, part, fill, listed, masked, chosen])
def test_a_scalar_that_does_not_fit_ends_as_in_numpy(store: Any, dtype: str):
    for values in VALUES:
        wanted = ended(store, dtype, values)
        assert ended(tm.tensor(store), dtype, values) == wanted, values


def test_some_raise_and_some_are_cut():
    assert ended(element, "i1", VALUES[0]) is OverflowError
    assert ended(masked, "i1", VALUES[0]) == [-2, -2, -2]
    assert ended(element, "u1", VALUES[1]) == [44, 255, 0]
