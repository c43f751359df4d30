"""In the NumPy tier a form that no element takes is not computed, and the values are those of both sides."""

import numpy as np
import pytest

import tensormagic as tm
from tensormagic.backend.numpy_tier import one_sided_choices, reference
from tensormagic.ir.graph import sizer
from tensormagic.transform.rewriting import rewrite

FORMS = {
    "returns": lambda x, y: x / y - 1,
    "log of a product": lambda x, y: np.log(x * y),
    "exponentials": lambda x, y: np.exp(x) * np.exp(y),
    "root": lambda x, y: np.sqrt(1 + x) - 1,
    "two of one condition": lambda x, y: (x / y - 1) + np.exp(x / y - 1) * y,
    "one form within another": lambda x, y: np.log(np.exp(x) * np.exp(y) + np.sqrt(x * x + 1)),
    "also a result of its own": lambda x, y: (x / y - 1) * (x / y),
}
INPUTS = {
    "plain": (np.array([1.0, 2.0, 3.0]), np.array([1.5, 2.5, 2.0])),
    "all beyond": (np.array([1e200, 800.0, 1e160]), np.array([1e200, 790.0, 1e170])),
    "mixed": (np.array([1e-18, 1e308, 1e200, -0.0]), np.array([3.0, -1.7e308, 1e200, 2.0])),
    "special": (np.array([np.inf, np.nan, -np.inf, 0.0]), np.array([np.inf, 1.0, 2.0, 0.0])),
    "small": (np.ones(2), np.full(2, 1e-300)),
}


def computed(graph, values):
    """The names of the ops that were run, and the results."""
    seen = []

    class Watched(dict):
        def __setitem__(self, node, value):
            seen.append(node)
            super().__setitem__(node, value)

    plan = one_sided_choices.plan([n for n in graph.nodes if n not in graph.parameters], graph.results)
    table = Watched(zip(graph.parameters, values, strict=True))
    size = sizer(graph.bind([v.shape for v in values]), table)
    looks = one_sided_choices.Looks(plan, table)
    for node in plan.order:
        if not looks.leaves_out(node):
            taken = looks.taken(node)
            table[node] = table[taken] if taken else node.op.evaluate(node, [table[a] for a in node.args], size)
    return [n.op.name for n in seen], [table[r] for r in graph.results]


@pytest.mark.parametrize("given", INPUTS)
@pytest.mark.parametrize("name", FORMS)
def test_values_are_those_of_both_sides(name, given, monkeypatch):
    graph = rewrite(tm.trace(FORMS[name], *INPUTS["plain"])).graph
    with np.errstate(all="ignore"):
        found = reference.evaluate_graph(graph, INPUTS[given])
        monkeypatch.setattr(one_sided_choices, "_is_of_a_rule", lambda _: False)
        both = reference.evaluate_graph(graph, INPUTS[given])
    for a, b in zip(found, both, strict=True):
        np.testing.assert_array_equal(a, b)


def test_what_no_element_takes_is_left_out():
    graph = rewrite(tm.trace(FORMS["returns"], *INPUTS["plain"])).graph
    names, _ = computed(graph, INPUTS["plain"])
    assert names.count("divide") == 1
    with np.errstate(all="ignore"):
        names, _ = computed(graph, INPUTS["mixed"])
    assert names.count("divide") == 2


def test_choices_of_the_user_compute_both_sides():
    graph = rewrite(tm.trace(lambda x: np.where(x > 0, np.log(x), 0.0), np.ones(3))).graph
    nodes = [n for n in graph.nodes if n.args]
    assert not one_sided_choices.plan(nodes, graph.results).choices
    with pytest.warns(RuntimeWarning, match="invalid value"):
        reference.evaluate_graph(graph, [-np.ones(3)])


def test_conditions_come_before_what_they_leave_out():
    graph = rewrite(tm.trace(FORMS["one form within another"], *INPUTS["plain"])).graph
    plan = one_sided_choices.plan([n for n in graph.nodes if n not in graph.parameters], graph.results)
    at = {n: k for k, n in enumerate(plan.order)}
    assert plan.skips
    assert all(at[condition] < at[node] for node, conditions in plan.skips.items() for condition, _ in conditions)
    assert all(at[a] < at[n] for n in plan.order for a in n.args if a in at)
