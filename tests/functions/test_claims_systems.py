"""What documents about Theano, TensorFlow, PyTorch and JAX show by example; each test has the number of the claim in its name."""

import numpy as np
import pytest

import tensormagic as tm
from tensormagic.backend.numpy_tier.reference import evaluate_graph
from tensormagic.capture.values.operands import node_of
from tensormagic.capture.values.value import wrap
from tests.ops.harness import closed, place

pytestmark = pytest.mark.usefixtures("by_numpy")


def product(a, b):
    return a * b


def total(a, b):
    return a + b


def polynomial(x):
    return 2 * x**3 + 8


@tm.tensor
def chosen(a, b):
    if a < b:
        return a * 17
    return b + 23


def scalars(*values):
    return [place(np.float64(v)) for v in values]


def ops(graph):
    return [n.op.name for n in graph.nodes if n.args]


def test_a12_the_gradient_is_a_function_that_composes_with_everything():
    square = tm.grad(lambda x: x**3)  # 3 x**2
    assert square(2.0) == 12
    assert tm.grad(square)(2.0) == 12
    assert tm.jvp(square, (2.0,), (1.0,)) == (12, 12)
    assert tm.vmap(square)(np.array([1.0, 2.0])).tolist() == [3, 12]
    assert tm.tensor(lambda x: square(x) + tm.grad(square)(x))(2.0) == 24


def test_a13_forward_mode_is_reverse_mode_on_the_same_function():
    x, v = np.array([0.3, -0.7, 1.1]), np.array([1.0, 2.0, -0.5])

    def f(x):
        return np.sin(x) @ np.exp(x)

    assert tm.jvp(f, (x,), (v,))[1] == pytest.approx(tm.vjp(f, x)[1](1.0)[0] @ v, rel=1e-14)


def test_b6_a_derivative_becomes_a_function_and_a_copy_of_its_argument():
    a, b = scalars(1.5, 2.5)
    gradient = node_of(wrap(a * b).grad(wrap(a)))
    graph = closed([gradient], [a, b])
    assert ops(graph) == []  # the other factor itself
    assert evaluate_graph(graph, [np.float64(1.5), np.float64(2.5)]) == [2.5]
    assert tm.grad(product)(1.5, 2.5) == 2.5


def test_b7_a_session_is_a_call():
    a = b = None
    for a, b in [(2.0, 3.0)]:
        assert tm.grad(product)(a, b) == 3.0
    c = tm.tensor(np.float64(2.0)) * tm.tensor(np.float64(3.0))
    assert float(c) == 6.0

    def stopped(a, b):
        return product(a, b) + tm.stop_gradient(product(a, b))

    assert tm.grad(stopped)(2.0, 3.0) == 3.0


def test_b8_any_value_on_the_way_can_be_looked_at():
    a, b = wrap(scalars(2.0)[0]), wrap(scalars(3.0)[0])
    middle = a * b
    end = middle + 1
    values = evaluate_graph(closed([middle.node, end.node], [a.node, b.node]), [np.float64(2), np.float64(3)])
    assert values == [6.0, 7.0]


@pytest.mark.parametrize(("a", "b", "expected"), [(2.0, 3.0, 34.0), (3.0, 2.0, 25.0)])
def test_b9_a_branch_on_values(a, b, expected):
    assert tm.cond(np.float64(a) < b, lambda a, _b: a * 17, lambda _a, b: b + 23, a, b) == expected
    assert tm.tensor(lambda a, b: tm.cond(a < b, lambda: a * 17, lambda: b + 23))(a, b) == expected


def test_b10_gradients_through_loops_in_branches_in_loops():
    @tm.tensor
    def f(x):
        y = x
        for k in range(3):
            if x > k:
                while y < 20.0:
                    y = y * 1.5 + x
            else:
                y = y - x * k
        return y * x

    for x in (0.7, 1.5, 2.5):
        h = 1e-6
        assert tm.grad(f)(x) == pytest.approx((f(x + h) - f(x - h)) / (2 * h), rel=1e-8)


def test_b11_a_gradient_of_values():
    a = tm.tensor(np.float64(1.0))
    assert float((a * 2.0).grad(a)) == 2.0
    assert tm.grad(product)(1.0, 2.0) == 2.0


@pytest.mark.parametrize("row", ["b12", "b16", "b28"])
def test_b12_b16_b28_nested_derivatives(row):
    """Nested tapes (B12), ``create_graph`` (B16), ``grad(grad(f))`` (B28)."""
    derivatives = {
        "b12": lambda x: tm.vjp(tm.grad(polynomial), x),
        "b16": lambda x: tm.jvp(tm.grad(polynomial), (x,), (1.0,)),
        "b28": lambda x: (tm.grad(polynomial)(x), tm.grad(tm.grad(polynomial))(x)),
    }
    first, second = derivatives[row](1.0)
    second = second(1.0)[0] if callable(second) else second
    assert (polynomial(1.0), first, second) == (10, 6, 12)
    assert tm.grad(tm.grad(tm.grad(polynomial)))(1.0) == 12


def test_b13_an_if_becomes_a_branch_that_can_be_read():
    assert (chosen(2.0, 3.0), chosen(3.0, 2.0)) == (34, 25)
    assert "cond(" in tm.trace(chosen, 2.0, 3.0).text


def test_b14_what_cannot_be_captured_says_where():
    def f(x):
        y = x * 2
        with open("/dev/null") as file:  # noqa: PTH123 (what a user might write)
            file.write(str(y))
        return y

    with pytest.raises(tm.TensorError) as told:
        tm.grad(f)(1.0)
    assert str(told.value)


def test_b15_no_state_is_kept_beside_a_gradient():
    a, b = (tm.tensor(np.float64(v)) for v in (1.0, 2.0))
    c = a * b
    assert float(c.grad(a)) == 2.0
    assert float(c.grad(b)) == 1.0
    assert float(c.grad(a)) == 2.0  # nothing adds up, and there is nothing to set to zero


def test_b17_python_branches_on_values_work_at_once():
    def f(x):
        if x.sum() > 0:
            return (x**2).sum()
        return (x**3).sum()

    assert tm.grad(f)(np.array([1.0, 2.0])).tolist() == [2, 4]
    assert tm.grad(f)(np.array([-1.0, -2.0])).tolist() == [3, 12]


def test_b18_a_branch_on_a_constant():
    assert tm.cond(True, lambda x: x * 17, lambda x: x + 23, 2.0) == 34.0


@pytest.mark.parametrize("value", [0.0, -0.0, np.inf, -np.inf, np.nan, 1e-300, 1.0, -2.5])
def test_b19_special_values_keep_their_bits(value):
    function = tm.tensor(lambda x: np.sqrt(np.abs(x)) * np.exp(-x) + np.maximum(x, 0))
    with np.errstate(all="ignore"):
        ours = function(np.array([value]))
        x = np.array([value])
        expected = np.sqrt(np.abs(x)) * np.exp(-x) + np.maximum(x, 0)
    assert ours.tobytes() == expected.tobytes()


def test_b20_the_gradient_of_a_dot_product():
    assert tm.grad(np.dot)(np.array([2.0]), np.array([3.0])).tolist() == [3]


def test_b21_the_graphs_of_a_function_and_of_its_gradient_can_be_printed():
    x, y = np.array([2.0, 1.0]), np.array([3.0, 1.0])
    assert "contract(" in tm.trace(np.dot, x, y).text
    assert "multiply(" in tm.trace(tm.grad(lambda a, b: np.sum(a * a * b)), x, y).text


def test_b22_both_graphs_are_there_without_a_call_of_the_gradient():
    x = np.array([2.0, 1.0])
    forward, backward = (tm.trace(f, x) for f in (lambda x: np.sin(x).sum(), tm.grad(lambda x: np.sin(x).sum())))
    assert "sin" in ops(forward)
    assert ops(backward).count("cos") == 1


def test_b23_a_batch_of_dot_products():
    ones = np.ones((4, 3))
    assert tm.vmap(np.dot)(ones, ones).tolist() == [3, 3, 3, 3]


def test_b24_b25_a_gradient_and_its_compiled_form():
    assert tm.grad(np.multiply)(2.0, 3.0) == 3.0  # B24
    assert tm.tensor(tm.grad(np.multiply))(2.0, 3.0) == 3.0  # B25
    assert tm.compile(tm.grad(np.multiply), 2.0, 3.0).run(2.0, 3.0) == 3.0


def test_b26_on_each_element_of_a_batch():
    assert tm.vmap(tm.grad(product))(np.full(4, 2.0), np.full(4, 3.0)).tolist() == [3.0] * 4


def test_b27_nothing_dead_is_left_in_a_gradient():
    assert ops(tm.trace(product, 2.0, 3.0)) == ["multiply"]
    gradient = tm.rewrite(tm.trace(tm.grad(product), np.float64(2.0), np.float64(3.0)))
    assert ops(gradient) == []
    assert gradient.results == (gradient.parameters[1],)


def test_b29_the_branch_of_the_other_system():
    assert tm.cond(2.0 < 3.0, lambda a, _b: a * 17.0, lambda _a, b: b + 23.0, 2.0, 3.0) == 34  # noqa: PLR0133 (as shown)
    assert tm.cond(3.0 < 2.0, lambda a, _b: a * 17.0, lambda _a, b: b + 23.0, 3.0, 2.0) == 25  # noqa: PLR0133 (as shown)


def factorial(r, x):
    return r if x <= 1 else factorial(r * x, x - 1)


def test_b30_recursion_gives_six_and_its_derivative():
    captured = tm.tensor(factorial)
    assert captured(1.0, 3.0) == 6
    assert tm.grad(factorial)(1.0, 3.0) == 6  # it is linear in r
    slope = tm.grad(factorial, 1)(1.0, 3.0)
    assert slope == 5  # of x (x - 1), twice by x: 2 x - 1


def test_b31_a_counted_loop_gives_the_factorial():
    assert tm.fori_loop(1, 4, lambda k, r: r * k, 1.0) == 6


def test_b32_the_first_argument_is_meant_where_none_is_named():
    assert tm.grad(product)(2.0, 3.0) == 3.0
    assert tm.grad(product, argnums=1)(2.0, 3.0) == 2.0
    assert tm.grad(product, argnums=(0, 1))(2.0, 3.0) == (3.0, 2.0)
    assert callable(tm.grad(product))
    assert "graph(" in tm.trace(tm.grad(product), 2.0, 3.0).text  # and there is a graph object


def test_b33_gradients_batches_and_compilation_compose_in_any_order():
    rows = np.array([[0.3, 1.0], [2.0, -1.0]])

    def f(x):
        return np.sin(x).sum() * x[0]

    each = np.stack([tm.grad(f)(row) for row in rows])
    found = [
        tm.vmap(tm.grad(f))(rows),
        tm.grad(lambda r: tm.vmap(f)(r).sum())(rows),
        tm.tensor(tm.vmap(tm.grad(f)))(rows),
        tm.vmap(tm.tensor(tm.grad(tm.tensor(f))))(rows),
    ]
    for ours in found:
        np.testing.assert_allclose(ours, each, rtol=1e-14)
