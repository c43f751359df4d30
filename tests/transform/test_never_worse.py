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
