"""Rewritten forms of drawn expressions are no less accurate than NumPy's text, whatever stands in them and whatever they are given."""

from fractions import Fraction

import numpy as np
import pytest
from mpmath import mp

import tensormagic as tm
from tensormagic.backend.numpy_tier.reference import evaluate_graph
from tensormagic.transform.rewriting import rewrite
from tensormagic.transform.rewriting.sums.power_series import Series
from tensormagic.transform.rewriting.sums.series import chosen
from tests.transform.never_worse import compared, function_of, texts

DRAWN = list(texts(400, 7))
"""The formulas as they stand, and as many with something else in their places."""


@pytest.mark.share(10)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("number", range(len(DRAWN)))
def test_forms_of_drawn_expressions_are_no_less_accurate(number, dtype):
    found = compared(*DRAWN[number], np.dtype(dtype), count=700, seed=number, most=25)
    assert (found.worse, found.lost) == ([], []), found.text


SQUARED_AWAY = {
    "a series": "np.sqrt(y) - np.sqrt(y) ** 3 / 6 + np.sqrt(y) ** 5 / 120",
    "a longer one": "np.sqrt(y) - np.sqrt(y) ** 3 / 6 + np.sqrt(y) ** 5 / 120 - np.sqrt(y) ** 7 / 5040",
    "of a product": "np.sqrt(x * y) - np.sqrt(x * y) ** 3 / 6 + np.sqrt(x * y) ** 5 / 120",
    "in a product": "np.exp(np.sqrt(y)) * (np.sqrt(y) - np.sqrt(y) ** 3 / 6 + np.sqrt(y) ** 5 / 120)",
    "another series": "np.sqrt(y) - np.sqrt(y) ** 3 / 3 + np.sqrt(y) ** 5 / 5",
    "even powers": "np.sqrt(y) ** 4 - np.sqrt(y) ** 2 + np.sqrt(y) ** 3",
    "a function beside": "np.sin(np.sqrt(y)) - (np.sqrt(y) - np.sqrt(y) ** 3 / 6) * np.cos(np.sqrt(y))",
}
"""Texts all of whose terms read one root, whose rounding is that of one operand of them all."""


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", SQUARED_AWAY)
def test_a_root_that_other_terms_read_is_not_squared_away(name, dtype):
    found = compared("roots", SQUARED_AWAY[name], np.dtype(dtype), count=700, seed=315, most=60)
    assert (found.worse, found.lost) == ([], []), found.text


@pytest.mark.parametrize(
    "text", ["np.sqrt(y) - np.sqrt(y) ** 3 / 6", "(np.sqrt(y) - np.sqrt(y) ** 3 / 6) * np.sqrt(y)"]
)
def test_a_root_that_nothing_else_reads_is(text):
    function, _ = function_of(text)
    done = rewrite(tm.trace(function, np.ones(3)), "stable")
    assert any(f.rule.name.startswith("f(a) - f(b)") for f in done.fired)


@pytest.mark.parametrize(
    ("terms", "radius"),
    [((1, 1), 0.5), ((1, -1), 0.5), ((1, 0, -1), 0.75), ((1, 0.5), 1.0), ((2, 1, 0.5), 1.0), ((1, 0, 1), 1.0)],
)
def test_series_stand_where_they_do_not_cancel_themselves(terms, radius):
    """A series is used only where its value is a quarter of what its terms are together, at both ends."""
    ((found, coefficients, step), *_) = chosen(Series(1, tuple(map(Fraction, (*terms, *[0] * 30)))), 52)
    assert (found, [c for k, c in enumerate(terms) if k % step == 0]) == (radius, coefficients)
    for x in np.linspace(-radius, radius, 50):
        parts = [c * x**k for k, c in enumerate(terms)]
        assert abs(sum(parts)) >= 0.25 * sum(map(abs, parts))


@pytest.mark.parametrize("ratio", [0.55, 0.8, 1.3, 1.517, 1.8])
def test_a_quotient_less_one_and_its_logarithm_have_one_rounding_less(ratio):
    """Both know the difference without a rounding as far as it has none: one that did beside one that did not was twice as far off."""
    text, random = "x / y - 1 - np.log(x / y)", np.random.default_rng(3)
    y = random.uniform(0.5, 1, 400)
    x = y * ratio * (1 + 1e-3 * random.uniform(-1, 1, 400))
    function, _ = function_of(text)
    graph = tm.trace(function, x, y)
    (form,) = evaluate_graph(rewrite(graph, "stable").graph, [x, y])
    with mp.workdps(50):
        true = [mp.mpf(a) / mp.mpf(b) - 1 - mp.log(mp.mpf(a) / mp.mpf(b)) for a, b in zip(x, y, strict=True)]
        errors = [
            np.mean([float(abs(v - t) / abs(t)) for v, t in zip(way, true, strict=True)])
            for way in (form, function(x, y))
        ]
    assert errors[0] < 1.05 * errors[1]


@pytest.mark.parametrize("quotient", [1e-20, 7e-11, 0.3, 1 - 2.0**-30])
def test_the_logarithm_of_one_less_a_quotient_keeps_what_is_small_and_what_is_near_one(quotient):
    """The form of `1 - y / x` that holds near 1 stood everywhere, so that no rule saw the small quotient."""
    function, _ = function_of("np.log(1 - y / x)")
    x, y = np.array([3.0, 5.0]), np.array([3.0, 5.0]) * quotient
    (form,) = evaluate_graph(rewrite(tm.trace(function, x, y), "stable").graph, [x, y])
    with mp.workdps(60):
        true = [float(mp.log(1 - mp.mpf(b) / mp.mpf(a))) for a, b in zip(x, y, strict=True)]
    assert list(form) == pytest.approx(true, rel=1e-15)
