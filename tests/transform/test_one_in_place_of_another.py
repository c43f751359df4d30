"""Sums that cancel where operands are equal, or where a function undoes another: digits of values and slopes, no input the worse."""

from __future__ import annotations

import numpy as np
import pytest

import tensormagic as tm
from tensormagic.transform.rewriting.sums.factors import factored
from tests.transform.kept_digits import lost_by_arrays, lost_by_numbers
from tests.transform.never_worse import compared

NEAR = [(0.3, 0.3 + 3e-9), (0.7, 0.7 - 2e-6), (0.45, 0.4501)]
TURNED = [(0.3, 1e-9), (0.8, 3e-6), (0.6, 2e-3)]
THREE = [(1.7, 0.9, 1.7 + 2e-9), (1.2, 1.9, 1.2 - 1e-6), (2.3, 0.6, 2.3002)]
TEXTS = {  # inputs, the operands that slopes are by
    "1 - np.sqrt(x * y) - np.sqrt((1 - x) * (1 - y))": (NEAR, (0, 1)),
    "1 - (np.sqrt(x * y) + np.sqrt((1 - x) * (1 - y)))": (NEAR, (0, 1)),
    "np.sqrt(1 - np.sqrt(x * y) - np.sqrt((1 - x) * (1 - y)))": (NEAR, ()),
    "np.arccos((x * y + 1) / np.sqrt((x * x + 1) * (y * y + 1)))": (NEAR, ()),
    "1 - (x * y + 1) / (np.sqrt(x * x + 1) * np.sqrt(y * y + 1))": (NEAR, (0, 1)),
    "x - np.arctan((1 - y) * np.tan(x))": (TURNED, (1,)),
    "np.arcsin((1 - y) * np.sin(x)) - x": (TURNED, (0, 1)),
    "x - np.log(np.exp(x) + y)": (TURNED, (0, 1)),
    "x - np.sinh(np.arcsinh(x) - y)": (TURNED, (0, 1)),
    "1 / (1 / x - 1 / y) - x": ([(y, x) for x, y in TURNED], (0, 1)),
    "1 / (1 / x + 1 / y) - x": ([(y, x) for x, y in TURNED], (0, 1)),
    "((x - z) / (x + z)) ** 2 - ((y - x) / (x + y)) ** 2": ([(1.7, y, z) for y, z in NEAR], (1, 2)),
    "((x - y) / (x + y)) ** 2 - ((x - 1) / (x + 1)) ** 2": ([(1.7, 1 + y) for _, y in TURNED], (0, 1)),
    "x * np.arctan(y / x) - z * np.arctan(y / z)": (THREE, ()),
    "x * np.exp(-y * x) - z * np.exp(-y * z)": (THREE, (0, 1, 2)),
    "np.arctan(y / x) / x - np.arctan(y / z) / z": (THREE, (0, 1, 2)),
}
CLASSES = {"0-d": np.array, "numpy": np.float64, "python": float}


@pytest.fixture(autouse=True)
def at_stable(monkeypatch):
    monkeypatch.setattr(tm.config, "math", "stable")


@pytest.mark.parametrize("text", TEXTS)
def test_values_of_arrays(text):
    assert max(lost_by_arrays(text, TEXTS[text][0])) < 5


@pytest.mark.parametrize("form", CLASSES)
@pytest.mark.parametrize("text", TEXTS)
def test_values_of_single_numbers(text, form):
    assert max(lost_by_numbers(CLASSES[form], text, TEXTS[text][0])) < 5


@pytest.mark.parametrize(("text", "by"), [(t, k) for t, (_, every) in TEXTS.items() for k in every])
def test_slopes(text, by):
    assert max(lost_by_arrays(text, TEXTS[text][0], by)) < 6


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("text", TEXTS)
def test_no_input_is_less_accurate(text, dtype):
    found = compared("", text, np.dtype(dtype), count=900, seed=7, most=20)
    assert (found.worse, found.lost) == ([], [])


@pytest.mark.parametrize(("x", "y", "z"), [(2, 3, 5), (-1, 4, 7), (3, 1, 2)])
def test_a_polynomial_is_its_factors(x, y, z):
    """``y * y * z - x * x * y - y * z * z + x * x * z`` is ``(y - z) * (y * z - x * x)``."""
    found = factored({(0, 2, 1): 1, (2, 1, 0): -1, (0, 1, 2): -1, (2, 0, 1): 1})
    assert found is not None
    assert len(found.factors) == 1

    def at(p):
        return sum(c * x**i * y**j * z**k for (i, j, k), c in p.items())

    value = found.number * at(found.rest)
    for factor, times in found.factors:
        value *= at(factor) ** times
    assert value == (y - z) * (y * z - x * x)
