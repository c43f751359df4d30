"""The namespace in captured code: functions, gradients, batches, cells; and code that knows only an array's namespace."""

import numpy as np
import pytest

import tensormagic as tm
import tensormagic.numpy as xp

X = np.array([1.0, -2.0, 3.0])


def standardised(x):
    """Code for any array library."""
    namespace = x.__array_namespace__()
    centred = x - namespace.mean(x, axis=0, keepdims=True)
    return centred / namespace.std(x, axis=0, correction=1.0, keepdims=True)


def test_code_for_any_library():
    x = np.arange(12.0).reshape(4, 3) ** 2
    want = standardised(x)
    np.testing.assert_allclose(np.asarray(standardised(xp.asarray(x))), want, rtol=1e-14)
    np.testing.assert_allclose(tm.tensor(standardised)(x), want, rtol=1e-14)


@tm.tensor
def objective(x, y):
    z = xp.asarray([1.0, 2.0, 3.0])
    return xp.sum(xp.exp(x) * z + xp.where(x > 0, x, y)) + xp.linalg.vector_norm(y) + xp.zeros(x.shape)[0]


def test_a_captured_function_and_its_gradient():
    y = np.ones(3)

    def plain(x):
        return np.sum(np.exp(x) * np.array([1.0, 2.0, 3.0]) + np.where(x > 0, x, y)) + np.linalg.norm(y)

    assert objective(X, y) == pytest.approx(plain(X), rel=1e-14)
    steps = 1e-6 * np.eye(3)
    differences = [(plain(X + h) - plain(X - h)) / 2e-6 for h in steps]
    np.testing.assert_allclose(tm.grad(objective)(X, y), differences, rtol=1e-6)


def test_control_flow_creation_and_sets():
    @tm.tensor
    def f(x):
        total = xp.zeros(x.shape, dtype=x.dtype)
        for k in range(3):
            total = total + xp.sin(x) * k
        if xp.any(x > 100):
            total = total * 0
        return total, xp.unique_values(x), xp.sort(x, descending=True), xp.astype(x, xp.float32), xp.arange(x.shape[0])

    for x in (X, np.array([1.0, 1.0, 200.0, -5.0])):
        want = (
            3 * np.sin(x) * bool((x <= 100).all()),
            np.unique(x),
            -np.sort(-x),
            x.astype(np.float32),
            np.arange(x.size),
        )
        for got, value in zip(f(x), want, strict=True):
            np.testing.assert_allclose(got, value, rtol=1e-15)
            assert got.dtype == value.dtype


def test_batches_and_jacobians():
    np.testing.assert_array_equal(tm.vmap(lambda v: xp.cumulative_sum(v))(np.ones((2, 3))), [[1, 2, 3]] * 2)
    jacobian = tm.jacobian(lambda v: xp.matmul(xp.asarray([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]), v))(X)
    np.testing.assert_array_equal(jacobian, [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])


def test_what_needs_a_value_is_refused_in_a_function():
    with pytest.raises(tm.CaptureError, match="DLPack"):
        tm.tensor(lambda v: np.from_dlpack(v)).graph(X)


def test_arrays_of_numpy_become_lazy():
    assert isinstance(xp.sin(xp.asarray(X)), tm.Tensor)
    for result in (xp.add(xp.asarray(X), X), xp.sum(X), xp.concat([X, xp.asarray(X)]), xp.linalg.svdvals(np.eye(2))):
        assert isinstance(result, tm.Tensor)
