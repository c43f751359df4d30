"""Functions near where they stop, far out, and of exponentials near 1: all digits, from NumPy text, for every form of number."""

import mpmath
import numpy as np
import pytest
from scipy import special

import tensormagic as tm
from tests.transform.never_worse import compared, function_of, truth

FORMS = {"array": lambda x: np.array([x, x]), "0-d": np.array, "numpy": np.float64, "python": float}
POINTS = {  # how many units the result may be off at each point
    "x * (y - z * np.exp(-x)) / (1 - np.exp(-x))": [(1e-9, 1.5, 0.7), (-3e-8, 0.9, 0.8), (40.0, 1.0, 2.0)],
    "np.log(np.exp(x) / (1 - np.exp(-np.exp(x))))": [(-30.0,), (-2.0,), (4.0,)],
    "0.5 * np.log(x * x + y * y)": [(0.6, 0.8000000001), (-0.28, 0.96), (1e200, 1e150), (3e-200, 4e-200), (2.0, 3.0)],
    "np.log(np.sqrt(x**2 + y**2))": [(0.6, 0.8000000001), (1e-9, 1.0)],
    "np.sqrt(x * x - 1)": [(1.000000001,), (1.5,), (-1.0000001,)],
    "np.sqrt(1 - x * x)": [(0.9999999999,), (-0.999999,), (0.1,)],
    "np.sqrt(1 - 1 / x**2)": [(1.0000001,), (-1.00000001,), (9.0,)],
    "np.arccosh(x) - np.log(2 * x)": [(3e3,), (1e9,), (1e100,), (1.2,)],
    "np.log(2 * x) - np.arcsinh(x)": [(3e3,), (1e9,), (1e100,)],
    "np.log(np.exp(x) - np.exp(-x)) - x": [(20.0,), (300.0,), (0.2,)],
    "np.log(np.exp(x) - 1)": [(1e-9,), (3.0,), (900.0,)],
    "np.log(np.exp(x) - 1) - x": [(30.0,), (1e-3,)],
    "np.exp(-x) * np.cosh(x)": [(1e-3,), (800.0,)],
    "np.arctan2(y, x) - np.arctan2(y, z)": [(1.0, 2.0, 1.0000000001), (-1.0, 1e-3, -1.00001)],
    "np.arctanh(1 - x)": [(1e-12,), (1e-3,), (0.7,)],
    "np.arccosh(x + 1) - np.arccosh(x)": [(1e6,), (3.0,)],
    "np.arcsin(x) - np.arcsin(y)": [(0.5, 0.5000000001), (-0.999, -0.9990001)],
    "np.arccos((x * x + y * y - z * z) / (2 * x * y))": [(1.0, 1.0000001, 1e-5), (3.0, 4.0, 5.0)],
    "np.log(y * np.exp(x) + (1 - y))": [(1e-9, 0.3), (-1e-3, 0.7), (2.0, 0.5)],
    "special.gammaln(x + 1) - special.gammaln(x)": [(1e9,), (3.5,), (1e-5,)],
    "(1 - np.exp(-x)) / x - np.exp(-x)": [(1e-6,), (2.0,), (-3.0,)],
    "np.sqrt(1 + x) * np.sqrt(1 - x) - 1": [(1e-9,), (1e-5,), (0.3,)],
    "np.log(np.sinh(x) / x)": [(800.0,), (-5000.0,), (0.01,)],
    "np.log((np.exp(x) - 1) / x)": [(800.0,), (-800.0,), (1e-9,)],
    "np.log(np.cosh(x) * y)": [(0.5, 1e-309), (0.0, 1e-310), (800.0, 3.0)],
    "np.log(2 * np.cosh(x))": [(1e-6,), (3.0,), (800.0,)],
    "1 - np.tanh(x)**2": [(20.0,), (-30.0,), (3.0,), (0.1,)],
    "np.log(1 - np.tanh(x)**2)": [(60.0,), (1e-9,)],
    "(x + 1) / y - 1 - np.log((x + 1) / y)": [(-0.999999, 1.0000001e-6), (3.0, 4.0001)],
    "np.log1p(-y) - np.log1p(1 - x)": [(1.0000001, 1e-9), (1.001, 3e-4)],
    "np.log(x / (x + y)) - np.log(y / (x + y))": [(1.0, 1.0000000001), (3e-3, 2.9e-3)],
    "(1 + x / y)**y - np.exp(x)": [(0.5, 1e6), (1e-4, 1e3)],
    "y * np.log(1 + x / y) - x": [(3.0, 1e7), (1e-8, 100.0)],
    "x - y * np.sin(x) - (1 - y) * x": [(1e-5, 0.3), (0.9, 0.5)],
    "np.sin(x + y) - np.sin(x - y)": [(1000.0, 1e-7), (3.0, 1e-3)],
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("text", POINTS)
def test_all_digits(text, form):
    function, _ = function_of(text)
    for point in POINTS[text]:
        found = np.ravel(tm.tensor(function)(*map(FORMS[form], point)))[0]
        with np.errstate(all="ignore"):
            true = truth(tm.trace(function, *map(np.array, point)), point)
        assert abs(mpmath.mpf(float(found)) - true) <= 6 * np.spacing(abs(float(true))), (text, point, float(true))


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize(
    "text", [*POINTS, "np.pi * ((1 - y)**2 - (x + 1)**2)", "np.arctan2(y / 3, x) - np.arctan2(x - 0.5, x)"]
)
def test_no_input_is_less_accurate(text, dtype):
    found = compared("", text, np.dtype(dtype), count=900, seed=3, most=20)
    assert (found.worse, found.lost) == ([], []), text


@pytest.mark.parametrize("scale", [1e-12, 1e-6, 1e-2])
@pytest.mark.parametrize("shift", [0, 1, -3])
def test_logarithms_of_means_near_one(scale, shift):
    x = (np.random.default_rng(1).normal(size=200) + shift) * scale
    with mpmath.workprec(400):
        true = mpmath.log(sum(mpmath.exp(mpmath.mpf(v)) for v in x) / 200)
    found = float(tm.tensor(lambda x: np.log(np.mean(np.exp(x))))(x))
    assert abs(found - float(true)) <= 1e-15 * max(abs(float(true)), float(np.mean(np.abs(x))) * 1e-1)


def test_logarithms_of_means_elsewhere():
    f = tm.tensor(lambda x: np.log(np.mean(np.exp(x), axis=1)))
    x = np.array([[800.0, 1.0], [-np.inf, -np.inf], [np.inf, 0.0], [np.nan, 0.0], [-900.0, -900.0]])
    np.testing.assert_allclose(f(x), [800 - np.log(2), -np.inf, np.inf, np.nan, -900.0], rtol=1e-15)


@pytest.mark.parametrize("x", [1.0, -1.0])
def test_roots_that_are_zero_have_no_sign(x):
    for text in ("np.sqrt(x * x - 1)", "np.sqrt(1 - x * x)"):
        function, _ = function_of(text)
        assert not np.signbit(tm.tensor(function)(x))


def test_angles_that_are_no_numbers_any_more_are_left_as_written():
    x, y = np.array(-1.3818367636634963e146), np.array(0.11527623571370306)
    f = lambda x, y: np.sin(x * x + y) - np.sin(x * x - y)  # noqa: E731
    assert float(tm.tensor(f)(x, y)) == float(f(x, y)) == 0


def test_angles_do_not_go_around():
    f = tm.tensor(lambda x, y, z: np.arctan2(x, y) - np.arctan2(z, y))
    assert f(1e-3, -1.0, -1e-3) == np.arctan2(1e-3, -1.0) - np.arctan2(-1e-3, -1.0)


def test_gradients_of_the_logarithm_of_a_length():
    f = tm.grad(lambda x, y: 0.5 * np.log(x * x + y * y), (0, 1))
    for x, y in ((0.6, 0.8), (3e200, 4e200), (3e-200, 4e-200)):
        size = np.hypot(x, y)
        np.testing.assert_allclose(f(x, y), (x / size / size, y / size / size), rtol=1e-14)


def test_gamma_beside_a_pole():
    found = tm.tensor(lambda x: special.gammaln(x + 1) - special.gammaln(x))(np.array([1e-300, 2.0]))
    np.testing.assert_allclose(found, np.log([1e-300, 2.0]), rtol=1e-15)
