"""The table of derivatives where there is no tangent; ``claims.toml`` names these tests."""

import warnings

import numpy as np
import pytest
import scipy.linalg
import scipy.special

import tensormagic as tm

INF, NAN = np.inf, np.nan
POINTS = {
    "max at a tie": (np.max, [1.0, 1.0, 0.0], [0.5, 0.5, 0.0]),
    "maximum at a tie": (lambda x: np.maximum(x, 1.0), 1.0, 0.5),
    "clip at its end": (lambda x: np.clip(x, 0, 1), 1.0, 0.5),
    "median at a tie": (np.median, [1.0, 1.0, 0.0, 2.0], [0.5, 0.5, 0.0, 0.0]),
    "sort at a tie": (lambda x: np.sort(x) @ np.array([1.0, 2.0, 3.0]), [1.0, 1.0, 0.0], [2.0, 3.0, 1.0]),
    "abs": (np.abs, 0.0, 0.0),
    "norm": (np.linalg.norm, [0.0, 0.0], [0.0, 0.0]),
    "std": (np.std, [1.0, 1.0, 1.0], [0.0, 0.0, 0.0]),
    "the root of a sum of squares": (lambda x: np.sqrt((x**2).sum()), [0.0, 0.0], [0.0, 0.0]),
    "sqrt": (np.sqrt, 0.0, INF),
    "log": (np.log, 0.0, INF),
    "arcsin": (np.arcsin, 1.0, INF),
    "x sqrt(x) of a number": (lambda x: x * np.sqrt(x), 0.0, 0.0),
    "x log(x) of a number": (lambda x: x * np.log(x), 0.0, -INF),
    "x sqrt(x) of an array": (lambda x: (x * np.sqrt(x)).sum(), [0.0, 0.0], [0.0, 0.0]),
    "x log(x) of an array": (lambda x: (x * np.log(x)).sum(), [0.0, 0.0], [-INF, -INF]),
    "norm, p = 0.5": (lambda x: np.linalg.norm(x, 0.5), [0.0, 1.0], [0.0, 1.0]),
    "norm, p = -1": (lambda x: np.linalg.norm(x, -1), [0.0, 1.0], [0.0, 0.0]),
    "norm, p = 1.5": (lambda x: np.linalg.norm(x, 1.5), [0.0, 1.0], [0.0, 1.0]),
    "sqrt of a product": (lambda x: np.sqrt(np.outer(x, x)).sum(), [0.0, 1.0], [NAN, NAN]),
    "x**0": (lambda x: x**0, 0.0, 0.0),
    "0**x at 1": (lambda x: 0.0**x, 1.0, 0.0),
    "0**x at 0": (lambda x: 0.0**x, 0.0, -INF),
    "a negative number to y": (lambda y: (-2.0) ** y, 2.0, NAN),
    "prod with a zero": (np.prod, [0.0, 2.0, 3.0], [6.0, 0.0, 0.0]),
    "cumprod with a zero": (lambda x: np.cumprod(x).sum(), [0.0, 2.0, 3.0], [9.0, 0.0, 0.0]),
    "logsumexp": (scipy.special.logsumexp, [-INF, 0.0], [0.0, 1.0]),
    "logsumexp of nothing": (scipy.special.logsumexp, [-INF, -INF], [0.0, 0.0]),
    "arctan2": (lambda x: np.arctan2(x, 0.0 * x), 0.0, 0.0),
    "hypot": (lambda x: np.hypot(x, 0.0), 0.0, 0.0),
    "eigvalsh": (
        lambda a: np.linalg.eigvalsh(a) @ np.array([1.0, 2.0]),
        [[2.0, 1.0], [1.0, 3.0]],
        [[1.5 - 0.05**0.5, 0.0], [0.8**0.5, 1.5 + 0.05**0.5]],
    ),
    "pinv": (lambda a: np.linalg.pinv(a).sum(), [[1.0, 1.0], [1.0, 1.0]], [[-0.25, -0.25], [-0.25, -0.25]]),
}


@pytest.mark.parametrize("at", POINTS)
def test_derivatives_where_there_is_no_tangent_are_those_of_the_table(at):
    f, x, slope = POINTS[at]
    with np.errstate(all="ignore"), warnings.catch_warnings(action="ignore"):
        got = tm.grad(f)(np.array(x) if isinstance(x, list) else x)
    np.testing.assert_allclose(got, slope, rtol=1e-12, atol=1e-15)


def test_second_derivatives_of_norms_between_1_and_2():
    with np.errstate(all="ignore"):
        found = tm.hessian(lambda x: np.linalg.norm(x, 1.5))(np.array([0.0, 1.0]))
    assert np.isnan(found[0]).all()
    np.testing.assert_array_equal(found[1], 0.0)


@pytest.mark.parametrize(
    ("f", "x"),
    [
        (lambda a: np.linalg.eigh(a)[1].sum(), np.eye(2)),
        (lambda a: np.linalg.qr(a)[0].sum(), np.ones((2, 2))),
        (lambda a: scipy.linalg.sqrtm(a).sum(), np.zeros((2, 2))),
        (tm.grad(lambda a: np.random.default_rng(0).gamma(a)), 2.0),
        (lambda n: n * 2.0, 3),
        (lambda n: n * 2.0, True),
    ],
    ids=["eigenvectors", "qr", "sqrtm", "gamma, twice", "an integer", "a truth value"],
)
def test_where_there_is_no_derivative_it_is_an_error(f, x):
    with pytest.raises(tm.DifferentiationError):
        tm.grad(f)(x)
