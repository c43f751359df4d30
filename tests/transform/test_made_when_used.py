"""What rewriting does not do in vain: replacements that nothing asks for, and looks at loops where there are none."""

from __future__ import annotations

import cProfile
import gc
import pstats
import weakref

import numpy as np
import pytest

import tensormagic as tm
from tensormagic.ir.node import topological, users
from tensormagic.ir.rewriting.joins import Readers
from tensormagic.ir.rewriting.roundings import below
from tensormagic.ir.rewriting.rules import Found
from tensormagic.ir.type import array
from tensormagic.ops.leaf import parameter
from tensormagic.ops.scalars.scalar import exp, sin
from tensormagic.transform.rewriting import rewrite, rules
from tensormagic.transform.rewriting.sums.terms import sum_of

SHARED = {
    "a tangent's slope": lambda x: (1 - np.tanh(x) ** 2) + np.tanh(x) ** 3,
    "a square root": lambda x: (np.sqrt(1 + x) - 1) + 1 / np.sqrt(1 + x),
    "an exponential": lambda x: np.log(1 + np.exp(x)) + 1 / np.log(np.exp(x)),
    "a sine": lambda x: (1 - np.sin(x) ** 2) * np.exp(np.sin(x) ** 2),
    "a tangent": lambda x: (1 - np.tanh(x)) * np.exp(np.tanh(x)),
}


def _traced(function):
    return tm.trace(function, "float64[n]")


@pytest.mark.parametrize("name", SHARED)
def test_what_a_rule_puts_in_a_place_is_one_node_however_often_it_is_asked_for(name):
    found = [f for n in _traced(SHARED[name]).nodes for r in rules("stable") for f in _applied(r, n)]
    assert found
    for one in found:
        assert one.node is one.node
        assert isinstance(one, Found)


def _applied(rule, node):
    if rule.roots and node.op.name not in rule.roots:
        return
    found = rule.apply(node)
    if found is not None:
        assert found.changes(node) == (found.node is not node)
        assert found.node.type == node.type
        if found.parts:
            assert found.gives_back() == (below(found.node) in map(below, found.bound))
        yield found


@pytest.mark.parametrize("name", SHARED)
@pytest.mark.parametrize("gradient", [False, True])
def test_values_are_those_of_the_text(name, gradient):
    function = SHARED[name]
    asked = tm.grad(lambda x: np.sum(function(x))) if gradient else function
    x = np.linspace(0.1, 2, 7)
    step = 1e-6
    true = (function(x + step) - function(x - step)) / (2 * step) if gradient else function(x)
    np.testing.assert_allclose(np.asarray(tm.compile(asked, x)(x)), true, rtol=1e-6)


def test_a_replacement_that_is_withheld_is_not_made():
    rule = next(r for r in rules("stable") if r.name.startswith("1 - square(tanh(x)) ->"))
    (node,) = (n for n in _traced(SHARED["a tangent's slope"]).nodes if n.op.name == "subtract")
    with cProfile.Profile() as profile:
        found = rule.apply(node)
    assert found is not None
    assert not [name for _, _, name in pstats.Stats(profile).stats if name == "make"]


@pytest.mark.parametrize("text", [False, True])
def test_the_terms_of_a_sum_are_read_once_and_do_not_keep_it(text):
    x = parameter(0, array(np.float64, 3))
    product = sin(x) * (exp(x) - 2 * x - 1)
    total = product.args[1]
    assert sum_of(total, text=text) is sum_of(total, text=text)
    assert sum_of(product, text=text).terms[0][1] is product
    gone = weakref.ref(product)
    gc.disable()
    del product
    gc.enable()
    assert gone() is None


COMPARED = {
    "a comparison": (lambda x: np.where(x * x > 1, x, 2 * x), 1),
    "arithmetic before one": (lambda x: np.where(np.exp(x) + 1 > 1, x, 2 * x), 2),
    "three levels": (lambda x: np.where(2 * (np.exp(x) + 1) > 1, x, 2 * x), 3),
    "more than three": (lambda x: np.where(1 / (2 * (np.exp(x) + 1)) > 1, x, 2 * x), 3),
    "read elsewhere, too": (lambda x: np.where(np.exp(x) > 1, x, np.exp(x)), 0),
    "shown": (lambda x: (np.where(np.exp(x) > 1, x, 2 * x), np.exp(x)), 0),
}


@pytest.mark.parametrize("name", COMPARED)
def test_what_comparisons_alone_read_is_found_from_these_down(name):
    function, count = COMPARED[name]
    graph = _traced(function)
    shown = {n: 1 << k for k, n in enumerate(graph.results)}
    readers = Readers(users(topological(graph.results)), shown, lambda _: 1)
    assert sum(readers.is_compared(n) for n in graph.nodes if n.args and n.op.kind == "pointwise") == count


def test_a_chain_with_gradients_takes_a_bounded_number_of_calls_for_each_node():
    def chain(x):
        y = x
        for k in range(60):
            y = [np.tanh(y + 0.1 * k), np.exp(-y * y), y * x + 0.5][k % 3]
        return y.sum()

    graph = _traced(tm.grad(chain))
    rewrite(graph)
    with cProfile.Profile() as profile:
        rewrite(graph)
    assert pstats.Stats(profile).total_calls < 480 * len(graph.nodes)
