"""Derivatives of random samples against finite differences with the same state; states as words; slopes of gamma numbers."""

# tests named elsewhere

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mpmath
import numpy as np
import pytest
import scipy

import tensormagic as tm
from tensormagic.ir.errors import DifferentiationError
from tensormagic.ops.draws.quantiles import beta_slopes, von_mises_slopes
from tensormagic.ops.draws.slopes import gamma_slopes
from tensormagic.ops.draws.state import KINDS, encoded, fresh, generator_at, left_by, put_back

pytestmark = pytest.mark.usefixtures("by_numpy")
FAMILIES: list[tuple[str, Callable[[Any, Any, Any], Any]]] = [
    ("normal", lambda r, a, b: r.normal(a, b, size=4)),
    ("normal of nothing", lambda r, a, b: r.normal(a, 0.0 * b, size=4) + r.normal()),
    ("normal of arrays", lambda r, a, b: r.normal(np.array([1.0, 2.0]) * a, b * np.ones((3, 1)))),
    ("one normal", lambda r, a, b: r.normal(a, b)),
    ("uniform", lambda r, a, b: r.uniform(-a, b, size=4)),
    ("laplace", lambda r, a, b: r.laplace(a, b, size=4)),
    ("logistic", lambda r, a, b: r.logistic(a, b, size=4)),
    ("gumbel", lambda r, a, b: r.gumbel(a, b, size=4)),
    ("lognormal", lambda r, a, b: r.lognormal(a, b, size=4)),
    ("exponential", lambda r, a, b: r.exponential(a * b, size=4)),
    ("rayleigh", lambda r, a, b: r.rayleigh(a * b, size=4)),
    ("weibull", lambda r, a, b: b * r.weibull(a, size=4)),
    ("pareto", lambda r, a, b: b * r.pareto(a, size=4)),
    ("power", lambda r, a, b: b * r.power(a, size=4)),
    ("triangular", lambda r, a, b: r.triangular(-a, 0.25 * a, a + b, size=9)),
    ("scale of gamma", lambda r, a, b: r.gamma(2.5, a * b, size=4)),
    ("choice of an array", lambda r, a, b: r.choice(np.array([1.0, 2.0, 3.0]) * a * b, 4)),
    ("permutation", lambda r, a, b: r.permutation(np.array([1.0, 2.0, 3.0]) * a * b)),
    (
        "multivariate normal",
        lambda r, a, b: r.multivariate_normal(
            np.array([1.0, 2.0]) * a, np.array([[2.0, 0.5], [0.5, 1.0]]) * b + np.diag([1.0, 0.0]) * a, 3
        ),
    ),
]


def slopes(f: Callable[[Any, Any], Any], a: float, b: float) -> list[float]:
    """Central differences of fourth order."""

    def slope(g: Callable[[float], Any]) -> float:
        h = 1e-3
        return float((8 * (g(h) - g(-h)) - (g(2 * h) - g(-2 * h))) / (12 * h))

    return [slope(lambda h: f(a + h, b)), slope(lambda h: f(a, b + h))]


@pytest.mark.parametrize("make", [np.random.default_rng, np.random.RandomState], ids=["new", "legacy"])
@pytest.mark.parametrize(("what", "draw"), FAMILIES, ids=[name for name, _ in FAMILIES])
def test_gradients_of_samples(what: str, draw: Callable[..., Any], make: Any) -> None:
    def f(a: Any, b: Any) -> Any:
        x = draw(make(7), a, b)
        return np.sum(x * x + np.cos(np.arange(np.size(x)).reshape(np.shape(x))) * x)

    found = tm.grad(f, (0, 1))(1.25, 0.75)
    assert np.allclose(found, slopes(f, 1.25, 0.75), rtol=1e-6, atol=1e-9)
    _, moved = tm.jvp(f, (1.25, 0.75), (1.0, 2.0))
    assert np.allclose(moved, found[0] + 2 * found[1], rtol=1e-12)


@pytest.mark.parametrize("method", ["cholesky", "eigh", "svd"])
def test_multivariate_normals_move_by_the_factor_that_is_taken(method: str) -> None:
    def f(a: Any, b: Any) -> Any:
        cov = np.array([[2.0, 0.5], [0.5, 1.0]]) * b + np.diag([1.0, 0.0]) * a
        x = np.random.default_rng(7).multivariate_normal(np.array([1.0, 2.0]) * a, cov, 3, method=method)
        return np.sum(x * x * np.array([1.0, 2.0]))

    assert np.allclose(tm.grad(f, (0, 1))(1.25, 0.75), slopes(f, 1.25, 0.75), rtol=1e-6)


def test_second_derivatives() -> None:
    def f(a: Any) -> Any:
        return np.sum(np.random.default_rng(7).normal(a, a * a, size=3) ** 3)

    first = tm.grad(f)
    assert np.isclose(tm.grad(first)(1.25), (first(1.25 + 1e-5) - first(1.25 - 1e-5)) / 2e-5, rtol=1e-6)


REJECTED = {
    "standard_gamma": lambda r, a: r.standard_gamma(a),
    "gamma": lambda r, a: r.gamma(a, 2.0),
    "chisquare": lambda r, a: r.chisquare(a),
    "beta": lambda r, a: r.beta(a, 2.0),
    "f": lambda r, a: r.f(a, 5.0),
    "standard_t": lambda r, a: r.standard_t(a),
    "dirichlet": lambda r, a: r.dirichlet(np.stack([a, 2 * a]))[0],
    "vonmises": lambda r, a: r.vonmises(0.3, a),
}


@pytest.mark.parametrize("name", REJECTED)
def test_draws_by_rejection_have_first_derivatives_only(name: str) -> None:
    def f(a: Any) -> Any:
        return REJECTED[name](np.random.default_rng(7), a)

    def iterations(a: Any) -> Any:
        total, r = 0.0, np.random.default_rng(7)
        for _ in range(3):
            total = total + REJECTED[name](r, a)
        return total

    for function in (f, iterations):
        assert np.isfinite(tm.grad(function)(1.5))
        for derive in (tm.hessian, lambda g: tm.grad(tm.grad(g)), lambda g: lambda a: tm.hvp(g, a, 1.0)):
            with pytest.raises(DifferentiationError, match="only first derivatives"):
                derive(function)(1.5)


def test_scales_of_gamma_numbers_have_second_derivatives() -> None:
    first = tm.grad(lambda a: np.random.default_rng(7).gamma(2.0, a * a) ** 2)
    assert np.isclose(tm.grad(first)(1.25), (first(1.25 + 1e-5) - first(1.25 - 1e-5)) / 2e-5, rtol=1e-6)


@pytest.mark.parametrize("shape", [0.05, 0.3, 1.0, 2.5, 10.0, 150.0, 3000.0])
def test_slopes_of_gamma_numbers_are_those_of_the_quantiles(shape: float) -> None:
    p = np.array([0.01, 0.3, 0.6, 0.9, 0.999])
    x = scipy.special.gammaincinv(shape, p)

    def quantiles(a: float) -> Any:
        below = scipy.special.gammaincinv(a, scipy.special.gammainc(shape, x))
        above = scipy.special.gammainccinv(a, scipy.special.gammaincc(shape, x))
        return np.where(p < 0.5, below, above)

    h = 2e-4 * shape
    near, far = (quantiles(shape + k * h) - quantiles(shape - k * h) for k in (1, 2))
    expected = (8 * near - far) / (12 * h)
    assert np.allclose(gamma_slopes(shape, x), expected, rtol=1e-6, atol=0)


@pytest.mark.parametrize("make", [np.random.default_rng, np.random.RandomState], ids=["new", "legacy"])
def test_shapes_of_gamma_numbers_move_them_implicitly(make: Any) -> None:
    shape = np.array([0.5, 2.0, 7.0])
    weights = np.array([1.0, 2.0, 3.0])
    found = tm.grad(lambda a: np.sum(weights * make(7).standard_gamma(a)))(shape)
    assert np.allclose(found, weights * gamma_slopes(shape, make(7).standard_gamma(shape)), rtol=1e-12)
    found = tm.grad(lambda a: np.sum(weights * make(7).gamma(a, 1.5)))(shape)
    assert np.allclose(found, 1.5 * weights * gamma_slopes(shape, make(7).standard_gamma(shape)), rtol=1e-12)
    found = tm.grad(lambda d: np.sum(weights * make(7).chisquare(d)))(2 * shape)
    assert np.allclose(found, weights * gamma_slopes(shape, make(7).standard_gamma(shape)), rtol=1e-12)


def quantiles(method: str, x: Any, first: Any, second: Any) -> Callable[[Any, Any], Any]:
    """The samples ``x``, drawn with two parameters, as quantiles of the distribution with others."""
    families = {
        "beta": lambda a, b: scipy.stats.beta(a, b),
        "f": lambda a, b: scipy.stats.f(a, b),
        "standard_t": lambda df, _: scipy.stats.t(df),
        "vonmises": lambda _, kappa: scipy.stats.vonmises(kappa),
        "wald": lambda mean, scale: scipy.stats.invgauss(mean / scale, scale=scale),
    }
    family = families[method]
    centre = first if method == "vonmises" else 0.0
    below = family(first, second).cdf(x - centre)

    def moved(a: Any, b: Any) -> Any:
        return family(a, b).ppf(below) + (a if method == "vonmises" else 0.0)

    return moved


@pytest.mark.parametrize("make", [np.random.default_rng, np.random.RandomState], ids=["new", "legacy"])
@pytest.mark.parametrize(
    ("method", "parameters"),
    [("beta", (2.0, 3.0)), ("beta", (0.4, 0.7)), ("f", (5.0, 7.0)), ("standard_t", (4.0,)), ("vonmises", (0.3, 2.0)), ("wald", (1.5, 2.5))],
    ids=str,
)  # fmt: skip
def test_samples_that_are_drawn_by_rejection_move_as_quantiles_do(
    method: str, parameters: tuple[float, ...], make: Any
) -> None:
    x = getattr(make(7), method)(*parameters, size=6)
    first, second = (*parameters, 0.0)[:2]
    expected = quantiles(method, x, first, second)
    for k in range(len(parameters)):
        _, found = tm.jvp(
            lambda *p: getattr(make(7), method)(*p, size=6), parameters, tuple(np.eye(len(parameters))[k].tolist())
        )
        steps = [
            (expected(first + h * (k == 0), second + h * (k == 1)) - expected(first - h * (k == 0), second - h * (k == 1))) / (2 * h)
            for h in (4e-3, 2e-3)
        ]  # fmt: skip
        assert np.allclose(found, (4 * steps[1] - steps[0]) / 3, rtol=1e-6, atol=0)


@pytest.mark.parametrize(("a", "b"), [(0.1, 0.2), (30.0, 0.3), (0.3, 30.0), (100.0, 200.0), (1000.0, 0.5)])
def test_slopes_of_beta_numbers_at_high_precision(a: float, b: float) -> None:
    x = scipy.special.betaincinv(a, b, np.array([0.001, 0.3, 0.6, 0.999]))
    x = x[x < 1]
    with mpmath.workdps(40):
        h = mpmath.mpf(10) ** -12
        for place, found in zip(x, np.transpose(beta_slopes(a, b, x)), strict=True):
            density = mpmath.mpf(place) ** (a - 1) * (1 - mpmath.mpf(place)) ** (b - 1) / mpmath.beta(a, b)
            for slope, (da, db) in zip(found, [(h, 0), (0, h)], strict=True):
                up, down = (
                    mpmath.betainc(mpmath.mpf(a) + s * da, mpmath.mpf(b) + s * db, 0, place, regularized=True)
                    for s in (1, -1)
                )
                assert abs(slope / float((down - up) / (2 * h) / density) - 1) < 1e-9


@pytest.mark.parametrize("kappa", [0.01, 3.0, 200.0, 1e5])
def test_slopes_of_von_mises_numbers_at_high_precision(kappa: float) -> None:
    for place in np.array([-2.5, -0.5, 0.1, 1.0, 3.0]) / max(1.0, np.sqrt(kappa)):
        with mpmath.workdps(30):
            mean = mpmath.besseli(1, kappa) / mpmath.besseli(0, kappa)
            ends = [abs(place), *(abs(place) + k / max(1, mpmath.sqrt(kappa)) for k in (0.5, 1, 2, 5, 10, 30))]
            ends = [e for e in ends if e < mpmath.pi] + [mpmath.pi]
            area = mpmath.quad(
                lambda t, m=mean, x=place: (mpmath.cos(t) - m) * mpmath.exp(kappa * (mpmath.cos(t) - mpmath.cos(x))),
                ends,
            )
        assert abs(von_mises_slopes(kappa, place) / (np.sign(place) * float(area)) - 1) < 1e-9


@pytest.mark.parametrize("make", [np.random.default_rng, np.random.RandomState], ids=["new", "legacy"])
def test_samples_of_a_dirichlet_distribution_stay_on_their_simplex(make: Any) -> None:
    alpha = np.array([0.7, 2.0, 3.5])
    slopes_of_mean = tm.jacobian(lambda a: make(3).dirichlet(a, size=20_000).mean(0))(alpha)
    assert np.allclose(slopes_of_mean.sum(0), 0, atol=1e-14)
    whole = alpha.sum()
    assert np.allclose(slopes_of_mean, (np.eye(3) * whole - alpha[:, None]) / whole**2, rtol=0.02)
    two = np.array([0.7, 2.0])  # then the first element is a beta number
    x = make(3).dirichlet(two, size=4)[:, 0]
    found = tm.jacobian(lambda a: make(3).dirichlet(a, size=4)[:, 0])(two)
    assert np.allclose(found, np.transpose(beta_slopes(*two, x)), rtol=1e-11)


def test_the_second_derivative_of_an_inverse_gaussian_number() -> None:
    x, scale = np.random.default_rng(1).wald(1.5, 2.0), 2.0
    expected = quantiles("wald", x, 1.5, scale)
    h = 2e-2
    first, second = (
        (expected(1.5 + k * h, scale) - 2 * x + expected(1.5 - k * h, scale)) / (k * h) ** 2 for k in (1, 2)
    )
    found = tm.grad(tm.grad(lambda mean: np.random.default_rng(1).wald(mean, 2.0)))(1.5)
    assert found == pytest.approx((4 * first - second) / 3, rel=1e-5)


@pytest.mark.parametrize("method", ["poisson", "geometric", "zipf"])
def test_what_has_no_derivative_says_so(method: str) -> None:
    with pytest.raises(DifferentiationError, match=method):
        tm.grad(lambda p: 1.0 * getattr(np.random.default_rng(7), method)(p))(2.5 if method != "geometric" else 0.5)


@pytest.mark.parametrize("legacy", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_states_are_words_and_back(kind: str, legacy: bool) -> None:
    generator = fresh(kind, legacy=legacy, seed=5)
    generator.standard_normal(3)
    generator.bytes(3)
    words = encoded(generator)
    again = fresh(kind, legacy=legacy, seed=6)
    put_back(again, words)
    assert np.array_equal(generator_at(words, legacy=legacy).standard_normal(9), again.standard_normal(9))
    put_back(again, words)
    assert np.array_equal(generator.standard_normal(9), again.standard_normal(9))


@pytest.mark.parametrize("legacy", [False, True])
def test_the_state_after_a_draw_is_numpys(legacy: bool) -> None:
    """The twister's is read from its memory: a draw of any kind, and as many as it takes to begin its numbers anew."""
    generator = fresh("MT19937", legacy=legacy, seed=5)
    generator.standard_normal()
    words = encoded(generator)
    methods = {
        "random": (), "uniform": (1.0, 2.0), "standard_normal": (), "normal": (), "choice": (5,), "permutation": (4,), "bytes": (3,),
        "exponential": (), "gamma": (0.5,), **({"randint": (7,), "rand": (), "random_sample": ()} if legacy else {"integers": (7,)}),
    }  # fmt: skip
    for _ in range(90):
        for method, args in methods.items():
            own = generator_at(words, legacy=legacy)
            getattr(own, method)(*args)
            words = left_by(own, words, method, legacy=legacy)
            assert np.array_equal(words, encoded(own)), method
            assert not words.flags.writeable


def test_gradients_through_a_loop_that_draws(tier: str) -> None:

    def f(a: Any, b: Any) -> Any:
        r, x = np.random.default_rng(7), 0.0 * a
        for _ in range(20):
            x = 0.5 * x + r.normal(a, b)
        return x * x

    assert np.allclose(tm.grad(f, (0, 1))(1.25, 0.75), slopes(f, 1.25, 0.75), rtol=1e-6)
