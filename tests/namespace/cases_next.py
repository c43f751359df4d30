"""Linear algebra, Fourier transforms, complex numbers, and SciPy's special functions, distributions and filters."""

import numpy as np
import scipy.integrate
import scipy.linalg
import scipy.ndimage
import scipy.signal
import scipy.spatial.distance
import scipy.special
import scipy.stats

from tests.namespace.cases import over

RNG = np.random.default_rng(21)
STEPS = "integers"
PHASES = "the vectors beyond the rank of the matrix are fixed only up to a rotation"
CODE = 1e-14  # one or two units in the last place: another formula, or another order of sums
SUMS = 1e-12

case = over(
    {
        "a": RNG.normal(size=(3, 3)) + 3 * np.eye(3),
        "s": RNG.normal(size=(3, 3)) / 2 + np.diag([1.0, 2.0, 4.0]),
        "m": RNG.normal(size=(4, 2)),
        "w": RNG.normal(size=(2, 4)),
        "stack": RNG.normal(size=(2, 2, 2)) + 2 * np.eye(2),
        "t": RNG.normal(size=(2, 2, 4)),
        "x": RNG.normal(size=5),
        "y": RNG.normal(size=5),
        "v": RNG.normal(size=3),
        "b": RNG.normal(size=4),
        "z": RNG.normal(size=4) + 1j * RNG.normal(size=4),
        "c": RNG.normal(size=(2, 2)) + 1j * RNG.normal(size=(2, 2)),
        "p": RNG.uniform(0.15, 0.85, 4),
        "q": RNG.uniform(0.15, 0.85, 4),
        "r": RNG.uniform(0.5, 2.5, 4),
        "u": RNG.uniform(0.5, 2.5, 4),
        "f": RNG.normal(size=(3, 3)).astype(np.float32) + 3 * np.eye(3, dtype=np.float32),
        "i": np.array([[2, 1], [1, 3]]),
        "k": np.array([0, 1, 2, 5]),
        "A": RNG.normal(size=(4, 5)),
        "K": RNG.normal(size=(2, 3)),
        "mu": 0.3,
        "sigma": 1.4,
    },
    special=scipy.special,
    sl=scipy.linalg,
    stats=scipy.stats,
    integrate=scipy.integrate,
    ndimage=scipy.ndimage,
    signal=scipy.signal,
    distance=scipy.spatial.distance,
)

LINALG = (
    case("np.linalg.norm", "np.linalg.norm(x)"),
    case("np.linalg.norm", "np.linalg.norm(x, 3)", close=CODE),
    case("np.linalg.norm", "np.linalg.norm(x, np.inf)"),
    case("np.linalg.norm", "np.linalg.norm(x, -np.inf)"),
    case("np.linalg.norm", "np.linalg.norm(x, 1)"),
    case("np.linalg.norm", "np.linalg.norm(x, 0)", "a count"),
    case("np.linalg.norm", "np.linalg.norm(a)"),
    case("np.linalg.norm", "np.linalg.norm(a, 'fro', axis=(0, 1), keepdims=True)", close=CODE),
    case("np.linalg.norm", "np.linalg.norm(a, 2)", close=CODE),
    case("np.linalg.norm", "np.linalg.norm(a, -2)", close=CODE),
    case("np.linalg.norm", "np.linalg.norm(a, 'nuc')", close=CODE),
    case("np.linalg.norm", "np.linalg.norm(a, 1)"),
    case("np.linalg.norm", "np.linalg.norm(a, -np.inf)"),
    case("np.linalg.norm", "np.linalg.norm(t, axis=1)", close=CODE),
    case("np.linalg.norm", "np.linalg.norm(t, ord=2, axis=(2, 0), keepdims=True)", close=CODE),
    case("np.linalg.norm", "np.linalg.norm(c)", close=CODE),
    case("np.linalg.norm", "np.linalg.norm(i, axis=0)", STEPS),
    case("np.linalg.vector_norm", "np.linalg.vector_norm(t, axis=(0, 2), ord=3)", close=CODE),
    case("np.linalg.matrix_norm", "np.linalg.matrix_norm(t, ord='nuc', keepdims=True)", close=CODE),
    case("np.linalg.inv", "np.linalg.inv(stack)"),
    case("np.linalg.inv", "np.linalg.inv(f)", "float32"),
    case("np.linalg.solve", "np.linalg.solve(a, v)"),
    case("np.linalg.solve", "np.linalg.solve(stack, w)"),
    case("np.linalg.solve", "np.linalg.solve(c, c[:, :1])"),
    case("np.linalg.det", "np.linalg.det(stack)"),
    case("np.linalg.slogdet", "np.linalg.slogdet(a)"),
    case("np.linalg.slogdet", "np.linalg.slogdet(c).logabsdet"),
    case("np.linalg.cholesky", "np.linalg.cholesky(a @ a.T)"),
    case("np.linalg.cholesky", "np.linalg.cholesky(a @ a.T, upper=True)"),
    case("np.linalg.qr", "np.linalg.qr(m)"),
    case("np.linalg.qr", "np.linalg.qr(m, mode='r')"),
    case("np.linalg.qr", "np.linalg.qr(w, mode='complete').R"),
    case("np.linalg.qr", "np.linalg.qr(m, mode='complete')", PHASES),
    case("np.linalg.svd", "np.linalg.svd(m, full_matrices=False)", close=CODE),
    case("np.linalg.svd", "np.linalg.svd(s + s.T, hermitian=True).Vh", close=CODE),
    case("np.linalg.svd", "u, s, vh = np.linalg.svd(m)\nu[:, 2:] @ u[:, 2:].T, s, vh", close=CODE),
    case("np.linalg.svd", "np.linalg.svd(t, compute_uv=False)", close=CODE),
    case("np.linalg.svdvals", "np.linalg.svdvals(m)", close=CODE),
    case("np.linalg.eigh", "np.linalg.eigh(s + s.T)"),
    case("np.linalg.eigh", "np.linalg.eigh(c + c.conj().T, UPLO='U').eigenvalues"),
    case("np.linalg.eigvalsh", "np.linalg.eigvalsh(s + s.T)"),
    case("np.linalg.eig", "np.linalg.eig(s.astype(complex))"),
    case("np.linalg.eig", "np.linalg.eig(c)"),
    case("np.linalg.eigvals", "np.linalg.eigvals(c)"),
    case("np.linalg.lstsq", "np.linalg.lstsq(m, b)[0]", close=CODE),
    case("np.linalg.lstsq", "x, residuals, rank, values = np.linalg.lstsq(m, w.T)\nx, residuals, values", close=CODE),
    case("np.linalg.lstsq", "np.linalg.lstsq(w, b[:2], rcond=1e-10)", close=CODE),
    case("np.linalg.pinv", "np.linalg.pinv(m)", close=CODE),
    case("np.linalg.pinv", "np.linalg.pinv(s + s.T, hermitian=True)", close=CODE),
    case("np.linalg.pinv", "np.linalg.pinv(t, rtol=1e-10)", close=CODE),
    case("np.linalg.matrix_rank", "np.linalg.matrix_rank(t)", STEPS),
    case("np.linalg.matrix_rank", "np.linalg.matrix_rank(a, tol=2.0)", STEPS),
    case("np.linalg.cond", "np.linalg.cond(a)", close=CODE),
    case("np.linalg.cond", "np.linalg.cond(stack, 1)", close=CODE),
    case("np.linalg.cond", "np.linalg.cond(a, 'fro')", close=CODE),
    case("np.linalg.matrix_power", "np.linalg.matrix_power(a, 5)", close=CODE),
    case("np.linalg.matrix_power", "np.linalg.matrix_power(stack, -2)", close=CODE),
    case("np.linalg.multi_dot", "np.linalg.multi_dot([b, m, w])", close=CODE),
    case("np.linalg.tensorsolve", "np.linalg.tensorsolve(t.reshape(2, 2, 2, 2), w[:, :2])"),
    case("np.linalg.tensorinv", "np.linalg.tensorinv(t.reshape(2, 2, 4))"),
    case("np.linalg.vecdot", "np.linalg.vecdot(t, w)", close=CODE),
    case("np.linalg.vecdot", "np.linalg.vecdot(z, z[::-1])", close=CODE),
    case("np.linalg.outer", "np.linalg.outer(x, v)"),
    case("np.linalg.cross", "np.linalg.cross(a, s)"),
    case("np.linalg.trace", "np.linalg.trace(stack, offset=1)"),
    case("np.linalg.diagonal", "np.linalg.diagonal(stack)"),
    case("np.linalg.matmul", "np.linalg.matmul(m, w)"),
    case("np.linalg.matrix_transpose", "np.linalg.matrix_transpose(t)"),
    case("np.linalg.tensordot", "np.linalg.tensordot(m, w, axes=([0], [1]))"),
)

FOURIER = (
    *(case(f"np.fft.{name}", f"np.fft.{name}(x)") for name in ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft")),
    case("np.fft.fft", "np.fft.fft(z, n=6, norm='ortho')"),
    case("np.fft.fft", "np.fft.fft(A, n=3, axis=0)"),
    case("np.fft.irfft", "np.fft.irfft(z, n=5, norm='forward')"),
    case("np.fft.hfft", "np.fft.hfft(z, n=7)"),
    *(case(f"np.fft.{name}", f"np.fft.{name}(A)", close=CODE) for name in ("fft2", "ifft2", "rfft2", "irfft2")),
    *(case(f"np.fft.{name}", f"np.fft.{name}(t)", close=CODE) for name in ("fftn", "ifftn", "rfftn", "irfftn")),
    case("np.fft.fftn", "np.fft.fftn(t, s=(3, 2), axes=(0, 2), norm='ortho')", close=CODE),
    case("np.fft.fftshift", "np.fft.fftshift(A, axes=1)"),
    case("np.fft.ifftshift", "np.fft.ifftshift(x)"),
    case("np.fft.fftfreq", "np.fft.fftfreq(len(x), d=0.5) * x"),
    case("np.fft.rfftfreq", "np.fft.rfftfreq(len(x)) * x[:3]"),
)

COMPLEX = (
    case("np.angle", "np.angle(z)"),
    case("np.angle", "np.angle(z, deg=True)"),
    case("np.conj", "np.conj(z)"),
    case("np.real", "np.real(z)"),
    case("np.imag", "np.imag(z)"),
    case("np.absolute", "np.absolute(z)"),
    case("np.real_if_close", "np.real_if_close(x)"),
    case("np.iscomplex", "np.iscomplex(z)", STEPS),
    case("np.isreal", "np.isreal(z)", STEPS),
    case("np.iscomplexobj", "np.iscomplexobj(z)", STEPS),
    case("np.isrealobj", "np.isrealobj(x)", STEPS),
    case("np.exp of complex numbers", "np.exp(z) * np.log(z) + np.sqrt(z)", close=CODE),
)

_BY_ONE = {
    "expit": "x", "log_expit": "x", "logit": "p", "erf": "x", "erfc": "x", "erfcx": "x", "erfinv": "p", "erfcinv": "r / 2",
    "ndtr": "x", "log_ndtr": "x", "ndtri": "p", "gammaln": "r", "gamma": "r", "rgamma": "x", "gammasgn": "r", "digamma": "r",
    "psi": "u", "entr": "r", "yn": "2, r + 0.5",
    "exp1": "r", "expi": "r", "exprel": "x", "expm1": "x", "log1p": "r", "cbrt": "r", "exp2": "x", "exp10": "x",
    "i0": "x", "i0e": "x", "i1": "x", "i1e": "x", "j0": "x", "j1": "x", "y0": "r", "y1": "r", "k0": "r", "k1": "r",
    "ellipk": "p", "ellipkm1": "p", "ellipe": "p - 1", "spence": "r",
    "factorial": "r", "softplus": "x", "softmax": "A, axis=1", "log_softmax": "A, axis=0", "logsumexp": "A, axis=1, keepdims=True",
}  # fmt: skip
_BY_TWO = {
    "xlogy": "x[:4], r", "xlog1py": "x[:4], r", "rel_entr": "r, u", "kl_div": "r, u", "betaln": "r, u", "beta": "r, u",
    "binom": "r + 3, u", "comb": "r + 3, u", "huber": "sigma, x * 2", "pseudo_huber": "r, x[:4]",
    "jv": "2, x", "yv": "1.5, r", "iv": "2, x", "ive": "1, x", "kv": "0.5, r", "polygamma": "1, r", "zeta": "2.5, r",
    "hyp2f1": "1.5, 0.5, 2.5, p", "gammainc": "1.5, r", "gammaincc": "2.5, r", "betainc": "2, 3.5, p", "multigammaln": "r + 2, 2",
}  # fmt: skip
SPECIAL = (
    *(
        case(f"scipy.special.{name}", f"special.{name}({args})", close=CODE)
        for name, args in (_BY_ONE | _BY_TWO).items()
    ),
    case(
        "scipy.special.logsumexp",
        "special.logsumexp(A, b=np.array([1.0, 2.0, 0.0, 3.0, 0.5]) * sigma, axis=1)",
        close=CODE,
    ),
    case(
        "scipy.special.logsumexp",
        "special.logsumexp(A, b=np.array([1.0, -2, 0, -3, 0.5]), axis=1, return_sign=True)",
        close=CODE,
    ),
    case("scipy.special.logsumexp", "special.logsumexp(z)", close=CODE),
    case("scipy.special.softmax", "special.softmax(A)", close=CODE),
    case("scipy.special.comb", "special.comb(i + 3, i)", STEPS, close=CODE),
    case("scipy.special.erf", "special.erf(z)", close=CODE),
)

SCIPY_LINALG = (
    case("scipy.linalg.solve", "sl.solve(a, v)", close=SUMS),
    case("scipy.linalg.solve", "sl.solve(a @ a.T, v, assume_a='pos')", close=SUMS),
    case("scipy.linalg.solve", "sl.solve(s, v, assume_a='sym', lower=True)", close=SUMS),
    case("scipy.linalg.inv", "sl.inv(a)", close=SUMS),
    case("scipy.linalg.det", "sl.det(a)", close=SUMS),
    case("scipy.linalg.cholesky", "sl.cholesky(a @ a.T, lower=True)", close=SUMS),
    case("scipy.linalg.cho_factor", "sl.cho_factor(a @ a.T)[0]", close=SUMS),
    case("scipy.linalg.cho_solve", "sl.cho_solve(sl.cho_factor(a @ a.T), v)", close=SUMS),
    case("scipy.linalg.solve_triangular", "sl.solve_triangular(a, v, trans='T', lower=True)", close=SUMS),
    case("scipy.linalg.lstsq", "sl.lstsq(m, b)[:2]", close=SUMS),
    case("scipy.linalg.pinv", "sl.pinv(m)", close=SUMS),
    case("scipy.linalg.svd", "sl.svd(m, full_matrices=False)", close=SUMS),
    case("scipy.linalg.svdvals", "sl.svdvals(m)", close=SUMS),
    case("scipy.linalg.qr", "sl.qr(m, mode='economic')", close=SUMS),
    case("scipy.linalg.qr", "sl.qr(m, mode='r')", close=SUMS),
    case("scipy.linalg.lu", "sl.lu(a)", close=SUMS),
    case("scipy.linalg.lu", "sl.lu(m, permute_l=True)", close=SUMS),
    case("scipy.linalg.lu_factor", "sl.lu_factor(a)", close=SUMS),
    case("scipy.linalg.lu_factor", "sl.lu_factor(m)[0]", close=SUMS),
    case("scipy.linalg.lu_factor", "sl.lu_factor(w)[0]", close=SUMS),
    case("scipy.linalg.lu_factor", "sl.lu_factor(c)[0]", close=SUMS),
    case("scipy.linalg.lu_solve", "sl.lu_solve(sl.lu_factor(a @ a.T + np.eye(len(a))), v)", close=SUMS),
    case("scipy.linalg.lu_solve", "sl.lu_solve(sl.lu_factor(a @ s.T + 3 * np.eye(len(a))), s, trans=1)", close=SUMS),
    case("scipy.linalg.lu_solve", "sl.lu_solve(sl.lu_factor(c @ c.T + 5 * np.eye(len(c))), c, trans=2)", close=SUMS),
    case("scipy.linalg.polar", "sl.polar(a)", close=SUMS),
    case("scipy.linalg.polar", "sl.polar(m, side='left')[0]", close=SUMS),
    case("scipy.linalg.polar", "sl.polar(w)[1]", close=SUMS),
    case("scipy.linalg.schur", "sl.schur(a)", "Schur's form is given without a derivative", close=SUMS),
    case("scipy.linalg.schur", "sl.schur(f)", "Schur's form is given without a derivative"),
    case(
        "scipy.linalg.schur", "sl.schur(a, output='complex')", "Schur's form is given without a derivative", close=SUMS
    ),
    case("scipy.linalg.solve_sylvester", "sl.solve_sylvester(a, s, a @ s)", close=SUMS),
    case("scipy.linalg.solve_sylvester", "sl.solve_sylvester(a + 0j, c, a[:, :2] @ c)", close=SUMS),
    case("scipy.linalg.solve_banded", "sl.solve_banded((1, 1), s + 4 * np.array([[0.0], [1], [0]]), v)", close=SUMS),
    case("scipy.linalg.solve_banded", "sl.solve_banded((0, 1), np.stack([p, u]), t[0].T)", close=SUMS),
    case("scipy.linalg.solve_banded", "sl.solve_banded((2, 0), np.stack([u + 2, q, p]), b)", close=SUMS),
    case("scipy.linalg.eigh", "w, v = sl.eigh(s + s.T)\nw, (v * w) @ v.T, v * v", close=SUMS),
    case("scipy.linalg.eigh", "sl.eigh(s + s.T, a @ a.T)", close=SUMS),
    case("scipy.linalg.eigvalsh", "sl.eigvalsh(s + s.T, lower=False)", close=SUMS),
    case("scipy.linalg.norm", "sl.norm(a, 1)", close=SUMS),
    case("scipy.linalg.expm", "sl.expm(a)", close=SUMS),
    case("scipy.linalg.expm", "sl.expm(c)", close=SUMS),
    case("scipy.linalg.sqrtm", "sl.sqrtm(a @ a.T + np.eye(3))", close=SUMS),
    case("scipy.linalg.logm", "sl.logm(a @ a.T + np.eye(3))", close=SUMS),
    case("scipy.linalg.cosm", "sl.cosm(s)", close=SUMS),
    case("scipy.linalg.toeplitz", "sl.toeplitz(x, v)"),
    case("scipy.linalg.toeplitz", "sl.toeplitz(z)"),
    case("scipy.linalg.hankel", "sl.hankel(x, v)"),
    case("scipy.linalg.circulant", "sl.circulant(x)"),
    case("scipy.linalg.block_diag", "sl.block_diag(a, m, x)"),
)

_LOG_DENSITIES = {
    "norm": "x, mu, sigma",
    "t": "x, 3.5 * sigma, mu, sigma",
    "gamma": "r, 1.5 * sigma",
    "beta": "p, sigma, 2.5",
    "expon": "r, 0.0, sigma",
    "uniform": "p, mu - 1, sigma + 1",
    "laplace": "x, mu, sigma",
    "logistic": "x, mu, sigma",
    "cauchy": "x, mu, sigma",
    "lognorm": "r, sigma",
    "halfnorm": "r, 0.0, sigma",
    "invgamma": "r, sigma",
    "chi2": "r, 3 * sigma",
    "gumbel_r": "x, mu, sigma",
    "weibull_min": "r, sigma",
    "pareto": "r + 1, sigma",
}
_CUMULATIVE = {
    "norm": "x, mu, sigma",
    "t": "x, 3, mu, sigma",
    "gamma": "r, 2",
    "beta": "p, 1.5, 2.5",
    "expon": "r, 0.0, sigma",
    "uniform": "p, mu - 1, sigma + 1",
    "laplace": "x, mu, sigma",
    "logistic": "x, mu, sigma",
    "cauchy": "x, mu, sigma",
    "lognorm": "r, sigma",
}
_LOG_MASSES = {"poisson": "k, sigma", "binom": "k, 7, mu", "bernoulli": "k[:2], mu", "geom": "k[1:], mu"}
DENSITIES = (
    *(case(f"scipy.stats.{n}.logpdf", f"stats.{n}.logpdf({args})", close=SUMS) for n, args in _LOG_DENSITIES.items()),
    *(case(f"scipy.stats.{n}.cdf", f"stats.{n}.cdf({args})", close=SUMS) for n, args in _CUMULATIVE.items()),
    *(case(f"scipy.stats.{n}.logpmf", f"stats.{n}.logpmf({args})", close=SUMS) for n, args in _LOG_MASSES.items()),
    case("scipy.stats.norm.pdf", "stats.norm.pdf(x, loc=mu, scale=sigma)", close=SUMS),
    case("scipy.stats.norm.pdf", "stats.norm(mu, sigma).pdf(x)", close=SUMS),
    case("scipy.stats.norm.logcdf", "stats.norm.logcdf(x * 10)", close=SUMS),
    case("scipy.stats.norm.sf", "stats.norm.sf(x, mu, sigma)", close=SUMS),
    case("scipy.stats.norm.ppf", "stats.norm.ppf(p, mu, sigma)", close=SUMS),
    case("scipy.stats.poisson.pmf", "stats.poisson.pmf(k, sigma)", close=SUMS),
    case("scipy.stats.poisson.cdf", "stats.poisson.cdf(k, sigma)", close=SUMS),
    case("scipy.stats.binom.cdf", "stats.binom.cdf(k, 7, mu)", close=SUMS),
    case("scipy.stats.multivariate_normal.logpdf", "stats.multivariate_normal.logpdf(s, v, a @ a.T)", close=SUMS),
    case("scipy.stats.multivariate_normal.pdf", "stats.multivariate_normal(v, a @ a.T).pdf(s[0])", close=SUMS),
    case(
        "scipy.stats.multivariate_normal.entropy",
        "stats.multivariate_normal.entropy(v, a @ a.T + np.eye(len(a)))",
        close=SUMS,
    ),
    case("scipy.stats.dirichlet.logpdf", "stats.dirichlet.logpdf(np.array([0.2, 0.3, 0.1, 0.4]), r)", close=SUMS),
)

DISTANCES = (
    *(
        case("scipy.spatial.distance.cdist", f"distance.cdist(m, w.T * 1.5, {metric!r})", close=CODE)
        for metric in "euclidean sqeuclidean cityblock chebyshev cosine canberra braycurtis".split()  # noqa: SIM905 (a table)
    ),
    case("scipy.spatial.distance.cdist", "distance.cdist(m, m)", close=CODE),
    case("scipy.spatial.distance.cdist", "distance.cdist(a, s, 'correlation')", close=SUMS),
    case("scipy.spatial.distance.cdist", "distance.cdist(m, w.T, 'minkowski', p=3)", close=CODE),
    case(
        "scipy.spatial.distance.cdist", "distance.cdist(m, w.T, 'minkowski', p=1.5, w=np.array([1.0, 2.0]))", close=CODE
    ),
    case("scipy.spatial.distance.cdist", "distance.cdist(m, w.T, 'seuclidean', V=r[:2])", close=CODE),
    case(
        "scipy.spatial.distance.cdist",
        "distance.cdist(m, w.T, 'mahalanobis', VI=np.array([[2.0, 0.5], [0.5, 1.0]]))",
        close=SUMS,
    ),
    case("scipy.spatial.distance.cdist", "distance.cdist(i, i[::-1] * 2, 'hamming')", STEPS),
    case("scipy.spatial.distance.pdist", "distance.pdist(m)", close=CODE),
    case("scipy.spatial.distance.pdist", "distance.pdist(A, 'cityblock')", close=CODE),
    case("scipy.spatial.distance.pdist", "distance.pdist(f, 'cosine')", "float32", close=1e-12),
    case("scipy.stats.gaussian_kde", "stats.gaussian_kde(x)(r)", close=SUMS),
    case("scipy.stats.gaussian_kde", "stats.gaussian_kde(w, bw_method='silverman').evaluate(m.T)", close=SUMS),
    case("scipy.stats.gaussian_kde", "stats.gaussian_kde(r, bw_method=0.4, weights=p).pdf(u)", close=SUMS),
    case("scipy.stats.gaussian_kde", "stats.gaussian_kde(w).logpdf(m.T)", close=SUMS),
)

SAMPLES = (
    case("scipy.integrate.trapezoid", "integrate.trapezoid(x, dx=sigma)", close=CODE),
    case("scipy.integrate.trapezoid", "integrate.trapezoid(A, x=y)", close=CODE),
    case("scipy.integrate.cumulative_trapezoid", "integrate.cumulative_trapezoid(A, x=y, initial=0)", close=CODE),
    case("scipy.integrate.simpson", "integrate.simpson(A, dx=sigma)", close=CODE),
    case("scipy.integrate.simpson", "integrate.simpson(A, x=np.cumsum(r), axis=0)", close=CODE),
    case("scipy.ndimage.convolve1d", "ndimage.convolve1d(A, v, axis=0, mode='mirror')", close=CODE),
    case("scipy.ndimage.correlate1d", "ndimage.correlate1d(x, r[:2], mode='constant', cval=mu, origin=-1)", close=CODE),
    case("scipy.signal.convolve2d", "signal.convolve2d(A, K)", close=CODE),
    case("scipy.signal.convolve2d", "signal.convolve2d(A, K, mode='same', boundary='symm')", close=CODE),
    case("scipy.signal.convolve2d", "signal.convolve2d(A, K, mode='valid')", close=CODE),
    case("scipy.signal.correlate2d", "signal.correlate2d(A, K, mode='same', boundary='wrap')", close=CODE),
    case("scipy.signal.convolve", "signal.convolve(x, v, mode='same')", close=CODE),
    case("scipy.signal.fftconvolve", "signal.fftconvolve(A, K)", close=SUMS),
)

CASES = LINALG + FOURIER + COMPLEX + SPECIAL + SCIPY_LINALG + DENSITIES + DISTANCES + SAMPLES
