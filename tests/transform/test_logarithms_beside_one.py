"""Logarithms of 1 less a quotient or a root, of each base and negated, keep their digits where that is small, and near 1."""

import mpmath
import numpy as np
import pytest

import tensormagic as tm

PARTS = (1e-15, 1e-12, 1e-9, 1e-6, 1e-3, 0.1, 0.5, 0.9, 0.999, 1 - 1e-9)
POINTS = [(x, x * p) for x in (0.5, 2.0, 10.0) for p in PARTS]
TEXTS = {
    "natural": "np.log(1 - y / x)",
    "negated": "np.log(-(y / x - 1))",
    "to 2": "np.log2(1 - y / x)",
    "to 10": "np.log10(1 - y / x)",
    "to 10, negated": "np.log10(-(y / x - 1))",
    "with a factor": "x * np.log10(1 - y / x)",
    "of a root": "np.log2(1 - np.sqrt(y / x))",
    "of a root, negated": "np.log(-(np.sqrt(y / x) - 1))",
}
each = pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)


class Digits:
    """Functions of mpmath by NumPy's names."""

    sqrt, log, log10 = mpmath.sqrt, mpmath.log, mpmath.log10

    @staticmethod
    def log2(value):
        return mpmath.log(value, 2)


def lost(text, values):
    """The most bits that a value lacks."""
    exactly = eval(f"lambda x, y: {text}", {"np": Digits})
    with mpmath.workdps(60):
        errors = [
            abs(mpmath.mpf(float(v)) / exactly(mpmath.mpf(x), mpmath.mpf(y)) - 1) * 2**53
            for v, (x, y) in zip(values, POINTS, strict=True)
        ]
        return float(mpmath.log(1 + max(errors), 2))


@pytest.fixture(autouse=True)
def at_stable(monkeypatch):
    monkeypatch.setattr(tm.config, "math", "stable")


def function(text):
    return eval(f"lambda x, y: {text}", {"np": np})


@each
def test_arrays(text):
    x, y = np.array(POINTS).T
    assert lost(text, np.asarray(tm.tensor(function(text))(x, y))) < 2
    assert lost(text, np.asarray(tm.compile(function(text), x, y)(x, y))) < 3


@pytest.mark.parametrize("form", [float, np.float64, np.array])
@each
def test_numbers(text, form):
    f = tm.tensor(function(text))
    assert lost(text, [f(form(x), form(y)) for x, y in POINTS]) < 2


@each
def test_ends_are_numpys(text):
    ends = np.array([0.0, 1.0, 2.0, -1.0, np.inf, -np.inf, np.nan])
    x, y = np.meshgrid(ends, ends)
    with np.errstate(all="ignore"):
        expected = function(text)(x, y)
    np.testing.assert_allclose(np.asarray(tm.tensor(function(text))(x, y)), expected, rtol=1e-14)


def test_loops_and_branches():
    x, y = np.array(POINTS).T

    @tm.tensor
    def f(x, y, times):
        total = x * 0
        for _ in range(times):
            total = total + np.log2(1 - y / x)
        return total if times > 1 else -total

    assert lost("3 * np.log2(1 - y / x)", f(x, y, 3)) < 2.5
