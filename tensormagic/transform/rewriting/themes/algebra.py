"""Rules of arithmetic: neutral elements, signs, quotients, powers, and the regrouping of constants."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from tensormagic.ir.node import Node
from tensormagic.ir.rewriting.rules import (
    Constant,
    Found,
    Positive,
    Unsigned,
    assuming,
    bare,
    extending,
    is_constant,
    plain,
)
from tensormagic.ops.leaf import constant
from tensormagic.ops.reverse.squares import is_sum_of_squares
from tensormagic.ops.scalars.scalar import (
    absolute,
    bitwise_and,
    bitwise_or,
    bitwise_xor,
    conjugate,
    equal,
    hypot,
    invert,
    logical_and,
    logical_not,
    logical_or,
    logical_xor,
    maximum,
    minimum,
    multiply,
    negative,
    not_equal,
    positive,
    power,
    reciprocal,
    sign,
    sqrt,
    square,
    where,
)
from tensormagic.ops.scalars.scalar import (
    real as real_part,
)
from tensormagic.transform.rewriting.notation import exact, real, stable
from tensormagic.transform.rewriting.sums.terms import key_of

Rewrites = Iterator[tuple[Any, ...]]


@exact(kinds="biuf")
def neutral(x: Node) -> Rewrites:
    """Multiplication by 1 changes nothing, bools included."""
    yield x * 1, x


@exact(kinds="iuf")
def neutral_numbers(x: Node) -> Rewrites:
    """Operands that change nothing, and minus one."""
    yield x - 0, x
    yield x / 1, x
    yield power(x, 1), x
    yield power(x, 0), 1
    yield positive(x), x
    yield x * -1, -x
    yield x / -1, -x
    yield x + -0.0, x


@exact(kinds="biu")
def integers(x: Node) -> Rewrites:
    """Zero added to or multiplied with integers and bools."""
    yield x + 0, x
    yield x * 0, 0


@exact(kinds="iu")
def whole_numbers(x: Node, y: Node, c: Constant, d: Constant) -> Rewrites:
    """Integers wrap around: regrouping keeps every bit."""
    yield x - x, 0
    yield 0 - x, -x
    yield x + y - x, y
    yield (x + c) + d, x + (c + d)
    yield (x * c) * d, x * (c * d)
    yield (x + c) - d, x + (c - d)
    yield (x - c) + d, x + (d - c)


@exact(kinds="iuf")
def signs(x: Node, y: Node) -> Rewrites:
    """A sign moves out of sums and products, and two signs cancel."""
    yield negative(negative(x)), x
    yield x - (-y), x + y
    yield x + (-y), x - y
    yield (-x) * (-y), x * y
    yield square(-x), square(x)


@exact(kinds="if")
def absolute_values(x: Node) -> Rewrites:
    """Absolute values and squares of negated values."""
    yield absolute(-x), absolute(x)
    yield absolute(absolute(x)), absolute(x)
    yield square(absolute(x)), square(x)


@exact
def signs_of_floats(x: Node, y: Node, c: Constant) -> Rewrites:
    """Signs move out of products and quotients: rounding is symmetric."""
    yield (-x) * c, x * -c
    yield (-x) / c, x / -c
    yield (-x) * y, -(x * y)
    yield (-x) / y, -(x / y)
    yield x / (-y), -(x / y)
    yield reciprocal(x), 1 / x


@exact
def known_signs(p: Unsigned) -> Rewrites:
    """A value that is never negative is its own absolute value; it is never -0.0, which adding 0 would make 0.0."""
    yield absolute(p), p
    yield p + 0, p


@exact(kinds="f")
def real_numbers(x: Node) -> Rewrites:
    """What complex functions do to real numbers."""
    yield conjugate(x), x
    yield real_part(x), x


@exact(kinds="iuf", roots="power", heads="constant")
def squares(node: Node) -> Node | None:
    """``x ** 2 -> square(x): what NumPy does for this exponent``."""
    exponent = plain(node.args[1])
    if _number(exponent) != 2 or node.type.dtype != node.args[0].type.dtype:
        return None
    return square(node.args[0])


@exact(roots="divide", heads="constant")
def power_of_two(node: Node) -> Node | None:
    """``x / c -> x * (1 / c) where c is a power of two``."""
    c = _number(plain(node.args[1]))
    if c is None or not c or not np.isfinite(c):
        return None
    inverse = node.type.dtype.type(1) / node.type.dtype.type(c)
    if abs(np.frexp(c)[0]) != 0.5 or not np.isfinite(inverse) or abs(inverse) < np.finfo(node.type.dtype).tiny:
        return None
    return multiply(node.args[0], constant(inverse))


def _number(node: Node) -> Any:
    """Return the value of a constant number, or None for other nodes."""
    if node.op.name != "constant" or node.type.shape or node.type.dtype.kind not in "iuf":
        return None
    return node["bits"].array().item()


@exact(kinds="biuf")
def choices(c: bool, d: bool, x: Node, y: Node, z: Node) -> Rewrites:
    """Choices between equal values, and choices with a known condition."""
    yield maximum(x, x), x
    yield minimum(x, x), x
    yield where(c, x, x), x
    yield where(True, x, y), x
    yield where(False, x, y), y
    yield where(logical_not(c), x, y), where(c, y, x)
    yield where(c, where(c, x, y), z), where(c, x, z)
    yield where(c, x, where(c, y, z)), where(c, x, z)


@exact(kinds="b")
def truth(c: bool, d: bool) -> Rewrites:
    """Laws of logic."""
    yield logical_not(logical_not(c)), c
    yield logical_and(c, c), c
    yield logical_or(c, c), c
    yield logical_and(c, True), c
    yield logical_or(c, False), c
    yield logical_and(c, False), False
    yield logical_or(c, True), True
    yield where(c, True, False), c
    yield where(c, False, True), logical_not(c)
    yield logical_or(logical_not(c), c), True
    yield logical_and(logical_not(c), c), False
    yield logical_or(logical_or(c, d), d), logical_or(c, d)
    yield where(c, c, d), logical_or(c, d)
    yield where(c, d, c), logical_and(c, d)
    yield where(c, logical_not(c), d), where(c, False, d)
    yield where(c, d, logical_not(c)), where(c, d, True)


@exact(kinds="b")
def truth_by_bits(c: bool) -> Rewrites:
    """Laws of logic, for bitwise operators, extremes and comparisons of truth values."""
    yield invert(invert(c)), c
    for both in (bitwise_and, bitwise_or):
        yield both(c, c), c
    for both, nothing in ((bitwise_and, True), (bitwise_or, False), (minimum, True), (maximum, False)):
        yield both(c, nothing), c
        yield both(c, not nothing), not nothing
    for extreme, nothing in ((minimum, True), (maximum, False)):
        yield extreme(nothing, c), c
        yield extreme(not nothing, c), not nothing
    for other in (bitwise_xor, logical_xor, not_equal):
        yield other(c, c), False
        yield other(c, False), c
        yield other(c, True), logical_not(c)
    yield equal(c, c), True
    yield equal(c, True), c
    yield equal(c, False), logical_not(c)


def _differ(x: Node, z: Node) -> bool:
    return bare(x) is not bare(z)


@exact(kinds="iuf")
def choices_of_choices(p: bool, x: Node, y: Node, z: Node, c: Constant, d: Constant) -> Rewrites:
    """An operation on a choice by the same condition is done on the chosen side.

    This is for numbers only, as forms keep their texts by other operands.
    """
    yield where(p, -where(p, x, y), z), where(p, -x, z)
    yield where(p, z, -where(p, x, y)), where(p, z, -y)
    yield where(p, d - where(p, c, x), z), where(p, d - c, z)
    yield where(p, z, d - where(p, x, c)), where(p, z, d - c)
    yield where(p, where(p, c, x) / y, z), where(p, c / y, z)
    yield where(p, z, where(p, x, c) / y), where(p, z, c / y)


@exact(kinds="biufc")
def sums_of_choices(c: bool, x: Node, y: Node, z: Node, w: Node) -> Rewrites:
    """Operations on two choices by one condition become one choice."""
    yield where(c, x, y) + where(c, z, w), where(c, x + z, y + w)
    yield (
        where(c, x, y) - where(c, z, w),
        where(c, x - z, y - w),
        _differ,
    )  # if they are equal, they are the text of a form, which stays
    yield where(c, x, y) * where(c, z, w), where(c, x * z, y * w)
    yield where(c, x, y) / where(c, z, w), where(c, x / z, y / w)


@exact(kinds="uf")
def powers_of_one(x: Node) -> Rewrites:
    """One to any power is one, also to the power nan."""
    yield power(1, x), 1


@stable
def never_worse(x: Node) -> Rewrites:
    """The exact result in place of a rounded one."""
    yield power(x, -1), 1 / x
    yield 1 / (1 / x), x
    yield sqrt(square(x)), absolute(x)
    yield sqrt(x * x), absolute(x)


@stable(roots="subtract", fuel=1, extends="a value where both squares are infinite")
def squares_of_squares_apart(node: Node) -> Found | None:
    """``u * u - u -> u * (u - 1) where u is a square, whose one rounding the text shows less of than (x - y) * (x + y)``."""
    left, right = map(bare, node.args)
    for square_, root, rest in ((left, right, lambda u: u - 1), (right, left, lambda u: 1 - u)):
        if isinstance(key_of(root), tuple) and key_of(square_) == ("square", root):
            return Found(root * rest(root), absorbs=(square_,))
    return None


@stable(fuel=1, cancels=True)
def squares_apart(x: Node, y: Node) -> Rewrites:
    """Differences of squares by their factors."""
    yield square(x) - square(y), (x - y) * (x + y), extending("a value where both squares are infinite")
    yield x * x - y * y, (x - y) * (x + y), extending("a value where both squares are infinite")


@stable
def lengths(x: Node, y: Node) -> Rewrites:
    """Lengths of vectors, without overflow."""
    yield sqrt(square(x) + square(y)), hypot(x, y), extending("inf where x or y is infinite, also beside nan")
    yield sqrt(x * x + y * y), hypot(x, y), extending("inf where x or y is infinite, also beside nan")
    yield sqrt(square(x) + y * y), hypot(x, y), extending("inf where x or y is infinite, also beside nan")


@real
def cancellation(x: Node, y: Node) -> Rewrites:
    """Operands that cancel wherever the expression is defined."""
    finite = assuming("x is finite")
    regular = assuming("x != 0", "x is finite")
    yield x + 0, x
    yield x - x, 0, finite
    yield x * 0, 0, finite
    yield x / x, 1, regular
    yield (x * y) / x, y, regular
    yield x * (y / x), y, regular
    yield 0 / x, 0, assuming("x != 0")
    yield x + y - x, y, finite
    yield x - (x + y), -y, finite
    yield x + (y - x), y, finite
    yield square(sqrt(x)), x, assuming("x >= 0")
    yield sqrt(x) * sqrt(x), x, assuming("x >= 0")


@real
def distribution(s: Node, t: Node, x: Node, y: Node, z: Node) -> Rewrites:
    """A common factor is taken out of a sum, and a divisor that cancels is multiplied in."""
    regular = assuming("x != 0", "x is finite")
    yield s * x + s * y, s * (x + y)
    yield s * x - s * y, s * (x - y)
    yield x / s + y / s, (x + y) / s
    yield x / s - y / s, (x - y) / s
    yield (s / x + z) * x, s + z * x, regular
    yield (s / x - z) * x, s - z * x, regular
    yield (z - s / x) * x, z * x - s, regular
    yield (s + t / x * y) * x, s * x + t * y, regular
    yield (s - t / x * y) * x, s * x - t * y, regular
    yield (t / x * y - s) * x, t * y - s * x, regular


@real(fuel=1)
def doubles(x: Node) -> Rewrites:
    """A sum of equal operands becomes a product, so that constants can be combined."""
    yield x + x, x * 2


@real(fuel=1)
def masked_products(c: bool, x: Node, y: Node) -> Rewrites:
    """A product with a value that is zero in places, as gradients have it, is computed only where it is not."""
    finite = assuming("y is finite")
    yield where(c, 0, x) * y, where(c, 0, x * y), finite
    yield where(c, x, 0) * y, where(c, x * y, 0), finite
    yield where(c, 0, x) / y, where(c, 0, x / y), assuming("y != 0")
    yield where(c, x, 0) / y, where(c, x / y, 0), assuming("y != 0")


@real
def signs_of_quotients(x: Node, p: Positive) -> Rewrites:
    """A positive factor or divisor does not change the sign."""
    yield sign(x / p), sign(x), assuming("p > 0", "p is finite")
    yield sign(x * p), sign(x), assuming("p > 0", "p is finite")


@real(fuel=1)
def directions(x: Node) -> Rewrites:
    """A number divided by its absolute value."""
    yield x / absolute(x), sign(x), assuming("x != 0", "x is finite")


@real
def regrouping(x: Node, y: Node, c: Constant, d: Constant) -> Rewrites:
    """Constants are combined into one."""
    yield (x + c) + d, x + (c + d)
    yield (x - c) + d, x + (d - c)
    yield (x + c) - d, x + (c - d)
    yield (x - c) - d, x - (c + d)
    yield (c - x) + d, (c + d) - x
    yield d - (x + c), (d - c) - x
    yield d - (c - x), x + (d - c)
    yield (x * c) * d, x * (c * d)
    yield (c / x) * d, (c * d) / x
    yield (x * c) * (y * d), (x * y) * (c * d)
    yield (x + c) + (y + d), (x + y) + (c + d)


@real(fuel=2)
def constants_outwards(x: Node, y: Node, c: Constant) -> Rewrites:
    """Constants move outwards, where they can be combined."""
    yield (x * c) * y, (x * y) * c, lambda x, y: not (is_constant(x) or is_constant(y))
    yield (x + c) + y, (x + y) + c, lambda x, y: not (is_constant(x) or is_constant(y))


@real(fuel=1)
def powers(x: Node, s: Node, t: Node) -> Rewrites:
    """Products and quotients of powers of one base."""
    yield power(x, s) * power(x, t), power(x, s + t), assuming("x > 0")
    yield power(x, s) / power(x, t), power(x, s - t), assuming("x > 0")


MOST = 64
"""Larger powers are left to the library."""


@exact(kinds="iu", roots="power", heads="constant", fuel=1)
def whole_powers(node: Node) -> Node | None:
    """``x ** n -> a product of squares, for whole numbers, which wrap around alike``."""
    if node.type.dtype.kind not in "iu" or node.type.dtype != node.args[0].type.dtype:
        return None
    n = _number(plain(node.args[1]))
    return _by_squares(node.args[0], int(n)) if n is not None and 2 < n <= MOST else None


@real(roots="power", heads="constant", fuel=1)
def powers_by_squares(node: Node) -> Node | None:
    """``x ** n -> a product of squares, for whole n; its reciprocal for n below 0``."""
    n = _number(plain(node.args[1]))
    if n is None or node.type.dtype.kind != "f" or not 2 <= abs(n) <= MOST or n != int(n):
        return None
    found = _by_squares(node.args[0], int(abs(n)))
    return 1 / found if n < 0 else found


@stable(roots="power", heads="constant")
def powers_that_are_roots(node: Node) -> Node | None:
    """``x ** 0.5 -> sqrt(x), for a sum of squares: NumPy's arrays have it so``."""
    x = node.args[0]
    is_half = node.type.dtype.kind == "f" and _number(plain(node.args[1])) == 0.5
    return sqrt(x) if is_half and x.type == node.type and is_sum_of_squares(x) else None


@real(roots="power", heads="constant", fuel=1, assumes=("x >= 0",))
def powers_by_roots(node: Node) -> Node | None:
    """``x ** (n + 0.5) -> x ** n * sqrt(x), for whole n; its reciprocal for n below 0``."""
    n = _number(plain(node.args[1]))
    if n is None or node.type.dtype.kind != "f" or abs(n) > MOST or abs(n) % 1 != 0.5:
        return None
    x = node.args[0]
    root, whole = sqrt(x), int(abs(n))
    found = multiply(_by_squares(x, whole), root) if whole else root
    return 1 / found if n < 0 else found


def _by_squares(x: Node, n: int) -> Node:
    """Return ``x ** n`` by repeated squaring, for ``n`` of at least 1."""
    found: Node | None = None
    while True:
        if n % 2:
            found = x if found is None else multiply(found, x)
        n //= 2
        if not n:
            return x if found is None else found
        x = square(x)


@real(roots="divide", heads="constant")
def division_by_numbers(node: Node) -> Node | None:
    """``x / c -> x * (1 / c)``."""
    c = _number(plain(node.args[1]))
    if not c or node.type.dtype.kind != "f" or not np.isfinite(c):
        return None
    inverse = node.type.dtype.type(1) / node.type.dtype.type(c)
    if not np.isfinite(inverse) or abs(inverse) < np.finfo(node.type.dtype).tiny:
        return None
    return multiply(node.args[0], constant(inverse))
