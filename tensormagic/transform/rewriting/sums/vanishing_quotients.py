"""Quotients whose numerator and denominator vanish together, as one series. Knows no rules.

The derivative of such a quotient has terms that are larger than their sum, the more so the higher the power with
which both vanish. The derivative of a series has no such terms.

In this order: which quotients are examined, and where; both sides as series at a place; a function of a small
product, by two series; the resulting form.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import reduce
from typing import Any

import numpy as np

from tensormagic.ir.node import Node, is_constant, topological
from tensormagic.ir.rewriting.rules import bare
from tensormagic.ops.leaf import constant
from tensormagic.ops.scalars.scalar import (
    absolute,
    divide,
    less,
    logical_and,
    multiply,
    negative,
    power,
    sqrt,
    where,
)
from tensormagic.transform.rewriting.sums.cancellation_places import NEAR, Beside, Over, Place, Product
from tensormagic.transform.rewriting.sums.cancellation_places import Near as NearAnother
from tensormagic.transform.rewriting.sums.common_factors import factors_of
from tensormagic.transform.rewriting.sums.expansions import Expansion, Part, Read, of_part
from tensormagic.transform.rewriting.sums.first_looks import (
    Look,
    is_deep,
    is_function,
    look_at,
    of_product,
    places,
    read,
)
from tensormagic.transform.rewriting.sums.numbers_near import number_at
from tensormagic.transform.rewriting.sums.power_series import NoSeriesError, Series
from tensormagic.transform.rewriting.sums.series import dear
from tensormagic.transform.rewriting.sums.terms import number_of, written

_LOOK = 9
"""How many terms of each series are computed to test whether both sides vanish."""
_KNOWN = 44
"""How many terms are computed for the form."""
_RADII = (2.0, 1.0, 0.75, 0.5, 0.375, 0.25, 0.125, 0.0625)
"""The radii of the small quantity in which the form may be used: the first is taken for which the series has few enough terms."""
_DEEP = 7
"""How many levels the first numeric test descends."""
_SHRINKS = 2.5
"""How many times smaller a vanishing side must be at an eighth of the distance: a root becomes 2.8 times smaller, a line 8 times."""
_FAR = 0.25
"""Which part of its terms a denominator of several series must be: if it is less, the terms cancel, and the text is used."""
_MOST = 16
"""How many nodes of a quotient are searched for places."""
_WHOLE = 4
"""Integer powers of sums up to this exponent are read as products, and not as exponentials."""
_SUMS = frozenset(("add", "subtract", "expm1", "log1p"))
_PAIRS = 6
"""How many pairs of factors of a product are tried."""
_PRODUCTS = frozenset((multiply, divide, negative))


# which quotients, and where --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Vanishing:
    """A quotient by its series, used where it is ``near`` the place at which both of its sides are 0."""

    value: Node
    near: Node


def one_series(node: Node) -> Vanishing | None:
    """Return a quotient whose sides vanish together by its series there, or None for other quotients, and for plain ones.

    In products and quotients, one factor above and one below may be taken, or a power of an operand.
    """
    plain = node.op is not divide or number_of(bare(node.args[0])) is not None or _is_plain(node)
    return (None if plain else _of_quotient(node)) or _of_two_factors(node)


def _of_two_factors(node: Node) -> Vanishing | None:
    """Return the form of a product that has one factor above and one below that vanish together, or None."""
    factors = factors_of(node)
    above = [n for n, t in factors.powers.items() if t == 1]
    below = [n for n, t in factors.powers.items() if t == -1 or (not n.args and -_WHOLE <= t < 0)]
    if len(above) * len(below) > _PAIRS or factors.powers.keys() == {*map(bare, node.args)} == {*above, *below}:
        return None
    for first in above:
        for second in below:
            others = [n for n in factors.powers if n is not first and n is not second]
            times = factors.powers[second]
            if any(n.args and is_sum(n) for n in (first, second)):
                quotient = divide(first, reduce(multiply, [second] * -times))
                found = _of_quotient(quotient) if _is_looked_at(quotient, others) else None
                if found is not None:
                    return replace(found, value=found.value * factors.without({first: 1, second: times}))
    return None


def beside_what_grows(node: Node) -> Vanishing | None:
    """Return ``y * log1p(x / y)`` by the series in ``x / y``, in which ``y`` cancels, or None."""
    if node.op is not multiply:
        return None
    factors = factors_of(node)
    for function in [n for n, t in factors.powers.items() if t == 1 and n.args]:
        below = _divisors(function)
        for large, times in factors.powers.items():
            if times > 0 and large is not function and large in below:
                small, number = _reciprocal(function, large, times)
                found = _of_quotient(divide(function, small))
                if found is not None:
                    rest = factors.without({function: 1, large: times})
                    return replace(found, value=found.value * (rest if number == 1 else rest * float(number)))
    return None


def _reciprocal(function: Node, large: Node, times: int) -> tuple[Node, Fraction]:
    """Return the small quantity for a large factor, as the function contains it, and its ratio to the factor's reciprocal."""
    for node in _nodes(function) if times == 1 else ():
        number = number_of(bare(node.args[0])) if node.op is divide and bare(node.args[1]) is large else None
        if number:
            return node, number
    return divide(1, reduce(multiply, [large] * times)), Fraction(1)


def _divisors(function: Node) -> set[Node]:
    """Return the divisors within a function, without numbers."""
    found: set[Node] = set()
    for node in _nodes(function):
        if node.op is divide and is_function(function) | (function.op is where):
            found.update(factors_of(bare(node.args[1])).powers)
    return found


def _is_looked_at(quotient: Node, others: Sequence[Node]) -> bool:
    """Return whether a quotient is not plain, or shares an operand with its factors; otherwise its slope is a sum that has a form."""
    return not _is_plain(quotient) or bool(
        {n for n in topological([quotient]) if not n.args and not is_constant(n)} & {*topological(others)}
    )


def _of_quotient(quotient: Node) -> Vanishing | None:
    """Return a quotient by series where both sides vanish, or None."""
    found = _at(quotient, _of_roots(quotient))
    if found is not None or is_deep(quotient) or (look := look_at(quotient, products=True)) is None:
        return found
    near = [
        p
        for p in _places(quotient, look)
        if isinstance(p, Beside | Product | NearAnother) or (isinstance(p, Over) and p.at)
    ]
    return _at(quotient, near) or _by_products(quotient, near, look)


def is_sum(node: Node) -> bool:
    """Return whether ``node`` is a sum, or the form of a difference."""
    return node.op.name in _SUMS or written(node) is not None


def _at(quotient: Node, near: Iterable[Place]) -> Vanishing | None:
    """Return a quotient by series at the first of these places at which both sides vanish, or None."""
    for place in near:
        with suppress(NoSeriesError):
            if (
                _shrinks(quotient, place)
                and _sides(quotient, place, _LOOK)
                and (found := _form(quotient, place)) is not None
            ):
                return found
    return None


def _shrinks(quotient: Node, place: Place) -> bool:
    """Return whether both sides are smaller near a place than eight times as far from it (a quick numeric test)."""
    try:
        near, far = (dict(place.away_by(d)) for d in (NEAR, 8 * NEAR))
        return all(_SHRINKS * abs(number_at(a, near, _DEEP)) < abs(number_at(a, far, _DEEP)) for a in quotient.args)
    except (ArithmeticError, ValueError):
        return False


def _of_roots(quotient: Node) -> Iterator[Place]:
    """Yield the places where a root of a sum is small, if functions on either side depend on it."""
    nodes = list(_nodes(quotient))
    for root in nodes:
        if root.op is sqrt and bare(root.args[0]).args and any(is_function(n) for n in nodes if n is not root):
            yield Beside(root, Fraction(0))
            for node in nodes:
                if node.op is multiply and root in map(bare, node.args):
                    yield from of_product(node)


def _places(quotient: Node, look: Look) -> Iterator[Place]:
    """Yield the places to try; for powers, with either factor of the exponent as the expanded one."""
    for place in places(look):
        yield place
        if isinstance(place, Product) and place.text is not None:
            yield replace(place, base=place.over, over=place.base)
    for node in _nodes(quotient):
        if node.op is power and (times := number_of(bare(node.args[1]))) is not None and abs(times) > _WHOLE:
            yield from of_product(node)


def _is_plain(quotient: Node) -> bool:
    """Return whether a quotient has at most one function, of an operand or a product: its derivative is a sum that has a form."""
    functions = [n for n in _nodes(quotient) if is_function(n)]
    return len(functions) < 2 and all(n.op in _PRODUCTS or is_function(n) or not n.args for n in _nodes(quotient))


def _nodes(root: Node) -> Iterator[Node]:
    """Yield the first nodes at and below ``root``, as they were written."""
    seen: dict[Node, None] = {}
    stack = [root]
    while stack and len(seen) < _MOST:
        node = bare(stack.pop())
        if node not in seen:
            seen[read(node)[0]] = None
            stack += read(node)[1]
    yield from seen


# a function of a small product -----------------------------------------------------------------------------------------


def _by_products(quotient: Node, near: Iterable[Place], look: Look) -> Vanishing | None:
    """Return ``((1 + x)**y - 1) / x`` by the series of one side in ``r = y * log1p(x)``, times that of ``r / x``."""
    for place in near:
        if (
            isinstance(place, Product)
            and _shrinks(quotient, place)
            and (found := _by_product(quotient, place, look)) is not None
        ):
            return found
    return None


def _by_product(quotient: Node, place: Product, look: Look) -> Vanishing | None:
    """Return such a form for one place; either side may be the function of the product, and a numerator may have a factor ``rest``."""
    for k, side in enumerate(quotient.args):
        for other, rest in _factors(quotient.args[0]) if k else ((quotient.args[1], None),):
            with suppress(NoSeriesError):
                first = _over_product(side, place, upper=not k)
                second = _beside(place.product, other, look, upper=not k) if first else None
                if first is not None and second is not None:
                    value = first.value * second.value
                    near = logical_and(first.near, second.near)
                    return Vanishing(value if rest is None else value * rest, near)
    return None


def _factors(node: Node) -> Iterator[tuple[Node, Node | None]]:
    """Yield ``(node, None)``, and each factor of a product with the other one."""
    yield node, None
    inner = bare(node)
    if inner.op is multiply:
        first, second = inner.args
        yield from ((first, second), (second, first))


def _over_product(side: Node, place: Product, *, upper: bool) -> Vanishing | None:
    """Return a function of a small product divided by the product, or the inverse quotient; None if it has no such series."""
    reading = Expansion(place, _KNOWN)
    found = reading.of(side)
    if len(found) != 1 or _order(found) != 1:
        return None
    ((others, own),) = found.items()
    over = {others: Series(0, own.terms)}
    return _of_sides(reading, [over if upper else reading.inverse(over)], side.type.dtype)


def _beside(product: Node, other: Node, look: Look, *, upper: bool) -> Vanishing | None:
    """Return a product divided by a value that vanishes with it, or the inverse quotient; None if it has no series."""
    rest = _multiple_of(product, other)
    if rest is not None:
        return Vanishing(rest if upper else 1 / rest, constant(True))
    quotient = product / other if upper else other / product
    for base in look.operands:
        with suppress(NoSeriesError):
            if (found := _form(quotient, Beside(base, Fraction(0)))) is not None:
                return found
    return None


def _multiple_of(product: Node, other: Node) -> Node | None:
    """Return a product divided by the factors of ``other``, or None if it does not have them all."""
    own, theirs = factors_of(product), factors_of(other)
    if not theirs.powers or any(own.powers.get(n, 0) * t < t * t for n, t in theirs.powers.items()):
        return None
    return own.without(theirs.powers) * float(1 / theirs.number)


# both sides as series --------------------------------------------------------------------------------------------------


def _order(read: Read) -> int:
    """Return the least power of the small quantity in any of the series."""
    return min((s.order for s in read.values()), default=0)


def _sides(quotient: Node, place: Place, known: int) -> tuple[Expansion, Read, Read] | None:
    """Return both sides as series, or None if they do not both vanish at the place."""
    reading = Expansion(place, known)
    top, below = (reading.of(a) for a in quotient.args)
    if not top or not below or min(_order(top), _order(below)) <= 0:
        return None
    return reading, top, below


def _form(quotient: Node, place: Place) -> Vanishing | None:
    """Return the quotient as one series if one side is a single part, which the other is divided by; else as one sum over the other."""
    found = _sides(quotient, place, _KNOWN)
    if found is None:
        return None
    reading, top, below = found
    if len(below) == 1:
        sides = [reading.product(top, reading.inverse(below))]
    elif len(top) == 1:
        sides = [reading.number(1), reading.product(below, reading.inverse(top))]
    else:
        least = min(_order(top), _order(below))
        sides = [{k: Series(s.order - least, s.terms) for k, s in side.items()} for side in (top, below)]
    return _of_sides(reading, _without_quotients(sides), quotient.type.dtype)


def _without_quotients(sides: list[Read]) -> list[Read]:
    """Return both sides multiplied by their divisors: such quotients overflow where their squares do."""
    keys = [dict(key) for side in sides for key in side]
    below = {n: min(k.get(n, Fraction(0)) for k in keys) for key in keys for n in key}
    if len(sides) < 2:
        return sides
    return [
        {
            frozenset((n, t) for n, m in below.items() if (t := dict(k).get(n, Fraction(0)) - min(m, 0))): s
            for k, s in side.items()
        }
        for side in sides
    ]


# forms -----------------------------------------------------------------------------------------------------------------


def _of_sides(reading: Expansion, sides: Sequence[Read], dtype: np.dtype[Any]) -> Vanishing | None:
    """Return one series, or one over another, used where the small quantity is near 0 but not 0; None if it costs too much."""
    small, through = reading.place.small(), tuple(reading.through)
    bits = np.finfo(dtype.type).nmant
    for radius in _RADII:
        near = logical_and(less(absolute(small), radius), less(0, absolute(small)))
        near = reduce(logical_and, [less(0, n) for n in reading.positive], near)
        parts = [[_part(k, s, small, near, radius, bits) for k, s in side.items()] for side in sides]
        if any(p is None for side in parts for p in side):
            continue
        values: list[Any] = [reduce(operator.add, side) for side in parts]
        if len(values) == 2 and len(parts[1]) > 1:
            size = reduce(operator.add, map(abs, parts[1]))
            near = logical_and(near, less(size * _FAR, abs(values[1])))
        value = values[0] if len(values) == 1 else values[0] / where(near, values[1], 1)
        if isinstance(value, Node) and not dear(value, near, through):
            return Vanishing(value, near)
    return None


def _part(others: Any, own: Series, small: Node, near: Node, radius: float, bits: int) -> Any:
    """Return one series times its factor, or a number, or None if it needs too many terms."""
    if not others and not own.order and not any(own.terms[1:]):
        return float(own.terms[0])
    return of_part(Part(others, own, ()), small, near, radius, bits)
