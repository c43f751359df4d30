"""Slopes of what is multiplied by what grows, or divided by what vanishes, term by term; and values that had lost digits by a form."""

import numpy as np
import pytest

import tensormagic as tm
from tests.transform.kept_digits import lost_by_arrays, lost_by_numbers, lost_compiled

TINY = (1e-9, 1e-6, 1e-3, 0.05)
LARGE = [(x, y, 0.7) for x in (0.3, 2.0) for y in (1e2, 1e4, 1e7)]
LARGE_FIRST = [(y, x, z) for x, y, z in LARGE]
SHARES = [(x, y, 0.7) for x in (0.1, 0.3, 0.8) for y in TINY]
ORDERS = [(x, 1 + y, z) for x, y, z in SHARES]
NEAR = [(x, x * (1 + y), 1.4) for x in (0.4, 2.0, 7.0) for y in TINY]
INSIDE = [(x, 2.0, 0.7) for x in (1e-9, -1e-5, 0.02, 0.3, -0.7, 0.99)]
HALVES = [(0.5 + s * y, 0.3, 0.7) for s in (1, -1) for y in (*TINY, 0.2)]
SLOPES = {  # text, inputs, the operand that the slope is by
    "compounding": ("(1 + x / y) ** y", LARGE, 1),
    "compounding down": ("(1 - x / y) ** y", LARGE, 1),
    "rate of compounding": ("(1 + x / y) ** y - 1", LARGE, 1),
    "none of many": ("1 - (1 - x / y) ** y", LARGE, 1),
    "fall in a time": ("y * y * np.log(np.cosh(x / y))", LARGE, 1),
    "terminal velocity": ("y * np.tanh(9.81 * x / y)", LARGE, 1),
    "arc of a chord": ("2 * x * np.arcsin(y / (2 * x))", LARGE_FIRST, 0),
    "charge": ("x * (1 - np.exp(-y / x))", LARGE_FIRST, 0),
    "capacity by the band": ("y * np.log2(1 + x / y)", LARGE, 1),
    "dead time": ("x * np.log10(1 - y / x)", LARGE_FIRST, 0),
    "of the natural logarithm": ("x * np.log(1 - y / x)", LARGE_FIRST, 0),
    "a length less a span": ("2 * x * np.sinh(y / (2 * x)) - y", LARGE_FIRST, 1),
    "what is lost by dead time": ("y - x * np.log(1 + y / x)", LARGE_FIRST, 1),
    "a fall less that without air": ("y * y * np.log(np.cosh(x / y)) - x * x / 2", LARGE, 0),
    "wave": ("x * np.sin(y / x)", LARGE_FIRST, 0),
    "order of Renyi": ("np.log(x ** (1 + y) + (1 - x) ** (1 + y)) / y", SHARES, 1),
    "order of Renyi near 1": ("np.log(x ** y + (1 - x) ** y) / (1 - y)", ORDERS, 1),
    "order of Tsallis": ("(1 - x ** (1 + y) - (1 - x) ** (1 + y)) / y", SHARES, 1),
    "order of Tsallis near 1": ("(1 - x ** y - (1 - x) ** y) / (y - 1)", ORDERS, 1),
    "three shares": ("(1 - x ** y - (z - x) ** y - (1 - z) ** y) / (y - 1)", ORDERS[:8], 1),
    "logarithmic mean": ("(x - y) / np.log(x / y)", NEAR, 0),
    "over a logarithmic mean": ("np.log(x / y) / (x - y)", NEAR, 1),
}
VALUES = {  # text, inputs
    "root": ("1 / np.sqrt(1 - x ** 2) - np.sqrt(1 - x ** 2)", INSIDE),
    "root of a product": ("1 / np.sqrt(1 - x * x) - np.sqrt(1 - x * x)", INSIDE),
    "root the other way round": ("np.sqrt(1 - x * x) - 1 / np.sqrt(1 - x * x)", INSIDE),
    "root of a sum": ("np.sqrt(1 + x) - 1 / np.sqrt(1 + x)", INSIDE),
    "root of a sum of squares": ("np.sqrt(1 + x * x) - 1 / np.sqrt(1 + x * x)", INSIDE),
    "power of a small quotient less 1": ("(x / y) ** (z - 1.4 + 1e-9) - 1", [(6e-12, 6e-4, 1.4), (1e-9, 5.0, 1.4)]),
    "divergence": ("x * ((x / z) ** (y - 1) - 1) / (y * (y - 1))", [(6e-12, 1.0003, 6e-4), (1.3e-10, 0.94, 5e-7)]),
    "capacity": ("1 + x * np.log2(x) + (1 - x) * np.log2(1 - x)", HALVES),
    "capacity by an entropy": ("1 - (-x * np.log2(x) - (1 - x) * np.log2(1 - x))", HALVES),
    "natural capacity": ("np.log(2) + x * np.log(x) + (1 - x) * np.log(1 - x)", HALVES),
    "level": ("20 * np.log10(x / y)", NEAR),
    "cents": ("1200 * np.log2(x / y)", NEAR),
    "odds to base 2": ("np.log2(x / (1 - x))", HALVES),
    "growth": ("np.log10((1 + x) / (1 + y))", [(x, y, 0.7) for x in TINY for y in (2e-5, 0.03)]),
    "none of many": ("1 - (1 - x / y) ** y", LARGE),
    "hardly any of many": ("1 - (1 - x / y) ** z", LARGE),
}
each_slope, each_value = (pytest.mark.parametrize("name", of) for of in (SLOPES, VALUES))


@each_slope
def test_slopes_keep_their_digits(name):
    assert max(lost_by_arrays(*SLOPES[name])) < 5


@pytest.mark.parametrize("name", ["compounding", "fall in a time", "order of Tsallis", "order of Renyi", "charge"])
def test_compiled_slopes_keep_them(name):
    assert max(lost_compiled(*SLOPES[name])) < 5


@pytest.mark.parametrize("form", [float, np.float64, np.array])
@pytest.mark.parametrize("name", ["compounding", "terminal velocity", "order of Tsallis near 1", "logarithmic mean"])
def test_slopes_by_numbers_keep_them(name, form):
    assert max(lost_by_numbers(form, *SLOPES[name])) < 5


@each_slope
def test_values_of_the_same_keep_theirs(name):
    assert max(lost_by_arrays(*SLOPES[name][:2])) < 5


@each_value
def test_values_keep_their_digits(name):
    assert max(lost_by_arrays(*VALUES[name])) < 5


@each_value
@pytest.mark.parametrize("form", [float, np.float64, np.array])
def test_values_of_numbers_keep_them(name, form):
    assert max(lost_by_numbers(form, *VALUES[name])) < 5


def test_where_nothing_is_divided_by_nothing_the_text_decides():
    x, y = np.array([0.3, 0.7, 1.0]), np.array([0.0, 0.0, 0.1])
    f = tm.tensor(lambda x, y: (1 - x ** (1 + y) - (1 - x) ** (1 + y)) / y)
    with np.errstate(all="ignore"):
        found = f(x, y)
    assert np.isnan(found[:2]).all()
    assert found[2] == 0


@pytest.mark.parametrize("function", [np.log, np.log2, np.log10])
@pytest.mark.parametrize("base", [2.0, 10.0])
def test_logarithms_of_whole_powers_are_whole(function, base):
    y = np.array([1.0, 2.0, 5.0])
    for n in (-3, -1, 0, 1, 2, 5):
        x = y * base**n
        assert np.allclose(tm.tensor(lambda x, y: function(x / y))(x, y), function(x / y), rtol=1e-15, atol=0)
