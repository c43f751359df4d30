"""Rules of functions near the places where they have no slope, or stop: roots of what goes to 0, angles near 1."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from math import isqrt
from typing import Any

from tensormagic.ir.node import Node
from tensormagic.ir.rules import Found, bare
from tensormagic.ops.leaf import constant
from tensormagic.ops.scalars.lengths import log_hypot
from tensormagic.ops.scalars.scalar import (
    absolute,
    add,
    arccos,
    arccosh,
    arcsin,
    arcsinh,
    cosh,
    divide,
    hypot,
    less,
    logical_and,
    multiply,
    sqrt,
    subtract,
    where,
)
from tensormagic.transform.rewriting.apart import known
from tensormagic.transform.rewriting.less_products import less_product
from tensormagic.transform.rewriting.notation import stable
from tensormagic.transform.rewriting.rationals import over_common
from tensormagic.transform.rewriting.terms import Apart, Sum, behind, sum_of

Rewrites = Iterator[tuple[Any, ...]]


def _root_of(value: Fraction) -> Fraction | None:
    """The root of a number, where it is a number of the machine."""
    p, q = isqrt(value.numerator), isqrt(value.denominator)
    root = Fraction(p, q)
    return root if root * root == value and Fraction(float(root)) == root else None


def _power_of_two(value: Fraction) -> bool:
    return all(n & (n - 1) == 0 for n in (value.numerator, value.denominator))


def _less_quotient(p: Node, q: Node) -> Node:
    """``1 - |p / q|``, without the rounding of the quotient near 1."""
    p, q = absolute(p), absolute(q)
    near = less(absolute(p / q - 1.25), 0.75)
    return behind(near, (q - p) / q, constant(1.0), p / q)


@stable(roots="sqrt", fuel=1, judged=True)
def roots_of_squares_less_a_number(node: Node) -> Found | None:
    """``sqrt(1 - x * x) -> sqrt((1 - x) * (1 + x)), and sqrt(x * x - 1), for squares of other numbers, too``."""
    below = bare(node.args[0])
    total = sum_of(below) if below.op in {add, subtract} and node.type.dtype.kind == "f" else None
    if total is None or len(total.terms) != 1:
        return None
    ((key, _, times),) = total.terms
    if not isinstance(key, tuple) or times * total.number >= 0:
        return None
    factor, number = _root_of(abs(times)), _root_of(abs(total.number))
    if factor is None or number is None or not _power_of_two(factor):
        return None
    x = key[1] if factor == 1 else key[1] * float(factor)
    one = constant(float(number))
    if times < 0:
        quotient = bare(key[1])
        rest = one - x
        if (
            quotient.op is divide and factor == number == 1 and not bare(quotient.args[0]).args
        ):  # else two roundings may cancel
            x, rest = absolute(quotient.args[0]) / absolute(quotient.args[1]), _less_quotient(*quotient.args)
        return Found(sqrt(rest * (one + x)), absorbs=(below,))
    x = absolute(x)  # at -1 the product is -0
    return Found(sqrt((x - one) * (x + one)), absorbs=(below,))


@stable(roots="arccos arccosh", fuel=1, judged=True)
def angles_by_what_is_less_than_one(node: Node) -> Found | None:
    """``arccos((a * a + b * b - c * c) / (2 * a * b)) -> by 1 less the quotient, where that is small, for all that have such a form``."""
    u = node.args[0]
    if bare(u).op not in {add, subtract, divide, multiply, where} or node.type.dtype.kind != "f":
        return None
    inner = bare(u)
    if inner.op is where and bare(inner.args[1]).op is cosh and node.op is arccosh:
        near = inner.args[0]
        value = where(near, absolute(bare(inner.args[1]).args[0]), arccosh(where(near, 1, inner.args[2])))
        return Found(value, absorbs=(inner, bare(inner.args[1])))
    total, one = sum_of(u), constant(1.0)
    if total.number == 1 and total.terms:
        rest = Sum(tuple((k, n, -t) for k, n, t in total.terms), Fraction(0)).node()
        found = Apart(rest, less(absolute(rest), 0.5) if isinstance(rest, Node) else None, (bare(u),))
    else:
        found = over_common(one, u, known) or known(one, u) or less_product(one, u)
    if found is None or found.near is None or not isinstance(found.value, Node):
        return None
    near = logical_and(found.near, less(absolute(found.value), 0.5))
    less_ = where(near, found.value, 0) * 0.5
    value = 2 * arcsin(sqrt(less_)) if node.op is arccos else 2 * arcsinh(sqrt(-less_))
    text = arccos if node.op is arccos else arccosh
    return Found(where(near, value, text(where(near, 1, u))), absorbs=(bare(u), *found.parts))


def _squares(node: Node) -> tuple[Node, Node] | None:
    """``x`` and ``y`` of ``x * x + y * y``, where neither is a sum with a number: less 1 such sums have another form."""
    terms = sum_of(node).terms if node.op is add else ()
    keys = [key for key, _, times in terms if isinstance(key, tuple) and times == 1]
    if len(keys) != 2 or len(terms) != 2 or sum_of(node).number or any(sum_of(x).number for _, x in keys):
        return None
    return keys[0][1], keys[1][1]


@stable(roots="log", fuel=1, judged=True)
def logarithms_of_lengths(node: Node) -> Found | None:
    """``log(hypot(x, y)) -> log_hypot(x, y), and log(x * x + y * y) -> 2 * log_hypot(x, y)``."""
    inner = bare(node.args[0])
    if node.type.dtype.kind != "f":
        return None
    if inner.op is hypot:
        return Found(log_hypot(*inner.args), absorbs=(inner,))
    found = _squares(inner)
    return found and Found(2 * log_hypot(*found), absorbs=(inner, *map(bare, inner.args)))


@stable(fuel=1)
def halves_of_logarithms(x: Node, y: Node) -> Rewrites:
    """Half of twice the logarithm of a length."""
    yield (2 * log_hypot(x, y)) * 0.5, log_hypot(x, y)
