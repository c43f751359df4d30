"""A rewrite costs no more than what it replaces: operations and bytes, also where a part of it has another use."""

# tests named elsewhere

import numpy as np
import pytest

import tensormagic as tm
from tensormagic.config import config
from tensormagic.ir.cost import cost_of_graph
from tensormagic.ir.graph import Graph
from tensormagic.ir.node import topological
from tensormagic.ir.rewriting.driver import rewrite_nodes
from tensormagic.ir.rewriting.rules import Rule
from tensormagic.ir.rewriting.table import Table
from tensormagic.ir.rewriting.uses import inside
from tensormagic.transform.rewriting import THEMES, rewrite, rules
from tests.transform.example import Example
from tests.transform.examples import EXAMPLES
from tests.transform.oracle import instances

PATTERNS = [r for r in rules("real") if r.pattern is not None]


def costs_no_more(rule: Rule, results: list) -> None:
    found, _ = rewrite_nodes(results, Table([rule]))
    assert cost_of_graph(found).within(cost_of_graph(results), results)


def check(rule: Rule, before) -> None:
    costs_no_more(rule, [before])
    found = rule.apply(before)
    assert found is not None
    parts = [p for p in inside(before, found) if p.args and len(p.types) == 1]
    for part in parts:
        costs_no_more(rule, [before, part])
    costs_no_more(rule, [before, *parts])


def judge(rule: Rule, node) -> None:
    """The price of what its author has judged is at most 3 times the operations; of other rules that of the driver."""
    if not rule.judged:
        check(rule, node)
        return
    found = rule.apply(node)
    assert found is not None
    assert cost_of_graph([found.node]).operations <= 3 * cost_of_graph([node]).operations


@pytest.mark.parametrize("rule", PATTERNS, ids=str)
def test_patterns(rule):
    for dtype in (np.float64, np.int64, bool):
        try:
            found = instances(rule, dtype)[:3]
        except (TypeError, OverflowError):
            continue
        for instance in found:
            judge(rule, instance.before.results[0])


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda e: e.rule)
def test_procedures(example: Example):
    (rule,) = next(getattr(m, example.rule) for m in THEMES if hasattr(m, example.rule))
    judge(rule, example.build(*example.parameters(np.float32)))


# loops ----------------------------------------------------------------------------------------------------------------

T, N = 12, 9
rng = np.random.default_rng(2)
X, W, D = rng.normal(size=(T, N)), rng.normal(size=(N, N)), rng.normal(size=(T, 5, N))
B = rng.normal(size=(T, 5, 4))
TERMS = {
    "X[t] @ W": (lambda t, h: X[t] @ W, False),
    "W @ X[t]": (lambda t, h: W @ X[t], False),
    "tanh(W) @ X[t]": (lambda t, h: np.dot(np.tanh(W), X[t]), False),
    "X[t] @ (W * t)": (lambda t, h: X[t] @ (W * t), False),
    "X[T - 1 - t] @ W.T": (lambda t, h: X[T - 1 - t] @ W.T, False),
    "D[t] @ W": (lambda t, h: D[t] @ W, False),
    "X[t] @ h": (lambda t, h: X[t] @ h, False),
    "D[t].T @ tanh(B[t])": (lambda t, h: D[t].T @ np.tanh(B[t]), True),
}


def summed(term, start):
    def run(W):
        acc, h = start, W
        for t in range(T):
            acc = acc + term(t, h)
            h = h * 0.5
        return acc

    return run


@pytest.mark.parametrize("name", TERMS)
def test_sums_in_loops(name, monkeypatch):
    monkeypatch.setattr(config, "tier", "numpy")
    term, leaves = TERMS[name]
    run = summed(term, np.zeros_like(term(0, W)))
    found = tm.tensor(run)
    np.testing.assert_allclose(np.asarray(found(W)), run(W), rtol=1e-12)
    graph: Graph = found.graph(W)
    after = rewrite(graph).graph.results
    assert cost_of_graph(after).within(cost_of_graph(graph.results), graph.results)
    inner = [n for g in topological(after) if g.op.name == "loop" for n in g["body"].nodes]
    kept = any(n.op.name == "contract" for n in inner)
    assert kept is not leaves or not any(
        n.op.name == "loop" for n in topological(after)
    )  # all iterations at once: no loop is left
