"""Rewritten forms of drawn expressions are no less accurate than NumPy's text, whatever stands in them and whatever they are given."""

import numpy as np
import pytest
from mpmath import mp

import tensormagic as tm
from tensormagic.backend.reference import evaluate_graph
from tensormagic.transform.rewriting import rewrite
from tests.transform.never_worse import compared, function_of, texts

DRAWN = list(texts(400, 7))
"""The formulas as they stand, and as many with something else in their places."""


@pytest.mark.share(10)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("number", range(len(DRAWN)))
def test_forms_of_drawn_expressions_are_no_less_accurate(number, dtype):
    found = compared(*DRAWN[number], np.dtype(dtype), count=700, seed=number, most=25)
    assert (found.worse, found.lost) == ([], []), found.text


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
