"""What np.linalg and scipy.linalg have of norms, ranks, least squares, general eigenvalues and functions of matrices."""

import numpy as np
import pytest
import scipy

import tensormagic as tm
from tensormagic.ir.errors import CaptureError
from tests.capture.harness import check

RNG = np.random.default_rng(0)
A = RNG.normal(size=(4, 4)) + 4 * np.eye(4)
H = A + 1j * A.T
NAMES = {
    "a": A,
    "spd": A @ A.T,
    "h": H @ H.conj().T,
    "m": RNG.normal(size=(5, 3)),
    "stack": RNG.normal(size=(2, 3, 3)) + 3 * np.eye(3),
    "v": RNG.normal(size=4),
    "b5": RNG.normal(size=5),
    "z": RNG.normal(size=4) + 1j * RNG.normal(size=4),
    "f": (RNG.normal(size=(3, 3)) + 3 * np.eye(3)).astype(np.float32),
    "i": np.array([[1, 2], [3, 5]]),
    "sing": np.array([[1.0, 2], [2, 4]]),
    "sq": RNG.normal(size=(2, 3, 6)),
    "zm": RNG.normal(size=(3, 3)) + 1j * RNG.normal(size=(3, 3)),
    "t4": RNG.normal(size=(2, 3, 4)),
    "nan": np.array([[1.0, np.nan], [0, 1]]),
    "e": np.zeros((0, 3)),
    "rot": np.array([[0.0, -1], [1, 0]]),
}

NUMPY = """
np.linalg.eig(a)
np.linalg.eig(a).eigenvalues
np.linalg.eig(rot)
np.linalg.eig(zm)
np.linalg.eig(stack)
np.linalg.eigvals(a)
np.linalg.eigvals(rot)
np.linalg.eigvals(f)
np.linalg.eigvals(i)
np.linalg.eigvals(m)
np.linalg.lstsq(m, b5)
np.linalg.lstsq(m, b5)[0]
np.linalg.lstsq(m, np.stack([b5,b5*2],1))
np.linalg.lstsq(m.T, v[:3])
np.linalg.lstsq(a, v)
np.linalg.lstsq(a, v, rcond=0.1)
np.linalg.lstsq(f, np.ones(3,np.float32))
np.linalg.lstsq(i, np.array([1,2]))
np.linalg.lstsq(sing, np.array([1,2.]))
np.linalg.lstsq(zm, zm)
np.linalg.lstsq(a, b5)
np.linalg.tensorsolve(sq, t4[:,:,0])
np.linalg.tensorsolve(np.swapaxes(sq,0,2), t4[:,:,0].T, axes=None)
np.linalg.tensorsolve(np.moveaxis(sq,0,2), t4[0,:,:2], axes=(0,))
np.linalg.tensorinv(sq)
np.linalg.tensorinv(sq, ind=2)
np.linalg.tensorinv(a, ind=1)
np.linalg.tensorinv(a, ind=0)
np.linalg.matrix_rank(a)
np.linalg.matrix_rank(sing)
np.linalg.matrix_rank(stack)
np.linalg.matrix_rank(v)
np.linalg.matrix_rank(a, tol=3.0)
np.linalg.matrix_rank(a, rtol=0.5)
np.linalg.matrix_rank(spd, hermitian=True)
np.linalg.matrix_rank(stack, tol=np.array([1.,3.]))
np.linalg.cond(a)
np.linalg.cond(sing)
np.linalg.cond(sing, 1)
np.linalg.cond(a, 1)
np.linalg.cond(a, np.inf)
np.linalg.cond(a, -np.inf)
np.linalg.cond(a, 'fro')
np.linalg.cond(a, 'nuc')
np.linalg.cond(a, 2)
np.linalg.cond(a, -2)
np.linalg.cond(stack, 'fro')
np.linalg.cond(m)
np.linalg.cond(f)
np.linalg.cond(nan, 1)
np.linalg.pinv(m)
np.linalg.pinv(spd, hermitian=True)
np.linalg.pinv(m, rcond=0.5)
np.linalg.pinv(m, rtol=0.5)
np.linalg.pinv(m, rtol=None)
np.linalg.pinv(stack, rcond=np.array([.1,.9]))
np.linalg.pinv(h, hermitian=True)
np.linalg.svd(spd, hermitian=True)
np.linalg.svd(h, hermitian=True)
np.linalg.svd(a + a.T - 8*np.eye(4), hermitian=True)
np.linalg.svd(spd, hermitian=True, compute_uv=False)
np.linalg.svd(m, full_matrices=False)
np.linalg.svd(m)
np.linalg.svd(stack)
np.linalg.svd(stack, compute_uv=False)
np.linalg.svd(f)
np.linalg.svd(i)
np.linalg.svdvals(m)
np.linalg.qr(m)
np.linalg.qr(m, mode='complete')
np.linalg.qr(m, mode='r')
np.linalg.qr(stack)
np.linalg.qr(i)
np.linalg.outer(v, v)
np.linalg.outer(a, v)
np.linalg.diagonal(stack)
np.linalg.diagonal(stack, offset=1)
np.linalg.matrix_transpose(stack)
np.linalg.tensordot(a, a)
np.linalg.tensordot(a, a, axes=1)
np.linalg.tensordot(a, a, axes=([0],[1]))
np.linalg.trace(stack, offset=1)
np.linalg.trace(i)
np.linalg.multi_dot([m.T, m])
np.linalg.multi_dot([m.T, m, m.T, b5])
np.linalg.matrix_power(f, 5)
np.linalg.matrix_power(stack, -1)
np.linalg.matrix_power(i, 3)
np.linalg.vecdot(z, z)
np.linalg.vecdot(t4, t4, axis=1)
np.linalg.vecdot(i, i)
np.vecdot(z, z)
np.linalg.cross(m, m[::-1])
np.linalg.cross(m.T, m[::-1].T, axis=0)
np.cross(m, m[::-1])
np.cross(m[0], m)
np.cross(i, i[::-1])
np.cross(i, m[:2])
np.cross(m[:2], i)
np.cross(v, v)
np.linalg.cross(i, i)
np.cross(m, m, axisa=1, axisb=1, axisc=0)
np.linalg.norm(v, 2)
np.linalg.norm(v, -1)
np.linalg.norm(v, -2)
np.linalg.norm(v, 2.5)
np.linalg.norm(z, 3)
np.linalg.norm(z, np.inf)
np.linalg.norm(zm)
np.linalg.norm(zm, 1)
np.linalg.norm(zm, 'nuc')
np.linalg.norm(zm, axis=0)
np.linalg.norm(i)
np.linalg.norm(i, 1)
np.linalg.norm(i, axis=0)
np.linalg.norm(f, 2)
np.linalg.norm(f, 1, axis=0)
np.linalg.norm(t4)
np.linalg.norm(t4, axis=-1)
np.linalg.norm(t4, axis=(0,2))
np.linalg.norm(t4, 'fro', axis=(0,2), keepdims=True)
np.linalg.norm(t4, 1, axis=(0,2))
np.linalg.norm(t4, np.inf, axis=(-1,0))
np.linalg.norm(t4, -np.inf, axis=(-1,0), keepdims=True)
np.linalg.norm(t4, 0, axis=1)
np.linalg.norm(t4, 'fro')
np.linalg.norm(t4, 2)
np.linalg.norm(a, 3)
np.linalg.norm(v, 'fro')
np.linalg.norm(v[0])
np.linalg.norm(3.0)
np.linalg.norm([v[0], v[1]])
np.linalg.norm(e)
np.linalg.norm(e, axis=0)
np.linalg.norm(e, np.inf, axis=1)
np.linalg.norm(v, keepdims=True)
np.linalg.vector_norm(t4)
np.linalg.vector_norm(t4, axis=(0,1), ord=1)
np.linalg.vector_norm(t4, ord=np.inf, keepdims=True)
np.linalg.vector_norm(i)
np.linalg.matrix_norm(t4, ord=1)
np.linalg.matrix_norm(t4, ord=-np.inf)
np.linalg.matrix_norm(t4, keepdims=True)
np.linalg.inv(zm)
np.linalg.inv(m)
np.linalg.inv(sing)
np.linalg.solve(stack, stack[:, :, :1])
np.linalg.solve(a, i)
np.linalg.solve(zm, zm)
np.linalg.det(i)
np.linalg.det(f)
np.linalg.det(zm)
np.linalg.slogdet(zm)
np.linalg.slogdet(sing)
np.linalg.cholesky(-spd)
np.linalg.eigh(f + f.T)
np.linalg.eigh(h, UPLO='U')
np.linalg.eigvalsh(i)
"""

SCIPY = """
scipy.linalg.solve(a, v)
scipy.linalg.solve(spd, v, assume_a='pos')
scipy.linalg.solve(a, v, assume_a='sym')
scipy.linalg.solve(a, v, assume_a='sym', lower=True)
scipy.linalg.solve(h, v, assume_a='her')
scipy.linalg.solve(a, v, assume_a='upper triangular')
scipy.linalg.solve(a, v, assume_a='diagonal')
scipy.linalg.solve(a, v, transposed=True)
scipy.linalg.solve(stack, stack[:,:,:1])
scipy.linalg.solve(f, np.ones(3, np.float32))
scipy.linalg.inv(a)
scipy.linalg.inv(spd, assume_a='pos')
scipy.linalg.det(a)
scipy.linalg.det(i)
scipy.linalg.cholesky(spd)
scipy.linalg.cholesky(spd, lower=True)
scipy.linalg.cho_factor(spd)
scipy.linalg.cho_factor(spd, lower=True)
scipy.linalg.cho_solve(scipy.linalg.cho_factor(spd), v)
scipy.linalg.cho_solve(scipy.linalg.cho_factor(h, lower=True), v)
scipy.linalg.cho_solve((np.tril(a), True), v)
scipy.linalg.solve_triangular(a, v)
scipy.linalg.solve_triangular(a, v, trans='T', lower=True)
scipy.linalg.solve_triangular(zm, zm, trans=2)
scipy.linalg.lstsq(m, b5)
scipy.linalg.lstsq(m, np.stack([b5,b5],1))
scipy.linalg.lstsq(m.T, v[:3])
scipy.linalg.lstsq(sing, np.ones(2))
scipy.linalg.pinv(m)
scipy.linalg.pinv(m, rtol=.4)
scipy.linalg.svd(m)
scipy.linalg.svd(m, full_matrices=False)
scipy.linalg.svd(m, compute_uv=False)
scipy.linalg.svdvals(m)
scipy.linalg.qr(m)
scipy.linalg.qr(m, mode='economic')
scipy.linalg.qr(m, mode='r')
scipy.linalg.qr(a, mode='r')
scipy.linalg.qr(m.T)
scipy.linalg.lu(a)
scipy.linalg.lu(m)
scipy.linalg.lu(m.T)
scipy.linalg.lu(m, permute_l=True)
scipy.linalg.lu(m, p_indices=True)
scipy.linalg.lu(stack)
scipy.linalg.lu(f)
scipy.linalg.lu(zm)
scipy.linalg.eigh(spd)
scipy.linalg.eigh(h, lower=False)
scipy.linalg.eigh(spd, spd + np.eye(4))
scipy.linalg.eigh(spd, eigvals_only=True)
scipy.linalg.eigvalsh(spd)
scipy.linalg.eigvalsh(spd, spd + np.eye(4))
scipy.linalg.norm(m)
scipy.linalg.norm(m, 2)
scipy.linalg.norm(m, 'fro', axis=(0,1))
scipy.linalg.norm(v, 1)
scipy.linalg.expm(a)
scipy.linalg.expm(stack)
scipy.linalg.expm(zm)
scipy.linalg.expm(i)
scipy.linalg.expm(f)
scipy.linalg.sqrtm(spd)
scipy.linalg.sqrtm(rot)
scipy.linalg.sqrtm(-np.eye(2)*v[0])
scipy.linalg.sqrtm(zm)
scipy.linalg.logm(spd)
scipy.linalg.logm(zm)
scipy.linalg.logm(-spd)
scipy.linalg.logm(f)
scipy.linalg.cosm(a)
scipy.linalg.sinm(a)
scipy.linalg.tanhm(i)
scipy.linalg.toeplitz(v)
scipy.linalg.toeplitz(v, b5)
scipy.linalg.toeplitz(z)
scipy.linalg.toeplitz(i[0], v)
scipy.linalg.hankel(v)
scipy.linalg.hankel(v, b5)
scipy.linalg.circulant(v)
scipy.linalg.circulant(i[0])
scipy.linalg.block_diag(a, m, i)
scipy.linalg.block_diag(v, i)
scipy.linalg.block_diag(v[0], [1, 2])
scipy.linalg.block_diag(i)
scipy.linalg.norm(v)
scipy.linalg.norm(m, 1)
scipy.linalg.norm(f, np.inf)
scipy.linalg.norm(stack, axis=(1, 2))
"""


@pytest.mark.parametrize("source", NUMPY.strip().splitlines())
@pytest.mark.filterwarnings("ignore:Arrays of 2-dimensional vectors are deprecated")
def test_numpy(source):
    check(source, 2e-6 if "(f" in source or "f)" in source else 1e-11, **NAMES)


@pytest.mark.parametrize("source", SCIPY.strip().splitlines())
def test_scipy(source):
    check("import scipy.linalg\n" + source, 2e-6 if "(f" in source else 1e-11, **NAMES)


# what depends on values -----------------------------------------------------------------------------------------------


def test_general_eigenvalues_of_real_matrices_in_functions_are_what_the_values_say():
    first = tm.grad(lambda a: np.abs(np.linalg.eigvals(a)).sum())(A)
    gradient = tm.grad(lambda a: np.abs(np.linalg.eigvals(a.astype(complex))).sum())(A)
    assert first.dtype == gradient.dtype == np.float64
    np.testing.assert_allclose(first, gradient, rtol=0, atol=1e-12)


def test_general_eigenvalues_in_a_cell_have_a_gradient():
    check("w, v = np.linalg.eig(a)\nw, v, np.abs(w).sum()", 1e-13, a=NAMES["rot"] + 0.1)
    check("w, v = np.linalg.eig(a)\nw, v, np.abs(w).sum()", 1e-13, a=A)


def test_real_if_close_in_a_cell_goes_by_the_value():
    check("np.real_if_close(np.fft.ifft(np.fft.fft(v)))", 1e-15, v=NAMES["v"])
    check("np.real_if_close(z)", z=NAMES["z"])
    check("np.real_if_close(z * 1e-20 + 1, tol=1)", 1e-15, z=NAMES["z"])
    gradient = tm.grad(lambda v: np.real_if_close(np.fft.ifft(np.fft.fft(v))).sum())(NAMES["v"])
    np.testing.assert_allclose(gradient, np.ones_like(NAMES["v"]), rtol=0, atol=1e-14)


def test_residuals_of_a_deficient_matrix_are_no_wrong_number():
    flat = np.outer(np.arange(4.0), [1.0, 2.0])

    def residuals(a, b):
        return np.linalg.lstsq(a, b)[1]

    def solution(a, b):
        return np.linalg.lstsq(a, b)[0]

    with pytest.raises(tm.GuardError, match="rank 1 and not 2"):
        tm.tensor(residuals)(flat, np.ones(4))
    np.testing.assert_allclose(tm.tensor(solution)(flat, np.ones(4)), np.linalg.lstsq(flat, np.ones(4))[0], rtol=1e-13)


def test_one_function_serves_tall_and_wide_matrices():
    function = tm.tensor(lambda a, b: np.linalg.lstsq(a, b)[:2])
    for shape in ((4, 2), (2, 4), (5, 2), (3, 3)):
        a, b = RNG.normal(size=shape), RNG.normal(size=shape[0])
        for ours, numpys in zip(function(a, b), np.linalg.lstsq(a, b)[:2], strict=True):
            assert ours.shape == numpys.shape
            np.testing.assert_allclose(ours, numpys, rtol=1e-10)


@pytest.mark.parametrize("name", ["sqrtm", "logm"])
@pytest.mark.filterwarnings("ignore:logm result may be inaccurate")
def test_values_decide_whether_a_principal_value_is_complex(name):
    plain = getattr(scipy.linalg, name)
    function = tm.tensor(lambda a: plain(a))
    turned, spd = np.array([[-2.0, 1.0, 0.3], [0.5, 3.0, 0.1], [0.0, 0.2, 1.0]]), NAMES["spd"]
    for a in (spd, -spd, spd, turned, 2 * spd, turned.astype(complex), -spd):
        found, expected = function(a), plain(a)
        assert found.dtype == expected.dtype
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-14)


ON_THE_CUT = [
    np.array([[-2.0, 1.0, 0.3], [0.5, 3.0, 0.1], [0.0, 0.2, 1.0]]),
    -NAMES["spd"],
    np.random.default_rng(0).normal(size=(3, 3)),
    np.random.default_rng(3).normal(size=(4, 4)),
]


def weighted(name, weights):
    plain = getattr(scipy.linalg, name)
    return lambda a: (weights * plain(a)).sum().real


@pytest.mark.parametrize("name", ["sqrtm", "logm"])
@pytest.mark.parametrize("k", range(len(ON_THE_CUT)))
@pytest.mark.filterwarnings("ignore:logm result may be inaccurate")
def test_derivatives_on_the_branch_cut(k, name):
    a, rng = ON_THE_CUT[k], np.random.default_rng(k)
    f = weighted(name, rng.normal(size=a.shape) + 1j * rng.normal(size=a.shape))
    tm.check_grads(f, (a,), order=1)
    move = rng.normal(size=a.shape)
    gradient, h = tm.grad(f), 1e-6
    np.testing.assert_allclose((f(a + h * move) - f(a - h * move)) / (2 * h), (gradient(a) * move).sum(), rtol=1e-6)
    differences = (gradient(a + h * move) - gradient(a - h * move)) / (2 * h)
    for second in (tm.jvp(gradient, (a,), (move,))[1], tm.vjp(gradient, a)[1](move)[0]):
        np.testing.assert_allclose(second, differences, rtol=1e-5, atol=1e-6 * np.abs(differences).max())


@pytest.mark.parametrize("name", ["sqrtm", "logm"])
@pytest.mark.filterwarnings("ignore:logm result may be inaccurate")
def test_derivatives_of_functions_of_complex_matrices(name):
    rng = np.random.default_rng(7)
    a, weights = (rng.normal(size=(3, 3)) + 1j * rng.normal(size=(3, 3)) for _ in range(2))
    tm.check_grads(weighted(name, weights), (a,), order=2)


@pytest.mark.parametrize("k", range(len(ON_THE_CUT)))
def test_the_root_that_scipy_takes_of_a_real_matrix(k):
    a = ON_THE_CUT[k]
    found = tm.vjp(lambda a: scipy.linalg.sqrtm(a), a)[0]
    np.testing.assert_allclose(found, scipy.linalg.sqrtm(a), rtol=1e-12, atol=1e-14)


def test_derivatives_of_the_exponential_of_a_matrix_are_right_at_order_three():
    b = np.array([[0.0, 1.0], [-0.5, 0.3]])

    def f(t):
        return scipy.linalg.expm(t * b)[0, 1]

    third = tm.grad(tm.grad(tm.grad(f)))(0.7)
    assert third == pytest.approx((b @ b @ b @ scipy.linalg.expm(0.7 * b))[0, 1], rel=1e-12)


def test_options_that_change_nothing_are_taken_and_others_run_on_values_or_are_refused():
    check("import scipy.linalg\nscipy.linalg.svd(a, overwrite_a=False, check_finite=False)", 1e-11, a=A)
    check(
        "import scipy.linalg\nscipy.linalg.eigh(a, type=2, eigvals_only=True)", 1e-11, a=A
    )  # a function has no values
    with pytest.raises(CaptureError, match="type"):
        tm.tensor(lambda a: scipy.linalg.eigh(a, type=2)).graph(A)


@pytest.mark.parametrize("dtype", ["f4", "f8", "c8", "c16"])
def test_products_of_one_element_keep_the_sign_of_zero(dtype: str):
    """NumPy's ``dot`` multiplies these, where ``@`` adds them to a zero."""
    source = """
a, b = np.dot(y, z), np.dot(y[y == 0], z)
c, d, e = np.inner(y, z), np.dot(y[None], z), np.inner(y[None], z[None])
f, g, h = np.tensordot(y, z, 1), np.tensordot(y[None, None], z[None, None], 1), y.dot(z)
i, j, m = y @ z, np.inner(y[None, None], z[None]), np.dot(y[None], z[None])
n = np.vdot(y, z)
"""
    check(source, y=np.array([-0.0], dtype), z=np.array([5], dtype))


@pytest.mark.parametrize(
    "call", [lambda a: np.linalg.matrix_power(a, 0.5), lambda a: np.swapaxes(a, 0, 3), lambda a: np.swapaxes(a, -4, 1)]
)
def test_what_is_no_exponent_and_no_axis_is_the_error_of_numpy(call):
    with pytest.raises((TypeError, ValueError)) as theirs:
        call(np.eye(2))
    with pytest.raises(theirs.type) as ours:
        tm.tensor(call)(np.eye(2))
    assert str(ours.value) == str(theirs.value)
