"""Rules of functions near the places where they have no slope, or stop: roots of what goes to 0, angles near 1 and near right angles."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from math import isqrt
from typing import Any

import numpy as np

from tensormagic.ir.node import Node
from tensormagic.ir.rewriting.rules import Found, bare
from tensormagic.ops.leaf import constant
from tensormagic.ops.scalars.lengths import log_hypot
from tensormagic.ops.scalars.scalar import (
    absolute,
    add,
    arccos,
    arccosh,
    arcsin,
    arcsinh,
    arctan,
    arctan2,
    cosh,
    divide,
    hypot,
    less,
    logical_and,
    multiply,
    negative,
    sqrt,
    square,
    subtract,
    where,
)
from tensormagic.transform.rewriting.notation import stable
from tensormagic.transform.rewriting.sums.difference import known
from tensormagic.transform.rewriting.sums.fifty_digits import pi
from tensormagic.transform.rewriting.sums.less_products import less_product
from tensormagic.transform.rewriting.sums.rationals import is_given, over_common
from tensormagic.transform.rewriting.sums.terms import Apart, Sum, behind, number_of, raised, sum_of

Rewrites = Iterator[tuple[Any, ...]]


def _root_of(value: Fraction) -> Fraction | None:
    """Return the root of a number, if it is an exact machine number, or None."""
    p, q = isqrt(value.numerator), isqrt(value.denominator)
    root = Fraction(p, q)
    return root if root * root == value and Fraction(float(root)) == root else None


def _power_of_two(value: Fraction) -> bool:
    return all(n & (n - 1) == 0 for n in (value.numerator, value.denominator))


def _less_quotient(p: Node, q: Node) -> Node:
    """Return ``1 - |p / q|``, without the rounding of the quotient near 1."""
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
        ):  # otherwise two roundings may cancel
            x, rest = absolute(quotient.args[0]) / absolute(quotient.args[1]), _less_quotient(*quotient.args)
        return Found(sqrt(rest * (one + x)), absorbs=(below,))
    x = absolute(x)  # at -1 the product is -0
    return Found(sqrt((x - one) * (x + one)), absorbs=(below,))


def _square_and_number(node: Node) -> tuple[Node, Fraction, Fraction] | None:
    """Return ``x``, 4 and -9 for ``4 * x * x - 9``, or None; ``x`` must be given, as a computed one has as large a rounding error."""
    if node.op not in {add, subtract} or not any(map(_is_square, node.args)) or node.type.dtype.kind != "f":
        return None
    total = sum_of(node)
    if len(total.terms) != 1 or not isinstance(total.terms[0][0], tuple) or not is_given(total.terms[0][0][1]):
        return None
    ((key, _, times),) = total.terms
    return (key[1], times, total.number) if times * total.number < 0 else None  # type: ignore[index]


def _is_square(node: Node) -> bool:
    inner = bare(node)
    return inner.op is square or (inner.op is multiply and bare(inner.args[0]) is bare(inner.args[1]))


def is_square_less_a_number(node: Node) -> bool:
    """Return whether a node is such a difference of a square and a number."""
    return (node.op is subtract or node.op is add) and _square_and_number(node) is not None


@stable(roots="subtract add", fuel=1, judged=True, neutral=True)
def squares_less_a_number(node: Node) -> Found | None:
    """``x * x - 1 -> (abs(x) - 1) * (abs(x) + 1), and 1 - x * x -> (1 - x) * (1 + x), for inputs x and squares of other numbers, too``.

    It comes last, since other rules read the squares, and the slope of the product has two terms that cancel.
    """
    found = _square_and_number(node)
    if found is None:
        return None
    x, times, rest = found
    factor, number = _root_of(abs(times)), _root_of(abs(rest))
    if number is None or factor != 1:
        return None
    one, size = constant(float(number)), absolute(x)  # at -1 the product is -0
    return Found((one - x) * (one + x) if times < 0 else (size - one) * (size + one))


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


def _negated(x: Node) -> Node:
    """Return ``-x``; a sum with a number gets the opposite signs."""
    total = sum_of(x)
    value = total.times(-1).node() if total.number and total.terms else -x
    return value if isinstance(value, Node) else -x


def _far(x: Node, side: int) -> tuple[Node, Node]:
    far = less(1, x) if side > 0 else less(x, -1)
    return far, -arctan(1 / where(far, x, side))


def _above(y: Node, x: Node) -> tuple[Node, Node]:
    above = less(absolute(x), y)
    return above, -arctan2(x, where(above, y, 1))


def _below(y: Node, x: Node) -> tuple[Node, Node]:
    below = less(absolute(x), -y)
    return below, arctan2(x, where(below, -y, 1))


def _behind_zero(y: Node, x: Node, side: int) -> tuple[Node, Node]:
    """Return whether a point is near the negative real axis, on the given side, and the angle between the point and that axis."""
    beside = logical_and(less(0, y) if side > 0 else less(y, 0), less(absolute(y), -x))
    return beside, -arctan2(y, where(beside, -x, 1))


_LESS_AN_ANGLE: dict[tuple[str, int], Callable[..., tuple[Node | None, Node]]] = {
    ("arcsin", 1): lambda x: (None, -arccos(x)),
    ("arcsin", -1): lambda x: (None, arccos(_negated(x))),
    ("arccos", 1): lambda x: (None, -arcsin(x)),
    ("arccos", 2): lambda x: (None, -arccos(_negated(x))),
    ("arctan", 1): lambda x: _far(x, 1),
    ("arctan", -1): lambda x: _far(x, -1),
    ("arctan2", 1): _above,
    ("arctan2", -1): _below,
    ("arctan2", 2): lambda y, x: _behind_zero(y, x, 1),
    ("arctan2", -2): lambda y, x: _behind_zero(y, x, -1),
}
"""By function and number of right angles subtracted: where the complementary function is used, and this function of the operands."""


@stable(roots="subtract add", within="arcsin arccos arctan arctan2", fuel=1, judged=True, cancels=True)
def angles_less_right_angles(node: Node) -> Found | None:
    """``pi / 2 - arctan(x) -> arctan(1 / x) where x is large, and inverse functions less right angles by the complementary ones``."""
    total = sum_of(node) if node.type.dtype.kind == "f" else None
    if total is None or len(total.terms) != 1 or not total.number:
        return None
    ((_, term, times),) = total.terms
    function, own = bare(raised(term)), node.type.dtype.type
    number = Fraction(float(own(float(total.number))))
    count = -number / times / (pi() / 2)  # in units of right angles
    found = _LESS_AN_ANGLE.get((function.op.name, round(count)))
    if found is None or abs(count - round(count)) > 2 * Fraction(float(np.finfo(own).eps)):
        return None
    near, angle = found(*function.args)
    rest = number + times * round(count) * pi() / 2  # the rounding error of the text's number
    value = (angle if times == 1 else angle * float(times)) + float(rest)
    absorbed = tuple(n for n in (bare(term), *map(bare, node.args)) if n.args)
    if near is None:
        return Found(value, absorbs=absorbed)
    left, right = node.args
    plus = constant(-float(number)) if number_of(bare(right)) is not None else negative(right)
    return Found(behind(near, value, left, right if node.op is subtract else plus), absorbs=absorbed)


def _squares(node: Node) -> tuple[Node, Node] | None:
    """Return ``x`` and ``y`` of ``x * x + y * y``, or None; also None for sums with numbers, which minus 1 have another form."""
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
