"""Rules of exponentials, logarithms and their kin, which keep the digits that the naive form loses."""

# pyright: reportUnusedImport=false
# Rules of this theme that stand in files of their own are imported here.
from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import reduce
from itertools import permutations
from math import inf
from math import log as log_of
from typing import Any

import numpy as np

from tensormagic.ir.node import Node
from tensormagic.ir.rewriting.rules import Constant, Found, Positive, Unsigned, assuming, bare, extending
from tensormagic.ops.leaf import constant
from tensormagic.ops.scalars.scalar import (
    absolute,
    add,
    arccos,
    arcsin,
    arctan2,
    arctanh,
    cos,
    cosh,
    divide,
    equal,
    exp,
    expm1,
    hypot,
    isfinite,
    less,
    log,
    log1mexp,
    log1p,
    logaddexp,
    logical_and,
    logical_or,
    maximum,
    multiply,
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
from tensormagic.transform.rewriting.sums.terms import Sum, behind, number_of, sum_of
from tensormagic.transform.rewriting.themes.asymptotes import (  # noqa: F401 (as above)
    differences_of_directions,
    inverse_softplus,
    inverse_tangents_near_one,
    logarithms_beside_exponents,
    logarithms_beside_inverses,
    logarithms_of_rises_beside_exponents,
    products_that_come_to_a_half,
    ratios_of_factorials,
    ratios_of_other_factorials,
)

Rewrites = Iterator[tuple[Any, ...]]


@stable
def near_one(x: Node) -> Rewrites:
    """Functions that keep the digits that adding 1 would round away."""
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


@stable(fuel=1, judged=True)
def cosines(x: Node) -> Rewrites:
    """Cosines near 1 and near -1."""
    near, far = less(0.5, cos(x)), less(cos(x), -0.5)
    yield 1 - cos(x), behind(near, 2 * square(sin(x * 0.5)), 1, cos(x))
    yield cos(x) - 1, behind(near, -2 * square(sin(x * 0.5)), cos(x), 1)
    yield cos(x) + -1, behind(near, -2 * square(sin(x * 0.5)), cos(x), 1)
    yield 1 + cos(x), behind(far, 2 * square(cos(x * 0.5)), 1, -cos(x))


@stable(fuel=1, judged=True)
def hyperbolic_cosines(x: Node) -> Rewrites:
    """Hyperbolic cosines near 1."""
    near, small = less(cosh(x), 2), less(absolute(x), 1.5)
    yield cosh(x) - 1, behind(near, 2 * square(sinh(x * 0.5)), cosh(x), 1)
    yield cosh(x) + -1, behind(near, 2 * square(sinh(x * 0.5)), cosh(x), 1)
    yield 1 - cosh(x), behind(near, -2 * square(sinh(x * 0.5)), 1, cosh(x))
    yield (exp(x) - 2) + exp(-x), behind(small, 4 * square(sinh(x * 0.5)), exp(x) - 2, -exp(-x))
    yield exp(x) + exp(-x) - 2, behind(small, 4 * square(sinh(x * 0.5)), exp(x) + exp(-x), 2)


_FAR = 20.0
"""From here on exp(-2 x) is negligible relative to x."""
_LOG2 = 0.6931471805599453


def _log_cosh(x: Node) -> Node:
    near = less(absolute(x), _FAR)
    return where(near, log1p(2 * square(sinh(where(near, x, 0) * 0.5))), absolute(x) - _LOG2)


def _secant_squared(x: Node) -> Node:
    """Return ``1 - tanh(x)**2``, for large arguments by one exponential."""
    rest = exp(-2 * absolute(x))
    return behind(less(1, absolute(x)), 4 * rest / square(1 + rest), 1, square(tanh(x)))


@stable(fuel=1, judged=True)
def squares_of_hyperbolic_tangents_and_one(x: Node) -> Rewrites:
    """The slope of the hyperbolic tangent, and its logarithm."""
    yield 1 - square(tanh(x)), _secant_squared(x)
    yield square(tanh(x)) - 1, -_secant_squared(x)
    yield log(_secant_squared(x)), -2 * _log_cosh(x)


@stable(fuel=1)
def logarithms_of_cosines(x: Node) -> Rewrites:
    """The logarithm of the hyperbolic cosine, near 0 and without overflow."""
    yield log(cosh(x)), _log_cosh(x)
    yield log1p(-square(tanh(x))), -2 * _log_cosh(x)
    yield log1p(-(tanh(x) * tanh(x))), -2 * _log_cosh(x)


def _log_beside_one(f: Node, near: Node, rest: Node) -> Node:
    """Return the logarithm of ``f``, by ``rest``, which is ``1 - f``, where that is small."""
    return where(near, log1p(-where(near, rest, 0)), log(where(near, 1, f)))


_CLOSE = 0.875
"""From here on the logarithm of a number near 1 shows that number's rounding more than its own."""


@stable(fuel=1, judged=True)
def logarithms_of_sines_near_one(x: Node) -> Rewrites:
    """The logarithm of a sine near 1, by its cosine."""
    cosine = square(cos(x))
    yield log(sin(x)), _log_beside_one(sin(x), less(_CLOSE, sin(x)), cosine / (1 + sin(x)))


@stable
def hyperbolic_tangents(x: Node) -> Rewrites:
    """Hyperbolic tangents, and the inverse, by formulas that cancel."""
    yield log((1 + x) / (1 - x)), 2 * arctanh(x)
    yield log((1 - x) / (1 + x)), -2 * arctanh(x)
    yield 2 * sigmoid(x) - 1, tanh(x * 0.5)
    yield 2 * sigmoid(x) + -1, tanh(x * 0.5)


@stable
def symmetries(x: Node) -> Rewrites:
    """Odd functions pass a sign on, and even ones drop it."""
    yield sin(-x), -sin(x)
    yield sinh(-x), -sinh(x)
    yield tanh(-x), -tanh(x)
    yield erf(-x), -erf(x)
    yield cos(-x), cos(x)
    yield cosh(-x), cosh(x)


@stable
def inverses(x: Node, p: Positive) -> Rewrites:
    """Inverse functions cancel: the exact result in place of two roundings and an overflow."""
    yield log(exp(x)), x
    yield exp(log(p)), p
    yield log1p(expm1(x)), x
    yield logit(sigmoid(x)), x
    yield log(sigmoid(x) / sigmoid(-x)), x


@stable(fuel=1)
def roots_and_squares(x: Node) -> Rewrites:
    """Logarithms of roots and squares, which lose digits near 1 and overflow."""
    yield log(sqrt(x)), 0.5 * log(x)
    yield log(square(x)), 2 * log(absolute(x))


@stable
def reciprocals(p: Unsigned) -> Rewrites:
    """Logarithms of reciprocals of what has no sign: at -0.0 and below the two sides differ."""
    yield log(1 / p), -log(p)


@stable
def logistic(x: Node, y: Node) -> Rewrites:
    """The logistic function and its logarithm, without overflow."""
    yield logaddexp(x, 0), softplus(x)
    yield log1p(exp(x)), softplus(x)
    yield log(sigmoid(x)), -softplus(-x)
    yield log(exp(x) + exp(y)), logaddexp(x, y)
    yield logaddexp(x, y) - x, softplus(y - x), extending("a value where x is infinite")
    yield 1 / (1 + exp(-x)), sigmoid(x)
    yield 1 / (1 + exp(x)), sigmoid(-x)
    yield exp(x) / (1 + exp(x)), sigmoid(x), extending("1 where exp(x) is infinite")
    yield y / (1 + exp(-x)), y * sigmoid(x), extending("a value where exp(-x) and y are infinite")
    yield y / (1 + exp(x)), y * sigmoid(-x), extending("a value where exp(x) and y are infinite")
    yield exp(x) * sigmoid(-x), sigmoid(x), extending("1 where exp(x) is infinite")
    yield exp(-x) * sigmoid(x), sigmoid(-x), extending("1 where exp(-x) is infinite")
    yield exp(x) * (y * sigmoid(-x)), y * sigmoid(x), extending("a value where exp(x) is infinite")
    yield exp(-x) * (y * sigmoid(x)), y * sigmoid(-x), extending("a value where exp(-x) is infinite")


def _slope(x: Node) -> Node:
    smaller = sigmoid(-absolute(x))
    return smaller - square(smaller)


@stable(fuel=1)
def logistic_slopes(x: Node) -> Rewrites:
    """The slope of the logistic function, by its smaller side alone."""
    yield sigmoid(x) * sigmoid(-x), _slope(x)


@stable
def hyperbolic(x: Node) -> Rewrites:
    """Hyperbolic functions, without cancellation and overflow."""
    yield exp(x) - exp(-x), 2 * sinh(x)
    yield exp(-x) - exp(x), -2 * sinh(x)
    yield (2 * sinh(x)) * 0.5, sinh(x)
    yield (-2 * sinh(x)) * 0.5, -sinh(x)
    yield (exp(x) + exp(-x)) * 0.5, cosh(x)
    yield sinh(x) / cosh(x), tanh(x), extending("1 or -1 where cosh(x) is infinite")
    yield (
        (2 * sinh(x)) / (exp(x) + exp(-x)),
        tanh(x),
        extending("1 or -1 where exp(x) or exp(-x) is infinite"),
    )


@exact
def orders(x: Node) -> Rewrites:
    """The derivatives of digamma, by their names."""
    yield polygamma(0, x), digamma(x)


@real
def terms_of_entropies(x: Node) -> Rewrites:
    """A number times its logarithm, which is 0 at 0."""
    yield x * log(x), xlogy(x, x), assuming("0 * log(0) is 0")


@real
def true_of_reals(x: Node, y: Node, c: Constant) -> Rewrites:
    """Laws of exponentials and logarithms."""
    yield exp(log(x)), x, assuming("x >= 0")
    yield expm1(log1p(x)), x, assuming("x >= -1")
    yield softplus(log(x)), log1p(x), assuming("x >= 0")
    yield log(1 / x), -log(x), assuming("x > 0")
    yield exp(x) * exp(y), exp(x + y)
    yield exp(x) / exp(y), exp(x - y)
    yield sigmoid(logit(x)), x, assuming("0 < x < 1")
    yield exp(-log(x)), 1 / x, assuming("x > 0")
    yield log(power(x, y)), y * log(x), assuming("x > 0")
    yield log(x * exp(y)), log(x) + y, assuming("x > 0")


@real(fuel=1)
def logarithms_of_products(x: Node, y: Node) -> Rewrites:
    """Logarithms of products."""
    yield log(x * y), log(x) + log(y), assuming("x > 0", "y > 0")


@real(fuel=1)
def quotients(x: Node, y: Node) -> Rewrites:
    """A product in place of a quotient."""
    yield y / exp(x), y * exp(-x)


# sums of exponentials -------------------------------------------------------------------------------------------------


def exponentials_of(node: Node) -> tuple[list[tuple[Node, float]], float] | None:
    """Return the exponents of a sum of exponentials with their coefficients, and its number, or None if a coefficient is not positive."""
    total = sum_of(node)
    if any(bare(n).op is not exp or t <= 0 for _, n, t in total.terms) or not total.terms or total.number < 0:
        return None
    return [(bare(n).args[0], float(t)) for _, n, t in total.terms], float(total.number)


def _total(exponents: list[tuple[Node, float]], number: float, less_: Node) -> Node:
    """Return the sum of exponentials with ``less_`` subtracted from all exponents."""
    ones = sum(times for x, times in exponents if bare(x) is bare(less_))
    exponents = [(x, times) for x, times in exponents if bare(x) is not bare(less_)]
    parts = [exp(x - less_) if times == 1 else times * exp(x - less_) for x, times in exponents]
    if number:
        parts.append(exp(-less_) if number == 1 else number * exp(-less_))
    return reduce(add, parts, *([constant(ones)] if ones else []))


def _is_scaled(exponents: Sequence[Node]) -> bool:
    """Return whether the largest exponent has been subtracted already, so that the sum neither overflows nor underflows."""
    sums = [sum_of(x) for x in exponents]
    for key, taken, times in sums[0].terms:
        largest = bare(taken)
        if (
            largest.op is where and bare(largest.args[0]).op is isfinite
        ):  # the largest exponent has been subtracted, except for infinities
            largest = bare(largest.args[1])
        if times != -1 or largest.op is not maximum:
            continue
        off = Sum(((key, taken, times),), Fraction(0))
        rest = [s.minus(off) for s in sums]
        if all(any(k == key for k, _, _ in s.terms) for s in sums) and all(
            any(not len(r.minus(sum_of(one))) for r in rest) for one in _largest_of(largest)
        ):
            return True
    return False


def _largest_of(node: Node) -> list[Node]:
    """Return the operands that ``node`` is the maximum of."""
    inner = bare(node)
    return [n for a in inner.args for n in _largest_of(a)] if inner.op is maximum else [inner]


def _ordinary(total: Node) -> Node:
    """Return the condition that a sum has neither overflowed nor lost digits by underflow."""
    info = np.finfo(total.type.dtype.type)
    return logical_and(isfinite(total), less(float(info.tiny / info.eps), total))


@stable(roots="log log1p", fuel=1, judged=True, extends="a value where an exponential is infinite or 0")
def logarithms_of_exponentials(node: Node) -> Found | None:
    """``log(exp(x) + exp(y) + exp(z)) -> with the largest exponent taken off, where the sum runs over or under, and for multiples``."""
    found = exponentials_of(node.args[0])
    one = node.op is log1p
    if found is None or len(found[0]) + bool(found[1]) + one < 2 or node.type.dtype.kind != "f":
        return None
    exponents, number = found[0], found[1] + one
    if not number and _is_scaled([x for x, _ in exponents]):
        return None
    largest = reduce(maximum, [x for x, _ in exponents], *([constant(0.0)] if number else []))
    largest = where(isfinite(largest), largest, 0)
    if sum(t for _, t in exponents) + number == 1:
        rises = [t * expm1(x - largest) for x, t in exponents] + ([number * expm1(-largest)] if number else [])
        return Found(largest + log1p(reduce(add, rises)), absorbs=(bare(node.args[0]),))
    ordinary = isfinite(node.args[0]) if one else _ordinary(node.args[0])
    value = largest + log(_total(exponents, number, largest))
    return Found(
        where(ordinary, (log1p if one else log)(where(ordinary, node.args[0], 1)), value), absorbs=(bare(node.args[0]),)
    )


def _weighted(node: Node) -> list[tuple[Node, Node]] | None:
    """Return factors and exponents of a sum whose terms each have one exponential, or None for other sums."""
    found: list[tuple[Node, Node]] = []
    total = sum_of(node)
    for _, term, times in total.terms:
        pair = split(bare(term))
        if pair is None:
            return None
        weight, exponent = pair
        found.append((weight if times == 1 else weight * float(times), exponent))
    return found if len(found) > 1 and not total.number else None


def split(term: Node, depth: int = 3) -> tuple[Node, Node] | None:
    """Return a product as a factor and the exponent of its only exponential, or None."""
    if term.op is exp:
        return constant(1.0), term.args[0]
    if not depth or term.op not in {multiply, divide}:
        return None
    first, second = term.args
    pair = split(bare(first), depth - 1)
    if pair is not None:
        return (pair[0] * second if term.op is multiply else pair[0] / second), pair[1]
    pair = split(bare(second), depth - 1) if term.op is multiply else None
    return None if pair is None else (first * pair[0], pair[1])


@stable(roots="log", heads="add", fuel=1, judged=True, extends="a value where an exponential is infinite or 0")
def logarithms_of_mixtures(node: Node) -> Found | None:
    """``log(v * exp(x) + w * exp(y)) -> with the larger exponent taken off, where the sum runs over or under``."""
    total = node.args[0]
    found = _weighted(total) if node.type.dtype.kind == "f" and exponentials_of(total) is None else None
    if found is None:
        return None
    if _is_scaled([x for _, x in found]):
        return None
    largest = reduce(maximum, [x for _, x in found])
    largest = where(isfinite(largest), largest, 0)
    ordinary = _ordinary(total)
    rest = reduce(add, [w * exp(x - largest) for w, x in found])
    return Found(where(ordinary, log(where(ordinary, total, 1)), largest + log(rest)), absorbs=(bare(total),))


def _sums(node: Node) -> list[Node]:
    """Return a sum, and the sums among its terms."""
    inner = bare(node)
    return [inner, *(s for a in inner.args for s in _sums(a))] if inner.op is add else []


@stable(roots="divide", heads="exp add", fuel=1, judged=True, extends="a value where an exponential is infinite")
def quotients_of_sums(node: Node) -> Found | None:
    """``exp(x) / (exp(x) + exp(y)) -> 1 / (1 + exp(y - x)), where the sum runs over or under``."""
    top = bare(node.args[0])
    found = exponentials_of(node.args[1]) if top.op is exp and node.type.dtype.kind == "f" else None
    if found is None or _is_scaled([x for x, _ in found[0]]):
        return None
    ordinary = logical_or(_ordinary(node.args[1]), equal(top.args[0], -inf))
    other = 1 / _total(*found, top.args[0])
    return Found(
        where(ordinary, node.args[0] / where(ordinary, node.args[1], 1), other), absorbs=(top, *_sums(node.args[1]))
    )


@stable(roots="log", heads="multiply", fuel=1, judged=True)
def logarithms_of_tails(node: Node) -> Found | None:
    """``log(c * erfc(x)) -> log_erfc(x) + log(c) where x > 1``."""
    product = bare(node.args[0])
    if product.op is not multiply:  # a check or a move may be in between
        return None
    for c, tail in permutations(map(bare, product.args)):
        times = number_of(c)
        if times is None or not 0 < times <= 1 or tail.op is not erfc:
            continue
        far = less(1, tail.args[0])
        near = log(where(far, 1, node.args[0]))
        if times == 0.5:  # 1 minus half of the other tail
            half = 0.5 * erfc(absolute(where(far, 1, tail.args[0])))
            left = less(tail.args[0], 0)
            near = where(left, log1p(-half), log(where(left, 1, half)))
        return Found(where(far, log_erfc(tail.args[0]) + log_of(times), near), absorbs=(product, tail))
    return None


@stable
def angles(x: Node, y: Node) -> Rewrites:
    """Angles of vectors, near the axes too."""
    yield arccos(x / hypot(x, y)), arctan2(absolute(y), x), extending("a value where x and y are 0")
    yield arcsin(x / hypot(x, y)), arctan2(x, absolute(y)), extending("a value where x and y are 0")


@real(fuel=1)
def exponentials_of_logarithms(x: Node, y: Node, c: Constant) -> Rewrites:
    """Exponentials of logarithms, as powers and products."""
    yield exp(log(x) + y), x * exp(y), assuming("x > 0")
    yield exp(y - log(x)), exp(y) / x, assuming("x > 0")
    yield exp(log(x) * c), power(x, c), assuming("x > 0")
    yield exp((log(x) + y) * c), power(x, c) * exp(y * c), assuming("x > 0")
