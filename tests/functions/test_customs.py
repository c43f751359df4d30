"""``tm.checkpoint`` and ``tm.custom_gradient``: values, derivatives of several orders in both modes, batches, refusals."""

import numpy as np
import pytest

import tensormagic as tm
from tensormagic.capture.values.operands import node_of
from tensormagic.capture.values.value import wrap
from tensormagic.ir.errors import DifferentiationError
from tests.ops.test_derivatives import check

pytestmark = pytest.mark.usefixtures("by_numpy")
X = np.array([0.3, -0.7, 1.1])


def nodes(function):
    return lambda *args: node_of(function(*map(wrap, args)))


def block(x, y):
    return np.sin(np.exp(x) * y) * y


def test_checkpoint_has_the_same_derivatives():
    check("reference", nodes(tm.checkpoint(block)), [X, X[::-1]])
    for order in (1, 2, 3):
        ours, plain = tm.checkpoint(lambda x: block(x, 2.0)), lambda x: block(x, 2.0)
        for _ in range(order):
            ours, plain = tm.grad(ours), tm.grad(plain)
        np.testing.assert_allclose(ours(0.4), plain(0.4), rtol=1e-13)


def test_a_loop_of_checkpoints_saves_the_carries_alone():
    def deep(wrapped):
        def iteration(_k, y):
            return wrapped(y)

        return tm.grad(lambda x: tm.fori_loop(0, 5, iteration, x).sum())

    def step(y):
        return np.sin(np.exp(np.cos(np.exp(np.sin(y)))))

    plain, light = (tm.trace(deep(f), X).text for f in (step, tm.checkpoint(step)))
    np.testing.assert_allclose(deep(tm.checkpoint(step))(X), deep(step)(X), rtol=1e-13)
    assert light.count(" set(") < plain.count(" set(")
    assert light.count(" set(") == 1


def test_a_batch_of_checkpoints():
    batch = np.stack([X, 2 * X])
    gradient = tm.grad(lambda x: tm.checkpoint(block)(x, x).sum())
    np.testing.assert_allclose(tm.vmap(gradient)(batch), [gradient(x) for x in batch], rtol=1e-13)


@tm.custom_gradient
def doubled(x, y):
    return x * y, lambda cotangent: (2 * cotangent * y, 3 * cotangent * x)


def test_custom_gradient_gives_what_it_says():
    assert doubled(2.0, 5.0) == 10
    assert tm.grad(doubled, (0, 1))(2.0, 5.0) == (10, 6)
    found = tm.grad(lambda x: (doubled(x, X) * X).sum())(X)
    np.testing.assert_array_equal(found, 2 * X * X)


def test_custom_gradient_in_forward_mode_is_the_transpose():
    assert tm.jvp(doubled, (2.0, 5.0), (1.0, 0.0)) == (10, 10)
    assert tm.jvp(doubled, (2.0, 5.0), (0.0, 1.0)) == (10, 6)
    assert tm.grad(tm.grad(lambda x: doubled(x, x) * 1.0))(3.0) == 5
    assert tm.hvp(lambda x: doubled(x, x) * 1.0, 3.0, 1.0) == 5


def test_custom_gradient_in_loops_and_batches():
    def f(x):
        return tm.fori_loop(0, 3, lambda _k, y: doubled(y, x), 1.0 * x)

    # backwards, y_k = y_(k-1) x: the cotangent of y doubles with x each time, and x gets 3 c y
    x, c, total = 2.0, 1.0, 0.0
    for y in (x**3, x**2, x):
        c, total = 2 * c * x, total + 3 * c * y
    assert tm.grad(f)(x) == total + c
    xs = np.array([1.0, 2.0, -0.5])
    np.testing.assert_allclose(tm.vmap(tm.grad(f))(xs), [tm.grad(f)(x) for x in xs], rtol=1e-14)
    np.testing.assert_allclose(tm.vmap(f)(xs), xs**4, rtol=1e-14)


def test_what_is_no_custom_gradient_is_refused():
    with pytest.raises(DifferentiationError, match="must return a pair"):
        tm.custom_gradient(lambda x: x)(1.0)
    with pytest.raises(DifferentiationError, match="returns 1 cotangents for 2 arguments"):
        tm.custom_gradient(lambda x, y: (x * y, lambda c: c))(1.0, 2.0)
