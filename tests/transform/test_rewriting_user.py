"""Rules that users write as text."""

import math

import numpy as np
import pytest
from scipy import special

import tensormagic as tm
from tensormagic.ir.errors import ParseError, RuleError
from tensormagic.ir.graph import Graph
from tensormagic.ir.type import array, symbol
from tensormagic.ops.leaf import parameter
from tensormagic.ops.scalars.scalar import absolute, arctan, cos, exp, log, sin, sqrt, square, tanh
from tensormagic.transform.rewriting import rewrite
from tensormagic.transform.rewriting.users.text import parse_rules

x, y = (parameter(k, array(np.float64, symbol("n0"))) for k in range(2))


def under(text, node):
    return rewrite(Graph((x, y), (node,)), "exact", parse_rules(text))


@pytest.mark.parametrize(
    ("text", "before", "after"),
    [
        ("sin(x) ** 2 + cos(x)**2 -> x / x", sin(y) ** 2 + cos(y) ** 2, "divide"),
        ("np.sin(a) / np.cos(a) -> np.tan(a)", sin(x) / cos(x), "tan"),
        ("abs(x * y) -> abs(x) * abs(y)", absolute(y * x), "multiply"),
        ("sin(-x) -> -sin(x)", sin(-(x * y)), "negative"),
    ],
)
def test_rules_as_text(text, before, after):
    result = under(text, before)
    assert result.graph.results[0].op.name == after
    assert result.assumptions == []


def test_conditions_are_checked():
    text = "sqrt(square(x)) -> x if not_negative(x)"
    assert under(text, sqrt(square(exp(x)))).graph.results == (exp(x),)
    assert under(text, sqrt(square(x))).fired == []
    assert under("tanh(x * c) -> c if constant(c)", tanh(x * y)).fired == []
    assert under("tanh(x * c) -> c if constant(c)", tanh(x * 3.0)).graph.results[0].op.name == "broadcast"


def test_comparisons_are_assumptions():
    result = under("log(exp(x) * y) -> x + log(y) if y > 0 and x != 0", log(exp(x) * y))
    assert result.graph.results == (x + log(y),)
    assert result.assumptions == ["y > 0 and x != 0: log(exp(x) * y) -> x + log(y)"]


def test_a_rule_that_does_not_end_is_bounded():
    result = under("arctan(x) -> arctan(x + 1)", arctan(x))
    assert len(result.notable) == 2


def test_comments_and_empty_lines_say_nothing():
    (rule,) = parse_rules("# mine\n\n  tanh(x) -> x  # near 0\n", "In[7]")
    assert rule.name == "tanh(x) -> x"
    assert rule.source == "In[7]:3"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("tanh(x)", "line 1: 'tanh(x)' has no replacement"),
        ("tanh(x) ->", "line 1: 'tanh(x) ->' has no replacement"),
        ("\ntanh(x) -> y", "line 2: y is not in the pattern"),
        ("x -> 1", "line 1: 'x' is not a pattern"),
        ("3 -> 4", "line 1: '3' is not a pattern"),
        ("tanh(x, y) -> x", "line 1: tanh takes 1 operands, not x, y"),
        ("solve(x, y) -> x", "line 1: there is no elementwise operation solve"),
        ("tanh(x) -> x[0]", "line 1: 'x[0]' is not an elementwise expression"),
        ("tanh(x) -> x if print(x)", "line 1: 'print(x)' is not a condition"),
        ("tanh(x -> x", "line 1: "),
        ("tanh(x) -> 'x'", "line 1: \"'x'\" is not an elementwise expression"),
    ],
)
def test_what_is_no_rule_is_an_error_with_its_line(text, message):
    with pytest.raises(ParseError) as error:
        parse_rules(text)
    assert str(error.value).startswith(message)


SPECIAL = {
    "its logarithm": (lambda x: (np.log(special.gamma(x)), special.gammaln(x)), "real", ""),
    "its recurrence": (lambda x: (special.gamma(x + 1), x * special.gamma(x)), "real", ""),
    "a sum that is one": (lambda x: (special.erf(x) + special.erfc(x), 1.0), "real", ""),
    "a wrong one": (lambda x: (np.log(special.gamma(x)), special.gammaln(x) + 1), "real", "the sides differ"),
    "a stable one": (
        lambda x: (np.log(special.gamma(x)), special.gammaln(x)),
        "stable",
        r"gammaln\(x\) is less accurate",
    ),
}


@pytest.mark.parametrize("name", SPECIAL)
def test_rules_of_functions_that_are_known_in_float64_alone(name):
    sides, level, fault = SPECIAL[name]

    def own(x):
        yield sides(x)

    if fault:
        with pytest.raises(RuleError, match=fault):
            tm.rule(own, level=level)
        return
    try:
        (rule,) = tm.rule(own, level=level)
        assert rule.level == level
    finally:
        tm.rules.remove("own")


def test_functions_that_are_not_captured_are_refused_in_rules_by_a_sentence():
    function = math.sin

    def own(x):
        yield np.sin(x) ** 2, function(x)

    with pytest.raises(RuleError, match=r"not captured|does not accept the variables of a rule") as caught:
        tm.rule(own, level="real")
    assert "Write both sides with NumPy's functions" in str(caught.value)
    assert "own" not in tm.rules.own
