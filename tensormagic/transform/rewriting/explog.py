"""Rules of exponentials, logarithms and their kin, which keep the digits that the naive form loses."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tensormagic.ir.node import Node
from tensormagic.ir.rules import Constant, Positive, Unsigned, assuming, extending
from tensormagic.ops.scalars.scalar import (
    absolute,
    arctanh,
    cos,
    cosh,
    exp,
    expm1,
    less,
    log,
    log1mexp,
    log1p,
    logaddexp,
    power,
    sigmoid,
    sin,
    sinh,
    softplus,
    sqrt,
    square,
    tanh,
    where,
)
from tensormagic.ops.scalars.special import digamma, erf, erfc, log_erfc, logit, polygamma, xlogy
from tensormagic.transform.rewriting.notation import exact, real, stable

Yields = Iterator[tuple[Any, ...]]


@stable
def near_one(x: Node) -> Yields:
    """Functions that keep the digits which adding 1 rounds away."""
    yield log(1 + x), log1p(x)
    yield log(1 - x), log1p(-x)
    yield exp(x) - 1, expm1(x)
    yield 1 - exp(x), -expm1(x)
    yield exp(x) + -1, expm1(x)
    yield 1 - erf(x), erfc(x)
    yield 1 + erf(x), erfc(-x)
    yield 1 - erfc(x), erf(x)
    yield erf(x) - 1, -erfc(x)
    yield erf(x) + -1, -erfc(x)
    yield erfc(x) - 1, -erf(x)
    yield erfc(x) + -1, -erf(x)
    yield 1 - sigmoid(x), sigmoid(-x)
    yield log1p(-exp(x)), log1mexp(x)
    yield log(erfc(x)), log_erfc(x)
    yield log(-expm1(x)), log1mexp(x), extending("-inf where x > 0 and exp(x) is rounded to 1")


@stable(fuel=1)
def cosines(x: Node) -> Yields:
    """Cosines near 1."""
    yield 1 - cos(x), 2 * square(sin(x * 0.5))
    yield cos(x) - 1, -2 * square(sin(x * 0.5))
    yield cos(x) + -1, -2 * square(sin(x * 0.5))


@stable(fuel=1)
def hyperbolic_cosines(x: Node) -> Yields:
    """Hyperbolic cosines near 1."""
    yield cosh(x) - 1, 2 * square(sinh(x * 0.5))
    yield cosh(x) + -1, 2 * square(sinh(x * 0.5))
    yield 1 - cosh(x), -2 * square(sinh(x * 0.5))
    yield (exp(x) - 2) + exp(-x), 4 * square(sinh(x * 0.5))
    yield exp(x) + exp(-x) - 2, 4 * square(sinh(x * 0.5))


_FAR = 20.0
"""From here on exp(-2 x) is nothing beside x."""
_LOG2 = 0.6931471805599453


def _log_cosh(x: Node) -> Node:
    near = less(absolute(x), _FAR)
    return where(near, log1p(2 * square(sinh(where(near, x, 0) * 0.5))), absolute(x) - _LOG2)


@stable(fuel=1)
def logarithms_of_cosines(x: Node) -> Yields:
    """The logarithm of the hyperbolic cosine, near 0 and without overflow."""
    yield log(cosh(x)), _log_cosh(x)
    yield log(1 / cosh(x)), -_log_cosh(x)
    yield log1p(-square(tanh(x))), -2 * _log_cosh(x)
    yield log1p(-(tanh(x) * tanh(x))), -2 * _log_cosh(x)


@stable
def hyperbolic_tangents(x: Node) -> Yields:
    """Hyperbolic tangents, and the inverse, by formulas that cancel."""
    yield log((1 + x) / (1 - x)), 2 * arctanh(x)
    yield log((1 - x) / (1 + x)), -2 * arctanh(x)
    yield 2 * sigmoid(x) - 1, tanh(x * 0.5)
    yield 2 * sigmoid(x) + -1, tanh(x * 0.5)


@stable
def symmetries(x: Node) -> Yields:
    """Odd functions hand a sign on, and even ones drop it."""
    yield sin(-x), -sin(x)
    yield sinh(-x), -sinh(x)
    yield tanh(-x), -tanh(x)
    yield erf(-x), -erf(x)
    yield cos(-x), cos(x)
    yield cosh(-x), cosh(x)


@stable
def inverses(x: Node, p: Positive) -> Yields:
    """Inverses meet: the exact result in place of two roundings and an overflow."""
    yield log(exp(x)), x
    yield exp(log(p)), p
    yield log1p(expm1(x)), x
    yield logit(sigmoid(x)), x
    yield log(sigmoid(x) / sigmoid(-x)), x
    yield log(sigmoid(x) / (1 - sigmoid(x))), x


@stable(fuel=1)
def roots_and_squares(x: Node) -> Yields:
    """Logarithms of roots and squares, which lose digits near 1 and run over."""
    yield log(sqrt(x)), 0.5 * log(x)
    yield log(square(x)), 2 * log(absolute(x))


@stable
def reciprocals(p: Unsigned) -> Yields:
    """Logarithms of reciprocals of what has no sign: at -0.0 and below the two sides differ."""
    yield log(1 / p), -log(p)


@stable
def logistic(x: Node, y: Node) -> Yields:
    """The logistic function and its logarithm, without overflow."""
    yield logaddexp(x, 0), softplus(x)
    yield log1p(exp(x)), softplus(x)
    yield log(sigmoid(x)), -softplus(-x)
    yield log(exp(x) + exp(y)), logaddexp(x, y)
    yield 1 / (1 + exp(-x)), sigmoid(x)
    yield 1 / (1 + exp(x)), sigmoid(-x)
    yield exp(x) / (1 + exp(x)), sigmoid(x), extending("1 where exp(x) is infinite")
    yield exp(-x) / (1 + exp(-x)), sigmoid(-x), extending("1 where exp(-x) is infinite")
    yield y / (1 + exp(-x)), y * sigmoid(x), extending("a value where exp(-x) and y are infinite")
    yield y / (1 + exp(x)), y * sigmoid(-x), extending("a value where exp(x) and y are infinite")
    yield exp(x) * sigmoid(-x), sigmoid(x), extending("1 where exp(x) is infinite")
    yield exp(-x) * sigmoid(x), sigmoid(-x), extending("1 where exp(-x) is infinite")
    yield exp(x) * (y * sigmoid(-x)), y * sigmoid(x), extending("a value where exp(x) is infinite")
    yield exp(-x) * (y * sigmoid(x)), y * sigmoid(-x), extending("a value where exp(-x) is infinite")


@stable
def hyperbolic(x: Node) -> Yields:
    """Hyperbolic functions, without cancellation and overflow."""
    yield exp(x) - exp(-x), 2 * sinh(x)
    yield exp(-x) - exp(x), -2 * sinh(x)
    yield (2 * sinh(x)) * 0.5, sinh(x)
    yield (-2 * sinh(x)) * 0.5, -sinh(x)
    yield (exp(x) + exp(-x)) / 2, cosh(x)
    yield (exp(x) + exp(-x)) * 0.5, cosh(x)
    yield sinh(x) / cosh(x), tanh(x), extending("1 or -1 where cosh(x) is infinite")
    yield (
        (exp(x) - exp(-x)) / (exp(x) + exp(-x)),
        tanh(x),
        extending("1 or -1 where exp(x) or exp(-x) is infinite"),
    )


@exact
def orders(x: Node) -> Yields:
    """The derivatives of digamma, by their names."""
    yield polygamma(0, x), digamma(x)


@real
def true_of_reals(x: Node, y: Node, c: Constant) -> Yields:
    """Laws of exponentials and logarithms."""
    yield exp(log(x)), x, assuming("x >= 0")
    yield expm1(log1p(x)), x, assuming("x >= -1")
    yield softplus(log(x)), log1p(x), assuming("x >= 0")
    yield log(1 / x), -log(x), assuming("x > 0")
    yield x * log(x), xlogy(x, x), assuming("0 * log(0) is 0")
    yield exp(x) * exp(y), exp(x + y)
    yield exp(x) / exp(y), exp(x - y)
    yield sigmoid(log(x / (1 - x))), x, assuming("0 < x < 1")
    yield sigmoid(logit(x)), x, assuming("0 < x < 1")
    yield exp(-log(x)), 1 / x, assuming("x > 0")
    yield log(power(x, y)), y * log(x), assuming("x > 0")
    yield log(x * exp(y)), log(x) + y, assuming("x > 0")


@real(fuel=1)
def logarithms_of_products(x: Node, y: Node) -> Yields:
    """Logarithms of products."""
    yield log(x * y), log(x) + log(y), assuming("x > 0", "y > 0")
    yield log(expm1(x)), x + log1mexp(-x), assuming("x > 0")


@real(fuel=1)
def quotients(x: Node, y: Node) -> Yields:
    """A product in place of a quotient."""
    yield y / exp(x), y * exp(-x)
