"""Differences of two values, in forms that do not cancel the digits lost to rounding. Knows no rules."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import replace
from fractions import Fraction
from functools import reduce
from typing import Any

import numpy as np

from tensormagic.ir.node import Node, topological
from tensormagic.ir.rewriting.rules import bare
from tensormagic.ops.leaf import constant
from tensormagic.ops.scalars.scalar import (
    absolute,
    add,
    cos,
    divide,
    expm1,
    hypot,
    isfinite,
    less,
    log,
    log1p,
    logical_and,
    multiply,
    sigmoid,
    sin,
    sinh,
    square,
    subtract,
    where,
)
from tensormagic.ops.scalars.special import erf, erfc, xlogy
from tensormagic.transform.rewriting.sums.expansions import less_beginning
from tensormagic.transform.rewriting.sums.forms import FORMS, Image, both, image, inverse, kind, over_one, within
from tensormagic.transform.rewriting.sums.one_in_place_of_another import are_of, found_in, same
from tensormagic.transform.rewriting.sums.powers_apart import (
    by_exponents,
    is_any_power,
    of_one_base,
    of_power_and_exponential,
    of_whole_powers,
)
from tensormagic.transform.rewriting.sums.rationals import over_common
from tensormagic.transform.rewriting.sums.terms import (
    Apart,
    Sum,
    difference,
    key_of,
    number_of,
    raised,
    sum_of,
)

_DEEP = 3
"""How many nested functions are looked through."""


def apart(a: Node, b: Node, depth: int = _DEEP) -> Apart | None:
    """Return ``a - b`` in a form without cancellation, or None if the plain difference is as good."""
    sides = raised(a), raised(b)
    if depth and (found := of_power_and_exponential(a, b, sides)) is not None:
        return found
    if depth and (found := _of_product_and_factor(a, b)) is not None:
        return found
    if not _are_alike(*sides):
        return _of_inverse_function(a, b, sides, depth) if depth else None
    first, second = image(a), image(b)
    found = _of_roots(a, first, b, second)
    if found is None and depth and bare(a).op in _FACTORS:
        found = _of_products(a, b, depth)
    if found is not None:
        return found
    images = _of_one_function(a, first, b, second)
    return of_one_base(a, b, sides) if images is None else _of_arguments(a, b, *images, depth)


def _are_alike(a: Node, b: Node) -> bool:
    """Return whether both sides, as written, may be values of one function (a quick test)."""
    kinds = {kind(a), kind(b)}
    return "sqrt" in kinds or ("" not in kinds and (len(kinds) == 1 or "constant" in kinds))


def _of_one_function(a: Node, first: Image | None, b: Node, second: Image | None) -> tuple[Image, Image] | None:
    """Return both sides as values of one function, a number as the function of its inverse, or None if they are of two functions."""
    if first is None and second is None:
        return None
    first = first or inverse(a, second)  # type: ignore[arg-type]
    second = second or inverse(b, first)  # type: ignore[arg-type]
    if first is None or second is None or (first.name, first.more) != (second.name, second.more):
        return None
    return over_one(first, second) if first.name == "log" else (first, second)


def _of_arguments(a: Node, b: Node, first: Image, second: Image, depth: int) -> Apart | None:
    """Return the difference of two values of one function, in terms of the difference of its arguments."""
    inner = _arguments(first, second, depth)
    if first.name == "exp" and not len(first.meant.minus(second.meant.times(-1))):
        return None  # this is a hyperbolic sine
    if inner is None or (_is_as_written(a, b, first) and not (inner.known or inner.near is not None)):
        return by_exponents(a, b) or of_whole_powers(first, second)
    value, near = FORMS[first.name](first, second, inner)
    if rest := second.rest - first.rest:
        value = value + float(rest)
    where_ = both(inner.near, near)
    parts = tuple(p for p in (bare(a), bare(b), *inner.parts) if p.args)
    if not isinstance(where_, Node):
        return Apart(value, None, parts, inner.known, inner.local) if where_ else None
    return Apart(value, where_, parts, inner.known, inner.local)


def _is_as_written(a: Node, b: Node, of: Image) -> bool:
    """Return whether a form only pays if more is known of the arguments' difference than its text."""
    whole = number_of(bare(a)) is not None or number_of(bare(b)) is not None
    return whole or (of.name in _WRITTEN and not is_any_power(of))


_INVERSES = {
    **{f"arc{name}": name for name in ("sin", "tan", "sinh", "tanh")},
    **{name: f"arc{name}" for name in ("sinh", "tanh")},
    "log": "exp",
}
"""Functions of which a number may be a value, and of what: of the function that is their inverse, at it."""
_TURNING = frozenset(("arcsin", "arctan"))
"""Those for which it has to be an angle of less than a quarter of a turn."""


def _of_inverse_function(a: Node, b: Node, sides: tuple[Node, Node], depth: int) -> Apart | None:
    """Return ``x - f(u)`` by ``g(x) - u``, where ``g`` is the inverse of ``f`` and ``g(x)`` is within ``u``; else None."""
    for node, other, inner in ((a, b, sides[1]), (b, a, sides[0])):
        inverse_ = _INVERSES.get(inner.op.name)
        at = None if inverse_ is None else found_in(inner.args[0], inverse_, bare(node))
        of = None if at is None else image(other)
        if at is None or of is None:
            continue
        own = Image(node, of.name, at, sum_of(at))
        found = _of_arguments(a, b, *((own, of) if node is a else (of, own)), depth)
        if found is None or not found.known:
            return None
        near = both(found.near, within(node, 1.5) if of.name in _TURNING else None, isfinite(at))
        return replace(found, near=near) if isinstance(near, Node) else None
    return None


def _of_product_and_factor(a: Node, b: Node) -> Apart | None:
    """Return ``x * f(y) - x`` as ``x * (f(y) - 1)``, or None if the sides are not of this form."""
    first, second = bare(a), bare(b)
    for product, factor, sign in ((first, second, 1), (second, first, -1)):
        if product.op is not multiply:
            continue
        u, v = product.args
        if bare(u) is factor:
            u, v = v, u
        if bare(v) is factor and bare(u).op.name in _FROM_ONE:
            found = known(u, constant(1.0))
            return found and replace(found, value=sign * v * found.value, parts=(product, *found.parts))
    return None


_FACTORS = (multiply, divide, xlogy)


_WRITTEN = frozenset(("power", "square"))
"""Functions whose differences are only rewritten if their arguments have terms in common."""


def _arguments(first: Image, second: Image, depth: int) -> Apart | None:
    """Return the difference of the arguments of two functions: by the terms they do not share, by a form of its own, or as rounded."""
    less_ = first.meant.minus(second.meant)
    if not (len(first.meant) and len(second.meant)) and len(
        less_
    ):  # one argument is the constant at which the function's value is known
        return Apart(less_.node(), known=True)
    own = tuple(i.argument for i in (first, second) if i.argument is not None and bare(i.argument).args)
    if (found := _of_products_alike(less_)) is not None:
        return found
    alike = len(less_) < max(len(first.meant) + len(second.meant), 1)
    if alike and not less_.rounds_more(first.meant, second.meant):
        rounded = tuple(bare(n) for n in own if bare(n).op.name in {"add", "subtract"})
        return Apart(less_.largest_first(), None, rounded, known=True)
    if depth and (found := _of_terms(less_, depth)) is not None:
        return found
    sides = [_argument(i) for i in (first, second)]
    if depth and None not in sides and (found := over_common(*sides, known, within=True)) is not None:  # type: ignore[arg-type]
        return found
    if first.argument is None or second.argument is None:
        return None
    if depth and (found := apart(first.argument, second.argument, depth - 1)) is not None:
        return found
    series = less_beginning(less_, first.argument.type.dtype)
    if series is not None:
        return Apart(series.value, series.near, tuple(bare(n) for n in own), known=True, local=True)
    return Apart(_multiple_apart(less_) or first.argument - second.argument)


def _argument(of: Image) -> Node | None:
    """Return the argument of a function as a node: also a number, or the sum of two squares of ``hypot``."""
    if of.argument is not None:
        return of.argument
    if of.node.op is hypot:
        return reduce(add, map(square, of.node.args))
    return _number(of.meant)


def _multiple_apart(rest: Sum) -> Node | None:
    """Return ``c * (u - v)`` for ``c * u - c * v``, so that it is subtracted before it is rounded, or None for other sums."""
    if len(rest.terms) != 2 or rest.number or rest.terms[0][2] != -rest.terms[1][2] or abs(rest.terms[0][2]) == 1:
        return None
    (_, u, times), (_, v, _) = rest.terms
    return (u - v) * float(times)


def _of_terms(rest: Sum, depth: int) -> Apart | None:
    """Return ``c * u - c * v`` by the difference of ``u`` and ``v``, or None if this has no form."""
    if len(rest.terms) != 2 or rest.number or rest.terms[0][2] != -rest.terms[1][2]:
        return None
    (first, u, times), (second, v, _) = rest.terms
    if isinstance(first, tuple) and isinstance(second, tuple):
        p, q = first[1], second[1]
        inner = known(p, q) if depth > 1 else None
        inner = inner or Apart(p - q)
        found = Apart(inner.value * (p + q), inner.near, (bare(u), bare(v), *inner.parts))
    else:
        found = apart(u, v, depth - 1)
    if found is None or times == 1:
        return found
    return Apart(found.value * float(times), found.near, found.parts, found.known)


def of_multiples(a: Node, b: Node) -> Apart | None:
    """Return ``c * f(x) - c * f(y)`` by the difference of the function's values, or None if it has no form."""
    if not (_is_multiple(bare(a)) and _is_multiple(bare(b))):
        return None
    rest = sum_of(a).minus(sum_of(b))
    if any(isinstance(key, tuple) for key, _, _ in rest.terms) or (found := _of_terms(rest, _DEEP)) is None:
        return None
    return replace(found, parts=(bare(a), bare(b), *found.parts))


_MOST_TIMES = 4


def of_logarithms(a: Node, b: Node) -> Apart | None:
    """Return ``m * log(u) - n * log(v)`` by the difference of the powers ``u ** m`` and ``v ** n``, or None if it has no form."""
    if not (_is_multiple(bare(a)) or _is_multiple(bare(b))):
        return None
    terms = sum_of(a).minus(sum_of(b))
    logs = [(image(n), t) for _, n, t in terms.terms]
    if len(logs) != 2 or terms.number:
        return None
    (first, times), (second, other) = sorted(logs, key=lambda n: n[1] < 0)
    if first is None or second is None or not first.name == second.name == "log":
        return None
    shared = Fraction(math.gcd(times.numerator * other.denominator, other.numerator * times.denominator), 1)
    shared = shared / (times.denominator * other.denominator)
    m, n = times / shared, -other / shared
    if not (0 < m <= _MOST_TIMES and 0 < n <= _MOST_TIMES):
        return None
    u, v = first.at(), second.at()
    if not isinstance(u, Node) or not isinstance(v, Node):
        return None
    x, y = (square(w) if k == 2 else reduce(multiply, [w] * int(k)) for w, k in ((u, m), (v, n)))
    found = factors_apart(x, y, 0)
    if found is None:
        return None
    near = both(within(found.value, y * 0.5), found.near, less(0, u), less(0, v), isfinite(y))
    near = both(near, less(float(np.finfo(y.type.dtype.type).tiny), y))
    value = log1p(found.value / y)
    parts = (bare(a), bare(b), *(bare(n) for _, n, _ in terms.terms), *(n for n in found.parts if n.args))
    return Apart(
        value if shared == 1 else value * float(shared), near if isinstance(near, Node) else None, parts, known=True
    )


_MULTIPLES = (multiply, divide)


def _is_multiple(node: Node) -> bool:
    if node.op not in _MULTIPLES:
        return False
    left, right = map(bare, node.args)
    return (not left.args and number_of(left) is not None) or (not right.args and number_of(right) is not None)


def _of_products_alike(rest: Sum) -> Apart | None:
    """Return ``c * p * q - c * p * r`` by the difference of ``q`` and ``r``, also for squares of sums with common terms; else None."""
    if len(rest.terms) != 2 or rest.number or rest.terms[0][2] != -rest.terms[1][2]:
        return None
    (first, u, times), (second, v, _) = rest.terms
    if isinstance(first, tuple) and isinstance(second, tuple):
        p, q = sum_of(first[1]), sum_of(second[1])
        less_, more = p.minus(q), p.minus(q.times(-1))
        if len(less_) + len(more) >= 2 * (len(p) + len(q)):
            return None
        value = difference(first[1], second[1]) * difference(first[1], second[1], -1)
    else:
        value = _by_common_factor(bare(u), bare(v))
    if value is None:
        return None
    value = value if times == 1 else value * float(times)
    return Apart(value, None, (bare(u), bare(v)), known=True)


def _by_common_factor(u: Node, v: Node) -> Node | float | None:
    if u.op is divide and v.op is divide and same(u.args[1], v.args[1]):
        top = sum_of(u.args[0]).minus(sum_of(v.args[0])).node()
        return top / u.args[1]
    if u.op is not multiply or v.op is not multiply:
        return None
    for p, q in (u.args, u.args[::-1]):
        for r, s in (v.args, v.args[::-1]):
            if same(p, r):
                return sum_of(q).minus(sum_of(s)).node() * p
    return None


def _number(meant: Sum) -> Node | None:
    return None if meant.terms else constant(float(meant.number))


def _of_roots(a: Node, first: Image | None, b: Node, second: Image | None) -> Apart | None:
    """Return ``sqrt(b * b + c) - b`` as ``c / (sqrt(b * b + c) + b)`` for positive ``b``, or with the sides exchanged; else None."""
    if first is not None and first.name == "sqrt" and number_of(bare(b)) is None:
        root, other, sign = first, b, 1
    elif second is not None and second.name == "sqrt" and number_of(bare(a)) is None:
        root, other, sign = second, a, -1
    else:
        return None
    rest = _less_square(root, other)
    if rest is None:
        return None
    difference, side, known_near = rest
    parts = tuple(bare(n) for n in (root.node, root.argument) if n is not None)
    if side is None:
        square_ = other * other
        near = logical_and(less(absolute(difference), square_ * 0.5), less(0, other))
        near = logical_and(near, isfinite(square_))
        near = near if known_near is None else logical_and(near, known_near)
        value = difference / _conjugate(root.node, other, near)
    else:
        near = logical_and(less(absolute(side), other * _SIDE), isfinite(root.node))
        value = side * (side / _conjugate(root.node, other, near)) * float(difference)
    return Apart(value if sign > 0 else -value, near, parts, known=True)


def _conjugate(root: Node, other: Node, near: Node) -> Node:
    """Return the sum of both sides, used if ``near``: for negative numbers it would itself cancel."""
    return root + where(near, other, 1)


_SIDE = 0.7
"""How large one leg of a right triangle may be relative to the other."""


def _less_square(root: Image, other: Node) -> tuple[Any, Node | None, Node | None] | None:
    """Return the radicand minus the square of ``other`` (or its ratio to a side's square, and that side), and where it holds; else None."""
    inner = bare(other)
    own = bare(inner.args[0]) if inner.op.name in {"negative", "absolute"} else inner
    squared = Sum(((("square", own), other, Fraction(1)),), Fraction(0))
    rest = root.meant.minus(squared)
    if len(rest) == len(root.meant) - 1:
        if len(rest.terms) == 1 and not rest.number and isinstance(rest.terms[0][0], tuple):
            return rest.terms[0][2], rest.terms[0][0][1], None
        return rest.node(), None, None
    if root.argument is None:
        return None
    found = over_common(root.argument, square(other), known)
    return None if found is None else (found.value, None, found.near)


def _of_products(a: Node, b: Node, depth: int) -> Apart | None:
    """Return ``u * v - r * s`` by the difference of each pair of factors times the other factor, or None if they have no forms."""
    left, right = bare(a), bare(b)
    if left.op is not right.op and {left.op, right.op} != {multiply, xlogy}:
        return None
    if left.op is divide:
        top = factors_apart(left.args[0], right.args[0], depth) if same(left.args[1], right.args[1]) else None
        if top is None:
            return _of_quotients(left, right, depth)
        return Apart(top.value / left.args[1], top.near, (left, right, *top.parts), known=True)
    first, second = _factors(left), _factors(right)
    for u, v in (first, first[::-1]):
        for r, s in (second, second[::-1]):
            one, two = factors_apart(u, r, depth), factors_apart(v, s, depth)
            if are_of(u, v, r, s):  # x * f(x) beside y * f(y)
                one, two = Apart(u - r), apart(v, s, depth - 1)
            if one is not None and two is not None:
                found = _by_factors(a, (u, v, r, s), one, two)
                stays = set(topological([n for n in (found.value, found.near) if isinstance(n, Node)]))
                parts = (left, right, *(n for n in (*one.parts, *two.parts) if n not in stays))
                return replace(found, parts=parts, known=True)
    return None


def _of_quotients(left: Node, right: Node, depth: int) -> Apart | None:
    """Return ``f(x) / x - f(y) / y`` or ``x / f(x) - y / f(y)`` by the differences of both sides, or None for other quotients."""
    (u, v), (r, s) = left.args, right.args
    if are_of(v, u, s, r):
        one, two = apart(u, r, depth - 1), Apart(v - s)
    elif are_of(u, v, r, s):
        one, two = Apart(u - r), apart(v, s, depth - 1)
    else:
        return None
    if one is None or two is None:
        return None
    terms = one.value, right * two.value
    near = both(*(within(t, absolute(u) * 0.5) for t in terms), one.near, two.near)
    parts = (left, right, *one.parts, *two.parts)
    return Apart((terms[0] - terms[1]) / v, near if isinstance(near, Node) else None, parts, known=True)


def _factors(product: Node) -> tuple[Node, ...]:
    x, y = product.args
    return (x, log(y)) if product.op is xlogy else (x, y)


def _by_factors(a: Node, factors: tuple[Node, Node, Node, Node], one: Apart, two: Apart) -> Apart:
    u, v, r, s = factors
    if same(u, r):
        return Apart(u * two.value, two.near)
    if same(v, s):
        return Apart(one.value * v, one.near)
    terms = one.value * v, r * two.value
    value = terms[0] + terms[1]
    near = both(*(within(t, absolute(a) * 0.5) for t in terms), one.near, two.near, _has_digits(value, terms))
    return Apart(value, near if isinstance(near, Node) else None, rough=True)


def _has_digits(value: Node, terms: Iterable[Node | float]) -> Node:
    """Return whether a sum is more than the roundings of its terms."""
    size = reduce(add, [absolute(t) if isinstance(t, Node) else abs(t) for t in terms])
    return less(size * (_ROUNDINGS * float(np.finfo(value.type.dtype.type).eps)), absolute(value))


_ROUNDINGS = 2.0**8


def factors_apart(a: Node, b: Node, depth: int) -> Apart | None:
    """Return the difference of two factors with common terms: of sums by their terms, of functions by their arguments; else None."""
    if same(a, b):
        return Apart(0.0, known=True)
    first, second = sum_of(a), sum_of(b)
    rest = first.minus(second)
    if len(rest) < len(first) + len(second):
        return Apart(rest.node(), None, tuple(n for n in (bare(a), bare(b)) if n.args), known=True)
    found = apart(a, b, depth - 1)
    return found if found is not None and found.known else None


def known(a: Node, b: Node) -> Apart | None:
    """Return ``a - b``, one of which is 1 or near the other, in an accurate form of its own, or None if there is none."""
    for u, v, sign in ((a, b, 1), (b, a, -1)):
        inner = bare(v)
        if number_of(u) == 1 and inner.op.name in _FROM_ONE:
            return Apart(_FROM_ONE[inner.op.name](inner.args[0], sign), None, (inner,), known=True)
        key = key_of(inner) if number_of(u) == 1 else None
        if isinstance(key, tuple) and key[1].op.name in _SQUARES_FROM_ONE:
            value = square(_SQUARES_FROM_ONE[key[1].op.name](key[1].args[0]))
            return Apart(value if sign > 0 else -value, None, (inner, key[1]), known=True)
    found = apart(a, b, 1)
    if found is None and (rest := less_beginning(subtract(a, b), a.type.dtype)) is not None:
        found = Apart(rest.value, rest.near, rest.parts, known=True, local=True)
    return found


_FROM_ONE: dict[str, Callable[[Node, int], Node]] = {
    "cos": lambda x, sign: 2 * sign * square(sin(x * 0.5)),
    "cosh": lambda x, sign: -2 * sign * square(sinh(x * 0.5)),
    "exp": lambda x, sign: -sign * expm1(x),
    "erf": lambda x, sign: sign * erfc(x),
    "erfc": lambda x, sign: sign * erf(x),
    "sigmoid": lambda x, sign: sign * sigmoid(-x),
    "tanh": lambda x, sign: 2 * sign * sigmoid(-2 * x),
}
"""Functions, and their differences from 1."""
_SQUARES_FROM_ONE: dict[str, Callable[[Node], Node]] = {"cos": sin, "sin": cos}
"""Functions, with those whose squares are the differences of the first ones' values from 1."""
