"""Sums that cancel where something is small, as series in that small quantity, each times powers and logarithms of other operands.

Knows no rules.

The small quantity may be a product of two operands (``(exp(x * y) - 1) / x - y``), an exponential of one (``log(2 *
cosh(x)) - x * tanh(x)`` for large x), or an operand's distance from another one, from one half, or from infinity.
Irrational numbers are taken with so many digits that the rounding errors of the text's own numbers remain where all
else cancels.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial, reduce
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from tensormagic.ir.node import Node
from tensormagic.ir.rewriting.rules import bare
from tensormagic.ops.scalars.scalar import (
    absolute,
    add,
    less,
    log,
    logical_and,
    maximum,
    power,
    sqrt,
)
from tensormagic.transform.rewriting.sums.cancellation_places import Far, Place
from tensormagic.transform.rewriting.sums.common_factors import without_common_factors
from tensormagic.transform.rewriting.sums.fifty_digits import beside, exact, pi, stirling, tails
from tensormagic.transform.rewriting.sums.first_looks import Look, is_deep, is_function, look_at, places
from tensormagic.transform.rewriting.sums.numbers_near import number_at
from tensormagic.transform.rewriting.sums.power_series import (
    FUNCTIONS,
    NoSeriesError,
    Series,
    half_of_erf,
    in_powers,
    logarithm,
    number,
    raised,
)
from tensormagic.transform.rewriting.sums.power_series import exponential as exponential_of
from tensormagic.transform.rewriting.sums.series import (
    Remainder,
    chosen,
    dear,
    either,
    evaluated,
    scaled,
    series_within,
)
from tensormagic.transform.rewriting.sums.series_readers import ARITHMETIC, READERS, ROOTS
from tensormagic.transform.rewriting.sums.terms import Sum, as_text, is_within_form, number_of, written

_KNOWN = 40
"""How many terms of each series are computed."""
_LOOK = 9
"""How many terms a first test computes."""
_DEEP = 7
_GROUPS = 4
_WHOLE = 4
_RADII = (0.5, 0.25, 0.125, 0.0625)
_ROUNDED = Fraction(1, 2**48)
"""Remainders of coefficients up to this part of their terms are taken for rounding errors of the text's numbers."""
_BESIDE = 5
"""How many of the following coefficients are compared with one that may be such a remainder."""
_LEFT = 0.25
_SMALL = 2.0**-6
"""A sum this small relative to its terms is analysed even if it does not get smaller nearer to the place."""
_FALLS = 0.9
"""A cancelling sum falls at least by this factor when four times nearer to the place: to a quarter or less, to a half for a root."""
_HALF = Fraction(1, 2)
_PART = 0.5

_Powers = frozenset[tuple[Node, Fraction]]
Read = dict[_Powers, Series]
"""Series, by the powers of other operands that each is multiplied by."""
_NONE: _Powers = frozenset()


_found: WeakKeyDictionary[Node, Remainder | None] = WeakKeyDictionary()
"""Results for sums, cached because several rules and passes ask for them."""


def less_beginning(total: Node | Sum, dtype: np.dtype[Any]) -> Remainder | None:
    """Return a sum by its series where it cancels at some place, or None if it does not."""
    if not isinstance(total, Node):
        return series_within(total, (), dtype)
    if total not in _found:
        _found[total] = _by_series(total, dtype)
    return _found[total]


def _by_series(total: Node, dtype: np.dtype[Any]) -> Remainder | None:
    if is_within_form(total):
        return None
    look = None if is_deep(total) else look_at(total)
    found = None if look is None else series_within(total, look.operands, dtype) or _expanded(total, dtype, look)
    return found or _by_what_is_left(total, dtype)


def _by_what_is_left(total: Node, dtype: np.dtype[Any]) -> Remainder | None:
    """Return a sum of two products by the form that it has without their common factors, or None."""
    left = without_common_factors(total)
    found = None if left is None else less_beginning(left.total, dtype)
    if left is None or found is None:
        return None
    value = left.times(found.value)
    return replace(found, value=value, parts=tuple(dict.fromkeys((*left.within, *found.parts))))


def _expanded(total: Node, dtype: np.dtype[Any], look: Look) -> Remainder | None:
    found: Remainder | None = None
    for place in places(look):
        if (found is not None and not place.opposite) or not _cancels(total, place):
            continue
        try:
            form = _form(total, dtype, place)
        except NoSeriesError:
            continue
        if form is not None and found is not None:
            return either(found, form)
        found = found or form
    return found


def _cancels(total: Node, place: Place) -> bool:
    """Return whether a sum is small compared with its terms near a place, and smaller nearer to it (a quick numeric test)."""
    far = _part_of_terms(total, place.numbers)
    if not far < _LEFT:
        return False
    near = _part_of_terms(total, place.nearer)
    return not max(_SMALL, _FALLS * far) <= near < math.inf


def _part_of_terms(total: Node, numbers: Mapping[Node, float]) -> float:
    """Return the size of a sum relative to its larger term; infinite where it cannot be computed."""
    known = dict(numbers)
    try:
        first, second = (number_at(a, known, _DEEP) for a in total.args)
        whole = first - second if total.op.name == "subtract" else first + second
        return abs(whole) / max(abs(first), abs(second))
    except (ArithmeticError, ValueError):
        return math.inf


# reading --------------------------------------------------------------------------------------------------------------


def _times(a: _Powers, b: _Powers, sign: int = 1) -> _Powers:
    if not b:
        return a
    found = dict(a)
    for node, times in b:
        found[node] = found.get(node, Fraction(0)) + sign * times
    return frozenset((n, p) for n, p in found.items() if p)


@dataclass
class Expansion:
    """Nodes as sums of series at one place."""

    place: Place
    known: int = _KNOWN
    through: dict[Node, None] = field(default_factory=dict[Node, None])
    positive: dict[Node, None] = field(default_factory=dict[Node, None])
    within: set[Node] = field(default_factory=set[Node])
    poles: bool = False
    """Whether anything is divided by an expression that is 0 at the place."""
    _found: dict[Node, Read] = field(default_factory=dict[Node, Read])
    _functions: dict[Any, Node] = field(default_factory=dict[Any, Node])

    def number(self, value: Fraction | int) -> Read:
        """Return a constant number as an expansion."""
        return {_NONE: number(Fraction(value), self.known)} if value else {}

    def atom(self, node: Node) -> Read:
        """Return ``node`` as an atom that is not read further."""
        return {frozenset(((self.same(node), Fraction(1)),)): number(Fraction(1), self.known)}

    def same(self, node: Node) -> Node:
        """Return one representative for nodes that differ only in the forms of their operands."""
        inner = bare(node)
        return (
            self._functions.setdefault((inner.op, inner.param_items, *map(bare, inner.args)), inner)
            if inner.args
            else inner
        )

    def of(self, node: Node, depth: int = _DEEP) -> Read:
        """Return ``node`` as a sum of series."""
        inner = bare(node)
        found = self._found.get(inner)
        if found is None:
            found = self._found[inner] = self._read(inner, depth)
        return found

    def _read(self, node: Node, depth: int) -> Read:
        given = self._given(node)
        if given is not None:
            return given
        sides = written(node)
        text = node if sides is not None else bare(as_text(node))
        if not depth or not text.args:
            return self.atom(node)
        if text is not node and (given := self.place.given(text, self.known)) is not None:
            self.through[node] = None
            return given
        self.through[node] = None
        if sides is not None:
            before = set(self.through)
            found = self.sum([self.of(s, depth - 1) for s in sides], (1, -1))
            self.within |= set(self.through) - before
            return found
        found = self._function(text, depth)
        if found is None:
            del self.through[node]
        return self.atom(node) if found is None else found

    def _given(self, node: Node) -> Read | None:
        """Return an operand as the place gives it, or a number, or None."""
        given = self.place.given(node, self.known)
        if given is not None:
            if node.op is power:
                self.through[node] = None
            return given
        value = number_of(node)
        return None if value is None else self.number(value)

    def _function(self, text: Node, depth: int) -> Read | None:
        """Return a function of an expansion, or None if its argument is not small, or the function is not known."""
        read = READERS.get(text.op.name)
        if read is None:
            return None
        args = [self.of(a, depth - 1) for a in text.args]
        if text.op.name in ARITHMETIC or not all(map(self.constant, args)):
            return read(self, *args)
        if text.op.name in ROOTS:  # with the number that it is close to
            with suppress(NoSeriesError):
                return read(self, *args)
        return None

    def constant(self, read: Read) -> bool:
        """Return whether an expansion is constant, and its exponential, too."""
        return all(
            s.order == 0 and not any(s.terms[1:]) and (not k or self.place.exponent(k, s) is None)
            for k, s in read.items()
        )

    def sum(self, reads: Sequence[Read], signs: Sequence[int]) -> Read:
        """Return the sum of several expansions, with the given signs."""
        found: Read = {}
        for read, sign in zip(reads, signs, strict=True):
            for key, own in read.items():
                more = own if sign > 0 else -own
                found[key] = found[key] + more if key in found else more
        if len(found) > _GROUPS:
            raise NoSeriesError
        return {k: s for k, s in found.items() if s.terms}

    def product(self, a: Read, b: Read) -> Read:
        """Return the product of two expansions."""
        return self.sum([{_times(k, m): s * t} for k, s in a.items() for m, t in b.items()], [1] * (len(a) * len(b)))

    def inverse(self, a: Read) -> Read:
        """Return the reciprocal of an expansion that is a single product."""
        ((key, own),) = self.single(a).items()
        self.poles = self.poles or (own.order > 0 and self.place.reached)
        return {_times(_NONE, key, -1): number(Fraction(1), len(own.terms)) / own}

    def single(self, a: Read) -> Read:
        """Return ``a`` if it is a single product, else raise NoSeriesError."""
        if len(a) != 1 or not all(s.terms for s in a.values()):
            raise NoSeriesError
        return a

    def raised(self, a: Read, to: Fraction) -> Read:
        """Return a power: an integer power of any expansion, another power of a single product."""
        if to.denominator == 1 and 0 <= to <= _WHOLE:
            return reduce(self.product, [a] * int(to), self.number(1))
        ((key, own),) = self.single(a).items()
        first, order = Fraction(own.terms[0]), own.order * to
        rest = raised(Series(0, tuple(Fraction(c) / first for c in own.terms)), to)
        if to.denominator != 1:
            self.positive.update((n, None) for n, _ in key)
        whole = math.floor(order)
        found: Read = {frozenset((n, p * to) for n, p in key): Series(whole, rest.terms)}
        if order != whole:
            found = self.product(found, self.place.fraction(order - whole, self.known))
        times = first**to.numerator if to.denominator == 1 else exact("power", first, to)
        return found if times == 1 else self.product(found, self.number(times))

    def logarithm(self, a: Read) -> Read:
        """Return the logarithm of a single product."""
        ((key, own),) = self.single(a).items()
        first = Fraction(own.terms[0])
        found = [{_NONE: logarithm(Series(0, tuple(Fraction(c) / first for c in own.terms)))}]
        if first != 1:
            found.append(self.number(exact("log", first)))
        for node, times in key:
            self.positive[node] = None
            own_ = bare(log(node))
            found.append(self.product(self.place.given(own_, self.known) or self.atom(own_), self.number(times)))
        if own.order:
            found.append(self.product(self.place.logarithm(self.known), self.number(own.order)))
        return self.sum(found, [1] * len(found))

    def exponential(self, a: Read) -> Read:
        """Return the exponential of something small, of a number, or of a multiple of the place's exponent."""
        order, times, others = 0, Fraction(1), _NONE
        small = Series(self.known, ())
        for key, own in a.items():
            taken = self.place.exponent(key, own)
            if taken is not None:
                order += taken
            elif (other := self.place.beside(key, own)) is not None:
                others = frozenset(((self.same(other), Fraction(1)),))
            elif key or own.order < 0:
                raise NoSeriesError
            else:
                value = Fraction(own.at(0))
                times = exact("exp", value) if value else times
                small = own if not value else own + -number(value, self.known)
        rest = exponential_of(small) if small.terms else number(Fraction(1), self.known)
        return self.product({others: Series(rest.order + order, rest.terms)}, self.number(times))

    def plus(self, a: Read, value: int) -> Read:
        """Return ``a`` plus a number."""
        return self.sum([a, self.number(value)], (1, 1))

    def function(self, name: str, a: Read) -> Read:
        """Return a function of an argument that is 0 or another number at the place."""
        if name == "arctan" and self.is_large(a):
            return self.far_angle(a)
        if set(a) - {_NONE} or (a and a[_NONE].order < 0):
            raise NoSeriesError
        if not a:
            return self.number(name in {"cos", "cosh"})
        return {_NONE: (FUNCTIONS[name] if a[_NONE].order else partial(beside, name))(a[_NONE])}

    def size(self, a: Read) -> Read:
        """Return the absolute value of an expansion that is a nonzero number at the place."""
        own = a.get(_NONE)
        if len(a) != 1 or own is None or own.order:
            raise NoSeriesError
        return a if own.terms[0] > 0 else self.sum([a], (-1,))

    def angle(self, a: Read, b: Read) -> Read:
        """Return ``arctan2(a, b)`` for a positive ``b``."""
        ((key, own),) = self.single(b).items()
        if any(t.denominator != 1 for _, t in key) or own.order % 2 or own.terms[0] <= 0:
            raise NoSeriesError
        self.positive.update((n, None) for n, _ in key)
        return self.function("arctan", self.product(a, self.inverse(b)))

    def error(self, a: Read) -> Read:
        """Return the error function of an expansion that is 0 at the place."""
        if set(a) - {_NONE} or (a and a[_NONE].order <= 0):
            raise NoSeriesError
        times = self.number(2 * exact("power", pi(), -_HALF))
        return self.product({_NONE: half_of_erf(a[_NONE])}, times) if a else {}

    def is_large(self, a: Read) -> bool:
        """Return whether ``a`` grows without bound at the place."""
        return len(a) == 1 and next(iter(a.values())).order < 0

    def far_angle(self, a: Read) -> Read:
        """Return the arctangent of something large: half of pi minus the arctangent of the reciprocal."""
        ((key, own),) = a.items()
        if key or not (own.order % 2 == 0 or isinstance(self.place, Far)):
            raise NoSeriesError
        if own.order % 2:
            self.positive[self.place.base] = None  # type: ignore[attr-defined]
        rest = self.function("arctan", self.inverse(a))
        return self.sum([self.number(pi() / 2 * (1 if own.terms[0] > 0 else -1)), rest], (1, -1))

    def far(self, a: Read) -> tuple[Series, Series]:
        """Return ``a`` and its reciprocal if ``a`` is large and positive, else raise NoSeriesError."""
        own = a.get(_NONE)
        if len(a) != 1 or own is None or own.order >= 0 or own.terms[0] <= 0 or not isinstance(self.place, Far):
            raise NoSeriesError
        self.positive[self.place.base] = None
        return own, number(Fraction(1), len(own.terms)) / own

    def log_gamma(self, a: Read) -> Read:
        """Return ``log(gamma(a))`` for large ``a``, by Stirling's series."""
        _, small = self.far(a)
        rest = in_powers(stirling(self.known // 2), small * small) * small
        first = self.product(self.sum([a, self.number(-_HALF)], (1, 1)), self.logarithm(a))
        return self.sum([first, a, {_NONE: rest}, self.number(exact("log", 2 * pi()) / 2)], (1, -1, 1, 1))

    def tail(self, a: Read) -> Read:
        """Return ``erfcx`` of something large."""
        _, small = self.far(a)
        rest = in_powers(tails(self.known // 2), small * small) * small
        return self.product({_NONE: rest}, self.number(exact("power", pi(), -_HALF)))

    def by_exponentials(self, a: Read, top: tuple[int, int], below: tuple[int, int] | None) -> Read:
        """Return ``(p * e + q) / (r * e + s)`` for ``e = exp(2 * a)``, or over ``2 * exp(a)`` if ``below`` is None."""
        twice = self.exponential(self.product(a, self.number(2)))
        first = self.sum([self.product(twice, self.number(top[0])), self.number(top[1])], (1, 1))
        if below is None:
            return self.product(first, self.inverse(self.product(self.exponential(a), self.number(2))))
        second = self.sum([self.product(twice, self.number(below[0])), self.number(below[1])], (1, 1))
        return self.product(first, self.inverse(second))


# forms ----------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Part:
    """One series of a sum, its factor, and what is left of its first coefficients by the rounding of the text's numbers."""

    others: _Powers
    series: Series | None
    left: tuple[tuple[int, Fraction], ...]


def _parts(terms: Sequence[Read], total: Read) -> list[Part] | None:
    """Return the sum as parts, or None if the leading terms cancel in none of them."""
    found: list[Part] = []
    cancelled = False
    for key, own in total.items():
        sizes = [t[key] for t in terms if key in t]
        least = min(s.order for s in sizes)
        left: list[tuple[int, Fraction]] = []
        coefficients = list(own.terms)
        for k, c in enumerate(coefficients):
            following = coefficients[k + 1 : k + _BESIDE]
            most = max([abs(s.at(own.order + k)) for s in sizes] + [abs(f) for f in following])
            if c and abs(c) < most * _ROUNDED:
                left.append((own.order + k, Fraction(c)))
                coefficients[k] = 0
        skip = next((k for k, c in enumerate(coefficients) if c), None)
        series = None if skip is None else Series(own.order + skip, tuple(coefficients[skip:]))
        cancelled = cancelled or series is None or series.order > least
        found.append(Part(key, series, tuple(left)))
    gone = any(key not in total for t in terms for key in t)
    return found if (cancelled or gone) and found else None


def _read(total: Node, place: Place, known: int) -> tuple[Expansion, list[Part] | None]:
    """Return a sum as its parts at a place."""
    reading = Expansion(place, known)
    terms = [reading.of(a) for a in total.args]
    return reading, _parts(terms, reading.sum(terms, (1, -1 if total.op.name == "subtract" else 1)))


def _form(total: Node, dtype: np.dtype[Any], place: Place) -> Remainder | None:
    if _read(total, place, _LOOK)[1] is None:
        return None
    reading, parts = _read(total, place, _KNOWN)
    through = tuple(reading.through)
    if parts is None or not any(map(is_function, map(bare, map(as_text, through)))):
        return None
    small, bits = place.small(), np.finfo(dtype.type).nmant
    for radius in _RADII:
        near = less(absolute(small), radius)
        if place.away or reading.poles or any(p.series is not None and p.series.order < 0 for p in parts):
            near = logical_and(near, less(0, absolute(small)))
        near = reduce(logical_and, [less(0, n) for n in reading.positive], near)
        values = [of_part(p, small, near, radius, bits) for p in parts]
        if None in values:
            continue
        value = reduce(add, values)
        if len(values) > 1:
            size = reduce(add, map(absolute, values))
            near = logical_and(near, less(size, maximum(*map(absolute, total.args)) * _PART))
        if isinstance(value, Node) and not dear(value, near, through):
            own = tuple(p for p in through if p not in reading.within)
            return Remainder(value, near, own, tuple(reading.within))
    return None


def of_part(part: Part, small: Node, near: Node, radius: float, bits: int) -> Node | None:
    """Return one series times its factor as a node, or None if it needs too many terms."""
    found = None
    if part.series is not None:
        found = next(iter(chosen(part.series, bits, (radius,))), None)
        if found is None:
            return None
    sums: list[Node | float] = [scaled(float(c), small, k) if k else float(c) for k, c in part.left]
    if part.series is not None and found is not None:
        sums.append(evaluated(small, near, part.series.order, *found[1:]))
    value: Node | float = reduce(lambda a, b: a + b, sums)
    for node, times in sorted(part.others, key=lambda n: n[0].serial):
        value = _powered(value, node, times)
    return value if isinstance(value, Node) else None


def _powered(value: Node | float, node: Node, times: Fraction) -> Node:
    """Return ``value * node ** times``."""
    whole = math.floor(times) if times > 0 else math.ceil(times)
    rest = times - whole
    if whole:
        value = scaled(value, node, whole)
    if rest:
        root = node ** float(abs(rest)) if abs(rest) != Fraction(1, 2) else sqrt(node)
        value = value * root if rest > 0 else value / root
    return value  # type: ignore[return-value]
