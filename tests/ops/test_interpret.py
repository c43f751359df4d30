"""Interpretation by NumPy: stores in place where nobody can tell, and only there."""

import tracemalloc

import numpy as np
import pytest

from tensormagic.ir.closing import close
from tensormagic.ops.fold import reduce_sum
from tensormagic.ops.leaf import INPUT, constant, index_node, parameter, size_node, size_of
from tensormagic.ops.move import flip, slice_
from tensormagic.ops.regions.control import cond, interpret, loop
from tensormagic.ops.scalars.scalar import greater, sin
from tensormagic.ops.update import set_at
from tensormagic.transform.grad import gradient
from tests.ops.harness import closed, place


def body_of(build, *operands):
    """The body of a loop, ``build(index, at, *stand-ins)``, for operands of these values."""
    inputs = [place(v) for v in operands]
    index = index_node("k", 0, inputs[0].type.shape[0])
    leaves = [index, *inputs]
    return close(
        build(index, ((size_of(index), 1, 1),), *inputs),
        lambda n: n in leaves or n.op is INPUT,
        parameter,
        leaves=leaves,
    ).graph


def stores(n, build):
    """``x[k] = build(x, c, k)`` for every ``k``, and its gradients."""
    zeros = np.zeros(n)
    x, c = place(zeros), place(zeros)
    body = body_of(lambda _k, at, x, c: [set_at(x, build(x, c, at), at)], zeros, zeros)
    (out,) = loop(size_node(c.type.shape[0]), body, [x], [c])
    return closed([out], [x, c]), closed(gradient(reduce_sum(out * out, (0,)), [x, c]), [x, c])


def first_and_own(x, c, at):
    return sin(slice_(c, at)) * 3.0 + slice_(x, ((0, 1, 1),))


def test_inputs_are_not_stored_into():
    forward, backward = stores(5, first_and_own)
    x, c = np.arange(5.0), np.linspace(0, 1, 5)
    expected = x.copy()
    for k in range(5):
        expected[k] = 3 * np.sin(c[k]) + expected[0]
    for _ in range(2):
        np.testing.assert_allclose(interpret(forward, [x, c])[0], expected, rtol=1e-14)
        interpret(backward, [x, c])
    np.testing.assert_array_equal(x, np.arange(5.0))
    np.testing.assert_array_equal(c, np.linspace(0, 1, 5))


def test_a_view_that_is_read_after_the_store_is_what_it_was():
    def build(_k, at, x, _c):
        new = set_at(x, slice_(flip(x, (0,)), at) + 1.0, at)
        return [new + flip(x, (0,))]

    zeros = np.arange(4.0)
    x, c = place(zeros), place(zeros)
    (out,) = loop(constant(3), body_of(build, zeros, zeros), [x], [c])
    expected = zeros.copy()
    for k in range(3):
        before = expected[::-1].copy()
        new = expected.copy()
        new[k] = before[k] + 1
        expected = new + before
    np.testing.assert_array_equal(interpret(closed([out], [x, c]), [zeros, zeros])[0], expected)


def test_two_carries_that_become_one_array_stay_apart():
    def build(_k, at, x, y):
        new = set_at(x, slice_(y, at) + 1.0, at)
        return [new, set_at(new, slice_(x, at) * 2.0, at)]

    start = np.arange(3.0)
    x, y = place(start), place(start)
    ends = loop(constant(3), body_of(build, start, start), [x, y])
    a, b = start.copy(), start.copy()
    for k in range(3):
        new = a.copy()
        new[k] = b[k] + 1
        other = new.copy()
        other[k] = a[k] * 2
        a, b = new, other
    for ours, expected in zip(interpret(closed(list(ends), [x, y]), [start, start]), (a, b), strict=True):
        np.testing.assert_array_equal(ours, expected)


def chosen(x, c, at):
    """One of two values, by a branch inside the loop."""
    inputs = [place(np.zeros(1)), place(np.zeros(1))]
    graphs = [closed([v], inputs) for v in (inputs[0] + inputs[1], inputs[1] * 2.0)]
    positive = greater(reduce_sum(slice_(c, at), (0,)), 0.0)
    return cond(positive, *graphs, [slice_(x, ((0, 1, 1),)), slice_(c, at)])[0]


@pytest.mark.parametrize("build", [first_and_own, chosen])
def test_stores_of_elements_take_memory_for_the_array_and_the_iterations(build):
    n = 3000
    _, backward = stores(n, build)
    values = [np.zeros(n), np.linspace(-1, 1, n)]
    interpret(backward, values)
    tracemalloc.start()
    try:
        interpret(backward, values)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 100 * 8 * n  # carries for every iteration would take n * n
