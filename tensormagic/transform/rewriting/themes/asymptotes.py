"""Rules of functions that come near each other: their difference far out, and what runs over on the way there."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import reduce
from typing import Any

import numpy as np

from tensormagic.ir.node import Node
from tensormagic.ir.rewriting.rules import Found, bare, extending
from tensormagic.ops.scalars.scalar import (
    absolute,
    add,
    arccosh,
    arcsinh,
    arctan2,
    arctanh,
    cosh,
    exp,
    expm1,
    isfinite,
    less,
    log,
    log1mexp,
    log1p,
    logical_and,
    sinh,
    sqrt,
    square,
    where,
)
from tensormagic.ops.scalars.special import gammaln
from tensormagic.transform.rewriting.notation import stable
from tensormagic.transform.rewriting.sums.forms import nearer
from tensormagic.transform.rewriting.sums.terms import behind, difference, sum_of

Rewrites = Iterator[tuple[Any, ...]]


def _beyond_inverse_cosine(x: Node) -> Node:
    """Return ``arccosh(x) - log(2 * x)``, by ``1 / x``."""
    t = 1 / x
    return log1p(-square(t) * 0.5 / (1 + sqrt((1 - t) * (1 + t))))


def _beyond_inverse_sine(x: Node) -> Node:
    """Return ``arcsinh(x) - log(2 * x)``, by ``1 / x``."""
    t = square(1 / x)
    return log1p(t * 0.5 / (1 + sqrt(1 + t)))


_INVERSES: dict[Any, Callable[[Node], Node]] = {arccosh: _beyond_inverse_cosine, arcsinh: _beyond_inverse_sine}
_BEYOND = 1.5
"""From this argument on the difference is less than half of the functions."""


@stable(roots="subtract", heads="log", fuel=1, judged=True, extends="a value where 2 * x is infinite")
def logarithms_beside_inverses(node: Node) -> Found | None:
    """``arccosh(x) - log(2 * x) -> by 1 / x, where x is large; and for arcsinh``."""
    for (a, b), sign in ((node.args, 1), (node.args[::-1], -1)):
        inner, logarithm = bare(a), bare(b)
        if inner.op not in _INVERSES or logarithm.op is not log or node.type.dtype.kind != "f":
            continue
        x = inner.args[0]
        if len(sum_of(logarithm.args[0]).minus(sum_of(x).times(2))):
            continue
        far = less(_BEYOND, x)
        value = _INVERSES[inner.op](where(far, x, 2))
        form = behind(far, value if sign > 0 else -value, *node.args)
        return Found(form, absorbs=(inner, logarithm, *(n for n in (bare(logarithm.args[0]),) if n.args)))
    return None


def _inverse_softplus(x: Node) -> Node:
    """Return ``log(expm1(x))``, the inverse of softplus, without overflow."""
    far = less(2, x)
    return where(far, x + log1mexp(where(far, -x, -1)), log(where(far, 1, expm1(x))))


@stable(fuel=1, judged=True)
def inverse_softplus(x: Node) -> Rewrites:
    """The inverse of softplus, without overflow."""
    yield log(expm1(x)), _inverse_softplus(x)


@stable(fuel=1, judged=True)
def logarithms_beside_exponents(x: Node) -> Rewrites:
    """Logarithms of hyperbolic sines minus their argument, which they approach."""
    wider = extending("a value where the function runs over")
    yield log(2 * sinh(x)) - x, log1mexp(-2 * x), wider
    yield x - log(2 * sinh(x)), -log1mexp(-2 * x), wider


@stable(roots="subtract", heads="where", fuel=1, judged=True, extends="a value where exp(x) is infinite")
def logarithms_of_rises_beside_exponents(node: Node) -> Found | None:
    """``log(expm1(x)) - x -> log1mexp(-x), and the other way round``."""
    for (a, b), sign in ((node.args, 1), (node.args[::-1], -1)):
        form = bare(a)
        if form.op is where and _is_inverse_softplus(bare(form.args[2]), b):
            value = log1mexp(-b)
            return Found(value if sign > 0 else -value, absorbs=(form,))
    return None


def _is_inverse_softplus(text: Node, x: Node) -> bool:
    """Return whether the last branch is ``log(expm1(x))``."""
    guard = bare(text.args[0]) if text.op is log else text
    inner = bare(guard.args[2]) if guard.op is where else guard
    return inner.op is expm1 and bare(inner.args[0]) is bare(x)


def _half_of_rise(x: Node) -> Node:
    """Return ``exp(-x) * sinh(x)``, for x above 1 in a form near one half that does not overflow."""
    near = less(1, x)
    return where(near, -0.5 * expm1(-2 * where(near, x, 0)), exp(-x) * sinh(where(near, 0, x)))


@stable(fuel=1, judged=True)
def products_that_come_to_a_half(x: Node) -> Rewrites:
    """Products of hyperbolic functions with the exponential that makes them approach one half, without overflow."""
    wider = extending("a value where a factor is infinite")
    yield exp(-x) * cosh(x), 0.5 + (0.5 * exp(-x)) * exp(-x), wider
    yield exp(x) * cosh(x), 0.5 + (0.5 * exp(x)) * exp(x), wider
    yield exp(-x) * sinh(x), _half_of_rise(x), wider
    yield exp(x) * sinh(x), -_half_of_rise(-x), wider


@stable(fuel=1)
def ratios_of_factorials(x: Node) -> Rewrites:
    """Differences of neighbouring values of ``gammaln``."""
    wider = extending("a value where both sides are infinite")
    yield gammaln(x + 1) - gammaln(x), log(absolute(x)), wider
    yield gammaln(x) - gammaln(x + 1), -log(absolute(x)), wider


_STEPS = 3


@stable(roots="subtract", heads="gammaln", fuel=1, judged=True, extends="a value where both sides are infinite")
def ratios_of_other_factorials(node: Node) -> Node | None:
    """``gammaln(x + 2) - gammaln(x) -> log(abs(x)) + log(abs(x + 1)), and for three such steps``."""
    first, second = map(bare, node.args)
    if first.op is not gammaln or second.op is not gammaln:
        return None
    apart_ = sum_of(first.args[0]).minus(sum_of(second.args[0]))
    steps = abs(apart_.number)
    if apart_.terms or steps.denominator != 1 or not 1 < steps <= _STEPS:
        return None
    low = second.args[0] if apart_.number > 0 else first.args[0]
    value = reduce(add, [log(absolute(low + float(k) if k else low)) for k in range(int(steps))])
    return value if apart_.number > 0 else -value


def _between(cross: Node, dot: Node, a: Node, b: Node) -> Node:
    """Return the angle between two nearly parallel vectors by their cross and dot products, else the difference of two angles."""
    info = np.finfo(dot.type.dtype.type)
    near = logical_and(nearer(a, b), logical_and(less(float(info.tiny / info.eps), dot), isfinite(dot)))
    return behind(near, arctan2(cross, dot), a, b)


@stable(roots="subtract", heads="arctan2", fuel=1, judged=True)
def differences_of_directions(node: Node) -> Found | None:
    """``arctan2(y, x) - arctan2(y, z) -> arctan2(y * (z - x), x * z + y * y) where both are near, for either coordinate``."""
    first, second = map(bare, node.args)
    if first.op is not arctan2 or second.op is not arctan2 or node.type.dtype.kind != "f":
        return None
    (y, x), (v, u) = first.args, second.args
    if bare(y) is bare(v):
        rest = y * difference(u, x)
    elif bare(x) is bare(u):
        rest = x * difference(y, v)
    else:
        return None
    return Found(_between(rest, x * u + y * v, *node.args), absorbs=(first, second))


@stable(fuel=1, judged=True)
def inverse_tangents_near_one(x: Node) -> Rewrites:
    """The inverse hyperbolic tangent near 1 and -1."""
    near = less(square(x), x * 0.5)  # this also implies x > 0
    odds = log((2 - x) / where(near, x, 1))
    yield arctanh(1 - x), where(near, 0.5 * odds, arctanh(where(near, 0, 1 - x)))
    yield arctanh(x - 1), where(near, -0.5 * odds, arctanh(where(near, 0, x - 1)))
