"""Which rules may change digits: what the line under a cell calls more accurate or simplified."""

import pytest

from tensormagic.transform.rewriting import rules
from tensormagic.transform.rewriting.users.trial import changes_digits

RULES = {rule.name: rule for rule in rules("stable")}


@pytest.mark.parametrize("name", ["cos(-x) -> cos(x)", "absolute(p) -> p", "2 * sinh(x) * 0.5 -> sinh(x)"])
def test_rules_that_change_no_more_than_the_sign_of_zero_change_no_digits(name):
    assert RULES[name].level == "stable"
    assert not changes_digits(RULES[name])


@pytest.mark.parametrize(
    "name",
    [
        "log(1 + x) -> log1p(x)",
        "1 / (1 / x) -> x",
        "sqrt(square(x)) -> absolute(x)",
        "x * x - y * y -> (x - y) * (x + y)",
    ],
)
def test_rules_that_change_digits_say_so(name):
    assert changes_digits(RULES[name])


def test_exact_rules_change_none():
    assert not any(changes_digits(rule) for rule in rules("exact"))
