"""Sums that cancel at 0, at 1, at infinity, or where two operands are equal, because their terms' series begin alike. Knows no rules.

``sin(x) - x``, ``x * cos(x) - sin(x)`` and ``1 / (exp(x) - 1) - 1 / x + 0.5`` are the rest of their series near 0,
with as many terms as the dtype has digits. ``x * log(x) - x + 1`` is a series in ``x - 1`` near 1, ``x * log(1 + 1 /
x) - 1`` one in ``1 / x``, and what depends only on the quotient of two operands, up to a power of one of them, is one
in ``(x - y) / y``.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate, islice
from typing import Any

import numpy as np

from tensormagic.ir.cost import weight
from tensormagic.ir.node import Node, topological
from tensormagic.ir.rewriting.rules import bare
from tensormagic.ops.scalars.scalar import absolute, divide, less, log, logical_and, logical_or, square, subtract, where
from tensormagic.transform.rewriting.sums.numbers_near import number_at
from tensormagic.transform.rewriting.sums.power_series import FUNCTIONS, NoSeriesError, Series, number, power_of_x
from tensormagic.transform.rewriting.sums.power_series import raised as raised_to
from tensormagic.transform.rewriting.sums.terms import Sum, logarithm_of, number_of, raised, sum_of, written

_LOOK = 9
"""How many terms a first test computes."""
_TERMS = 44
"""How many terms are computed; those after the cancelling ones are used for a form."""
_LONGEST = 20
"""How many terms a form has at most."""
_RADII = (1.0, 0.75, 0.5, 0.375, 0.25, 0.125, 0.0625)
_KEPT = 0.25
"""Which part of the sum of its terms' sizes a series must be."""
_PRICE = 3
"""How many times the operations of the text a form may take, the text included."""
_DEEP = 7
_SUMS = frozenset(("add", "subtract", "negative"))
_PRODUCTS = frozenset(("multiply", "divide", "square", "reciprocal"))
_QUOTIENTS = frozenset(("divide", "reciprocal"))


@dataclass(frozen=True)
class Remainder:
    """The form of a sum by its series: its ``value``, and the condition ``near``, that the operand is near 0, under which it holds.

    ``parts`` are the nodes whose rounding it avoids, ``within`` the other nodes that were read: differences that have
    become forms.
    """

    value: Node
    near: Node
    parts: tuple[Node, ...]
    within: tuple[Node, ...] = ()


_Read = tuple[Counter[Node], Series]


@dataclass(frozen=True)
class Place:
    """Where an operand is examined: near 0, near 1, at infinity (``at`` is -1), or relative to another one, ``over``.

    For a product, ``factor`` is read as the product divided by the other factor.
    """

    at: int = 0
    over: Node | None = None
    factor: Node | None = None

    def read(self, known: int) -> _Read:
        """Return the operand near the place, as other factors and a series."""
        if self.at < 0:
            return Counter(), power_of_x(-1, known)
        x = power_of_x(1, known) + number(Fraction(1), known) if self.at else power_of_x(1, known)
        return Counter({} if self.over is None else {self.over: 1}), x

    def small(self, base: Node) -> Node:
        """Return the small quantity for the operand ``base``."""
        if self.at < 0:
            return divide(1, base)
        if self.over is not None and not self.at:
            return divide(base, self.over)
        if self.over is not None:
            return divide(sum_of(base).minus(sum_of(self.over)).largest_first(), self.over)
        return _less_one(base) if self.at else base

    def other(self, base: Node) -> Node:
        """Return the other factor of the product ``base``."""
        first, second = map(bare, base.args)
        return second if first is self.factor else first

    def number(self, known: dict[Node, float], base: Node) -> None:
        """Add machine numbers for the operands near the place to ``known``."""
        if self.factor is not None:
            known[self.other(base)] = _ELSEWHERE
            known[self.factor] = _NEAR / _ELSEWHERE
        if self.over is not None:
            known[self.over] = _ELSEWHERE
        known[base] = 1 / _NEAR if self.at < 0 else (_ELSEWHERE if self.over is not None else 1) * (self.at + _NEAR)


_ELSEWHERE = 1.37


@dataclass
class _Reading:
    """Reads nodes as series in one operand, times powers of others."""

    base: Node
    known: int
    place: Place
    through: dict[Node, None] = field(default_factory=dict[Node, None])
    within: set[Node] = field(default_factory=set[Node])
    """Nodes in differences that have become forms, in which the rounding of these nodes does not show."""
    poles: bool = False
    """Whether anything is divided by an expression that is 0 at the place."""
    _found: dict[Node, _Read] = field(default_factory=dict[Node, _Read])

    def of(self, node: Node, depth: int = _DEEP) -> _Read:
        inner = bare(node)
        found = self._found.get(inner)
        if found is None:
            found = self._found[inner] = self._read(inner, depth)
        return found

    def _read(self, node: Node, depth: int) -> _Read:
        if node is self.base:
            return self.place.read(self.known)
        if node is self.place.factor:
            return Counter({self.place.other(self.base): -1}), power_of_x(1, self.known)
        value = number_of(node)
        if value is not None:
            return Counter(), number(value, self.known)
        name = node.op.name
        sides = written(node)
        if sides is None and name == "where":
            of = logarithm_of(node)
            self.through.update(dict.fromkeys([node] if of is not None else []))
            node = bare(raised(node)) if of is None else log(bare(of))
            name = node.op.name
        if not depth or not node.args:
            return Counter({node: 1}), number(Fraction(1), self.known)
        self.through[node] = None
        if sides is not None:
            before = set(self.through)
            found = self.sum(self.terms(node, sides, depth))
            self.within |= set(self.through) - before
            return found
        if name in _SUMS:
            return self.sum(self.terms(node, sides, depth))
        if name in _PRODUCTS:
            return self._product(name, [self.of(a, depth - 1) for a in node.args])
        return self._function(node, depth)

    def _function(self, node: Node, depth: int) -> _Read:
        name = node.op.name
        if name == "xlogy":
            return self._product("multiply", [self.of(node.args[0], depth - 1), self.of(log(node.args[1]), depth - 1)])
        if name == "power" and (exponent := number_of(bare(node.args[1]))) is not None and exponent > 0:
            others, own = self.of(node.args[0], depth)
            if others and exponent.denominator != 1:
                raise NoSeriesError
            return Counter({n: k * int(exponent) for n, k in others.items()}), raised_to(own, exponent)
        if name in FUNCTIONS:
            return Counter(), FUNCTIONS[name](self._alone(node.args[0], depth))
        del self.through[node]
        return Counter({node: 1}), number(Fraction(1), self.known)

    def terms(self, node: Node, sides: tuple[Node, Node] | None, depth: int) -> Iterator[_Read]:
        """Yield the terms of a sum, or of the difference that ``node`` was written as."""
        first, *second = sides or node.args
        minus = sides is not None or node.op.name != "add"
        found = self.of(first, depth - 1)
        yield (found[0], -found[1]) if node.op.name == "negative" else found
        for other in second:
            more, terms = self.of(other, depth - 1)
            yield more, -terms if minus else terms

    def sum(self, terms: Iterator[_Read]) -> _Read:
        """Return the sum of terms with the same other factors."""
        found: _Read | None = None
        for others, own in terms:
            if found is None:
                found = others, own
            elif not own.terms or not found[1].terms:
                found = (others, own) if not found[1].terms else found
            elif others != found[0]:
                raise NoSeriesError
            else:
                found = others, found[1] + own
        if found is None:
            raise NoSeriesError
        return found

    def _alone(self, node: Node, depth: int) -> Series:
        others, own = self.of(node, depth - 1)
        if others:
            raise NoSeriesError
        return own

    def _product(self, name: str, factors: list[_Read]) -> _Read:
        (first, a), (second, b) = factors[0], factors[-1]
        self.poles = self.poles or (name in _QUOTIENTS and b.order > 0)
        if name == "reciprocal":
            return Counter({n: -k for n, k in first.items()}), number(Fraction(1), len(a.terms)) / a
        others = Counter(first)
        for node, k in second.items():
            others[node] += -k if name == "divide" else k
        return Counter({n: k for n, k in others.items() if k}), a / b if name == "divide" else a * b


def _operands(total: Node | Sum) -> Iterator[Node]:
    """Yield the operands of functions among the terms: the argument's only leaf, and the argument."""
    seen: dict[Node, None] = {}
    stack = [(n, 4) for n in (total.args if isinstance(total, Node) else (n for _, n, _ in total.terms))]
    while stack:
        node, depth = stack.pop()
        inner = bare(node)
        if inner.op.name == "where" and (of := logarithm_of(inner)) is not None:
            seen.setdefault(bare(of))
            if len(leaves := set(_leaves(of, 4))) == 1:
                seen.setdefault(leaves.pop())
        elif inner.op.name == "xlogy":
            seen.setdefault(bare(inner.args[1]))
        elif inner.op.name in FUNCTIONS or inner.op.name == "power":
            leaves = set(_leaves(inner.args[0], 4))
            if len(leaves) == 1:
                seen.setdefault(leaves.pop())
            seen.setdefault(_multiple(inner.args[0]))
        elif depth and inner.op.name in _SUMS | _PRODUCTS:
            stack += [(a, depth - 1) for a in inner.args]
        elif depth and inner.op.name == "where" and (sides := written(inner)) is not None:
            stack += [(a, depth - 1) for a in sides]
    yield from seen


def _leaves(node: Node, depth: int) -> Iterator[Node]:
    inner = bare(node)
    if depth and inner.args and inner.op.name in _SUMS | _PRODUCTS:
        for arg in inner.args:
            yield from _leaves(arg, depth - 1)
    elif number_of(inner) is None:
        yield inner


def _multiple(node: Node) -> Node:
    """Return the node that an argument is a multiple of: itself if it is no multiple."""
    total = sum_of(node)
    if len(total.terms) == 1 and not total.number and isinstance(total.terms[0][0], Node):
        return total.terms[0][0]
    return bare(node)


NAMED = frozenset(FUNCTIONS) | {"xlogy"}
"""The ops of which a sum must have at least one to be read as a series."""


def series_within(total: Node | Sum, atoms: Sequence[Node], dtype: np.dtype[Any]) -> Remainder | None:
    """Return a sum of ``atoms`` by its series in one operand, if its terms have one and cancel at 0, or None."""
    for base, place in _looked_at(total, atoms):
        if not _small(total, base, place):
            continue
        try:
            if _cancelled(total, base, _LOOK, place) is not None:
                return _form(total, base, dtype, place)
        except NoSeriesError:
            continue
    return None


_PLACES = (Place(), Place(1), Place(-1))


def _looked_at(total: Node | Sum, atoms: Sequence[Node]) -> Iterator[tuple[Node, Place]]:
    """Yield the operands to examine, and the places where they are examined."""
    for base in islice(_operands(total), 3):
        for place in _PLACES:
            yield base, place
        for factor in _factors(base):
            yield base, Place(factor=factor)
    if len(atoms) == 2:
        first, second = atoms
        yield first, Place(1, second)
        yield first, Place(0, second)
        yield second, Place(0, first)


def _factors(base: Node) -> Sequence[Node]:
    """Return the two factors of a product, or nothing for other nodes."""
    found = tuple(map(bare, base.args)) if base.op.name == "multiply" else ()
    return found if len(set(found)) == 2 and all(number_of(n) is None for n in found) else ()


_NEAR = 2.0**-6
_LEFT = 0.25
"""A sum cancels at 0 if it is at most this part of its terms at the point ``_NEAR``."""


def _small(total: Node | Sum, base: Node, place: Place) -> bool:
    """Return whether a sum is small compared with its terms near a place (a quick numeric test)."""
    known: dict[Node, float] = {}
    place.number(known, base)
    try:
        if isinstance(total, Node):
            first, second = (number_at(a, known, _DEEP) for a in total.args)
            terms = [first, -second if total.op.name == "subtract" else second]
        else:
            terms = [float(t) * number_at(n, known, _DEEP) for _, n, t in total.terms] + [float(total.number)]
        return abs(sum(terms)) < _LEFT * max(map(abs, terms))
    except (ArithmeticError, ValueError):
        return False


def _cancelled(
    total: Node | Sum, base: Node, known: int, place: Place
) -> tuple[Counter[Node], Series, _Reading] | None:
    """Return the sum as other factors and a series if that begins later than its largest term, else None."""
    reading = _Reading(base, known, place)
    if isinstance(total, Node):
        terms = list(reading.terms(total, None, _DEEP))
    else:
        terms = [(o, s * number(t, known)) for _, n, t in total.terms for o, s in (reading.of(n),)]
        if total.number:
            terms.append((Counter(), number(total.number, known)))
    if len(terms) < 2:
        return None
    others, found = reading.sum(iter(terms))
    least = min(s.order for _, s in terms)
    if not found.terms or found.order <= least or found.order > least + 7:
        return None
    return others, found, reading


def _form(total: Node | Sum, base: Node, dtype: np.dtype[Any], place: Place) -> Remainder | None:
    cancelled = _cancelled(total, base, _TERMS, place)
    if cancelled is None:
        return None
    others, found, reading = cancelled
    parts = tuple(reading.through)
    if not any(p.op.name in FUNCTIONS for p in parts):
        return None
    small = place.small(base)
    for radius, terms, step in chosen(found, np.finfo(dtype.type).nmant):
        near = less(absolute(small), radius)
        value = evaluated(small, near, found.order, terms, step)
        if reading.poles or found.order < 0 or place.at < 0:
            near = logical_and(near, less(0, absolute(small)))
        for other, times in others.items():
            value = scaled(value, other, times)
        if isinstance(value, Node) and not dear(value, near, parts):
            own = tuple(p for p in parts if p not in reading.within)
            return Remainder(value, near, own, tuple(reading.within))
    return None


def _less_one(base: Node) -> Node:
    """Return an operand minus 1; a quotient is subtracted from before it is rounded."""
    if base.op.name == "divide":
        x, y = base.args
        return divide(sum_of(x).minus(sum_of(y)).largest_first(), y)
    value = sum_of(subtract(base, 1)).node()
    return value if isinstance(value, Node) else base


def evaluated(base: Node, near: Node, order: int, terms: list[float], step: int) -> Node | float:
    """Return ``base ** order`` times a polynomial, evaluated where ``near``."""
    small = where(near, base, 0 if order >= 0 else 1)
    by = scaled(1.0, small, step)
    value: Node | float = terms[-1]
    for c in reversed(terms[:-1]):
        value = value * by + c if c else value * by
    return scaled(value, small, order)


def over_powers(form: Node, below: Node) -> Remainder | None:
    """Return the form of a sum over a divisor that has a series in the same operand, as one series that does not underflow; else None.

    If the operand is a product, the divisor may depend on one factor: ``(x * y - sin(x * y)) / x**3`` is ``y**3``
    times a series.
    """
    near = bare(form.args[0])
    total = sum_of(form, text=True)
    for base in islice(_operands(total), 3):
        if near is not less(absolute(base), near.args[1]):
            continue
        for factor in (None, *_factors(base)):
            value = _quotient(form, total, below, base, Place(factor=factor))
            if value is not None:
                return Remainder(value, near, (base,))
    return None


def _quotient(form: Node, total: Sum, below: Node, base: Node, place: Place) -> Node | None:
    try:
        cancelled = _cancelled(total, base, _TERMS, place)
        if cancelled is None:
            return None
        others, found, reading = cancelled
        more, divisor = reading.of(below)
        found = found / divisor
    except NoSeriesError:
        return None
    left = {n: k for n in (*others, *more) if (k := others[n] - more[n])}
    near = bare(form.args[0])
    own = number_of(bare(near.args[1]))
    if (place.factor is None and left) or any(k < 0 for k in left.values()):
        return None
    for radius, terms, step in chosen(found, np.finfo(form.type.dtype.type).nmant):
        if radius == own:
            value = evaluated(base, near, found.order, terms, step)
            for node, times in left.items():
                value = scaled(value, node, times)
            return value if isinstance(value, Node) else None
    return None


def scaled(value: Node | float, factor: Node, times: int) -> Node | float:
    """Return ``value * factor ** times``."""
    if not times:
        return value
    power = factor if abs(times) == 1 else square(factor)
    for _ in range(abs(times) - 2):
        power = power * factor
    if times < 0:
        return value / power
    return power if value == 1 else value * power


@lru_cache(maxsize=512)
def chosen(found: Series, bits: int, radii: tuple[float, ...] = _RADII) -> tuple[tuple[float, list[float], int], ...]:
    """Return for each radius in which the first term dominates: the radius, the coefficients it needs, and the step between their powers.

    A radius ends before the series itself cancels: ``t + t**2`` has no digits at -1, where ``y**2 - y`` has all for
    ``y = t + 1``.
    """
    fitting: list[tuple[float, list[float], int]] = []
    coefficients = [Fraction(c) / found.terms[0] for c in found.terms]
    step = math.gcd(*(k for k, c in enumerate(coefficients) if c)) or 1
    coefficients = coefficients[::step]
    near = [abs(float(c)) for c in coefficients]
    for radius in radii:
        r = radius**step
        sizes = [c * r**k for k, c in enumerate(near)]
        rest = list(accumulate(reversed(sizes)))[::-1]  # the sums of each term and all later ones
        count = next((k for k in range(1, len(sizes)) if 2 * rest[k] < 2.0 ** -(bits + 3)), 0)
        if not 0 < count <= _LONGEST or rest[1] > 1 or sizes[-1] > max(sizes[count : count + 2]) / 4:
            continue
        if all(abs(value) >= _KEPT * rest[0] for value in _at_ends(coefficients, r, step)):
            fitting.append((radius, [float(c * found.terms[0]) for c in coefficients[:count]], step))
    return tuple(fitting)


def _at_ends(coefficients: Sequence[Fraction], r: float, step: int) -> Iterator[float]:
    """Yield the values of a series at both ends of its interval."""
    for end in (r, -r)[: 1 + step % 2]:
        yield sum(float(c) * end**k for k, c in enumerate(coefficients))


def either(a: Remainder, b: Remainder) -> Remainder:
    """Return the combined forms of two places, which are never near at once."""
    parts, within = (tuple(dict.fromkeys(n)) for n in ((*a.parts, *b.parts), (*a.within, *b.within)))
    return Remainder(where(a.near, a.value, b.value), logical_or(a.near, b.near), parts, within)


def dear(value: Node, near: Node, parts: tuple[Node, ...]) -> bool:
    """Return whether the form costs too much compared with the text."""
    stays = {*parts, *(bare(a) for p in parts for a in p.args)}
    own = [n for n in topological([value, near], lambda n: n not in stays) if n not in stays]
    text = sum(map(weight, parts))
    return sum(map(weight, own)) + text > _PRICE * (text + 6)
