"""Sums in which functions are what they begin with, and a rest: digits of values and slopes, and where nothing may be gained."""

from __future__ import annotations

import numpy as np
import pytest

import tensormagic as tm
from tensormagic.transform.rewriting import rewrite
from tests.transform.kept_digits import columns, lost, number
from tests.transform.never_worse import compared, function_of, truth
from tests.transform.oracle import ulps

FORMS = {"array": lambda x: np.array([x, x]), "0-d": np.array, "numpy": np.float64, "python": float}
EQUAL = [(0.3, 0.3 + 1e-9, 0.7), (2.0, 0.1, 0.7)]
ANGLES = [(0.3, 1e-7, 0.7), (0.999, 1e-4, 0.7), (1e-9, 0.3, 0.7)]
SMALL = [(x, y, 0.7) for x in (1e-9, 1e-5, 0.03) for y in (2e-6, 0.4, 3.0)]
VALUES = {  # text, inputs
    "a product of what is near 1": ("1 - (1 - x)**y * (1 + x * y)", SMALL),
    "a logistic function's slope": ("np.exp(x) / (1 + np.exp(x))**2 - 0.25", SMALL),
    "a share that grows": ("x * np.exp(-y * z) / (1 - x + x * np.exp(-y * z)) - x", SMALL),
    "kinetic energy": ("y * (1 / np.sqrt(1 - x**2) - 1) - y * x**2 / 2", SMALL),
    "a grating": ("(np.sin(x * y) / (y * np.sin(x)))**2 - 1", SMALL),
    "refraction": ("np.arcsin(y / 4 * np.sin(x)) - x * (y / 4)", SMALL),
    "two exponentials and a line": ("np.exp(-x) - np.exp(-x * y) - x * (y - 1)", SMALL),
    "an annuity beside years": ("x / (1 - (1 + x)**(-y)) - 1 / y", SMALL),
    "growth beside growth": ("(np.exp(x * y) - 1) / (np.exp(x) - 1) - y", SMALL),
    "growth beside simple interest": ("((1 + x)**y - 1) / (x * y) - 1", SMALL),
    "a distance of two points": (
        "(1 - x * np.cos(y))**2 + (x * np.sin(y))**2 - (1 - x)**2",
        ANGLES,
    ),
    "no function": ("(1 + x) * (1 + y) - 1 - x - y", SMALL),
    "a square times a number": (
        "np.pi * (x**2 - y**2) - 2 * np.pi * y * (x - y)",
        EQUAL,
    ),
}
SLOPES = {  # the name of a text above, the operand that the slope is by
    "a product of what is near 1": (0, 1),
    "a logistic function's slope": (0,),
    "a share that grows": (0,),
    "a grating": (0,),
    "refraction": (0, 1),
    "two exponentials and a line": (0, 1),
    "growth beside growth": (1,),
}


@pytest.fixture(autouse=True)
def at_stable(monkeypatch):
    monkeypatch.setattr(tm.config, "math", "stable")


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", VALUES)
def test_values_keep_their_digits(name, form):
    text, points = VALUES[name]
    function, arity = function_of(text)
    for point in (p[:arity] for p in points):
        found = np.ravel(tm.tensor(function)(*map(FORMS[form], point)))[0]
        with np.errstate(all="ignore"):
            true = truth(tm.trace(function, *map(np.array, point)), point)
        assert ulps(float(found), true, np.float64) < 24, point


@pytest.mark.parametrize(("name", "by"), [(n, k) for n, every in SLOPES.items() for k in every])
def test_slopes_keep_their_digits(name, by):
    text, points = VALUES[name]
    f = number(text)
    slopes = tm.tensor(lambda *a: tm.grad(lambda *b: np.sum(f(*b)), argnums=by)(*a))(*columns(points))
    assert max(lost(text, points, slopes, by)) < 6


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", VALUES)
def test_no_input_is_less_accurate(name, dtype):
    found = compared("", VALUES[name][0], np.dtype(dtype), count=900, seed=7, most=20)
    assert (found.worse, found.lost) == ([], []), name


@pytest.mark.parametrize(
    "text",
    [
        "np.exp(x) * 134217729.0 - (np.exp(x) * 134217729.0 - np.exp(x))",
        "(np.exp(x) + y) - np.exp(x) - y",
        "np.sqrt(1 + x) - ((np.sqrt(1 + x) + y) - y)",
    ],
)
def test_code_that_works_with_roundings_stays(text):
    function, arity = function_of(text)
    points = [np.linspace(1e-9, 0.1, 40), np.linspace(0.7, 3, 40)][:arity]
    np.testing.assert_array_equal(tm.tensor(function)(*points), function(*points))


def test_a_form_is_not_used_where_its_own_terms_cancel():
    """``sin(x + y)`` has its steps in ``y`` at whatever ``x``: a form by what is small alone would take the place of theirs."""
    function, _ = function_of("np.sin(x + y) - np.sin(x) - y * np.cos(x)")
    done = rewrite(tm.trace(function, np.ones(3), np.ones(3)), "stable")
    assert any(f.rule.name.startswith("x * cos(x) - sin(x)") for f in done.fired)
