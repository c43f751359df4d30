"""Functions of the index and of constants in loops that carry numbers: they are computed before the loop, with the loop's values."""

import numpy as np
import pytest

import tensormagic as tm
from tests.transform.loops import PLAIN, VECTORS, normal, own, same

LONG = np.random.default_rng(8).normal(size=2000)


def smoothed(x):
    out, s = np.zeros_like(x), 0.0
    for k in range(len(x)):
        s = 0.5 * s + np.exp(x[k]) * np.sin(x[k])
        out[k] = s
    return out


def gated(x):
    s = 0.0
    for v in x:
        g = 1 / (1 + np.exp(-v))
        s = g * s + (1 - g) * v
    return s


def timed(x):
    s = 0.0
    for k in range(len(x)):
        s = 0.9 * s + x[k] * np.cos(0.1 * k)
    return s


def in_place(x):
    y = np.zeros_like(x)
    for k in range(1, len(x)):
        y[k] = y[k - 1] * 0.5 + np.tanh(x[k])
    return y


def backwards(x):
    y = x.copy()
    for k in range(len(x) - 2, -1, -1):
        y[k] = np.arctan(x[k]) - 0.5 * y[k + 1]
    return y


def of_two(x):
    w, s, t = x[::-1] * 2, 0.0, 1.0
    for k in range(len(x)):
        e = np.exp(x[k] - w[k])
        s, t = 0.5 * s + e, np.sin(t) + np.log1p(e)
    return s + t


ALL = [smoothed, gated, timed, in_place, backwards, of_two]
HEAVY = {"exp", "tanh", "arctan", "cos", "sigmoid", "log1p"}


def inside(f, level="stable"):
    """The functions that an iteration computes."""
    return {n.op.name for node in normal(f, [PLAIN], level).nodes if node.op.name == "loop" for n in node["body"].nodes}


@pytest.mark.parametrize("f", ALL)
def test_functions_leave_the_loop(f):
    assert inside(f)
    assert not inside(f) & HEAVY
    assert inside(f, "exact") & HEAVY  # whose digits may depend on where an element lies
    assert inside(f, "stable without loops") & HEAVY


@pytest.mark.parametrize("name", VECTORS)
@pytest.mark.parametrize("f", ALL)
def test_values_are_those_of_the_loop(f, name):
    same(f, [VECTORS[name]], "stable")


@pytest.mark.parametrize("f", ALL)
def test_compiled_values_are_those_of_the_loop(f):
    same(f, [LONG], "stable", compiled=True)


@pytest.mark.parametrize("f", ALL)
def test_gradients_are_those_of_the_loop(f):
    def loss(x):
        return np.sum(f(x) * 1.5)

    found, step = tm.grad(loss)(PLAIN), 1e-6
    for k in range(PLAIN.size):
        change = step * (np.arange(PLAIN.size) == k)
        slope = (own(loss, [PLAIN + change]) - own(loss, [PLAIN - change])) / (2 * step)
        assert found[k] == pytest.approx(slope, rel=1e-4, abs=1e-7)


def of_what_is_carried(x):
    s = 0.0
    for v in x:
        s = np.exp(-s * v)
    return s


def cheap(x):
    s = 0.0
    for v in x:
        s = 0.5 * s + v * v
    return s


def of_the_index_alone(x):
    s = x[0]
    for k in range(3000):
        s = 0.5 * s + np.sin(k)
    return s


def behind_a_branch(x):
    s = 0.0
    for v in x:
        s = 0.5 * s + (np.log(v) if v > 0 else v)
    return s


@pytest.mark.parametrize("f", [of_what_is_carried, cheap, of_the_index_alone, behind_a_branch])
def test_other_iterations_stay_as_they_are(f):
    before, after = normal(f, [PLAIN], "stable without loops"), normal(f, [PLAIN])
    names = [sorted(n.op.name for n in g.nodes if n.op.kind == "pointwise" and n.type.shape) for g in (before, after)]
    assert names[0] == names[1]
    same(f, [PLAIN], "stable")
