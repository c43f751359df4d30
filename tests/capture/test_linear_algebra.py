"""np.linalg, scipy.linalg, np.fft and scipy.special in captured code, and gradients by finite differences."""

import re

import numpy as np
import pytest
import scipy

import tensormagic as tm
from tensormagic.ir.errors import CaptureError
from tests.capture.harness import check

RNG = np.random.default_rng(7)
A = RNG.normal(size=(4, 4)) + 4 * np.eye(4)
NAMES = {
    "a": A,
    "spd": A @ A.T,
    "h": (A + 1j * A.T) @ (A + 1j * A.T).conj().T,
    "m": RNG.normal(size=(5, 3)),
    "stack": RNG.normal(size=(2, 3, 3)) + 3 * np.eye(3),
    "v": RNG.normal(size=4),
    "z": RNG.normal(size=6) + 1j * RNG.normal(size=6),
    "x": RNG.normal(size=(4, 6)),
    "p": RNG.uniform(0.1, 0.9, (3, 4)),
    "i": np.arange(1, 7).reshape(2, 3),
    "f": RNG.normal(size=(3, 3)).astype(np.float32),
}

LINALG = """
np.linalg.solve(a, v)
np.linalg.solve(a, a)
np.linalg.solve(stack, stack)
np.linalg.inv(a)
np.linalg.inv(stack)
np.linalg.inv(i[:, :2])
np.linalg.inv(f)
np.linalg.det(a)
np.linalg.det(stack)
np.linalg.slogdet(a)
np.linalg.slogdet(a).logabsdet + np.linalg.slogdet(a)[0]
np.linalg.slogdet(h)
np.linalg.cholesky(spd)
np.linalg.cholesky(spd, upper=True)
np.linalg.cholesky(h)
np.linalg.eigh(spd)
np.linalg.eigh(spd).eigenvalues
np.linalg.eigvalsh(h)
np.linalg.eigvalsh(spd, UPLO="U")
np.linalg.svd(m)[1]
np.linalg.svd(m, full_matrices=False)
np.linalg.svd(m, compute_uv=False)
np.linalg.svdvals(m)
np.linalg.qr(m)
np.linalg.qr(m).R
np.linalg.qr(m, mode="r")
np.linalg.pinv(m)
np.linalg.matrix_power(a, 0)
np.linalg.matrix_power(a, 3)
np.linalg.matrix_power(a, 7)
np.linalg.matrix_power(a, -2)
np.linalg.matrix_power(i[:, :2], 5)
np.linalg.multi_dot([a, a, v])
np.linalg.multi_dot([m.T, m, m.T])
np.linalg.multi_dot([v, a, a, v])
np.linalg.cond(a)
np.linalg.cond(a, 1)
np.linalg.cond(a, -2)
np.linalg.cond(stack)
np.linalg.vecdot(x, x)
np.linalg.vecdot(z, z)
np.vecdot(x, x, axis=0)
np.linalg.trace(stack)
np.linalg.outer(v, v)
np.linalg.cross(m, m[::-1])
np.linalg.matmul(a, v)
np.linalg.norm(v)
np.linalg.norm(z)
np.linalg.norm(i)
np.linalg.norm(f)
np.linalg.norm(stack)
np.linalg.norm(v, 1)
np.linalg.norm(v, 3)
np.linalg.norm(v, 0.5)
np.linalg.norm(v, 0)
np.linalg.norm(v, np.inf)
np.linalg.norm(v, -np.inf)
np.linalg.norm(a, "fro")
np.linalg.norm(a, "nuc")
np.linalg.norm(a, 2)
np.linalg.norm(a, -2)
np.linalg.norm(a, 1)
np.linalg.norm(m, -1)
np.linalg.norm(m, np.inf)
np.linalg.norm(m, axis=1)
np.linalg.norm(m, axis=0, keepdims=True)
np.linalg.norm(m, ord=1, axis=1)
np.linalg.norm(m, keepdims=True)
np.linalg.norm(stack, axis=(1, 2))
np.linalg.norm(stack, ord=2, axis=(0, 2))
np.linalg.norm(stack, ord=1, axis=(2, 0), keepdims=True)
np.linalg.vector_norm(m)
np.linalg.vector_norm(m, axis=0, ord=3)
np.linalg.matrix_norm(stack)
np.linalg.matrix_norm(stack, ord="nuc", keepdims=True)
scipy.linalg.solve(a, v)
scipy.linalg.inv(a)
scipy.linalg.det(a)
scipy.linalg.cholesky(spd, lower=True)
scipy.linalg.cholesky(spd)
scipy.linalg.solve_triangular(a, v, lower=True)
scipy.linalg.solve_triangular(a, v, trans=1)
scipy.linalg.solve_triangular(a, v, unit_diagonal=True)
np.fft.fft(z)
np.fft.ifft(x)
np.fft.fft(x, n=4)
np.fft.fft(x, n=9, axis=0)
np.fft.fft(x, norm="ortho")
np.fft.rfft(x)
np.fft.irfft(np.fft.rfft(x))
np.fft.irfft(z, n=7)
np.fft.hfft(z)
np.fft.ihfft(x[0])
np.fft.fft2(x)
np.fft.ifft2(x)
np.fft.rfft2(x)
np.fft.irfft2(np.fft.rfft2(x))
np.fft.fftn(stack)
np.fft.fftn(stack, axes=(0, 2))
np.fft.rfftn(stack)
np.fft.irfftn(np.fft.rfftn(stack), s=stack.shape, axes=(0, 1, 2))
np.fft.fftshift(x)
np.fft.ifftshift(x, axes=1)
np.fft.fftfreq(x.shape[1])
np.fft.fftfreq(7, 0.1)
np.fft.rfftfreq(x.shape[0], d=0.5)
np.fft.fftfreq(len(v)) * v
scipy.special.expit(x)
scipy.special.logit(p)
scipy.special.erf(x)
scipy.special.erfc(x)
scipy.special.gammaln(p)
scipy.special.digamma(p)
scipy.special.psi(p)
scipy.special.xlogy(p, p)
scipy.special.xlog1py(p, x[:3, :4])
scipy.special.logsumexp(x)
scipy.special.logsumexp(x, axis=1)
scipy.special.logsumexp(x, axis=0, keepdims=True)
scipy.special.softmax(x, axis=1)
scipy.special.softmax(x)
scipy.special.log_softmax(x, axis=-1)
scipy.special.log_expit(x)
scipy.special.entr(x)
scipy.special.rel_entr(p, p[::-1])
scipy.special.betaln(p, p)
scipy.special.ndtr(x)
scipy.special.expit(0.5)
"""


@pytest.mark.parametrize("source", LINALG.strip().splitlines())
def test_value(source: str):
    check(f"import scipy.special, scipy.linalg\n{source}", 1e-12 if "f)" not in source else 1e-5, **NAMES)


@pytest.mark.parametrize(
    "imports",
    [
        "from scipy.special import logsumexp as g",
        "import scipy.special as s\ng = s.logsumexp",
        "from scipy import special\ng = special.logsumexp",
    ],
)
def test_ways_to_import(imports: str):
    check(f"{imports}\ny = g(x)", 1e-14, x=NAMES["x"])


def test_names_of_the_notebook():
    source = "y = g(x) + np.sum(e(x)) + inverse(a)[0, 0]"
    check(source, 1e-13, x=NAMES["x"], a=A, g=scipy.special.logsumexp, e=scipy.special.expit, inverse=scipy.linalg.inv)


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("np.linalg.lstsq(a, v, rcond=v[0])", "a bound that is captured"),
        ("np.linalg.qr(a, mode='raw')", "mode='raw'"),
        ("scipy.special.kn(1, v)", "kn is not captured"),
        ("scipy.special.comb(v, 2, exact=True)", "exact=True"),
        ("scipy.special.zeta(v)", "zeta without q"),
        ("scipy.linalg.solve(a, v, assume_a='banded')", "assume_a"),
        ("scipy.linalg.qr(a, pivoting=True)", "pivoting"),
        ("scipy.linalg.eigh(a, subset_by_index=[0, 1])", "subset_by_index"),
        ("scipy.linalg.pinv(a, return_rank=True)", "return_rank"),
    ],
)
def test_refused_in_functions(source: str, message: str):
    """In a cell NumPy and SciPy run them on values."""
    names = [n for n in NAMES if re.search(rf"\b{n}\b", source)]
    function = eval(f"lambda {', '.join(names)}: {source}", {"np": np, "scipy": scipy})
    with pytest.raises(CaptureError, match=re.escape(message)):
        tm.tensor(function).graph(*(NAMES[n] for n in names))


@pytest.mark.parametrize(
    "source",
    [
        "np.linalg.norm(m, 'x')",
        "np.linalg.norm(stack, axis=(0, 0))",
        "np.linalg.norm(stack, ord=2)",
        "np.linalg.solve(a, m)",
        "np.linalg.cholesky(m)",
        "np.linalg.matrix_power(m, 2)",
        "np.linalg.multi_dot([v])",
        "np.linalg.qr(v)",
        "np.fft.fft(v, norm='x')",
        "np.fft.rfft(z)",
        "np.linalg.inv(np.zeros((2, 2)))",
        "np.linalg.cholesky(-spd)",
    ],
)
def test_error(source: str):
    check(source, **NAMES)


GRADIENTS = {
    "solve": lambda x: np.linalg.solve(x + 4 * np.eye(3), np.arange(3.0)).sum(),
    "inv": lambda x: (np.linalg.inv(x + 4 * np.eye(3)) ** 2).sum(),
    "logdet": lambda x: np.linalg.slogdet(x @ x.T + np.eye(3))[1],
    "cholesky": lambda x: np.linalg.cholesky(x @ x.T + np.eye(3)).sum(),
    "eigh": lambda x: (np.linalg.eigh(x + x.T).eigenvalues ** 2).sum(),
    "svd": lambda x: np.linalg.svd(x, compute_uv=False).sum(),
    "nuclear norm": lambda x: np.linalg.norm(x, "nuc"),
    "norm": lambda x: (
        np.linalg.norm(x) + np.linalg.norm(x, axis=1).sum() + np.linalg.norm(x, 3, axis=0).sum() + np.linalg.norm(x, 2)
    ),
    "power": lambda x: np.linalg.matrix_power(x, 5).sum() + np.linalg.matrix_power(x, -1).sum(),
    "fft": lambda x: (abs(np.fft.fft(x)) ** 3).sum(),
    "sort": lambda x: (np.sort(x, axis=None) * np.arange(9)).sum(),
    "take": lambda x: (np.take(x, [0, 0, 2], axis=1) ** 2).sum() + x[[0, 2], [1, 1]].sum() ** 2,
    "fancy": lambda x: (x[np.array([2, 0]), :][:, [1, 1]] ** 3).sum(),
    "median": lambda x: np.median(x, axis=0).sum() + np.median(x),
    "logsumexp": lambda x: scipy.special.logsumexp(x, axis=1).sum() + (scipy.special.softmax(x, axis=0) ** 2).sum(),
    "special": lambda x: (
        scipy.special.erf(x) + scipy.special.log_expit(x) + scipy.special.ndtr(x) + scipy.special.gammaln(x * x + 1)
    ).sum(),
    "kron": lambda x: (np.kron(x, x) ** 2).sum(),
    "cross": lambda x: (np.cross(x, x[::-1]) * x).sum() + (np.cross(x, x[::-1]) ** 2).sum(),
}


@pytest.mark.parametrize("name", GRADIENTS)
def test_gradient(name: str):
    f, x = GRADIENTS[name], RNG.normal(size=(3, 3))
    gradient = tm.grad(f)(x)
    numeric = np.zeros_like(x)
    for index in np.ndindex(x.shape):
        step = np.zeros_like(x)
        step[index] = 1e-6
        numeric[index] = (np.asarray(f(x + step)) - np.asarray(f(x - step))) / 2e-6
    assert np.allclose(gradient, numeric, rtol=1e-6, atol=1e-6)


def test_gradient_of_norms_at_zero():
    for f in (
        np.linalg.norm,
        lambda x: np.linalg.norm(x, axis=0).sum(),
        lambda x: np.linalg.norm(x, 2, axis=1).sum(),
        lambda x: np.linalg.norm(x, 3, axis=1).sum(),
        lambda x: np.linalg.norm(x, 1, axis=1).sum(),
    ):
        assert tm.grad(f)(np.zeros((2, 2))).tolist() == [[0.0, 0.0], [0.0, 0.0]]
    partly = np.array([[0.0, 0.0], [3.0, 4.0]])
    assert np.allclose(
        tm.grad(lambda x: np.linalg.norm(x, axis=1).sum())(partly), [[0.0, 0.0], [0.6, 0.8]], rtol=1e-15, atol=0
    )


@pytest.mark.filterwarnings("error")  # NumPy gives none
@pytest.mark.parametrize("p", [None, 2, -2, 1])
@pytest.mark.parametrize("matrix", [np.zeros((2, 2)), np.array([[1.0, 2.0], [3.0, 4.0]]), np.zeros((2, 3, 3))])
def test_conditions_of_singular_matrices_do_not_warn(matrix, p):
    found = tm.tensor(lambda x: np.linalg.cond(x, p))(matrix)
    wanted = np.linalg.cond(np.ones((1, 1)), p) * np.inf if not matrix.any() else np.linalg.cond(matrix, p)
    np.testing.assert_allclose(found, np.broadcast_to(wanted, matrix.shape[:-2]), rtol=1e-12)
