"""Loops whose iterations differentiate or batch what may fail: what is computed of stand-ins is none of the loop's checks."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tensormagic as tm

_RNG = np.random.default_rng(4)
W, V, X = _RNG.normal(size=(6, 3)), _RNG.normal(size=6), _RNG.normal(size=(8, 6))
AT, LABELS = _RNG.integers(0, 3, 6), _RNG.integers(0, 3, 8)


def cross_entropy(w, x, labels):
    z = x @ w
    z = z - z.max(1, keepdims=True)
    return -(z - np.log(np.exp(z).sum(1, keepdims=True)))[np.arange(len(labels)), labels].mean()


def trained(w, x, labels):
    for _ in range(20):
        w = w - 0.1 * tm.grad(cross_entropy)(w, x, labels)
    return w


def until(v, at):
    steps = 0
    while v.sum() < 9 and steps < 7:
        v = v + 0.1 * tm.grad(lambda u: (u[at] ** 2).sum())(v) + 0.1
        steps += 1
    return v


def branched(v, at):
    for _ in range(4):
        v = v - 0.1 * tm.grad(lambda u: (u[at] ** 3).sum())(v) if v.sum() > 0 else v + 1
    return v


def twice(v, at):
    for _ in range(3):
        v = v - 0.1 * tm.grad(lambda w: tm.grad(lambda u: (u[at] ** 3).sum())(w).sum())(v)
    return v


def pushed(v, at):
    for _ in range(3):
        v = v - 0.1 * tm.jvp(lambda u: u[at] ** 3, (v,), (v,))[1].sum()
    return v


def batched(w, at):
    for _ in range(3):
        w = w - 0.1 * tm.vmap(lambda row, i: row[i])(w, at)[:, None]
    return w


def batched_gradient(w, at):
    for _ in range(3):
        w = w - 0.1 * tm.vmap(tm.grad(lambda row, i: row[i] * row[0]))(w, at)
    return w


def gradient_of_batches(w, at):
    for _ in range(3):
        w = w - 0.1 * tm.grad(lambda m: tm.vmap(lambda row, i: row[i] * row[0])(m, at).sum())(w)
    return w


def factored(x):
    a = x.T @ x + np.eye(6)
    for _ in range(3):
        a = a + 0.1 * tm.grad(lambda m: np.log(np.diag(np.linalg.cholesky(m))).sum())(a)
    return a


def nested(v, at):
    for _ in range(2):
        for _ in range(3):
            v = v - 0.01 * tm.grad(lambda u: (u[at] ** 3).sum())(v)
        v = v * 0.5
    return v


PROGRAMS: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "cross entropy": (trained, (W, X, LABELS)),
    "a while": (until, (V, AT)),
    "a branch": (branched, (V, AT)),
    "twice": (twice, (V, AT)),
    "forward": (pushed, (V, AT)),
    "batched": (batched, (W, AT)),
    "a batched gradient": (batched_gradient, (W, AT)),
    "a gradient of batches": (gradient_of_batches, (W, AT)),
    "factored": (factored, (X,)),
    "nested": (nested, (V, AT)),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_loop_of_derivatives_is_captured(name: str):
    function, args = PROGRAMS[name]
    graph = tm.trace(function, *args)
    assert len(graph.parameters) == len(args)  # nothing but its arguments
    found = tm.compile(function, *args).run(*args)
    np.testing.assert_allclose(found, function(*args), rtol=1e-12, atol=1e-12)


def test_an_index_out_of_bounds_is_an_error_of_the_call():
    labels = LABELS.copy()
    labels[3] = 3
    call = tm.compile(trained, W, X, LABELS)
    with pytest.raises(IndexError, match="out of bounds"):
        call.run(W, X, labels)


def test_an_unused_line_within_a_differentiated_function_raises():
    def loss(u, at):
        u[at + 7]
        return (u * u).sum()

    def run(v, at):
        for _ in range(3):
            v = v - 0.1 * tm.grad(loss)(v, at)
        return v

    call = tm.compile(run, V, AT)
    np.testing.assert_allclose(call.run(V, np.full(6, -7)), run(V, np.full(6, -7)))
    with pytest.raises(IndexError, match="out of bounds"):
        call.run(V, AT)
