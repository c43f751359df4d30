"""Functions of libraries and methods, captured or passed as they are."""

import functools
import math
import warnings

import numpy as np
import pytest
import scipy

import tensormagic as tm

pytestmark = pytest.mark.usefixtures("by_numpy", "exact")


SQUARE = np.array([[2.0, 1.0], [0.5, 3.0]])


PASSED_AS_THEY_ARE = [
    (scipy.special.logsumexp, np.array([0.5, 1.0, 2.0])),
    (functools.partial(scipy.special.logsumexp, axis=0), np.array([0.5, 1.0, 2.0])),
    (scipy.linalg.det, SQUARE),
    (scipy.linalg.norm, SQUARE),
    (np.linalg.det, SQUARE),
    (np.std, np.array([0.5, 1.0, 2.0])),
    (np.add.reduce, np.array([0.5, 1.0, 2.0])),
    (scipy.special.gammaln, 1.3),
    (np.square, 0.5),
    (math.sin, 0.5),
]


@pytest.mark.parametrize(("function", "x"), PASSED_AS_THEY_ARE)
def test_functions_of_libraries_are_passed_as_they_are(function, x):
    def inside(x):
        return function(x)

    assert tm.tensor(function)(x) == pytest.approx(function(x), rel=1e-14)
    assert np.array_equal(tm.grad(function)(x), tm.grad(inside)(x))
    tm.check_grads(function, (x,))
    rows = np.stack([x, np.multiply(x, 0.5)])
    assert np.allclose(tm.vmap(function)(rows), [function(row) for row in rows], rtol=1e-13)
    assert np.array_equal(tm.jacobian(function)(x), tm.grad(function)(x))
    assert np.array_equal(tm.hessian(function)(x), tm.hessian(inside)(x))


def test_a_librarys_function_takes_its_options_by_keyword():
    x = np.array([[0.5, 1.0], [2.0, -1.0]])
    assert np.allclose(tm.tensor(scipy.special.softmax)(x, axis=1), scipy.special.softmax(x, axis=1), rtol=1e-14)
    assert np.allclose(tm.grad(scipy.special.logsumexp)(x, b=2.0), scipy.special.softmax(x), rtol=1e-14)


def test_a_bound_method_is_captured_with_its_loops():
    class Model:
        def power(self, x, n):
            y = x
            for _ in range(n - 1):
                y = y * x
            return y if y > 0 else -y

    assert tm.grad(Model().power)(2.0, 3) == 12.0
    assert tm.grad(Model().power)(-2.0, 3) == -12.0


def doubled(x):
    for v in x:
        yield v * 2


FROM_ITERABLES = {
    "a generator": lambda x, s: np.fromiter((v * s for v in x), float),
    "a function's": lambda x, s: np.fromiter(doubled(x), np.float32),
    "of known numbers": lambda x, s: np.fromiter((v * s for v in (1.0, 2)), float),
    "a list": lambda x, s: np.fromiter([s, 1, 2.5], int),
    "a map": lambda x, s: np.fromiter(map(s.__mul__, x), float),
    "some": lambda x, s: np.fromiter(doubled(x), float, 2),
    "an array": lambda x, s: np.fromiter(x, complex),
}


@pytest.mark.parametrize("name", FROM_ITERABLES)
def test_arrays_from_iterables_of_lazy_numbers(name):
    program, x = FROM_ITERABLES[name], np.array([1.0, -2.0, 3.0])
    with warnings.catch_warnings(action="error", category=tm.PlainRunWarning):
        for captured in (tm.tensor(program), tm.compile(program, x, 1.5)):
            found, expected = captured(x, 1.5), program(x, 1.5)
            assert found.dtype == expected.dtype
            np.testing.assert_array_equal(found, expected)
    if name == "a generator":
        tm.check_grads(program, (x, 1.5))
        with pytest.raises(ValueError, match="Expected 9 but iterator had only 3 items"):
            tm.tensor(lambda x: np.fromiter(doubled(x), float, 9))(x)
