"""Powers beside powers: of one base, with one exponent, and sums of those whose exponents are small."""

from __future__ import annotations

import numpy as np
import pytest

import tensormagic as tm
from tests.transform.kept_digits import lost_by_arrays, lost_by_numbers, lost_compiled
from tests.transform.never_worse import compared, function_of

NEAR = [(0.7, 0.7 * (1 + 1e-9)), (3.0, 2.99), (1.1, 1.1000004), (0.5, 0.4)]
RATES = [(1e-9, 3.3), (2e-5, 12.0), (0.03, 0.7), (0.2, 2.5)]
SHARES = [(0.3, 0.6, 1e-8), (0.05, 0.9, 1e-3), (0.7, 0.2, 0.04), (0.9, 0.3, 1.5)]
TEXTS = {  # text, inputs, bits that values may lack, and slopes
    "the potential of two atoms": ("(x / y)**12 - (x / y)**6", NEAR, 4, 4),
    "with its depth": ("4 * 1.6 * ((x / y)**12 - (x / y)**6)", NEAR, 4, 5),
    "powers whose exponents differ by a number": (
        "y**(x + 2) - y**x",
        [(0.4, 1.0000003), (3.1, 1.2), (2.2, 0.9999)],
        3,
        5,
    ),
    "growth and loss at one rate": ("(1 + x)**y * (1 - x)**y - 1", RATES, 3, 4),
    "the same from 1": ("1 - (1 - x)**y * (1 + x)**y", RATES, 3, 4),
    "Clayton's copula": ("(x**(-z) + y**(-z) - 1)**(-1 / z)", SHARES, 3, 14),
    "a production function": ("(x * 1.7**(-z) + (1 - x) * y**(-z))**(-1 / z)", SHARES, 3, 14),
    "a mean of powers": ("((x**z + y**z) / 2)**(1 / z)", SHARES, 3, 14),
}
ROWS = [(name, by) for name, (text, points, *_) in TEXTS.items() for by in (None, *range(len(points[0])))]
FORMS = {"0-d": np.array, "numpy": np.float64, "python": float}


@pytest.fixture(autouse=True)
def at_stable(monkeypatch):
    monkeypatch.setattr(tm.config, "math", "stable")


def _allowed(name, by):
    return TEXTS[name][2 if by is None else 3]


@pytest.mark.parametrize(("name", "by"), ROWS)
@pytest.mark.parametrize("how", [lost_by_arrays, lost_compiled])
def test_digits_are_kept(name, by, how):
    text, points, *_ = TEXTS[name]
    assert max(how(text, points, by)) < _allowed(name, by)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("name", "by"), ROWS)
def test_digits_of_numbers_are_kept(name, by, form):
    text, points, *_ = TEXTS[name]
    assert max(lost_by_numbers(FORMS[form], text, points, by)) < _allowed(name, by)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", TEXTS)
def test_no_input_is_less_accurate(name, dtype):
    found = compared("", TEXTS[name][0], np.dtype(dtype), count=900, seed=7, most=20)
    assert (found.worse, found.lost) == ([], [])


@pytest.mark.parametrize(
    "text", ["x**3.5 - x**2.5", "x**y - x**(y + 1)", "x**0.2 * y**0.3 - 1", "(x**2 + y**2 - 1)**7.5"]
)
def test_others_stay_as_they_are(text):
    function, arity = function_of(text)
    points = [np.linspace(0.8, 1.9, 40), np.linspace(1.2, 3, 40)][:arity]
    np.testing.assert_allclose(np.asarray(tm.tensor(function)(*points)), function(*points), rtol=1e-13, atol=1e-13)
