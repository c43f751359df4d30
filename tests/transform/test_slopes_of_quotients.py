"""Slopes of quotients that are 0 / 0 somewhere keep their digits near it, also where a condition stands between form and text."""

import mpmath
import numpy as np
import pytest

import tensormagic as tm
from tensormagic.transform.rewriting import rewrite
from tests.transform.kept_digits import Digits, columns, lost, lost_by_arrays, lost_by_numbers, lost_compiled, number

SIZES = (1e-12, 1e-9, 1e-6, 1e-4, 0.01, 0.1)
SMALL = [(x, y) for x in SIZES for y in (0.5, 2.0, 30.0, 0.1)]
FEW = [(x, y) for x in SIZES for y in (0.5, 2.0)]
NEAR = [(x, x + d) for x in (0.5, 2.0) for d in (1e-12, 1e-9, 1e-6, 1e-3, 0.1)]
FURTHER = [(1 + d, 1.0) for d in (1e-12, 1e-9, 1e-6, 1e-4, 0.01, 0.1)]
YEARS = [(x, y) for x in SIZES for y in (2.0, 30.0, 360.0)]
SHORT = [(x, y) for x in SIZES for y in (1e-9, 1e-4, 0.01, 0.3, 1.0)]
CALM = [(x * y, x) for x in SIZES for y in (0.3, 1.0, 5.0)]


def bond(root, reversion, time):
    """After Cox, Ingersoll and Ross."""
    rise = f"(np.exp(np.sqrt({root}) * {time}) - 1)"
    return f"2 * {rise} / ((np.sqrt({root}) + {reversion}) * {rise} + 2 * np.sqrt({root}))"


BOND, BOND_BY_VOLATILITY = bond("x * x + 0.02", "x", "y"), bond("y * y + 2 * x * x", "y", "3")
BOND_BY_REVERSION = bond("x * x + 2 * y * y", "x", "3")
CASES = {  # text, inputs, how many bits may be lost
    "Box and Cox": ("(y ** x - 1) / x", SMALL, 3),
    "Box and Cox, turned round": ("(1 - y ** x) / x", SMALL, 3),
    "cosine": ("(1 - np.cos(x * y)) / x ** 2", SMALL, 4),
    "cosine by one": ("(1 - np.cos(x * y)) / x", SMALL, 4),
    "cosine of one": ("(1 - np.cos(x)) / x ** 2", FEW, 4),
    "cosine less 1": ("(np.cos(x * y) - 1) / x ** 2", SMALL, 4),
    "hyperbolic cosine": ("(np.cosh(x * y) - 1) / x ** 2", FEW, 4),
    "root of a cosine": ("np.sqrt(1 - np.cos(x))", FEW, 4),
    "logarithm of a cosine": ("np.log(1 - np.cos(x))", FEW, 4),
    "exponentials": ("(np.exp(-x) - np.exp(-y)) / (y - x)", NEAR, 3),
    "exponentials, rising": ("(np.exp(x) - np.exp(y)) / (x - y)", NEAR, 3),
    "exponentials with a factor": ("y * (np.exp(-x) - np.exp(-y)) / (y - x)", NEAR, 5),
    "cosines": ("(np.cos(x) - np.cos(y)) / (x - y)", FURTHER, 3),
    "sines": ("(np.sin(x) - np.sin(y)) / (x - y)", FURTHER, 3),
    "annuity": ("(1 - (1 + x) ** -y) / x", YEARS, 4),
    "annuity with a factor": ("1000 * (1 - 1 / (1 + x) ** y) / x", YEARS, 4),
    "annuity of thirty years": ("(1 - (1 + x) ** -30) / x", YEARS, 4),
    "future value": ("((1 + x) ** y - 1) / x", YEARS, 4),
    "future value with a factor": ("y * ((1 + x) ** y - 1) / x", YEARS, 4),
    "mortgage": ("x / (1 - (1 + x) ** -y)", YEARS, 4),
    "mortgage by growth": ("x * (1 + x) ** y / ((1 + x) ** y - 1)", YEARS, 6),
    "Box and Cox with a factor": ("y * (y ** x - 1) / x", SMALL, 4),
    "Box and Cox beside 0": ("np.where(x == 0, np.log(y), (y ** x - 1) / x)", SMALL, 4),
    "logarithm of a hyperbolic cosine": ("np.log(np.cosh(x * y)) / x ** 2", SMALL, 7),
    "logarithm of one of a root": ("np.log(np.cosh(np.sqrt(x) * y)) / x", SMALL, 7),
    "by a hyperbolic cosine": ("x ** 2 / (np.cosh(x) - 1)", FEW, 3),
    "by a cosine": ("x ** 2 / (1 - np.cos(x * y))", SMALL, 4),
    "by a sine": ("x ** 3 / (x - np.sin(x))", FEW, 3),
    "by a root": ("x / (np.sqrt(1 + x) - 1)", FEW, 4),
    "bond": (BOND, SHORT, 4),
    "bond by its volatility": (BOND_BY_VOLATILITY, CALM, 6),
    "bond by its reversion": (BOND_BY_REVERSION, CALM, 4),
    "logarithms": ("(np.log(x) - np.log(y)) / (x - y)", NEAR, 4),
    "lens": ("1 / (1 / x - 1 / y)", NEAR, 4),
    "roots below": ("1 / (np.sqrt(x) - np.sqrt(y))", NEAR, 4),
    "exponentials below": ("y / (np.exp(x) - np.exp(y))", NEAR, 4),
    "exponential of a square": ("np.exp(-(np.sqrt(x) - np.sqrt(y)) ** 2 / 2)", NEAR, 4),
    "square of a difference": ("x * (np.sqrt(x) - np.sqrt(y)) ** 2", NEAR, 4),
    "difference of cosines below": ("1 / (np.cosh(x) - np.cosh(y)) ** 2", NEAR, 5),
    "spherical Bessel function": ("np.sin(x) / x ** 2 - np.cos(x) / x", FEW, 4),
    "slope of a normalised sine": ("np.cos(x) / x - np.sin(x) / x ** 2", FEW, 4),
    "hyperbolic beside its quotient": ("np.cosh(x) / x - np.sinh(x) / x ** 2", FEW, 4),
    "exponential beside its rise": ("np.exp(x) / x - (np.exp(x) - 1) / x ** 2", FEW, 4),
}
each = pytest.mark.parametrize("name", CASES)


@each
def test_slopes_keep_their_digits(name):
    text, points, most = CASES[name]
    assert max(lost_by_arrays(text, points, 0)) < most


@pytest.mark.parametrize(
    "name",
    [
        *(
            "Box and Cox",
            "cosine",
            "hyperbolic cosine",
            "exponentials",
            "cosines",
            "annuity",
            "mortgage",
            "by a cosine",
            "bond",
        ),
        *("Box and Cox beside 0", "logarithm of a hyperbolic cosine", "lens", "spherical Bessel function"),
    ],
)
def test_compiled_slopes_keep_them_too(name):
    text, points, most = CASES[name]
    assert max(lost_compiled(text, points, 0)) < most + 1


@pytest.mark.parametrize("form", [float, np.float64, np.array])
@pytest.mark.parametrize(
    "name", ["cosine", "exponentials", "annuity", "by a hyperbolic cosine", "Box and Cox beside 0"]
)
def test_slopes_of_numbers(name, form):
    text, points, most = CASES[name]
    assert max(lost_by_numbers(form, text, points[::5], 0)) < most


def test_slopes_within_loops_and_branches():
    rates = np.array([r for r, _ in YEARS])

    @tm.tensor
    def rolled(rates, years):
        def worth(rates):
            total = 0.0
            for _ in range(3):
                total = total + np.sum((1 - (1 + rates) ** -years) / rates)
            return total if years > 0 else np.sum(rates)

        return tm.grad(worth)(rates)

    points = [(r, 30.0) for r in rates]
    assert max(lost("3 * (1 - (1 + x) ** -y) / x", points, rolled(rates, 30.0), 0)) < 4


def test_slopes_are_numpys_where_nothing_vanishes():
    """At 0 and at infinity a quotient is what its text is, and its slope is no number where the text has none."""
    ends = np.array([0.0, -0.0, np.inf, np.nan])
    for name in ("by a hyperbolic cosine", "annuity", "by a root"):
        f = number(CASES[name][0], 2)
        slopes = tm.tensor(lambda x, y, f=f: tm.grad(lambda x: np.sum(f(x, y)))(x))(ends, np.full(4, 2.0))
        with np.errstate(all="ignore"):
            values = np.asarray(tm.tensor(f)(ends, np.full(4, 2.0)))
            np.testing.assert_array_equal(np.isnan(values), np.isnan(f(ends, np.full(4, 2.0))))
        assert np.isnan(slopes[[0, 1, 3]]).all()


@each
def test_values_are_as_near_as_numpys(name):
    text, points, _ = CASES[name]
    exactly = eval(f"lambda x, y: {text}", {"np": Digits()})
    x, y = columns(points)
    f = number(text, 2)
    with mpmath.workdps(120), np.errstate(all="ignore"):
        true = [exactly(mpmath.mpf(a), mpmath.mpf(b)) for a, b in points]
        ours, theirs = (
            [
                float(abs(mpmath.mpf(float(v)) - t) / abs(t) * 2**53) if np.isfinite(v) else np.inf
                for v, t in zip(values, true, strict=True)
            ]
            for values in (np.asarray(tm.tensor(f)(x, y)), f(x, y))
        )
    assert all(a <= b + 4 for a, b in zip(ours, theirs, strict=True))


# what a rule may absorb: readers on the other side of a choice are none -----------------------------------------------


def steps(f, *given):
    return {fired.rule.name for fired in rewrite(tm.trace(f, *given)).notable}


DIFFERENCE = (
    "f(a) - f(b) -> by a - b where both are near, for roots, powers, quotients, exponentials, logarithms, angles"
)
X, Y = np.linspace(0.1, 0.4, 5), np.linspace(1.0, 2.0, 5)
SERIES = (
    "x * cos(x) - sin(x) -> its series where x is near 0, for all sums of functions of one operand that cancel there"
)


def test_a_reader_beside_a_choice_is_none():
    def chosen(x, y):
        e = np.exp(x)
        return np.where(y > 1.5, e - 1 - x, e * y)

    assert SERIES in steps(chosen, X, Y)


def test_a_reader_within_products_alone_is_none():
    def quotient(x, y):
        d = np.sqrt(x) - np.sqrt(y)
        return np.sqrt(x) / d / d

    def also(x, y):
        d = np.sqrt(x) - np.sqrt(y)
        return d * y / (d * np.sqrt(x) * d)

    assert steps(quotient, X, Y) & {DIFFERENCE, SERIES}
    assert steps(also, X, Y) & {DIFFERENCE, SERIES}


def test_a_reader_that_shows_more_is_one():
    def kahan(x, y):  # the quotient is right because both have the rounding of 1 + x
        u = 1 + np.sqrt(x)
        return np.log(u) / (u - 1) / (u - 1) * y

    def compensated(x, y):
        s = np.sqrt(x) + y
        d = s - np.sqrt(x)
        return d * d * s - (s - d)

    small = X * 1e-12
    for f in (kahan, compensated):
        np.testing.assert_allclose(tm.tensor(f)(small, Y), f(small, Y), rtol=1e-12)


def test_a_reader_on_the_same_side_is_one():
    def chosen(x, y):
        e = np.exp(x)
        return np.where(y > 1.5, (e - 1 - x) / e, y)

    def also(x, y):
        e = np.exp(x)
        return np.where(y > 1.5, e - 1 - x, y) + np.where(y > 1.5, e, x)

    def other(x, y):
        e = np.exp(x)
        return np.where(y > 1.5, e - 1 - x, y) + np.where(y > 1.7, x, e)

    for f in (chosen, also, other):
        np.testing.assert_allclose(tm.tensor(f)(X, Y), f(X, Y), rtol=1e-12)
