"""The formulas of the captured distributions of ``scipy.stats``, in SciPy's parametrisation."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tensormagic.capture import context
from tensormagic.capture.errors.refusal import refuse
from tensormagic.capture.library.densities import SEVERAL, TABLE, Density, number
from tensormagic.capture.library.special import xlog1py
from tensormagic.capture.values.value import Tensor, wrap
from tensormagic.ir.errors import ShapeError
from tensormagic.ir.node import Node
from tensormagic.ir.size import nodes_of
from tensormagic.ir.type import hint
from tensormagic.ops.effects.checks import require
from tensormagic.ops.fold import reduce_sum
from tensormagic.ops.leaf import constant, iota, size_node
from tensormagic.ops.matrices import linalg
from tensormagic.ops.matrices.matrix import diagonals
from tensormagic.ops.move import broadcast, concatenate, expand_dims, reshape, transpose
from tensormagic.ops.move_kind import same
from tensormagic.ops.pointwise import astype
from tensormagic.ops.scalars import scalar, special
from tensormagic.ops.scalars.scalar import absolute, exp, expm1, log, log1p, logical_and, sigmoid, softplus, where
from tensormagic.ops.scalars.special import betaln, gammaln, xlogy

_LOG_ROOT_2PI = 0.5 * math.log(2 * math.pi)


def _positive(*operands: Node) -> Node:
    found = scalar.greater(operands[0], 0)
    for operand in operands[1:]:
        found = logical_and(found, scalar.greater(operand, 0))
    return found


def _probability(p: Node) -> Node:
    return logical_and(scalar.greater_equal(p, 0), scalar.less_equal(p, 1))


def ndtr(z: Node) -> Node:
    """Return the distribution function of the normal distribution."""
    return 0.5 * special.erfc(z * -math.sqrt(0.5))


def _t(z: Node, df: Node) -> Node:
    infinite = scalar.isinf(df)
    r = where(infinite, 1, df)
    value = -0.5 * log(r * math.pi) + gammaln((r + 1) / 2) - gammaln(r / 2) - (r + 1) / 2 * log1p(z * z / r)
    return where(infinite, -z * z / 2 - _LOG_ROOT_2PI, value)


def _t_cdf(z: Node, df: Node) -> Node:
    tail = 0.5 * special.betainc(df / 2, 0.5, df / (df + z * z))
    return where(scalar.greater(z, 0), 1 - tail, tail)


def _laplace_cdf(z: Node) -> Node:
    tail = 0.5 * exp(-absolute(z))
    return where(scalar.greater(z, 0), 1 - tail, tail)


def _lognorm(z: Node, s: Node) -> Node:
    at = where(scalar.greater(z, 0), z, 1)
    return where(scalar.greater(z, 0), -(log(at) ** 2) / (2 * s * s) - log(s * at) - _LOG_ROOT_2PI, -np.inf)


def _logistic(z: Node) -> Node:
    return -absolute(z) - 2 * softplus(-absolute(z))


def _weibull(z: Node, c: Node) -> Node:
    return log(c) + xlogy(c - 1, z) - z**c


TABLE.update({
    "norm": Density(
        log=lambda z: -z * z / 2 - _LOG_ROOT_2PI,
        cdf=ndtr,
        sf=lambda z: ndtr(-z),
        logcdf=special.log_ndtr,
        logsf=lambda z: special.log_ndtr(-z),
        ppf=special.ndtri,
    ),
    "halfnorm": Density(
        log=lambda z: 0.5 * math.log(2 / math.pi) - z * z / 2,
        low=0.0,
        cdf=lambda z: special.erf(z * math.sqrt(0.5)),
        sf=lambda z: 2 * ndtr(-z),
    ),
    "t": Density(log=_t, shapes=("df",), valid=_positive, cdf=_t_cdf, sf=lambda z, df: _t_cdf(-z, df)),
    "gamma": Density(
        log=lambda z, a: xlogy(a - 1, z) - z - gammaln(a),
        shapes=("a",),
        low=0.0,
        valid=_positive,
        cdf=lambda z, a: special.gammainc(a, z),
        sf=lambda z, a: special.gammaincc(a, z),
    ),
    "invgamma": Density(
        log=lambda z, a: -(a + 1) * log(z) - gammaln(a) - 1 / z,
        shapes=("a",),
        low=5e-324,
        valid=_positive,
        cdf=lambda z, a: special.gammaincc(a, 1 / z),
        sf=lambda z, a: special.gammainc(a, 1 / z),
    ),
    "chi2": Density(
        log=lambda z, df: xlogy(df / 2 - 1, z) - z / 2 - gammaln(df / 2) - math.log(2) * df / 2,
        shapes=("df",),
        low=0.0,
        valid=_positive,
        cdf=lambda z, df: special.gammainc(df / 2, z / 2),
        sf=lambda z, df: special.gammaincc(df / 2, z / 2),
    ),
    "beta": Density(
        log=lambda z, a, b: xlog1py(b - 1, -z) + xlogy(a - 1, z) - betaln(a, b),
        shapes=("a", "b"),
        low=0.0,
        high=1.0,
        valid=_positive,
        cdf=lambda z, a, b: special.betainc(a, b, z),
    ),
    "expon": Density(
        log=lambda z: -z,
        low=0.0,
        cdf=lambda z: -expm1(-z),
        sf=lambda z: exp(-z),
        logsf=lambda z: -z,
        ppf=lambda q: -log1p(-q),
    ),
    "uniform": Density(log=lambda z: z * 0, low=0.0, high=1.0, cdf=lambda z: z, ppf=lambda q: q),
    "laplace": Density(
        log=lambda z: -absolute(z) - math.log(2), cdf=_laplace_cdf, sf=lambda z: _laplace_cdf(-z),
        ppf=lambda q: where(scalar.greater(q, 0.5), -log(2 * (1 - q)), log(2 * q)),
    ),
    "logistic": Density(
        log=_logistic,
        cdf=sigmoid,
        sf=lambda z: sigmoid(-z),
        logcdf=lambda z: -softplus(-z),
        logsf=lambda z: -softplus(z),
        ppf=special.logit,
    ),
    "cauchy": Density(
        log=lambda z: -math.log(math.pi) - log1p(z * z),
        cdf=lambda z: scalar.arctan2(z * 0 + 1, -z) / math.pi,
        sf=lambda z: scalar.arctan2(z * 0 + 1, z) / math.pi,
        ppf=lambda q: scalar.tan(math.pi * q - math.pi / 2),
    ),
    "lognorm": Density(
        log=_lognorm,
        shapes=("s",),
        low=0.0,
        valid=_positive,
        cdf=lambda z, s: ndtr(log(z) / s),
        sf=lambda z, s: ndtr(-log(z) / s),
        ppf=lambda q, s: exp(s * special.ndtri(q)),
    ),
    "gumbel_r": Density(
        log=lambda z: -z - exp(-z),
        cdf=lambda z: exp(-exp(-z)),
        logcdf=lambda z: -exp(-z),
        sf=lambda z: -expm1(-exp(-z)),
        ppf=lambda q: -log(-log(q)),
    ),
    "weibull_min": Density(
        log=_weibull,
        shapes=("c",),
        low=0.0,
        valid=_positive,
        cdf=lambda z, c: -expm1(-(z**c)),
        sf=lambda z, c: exp(-(z**c)),
        logsf=lambda z, c: -(z**c),
    ),
    "pareto": Density(
        log=lambda z, b: log(b) - (b + 1) * log(z),
        shapes=("b",),
        low=1.0,
        valid=_positive,
        cdf=lambda z, b: 1 - z**-b,
        sf=lambda z, b: z**-b,
    ),
    "poisson": Density(
        log=lambda k, mu: xlogy(k, mu) - gammaln(k + 1) - mu,
        shapes=("mu",),
        low=0.0,
        valid=lambda mu: scalar.greater_equal(mu, 0),
        cdf=lambda k, mu: special.gammaincc(k + 1, mu),
        sf=lambda k, mu: special.gammainc(k + 1, mu),
        discrete=True,
    ),
    "binom": Density(
        log=lambda k, n, p: gammaln(n + 1) - (gammaln(k + 1) + gammaln(n - k + 1)) + xlogy(k, p) + xlog1py(n - k, -p),
        shapes=("n", "p"),
        low=0.0,
        high=lambda n, _p: n,
        valid=lambda n, p: logical_and(
            logical_and(scalar.greater_equal(n, 0), scalar.equal(scalar.floor(n), n)), _probability(p)
        ),
        cdf=lambda k, n, p: special.betainc(n - k, k + 1, 1 - p),
        sf=lambda k, n, p: special.betainc(k + 1, n - k, p),
        discrete=True,
    ),
    "bernoulli": Density(
        log=lambda k, p: xlogy(k, p) + xlog1py(1 - k, -p),
        shapes=("p",),
        low=0.0,
        high=1.0,
        valid=_probability,
        cdf=lambda _k, p: 1 - p,
        sf=lambda _k, p: p,
        discrete=True,
    ),
    "geom": Density(
        log=lambda k, p: xlog1py(k - 1, -p) + log(p),
        shapes=("p",),
        low=1.0,
        valid=lambda p: logical_and(scalar.greater(p, 0), scalar.less_equal(p, 1)),
        cdf=lambda k, p: -expm1(log1p(-p) * k),
        sf=lambda k, p: exp(log1p(-p) * k),
        discrete=True,
    ),
})  # fmt: skip

# distributions of vectors ---------------------------------------------------------------------------------------------


def _done(node: Node) -> Tensor:
    """Return a result without its axes of extent 1."""
    shape = tuple(s for s in node.type.shape if s != 1)
    return wrap(context.record(reshape(node, shape) if len(shape) != node.type.ndim else node))


def _covariance(mean: Any, cov: Any) -> tuple[Node, Node]:
    """Return a mean vector and a covariance matrix, with SciPy's defaults filled in."""
    m = None if mean is None else number(mean)
    c = number(1.0 if cov is None else cov)
    if c.type.ndim > 2:
        raise ShapeError(f"Array 'cov' must be at most two-dimensional, but cov.ndim = {c.type.ndim}")
    d = m.type.size if m is not None else c.type.shape[0] if c.type.ndim == 2 else 1
    m = broadcast(constant(0.0), (d,)) if m is None else reshape(m, (1,)) if d == 1 else m
    if d == 1:
        return astype(m, np.float64), reshape(c, (1, 1))
    if m.type.ndim != 1:
        raise ShapeError(f"Array 'mean' must be a vector of length {hint(d)}.")
    if c.type.ndim < 2:
        on = scalar.equal(iota((d, d), 0), iota((d, d), 1))
        c = where(on, broadcast(c, (d, d)), 0)
    if not all(same(s, d) for s in c.type.shape):
        raise ShapeError("Dimension mismatch: 'cov' is no square matrix of the extent of 'mean'")
    return astype(m, np.float64), c


_ONE_POINT = "scipy.stats.multivariate_normal of a data-dependent number of points, here one, is not captured: SciPy drops that axis"


def _normal_logpdf(x: Any, mean: Any = None, cov: Any = 1, allow_singular: bool = False) -> Node:
    if allow_singular:
        refuse("scipy.stats.multivariate_normal with allow_singular", "Add a small multiple of the unit matrix.")
    m, c = _covariance(mean, cov)
    (d,) = m.type.shape
    points = number(x)
    if points.type.ndim < 2:
        points = expand_dims(points, (points.type.ndim,)) if d == 1 and points.type.ndim else points
        points = reshape(points, (1, 1)) if not points.type.ndim else points
        points = expand_dims(points, (0,)) if points.type.ndim == 1 else points
    lead = tuple(s for s in points.type.shape[:-1] if s != 1)
    deviations = transpose(reshape(points - m, (-1, d)), (1, 0))
    factor = linalg.cholesky(c)
    whitened = linalg.solve_triangular(factor, deviations, lower=True)
    distance = reduce_sum(whitened * whitened, (0,))
    logdet = 2 * reduce_sum(log(diagonals(factor)), (0,))
    for s in lead:
        if nodes_of(s):  # SciPy drops an axis of one point
            distance = require(distance, scalar.not_equal(size_node(s), 1), _ONE_POINT, "capture")
    total = astype(size_node(d), np.float64) * (2 * _LOG_ROOT_2PI) + logdet
    return reshape(-0.5 * (total + distance), lead)


def _normal_entropy(mean: Any = None, cov: Any = 1) -> Node:
    m, c = _covariance(mean, cov)
    c = reshape(c, (m.type.shape[0],) * 2)  # with these extents at every call
    logdet = 2 * reduce_sum(log(diagonals(linalg.cholesky(c))), (0,))
    return 0.5 * (astype(size_node(m.type.shape[0]), np.float64) * (2 * _LOG_ROOT_2PI + 1) + logdet)


def _dirichlet_logpdf(x: Any, alpha: Any) -> Node:
    """Return the logarithm of the Dirichlet density; points off the simplex, for which SciPy raises, are not checked."""
    a, points = number(alpha), number(x)
    if a.type.ndim != 1 or not points.type.ndim:
        raise ShapeError("Parameter vector 'a' must be one dimensional, and x a vector or a matrix")
    if hint(points.type.shape[0]) == (hint(a.type.shape[0]) or 0) - 1:
        last = 1 - reduce_sum(points, (0,), keepdims=True)
        points = concatenate([points, last], 0)
    if not same(points.type.shape[0], a.type.shape[0]):
        raise ShapeError(
            "Vector 'x' must have either the same number of entries as, or one entry fewer than, parameter vector 'a'"
        )
    weights = a if points.type.ndim == 1 else broadcast(expand_dims(a, (1,)), points.type.shape)
    constant_part = gammaln(reduce_sum(a, (0,))) - reduce_sum(gammaln(a), (0,))
    return constant_part + reduce_sum(xlogy(weights - 1, points), (0,))


SEVERAL.update(
    {
        "multivariate_normal": {
            "logpdf": lambda *args, **options: _done(_normal_logpdf(*args, **options)),
            "pdf": lambda *args, **options: _done(exp(_normal_logpdf(*args, **options))),
            "entropy": lambda *args, **options: _done(_normal_entropy(*args, **options)),
        },
        "dirichlet": {
            "logpdf": lambda *args, **options: _done(_dirichlet_logpdf(*args, **options)),
            "pdf": lambda *args, **options: _done(exp(_dirichlet_logpdf(*args, **options))),
        },
    }
)
