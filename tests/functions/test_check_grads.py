"""``tm.check_grads``: it passes what is right to several orders, and names the operation and the line of what is wrong."""

import numpy as np
import pytest

import tensormagic as tm
from tensormagic.functions.gradients.finite_differences import longer, slope

pytestmark = pytest.mark.usefixtures("by_numpy")
X = np.array([0.3, 1.2, 0.7])


def powers(p, n):
    return {"a": p["w"] ** n, "b": (p["b"] * 2.0,), "n": n}


RIGHT = {
    "a product": (lambda x: np.sin(x) * x, (X,)),
    "a ufunc, and no tuple": (np.sin, X),
    "containers and integers": (powers, ({"w": X, "b": 2.0}, 3)),
    "complex numbers": (lambda z: np.exp(z) * np.conj(z), (X + 1j,)),
    "real of complex": (np.abs, (X + 1j,)),
    "a loop": (lambda x: tm.fori_loop(0, 4, lambda _k, y: np.sin(y) * x, x), (X,)),
    "a library call": (lambda x: np.linalg.eigvalsh(np.outer(x, x) + np.diag([1.0, 2.0, 3.0])), (X,)),
    "single precision": (np.exp, (X.astype(np.float32),)),
    "near the end of a domain": (np.log, (np.array([1e-3, 1.0]),)),
    "a captured function": (tm.tensor(lambda x: np.sin(x) * x), (X,)),
    "a number": (lambda x: x**3, (1.5,)),
}


@pytest.mark.share(3)
@pytest.mark.parametrize("name", RIGHT)
def test_what_is_right_passes(name):
    function, args = RIGHT[name]
    tm.check_grads(function, args, order=2)


@pytest.mark.parametrize("modes", ["forward", "rev", ["fwd", "reverse"]], ids=str)
def test_three_orders_of_each_mode(modes):
    tm.check_grads(lambda x: np.tanh(x).sum() * x, (X,), order=3, modes=modes)


@tm.custom_gradient
def wrong(x):
    return x**2, lambda cotangent: 3 * cotangent * x


def user(x):
    y = np.exp(x)
    z = wrong(y)  # the line that is named
    return z.sum()


@pytest.mark.parametrize("mode", ["forward", "reverse"])
def test_what_is_wrong_is_named(mode):
    with pytest.raises(tm.DerivativeCheckError, match=rf"order 1 \({mode}\) of user gives") as told:
        tm.check_grads(user, (X,), modes=mode)
    line = user.__code__.co_firstlineno + 2
    assert "derivative of custom_gradient" in str(told.value)
    assert f"test_check_grads.py line {line} disagrees" in str(told.value)


def test_a_wrong_second_derivative_is_told_from_the_first():
    @tm.custom_gradient
    def cubed(x):
        return x**3, lambda cotangent: cotangent * tm.stop_gradient(3 * x**2)

    tm.check_grads(cubed, (1.5,))
    for mode in ("forward", "reverse"):
        with pytest.raises(tm.DerivativeCheckError, match=rf"order 2 \({mode} after {mode}\).* stop_gradient, .* line"):
            tm.check_grads(cubed, (1.5,), order=2, modes=mode)


def test_what_counts_as_constant_is_seen():
    with pytest.raises(tm.DerivativeCheckError, match="stop_gradient"):
        tm.check_grads(lambda x: x * tm.stop_gradient(x), (2.0,))


def test_modes_have_names():
    with pytest.raises(tm.DifferentiationError, match="there is no mode 'backward'"):
        tm.check_grads(np.sin, (X,), modes="backward")


def test_differences_in_long_floats_and_complex_steps_are_accurate():
    (found,) = slope(lambda v: [np.exp(v[0])], longer([np.array([0.5])]), longer([np.array([1.0])])).values
    assert abs(float(found[0]) / np.exp(0.5) - 1) < 1e-15
    near = slope(lambda v: [np.abs(v[0])], longer([np.array([0.5])]), longer([np.array([1.0])]))
    assert abs(float(near.values[0][0]) - 1) < 1e-15  # which a complex step would take for 0
