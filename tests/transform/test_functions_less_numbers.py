"""Functions less the number that they come to at a point keep their digits near it, whatever the function: sums, quotients, slopes."""

import mpmath
import numpy as np
import pytest

import tensormagic as tm
from tests.transform.kept_digits import columns, lost_by_arrays, lost_by_numbers, lost_compiled, number

SIZES = tuple(10.0**-k for k in range(1, 13, 2))
SMALL = [(x, y) for x in SIZES for y in (0.3, 2.0)]
LARGE = [(x, y) for x in (3.0, 1e3, 1e6, 1e9, 1e12) for y in (0.3, 2.0)]
CASES = {  # text, inputs
    "length": ("np.hypot(1, x) - 1", SMALL),
    "length beside a side": ("3 - np.hypot(x, 3)", SMALL),
    "root of two": ("np.sqrt(2 + x) - np.sqrt(2)", SMALL),
    "cube root": ("np.cbrt(8 - x) - 2", SMALL),
    "exponential": ("np.e - np.exp(1 - x)", SMALL),
    "eighth of a turn": ("np.arctan(1 + x) - np.pi / 4", SMALL),
    "twelfth of a turn": ("np.arcsin(0.5 - x) - np.pi / 6", SMALL),
    "softplus": ("np.log(1 + np.exp(-x)) - np.log(2)", SMALL),
    "logarithm": ("np.log(10 + x) - np.log(10)", SMALL),
    "logarithm to base 2": ("np.log2(3 + x) - np.log2(3)", SMALL),
    "cosine": ("np.cos(np.pi / 3 + x) - 0.5", SMALL),
    "sine": ("np.sin(np.pi / 4 - x) - np.sqrt(0.5)", SMALL),
    "arccosine": ("np.arccos(x) - np.pi / 2", SMALL),
    "arcsine near its end": ("np.arcsin(1 - x) - np.pi / 2", SMALL),
    "arccosine near its end": ("np.arccos(x - 1) - np.pi", SMALL),
    "twice an arccosine": ("np.pi - 2 * np.arccos(x)", SMALL),
    "far arctangent": ("np.pi / 2 - np.arctan(x)", LARGE),
    "far arctangent, scaled": ("1 - 2 / np.pi * np.arctan(x)", LARGE),
    "arctangent of a reciprocal": ("np.arctan(1 / x) - np.pi / 2", SMALL),
    "far arctangent and more": ("np.arctan(x) - np.pi / 2 + 1 / x", LARGE[2:]),
    "direction": ("np.arctan2(x, y) - np.pi / 2", LARGE),
    "direction behind": ("np.pi - np.arctan2(x, -y)", SMALL),
    "direction less its tangent": ("np.arctan2(x, y) - x / y", SMALL),
    "direction less its sine": ("np.arctan2(x, 1) - x", SMALL),
    "size of a cosine": ("1 - np.abs(np.cos(x))", SMALL),
    "cosine by its sine": ("np.sqrt(1 - np.sin(x) ** 2) - 1", SMALL),
    "quotient less its limit": ("(np.exp(x) - np.cos(x)) / x - 1", SMALL),
    "cube less its limit": ("(np.sin(x) - x) / x ** 3 + 1 / 6", SMALL),
    "length less its beginning": ("np.hypot(1, x) - 1 - x ** 2 / 2", SMALL),
    "length over a square": ("(np.hypot(1, x) - 1) / x ** 2 - 0.5", SMALL),
    "length beside another side": ("np.hypot(x, y) - y - x ** 2 / (2 * y)", SMALL),
    "normalised sine": ("np.sinc(x) - 1", SMALL),
    "powers of two": ("2.0 ** x - 1 - x * np.log(2)", SMALL),
}
each = pytest.mark.parametrize("name", CASES)


def few(lost):
    """Five bits at most, where a series begins, and one and a half on average: the texts lose 20 on average, and all."""
    return max(lost) < 5 and np.mean(lost) < 1.5


@each
def test_values_keep_their_digits(name):
    assert few(lost_by_arrays(*CASES[name]))


@each
@pytest.mark.parametrize("form", [float, np.float64, np.array])
def test_values_of_numbers_keep_them(name, form):
    assert few(lost_by_numbers(form, *CASES[name]))


@each
def test_slopes_keep_them(name):
    assert few(lost_by_arrays(*CASES[name], 0))


@pytest.mark.parametrize(
    "name", ["length", "softplus", "far arctangent", "direction behind", "quotient less its limit"]
)
def test_compiled_values_keep_them(name):
    assert few(lost_compiled(*CASES[name]))


def test_values_within_branches_and_loops_keep_them():
    @tm.tensor
    def total(x):
        found = 0.0
        for k in range(3):
            if x[k] < 1:
                found = found + (np.arcsin(1 - x[k]) - np.pi / 2)
            if x[k] >= 1:
                found = found + (np.pi / 2 - np.arctan(x[k]))
        return found

    x = np.array([1e-12, 1e9, 3e-11])
    with mpmath.workdps(50):
        mp = mpmath.mpf
        right = mp(np.pi / 2)
        true = mpmath.asin(1 - mp(x[0])) - right + right - mpmath.atan(mp(x[1])) + mpmath.asin(1 - mp(x[2])) - right
        assert abs(float(total(x)) - true) < 4e-16 * abs(true)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_special_values_are_those_of_the_text(dtype):
    x = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0, 2.0, -2.0, 1e-30, 5e-324, 1e30], dtype)
    pairs = np.array([(a, b) for a in x for b in x], dtype)
    for text, _ in CASES.values():
        f = number(text, 2)
        with np.errstate(all="ignore"):
            plain = f(*pairs.T)
        found = tm.tensor(f)(*pairs.T.copy())
        tiny = ((pairs != 0) & (abs(pairs) < 1e-20)).any(1)  # whose cubes are 0: rules say that they have values there
        assert not (np.isnan(found) & ~np.isnan(plain)).any(), text
        assert not (np.isnan(plain) & ~np.isnan(found) & ~tiny).any(), text
        numeric = np.isfinite(plain) | tiny
        assert np.array_equal(plain[~numeric], found[~numeric], equal_nan=True), text
        numeric &= ((pairs == 0) | (abs(pairs) > 0.5)).all(1)  # near 0 the text has no digits
        size = np.maximum(abs(plain[numeric]), 16)
        assert (abs(plain[numeric] - found[numeric]) <= 8 * np.finfo(dtype).eps * size).all(), text


def test_exact_values_are_numpys(monkeypatch):
    monkeypatch.setattr(tm.config, "math", "exact")
    for text, points in CASES.values():
        given, f = columns(points), number(text, 2)
        assert np.array_equal(np.asarray(tm.tensor(f)(*given)), f(*given))
