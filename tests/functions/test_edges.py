"""Derivatives at points where the textbook formula has none: zeros, ties, infinities, and matrices with equal eigenvalues."""

import numpy as np
import pytest
import scipy

import tensormagic as tm

INF = np.inf
EYE = np.eye(3)
ONES = np.ones((3, 2))


pytestmark = pytest.mark.usefixtures("quietly_by_numpy")


def array(*values):
    return np.array(values, dtype=float)


CASES = {
    "where": (lambda x: np.where(x > 0, x * np.log(x), 0.0), 0.0, 0.0),
    "two wheres of one value": (
        lambda x: np.sum(np.where(x > 0, np.log(x), 0.0) + np.where(x > 1, 2 * np.log(x), 0.0)),
        array(0, 0.5, 2),
        array(0, 2, 1.5),
    ),
    "norm": (lambda x: np.linalg.norm(x), np.zeros(3), np.zeros(3)),
    "norm of complex numbers": (lambda x: np.linalg.norm(x), np.zeros(2, complex), np.zeros(2, complex)),
    "root of a sum of squares": (lambda x: np.sqrt(np.sum(x**2)), np.zeros(3), np.zeros(3)),
    "root of a dot product": (lambda x: np.sqrt(x @ x), np.zeros(3), np.zeros(3)),
    "power of a sum of squares": (lambda x: (x * x).sum() ** 0.5, np.zeros(3), np.zeros(3)),
    "root of a square": (lambda x: np.sqrt(x**2), 0.0, 0.0),
    "distances": (
        lambda x: np.sqrt(((x[:, None] - x[None]) ** 2).sum(-1)).sum(),
        array([0, 0], [3, 4]),
        array([-1.2, -1.6], [1.2, 1.6]),
    ),
    "root": (np.sqrt, 0.0, INF),
    "standard deviation": (np.std, np.ones(3), np.zeros(3)),
    "x**0": (lambda x: x**0, 0.0, 0.0),
    "x**1.5": (lambda x: x**1.5, 0.0, 0.0),
    "0**x": (lambda x: 0.0**x, 2.0, 0.0),
    "0**x at 0": (lambda x: 0.0**x, 0.0, -INF),
    "product": (np.prod, array(0, 2, 3), array(6, 0, 0)),
    "product of two zeros": (np.prod, array(0, 0, 3), np.zeros(3)),
    "max": (np.max, array(1, 3, 3), array(0, 0.5, 0.5)),
    "min": (np.min, array(1, 1, 3), array(0.5, 0.5, 0)),
    "ptp": (np.ptp, array(2, 1, 2, 1), array(0.5, -0.5, 0.5, -0.5)),
    "sort": (lambda x: np.sort(x) @ array(1, 2, 3), array(2, 1, 2), array(2, 1, 3)),
    "median": (np.median, array(2, 1, 4, 3), array(0.5, 0, 0, 0.5)),
    "clip": (lambda x: np.clip(x, 0.0, 1.0).sum(), array(-1, 0, 0.5, 1, 2), array(0, 0.5, 1, 0.5, 0)),
    "abs": (np.abs, 0.0, 0.0),
    "hypot": (lambda x: np.hypot(x, 0.0 * x), 0.0, 0.0),
    "angle": (lambda x: np.arctan2(x, 0.0 * x), 0.0, 0.0),
    "logsumexp": (lambda x: scipy.special.logsumexp(x), array(-INF, 1), array(0, 1)),
    "logsumexp of nothing": (lambda x: scipy.special.logsumexp(x), array(-INF, -INF), array(0, 0)),
    "logsumexp of infinity": (lambda x: scipy.special.logsumexp(x), array(INF, 1, INF), array(0.5, 0, 0.5)),
    "log of a sum of exp": (lambda x: np.log(np.sum(np.exp(x))), array(-INF, -INF), array(0, 0)),
    "xlogy": (lambda x: scipy.special.xlogy(x, x), 0.0, -INF),
    "entropy": (lambda x: scipy.special.entr(x), 0.0, INF),
    "relative entropy": (lambda x: scipy.special.rel_entr(x, 1.0), 0.0, -INF),
    "singular values": (lambda a: np.linalg.svd(a, compute_uv=False).sum(), EYE, EYE),
    "eigenvalues": (lambda a: np.linalg.eigvalsh(a).sum(), EYE, EYE),
    "squares of eigenvalues": (
        lambda a: (np.linalg.eigvalsh(a) ** 2).sum(),
        np.diag([1.0, 1, 2]),
        np.diag([2.0, 2, 4]),
    ),
    "determinant": (np.linalg.det, np.ones((2, 2)), array([1, -1], [-1, 1])),
    "expm": (lambda a: scipy.linalg.expm(a).sum(), np.zeros((2, 2)), np.ones((2, 2))),
    "sqrtm": (lambda a: scipy.linalg.sqrtm(a).sum(), EYE, np.full((3, 3), 0.5)),
    "pinv": (lambda a: np.linalg.pinv(a).sum(), ONES, np.full((3, 2), -1 / 6)),
    "lstsq": (lambda a: np.linalg.lstsq(a, np.ones(3))[0].sum(), ONES, np.full((3, 2), -1 / 6)),
}


@pytest.mark.parametrize("name", CASES)
def test_gradients(name):
    function, point, expected = CASES[name]
    np.testing.assert_allclose(tm.grad(function)(point), expected, rtol=1e-13, atol=1e-15)


def test_sinc_at_zero_has_the_derivatives_of_its_series():
    expected = [1.0, 0.0, -(np.pi**2) / 3, 0.0, np.pi**4 / 5]
    function = np.sinc
    for value in expected:
        assert function(0.0) == pytest.approx(value, rel=1e-14, abs=1e-15)
        function = tm.grad(function)
    assert tm.grad(np.sinc)(1e-9) == pytest.approx(-(np.pi**2) / 3 * 1e-9, rel=1e-14)


def exponential(values, vectors):
    return (vectors * np.exp(values)) @ vectors.T


VECTORS = {
    "eigenvectors": (lambda a: np.linalg.eigh(a)[1][0, 1], EYE),
    "a function by eigenvectors": (lambda a: exponential(*np.linalg.eigh(a)).sum(), EYE),
    "curvature of eigenvalues": (tm.grad(lambda a: (np.linalg.eigvalsh(a) ** 2).sum()), EYE),
    "eigenvectors by SciPy": (lambda a: scipy.linalg.eigh(a)[1][0, 1], EYE),
    "eigenvectors of a stack": (lambda a: np.linalg.eigh(np.stack([a, np.diag([1.0, 2, 3])]))[1][0, 0, 1], EYE),
    "eigenvectors of complex matrices": (lambda a: np.linalg.eigh(a + 0j)[1][0, 1].real, EYE),
    "general eigenvectors": (lambda a: np.linalg.eig(a + 0j)[1][0, 1].real, EYE),
    "too few eigenvectors": (lambda a: np.linalg.eigvals(a + 0j)[0].real, array([1, 1], [0, 1])),
    "singular vectors": (lambda a: np.linalg.svd(a)[0][0, 1], EYE),
    "singular vectors of nothing": (lambda a: np.linalg.svd(a)[0][0, 1], np.zeros((3, 2))),
    "qr": (lambda a: np.linalg.qr(a)[1].sum(), ONES),
    "sqrtm": (lambda a: scipy.linalg.sqrtm(a).sum(), np.zeros((2, 2))),
}


@pytest.mark.parametrize("name", VECTORS)
def test_what_equal_eigenvalues_leave_open_is_an_error(name):
    function, point = VECTORS[name]
    derive = tm.jacobian if name == "curvature of eigenvalues" else tm.grad
    with pytest.raises(tm.DifferentiationError, match=r"derivative"):
        derive(function)(point)


def test_vectors_that_are_determined_have_derivatives_beside_equal_eigenvalues():
    a = np.diag([1.0, 1.0, 3.0]) + 0.0
    found = tm.jvp(lambda a: np.linalg.eigh(a)[1][:, 2], (a,), (np.outer([0, 0, 1.0], [1.0, 0, 0]),))[1]
    np.testing.assert_allclose(np.abs(found), [0.5, 0, 0], rtol=1e-14)
    found = tm.grad(lambda a: np.abs(np.linalg.eigh(a)[1][0, 2] + 2 * np.linalg.eigh(a)[1][2, 2]))(a)
    np.testing.assert_allclose(found, array([0, 0, 0], [0, 0, 0], [0.5, 0, 0]), atol=1e-15)


@pytest.mark.parametrize("shape", [(3, 3), (4, 3), (3, 4)])
def test_one_program_for_square_and_other_matrices(shape):
    rng = np.random.default_rng(0)
    gradient = tm.grad(lambda a: (np.linalg.svd(a, full_matrices=False)[0][:, :2] ** 3).sum())
    gradient(rng.normal(size=(3, 3)))
    a = rng.normal(size=shape)
    fresh = tm.grad(lambda a: (np.linalg.svd(a, full_matrices=False)[0][:, :2] ** 3).sum() * 1.0)(a)
    np.testing.assert_allclose(gradient(a), fresh, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize(
    ("function", "reads"),
    [
        (lambda a: np.linalg.cholesky(a).sum(), np.tril),
        (lambda a: np.linalg.cholesky(a, upper=True).sum(), np.triu),
        (lambda a: np.linalg.eigvalsh(a)[0], np.tril),
        (lambda a: np.linalg.eigvalsh(a, "U")[0], np.triu),
    ],
)
def test_the_triangle_that_numpy_reads_is_read(function, reads):
    a = array([2, 0.3], [0.3, 2.5])
    other = reads(a) + (9.0 - reads(np.full((2, 2), 9.0)))
    np.testing.assert_array_equal(tm.grad(function)(other), tm.grad(function)(a))


def test_a_missing_derivative_names_the_operation_and_the_line_at_capture():
    def user(n, x):
        y = x + 1.0
        return scipy.special.jv(n, y)

    line = user.__code__.co_firstlineno + 2
    for derive in (tm.grad, tm.jacobian, lambda f: lambda n, x: tm.jvp(f, (n, x), (1.0, 1.0))):
        with pytest.raises(
            tm.DifferentiationError,
            match=rf"jv has no derivative with respect to its first operand \(.*test_edges.py line {line}\)",
        ):
            tm.trace(derive(user), 1.5, 2.0)
    assert np.isfinite(tm.grad(user, 1)(1.5, 2.0))
