"""``tm.vmap``: the stack of single calls, composed with gradients in any order; wrong sizes are named."""

import dataclasses

import numpy as np
import pytest

import tensormagic as tm
from tensormagic.ir.errors import AxisError, ShapeError

RNG = np.random.default_rng(11)
W = RNG.normal(size=3)


def affine(w, x):
    return np.tanh(x @ w) + w.sum()


@pytest.mark.parametrize("size", [5, 1])
def test_the_result_is_the_stack(size):
    x = RNG.normal(size=(size, 3))
    found = tm.vmap(affine, in_axes=(None, 0))(W, x)
    assert isinstance(found, np.ndarray)
    np.testing.assert_allclose(found, [affine(W, row) for row in x])


def test_axes_of_arguments_and_results():
    x, y = RNG.normal(size=(2, 5, 3)), RNG.normal(size=(3, 5))
    found = tm.vmap(lambda a, b: a * b, in_axes=(1, -1), out_axes=-1)(x, y)
    expected = np.stack([x[:, k] * y[:, k] for k in range(5)], axis=-1)
    np.testing.assert_allclose(found, expected)
    np.testing.assert_allclose(
        tm.vmap(lambda a, b: a * b, in_axes=(1, -1), out_axes=1)(x, y), np.moveaxis(expected, -1, 1)
    )


def test_containers_and_results_that_do_not_move():
    @dataclasses.dataclass
    class Model:
        w: np.ndarray
        b: float

    def f(model, batch):
        return {"out": batch["x"] @ model.w + model.b, "norm": (model.w**2).sum(), "pair": (batch["y"], model.b * 2)}

    batch = {"x": RNG.normal(size=(4, 3)), "y": RNG.normal(size=4)}
    axes = {"x": 0, "y": None}
    found = tm.vmap(f, in_axes=(None, axes), out_axes={"out": 0, "norm": None, "pair": (0, 0)})(Model(W, 2.0), batch)
    np.testing.assert_allclose(found["out"], batch["x"] @ W + 2)
    np.testing.assert_allclose(found["norm"], (W**2).sum())
    np.testing.assert_allclose(found["pair"][0], np.stack([batch["y"]] * 4))
    np.testing.assert_allclose(found["pair"][1], [4.0] * 4)


def test_nested():
    x, y = RNG.normal(size=(4, 3)), RNG.normal(size=(5, 3))
    kernel = tm.vmap(tm.vmap(lambda a, b: np.exp(-((a - b) ** 2).sum()), in_axes=(None, 0)), in_axes=(0, None))
    expected = np.exp(-((x[:, None] - y[None]) ** 2).sum(-1))
    np.testing.assert_allclose(kernel(x, y), expected)


def logistic(w, x, y):
    return np.log(1 + np.exp(-y * (x @ w)))


def test_gradients_of_single_examples():
    x, y = RNG.normal(size=(6, 3)), np.sign(RNG.normal(size=6))
    per_example = tm.vmap(tm.grad(logistic), in_axes=(None, 0, 0))(W, x, y)
    single = tm.grad(logistic)
    np.testing.assert_allclose(per_example, [single(W, a, b) for a, b in zip(x, y, strict=True)])
    values, gradients = tm.vmap(tm.value_and_grad(logistic, (0, 1)), in_axes=(None, 0, 0))(W, x, y)
    np.testing.assert_allclose(values, np.log(1 + np.exp(-y * (x @ W))))
    np.testing.assert_allclose(gradients[0], per_example)
    np.testing.assert_allclose(gradients[1], (-y / (1 + np.exp(y * (x @ W))))[:, None] * W)


def test_gradient_of_a_batch():
    x = RNG.normal(size=(6, 3))
    found = tm.grad(lambda w: tm.vmap(lambda row: np.sin(row @ w))(x).sum())(W)
    np.testing.assert_allclose(found, (np.cos(x @ W)[:, None] * x).sum(0))
    inner = tm.grad(lambda w: (tm.vmap(tm.grad(lambda v, r: np.sin(r @ v)), in_axes=(None, 0))(w, x) ** 2).sum())(W)
    expected = np.zeros(3)
    for row in x:
        expected += -2 * np.cos(row @ W) * np.sin(row @ W) * (row @ row) * row
    np.testing.assert_allclose(inner, expected)


def test_jvp_and_vjp_of_a_batch():
    x, t = RNG.normal(size=(4, 3)), RNG.normal(size=(4, 3))
    f = tm.vmap(lambda r: np.sin(r).prod())
    value, change = tm.jvp(f, (x,), (t,))
    partials = np.array([[np.cos(r[k]) * np.prod(np.sin(np.delete(r, k))) for k in range(3)] for r in x])
    np.testing.assert_allclose(value, np.sin(x).prod(1))
    np.testing.assert_allclose(change, (partials * t).sum(1))
    _, pull = tm.vjp(f, x)
    np.testing.assert_allclose(pull(np.arange(4.0))[0], np.arange(4.0)[:, None] * partials)
    directions = tm.vmap(lambda r, d: tm.jvp(lambda v: np.sin(v).prod(), (r,), (d,))[1])(x, t)
    np.testing.assert_allclose(directions, change)


def test_lazy_values_stay_lazy():
    x = tm.tensor(RNG.normal(size=(4, 3)))
    found = tm.vmap(lambda r: r.sum())(x)
    assert isinstance(found, tm.Tensor)
    np.testing.assert_allclose(found, np.asarray(x).sum(1))


def test_stores_and_views_inside():
    def f(x):
        acc = np.zeros(4)
        acc[1:] += x
        head = acc[:2]
        return acc * 2, head

    x = RNG.normal(size=(5, 3))
    whole, head = tm.vmap(f)(x)
    expected = np.concatenate([np.zeros((5, 1)), x], axis=1)
    np.testing.assert_allclose(whole, 2 * expected)
    np.testing.assert_allclose(head, expected[:, :2])


@pytest.mark.parametrize("kind", ["i8", "f4", "c16"])
def test_dtypes(kind):
    x = (RNG.normal(size=(4, 3)) * 5).astype(kind)
    found = tm.vmap(lambda r: r * 2 + r.sum())(x)
    assert found.dtype == np.dtype(kind)
    np.testing.assert_allclose(found, x * 2 + x.sum(1, keepdims=True), rtol=1e-6)


def test_numbers_are_numbers_inside():
    x = np.linspace(0.1, 2, 5)
    np.testing.assert_allclose(tm.vmap(tm.grad(tm.grad(lambda t: t**4)))(x), 12 * x**2)


def test_one_graph_for_all_sizes():
    f = tm.vmap(lambda r: np.exp(r).sum())
    for size in (2, 3, 7):
        x = RNG.normal(size=(size, 4))
        np.testing.assert_allclose(f(x), np.exp(x).sum(1))
    assert sum(len(programs) for programs in f._kinds.values()) == 1
    assert f(np.zeros((0, 4))).shape == (0,)


def test_linear_algebra():
    a, b = RNG.normal(size=(5, 3, 3)) + 4 * np.eye(3), RNG.normal(size=(5, 3))
    np.testing.assert_allclose(tm.vmap(np.linalg.solve)(a, b), np.linalg.solve(a, b[..., None])[..., 0])
    found = tm.vmap(lambda m, v: np.linalg.solve(m, v).sum(), in_axes=(None, 0))(a[0], b)
    np.testing.assert_allclose(found, np.linalg.solve(a[0], b.T).sum(0))


# errors ---------------------------------------------------------------------------------------------------------------


def test_different_numbers_of_examples():
    with pytest.raises(
        ShapeError, match=r"vmap\(logistic\): the arguments hold different numbers of examples: x has 6, y has 5"
    ):
        tm.vmap(logistic, in_axes=(None, 0, 0))(W, np.zeros((6, 3)), np.zeros(5))


def test_sizes_that_agreed_once_are_checked_again():
    f = tm.vmap(lambda x, y: (x, y))
    f(np.zeros((6, 3)), np.zeros(6))
    with pytest.raises(ShapeError, match="x has 6, y has 5"):
        f(np.zeros((6, 3)), np.zeros(5))


def test_other_mistakes():
    with pytest.raises(ShapeError, match="w is float, which has no axis of examples"):
        tm.vmap(affine)(2.0, np.zeros((4, 3)))
    with pytest.raises(ShapeError, match="no argument is stacked"):
        tm.vmap(affine, in_axes=None)(W, W)
    with pytest.raises(ShapeError, match="in_axes has 3 entries for 2 arguments"):
        tm.vmap(affine, in_axes=(0, 0, 0))(W, W)
    with pytest.raises(AxisError, match="axis 2 is out of bounds for array of dimension 2"):
        tm.vmap(affine, in_axes=(None, 2))(W, np.zeros((4, 3)))
    with pytest.raises(ShapeError, match="out_axes is None for a result that differs between examples, of shape"):
        tm.vmap(lambda x: x * 2, out_axes=None)(W)
    with pytest.raises(ShapeError, match=r"out_axes of vmap\(<lambda>\): \(0, 0\) does not have the structure"):
        tm.vmap(lambda x: x * 2, out_axes=(0, 0))(W)
    with pytest.raises(TypeError):
        tm.vmap(lambda x: x * 2, in_axes="0")(W)
