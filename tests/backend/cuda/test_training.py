"""Loops that train: what the host reads, copies and waits for while a device runs them."""

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tensormagic as tm
from tensormagic.backend.cuda.device import Device
from tensormagic.backend.cuda.loops import ahead, small_loops
from tests.backend.cuda.emulated import compiles
from tests.backend.cuda.test_loops import compared, graph_of, launched

pytestmark = compiles
_RNG = np.random.default_rng(0)
X, W = _RNG.normal(size=(24, 5)), _RNG.normal(size=5) * 0.1
Y = np.sign(_RNG.normal(size=24))
LAYERS = _RNG.normal(size=(5, 7)) * 0.5, np.zeros(7), _RNG.normal(size=(7, 1)) * 0.5
STEPS = 100


@pytest.fixture(autouse=True)
def no_loop_is_small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Iterations are launches, however few numbers there are."""
    monkeypatch.setattr(small_loops, "LONGEST", -1.0)


def logistic(w, x, y):
    return np.mean(np.log(1 + np.exp(-y * (x @ w))))


def network(a, b, c, x, y):
    return np.mean(((np.maximum(x @ a + b, 0) @ c)[:, 0] - y) ** 2)


def steps(w, x, y):
    for _ in range(STEPS):
        w = w - 0.5 * tm.grad(logistic)(w, x, y)
    return w


def layers(a, b, c, x, y):
    for _ in range(STEPS):
        g = tm.grad(network, argnums=(0, 1, 2))(a, b, c, x, y)
        a, b, c = a - 0.05 * g[0], b - 0.05 * g[1], c - 0.05 * g[2]
    return a, b, c


def momentum(w, x, y):
    v = np.zeros_like(w)
    for _ in range(STEPS):
        v = 0.9 * v + tm.grad(logistic)(w, x, y)
        w = w - 0.1 * v
    return w, v


def adam(w, x, y):
    m, v = np.zeros_like(w), np.zeros_like(w)
    for t in range(STEPS):
        g = tm.grad(logistic)(w, x, y)
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
        w = w - 0.05 * (m / (1 - 0.9 ** (t + 1))) / (np.sqrt(v / (1 - 0.999 ** (t + 1))) + 1e-8)
    return w


def batches(w, x, y):
    """The sizes of the slices follow from the index, as far as anyone can tell before."""
    for k in range(STEPS):
        i = (k * 6) % 24
        w = w - 0.5 * tm.grad(logistic)(w, x[i : i + 6], y[i : i + 6])
    return w


def batches_of_two_sizes(w, x, y):
    """The last batch of each pass is a smaller one."""
    for k in range(12):
        i = (k * 9) % 27
        w = w - 0.5 * tm.grad(logistic)(w, x[i : i + 9], y[i : i + 9])
    return w


def passes(w, x, y):
    for _ in range(STEPS // 4):
        for i in range(0, 24, 6):
            w = w - 0.5 * tm.grad(logistic)(w, x[i : i + 6], y[i : i + 6])
    return w


def batches_of_layers(a, b, c, x, y):
    for k in range(STEPS):
        i = (k * 6) % 24
        g = tm.grad(network, argnums=(0, 1, 2))(a, b, c, x[i : i + 6], y[i : i + 6])
        a, b, c = a - 0.05 * g[0], b - 0.05 * g[1], c - 0.05 * g[2]
    return a, b, c


def drawn_before(w, x, y, order):
    for k in range(STEPS):
        i = (k * 6) % 24
        p = order[i : i + 6]
        w = w - 0.5 * tm.grad(logistic)(w, x[p], y[p])
    return w


def noted(w, x, y):
    losses = np.zeros(STEPS)
    for k in range(STEPS):
        losses[k] = logistic(w, x, y)
        w = w - 0.5 * tm.grad(logistic)(w, x, y)
    return w, losses


def slower(w, x, y):
    rate = 0.5
    for k in range(STEPS):
        w = w - rate * tm.grad(logistic)(w, x, y)
        if k % 10 == 9:
            rate = rate * 0.7
    return w


def until(w, x, y):
    k, g = 0, tm.grad(logistic)(w, x, y)
    while np.sqrt((g * g).sum()) > 1e-3 and k < STEPS:
        w = w - g
        g = tm.grad(logistic)(w, x, y)
        k += 1
    return w, k


def layers_until(a, b, c, x, y):
    k = 0
    while network(a, b, c, x, y) > 0.1 and k < STEPS:
        g = tm.grad(network, argnums=(0, 1, 2))(a, b, c, x, y)
        a, b, c = a - 0.05 * g[0], b - 0.05 * g[1], c - 0.05 * g[2]
        k += 1
    return a, b, c, k


def stopped(w, x, y):
    """Until the loss falls no more."""
    best = np.inf
    for _ in range(STEPS):
        loss = logistic(w, x, y)
        if loss > best - 1e-6:
            break
        best = loss
        w = w - tm.grad(logistic)(w, x, y)
    return w, best


PROGRAMS: dict[str, tuple[Callable[..., Any], tuple[Any, ...], int]] = {  # with how often the host reads a flag
    "steps": (steps, (W, X, Y), 1),
    "layers": (layers, (*LAYERS, X, Y), 1),
    "momentum": (momentum, (W, X, Y), 1),
    "adam": (adam, (W, X, Y), 1),
    "batches": (batches, (W, X, Y), 1),
    "batches of two sizes": (batches_of_two_sizes, (W, X, Y), 1),
    "passes": (passes, (W, X, Y), 1),
    "batches of layers": (batches_of_layers, (*LAYERS, X, Y), 1),
    "drawn before": (drawn_before, (W, X, Y, _RNG.permutation(24)), 1),
    "noted": (noted, (W, X, Y), 1),
    "slower": (slower, (W, X, Y), 1),
    "until": (until, (W, X, Y), 9),  # after 1, 3, 7, 15, 31, 63, 95 and 127 iterations, and of faults
    "layers until": (layers_until, (*LAYERS, X, Y), 9),
    "stopped": (stopped, (W, X, Y), 9),
}


@pytest.mark.share(4)
@pytest.mark.parametrize("name", PROGRAMS)
def test_the_host_looks_once_or_once_for_a_block_of_iterations(
    device: Device, monkeypatch: pytest.MonkeyPatch, name: str
):
    """Nothing is copied in either direction, nothing is waited for, and the values are NumPy's."""
    waited: list[str] = []
    for call in ("synchronize", "finish"):
        monkeypatch.setattr(type(device), call, lambda self, *given, call=call: waited.append(call))
    function, args, reads = PROGRAMS[name]
    traced, graph = graph_of(function, args)
    with warnings.catch_warnings(action="error", category=RuntimeWarning):
        found = launched(device, graph, args)
    copied = device.copied
    assert (copied.to_device, copied.to_host) == (sum(np.asarray(a).nbytes for a in args), 0)
    assert 0 < copied.reads <= reads
    assert copied.launches + copied.replays > 0
    assert not waited
    compared(device, found, traced, args)


def test_what_the_library_computes_in_vain_is_bounded(device: Device, monkeypatch: pytest.MonkeyPatch):
    """Where its part of an iteration takes longer than a look of the host, the host looks after each of them."""
    monkeypatch.setattr(ahead, "LOOKING", 0.0)
    traced, graph = graph_of(layers_until, (*LAYERS, X, Y))
    found = launched(device, graph, (*LAYERS, X, Y))
    assert device.copied.reads > 50
    compared(device, found, traced, (*LAYERS, X, Y))


def test_integers_of_the_host_end_where_the_loop_does(device: Device):
    """Behind the last iteration there is no such integer: no iteration is launched ahead that would need it."""

    def divided(y):
        k, m = 0, 0
        while y.sum() > 1e-3 and k < 6:
            m = 60 // (6 - k)
            y = y * 0.9 + m * 0.01
            k += 1
        return y, k, m

    args = (np.abs(X[:, 0]) + 1,)
    traced, graph = graph_of(divided, args)
    compared(device, launched(device, graph, args), traced, args)
