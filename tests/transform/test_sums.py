"""Sums of products over the iterations of a loop are one product after it; what has another use of the sums stays as it is."""

import numpy as np
import pytest

import tensormagic as tm
from tensormagic.session import executable

pytestmark = pytest.mark.usefixtures("by_numpy")
rng = np.random.default_rng(3)
A, D = rng.normal(size=(40, 5, 4)), rng.normal(size=(40, 5, 3))


def loops(graph):
    return [n for n in graph.nodes if n.op.name == "loop"]


def products_in_loops(function, *values):
    """How many products the iterations of the loops of a rewritten graph have."""
    graph = executable(function.graph(*values)).graph
    return sum(n.op.name == "contract" for loop in loops(graph) for n in loop["body"].nodes)


def gram(A, D):
    total = np.zeros((A.shape[2], D.shape[2]))
    for t in range(40):
        total = total + A[t].T @ np.tanh(D[t])
    return total


def backwards(A, D):
    total = np.ones((A.shape[2], D.shape[2]))
    for t in range(40):
        total = total + A[39 - t].T @ np.tanh(D[39 - t]) + 1
    return total


def offset(A, D):
    total = np.zeros((A.shape[2], D.shape[2]))
    for t in range(30):
        total = total + A[t + 7].T @ np.tanh(D[t])
    return total


def of_any_length(A, D):
    total = np.zeros((A.shape[2], D.shape[2]))
    for t in range(A.shape[0]):
        total = total + A[t].T @ np.tanh(D[t])
    return total


@pytest.mark.parametrize("function", [gram, backwards, offset, of_any_length], ids=lambda f: f.__name__)
def test_a_sum_of_products_leaves_the_loop(function, tier):
    captured = tm.tensor(function)
    np.testing.assert_allclose(captured(A, D), function(A, D), rtol=1e-12, atol=1e-12)
    assert products_in_loops(captured, A, D) == 0


def read_meanwhile(A, D):
    total = np.zeros((A.shape[2], D.shape[2]))
    other = 0.0
    for t in range(40):
        total = total + A[t].T @ np.tanh(D[t])
        other = other + np.sum(np.cos(total))
    return total * other


def fed_back(A, D):
    total = np.zeros((A.shape[2], D.shape[2]))
    for t in range(40):
        total = total + A[t].T @ np.tanh(D[t] + total[0])
    return total


@pytest.mark.parametrize("function", [read_meanwhile, fed_back], ids=lambda f: f.__name__)
def test_a_sum_that_is_read_on_the_way_stays(function):
    captured = tm.tensor(function)
    np.testing.assert_allclose(captured(A, D), function(A, D), rtol=1e-12, atol=1e-12)
    assert products_in_loops(captured, A, D) == 1


def batched(W, U, b, X):
    h = np.zeros((X.shape[1], U.shape[0]))
    for t in range(40):
        h = np.tanh(X[t] @ W + h @ U + b)
    return np.sum(h**2)


def alone(W, U, b, X):
    h = np.zeros(U.shape[0])
    for t in range(40):
        h = np.tanh(X[t, 0] @ W + h @ U + b)
    return np.sum(h**2)


@pytest.mark.parametrize("recurrent", [batched, alone], ids=lambda f: f.__name__)
def test_weights_of_a_recurrent_net_get_their_gradient_after_the_loop(recurrent, tier):
    weights = rng.normal(size=(4, 6)), rng.normal(size=(6, 6)) * 0.3, rng.normal(size=6)
    both = tm.value_and_grad(recurrent, (0, 1, 2))
    value, slopes = both(*weights, A)
    np.testing.assert_allclose(value, recurrent(*weights, A), rtol=1e-12)
    step = 1e-6
    for k, slope in enumerate(slopes):
        along = rng.normal(size=slope.shape)
        moved = [[w + s * along if j == k else w for j, w in enumerate(weights)] for s in (step, -step)]
        expected = (recurrent(*moved[0], A) - recurrent(*moved[1], A)) / (2 * step)
        np.testing.assert_allclose(np.vdot(slope, along), expected, rtol=1e-6)
    # two forwards, one backwards; those of all inputs are one product before, but not where only one of them is read
    assert products_in_loops(both, *weights, A) == (2 if recurrent is batched else 3)
