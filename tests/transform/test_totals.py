"""Arrays that loops add to and that are summed afterwards are numbers within the loops; what has another use stays."""

import numpy as np
import pytest

import tensormagic as tm
from tensormagic.config import config
from tensormagic.ops.reverse import spans
from tensormagic.session import executable

rng = np.random.default_rng(5)
U = rng.random((9, 7))
CLOSE = {"rtol": 1e-12, "atol": 1e-13}


def added(x, c):
    total = np.zeros(x.shape)
    for _ in range(30):
        x = np.tanh(x * c)
        total = total + x * x
    return np.sum(total) + np.sum(x)


def begun(x, c):
    total = np.exp(x)
    for _ in range(30):
        x = np.tanh(x * c)
        total = total + x + np.sqrt(np.abs(x))
    return np.sum(total)


def nested(x, c):
    total = np.zeros(x.shape)
    for _ in range(6):
        for _ in range(5):
            x = np.tanh(x * c)
            total = total + x * x
        x = x + 0.1
    return np.sum(total)


def shown(x, c):
    total = np.zeros(x.shape)
    for _ in range(30):
        x = np.tanh(x * c)
        total = total + x * x
    return np.sum(total) + total[0, 0]


def read(x, c):
    total = np.zeros(x.shape)
    for _ in range(30):
        x = np.tanh(x * c + 0.01 * total)
        total = total + x * x
    return np.sum(total)


def scaled(x, c):
    total = np.ones(x.shape)
    for _ in range(30):
        x = np.tanh(x * c)
        total = 0.5 * total + x
    return np.sum(total)


def diffusion(u, c):
    u = u.copy()
    for _ in range(66):
        m = u[1:-1, 1:-1]
        u[1:-1, 1:-1] = m + c * (u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:] - 4 * m)
    return np.mean(u**2)


def carried_arrays(graph):
    """How many arrays the innermost loops of a graph carry, of those of a gradient the most."""
    found = 0
    stack = [graph]
    while stack:
        for node in stack.pop().nodes:
            inner = [value for value in node.params.values() if hasattr(value, "nodes")]
            stack += inner
            if node.op.name == "loop" and not any(n.op.name in {"loop", "call"} for n in inner[0].nodes):
                found = max(found, sum(bool(t.shape) for t in node.types))
    return found


@pytest.mark.parametrize("function", [added, begun, nested, shown, read, scaled], ids=lambda f: f.__name__)
def test_the_value_is_that_of_numpy(function, tier):
    np.testing.assert_allclose(tm.tensor(function)(U, 0.9), function(U, 0.9), **CLOSE)


@pytest.mark.parametrize(
    ("function", "arrays"), [(added, 1), (begun, 1), (nested, 1), (shown, 2), (read, 2), (scaled, 2)]
)
def test_what_is_only_added_to_and_summed_is_a_number(function, arrays):
    assert carried_arrays(executable(tm.tensor(function).graph(U, 0.9)).graph) == arrays


def test_the_level_exact_keeps_the_order_of_sums():
    with config.using(math="exact"):
        assert carried_arrays(executable(tm.tensor(added).graph(U, 0.9)).graph) == 2


@pytest.mark.parametrize("limit", [0, 1 << 60], ids=["in blocks", "whole"])
def test_a_gradient_by_a_number_is_added_up_as_a_number(limit, tier, monkeypatch):
    monkeypatch.setattr(spans, "MOST_BYTES", limit)
    gradient = tm.grad(diffusion, (0, 1))
    du, dc = gradient(U, 0.1)
    step = 1e-5
    expected = (diffusion(U, 0.1 + step) - diffusion(U, 0.1 - step)) / (2 * step)
    np.testing.assert_allclose(dc, expected, rtol=1e-6)
    up, down = U.copy(), U.copy()
    up[3, 2] += step
    down[3, 2] -= step
    np.testing.assert_allclose(du[3, 2], (diffusion(up, 0.1) - diffusion(down, 0.1)) / (2 * step), rtol=1e-6)
    whole = executable(tm.tensor(lambda u, c: tm.grad(diffusion, (0, 1))(u, c)).graph(U, 0.1)).graph
    assert carried_arrays(whole) == 2
    back = [n for n in _nodes(whole) if n.op.name == "loop" and any(not t.shape for t in n.types)]
    assert all(sum(bool(t.shape) for t in n.types) <= 2 for n in back)  # a cotangent in a frame of zeros, and its rim
    assert back


def _nodes(graph):
    for node in graph.nodes:
        yield node
        for value in node.params.values():
            if hasattr(value, "nodes"):
                yield from _nodes(value)
