"""Loops that record what each iteration begins with keep all states in one array; others are as they were."""

import numpy as np
import pytest

import tensormagic as tm
from tensormagic.backend.planning.inline import expand_all
from tensormagic.backend.planning.plan import plan_graph
from tensormagic.backend.planning.recorded_states import in_states
from tensormagic.config import config
from tensormagic.ir.node import topological
from tensormagic.ops.reverse import spans
from tensormagic.session import executable

rng = np.random.default_rng(8)
U = rng.random((12, 15))
X, W, B = rng.normal(size=(12, 3, 4)), rng.normal(size=(4, 5)), rng.normal(size=(5, 5)) / 3


def stored(u, c):
    u = u.copy()
    for _ in range(70):
        m = u[1:-1, 2:-1]
        u[1:-1, 2:-1] = m + c * (u[:-2, 2:-1] + u[2:, 2:-1] + u[1:-1, 1:-2] + u[1:-1, 3:] - 4 * m) - 0.1 * m**2
    return np.sum(u**3)


def replaced(u, c):
    for _ in range(70):
        u = np.tanh(c * u + u.T[:1, :1])
    return np.sum(u * u)


def recurrent(W, B, X):
    h = np.zeros((X.shape[1], B.shape[0]))
    for t in range(12):
        h = np.tanh(X[t] @ W + h @ B)
    return np.sum(h**2)


def of_any_length(W, B, X):
    h = np.zeros((X.shape[1], B.shape[0]))
    for t in range(X.shape[0]):
        h = np.tanh(X[t] @ W + h @ B)
    return np.sum(h**2)


PROGRAMS = {
    "a store of a slice": (stored, (U, 0.2)),
    "a value that is new": (replaced, (U, 0.9)),
    "a recurrent net": (recurrent, (W, B, X)),
    "iterations by a size": (of_any_length, (W, B, X)),
}
pytestmark = pytest.mark.filterwarnings("error")


def gradient_graph(function, values):
    both = tm.value_and_grad(function, (0, 1))
    return executable(tm.tensor(lambda *v: both(*v)).graph(*values)).graph


def carried(results):
    """How many arrays loops carry, of which nodes follow."""
    return sum(bool(t.shape) for n in topological(results) if n.op.name == "loop" for t in n.types)


@pytest.mark.share(3)
@pytest.mark.parametrize("limit", [0, 1 << 60], ids=["in blocks", "whole"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_the_gradient_is_that_of_numpy(name, limit, monkeypatch):
    function, values = PROGRAMS[name]
    monkeypatch.setattr(spans, "MOST_BYTES", limit)
    found = {}
    for tier in ("numpy", "numba"):
        monkeypatch.setattr(config, "tier", tier)
        found[tier] = tm.value_and_grad(function, (0, 1))(*values)
    for left, right in zip(found["numba"][1], found["numpy"][1], strict=True):
        np.testing.assert_allclose(left, right, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(found["numba"][0], function(*values), rtol=1e-12)


@pytest.mark.parametrize("name", ["a store of a slice", "a value that is new", "a recurrent net"])
def test_a_state_is_carried_in_its_record_alone(name, monkeypatch):
    monkeypatch.setattr(spans, "MOST_BYTES", 1 << 60)
    function, values = PROGRAMS[name]
    simple = expand_all(gradient_graph(function, values).results)
    new, _ = in_states(simple)
    assert carried(new) == carried(simple) - 1


def test_no_step_is_left_to_numpy():
    plan = plan_graph(gradient_graph(stored, (U, 0.2)))
    assert not [n for n in plan.library_steps if n.op.name == "loop"]


def test_a_record_that_is_a_result_stays_as_it_is():
    def history(u, c):
        kept = np.zeros((20, *u.shape))
        for t in range(20):
            kept[t] = u
            u = np.tanh(c * u)
        return kept, u

    with config.using(tier="numba"):
        for found, expected in zip(tm.tensor(history)(U, 0.8), history(U, 0.8), strict=True):
            np.testing.assert_allclose(found, expected, rtol=1e-13)
    simple = expand_all(executable(tm.tensor(history).graph(U, 0.8)).graph.results)
    assert in_states(simple)[0] == simple


def test_no_iterations_leave_what_was_there(monkeypatch):
    def function(W, B, X):
        h = W * 1.5
        for t in range(X.shape[0]):
            h = np.tanh(h * B[0, 0] + X[t, 0, 0])
        h = h + np.sum(B)
        return np.sum(h**2)

    monkeypatch.setattr(config, "tier", "numba")
    both = tm.value_and_grad(function, (0, 1))
    for length in (5, 2, 0):
        value, (dw, _) = both(W, B, X[:length])
        np.testing.assert_allclose(value, function(W, B, X[:length]), rtol=1e-13)
    np.testing.assert_allclose(dw, 3 * (1.5 * W + np.sum(B)), rtol=1e-13)
