"""Slopes of quotients that are divided part by part: forms beside a quotient, powers of a sum by a shape, and what grows."""

from __future__ import annotations

import numpy as np
import pytest

import tensormagic as tm
from tests.transform.kept_digits import lost, lost_by_arrays, lost_by_numbers, lost_compiled, number

TINY = (1e-9, 1e-6, 1e-3, 0.05)
RATES = [(r, r * (1 + t), 7.0) for r in (0.01, 0.05, 0.2) for t in TINY]
SHAPES = [(x, t, z) for x, z in ((0.3, 1.0), (1.7, 0.7), (5.0, 4.0)) for t in TINY]
MANY = [(x, y, 0.7) for x in (1e-6, 0.05, 0.9) for y in (12.0, 1e3, 1e6)]
ANGLES = [(x, 0.5, 0.7) for x in (1e-6, 1e-3, 0.04, 0.4, 3.0)]
SLOPES = {  # text, inputs, the operand that the slope is by
    "growing annuity by a rate": ("(1 - ((1 + y) / (1 + x)) ** z) / (x - y)", RATES, 0),
    "growing annuity by the other": ("(1 - ((1 + y) / (1 + x)) ** z) / (x - y)", RATES, 1),
    "a number of years": ("2.5 / (x - y) * (1 - ((1 + y) / (1 + x)) ** 20)", RATES, 0),
    "growth less one, over a difference": ("(((1 + x) / (1 + y)) ** z - 1) / (x - y)", RATES, 1),
    "divided hyperbolic tangent": ("3 / x ** 2 * (x / np.tanh(x) - 1)", ANGLES, 0),
    "the same in one quotient": ("3 * (x / np.tanh(x) - 1) / (x * x)", ANGLES, 0),
    "with another factor": ("z / x ** 2 * (x / np.tanh(x) - 1)", ANGLES, 0),
    "nominal rate": ("y * ((1 + x) ** (1 / y) - 1)", MANY, 1),
    "nominal rate of two": ("y * ((1 + x) ** (2 / y) - 1)", MANY, 1),
    "nominal rate beside": ("z * y * ((1 + x) ** (1 / y) - 1)", MANY, 1),
    "Pareto's tail": ("(1 + y * x / z) ** (-1 / y)", SHAPES, 1),
    "Pareto's distribution": ("1 - (1 + y * x / z) ** (-1 / y)", SHAPES, 1),
    "Pareto's density": ("(1 + y * x / z) ** (-1 / y - 1) / z", SHAPES, 1),
    "of extremes": ("np.exp(-((1 + y * x) ** (-1 / y)))", SHAPES, 1),
    "a generalised exponential": ("(1 + y * x) ** (1 / y)", SHAPES, 1),
    "the same by a logarithm": ("np.exp(np.log(1 + y * x) / y)", SHAPES, 1),
    "Pareto's likelihood": ("-np.log(z) - (1 / y + 1) * np.log(1 + y * x / z)", SHAPES, 1),
    "a logarithm beside a quotient": ("np.log(1 + y * x) * (1 + 1 / y)", SHAPES, 1),
    "and less it": ("(1 - 1 / y) * np.log(1 + y * x)", SHAPES, 1),
}
VALUES = {  # text, inputs
    "resonance": ("1 / np.sqrt((1 - x ** 2) ** 2 + (2 * y * x) ** 2) - 1", [(t, 0.1, 0.7) for t in (*TINY, 0.4, 1.3)]),
    "resonance the other way round": (
        "1 - 1 / np.sqrt((1 - x * x) ** 2 + (2 * y * x) ** 2)",
        [(t, 0.1, 0.7) for t in TINY],
    ),
    "root of two squares": ("np.sqrt((1 + x) ** 2 + (y * x) ** 2) - 1", [(t, 0.5, 0.7) for t in (*TINY, -1e-5)]),
    "beside a number": ("np.sqrt((2 - x) ** 2 + (y * x) ** 2) - 2", [(t, 0.5, 0.7) for t in TINY]),
    "by hypot": ("np.hypot(1 - x, y * x) - 1", [(t, 0.5, 0.7) for t in TINY]),
}
each_slope, each_value = (pytest.mark.parametrize("name", of) for of in (SLOPES, VALUES))


@each_slope
def test_slopes_keep_their_digits(name):
    assert max(lost_by_arrays(*SLOPES[name])) < 6


@pytest.mark.parametrize("name", ["growing annuity by a rate", "nominal rate", "Pareto's tail", "Pareto's likelihood"])
def test_compiled_slopes_keep_them(name):
    assert max(lost_compiled(*SLOPES[name])) < 6


@pytest.mark.parametrize("form", [float, np.float64, np.array])
@pytest.mark.parametrize("name", ["growing annuity by a rate", "nominal rate", "Pareto's tail"])
def test_slopes_by_numbers_keep_them(name, form):
    assert max(lost_by_numbers(form, *SLOPES[name])) < 6


@each_slope
def test_values_of_the_same_keep_theirs(name):
    assert max(lost_by_arrays(*SLOPES[name][:2])) < 6


@each_value
def test_values_keep_their_digits(name):
    assert max(lost_by_arrays(*VALUES[name])) < 5


@pytest.mark.parametrize("text", ["(1 + y * x) ** (1 / y)", "np.log(1 + y * x) * (1 + 1 / y)"])
def test_what_is_nan_at_zero_stays_nan(text):
    f = number(text)
    given = np.array([0.5, 2.0]), np.zeros(2), np.ones(2)
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(tm.tensor(f)(*given), f(*given))


def test_a_branch_and_a_loop_have_them_too():
    x, y = np.array([0.3, 2.0, 5.0]), np.array([1e-9, 1e-6, 1e-3])

    def branch(y):
        return np.sum(np.where(x < 1, (1 + y * x) ** (1 / y), (1 + y * x) ** (-1 / y)))

    slopes = tm.tensor(lambda y: tm.grad(branch)(y))(y)
    for k, (text, sign) in enumerate((("(1 + y * x) ** (1 / y)", 1), *[("(1 + y * x) ** (-1 / y)", 1)] * 2)):
        assert max(lost(text, [(x[k], y[k], 1.0)], [sign * slopes[k]], 1)) < 6
