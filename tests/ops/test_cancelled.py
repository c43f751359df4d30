"""Products with infinite slopes at 0 whose zero cancels: the slope is the one that the function comes near to."""

import numpy as np
import pytest

import tensormagic as tm

X = np.array([0.0, 1.0, 4.0])
PROGRAMS = {
    "x * sqrt(x)": (lambda x: x * np.sqrt(x), [0, 1.5, 3]),
    "sqrt(x) * x * 3": (lambda x: np.sqrt(x) * x * 3, [0, 4.5, 9]),
    "x**2 * sqrt(x)": (lambda x: x * x * np.sqrt(x), [0, 2.5, 20]),
    "x * log(x)": (lambda x: x * np.log(x), [-np.inf, 1, 1 + np.log(4)]),
    "x * x**0.5": (lambda x: x * x**0.5, [0, 1.5, 3]),
    "x * x**0.25 * 2": (lambda x: x**0.25 * x * 2, [0, 2.5, 2.5 * np.sqrt(2)]),
    "x**2 * x**0.75": (lambda x: x * x * x**0.75, [0, 2.75, 2.75 * 4**1.75]),
}


@pytest.mark.parametrize("kind", [float, np.float64, np.array])
@pytest.mark.parametrize("math", ["exact", "stable", "real"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_slopes_of_numbers_are_those_of_arrays(name, math, kind, monkeypatch):
    monkeypatch.setattr(tm.config, "tier", "numpy")
    monkeypatch.setattr(tm.config, "math", math)
    function, expected = PROGRAMS[name]
    with np.errstate(all="ignore"):
        for x, slope in zip(X, expected, strict=True):
            np.testing.assert_allclose(tm.grad(function)(kind(x)), slope, rtol=1e-13)
            np.testing.assert_allclose(tm.jvp(function, (kind(x),), (kind(1.0),))[1], slope, rtol=1e-13)


@pytest.mark.parametrize("math", ["exact", "stable", "real"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_slopes_at_zero(name, math, monkeypatch):
    monkeypatch.setattr(tm.config, "tier", "numpy")
    monkeypatch.setattr(tm.config, "math", math)
    function, expected = PROGRAMS[name]
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(tm.grad(lambda x: function(x).sum())(X), expected, rtol=1e-14)
        slopes = tm.jvp(function, (X,), (np.ones(3),))[1]
    np.testing.assert_allclose(slopes, expected[: len(slopes)], rtol=1e-14)
    tm.check_grads(function, (X + 0.3,), order=2)


def test_what_does_not_cancel_stays(monkeypatch):
    monkeypatch.setattr(tm.config, "tier", "numpy")
    monkeypatch.setattr(tm.config, "math", "exact")
    with np.errstate(all="ignore"):
        found = tm.grad(lambda x, y: (y * np.sqrt(x)).sum())(X, np.array([2.0, 2.0, 0.0]))
        zeros = tm.grad(lambda x, y: (y * np.sqrt(x)).sum())(X[:2], np.zeros(2))
    np.testing.assert_array_equal(found, [np.inf, 1, 0])
    np.testing.assert_array_equal(zeros, [np.nan, 0])


PARTS = {
    "a slice": (lambda x: (x * np.sqrt(x))[:2], [0, 1.5, 0]),
    "a slice with a step": (lambda x: (x * np.log(x))[::2], [-np.inf, 0, 1 + np.log(4)]),
    "weights": (lambda x: np.arange(3.0) * (x * np.sqrt(x)), [0, 1.5, 6]),
    "turned around": (lambda x: (x[None, :] * np.sqrt(x[None, :])).T, [0, 1.5, 3]),
}


@pytest.mark.parametrize("math", ["exact", "stable"])
@pytest.mark.parametrize("name", PARTS)
def test_slopes_of_parts_at_zero(name, math, monkeypatch):
    monkeypatch.setattr(tm.config, "tier", "numpy")
    monkeypatch.setattr(tm.config, "math", math)
    function, expected = PARTS[name]
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(tm.grad(lambda x: function(x).sum())(X), expected, rtol=1e-14)
    tm.check_grads(function, (X + 0.3,), order=2)
