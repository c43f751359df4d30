"""Differences that cancel where two numbers are equal or where one is 1: forms keep the digits, at both levels, for every class."""

import mpmath
import numpy as np
import pytest

import tensormagic as tm
from tensormagic.backend.numpy_tier.reference import evaluate_graph
from tensormagic.transform.rewriting import rewrite
from tensormagic.transform.rewriting.sums.factors import factored, squares_of_differences
from tests.transform.never_worse import function_of, truth

TEXTS = [
    "x - 1 / x",
    "x ** 2 - 3 * x + 2",
    "x ** 3 - 3 * x ** 2 + 3 * x - 1",
    "x ** 3 - 1",
    "np.sqrt(x) - 1 / np.sqrt(x)",
    "x * np.log(x) - x + 1",
    "x - 1 - np.log(x)",
    "np.arctan(x) - np.arctan(1 / x)",
    "(x ** 2 + y ** 2) / 2 - ((x + y) / 2) ** 2",
    "(x ** 2 + y ** 2 + z ** 2) / 3 - ((x + y + z) / 3) ** 2",
    "(x + y) / 2 - 2 * x * y / (x + y)",
    "(x + y) / 2 - np.sqrt(x * y)",
    "x ** 3 - y ** 3",
    "(x / y) ** 3 - 1",
    "x / y - np.log(x / y) - 1",
    "np.sin(x) ** 2 - np.sin(y) ** 2",
    "np.sin(x) - np.sin(y)",
    "np.cos(x) - np.cos(y)",
    "np.tan(x) - np.tan(y)",
]
"""Where all variables are near 1, and as near each other."""
SMALL = ["1 - np.cos(x) * np.cos(y)", "x - (1 - y) * np.sin(x)", "np.log(np.exp(x) + np.exp(y + 3)) - (y + 3)"]
"""Where they are near 0."""


def points(text, count=40):
    """Numbers near 1 and near each other, from a tenth to ten digits of them alike; or near 0."""
    r = np.random.default_rng(len(text))
    function, arity = function_of(text)
    near = [r.choice([-1, 1], count) * 10.0 ** r.uniform(-10, -1, count) for _ in range(arity)]
    return function, [10.0**-2 * n for n in near] if text in SMALL else [1 + n for n in near]


def bits(value, true):
    return float(
        mpmath.log(1 + abs(mpmath.mpf(float(value)) - true) / mpmath.mpf(float(np.spacing(abs(float(true))))), 2)
    )


@pytest.mark.parametrize("level", ["stable", "real"])
@pytest.mark.parametrize("text", TEXTS + SMALL)
def test_what_cancels_beside_a_number_or_an_equal_one_keeps_its_digits(text, level):
    function, given = points(text)
    graph = tm.trace(function, *given)
    found = evaluate_graph(rewrite(graph, level).graph, given)[0]
    lost = [bits(v, truth(graph, point)) for v, *point in zip(found, *given, strict=True)]
    assert np.mean(lost) < 1.5
    assert max(lost) < 6


@pytest.mark.parametrize("kind", [float, np.float64, np.array])
@pytest.mark.parametrize("text", TEXTS[::4] + SMALL)
def test_so_do_numbers_of_every_class(text, kind):
    function, given = points(text, 6)
    compiled = tm.compile(function, *(kind(v[0]) for v in given))
    graph = tm.trace(function, *given)
    for point in zip(*given, strict=True):
        assert bits(compiled(*map(kind, point)), truth(graph, point)) < 6


@pytest.mark.parametrize("text", ["x ** 12 - 1", "(1 + x / 12) ** 12 - 1", "np.sin(x) - x + x ** 3 / 6"])
def test_powers_and_divisions_become_products_after_forms_were_looked_for(text):
    x = 1 + np.array([1e-9, 1e-5, 0.01]) if "**12" in text.replace(" ", "")[:5] else np.array([1e-3, 1e-2, 0.1])
    graph = tm.trace(function_of(text)[0], x)
    found = evaluate_graph(rewrite(graph, "real").graph, [x])[0]
    assert all(bits(v, truth(graph, [p])) < 6 for v, p in zip(found, x, strict=True))


def test_only_roots_of_few_bits_are_factors():
    assert factored({(2,): 1, (0,): -2}) is None
    assert factored({(2,): 9, (0,): -1}) is None
    found = factored({(2, 0): 1, (1, 1): -3, (0, 2): 2})
    assert found is not None
    assert dict(found.factors[0][0]) == {(1, 0): 1, (0, 1): -1}
    assert squares_of_differences({(2, 0, 0): 1, (1, 1, 0): -2, (0, 2, 0): 1}) is None


@pytest.mark.parametrize(
    "text",
    [
        "x - y * np.sin(x)",
        "x - 0.1 * np.tanh(x)",
        "x - y * np.expm1(x)",
        "x - y * (x * x - z)",
        "x + y * (x * (1 - x) - z)",
    ],
)
def test_a_step_of_a_descent_stays_as_it_is(text):
    function, arity = function_of(text)
    graph = tm.trace(function, *np.ones((arity, 3)))
    assert len(rewrite(graph, "stable").graph.nodes) <= len(graph.nodes)
