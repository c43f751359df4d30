"""``1 + tanh(x)`` and its kin: one function where nothing asks for the other side, never less accurate, in values and slopes."""

import mpmath
import numpy as np
import pytest

import tensormagic as tm
from tensormagic.ir.graph import Graph
from tensormagic.transform.rewriting import rewrite

SQRT = np.sqrt(2 / np.pi)
ONE = {
    "1 + np.tanh(x)": lambda x: 1 + mpmath.tanh(x),
    "1 - np.tanh(x)": lambda x: 1 - mpmath.tanh(x),
    "np.tanh(x) - 1": lambda x: mpmath.tanh(x) - 1,
    "-1 - np.tanh(x)": lambda x: -1 - mpmath.tanh(x),
    "0.5 * x * (1 + np.tanh(c * (x + 0.044715 * x**3)))": lambda x: (
        x / 2 * (1 + mpmath.tanh(mpmath.mpf(float(SQRT)) * (x + mpmath.mpf(0.044715) * x**3)))
    ),
    "(1 + np.tanh(x / 2)) / 2": lambda x: (1 + mpmath.tanh(x / 2)) / 2,
    "x * (1 - np.tanh(2 * x - 1))": lambda x: x * (1 - mpmath.tanh(2 * x - 1)),
    "np.exp(x) * (np.tanh(x) + 1)": lambda x: mpmath.exp(x) * (1 + mpmath.tanh(x)),
}
TWO = [
    "np.log(1 - np.tanh(x))",
    "np.log(1 + np.tanh(x))",
    "np.where(x < -1, 2 * np.tanh(2 * x), 1 - np.where(x < -1, 1, -np.tanh(x)))",
]
X = np.array([-40.0, -19.1, -6.5, -1.01, -1.0, -0.99, -0.3, -1e-9, 0.0, 1e-9, 0.2, 0.99, 1.0, 1.01, 2.5, 18.0, 40.0])


def function(text: str):
    return eval(f"lambda x: {text}", {"np": np, "c": SQRT})


def ops(graph: Graph) -> list[str]:
    return [n.op.name for n in graph.nodes]


@pytest.mark.parametrize("text", ONE)
def test_one_function_is_enough(text):
    found = ops(rewrite(tm.trace(function(text), "float64[n]")).graph)
    assert found.count("sigmoid") == 1
    assert "tanh" not in found
    assert "where" not in found


@pytest.mark.parametrize("text", TWO)
def test_what_asks_for_the_other_side_has_it(text):
    assert "tanh" in ops(rewrite(tm.trace(function(text), "float64[n]")).graph)


@pytest.mark.parametrize("tier", ["numpy", "numba"])
@pytest.mark.parametrize("text", ONE)
def test_values_and_slopes_keep_their_digits(text, tier):
    with mpmath.workdps(400), tm.config.using(tier=tier):
        rounded = "**3" in text  # the function's operand is: by a unit of 15, which are as many units of an exponential
        points, units = (X[abs(X) < 7], 32) if rounded else (X, 3)
        found = tm.tensor(function(text))(points)
        slopes = tm.grad(lambda x: np.sum(function(text)(x)))(points)
        for k, x in enumerate(map(mpmath.mpf, points)):
            value, slope = ONE[text](x), mpmath.diff(ONE[text], x)
            assert abs(found[k] - value) <= units * np.spacing(abs(float(value)))
            assert abs(slopes[k] - slope) <= 2 * units * np.spacing(abs(float(slope)))
