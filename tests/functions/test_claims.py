"""What documents about older systems say of differentiation, held to here; each test has the number of the claim in its name."""

import math
import tracemalloc

import mpmath
import numpy as np
import pytest

import tensormagic as tm
from tensormagic.backend.planning.plan import plan_graph
from tensormagic.capture.values.operands import node_of
from tensormagic.capture.values.value import wrap
from tensormagic.ir import site
from tensormagic.ir.graph import Graph
from tensormagic.ir.node import topological
from tensormagic.transform.grad import value_and_gradient
from tensormagic.transform.rewriting import rewrite
from tests.ops.harness import closed, place

pytestmark = pytest.mark.usefixtures("by_numpy")
X = np.array([0.3, -0.7, 1.1])


def polynomial(x):
    return 2 * x**3 + 8


def ops(graph):
    return [n.op.name for n in graph.nodes]


def test_c1_the_gradient_of_a_product_is_the_other_factor():
    a, b = place(np.float64(2)), place(np.float64(3))
    assert wrap(a * b).grad(wrap(a)).node is b
    assert "graph(" in str(tm.trace(tm.grad(lambda a, b: a * b), 2.0, 3.0))


def test_c2_value_first_and_second_derivative_of_a_polynomial():
    assert (polynomial(1.0), tm.grad(polynomial)(1.0), tm.grad(tm.grad(polynomial))(1.0)) == (10, 6, 12)


@pytest.mark.parametrize("x", [-3.5, 0.0, 1.0, 40.0])
def test_c3_the_third_derivative_of_a_cubic_is_constant(x):
    assert tm.grad(tm.grad(tm.grad(polynomial)))(x) == 12


def test_c4_the_gradient_has_each_forward_node_once_and_little_more():
    def chain(x):
        for k in [*range(100)]:
            x = np.sin(x) * 0.5 + x
            x = x * 1.01 if k % 2 else x - 0.1
        return x.sum()

    forward = rewrite(tm.tensor(chain).graph(X)).graph
    value, gradients = value_and_gradient(forward.results[0], forward.parameters)
    both = topological([value, *gradients])
    assert len(forward.nodes) > 300
    assert set(forward.nodes) <= {*both, *forward.parameters}
    assert len(both) <= 2.5 * len(forward.nodes)


def test_c5_every_node_of_a_gradient_names_a_line_of_the_user():
    def loss(x):
        y = np.sin(x)
        return (y * np.exp(x)).sum()

    graph = tm.trace(tm.grad(loss), X)
    computed = [n for n in graph.nodes if n.args]
    assert computed
    assert [n for n in computed if not site.of(n)] == []


def counted(x):
    s = x
    for _ in range(20):
        s = np.sin(s) * x
    return s.sum()


def on_data(x):
    s = x
    while (s * s).sum() > 1e-3:
        s = s * 0.5 * np.cos(s)
    return s.sum()


def stored(x):
    s = np.zeros(3)
    for i in range(1, 3):
        s[i] = s[i - 1] * x[i] + np.tanh(x[i])
    return s.sum()


def handed_on(x):
    s, t = np.zeros(400), np.zeros(400)
    for i in range(1, 400):
        s[i] = 0.9 * s[i - 1] + np.exp(-s[i - 1]) * x[i % 3]
        t[i] = t[i - 1] + x[1]
    return (s * t).sum()


def in_a_branch(x):
    s = x
    for _ in range(12):
        if s.sum() > 1:
            s = np.exp(-s) * x
        else:
            t = np.tanh(x)
            s = s + t * 0.5
    return (s * s).sum()


@pytest.mark.parametrize("level", ["exact", "stable"])
@pytest.mark.parametrize("function", [counted, on_data, stored, handed_on, in_a_branch])
def test_c5_every_node_of_a_loop_of_a_gradient_names_a_line_of_the_user(function, level):
    def computed(graph):
        for node in graph.nodes:
            if node.args and node.op.name != "form":
                yield node
            for inner in node.params.values():
                if isinstance(inner, Graph):
                    yield from computed(inner)

    graph = rewrite(tm.trace(tm.grad(function), X), level).graph
    found = list(computed(graph))
    assert len(found) > 10
    assert [n for n in found if not site.of(n)] == []


def test_c6_the_gradient_of_exp_uses_the_exp_that_is_there():
    graph = tm.trace(tm.value_and_grad(lambda x: np.exp(x).sum()), X)
    assert ops(rewrite(graph).graph).count("exp") == 1


def test_c7_value_and_gradient_together_take_fewer_kernels_than_apart():
    def loss(x):
        return (np.tanh(x) ** 2 * np.exp(-x)).sum()

    both, value, gradient = (
        len(plan_graph(rewrite(tm.trace(f, X)).graph).kernels)
        for f in (tm.value_and_grad(loss), tm.tensor(loss), tm.grad(loss))
    )
    assert both < value + gradient


def peak(function, x):
    function(x)
    tracemalloc.start()
    try:
        function(x)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_c8_checkpoints_keep_the_root_of_what_a_chain_keeps():
    def iteration(_k, y):
        return np.sin(np.exp(np.cos(y)))

    def chain(y):
        return tm.fori_loop(0, 20, iteration, y)

    def plain(x):
        return tm.fori_loop(0, 20, lambda _k, y: chain(y), x).sum()

    def light(x):
        return tm.fori_loop(0, 20, lambda _k, y: tm.checkpoint(chain)(y), x).sum()

    x = np.linspace(0, 1, 2000)
    np.testing.assert_allclose(tm.grad(light)(x), tm.grad(plain)(x), rtol=1e-12)
    assert peak(tm.grad(light), x) < peak(tm.grad(plain), x) / 4


def test_c9_gradients_of_several_costs_are_expressions_to_go_on_with():
    def first(x):
        return (x**2).sum()

    def second(x):
        return np.sin(x).sum()

    together = tm.grad(lambda x: (tm.grad(first)(x) * tm.grad(second)(x)).sum())
    np.testing.assert_allclose(together(X), 2 * np.cos(X) - 2 * X * np.sin(X), rtol=1e-13)
    np.testing.assert_allclose(tm.hvp(second, X, X[::-1]), -np.sin(X) * X[::-1], rtol=1e-13)


def test_c10_forward_and_reverse_mode_are_transposes():
    def f(x):
        return tm.fori_loop(0, 4, lambda k, y: np.sin(y * x[::-1]) + k * x, x)

    v, w = X[::-1] ** 2, np.array([1.0, -2.0, 0.5])
    pushed = tm.jvp(f, (X,), (v,))[1]
    (pulled,) = tm.vjp(f, X)[1](w)
    np.testing.assert_allclose(pushed @ w, pulled @ v, rtol=1e-13)


def test_c11_what_is_differentiated_is_stable():
    assert tm.grad(lambda x: np.log(1 + np.exp(x)))(1000.0) == 1


def test_c12_the_gradient_of_where_is_that_of_the_branch_that_is_taken():
    f = tm.grad(lambda x: np.where(x > 0, x * np.log(x), 0.0))
    assert f(0.0) == 0
    assert f(2.0) == 1 + math.log(2)


@pytest.mark.parametrize(
    "power",
    [
        lambda x: tm.scan(lambda c, _: (c * x, None), 1.0, None, length=16)[0],
        lambda x: tm.fori_loop(0, 16, lambda _k, c: c * x, 1.0),
        lambda x: tm.while_loop(lambda s: s[0] < 16, lambda s: (s[0] + 1, s[1] * x), (0, 1.0))[1],
    ],
    ids=["scan", "loop", "while"],
)
def test_c13_loops_are_right_at_order_three(power):
    derivative = power
    for order, factor in enumerate((1, 16, 16 * 15, 16 * 15 * 14)):
        expected = factor * mpmath.mpf("1.1") ** (16 - order)
        assert abs(derivative(1.1) / float(expected) - 1) < 1e-14
        derivative = tm.grad(derivative)


def test_the_value_and_the_gradient_of_a_loop_share_one_loop_forward():
    def f(x):
        return tm.fori_loop(0, 5, lambda _k, y: np.sin(y) * x, x).sum()

    both = rewrite(tm.trace(tm.value_and_grad(f), X)).graph
    assert ops(both).count("loop") == 2  # one forward, one back
    x = place(X)
    loss = tm.fori_loop(0, 5, lambda _k, y: np.sin(y) * wrap(x), wrap(x)).sum()
    apart = closed([loss.node, node_of(loss.grad(wrap(x)))], [x])
    assert ops(rewrite(apart).graph).count("loop") == 2
    assert len({n for n in topological(apart.results) if n.op.name == "loop"}) == 3
