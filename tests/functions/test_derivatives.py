"""Derivatives of functions and of cells' values: finite differences, containers, any order, what is refused."""

from dataclasses import dataclass

import numpy as np
import pytest

import tensormagic as tm
from tensormagic.ir.errors import ConstantGradientWarning
from tests.capture.harness import cell

RNG = np.random.default_rng(3)
X, Y = RNG.normal(size=(20, 3)), np.sign(RNG.normal(size=20))
W, B = RNG.normal(size=3), 0.3


@pytest.fixture(autouse=True, params=["exact", "stable"])
def one_tier(request, monkeypatch):
    monkeypatch.setattr(tm.config, "tier", "numpy")
    monkeypatch.setattr(tm.config, "math", request.param)


def loss(w, b):
    return np.mean(np.log(1 + np.exp(-Y * (X @ w + b))))


def numeric(f, x, step=1e-6):
    x = np.asarray(x, float)
    found = np.zeros_like(x)
    for index in np.ndindex(x.shape):
        change = np.zeros_like(x)
        change[index] = step
        found[index] = (f(x + change) - f(x - change)) / (2 * step)
    return found


def test_grad_and_value():
    value, (gw, gb) = tm.value_and_grad(loss, (0, 1))(W, B)
    assert np.isclose(value, loss(W, B), rtol=1e-14)
    assert np.allclose(gw, numeric(lambda w: loss(w, B), W), rtol=1e-6)
    assert np.isclose(gb, numeric(lambda b: loss(W, b), B), rtol=1e-6)
    assert isinstance(gw, np.ndarray)
    assert np.allclose(tm.grad(loss)(W, B), gw)
    assert np.allclose(tm.grad(loss, "b")(W, b=B), gb)
    assert np.allclose(tm.grad(loss, ("b", "w"))(W, B)[1], gw)
    assert np.allclose(tm.grad(loss, -1)(W, B), gb)


def test_has_aux():
    def f(w):
        z = X @ w
        return (z**2).sum(), {"z": z, "n": len(w)}

    (value, aux), gradient = tm.value_and_grad(f, has_aux=True)(W)
    assert np.isclose(value, ((X @ W) ** 2).sum())
    assert np.allclose(aux["z"], X @ W)
    assert np.allclose(gradient, 2 * X.T @ (X @ W))
    gradient, aux = tm.grad(f, has_aux=True)(W)
    assert np.allclose(aux["z"], X @ W)


@dataclass
class Layer:
    w: np.ndarray
    b: np.ndarray


def test_containers():
    def f(layers, x):
        for layer in layers:
            x = np.tanh(x @ layer.w + layer.b)
        return (x**2).sum()

    layers = [Layer(RNG.normal(size=(3, 4)), np.zeros(4)), Layer(RNG.normal(size=(4, 2)), np.ones(2))]
    found = tm.grad(f)(layers, X)
    assert isinstance(found[1], Layer)
    assert np.allclose(found[1].b, numeric(lambda b: f([layers[0], Layer(layers[1].w, b)], X), layers[1].b), rtol=1e-5)
    parts = tm.grad(lambda p: p["a"] * p["b"][0] ** 2)({"a": 2.0, "b": (3.0,)})
    assert parts == {"a": 9.0, "b": (12.0,)}


def test_every_order():
    d = lambda x: np.sin(x) * np.exp(x)  # noqa: E731 (it is rebound)
    expected = [
        lambda x: np.exp(x) * (np.sin(x) + np.cos(x)),
        lambda x: 2 * np.exp(x) * np.cos(x),
        lambda x: 2 * np.exp(x) * (np.cos(x) - np.sin(x)),
        lambda x: -4 * np.exp(x) * np.sin(x),
    ]
    for k in range(4):
        d = tm.grad(d)
        assert np.isclose(d(0.7), expected[k](0.7), rtol=1e-12)


def test_jvp_vjp_linearize_hvp():
    def f(w):
        return np.exp(X @ w).sum()

    v = RNG.normal(size=3)
    g = X.T @ np.exp(X @ W)
    value, change = tm.jvp(f, (W,), (v,))
    assert np.isclose(value, f(W))
    assert np.isclose(change, g @ v)
    value, pull = tm.vjp(lambda w, b: X @ w + b, W, B)
    assert np.allclose(value, X @ W + B)
    ones = np.ones(20)
    assert np.allclose(pull(ones)[0], X.T @ ones)
    assert np.allclose(pull(ones)[1], 20)
    value, linear = tm.linearize(f, W)
    assert np.isclose(linear(v), g @ v)
    assert np.allclose(tm.hvp(f, W, v), X.T @ (np.exp(X @ W) * (X @ v)))


def test_of_captured_functions_inside_others():
    inner = tm.tensor(lambda w: (w**3).sum())
    outer = tm.tensor(lambda w: (tm.grad(inner)(w) ** 2).sum())
    assert np.isclose(outer(W), (9 * W**4).sum())
    assert np.allclose(tm.grad(outer)(W), 36 * W**3)


def test_through_stores_views_and_loops():
    def f(x):
        y = np.zeros(6)
        y[:3] = x
        y[3:] = y[2::-1] * y[:3]
        v = y[1:4]
        v *= 2
        for k in range(1, 6):
            y[k] += 0.5 * y[k - 1] ** 2
        y.reshape(2, 3)[1] += x
        return (y * np.arange(6)).sum() + np.sort(y)[-2]

    assert np.allclose(tm.grad(f)(W), numeric(f, W), rtol=1e-5)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_dtypes_of_gradients(dtype):
    x = W.astype(dtype)
    assert tm.grad(lambda x: (x * 2.5).sum())(x).dtype == dtype
    assert tm.grad(lambda x: x.astype(np.float64).sum())(x).dtype == dtype
    assert tm.grad(lambda x: (x * np.float64(2)).sum())(x).dtype == dtype
    assert type(tm.grad(lambda x: x * x)(2.0)) in {float, np.float64}


def test_stability():
    if tm.config.math == "exact":
        with np.errstate(over="ignore", invalid="ignore"):  # a cell's equal formula may be alive, and be warned of
            assert np.isnan(tm.grad(lambda x: np.log(1 + np.exp(x)))(1000.0))
    else:
        assert tm.grad(lambda x: np.log(1 + np.exp(x)))(1000.0) == 1.0
    assert tm.grad(lambda x: np.where(x > 0, np.sqrt(np.where(x > 0, x, 1.0)), 0.0).sum())(
        np.array([-1.0, 4.0])
    ).tolist() == [0, 0.25]
    assert tm.grad(lambda x: np.where(x > 0, np.sqrt(x), 0.0).sum())(np.array([0.0, 4.0])).tolist() == [0, 0.25]


def test_stop_gradient():
    assert tm.grad(lambda x: x * tm.stop_gradient(x))(3.0) == 3.0


def test_values_of_cells():
    found = cell("z = X @ w\nloss = (z ** 2).mean()\nhalf = loss / 2", {"X": X, "w": W, "np": np})
    value = found.outputs["loss"]
    assert np.allclose(value.grad(W), 2 * X.T @ (X @ W) / 20)
    assert np.allclose(value.grad(found.inputs["w"]), 2 * X.T @ (X @ W) / 20)
    assert np.allclose(value.grad(found.outputs["z"]), 2 * (X @ W) / 20)
    gx, gw = value.grad((X, W))
    assert gx.shape == X.shape
    assert np.allclose(found.outputs["half"].grad(W), gw / 2)
    assert isinstance(gw, tm.Tensor)


def test_in_a_cell():
    source = """def cost(w): return np.mean((X @ w - y) ** 2)
for k in range(3):
    value, g = tm.value_and_grad(cost)(w)
    w = w - 0.1 * g
value"""
    found = cell(source, {"X": X, "y": Y, "w": W, "np": np, "tm": tm})
    w = W
    for _ in range(3):
        value, w = np.mean((X @ w - Y) ** 2), w - 0.1 * 2 * X.T @ (X @ w - Y) / 20
    assert np.isclose(float(found.result), value)
    assert np.allclose(found.outputs["w"], w)


def test_does_not_depend():
    with pytest.warns(ConstantGradientWarning):
        assert tm.grad(lambda x, y: (y * 2).sum())(W, np.ones(2)).tolist() == [0, 0, 0]
    with pytest.warns(ConstantGradientWarning):
        assert tm.grad(lambda x: np.floor(x).sum())(W).tolist() == [0, 0, 0]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: tm.grad(lambda x: x)(W), "one number"),
        (lambda: tm.grad(lambda x: (x, x))(1.0), "2 values"),
        (lambda: tm.grad(lambda x: x.sum())(np.arange(3)), "integers"),
        (lambda: tm.grad(loss, "nonsense")(W, B), "no argument 'nonsense'"),
        (lambda: tm.grad(loss, 2)(W, B), "no argument number 2"),
        (lambda: tm.grad(lambda x: (x * 1j).sum())(W), "real"),
        (lambda: tm.jvp(loss, (W, B), (W,)), "a tangent for each"),
    ],
)
def test_refused(call, message):
    with pytest.raises(tm.DifferentiationError, match=message):
        call()


def test_what_is_differentiated_has_its_form_whichever_operand_it_is_made_of():
    x, y = np.array([4e-9, 0.3]), np.array([4e-9, 0.2])
    with tm.config.using(tier="numpy", math="stable"):
        found = tm.grad(lambda x, y: (x / (1 - y * x) - x).sum())(x, y)
        ratio = tm.grad(lambda x, y: ((1 - y * x) / (1 + y * x) - 1).sum(), argnums=1)(x, y)
    u = x * y
    assert np.allclose(found, u * (2 - u) / (1 - u) ** 2, rtol=1e-15, atol=0)
    assert np.allclose(ratio, -2 * x / (1 + u) ** 2, rtol=1e-15, atol=0)


def test_what_vjp_and_linearize_give_is_named_after_the_function() -> None:
    def loss(w: np.ndarray) -> float:
        return np.sum(w**2)

    w = np.ones(3)
    for derivative, name in ((tm.vjp(loss, w)[1], "vjp(loss)"), (tm.linearize(loss, w)[1], "linearize(loss)")):
        assert derivative.__name__ == derivative.__qualname__ == name
        assert f"<function {name} at" in repr(derivative)
