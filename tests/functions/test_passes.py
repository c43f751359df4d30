"""The forward and the backward graph of ``tm.vjp``, apart: run one after the other, they give the value and the gradients."""

import numpy as np
import pytest

import tensormagic as tm
from tensormagic.backend.numpy_tier.reference import evaluate_graph

X, W = np.linspace(-1.0, 1.0, 3), np.linspace(0.5, 2.0, 3)
CASES = {
    "one": (lambda x: np.exp(x) * 2, (X,)),
    "two": (lambda x, w: np.sum(np.tanh(x * w) ** 2), (X, W)),
    "matrix": (lambda a, x: np.tanh(a @ x), (np.outer(X, W), X)),
    "number": (lambda x: x**3 + np.sin(x), (1.5,)),
    "linear": (lambda x: 3.0 * x, (X,)),
    "tuple": (lambda x, w: (x * w, np.sum(x)), (X, W)),
}


@pytest.mark.parametrize("name", CASES)
def test_both_passes_give_the_value_and_the_gradients(name):
    function, primals = CASES[name]
    found = tm.vjp(function, *primals)
    value, pull = found
    values = value if isinstance(value, tuple) else (value,)
    cotangents = tuple(np.cos(np.asarray(v) + 1.0) for v in values)
    wanted = pull(cotangents if isinstance(value, tuple) else cotangents[0])
    passes = found.graph
    ahead = evaluate_graph(passes.forward, list(primals))
    assert len(ahead) == len(values) + passes.kept
    for got, true in zip(ahead, values, strict=False):
        np.testing.assert_allclose(got, true, rtol=1e-14)
    back = evaluate_graph(passes.backward, [*ahead[len(values) :], *cotangents])
    for got, true in zip(back, wanted, strict=True):
        np.testing.assert_allclose(got, true, rtol=1e-13)


def test_nothing_of_the_forward_pass_is_in_the_backward_one():
    passes = tm.vjp(lambda x: np.sum(np.exp(np.sin(x))), X).graph
    ops = [n.op.name for n in passes.backward.nodes]
    assert "exp" not in ops
    assert "sin" not in ops
    text = str(passes)
    assert text.startswith("# forward")
    assert "# backward" in text


def test_a_linear_function_keeps_nothing():
    assert tm.vjp(lambda x: 3.0 * x, X).graph.kept == 0
