"""Rules of sums of exponentials less the largest of them, and of products with tails: what runs over or cancels is taken out before."""

from __future__ import annotations

import math
from functools import reduce

from tensormagic.ir.node import Node
from tensormagic.ir.rewriting.rules import Found, bare
from tensormagic.ops.scalars.scalar import (
    absolute,
    exp,
    less,
    log,
    log1p,
    logaddexp,
    logical_and,
    maximum,
    multiply,
    softplus,
    where,
)
from tensormagic.ops.scalars.special import erfc, erfcx
from tensormagic.transform.rewriting.notation import stable
from tensormagic.transform.rewriting.sums.terms import as_text, behind, key_of, sum_of
from tensormagic.transform.rewriting.themes.explog import exponentials_of

_PAIR = 2
_FAR = 4.0


@stable(roots="subtract", within="logaddexp log", fuel=1, judged=True, cancels=True)
def logarithms_of_sums_less_a_term(node: Node) -> Found | None:
    """``log(exp(x) + exp(y) + exp(z)) - x -> log1p(exp(y - x) + exp(z - x)) where x is the largest, and so less the maximum of two``."""
    if node.type.dtype.kind != "f":
        return None
    left, right = node.args
    for a, u, sign in ((left, right, 1), (right, left, -1)):
        found = _exponents(a)
        value = found and _less(found[0], u)
        if found is None or not isinstance(value, Node):
            continue
        near = logical_and(
            less(absolute(value), absolute(u) * 0.5), less(absolute(u), math.inf)
        )  # infinities are left to NumPy
        return Found(behind(near, value if sign > 0 else -value, left, right), absorbs=(bare(a), *found[1]))
    return None


def _exponents(node: Node) -> tuple[list[tuple[Node, float]], tuple[Node, ...]] | None:
    """Return exponents with coefficients of the sum of exponentials whose logarithm ``node`` is, and the nodes read; else None."""
    inner = bare(node)
    if inner.op is logaddexp:
        return [(x, 1.0) for x in inner.args], ()
    text = bare(as_text(inner))
    found = exponentials_of(text.args[0]) if text.op is log else None
    if found is None or found[1] or len(found[0]) < _PAIR:
        return None
    return found[0], (text, bare(text.args[0]))


def _less(exponents: list[tuple[Node, float]], u: Node) -> Node | None:
    """Return the logarithm of the sum minus ``u``, if that is one of the exponents or the larger of two, else None."""
    inner = bare(u)
    own = [x for x, t in exponents if bare(x) is inner and t == 1]
    if len(own) == 1:
        others = [(x, t) for x, t in exponents if bare(x) is not inner]
        if len(others) == 1 and others[0][1] == 1:
            return softplus(others[0][0] - u)
        return log1p(reduce(lambda a, b: a + b, [exp(x - u) if t == 1 else t * exp(x - u) for x, t in others]))
    if inner.op is not maximum or len(exponents) != _PAIR or any(t != 1 for _, t in exponents):
        return None
    (x, _), (y, _) = exponents
    return softplus(-absolute(x - y)) if {bare(x), bare(y)} == set(map(bare, inner.args)) else None


@stable(roots="multiply", within="erfc", fuel=1, judged=True, extends="a value where exp(x * x) is infinite")
def products_with_tails(node: Node) -> Found | None:
    """``exp(x * x) * y * erfc(x) -> y * erfcx(x) where x > 4, from where on the exponential shows how the square was rounded``."""
    factors, parts = _factors(node)
    for tail in factors:
        for power in factors if bare(tail).op is erfc else ():
            if bare(power).op is exp and _is_square(bare(power).args[0], bare(tail).args[0]):
                others = [f for f in factors if f is not tail and f is not power]
                far = less(_FAR, bare(tail).args[0])
                scaled = erfcx(where(far, bare(tail).args[0], 1))
                near = exp(where(far, 0, bare(power).args[0])) * erfc(where(far, 0, bare(tail).args[0]))
                value = reduce(multiply, [*others, where(far, scaled, near)])
                return Found(value, absorbs=(bare(tail), bare(power), *parts, bare(bare(power).args[0])))
    return None


@stable(roots="divide", within="erfc", fuel=1, judged=True, extends="a value where erfc(x) is 0")
def quotients_by_tails(node: Node) -> Found | None:
    """``y * exp(-x * x) / erfc(x) -> y / erfcx(x) where x > 4, from where on the exponential shows how the square was rounded``."""
    tops, above = _of_side(node.args[0])
    bottoms, below = _of_side(node.args[1])
    for tail in bottoms:
        for power in tops if bare(tail).op is erfc else ():
            exponent, x = bare(power).args[0] if bare(power).op is exp else None, bare(tail).args[0]
            if exponent is None or not _is_square(exponent, x, times=-1):
                continue
            far = less(_FAR, x)
            near = {power: exp(where(far, 0, exponent)), tail: erfc(where(far, 0, x))}
            others = [f for f in tops if f is not power]
            value = (reduce(multiply, others) if others else 1) / _product(bottoms, {tail: erfcx(where(far, x, 1))})
            text = _product(tops, near) / _product(bottoms, near)
            return Found(where(far, value, text), absorbs=(bare(tail), bare(power), *above, *below, bare(exponent)))
    return None


def _of_side(side: Node) -> tuple[list[Node], list[Node]]:
    """Return the factors of one side of a quotient, and the products they come from."""
    if bare(side).op is not multiply:
        return [side], []
    found, parts = _factors(bare(side))
    return found, [bare(side), *parts]


def _product(factors: list[Node], instead: dict[Node, Node]) -> Node:
    """Return the product of factors, some of them replaced."""
    return reduce(multiply, [instead.get(f, f) for f in factors])


def _factors(node: Node) -> tuple[list[Node], list[Node]]:
    """Return the factors of nested products, and the inner products."""
    found: list[Node] = []
    parts: list[Node] = []
    pool = list(node.args)
    while pool:
        one = pool.pop(0)
        if bare(one).op is multiply and len(parts) < _MOST:
            parts.append(bare(one))
            pool = [*bare(one).args, *pool]
        else:
            found.append(one)
    return found, parts


_MOST = 4


def _is_square(exponent: Node, x: Node, times: int = 1) -> bool:
    """Return whether an exponent is ``times`` the square of ``x``."""
    total = sum_of(exponent)
    if len(total.terms) != 1 or total.number or total.terms[0][2] != times:
        return False
    return key_of(bare(total.terms[0][1])) == ("square", bare(x))
