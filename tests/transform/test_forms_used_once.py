"""Forms are not used again on what they have made; sums with weighted exponentials, squares less a number, roots beside sums."""

from collections import Counter

import mpmath
import numpy as np
import pytest

import tensormagic as tm
from tensormagic.transform.rewriting import rewrite
from tests.transform.kept_digits import lost_by_arrays, lost_by_numbers, lost_compiled
from tests.transform.never_worse import function_of, texts

ONCE = [
    "np.sqrt(1 + x * x) - x",
    "x + y - np.sqrt((x + y) ** 2 - 4 * x)",
    "x - y - np.sqrt((x - y) ** 2 + z)",
    "np.sqrt(x * x - y) - x",
    "-x + np.sqrt(x * x + 4 * x * y)",
    "np.sqrt(1 + 2 * x * y + x**2) - 1 - x * y",
    "x / (x**2 + y**2)",
    "0.25 * np.log(((1 + x) ** 2 + y**2) / ((1 - x) ** 2 + y**2))",
    "np.log(special.erfc(-x / np.sqrt(2)) / 2)",
    "np.hypot(x, y) - x",
]
SMALL = (1e-10, 1e-7, 1e-4, 0.01, 0.3)
BOTH = [(s * x, y, 1.7) for x in SMALL for s in (1, -1) for y in (0.1, 0.6)]
NEAR_ONE = [(x, 1 + s * y, 1.7) for x in (0.3, 2.0) for y in SMALL for s in (1, -1)]
INNER = [(s * (1 - x), 0.4, 1.7) for x in SMALL for s in (1, -1)] + [(x, 0.4, 1.7) for x in SMALL]
VALUES = {  # text, inputs
    "counter flow": ("(1 - np.exp(-x * (1 - y))) / (1 - y * np.exp(-x * (1 - y)))", NEAR_ONE),
    "counter flow, the other way": ("(np.exp(-x * (1 - y)) - 1) / (y * np.exp(-x * (1 - y)) - 1)", NEAR_ONE),
    "growth towards a bound": ("z * (np.exp(x) - 1) / (1 + y * np.exp(x) - y)", BOTH),
    "spread of an infection": ("y * (np.exp(x) - 1) / (y * np.exp(x) - y + z)", BOTH),
    "current through a membrane": ("x * (y - z * np.exp(-x)) / (1 - np.exp(-x))", BOTH),
    "two ways": ("np.exp(x) * (1 - y) + y * np.exp(-x) - 1", [(x, 0.1, z) for x, _, z in BOTH]),
    "moments less 1": ("y * np.exp(x) + (1 - y) - 1", BOTH),
    "weights": ("y * (np.exp(x) - 1) + z * (np.exp(-x) - 1)", BOTH),
    "hardly any": ("np.log(y + (1 - y) * np.exp(-x))", BOTH),
    "hardly any, to base 2": ("np.log2(1 - y + y * np.exp(-x))", BOTH),
    "square less 1": ("x * x - 1", INNER),
    "1 less a square": ("(1 - x**2) * y", INNER),
    "lens": ("(x**2 - 1) * y / (1 + y * (x**2 - 1))", INNER),
    "four less a square": ("(4 - y**2) * x", [(x, 2 + y, 1.7) for x, y in [(0.3, h) for h in SMALL]]),
    "multipole": ("np.sqrt(1 + 2 * x * np.cos(y) + x**2) - 1 - x * np.cos(y)", BOTH),
    "multipole less a sum": ("np.sqrt(1 + 2 * x * np.cos(y) + x**2) - (1 + x * np.cos(y))", BOTH),
    "multipole far from the axis": (
        "np.sqrt(1 + 2 * x * np.cos(y) + x**2) - (1 + x * np.cos(y))",
        [(0.1, 1.4, 1), (0.3, 2.2, 1)],
    ),
    "capacity of heat": ("x**2 * np.exp(x) / (np.exp(x) - 1) ** 2", [(4.469 + h, 0.3, 1.7) for h in SMALL]),
}
BESIDE = [(x, x * (1 + s * h), 0.8) for x in (0.4, 1.0) for h in SMALL for s in (1, -1)]
OTHERS = [(x, z, y) for x, y, z in BESIDE]
SLOPES = {  # text, inputs, the operand that the slope is by
    "chain of two decays": ("x * (np.exp(-y * z) - np.exp(-x * z)) / (x - y)", BESIDE, 1),
    "chain by its first rate": ("x * (np.exp(-y * z) - np.exp(-x * z)) / (x - y)", BESIDE, 0),
    "chain by the time": ("x * (np.exp(-y * z) - np.exp(-x * z)) / (x - y)", BESIDE, 2),
    "divided exponentials": ("(np.exp(-y * x) - np.exp(-y * z)) / (z - x)", OTHERS, 0),
    "divided by the other": ("(np.exp(-y * x) - np.exp(-y * z)) / (z - x)", OTHERS, 2),
    "divided roots": ("z * (np.sqrt(x) - np.sqrt(y)) / (x - y)", BESIDE, 0),
    "counter flow": (*VALUES["counter flow"], 0),
    "infection": (*VALUES["spread of an infection"], 2),
    "two ways": (*VALUES["two ways"], 0),
    "moments": (*VALUES["moments less 1"], 0),
    "hardly any": (*VALUES["hardly any"], 1),
    "multipole": (*VALUES["multipole"], 1),
    "Fisher's z": ("0.5 * np.log((1 + x) / (1 - x)) - 0.5 * np.log((1 + y) / (1 - y))", INNER, 0),
    "arctanh": ("np.arctanh(x) + y", INNER, 0),
    "tanh": ("np.tanh(x) * y", [(x, 0.4, 1.7) for x in (1e-9, 0.3, 1.0, 2.5, 9.0, 30.0, -4.0)], 0),
}


def most(text):
    """How often a rule is used on a text, at most, and the size of the graph."""
    function, arity = function_of(text)
    done = rewrite(tm.trace(function, *[np.array([0.1, 0.2])] * arity), "stable")
    return max(Counter(f.rule.name for f in done.fired if not f.rule.quiet).values(), default=0), len(done.graph.nodes)


@pytest.mark.parametrize("text", ONCE)
def test_a_form_is_not_looked_at_again(text):
    uses, size = most(text)
    assert uses <= 3
    assert size < 70


def test_no_rule_goes_in_a_circle_on_formulas():
    assert not [t for _, t in texts(150, 8) if most(t)[0] > 3]


def test_it_is_not_used_again_in_large_programs_either():
    """The bound of a rule's uses is the size of the graph."""

    def f(x, y):
        for k in range(40):
            y = np.sin(y + k)
        return np.sqrt(1 + x * x) - x + y, x / (x * x + y * y)

    done = rewrite(tm.trace(f, np.ones(3), np.ones(3)), "stable")
    assert max(Counter(r.rule.name for r in done.fired if not r.rule.quiet).values()) <= 2


@pytest.mark.parametrize("name", VALUES)
def test_values_keep_their_digits(name):
    assert max(lost_by_arrays(*VALUES[name])) < 4


@pytest.mark.parametrize("name", VALUES)
@pytest.mark.parametrize("form", [float, np.float64, np.array])
def test_values_of_numbers_keep_them(name, form):
    assert max(lost_by_numbers(form, *VALUES[name])) < 4


@pytest.mark.parametrize("name", SLOPES)
def test_slopes_keep_them(name):
    assert max(lost_by_arrays(*SLOPES[name])) < 6


@pytest.mark.parametrize("name", ["counter flow", "multipole", "two ways", "lens"])
def test_compiled_values_keep_them(name):
    assert max(lost_compiled(*VALUES[name])) < 4


def test_within_branches_and_loops():
    @tm.tensor
    def total(x, y):
        found = 0.0
        for k in range(3):
            if y[k] < 1:
                found = found + (1 - np.exp(-x[k])) / (1 - y[k] * np.exp(-x[k]))
            if y[k] >= 1:
                found = found + (x[k] * x[k] - 1)
        return found

    x, y = np.array([1e-9, 1 + 1e-9, 3e-7]), np.array([0.5, 2.0, 0.9])
    with mpmath.workdps(60):
        parts = [(1 - mpmath.exp(-mpmath.mpf(x[k]))) / (1 - y[k] * mpmath.exp(-mpmath.mpf(x[k]))) for k in (0, 2)]
        true = sum(parts) + mpmath.mpf(x[1]) ** 2 - 1
        assert abs(float(total(x, y)) - true) < 1e-15 * abs(true)


@pytest.mark.parametrize("v", [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 1e200, 5e-324])
def test_squares_less_a_number_are_special_where_the_text_is(v):
    x = np.array([v])
    for f in (lambda x: x * x - 1, lambda x: 1 - x**2, lambda x: 4 - x * x):
        with np.errstate(all="ignore"):
            found, text = tm.tensor(f)(x), f(x)
        assert np.array_equal(found, text, equal_nan=True)
        assert np.signbit(found)[0] == np.signbit(text)[0] or np.isnan(text[0])


def test_what_was_computed_stays():
    """The rounding of what is squared is as large as that of the square."""
    done = rewrite(tm.trace(lambda x: np.sin(x) ** 2 * 1.5 - 1, np.ones(3)), "stable")
    assert not [f for f in done.fired if f.rule.level == "stable"]


def test_the_square_of_a_tangent_is_computed_once():
    f = lambda x: np.tanh(x) ** 2  # noqa: E731
    graph = tm.trace(lambda x: (f(x), tm.grad(lambda v: np.sum(f(v)))(x)), np.ones(3))
    nodes = rewrite(graph, "stable").graph.nodes
    assert sum(n.op.name == "square" and n.args[0].op.name == "tanh" for n in nodes) == 1
    assert not [n for n in nodes if n.op.name == "multiply" and n.args[0] is n.args[1]]
