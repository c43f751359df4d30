"""Gradients by known numbers, of any order; what is masked stays masked; what has no derivative is refused."""

import numpy as np
import pytest

from tensormagic.ir.errors import DifferentiationError
from tensormagic.ops.contract import matmul
from tensormagic.ops.fold import MAX, PROD, fold, mean, reduce_sum
from tensormagic.ops.leaf import constant
from tensormagic.ops.matrices.determinants import det
from tensormagic.ops.matrices.linalg import eigh, eigvalsh, svdvals
from tensormagic.ops.op import Op, registry
from tensormagic.ops.pointwise import astype
from tensormagic.ops.regions.control import cond
from tensormagic.ops.scalars.scalar import absolute, conjugate, exp, log, real, sqrt, where
from tensormagic.transform.grad import depends, gradient, jvp, vjp
from tests.ops.harness import BACKENDS, closed, place, run_nodes


def run(build, *values, backend="reference"):
    return run_nodes(backend, build, values)


def orders(function, x, count):
    """The value of a scalar function and its derivatives."""

    def build(node):
        found = [function(node)]
        for _ in range(count):
            found += gradient(found[-1], [node])
        return tuple(found)

    return [float(v) for v in run(build, x)]


def test_every_order_of_a_cubic():
    assert orders(lambda x: 2 * x**3 + 8, np.float64(1), 4) == [10, 6, 12, 12, 0]


def test_orders_of_exp_share_its_node():
    x = place(np.float64(0.5))
    e = exp(x)
    assert gradient(e, [x]) == [e]
    assert gradient(gradient(e, [x])[0], [x]) == [e]


def test_a_product_differentiates_to_the_other_factor_itself():
    a, b = place(np.float64(2)), place(np.float64(3))
    assert gradient(a * b, [a, b]) == [b, a]


def test_where_annihilates_what_it_does_not_choose():
    def function(x):
        return where(x > 0, x * log(x), 0)

    with np.errstate(all="ignore"):
        (found,) = run(lambda x: gradient(reduce_sum(function(x), (0,)), [x])[0], np.array([0.0, 1.0, -2.0, np.e]))
    np.testing.assert_allclose(found, [0, 1, 0, 2], rtol=1e-15)
    with np.errstate(all="ignore"):
        assert orders(function, np.float64(0), 2) == [0, 0, 0]
        assert orders(lambda x: where(x > 0, sqrt(x), 0), np.float64(0), 2) == [0, 0, 0]


def test_forward_mode_is_masked_too():
    x, t = place(np.zeros(2)), place(np.ones(2))
    (tangent,) = jvp([where(x > 0, sqrt(x), 0)], {x: t})
    with np.errstate(all="ignore"):
        (found,) = BACKENDS["reference"](closed([tangent], [x, t]))([np.zeros(2), np.ones(2)])
    assert found.tolist() == [0, 0]


def test_logistic_regression():
    rng = np.random.default_rng(0)
    X, w, y, b = rng.normal(size=(50, 3)), rng.normal(size=3), np.sign(rng.normal(size=50)), np.float64(0.3)

    def build(X, w, y, b):
        loss = mean(log(1 + exp(-y * (matmul(X, w) + b))), (0,))
        return (loss, *gradient(loss, [w, b]))

    loss, gw, gb = run(build, X, w, y, b)
    margin = y * (X @ w + b)
    weight = -y / (1 + np.exp(margin)) / 50
    np.testing.assert_allclose(loss, np.mean(np.log1p(np.exp(-margin))), rtol=1e-14)
    np.testing.assert_allclose(gw, X.T @ weight, rtol=1e-13)
    np.testing.assert_allclose(gb, weight.sum(), rtol=1e-13)


def test_ties_share_a_gradient():
    (found,) = run(lambda x: gradient(fold(MAX, x, (0,)), [x])[0], np.array([1.0, 3.0, 3.0]))
    assert found.tolist() == [0, 0.5, 0.5]


@pytest.mark.parametrize("x", [[2.0, 0, 3], [0, 0, 3], [1, 2, 3]])
def test_products_with_zeros(x):
    def build(node):
        (first,) = gradient(fold(PROD, node, (0,)), [node])
        return first, gradient(reduce_sum(first * constant(np.array([1.0, 10, 100])), (0,)), [node])[0]

    a, b, c = x
    first, second = run(build, np.array(x, float))
    assert first.tolist() == [b * c, a * c, a * b]
    assert second.tolist() == [10 * c + 100 * b, c + 100 * a, b + 10 * a]


def test_the_gradient_of_a_determinant_at_a_singular_matrix_is_that_of_its_cofactors():
    a = np.array([[1.0, 2], [2, 4]])
    (found,) = run(lambda x: gradient(det(x), [x])[0], a)
    np.testing.assert_allclose(found, [[4, -2], [-2, 1]], rtol=1e-14)


@pytest.mark.parametrize(
    "singular", [[[1, 2, 3], [2, 4, 6], [1, 0, 1]], [[1, 2, 3], [2, 4, 6], [3, 6, 9]], [[0] * 3] * 3]
)
def test_the_second_derivative_of_a_determinant_holds_at_singular_matrices(singular):
    def cofactors(a):
        return np.cross(a[[1, 2, 0]], a[[2, 0, 1]])

    def along(x, *directions):
        value = det(x)
        for direction in directions:
            value = reduce_sum(gradient(value, [x])[0] * constant(direction), (0, 1))
        return gradient(value, [x])[0]

    a = np.array(singular, float)
    first, second = np.random.default_rng(3).normal(size=(2, 3, 3))
    (found,) = run(lambda x: along(x, first), a)
    np.testing.assert_allclose(found, (cofactors(a + first) - cofactors(a - first)) / 2, rtol=1e-12, atol=1e-13)
    with pytest.raises(np.linalg.LinAlgError):  # the third one is by the inverse
        run(lambda x: along(x, first, second), a)


def test_equal_eigenvalues_have_a_derivative_and_their_vectors_none():
    a = np.diag([1.0, 1, 2])
    (found,) = run(lambda x: gradient(reduce_sum(eigvalsh(x) ** 2.0, (0,)), [x])[0], a)
    np.testing.assert_allclose(found, 2 * a, atol=1e-15)

    def spectral(x):
        w, v = eigh(x)
        return gradient(reduce_sum(matmul(v * exp(w), v * 0 + v), (0, 1)), [x])[0]

    with pytest.raises(DifferentiationError, match="eigenvectors of equal eigenvalues"):
        run(spectral, a)
    assert np.isfinite(run(spectral, np.diag([1.0, 1.5, 2]))[0]).all()
    (found,) = run(lambda x: gradient(reduce_sum(svdvals(x), (0,)), [x])[0], np.eye(3))
    np.testing.assert_allclose(found, np.eye(3), atol=1e-15)


def test_complex_gradients_are_not_conjugated():
    z = np.array([1 + 2j, 3 - 1j])
    (found,) = run(lambda x: gradient(reduce_sum(real(x * conjugate(x)), (0,)), [x])[0], z)
    np.testing.assert_allclose(found, 2 * np.conj(z))
    (found,) = run(lambda x: gradient(reduce_sum(absolute(x) ** 2.0, (0,)), [x])[0], z)
    np.testing.assert_allclose(found, 2 * np.conj(z))


def test_gradients_have_the_dtype_of_what_they_are_of():
    x = np.ones(3, np.float32)
    (found,) = run(lambda n: gradient(reduce_sum(astype(n, np.float64) ** 2.0, (0,)), [n])[0], x)
    assert found.dtype == np.float32
    assert found.tolist() == [2, 2, 2]


def test_what_a_result_does_not_depend_on_has_a_gradient_of_zeros():
    x, y = place(np.ones(3)), place(np.ones((2, 2)))
    loss = reduce_sum(x, (0,))
    assert not depends([loss], y)
    (found,) = run(lambda a, b: gradient(reduce_sum(a, (0,)), [b])[0], np.ones(3), np.ones((2, 2)))
    assert found.tolist() == [[0, 0], [0, 0]]


def test_what_is_used_twice_gathers_both_cotangents():
    (found,) = run(lambda x: gradient(reduce_sum(x * x + x, (0,)), [x])[0], np.array([1.0, 2]))
    assert found.tolist() == [3, 5]


def test_a_gradient_stops_at_what_it_is_asked_for():
    x = place(np.float64(2))
    y = x * x
    assert vjp([y * y], [constant(np.float64(1))], [y, x])[1] is None


def test_what_is_no_real_scalar_has_no_gradient():
    x = place(np.ones(3))
    with pytest.raises(DifferentiationError, match="a gradient is of one number"):
        gradient(x * 2, [x])
    z = place(np.complex128(1))
    with pytest.raises(DifferentiationError, match="a gradient is of a real float"):
        gradient(z * z, [z])
    k = place(np.arange(3))
    with pytest.raises(DifferentiationError, match="no derivative with respect to int64"):
        gradient(reduce_sum(k * 1.0, (0,)), [k])


def test_an_op_without_a_rule_is_refused_by_name(monkeypatch):
    monkeypatch.setattr("tensormagic.ops.op.registry", {})
    op = Op(name="mystery")
    with pytest.raises(DifferentiationError, match="mystery has no derivative"):
        op.jvp(place(np.float64(1)), [])
    with pytest.raises(DifferentiationError, match="mystery is not linear"):
        op.transpose(place(np.float64(1)), place(np.float64(1)), [True])
    assert "mystery" not in registry


def test_gradients_of_conditions_take_the_branch_that_ran():
    x = place(np.float64(1))
    double, cube = closed([x * 2.0], [x]), closed([x**3.0], [x])
    (found,) = run(lambda n: gradient(cond(n > 2.5, double, cube, [n])[0], [n])[0], np.float64(2))
    assert found == 12
    (found,) = run(lambda n: gradient(cond(n > 2.5, double, cube, [n])[0], [n])[0], np.float64(3))
    assert found == 2
