"""The special functions of ``scipy.special``: NumPy runs those without loop code of their own through SciPy."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

import numpy as np

from tensormagic.ir.errors import DifferentiationError
from tensormagic.ir.node import Node
from tensormagic.ops.op import Tangent, Value
from tensormagic.ops.pointwise import Pointwise, Signature, Weak, astype
from tensormagic.ops.scalars.comparison import equal, isnan, less, logical_and, logical_not, where
from tensormagic.ops.scalars.function import INF, float_loop, float_loop2, real_loop, scalar_op, special, typed
from tensormagic.ops.scalars.scalar import absolute, cos, exp, log, log1p, sin
from tensormagic.ops.tangents import multiply_by, total

_ROOT_PI = math.sqrt(math.pi)


def real_loops(name: str) -> Callable[[Sequence[Weak]], Signature]:
    """Return a function for SciPy's choice among the real loops of one of its ufuncs."""

    def resolve(operands: Sequence[Weak]) -> Signature:
        if any(w is complex or getattr(w, "kind", "") == "c" for w in operands):
            raise TypeError(f"{name} takes real numbers")
        *loop, out = getattr(import_module("scipy.special"), name).resolve_dtypes((*operands, None))
        return tuple(loop), out

    return resolve


def by_the_last(name: str, partial: Callable[..., Node], fixed: int) -> Callable[[Node, Sequence[Tangent]], Tangent]:
    """Return the rule for the tangent of a function by its last operand; derivatives by the first ones, its orders, are refused."""

    def linearise(node: Node, tangents: Sequence[Tangent]) -> Tangent:
        if any(t is not None for t in tangents[:fixed]):
            raise DifferentiationError(
                f"{name} has no derivative with respect to its {'first operand' if fixed == 1 else f'first {fixed} operands'}",
                "Differentiate with respect to the last operand, or use tm.stop_gradient on the others.",
            )
        return total([multiply_by(partial(node, *node.args), t) for t in tangents[fixed:] if t is not None])

    return linearise


SHAPES = ((0.7, 1.0, 2.5, 3.0), (2.0, 1.5, 0.8, 3.0), (1.5, 2.0, 3.0, 2.5))
"""Positive values of parameters at which derivatives are tested."""


def real_function(name: str, partials: Callable[..., Any], doc: str, **fields: Any) -> Pointwise:
    """Return a function of ``scipy.special`` on real numbers; with ``fixed``, ``partials`` is the derivative by the last operand."""
    fixed = len(fields.get("fixed", ()))
    rule: dict[str, Any] = {"linearise": by_the_last(name, partials, fixed)} if fixed else {"partials": partials}
    fields = {"dtypes": real_loops(name)} | fields
    fields |= {"in_numpy": f"scipy.special.{name}"} | rule
    return scalar_op(name, lambda *values: getattr(import_module("scipy.special"), name)(*values), doc=doc, **fields)


# logarithms -----------------------------------------------------------------------------------------------------------

xlogy = scalar_op(
    "xlogy",
    special("xlogy"),
    weight=22,
    steep=True,
    dtypes=float_loop2,
    arity=2,
    partials=lambda _out, x, y: (log(y), x / where(logical_and(equal(x, 0), equal(y, 0)), 1, y)),
    body=lambda x, y: where(logical_and(equal(x, 0), logical_not(isnan(y))), 0, x * log(y)),
    domain=(0.05, INF),
    in_numpy="scipy.special.xlogy",
    doc="x log(y), which is 0 for x = 0.",
)
logit = scalar_op(
    "logit",
    special("logit"),
    weight=24,
    steep=True,
    dtypes=real_loop,
    partials=lambda _out, x: 1 / (x * (1 - x)),
    domain=(0.05, 0.95),
    in_numpy="scipy.special.logit",
    doc="log(p / (1 - p)).",
)


def _exprel_slope(out: Node, x: Node) -> Node:
    """Return the derivative: ``(exp(x) - out) / x``, and near 0, where that cancels, the series of ``sum(x**k / (k! (k + 2)))``."""
    near = less(absolute(x), 1)
    small = where(near, x, 0)
    series = small * 0 + 1 / (math.factorial(18) * 20)
    for k in range(17, -1, -1):
        series = series * small + 1 / (math.factorial(k) * (k + 2))
    return where(near, series, (exp(x) - out) / where(near, 1, x))


def _sinc_slope(out: Node, x: Node) -> Node:
    """Return the derivative: ``(cos(pi x) - out) / x``, and near 0, where that cancels, its series."""
    near = less(absolute(x), 0.5)
    small = where(near, x, 0)
    square = small * small * math.pi**2
    series = square * 0
    for k in range(15, 0, -1):
        series = series * square + (-1) ** k * 2 * k / math.factorial(2 * k + 1)
    return where(near, series * small * math.pi**2, (cos(x * math.pi) - out) / where(near, 1, x))


def _sinc_body(x: Node) -> Node:
    zero = equal(x, 0)
    angle = where(zero, 1, x * math.pi)
    return where(zero, 1, sin(angle) / angle)


sinc = scalar_op(
    "sinc",
    lambda x: np.asarray(np.sinc(x)).astype(np.result_type(x), copy=False),
    dtypes=float_loop,
    partials=_sinc_slope,
    body=_sinc_body,
    doc="sin(pi x)/(pi x), which is 1 for x = 0.",
)
exprel = real_function("exprel", _exprel_slope, "(exp(x) - 1) / x, which is 1 for x = 0.")
exp1 = real_function("exp1", lambda _out, x: -exp(-x) / x, "The exponential integral E1.", domain=(0.1, INF))
expi = real_function("expi", lambda _out, x: exp(x) / x, "The exponential integral Ei.", domain=(0.1, INF))

# the normal distribution ----------------------------------------------------------------------------------------------

erf = scalar_op(
    "erf",
    special("erf"),
    source="erf({0})",
    dtypes=float_loop,
    partials=lambda _out, x: 2 / _ROOT_PI * exp(-x * x),
    in_numpy="scipy.special.erf",
    doc="The error function.",
)
erfc = scalar_op(
    "erfc",
    special("erfc"),
    weight=22,
    not_negative=True,
    source="erfc({0})",
    dtypes=float_loop,
    partials=lambda _out, x: -2 / _ROOT_PI * exp(-x * x),
    in_numpy="scipy.special.erfc",
    doc="1 - erf(x), accurate for large x.",
)
erfcx = real_function("erfcx", lambda out, x: 2 * x * out - 2 / _ROOT_PI, "exp(x*x) erfc(x), without overflow.")


_FAR = 8  # from here on the asymptotic series of erfc is accurate


def _log_erfc_numpy(x: Value) -> Value:
    scipy = import_module("scipy.special")
    with np.errstate(all="ignore"):
        near, far = np.log1p(-scipy.erf(x)), np.log(scipy.erfcx(x)) - x * x
        between = np.log(scipy.erfc(x))
    return np.where(x < 0.5, near, np.where(x < _FAR, between, far)).astype(np.result_type(x), copy=False)


def _log_erfc_body(x: Node) -> Node:
    """Return the logarithm of erfc in ops that loops are made of.

    For large x it is the series of ``1 - t + 3 t**2 - 15 t**3 ...``, ``t = 1 / (2 x**2)``.
    """
    if x.type.dtype == np.float16:  # the range of float16 ends where erfc(4) is rounded to 0
        return astype(_log_erfc_body(astype(x, np.float32)), np.float16)
    far = where(less(x, _FAR), _FAR, x)
    t = 0.5 / far / far
    series = t * 0
    for k in range(15, 0, -1):
        series = (1 + series) * t * -(2 * k - 1)
    tail = log1p(series) - (log(far * _ROOT_PI) + far * far)
    return where(less(x, 0.5), log1p(-erf(x)), where(less(x, _FAR), log(erfc(x)), tail))


log_erfc = scalar_op(
    "log_erfc",
    _log_erfc_numpy,
    in_numpy="np.where({0} < 0.5, np.log1p(-scipy.special.erf({0})), "
    "np.where({0} < 8, np.log(scipy.special.erfc({0})), np.log(scipy.special.erfcx({0})) - {0} * {0}))",
    dtypes=real_loop,
    partials=lambda _out, x: -2 / _ROOT_PI / erfcx(x),
    body=_log_erfc_body,
    doc="log(erfc(x)), where erfc(x) is too small for a number too, and near 0.",
)
erfinv = real_function(
    "erfinv", lambda out, _x: _ROOT_PI / 2 * exp(out * out), "The inverse of erf.", domain=(-0.9, 0.9)
)
erfcinv = real_function(
    "erfcinv", lambda out, _x: -_ROOT_PI / 2 * exp(out * out), "The inverse of erfc.", domain=(0.1, 1.9)
)
log_ndtr = real_function(
    "log_ndtr",
    lambda _out, x: math.sqrt(2 / math.pi) / erfcx(x * -math.sqrt(0.5)),
    "The logarithm of the distribution function of the normal distribution.",
)
ndtri = real_function(
    "ndtri",
    lambda out, _x: math.sqrt(2 * math.pi) * exp(out * out / 2),
    "The quantile function of the normal distribution.",
    domain=(0.05, 0.95),
)

# the gamma and beta functions -----------------------------------------------------------------------------------------

polygamma = scalar_op(
    "polygamma",
    special("polygamma"),
    dtypes=float_loop2,
    arity=2,
    linearise=by_the_last("polygamma", lambda _out, n, x: polygamma(n + 1, x), 1),
    fixed=((1.0, 2.0, 1.0, 3.0),),
    domain=(1, INF),
    edges=(1.0, 2.0, 3.0),
    in_numpy="scipy.special.polygamma",
    doc="The n-th derivative of digamma.",
)
digamma = scalar_op(
    "digamma",
    special("digamma"),
    dtypes=real_loop,
    partials=lambda _out, x: polygamma(1, x),
    domain=(0.1, INF),
    in_numpy="scipy.special.digamma",
    doc="The derivative of gammaln.",
)
gammaln = scalar_op(
    "gammaln",
    special("gammaln"),
    dtypes=real_loop,
    partials=lambda _out, x: digamma(x),
    domain=(0.1, INF),
    in_numpy="scipy.special.gammaln",
    doc="The logarithm of the absolute value of the gamma function.",
)
gamma = real_function("gamma", lambda out, x: out * digamma(x), "The gamma function.", domain=(0.1, INF))


def _rgamma_slope(out: Node, x: Node) -> Node:
    """Return the derivative of 1 / gamma, by the reflection formula below one half, where the digamma function has poles."""
    left = less(x, 0.5)
    below, above = 1 - where(left, x, 0), where(left, 1, x)
    angle = x * math.pi
    return where(left, (cos(angle) - sin(angle) / math.pi * digamma(below)) * gamma(below), -out * digamma(above))


rgamma = real_function("rgamma", _rgamma_slope, "The reciprocal of the gamma function.")
gammasgn = real_function(
    "gammasgn", lambda _out, x: x * 0, "The sign of the gamma function.", domain=(0.1, INF), arity=1
)
beta = real_function(
    "beta",
    lambda out, a, b: (out * (digamma(a) - digamma(a + b)), out * (digamma(b) - digamma(a + b))),
    "The beta function.",
    arity=2,
    domain=(0.1, INF),
)
betaln = real_function(
    "betaln",
    lambda _out, a, b: (digamma(a) - digamma(a + b), digamma(b) - digamma(a + b)),
    "The logarithm of the absolute value of the beta function.",
    arity=2,
    domain=(0.1, INF),
)
binom = real_function(
    "binom",
    lambda out, n, k: (
        out * (digamma(n + 1) - digamma(n - k + 1)),
        out * (digamma(n - k + 1) - digamma(k + 1)),
    ),
    "The binomial coefficient, of real numbers too.",
    arity=2,
    domain=(0.05, 1.0),
)


def _gamma_density(_out: Node, a: Node, x: Node) -> Node:
    return exp(xlogy(a - 1, x) - x - gammaln(a))


gammainc = real_function(
    "gammainc",
    _gamma_density,
    "The regularized lower incomplete gamma function.",
    fixed=SHAPES[:1],
    arity=2,
    domain=(0.05, INF),
)
gammaincc = real_function(
    "gammaincc",
    lambda out, a, x: -_gamma_density(out, a, x),
    "The regularized upper incomplete gamma function.",
    fixed=SHAPES[:1],
    arity=2,
    domain=(0.05, INF),
)
betainc = real_function(
    "betainc",
    lambda _out, a, b, x: exp(xlogy(a - 1, x) + (b - 1) * log1p(-x) - betaln(a, b)),
    "The regularized incomplete beta function.",
    fixed=SHAPES[:2],
    arity=3,
    domain=(0.05, 0.95),
)
zeta = real_function(
    "zeta",
    lambda _out, s, q: -s * zeta(s + 1, q),
    "The Hurwitz zeta function.",
    fixed=((2.0, 3.0, 2.5, 4.0),),
    arity=2,
    dtypes=real_loops("huber"),  # zeta is a Python function over a ufunc with the same loops
    domain=(0.1, INF),
)

# elliptic integrals, the dilogarithm, and Gauss's hypergeometric function --------------------------------------------

hyp2f1 = real_function(
    "hyp2f1",
    lambda _out, a, b, c, z: a * b / c * hyp2f1(a + 1, b + 1, c + 1, z),
    "Gauss's hypergeometric function.",
    fixed=SHAPES,
    arity=4,
    domain=(0.05, 0.9),
)


def _complete(first: float, m: Node) -> Node:
    """Return the derivative of a complete elliptic integral, pi/8 times 2F1(first, 3/2; 2; m), which does not cancel near 0."""
    return math.pi / 8 * hyp2f1(typed(first, m), typed(1.5, m), typed(2, m), m)


ellipk = real_function(
    "ellipk",
    lambda _out, m: _complete(1.5, m),
    "The complete elliptic integral of the first kind, of the parameter m.",
    domain=(-3, 0.9),
)
ellipkm1 = real_function(
    "ellipkm1",
    lambda _out, p: -_complete(1.5, 1 - p),
    "The complete elliptic integral of the first kind, of 1 - m.",
    domain=(0.1, 3),
)
ellipe = real_function(
    "ellipe",
    lambda _out, m: -_complete(0.5, m),
    "The complete elliptic integral of the second kind, of the parameter m.",
    domain=(-3, 0.9),
)


def _spence_slope(_out: Node, z: Node) -> Node:
    gap = z - 1
    none = equal(gap, 0)
    return where(none, gap / 2 - gap * gap / 3 - 1, -log1p(where(none, 1, gap)) / where(none, 1, gap))


spence = real_function("spence", _spence_slope, "Spence's function, the dilogarithm of 1 - z.", domain=(0.05, INF))
