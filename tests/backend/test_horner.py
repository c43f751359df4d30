"""Steps of polynomials, which are rounded once: which sums are, and how near the results are."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import tensormagic as tm

COEFFICIENTS = [0.1, *(1 / k for k in range(1, 9))]


def in_a_row(x):
    p = 0.1
    for c in (1.0, 1 / 2, 1 / 3, 1 / 4, 1 / 5, 1 / 6, 1 / 7, 1 / 8):
        p = p * x + c
    return p


def by_index(x):
    p = 0 * x + 0.1
    for k in range(8):
        p = p * x + 1.0 / (k + 1)
    return p


def numbers_of_an_array(x, c):
    p = 0 * x + c[0]
    for k in range(1, 9):
        p = c[k] + x * p
    return p


def line(x):
    return x * 3 - 1


def cubic(x):
    return ((x + 2) * x - 3) * x + 1


def recurrence(x):
    for _ in range(8):
        x = x * 0.9 + 0.1
    return x


def squares(x):
    for k in range(8):
        x = x * x + 0.1 * k
    return x


def used_twice(x):
    p = ((x * 0.3 + 0.1) * x + 0.2) * x
    return (p + 0.5) * x + 0.25 - p


def differences(x, y):
    return ((x * y - y * x) * x + 1) * x - y * x


POLYNOMIALS = [in_a_row, by_index]


def text(f, *args, math="stable"):
    with tm.config.using(math=math):
        return tm.compile(f, *args).code


@pytest.mark.parametrize("f", POLYNOMIALS, ids=lambda f: f.__name__)
def test_steps_are_rounded_once(f):
    x = np.linspace(-1, 1, 500)
    assert "multiply_add" in text(f, x)
    assert "multiply_add" not in text(f, x, math="exact")
    assert "multiply_add" not in text(f, x, math="stable without fusion")


def test_steps_with_numbers_of_an_array_are_rounded_once():
    assert "multiply_add" in text(numbers_of_an_array, np.linspace(-1, 1, 500), np.array(COEFFICIENTS))


@pytest.mark.parametrize("f", [line, recurrence, squares], ids=lambda f: f.__name__)
def test_short_sums_and_recurrences_are_not(f):
    assert "multiply_add" not in text(f, np.linspace(-1, 1, 500))


def test_what_is_read_twice_or_is_no_number_is_not():
    x = np.linspace(-1, 1, 500)
    assert "multiply_add" not in text(differences, x, x + 0.1)
    assert "multiply_add" not in text(used_twice, x)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("f", [*POLYNOMIALS, cubic], ids=lambda f: f.__name__)
def test_values(f, dtype):
    x = np.random.default_rng(0).uniform(-2, 2, 300).astype(dtype)
    with tm.config.using(tier="numba"):
        found = tm.tensor(f)(x)
    expected = f(x)
    assert found.dtype == expected.dtype
    close = 40 * np.finfo(dtype).eps * np.abs(in_a_row(np.abs(x.astype(float))) + 20)
    assert np.all(np.abs(found - expected) <= close)


def test_results_are_nearer_than_numpys():
    x = np.random.default_rng(1).uniform(-1, 1, 400)
    with tm.config.using(tier="numba"):
        found = tm.tensor(in_a_row)(x)
    true = [in_a_row_exactly(Fraction(v)) for v in x]
    ours, numpys = (
        sum(abs(float(Fraction(v) - t)) for v, t in zip(each, true, strict=True)) for each in (found, in_a_row(x))
    )
    assert ours < numpys


def in_a_row_exactly(x):
    p = Fraction(0.1)
    for k in range(1, 9):
        p = p * x + Fraction(1 / k)
    return p


def test_special_values():
    x = np.array([np.inf, -np.inf, np.nan, 0.0, -0.0, 1e300, -1e300, 5e-324])
    with tm.config.using(tier="numba"), np.errstate(all="ignore"):
        assert np.array_equal(tm.tensor(in_a_row)(x), in_a_row(x), equal_nan=True)


def test_a_root_of_a_line_stays_exactly_zero():
    with tm.config.using(tier="numba"):
        assert np.all(tm.tensor(line)(np.full(100, 1 / 3)) == 0)
