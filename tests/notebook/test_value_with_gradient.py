"""A value has the same bits whether its gradient is asked for or not, and so has each of several values asked for together."""

import math

import numpy as np
import pytest

import tensormagic as tm
from tensormagic import session
from tensormagic.ops.leaf import CONSTANT, constant
from tests.notebook.conftest import Notebook
from tests.transform import compensated

X = np.array([1e-18, 3e-9, 0.25, -1e-12, 0.7])
Z = np.array([1000.0, 3.0, -2.0])
A = np.array([[4.0, 1.0, 0.5], [1.0, 3.0, 0.25], [0.5, 0.25, 2.0]])


def looped(x):
    total = 0.0
    for k in range(4):
        total = total + np.log(1 + x * k)
    return np.sum(total)


def looped_by_data(x):
    total = np.sum(np.log(1 + x))
    while total < 3:
        total = total + np.sum(np.log(1 + x)) + 1
    return total


SCALARS = {
    "log(1 + x)": (lambda x: np.sum(np.log(1 + x)), X),
    "its square": (lambda x: np.sum(np.log(1 + x) ** 2), X),
    "exp(x) - 1": (lambda x: np.sum(np.exp(x) - 1), X),
    "1 - cos(x)": (lambda x: np.sum(1 - np.cos(x)), X),
    "softplus": (lambda z: np.sum(np.log(1 + np.exp(z))), Z),
    "logsumexp": (lambda z: np.log(np.sum(np.exp(z))), Z),
    "cross entropy": (lambda z: -np.log(np.exp(z)[1] / np.sum(np.exp(z))), Z),
    "mean cross entropy": (lambda z: -np.mean(np.log(np.exp(z) / np.sum(np.exp(z)))), Z),
    "logistic": (lambda z: np.sum(1 / (1 + np.exp(-z))), -Z),
    "length": (lambda z: np.sqrt(z[0] ** 2 + z[1] ** 2), Z * 1e200),
    "sqrt difference": (lambda z: np.sum(np.sqrt(z * z + 1) - np.sqrt(z * z)), Z),
    "inverse": (lambda z: np.sum(np.linalg.inv(A) @ z), Z),
    "log det": (lambda a: np.log(np.linalg.det(a)), A),
    "trace": (lambda a: np.trace(a @ A), A + 1),
    "variance": (lambda z: np.var(z) + np.std(z), Z),
    "a loop": (looped, X),
    "a while": (looped_by_data, X),
    "tanh": (lambda z: np.sum((np.exp(z) - np.exp(-z)) / (np.exp(z) + np.exp(-z))), Z[1:]),
    "kahan": (lambda x: np.sum(compensated.expm1_kahan(x)), X),
    "goldberg": (lambda x: np.sum(compensated.log1p_goldberg(x)), X),
}
COMPILED = ("its square", "cross entropy", "a loop", "exp(x) - 1", "goldberg")


def bits(value):
    return np.asarray(value).tobytes()


@pytest.mark.parametrize(("name", "tier"), [*((n, "numpy") for n in SCALARS), *((n, "numba") for n in COMPILED)])
def test_values_of_derivatives(name, tier):
    f, at = SCALARS[name]
    with np.errstate(all="ignore"), tm.config.using(tier=tier):
        wanted = bits(tm.tensor(f)(at))
        value, gradient = tm.value_and_grad(f)(at)
        assert bits(value) == wanted
        assert bits(gradient) == bits(tm.grad(f)(at))
        assert bits(tm.jvp(f, (at,), (np.ones_like(at),))[0]) == wanted
        assert bits(tm.vjp(f, at)[0]) == wanted


@pytest.mark.parametrize("name", SCALARS)
def test_values_of_cells(notebook, name):
    f, at = SCALARS[name]
    notebook["f"], notebook["x"], notebook["x2"] = tm.tensor(f), at, at.copy()
    with np.errstate(all="ignore"):
        alone = bits(notebook.ok("%%tensor\nf(x2)").value.numpy())
        ran = notebook.ok("%%tensor --grad x\nloss = f(x)\nloss")
        assert bits(ran.value.numpy()) == alone
        assert bits(notebook["loss"].numpy()) == alone
        assert bits(notebook["grad_x"].numpy()) == bits(tm.grad(f)(at))
        lazily = tm.tensor(at.copy())
        value = f(lazily)
        assert bits(np.asarray(value.grad(lazily))) == bits(tm.grad(f)(at))
        assert bits(np.asarray(value)) == alone


def test_what_is_right_with_a_gradient(notebook):
    notebook["x"], notebook["z"] = np.array([1e-18]), np.array([1000.0, 0.0])
    with np.errstate(all="ignore"):
        notebook.ok("%%tensor --grad x\ny = np.log(1 + x)\nnp.sum(y)")
        assert notebook["y"].numpy().tolist() == [1e-18]
        assert notebook["grad_x"].numpy().tolist() == [1.0]
        notebook.ok("%%tensor --grad z\np = np.exp(z)\ns = np.sum(p)\nloss = np.log(s)\np, s\nloss")
        assert notebook["loss"].numpy().item() == 1000.0
        assert notebook["grad_z"].numpy().tolist() == [1.0, 0.0]
        assert notebook["p"].numpy().tolist() == [math.inf, 1.0]


@pytest.mark.parametrize("last", ["loss", "z, loss", "p, loss", "(u, p, loss)", "loss, loss * 2, p * 2"])
def test_values_that_are_shown_together(notebook, last):
    notebook["z"] = np.array([1000.0, 0.0])
    with np.errstate(all="ignore"):
        notebook.ok(f"%%tensor\np = np.exp(z)\nu = 1 + p\nloss = np.log(u)\n{last}")
        assert notebook["loss"].numpy().tolist() == [1000.0, math.log(2)]
        assert notebook["p"].numpy().tolist() == [math.inf, 1.0]
        assert notebook["u"].numpy().tolist() == [math.inf, 2.0]
        found = tm.tensor(lambda z: (np.exp(z), np.log(1 + np.exp(z)), 1 + np.exp(z)))(notebook["z"])
        assert np.asarray(found[1]).tolist() == [1000.0, math.log(2)]


def test_compensated_values_among_others():
    def several(x):
        u = 1 + x
        return np.log(u), np.where(u == 1, x, x * np.log(u) / np.where(u == 1, 1, u - 1)), u, u * 2

    x = np.array([1e-15, 3e-9, 1e-18, 0.3])
    first, kept, u, double = tm.tensor(several)(x)
    np.testing.assert_allclose(first, np.log1p(x), rtol=4e-16)
    np.testing.assert_allclose(kept, np.log1p(x), rtol=4e-16)
    assert np.asarray(u).tolist() == (1 + x).tolist()
    assert np.asarray(double).tolist() == ((1 + x) * 2).tolist()


def test_second_derivatives_are_those_of_the_rewritten_value():
    def f(z):
        return np.log(1 + np.exp(z))

    assert tm.hessian(lambda z: f(z)[0])(np.array([-800.0])).item() == 0.0
    assert tm.grad(lambda z: np.sum(f(z)))(np.array([800.0])).tolist() == [1.0]
    assert tm.grad(lambda x: tm.grad(lambda y: np.log(1 + y))(x))(1e-18) == -1.0


def test_a_part_that_was_shown_in_an_earlier_cell(notebook):
    notebook["x"] = X
    for line in ("u = 1 + x", "l = np.log(u)\nl", "d = u - 1\nd", "q = x * l\nq"):
        notebook.ok(f"%%tensor\n{line}")
    with np.errstate(all="ignore"):
        notebook.ok("%%tensor --grad x --of s\ny = np.where(d == 0, x, q / d)\ns = np.sum(y)")
    np.testing.assert_allclose(notebook["y"].numpy(), np.log1p(X), rtol=1e-15)


def test_a_constant_that_was_asked_for_stays_one():
    """What somebody has computed is a value that graphs are cut at, but for constants, which rules look for."""
    two = constant(2, "python")
    session.compute([two])
    f, at = SCALARS["length"]
    with np.errstate(all="ignore"):
        lazily = tm.tensor(at.copy())
        assert np.isfinite(np.asarray(f(lazily)))
        assert np.isfinite(tm.vjp(f, at)[0])
    assert two.op is CONSTANT  # it was alive meanwhile


@pytest.mark.parametrize(
    "root",
    [
        "np.roots([1, -w[0], w[1]]).max()",
        "np.roots(np.array([w[1], w[0], 0.1])).sum()",
        "np.roots((w[0], -1, -w[1], 0)).max()",
    ],
)
def test_roots_of_coefficients_in_a_list(notebook: Notebook, root: str):
    notebook["w"] = np.array([2.5, 0.5])
    notebook.ok(f"%%tensor --grad w\n{root}")

    def at(w):
        return eval(root, {"np": np, "w": w})

    steps = 1e-6 * np.eye(2)
    np.testing.assert_allclose(
        np.asarray(notebook["grad_w"]),
        [(at(notebook["w"] + h) - at(notebook["w"] - h)) / 2e-6 for h in steps],
        rtol=1e-6,
        atol=1e-9,
    )


def test_what_is_computed_at_capture_is_no_constant_to_a_gradient(notebook: Notebook):
    notebook["w"] = np.array([2.5, 0.5])
    ran = notebook("%%tensor --grad w\nnp.polydiv([1, w[1], 2], [1, w[0]])[0].sum()")
    assert isinstance(ran.error, tm.TensorError)
