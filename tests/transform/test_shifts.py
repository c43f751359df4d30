"""Gradients of stencils read neighbours: the same numbers as by additions one after the other, also where nothing is inside."""

import numpy as np
import pytest

import tensormagic as tm
from tensormagic.config import config
from tensormagic.session import executable

rng = np.random.default_rng(2)


def along_a_line(u, c):
    u = u.copy()
    for _ in range(5):
        m = u[2:-2]
        u[2:-2] = m + c * (u[:-4] + u[1:-3] + u[3:-1] + u[4:] - 4 * m) * 0.5
    return np.sum(u**3)


def one_way(u, c):
    u = u.copy()
    for _ in range(4):
        u[:-3] = u[:-3] + c * (u[1:-2] + u[2:-1] + u[3:])
    return np.sum(np.sin(u))


def five_points(u, c):
    u = u.copy()
    for _ in range(5):
        m = u[1:-1, 1:-1]
        u[1:-1, 1:-1] = m + c * (u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:] - 4 * m) + 0.1 * m * (1 - m)
    return np.sum(u**3)


def nine_points(u, c):
    u = u.copy()
    for _ in range(3):
        near = u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:]
        corners = u[:-2, :-2] + u[2:, :-2] + u[:-2, 2:] + u[2:, 2:]
        u[1:-1, 1:-1] = c * (near + corners / 2) + u[1:-1, 1:-1] ** 2
    return np.sum(np.cos(u))


def seven_points(u, c):
    u = u.copy()
    for _ in range(3):
        m = u[1:-1, 1:-1, 1:-1]
        sides = u[:-2, 1:-1, 1:-1] + u[2:, 1:-1, 1:-1] + u[1:-1, :-2, 1:-1]
        u[1:-1, 1:-1, 1:-1] = m + c * (sides + u[1:-1, 2:, 1:-1] + u[1:-1, 1:-1, :-2] + u[1:-1, 1:-1, 2:]) * m
    return np.sum(np.cos(u))


SHAPES = {
    along_a_line: [(9,), (6,), (5,), (4,)],
    one_way: [(9,), (4,), (3,)],
    five_points: [(7, 6), (3, 3), (4, 3), (2, 5), (2, 2)],
    nine_points: [(7, 6), (3, 3), (3, 2)],
    seven_points: [(5, 6, 4), (3, 3, 3), (2, 4, 3)],
}


def additions(function, *values):
    """How many additions to parts the loops of a rewritten graph have."""
    graph = executable(function.graph(*values)).graph
    bodies = [n["body"] for n in graph.nodes if n.op.name == "loop"]
    return [n.args[1].type for body in bodies for n in body.nodes if n.op.name == "add_at"]


@pytest.mark.share(4)
@pytest.mark.parametrize("function", SHAPES, ids=lambda f: f.__name__)
def test_gradients_of_stencils(function, tier):
    both = tm.value_and_grad(function, (0, 1))
    for shape in SHAPES[function]:
        u, step = rng.normal(size=shape) / 4, 1e-6
        value, (slope, by_c) = both(u, 0.2)
        np.testing.assert_allclose(value, function(u, 0.2), rtol=1e-12)
        along = rng.normal(size=shape)
        ends = [function(u + s * along, 0.2) for s in (step, -step)]
        np.testing.assert_allclose(np.vdot(slope, along), (ends[0] - ends[1]) / (2 * step), rtol=1e-6, atol=1e-8)
        ends = [function(u, 0.2 + s) for s in (step, -step)]
        np.testing.assert_allclose(by_c, (ends[0] - ends[1]) / (2 * step), rtol=1e-6, atol=1e-8)


def test_only_the_rim_is_added_to():
    u = rng.normal(size=(7, 6))
    both = tm.value_and_grad(five_points, (0, 1))
    rims = additions(both, u, 0.2)
    assert len(rims) == 4
    assert all(1 in t.shape for t in rims)


def test_the_level_exact_adds_one_after_the_other(monkeypatch):
    monkeypatch.setattr(config, "math", "exact")
    monkeypatch.setattr(config, "tier", "numpy")
    u = rng.normal(size=(7, 6))
    both = tm.value_and_grad(five_points, (0, 1))
    graph = executable(both.graph(u, 0.2)).graph
    bodies = [n["body"] for n in graph.nodes if n.op.name == "loop"]
    parts = [n.args[1].type for body in bodies for n in body.nodes if n.op.name == "add_at"]
    assert len(parts) == 5
    assert not any(1 in t.shape for t in parts)


def test_an_array_that_is_read_between_is_left_alone():
    def function(g, v):
        out = 0.0
        for _ in range(3):
            g = g.copy()
            g[1:-1] = 0
            g[2:] += v
            out = out + np.sum(g**2)
            g[:-2] += v
            g[1:-1] += v
        return out + np.sum(g)

    g, v = rng.normal(size=8), rng.normal(size=6)
    np.testing.assert_allclose(tm.tensor(function)(g, v), function(g, v), rtol=1e-12)
