"""What is judged of a rule once holds wherever it matches, and no rule takes its own result for what it looks for."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

import tensormagic as tm
from tensormagic.ir.cost import cost
from tensormagic.ir.node import topological
from tensormagic.ir.rewriting.judged import always_lighter, never_dear
from tensormagic.ir.rewriting.uses import made_by
from tensormagic.ir.rewriting.weights import lighter
from tensormagic.ops.fold import reduce_sum
from tensormagic.transform.grad import gradient
from tensormagic.transform.rewriting import rewrite, rewrite_nodes, rules
from tests.transform import oracle


def test_what_holds_of_a_rule_holds_where_it_matches():
    judged = 0
    for rule in rules("real"):
        if rule.pattern is None or not (always_lighter(rule) or never_dear(rule)):
            continue
        for instance in oracle.instances(rule, np.float64)[:2]:
            (node,) = instance.before.results
            found = rule.apply(node)
            if found is None or not found.plain:
                continue
            judged += 1
            if always_lighter(rule):
                assert lighter(found.node, node, found.inside), rule
            if never_dear(rule):
                assert cost(made_by(node, found)).within(cost([node]), [node], even=rule.even), rule
    assert judged > 100


def test_a_replacement_that_only_moves_something_is_not_judged_lighter():
    (found,) = (r for r in rules("stable") if r.name == "x + c + d -> x + (c + d)")
    assert not always_lighter(found)


SUMS = {
    "three": lambda x, y, z: np.log(np.exp(x) + np.exp(y) + np.exp(z)),
    "with a number": lambda x, y, z: np.log(1 + np.exp(x) + np.exp(y - z)),
    "multiples": lambda x, y, z: np.log((np.exp(x) + 2 * np.exp(y) + np.exp(-z)) / 3),
    "mixtures": lambda x, y, z: np.log(z * np.exp(-x * x) + (1 - z) * np.exp(y)),
    "softmax": lambda x, y, z: np.log(np.exp(x) / (np.exp(x) + np.exp(y) + np.exp(z))),
}


@pytest.mark.parametrize("level", ["stable", "real"])
@pytest.mark.parametrize("name", SUMS)
def test_the_largest_exponent_is_taken_off_once(name, level):
    x = np.array([0.3, 0.4, 0.5])
    graph = tm.trace(SUMS[name], x, x + 1, x + 2)
    (value,), log = rewrite_nodes(graph.results, level)
    loss = reduce_sum(value, (0,))
    with_gradients = [loss, *gradient(loss, graph.parameters)]
    _, more = rewrite_nodes(with_gradients, level)
    for fired in (log.fired, more.fired):
        assert all(n <= 2 for r, n in Counter(f.rule for f in fired).items() if "exponent taken off" in r.name)
    assert len(topological([value])) < 80


def scaled(x, y):
    m = np.maximum(x, y)
    return m + np.log(np.exp(x - m) + 3 * np.exp(y - m))


def scaled_by_another(x, y):
    m = np.maximum(x, 2 * y)
    return m + np.log(np.exp(x - m) + 3 * np.exp(y - m))


@pytest.mark.parametrize(("function", "fires"), [(scaled, False), (scaled_by_another, True)])
def test_exponents_that_were_scaled_are_left_alone(function, fires):
    x = np.array([0.3, 0.4])
    fired = rewrite(tm.trace(function, x, x + 1)).fired
    assert any("exponent taken off" in f.rule.name for f in fired) == fires
