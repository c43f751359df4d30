"""Loops without what is not read: iterations that need no other one at once, one iteration of a stack, carries that are equal."""

import numpy as np
import pytest

import tensormagic as tm
from tensormagic.backend.numpy_tier.reference import evaluate_graph
from tensormagic.ir.node import topological
from tensormagic.transform.rewriting import rewrite


def stored(x, w):
    out = np.zeros(len(x))
    for k in range(len(x)):
        out[k] = np.exp(x[k]) * w[k]
    return out


def summed(x, w):
    total = 0.0
    for k in range(len(x)):
        total = total + x[len(x) - 1 - k] * w[k] * k
    return total


def both(x, w):
    out, total = np.zeros(len(x)), 0.0
    for k in range(len(x)):
        total = total + x[k]
        out[k] = w[k] ** 2
    return out * total


def from_its_own(x, w):
    out = x.copy()
    for k in range(len(x)):
        out[k] = out[k] * 2 + w[k]
    return out


def read_twice(x, w):
    states, h = np.ones((7, len(x))), x
    for k in range(7):
        h = np.tanh(h * w)
        states[k] = h
    return states[-1] + states[2]


def read_meanwhile(x, w):
    states, h = np.ones((7, len(x))), x
    for k in range(7):
        h = np.tanh(h * w) + states[0]
        states[k] = h
    return states[3]


def not_reached(x, w):
    states, h = np.ones((9, len(x))), x
    for k in range(7):
        h = np.tanh(h * w)
        states[k] = h
    return states[8]


def crossed(x, w):
    g = h = x
    for _ in range(4):
        g, h = np.sin(h) * w, np.sin(g) * w
    return g + 2 * h


def raising(x, w):
    states, h = np.zeros((6, len(x))), x
    for k in range(6):
        h = np.linalg.solve(np.eye(len(x)) * (3 - k), w)
        states[k] = h
    return states[1]


AT_ONCE = (stored, summed, both)
AT_EVERY_LEVEL = (from_its_own,)
LEFT = (read_twice, read_meanwhile, not_reached, crossed)
X, W = np.random.default_rng(3).normal(size=(2, 6))


@pytest.mark.parametrize("run", [*AT_ONCE, *AT_EVERY_LEVEL, *LEFT], ids=lambda f: f.__name__)
@pytest.mark.parametrize("level", ["exact", "stable"])
def test_loops_give_what_they_give(run, level):
    done = rewrite(tm.trace(run, X, W), level).graph
    (found,) = evaluate_graph(done, [X, W])
    np.testing.assert_allclose(found, run(X, W), rtol=1e-14)
    loops = any(n.op.name == "loop" for n in topological(done.results))
    assert loops == (run in LEFT or (run in AT_ONCE and level == "exact"))


def test_a_iteration_that_may_raise_is_not_left_out():
    done = rewrite(tm.trace(raising, X, W), "exact").graph
    with pytest.raises(np.linalg.LinAlgError):
        evaluate_graph(done, [X, W])


@pytest.mark.parametrize("run", AT_ONCE, ids=lambda f: f.__name__)
def test_their_gradients(run):
    loss = lambda x, w: np.sum(np.sin(run(x, w)))  # noqa: E731
    found = evaluate_graph(rewrite(tm.trace(tm.grad(loss), X, W)).graph, [X, W])[0]
    steps = 1e-6 * np.eye(len(X))
    np.testing.assert_allclose(found, [(loss(X + e, W) - loss(X - e, W)) / 2e-6 for e in steps], rtol=1e-5, atol=1e-8)
