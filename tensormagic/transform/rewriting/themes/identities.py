"""Identities of functions: what a search over all small expressions has found to keep digits that the written form loses.

`scripts/find_rules.py` is the search. A form that wins everywhere stands alone; one that wins on one side of a bound stands behind it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

from tensormagic.ir.node import Node
from tensormagic.ir.rewriting.rules import Found, bare, extending
from tensormagic.ops.scalars.scalar import (
    absolute,
    arccos,
    arccosh,
    arcsin,
    arcsinh,
    arctanh,
    cos,
    cosh,
    exp,
    expm1,
    less,
    log1p,
    log2,
    log10,
    logical_and,
    multiply,
    sigmoid,
    sin,
    sinh,
    softplus,
    sqrt,
    square,
    tan,
    tanh,
    where,
)
from tensormagic.transform.rewriting.notation import stable
from tensormagic.transform.rewriting.sums.terms import behind, number_of, sum_of, written

Rewrites = Iterator[tuple[Any, ...]]

_LARGE = 2.0**15
"""Up to here twice an angle is accurate enough in all dtypes."""
_LOG_2 = math.log(2)
_LOG2, _LOG10 = 1 / math.log(2), 1 / math.log(10)


@stable
def inverses_of_hyperbolics(x: Node) -> Rewrites:
    """Inverse functions cancel, without overflow."""
    yield arcsinh(sinh(x)), x
    yield arctanh(tanh(x)), x
    yield log2(exp(x)), x * _LOG2
    yield log10(exp(x)), x * _LOG10
    yield expm1(x) + 1, exp(x)


@stable
def sums_of_hyperbolics(x: Node) -> Rewrites:
    """Sums and differences of hyperbolic functions and exponentials."""
    yield sinh(x) + cosh(x), exp(x), extending("0 where both are infinite")
    yield cosh(x) - sinh(x), exp(-x), extending("a value where both are infinite")
    yield sinh(x) - cosh(x), -exp(-x), extending("a value where both are infinite")
    yield exp(x) - cosh(x), sinh(x), extending("a value where both are infinite")
    yield cosh(x) / sinh(x), 1 / tanh(x), extending("a value where both are infinite")
    yield sinh(x) / (1 + cosh(x)), tanh(x * 0.5), extending("a value where both are infinite")
    yield softplus(x) - x, softplus(-x), extending("a value where x is infinite")


def _over_expm1(x: Node) -> Node:
    positive = less(0, x)
    return where(positive, -1 / expm1(-x), exp(x) / where(positive, 1, expm1(x)))


@stable(fuel=1, judged=True)
def quotients_of_exponentials(x: Node) -> Rewrites:
    """Quotients of exponentials, without overflow."""
    yield expm1(x) / exp(x), -expm1(-x), extending("a value where both are infinite")
    yield expm1(x) * exp(-x), -expm1(-x), extending("a value where exp(x) is infinite")
    yield expm1(-x) * exp(x), -expm1(x), extending("a value where exp(-x) is infinite")
    yield exp(x) / expm1(x), _over_expm1(x), extending("a value where both are infinite")
    yield expm1(x) / (exp(x) + 1), tanh(x * 0.5), extending("1 where exp(x) is infinite")


@stable(fuel=1, judged=True)
def double_angles(x: Node) -> Rewrites:
    """The cosine of a double angle."""
    bounded = less(absolute(x), _LARGE)
    yield square(cos(x)) - square(sin(x)), behind(bounded, cos(2 * x), square(cos(x)), square(sin(x)))
    yield square(sin(x)) - square(cos(x)), behind(bounded, -cos(2 * x), square(sin(x)), square(cos(x)))


@stable(fuel=1, judged=True)
def tangents_less_sines(x: Node) -> Rewrites:
    """Tangents minus sines, as a product."""
    half = square(sin(x * 0.5))
    yield tan(x) - sin(x), behind(less(half, 0.125), 2 * tan(x) * half, tan(x), sin(x))
    yield sin(x) - tan(x), behind(less(half, 0.125), -2 * tan(x) * half, sin(x), tan(x))


_FLAT = 1.0
"""From here on the logistic function's tail is no worse than 1 - tanh(x)."""
_STEEP = 0.875
"""From here on a square divided by a sum is as accurate as 1 minus a sine."""


@stable(fuel=1, judged=True)
def hyperbolic_tangents_and_one(x: Node) -> Rewrites:
    """One plus or minus a hyperbolic tangent or a sine near 1."""
    yield 1 - tanh(x), behind(less(_FLAT, x), 2 * sigmoid(-2 * x), 1, tanh(x))
    yield 1 + tanh(x), behind(less(x, -_FLAT), 2 * sigmoid(2 * x), 1, -tanh(x))
    yield tanh(x) - 1, behind(less(_FLAT, x), -2 * sigmoid(-2 * x), tanh(x), 1)
    yield tanh(x) + -1, behind(less(_FLAT, x), -2 * sigmoid(-2 * x), tanh(x), 1)
    yield -1 - tanh(x), behind(less(x, -_FLAT), -2 * sigmoid(2 * x), -1, tanh(x))
    top, bottom = less(_STEEP, sin(x)), less(sin(x), -_STEEP)
    yield 1 - sin(x), behind(top, square(cos(x)) / (1 + absolute(sin(x))), 1, sin(x))
    yield 1 + sin(x), behind(bottom, square(cos(x)) / (1 + absolute(sin(x))), 1, -sin(x))


def _near_one(f: Any, x: Node, scale: float, whole: Node) -> Node:
    near = less(absolute(x), 0.5)
    return where(near, log1p(x) * scale, f(where(near, 1, whole)))


@stable(fuel=1, judged=True)
def logarithms_near_one(x: Node) -> Rewrites:
    """Logarithms of other bases near 1; elsewhere powers of the base keep their integer logarithms."""
    yield log2(1 + x), _near_one(log2, x, _LOG2, 1 + x)
    yield log2(1 - x), _near_one(log2, -x, _LOG2, 1 - x)
    yield log10(1 + x), _near_one(log10, x, _LOG10, 1 + x)
    yield log10(1 - x), _near_one(log10, -x, _LOG10, 1 - x)


_RIGHT = math.pi / 2


def _root_of_half(f: Any, text: Any, x: Node, whole: Node, inside: Node) -> Node:
    """Return twice ``f`` of the root of half of ``x`` where ``inside``, elsewhere the text."""
    return where(inside, 2 * f(sqrt(where(inside, x, 1) * 0.5)), text(where(inside, 1, whole)))


@stable(fuel=1, judged=True)
def angles_near_one(x: Node) -> Rewrites:
    """Inverse trigonometric and hyperbolic functions near 1."""
    below_half = less(square(x), x * 0.5)  # this also implies x > 0
    yield arccos(1 - x), _root_of_half(arcsin, arccos, x, 1 - x, below_half)
    yield arccos(-expm1(x)), _root_of_half(arcsin, arccos, exp(x), -expm1(x), less(x, -_LOG_2))
    angle = arcsin(where(below_half, sqrt(where(below_half, x, 0) * 0.5), 1 - x))
    yield arcsin(1 - x), where(below_half, _RIGHT - 2 * angle, angle)
    yield arccosh(1 + x), _root_of_half(arcsinh, arccosh, x, 1 + x, less(square(x), x))


def _between(x: Node, y: Node) -> Node:
    """Return whether two angles are near each other and not so large that their difference is lost."""
    return logical_and(less(absolute(x - y), 0.5), less(absolute(x), _LARGE))


@stable(fuel=1, judged=True)
def differences_of_angles(x: Node, y: Node) -> Rewrites:
    """The sine of a difference of angles that are near each other."""
    near = _between(x, y)
    yield (
        sin(x) * cos(y) - cos(x) * sin(y),
        where(near, sin(x - y), sin(x) * cos(y) - where(near, 0, cos(x)) * sin(y)),
    )


@stable(fuel=1, judged=True)
def differences_of_exponents(x: Node, y: Node) -> Rewrites:
    """Hyperbolic functions of a difference, or a sum, that is small."""
    near, opposite = less(absolute(x - y), 1), less(absolute(x + y), 1)
    wider = extending("a value where the factors are infinite")
    yield cosh(x) * cosh(y) - sinh(x) * sinh(y), behind(near, cosh(x - y), cosh(x) * cosh(y), sinh(x) * sinh(y)), wider
    yield (
        cosh(x) * cosh(y) + sinh(x) * sinh(y),
        behind(opposite, cosh(x + y), cosh(x) * cosh(y), -(sinh(x) * sinh(y))),
        wider,
    )
    yield sinh(x) * cosh(y) - cosh(x) * sinh(y), behind(near, sinh(x - y), sinh(x) * cosh(y), cosh(x) * sinh(y)), wider


@stable(roots="where", within="sigmoid", neutral=True, judged=True)
def tangents_by_one_function(node: Node) -> Found | None:
    """1 + tanh(x) -> 2 * sigmoid(2 * x) on both sides of -1.

    It comes last: the choice says to a logarithm around it that it is of ``tanh(x)`` beside 1. Where nothing has asked for that, one
    function is enough. The error of the logistic one is 0.9 units at most, that of the sum 1.0.
    """
    sides = written(node)
    if sides is None:
        return None
    form = bare(node.args[1])
    total = sum_of(sides[0]).minus(sum_of(sides[1]))
    if form.op is not multiply or len(total.terms) != 1 or abs(total.number) != 1:
        return None
    factor, function = number_of(bare(form.args[0])), bare(form.args[1])
    ((_, tangent, times),) = total.terms
    if function.op is not sigmoid or tangent.op is not tanh or abs(times) != 1 or factor != 2 * total.number:
        return None
    if not _is_multiple(function.args[0], tangent.args[0], 2 * times * total.number):
        return None
    return Found(node.args[1], absorbs=(bare(node.args[2]),))


def _is_multiple(node: Node, of: Node, factor: Fraction) -> bool:
    inner = bare(node)
    if inner.op is multiply and number_of(bare(inner.args[0])) == factor and bare(inner.args[1]) is bare(of):
        return True
    return not len(sum_of(node).minus(sum_of(of).times(factor)))


def has_two_forms(node: Node) -> bool:
    """Return whether a node may be the choice between two forms that ``tangents_by_one_function`` removes (a quick test)."""
    form = bare(node.args[1]) if node.op is where else node
    return form is not node and form.op is multiply and bare(form.args[1]).op is sigmoid
