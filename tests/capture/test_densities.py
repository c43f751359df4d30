"""The distributions of scipy.stats in captured code: every method against SciPy's, and what its stand-ins do."""

from typing import Any

import numpy as np
import pytest
import scipy

import tensormagic as tm
from tensormagic.ir.errors import CaptureError
from tests.capture.harness import captured, check

RNG = np.random.default_rng(0)
NAMES = {
    "x": np.concatenate([RNG.normal(size=6) * 2, [0, 1, -1, np.nan, 0.5]]),
    "u": RNG.uniform(0.05, 0.95, 5),
    "k": np.array([-1, 0, 1, 2, 5, 9]),
    "kf": np.array([0.0, 1.5, 2, 3]),
    "mu": 1.3,
    "s": 0.7,
    "v": RNG.uniform(0.5, 2, (3, 1)),
    "f": RNG.normal(size=4).astype("f"),
    "A": RNG.normal(size=(3, 3)),
    "X": RNG.normal(size=(5, 3)),
    "al": np.array([0.7, 1.5, 2.0]),
    "P": RNG.dirichlet([1, 1, 1.0]),
    "Q": RNG.dirichlet([1, 1, 1.0], 4).T,
}
CONTINUOUS = {
    "norm": "", "halfnorm": "", "t": "3.5, ", "gamma": "1.7, ", "invgamma": "2.5, ", "chi2": "3, ", "beta": "1.5, v, ", "expon": "",
    "uniform": "", "laplace": "", "logistic": "", "cauchy": "", "lognorm": "s, ", "gumbel_r": "", "weibull_min": "1.6, ", "pareto": "2.2, ",
}  # fmt: skip
DISCRETE = {"poisson": "mu, ", "binom": "5, s, ", "bernoulli": "s, ", "geom": "s, "}
CUMULATIVE = ["cdf", "sf", "logcdf", "logsf"]


def hold(source, close=1e-12):
    check("import scipy, scipy.stats\n" + source, close, **NAMES)


@pytest.mark.share(3)
@pytest.mark.parametrize("method", ["logpdf", "pdf", *CUMULATIVE])
@pytest.mark.parametrize("name", CONTINUOUS)
def test_continuous(name, method):
    shapes, call = CONTINUOUS[name], f"scipy.stats.{name}.{method}"
    hold(f"{call}(x, {shapes})")
    hold(f"{call}(x, {shapes}mu, s)")
    hold(f"{call}(v, {shapes}loc=.1, scale=v.T)")
    hold(f"{call}(f, {shapes})")
    hold(f"{call}(mu, {shapes})")
    hold(f"{call}(x, {shapes}0, -s)")  # no such scale: nan
    hold(f"scipy.stats.{name}({shapes}loc=mu).{method}(x)")


@pytest.mark.parametrize("method", ["logpmf", "pmf", *CUMULATIVE])
@pytest.mark.parametrize("name", DISCRETE)
def test_discrete(name, method):
    for k in ("k", "kf", "2", "k * s"):
        hold(f"scipy.stats.{name}.{method}({k}, {DISCRETE[name]})")
    hold(f"scipy.stats.{name}.{method}(k, {DISCRETE[name]}loc=1)")
    hold(f"scipy.stats.{name}.{method}(k, {DISCRETE[name]}1)")


@pytest.mark.parametrize("name", ["norm", "expon", "uniform", "laplace", "logistic", "cauchy", "lognorm", "gumbel_r"])
def test_quantiles(name):
    hold(f"scipy.stats.{name}.ppf(u, {CONTINUOUS[name]}mu, s)")
    hold(f"scipy.stats.{name}.ppf(np.array([0, 1, 2, -1.0]) * s / s, {CONTINUOUS[name]})")


@pytest.mark.parametrize(
    "source",
    [
        "scipy.stats.multivariate_normal.logpdf(X, np.zeros(3), A @ A.T + np.eye(3))",
        "scipy.stats.multivariate_normal.pdf(X, X[0], A @ A.T + np.eye(3))",
        "scipy.stats.multivariate_normal.logpdf(X[0], X[1], A @ A.T + np.eye(3))",
        "scipy.stats.multivariate_normal.logpdf(X, cov=A @ A.T + np.eye(3))",
        "scipy.stats.multivariate_normal.logpdf(X, X[0], 2.0 * mu)",
        "scipy.stats.multivariate_normal.logpdf(X, X[0], al)",
        "scipy.stats.multivariate_normal.logpdf(x[:3])",
        "scipy.stats.multivariate_normal.logpdf(mu)",
        "scipy.stats.multivariate_normal.logpdf(x[:3], mu, s)",
        "scipy.stats.multivariate_normal.logpdf(x[:3].reshape(3, 1), mu, s)",
        "scipy.stats.multivariate_normal(X[0], A @ A.T + np.eye(3)).logpdf(X)",
        "scipy.stats.multivariate_normal.logpdf(np.stack([X, X]), X[0], A @ A.T + np.eye(3))",
        "scipy.stats.multivariate_normal.logpdf(X, X[0, :2], A @ A.T + np.eye(3))",
        "scipy.stats.multivariate_normal.logpdf(X, X[0], -np.eye(3) * s)",
        "scipy.stats.dirichlet.logpdf(P, al)",
        "scipy.stats.dirichlet.pdf(Q, al)",
        "scipy.stats.dirichlet.logpdf(P[:2], al)",
        "scipy.stats.dirichlet(al).logpdf(P)",
    ],
)
def test_vectors(source):
    hold(source)


def test_a_distribution_by_its_own_name():
    check("norm.logpdf(x) + fixed.pdf(x)", 1e-14, x=NAMES["x"], norm=scipy.stats.norm, fixed=scipy.stats.t(3.0, 0.5))
    check("from scipy.stats import norm as n\ny = n(0.5).logpdf(x)\ny", 1e-14, x=NAMES["x"])


def test_an_import_hands_back_scipys_own_distribution():
    found = captured("from scipy.stats import norm\nnorm.logpdf(x).sum()", {"x": NAMES["u"]})
    assert found.names["norm"] is scipy.stats.norm


def test_plain_values_are_left_to_scipy():
    check(
        "import scipy.stats\nx * scipy.stats.norm.ppf(0.975) + scipy.stats.t(5).ppf(0.9) + scipy.stats.norm.mean()",
        x=NAMES["u"],
    )
    check("import scipy.stats\nx * scipy.stats.genextreme.logpdf(1.0, 0.3)", x=NAMES["u"])


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda x: scipy.stats.norm.entropy(scale=x), "scipy.stats.norm.entropy"),
        (lambda x: scipy.stats.genextreme.logpdf(x, 0.3), "Captured distributions: norm, halfnorm"),
        (lambda x: scipy.stats.norm.interval(x), "Captured of it: logpdf, pdf, cdf, sf, logcdf, logsf, ppf"),
        (lambda x: scipy.stats.gamma.ppf(x, 2.0), "ppf"),
        (lambda x: x * scipy.stats.norm.rvs(size=5), "scipy.stats.norm.rvs"),
    ],
)
def test_what_is_not_captured_is_refused_by_name_in_functions(function: Any, message: str):
    with pytest.raises(CaptureError, match=message):
        tm.tensor(function).graph(NAMES["u"])


def test_what_is_not_captured_is_scipys_in_cells():
    for text in (
        "norm.entropy(scale=x)",
        "genextreme.logpdf(x, 0.3)",
        "norm.interval(x)[0]",
        "gamma.ppf(x, 2.0)",
        "norm.fit(x)",
    ):
        check(f"import scipy.stats\nscipy.stats.{text}", x=NAMES["u"])


def test_wrong_arguments_are_type_errors():
    check("import scipy.stats\nscipy.stats.norm.logpdf(x, 0, 1, 2)", x=NAMES["u"])
    check("import scipy.stats\nscipy.stats.gamma.logpdf(x)", x=NAMES["u"])
    check("import scipy.stats\nscipy.stats.norm.logpdf(x, df=2)", x=NAMES["u"])


BOUNDED = ["gamma", "invgamma", "chi2", "beta", "expon", "uniform", "lognorm", "weibull_min", "pareto", "halfnorm"]


@pytest.mark.parametrize("name", BOUNDED)
def test_values_outside_the_support_have_no_slope(name):
    density = getattr(scipy.stats, name)
    shapes = [2.0] * density.numargs
    low = density.support(*shapes)[0]
    x = np.array([low - 1.0, low + 0.4])
    for method in ("pdf", "cdf", "sf"):
        gradient = tm.grad(lambda v, m=method: getattr(density, m)(v, *shapes).sum())(x)
        step = 1e-6
        slope = (getattr(density, method)(x[1] + step, *shapes) - getattr(density, method)(x[1] - step, *shapes)) / (
            2 * step
        )
        np.testing.assert_allclose(gradient, [0.0, slope], rtol=1e-6, atol=1e-8)


def test_a_refused_order_names_itself():
    with pytest.raises(tm.TensorError, match="gammainc has no derivative with respect to its first operand"):
        tm.grad(lambda a: scipy.stats.gamma.cdf(1.0, a))(2.0)


def test_posteriors_differentiate_twice():
    data = NAMES["x"][np.isfinite(NAMES["x"])]

    def log_posterior(theta):
        return (
            scipy.stats.norm.logpdf(data, theta[0], np.exp(theta[1])).sum() + scipy.stats.norm.logpdf(theta, 0, 3).sum()
        )

    theta = np.array([0.2, 0.4])
    hessian = tm.hessian(log_posterior)(theta)
    n, scale = len(data), np.exp(2 * theta[1])
    cross = -2 * (data - theta[0]).sum() / scale
    expected = [[-n / scale, cross], [cross, -2 * ((data - theta[0]) ** 2).sum() / scale]]
    np.testing.assert_allclose(hessian, np.array(expected) - np.eye(2) / 9, rtol=1e-12)
