"""Differences in which each function is replaced by the first terms of its series and a remainder, so that common terms cancel exactly.

Knows no rules.

``1 - (1 - x)**y * (1 + x * y)`` is a polynomial in ``x``, ``y`` and the remainder of the power, which is the power
minus ``1 - x * y``. At order 1 a function is replaced by its value at 0 and a remainder (``exp(u)`` is 1 and
``expm1(u)``); if the terms that are left cancel again, at order 2 by its linear term, too (1, ``u``, and a series).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import reduce
from itertools import combinations

import numpy as np

from tensormagic.ir.cost import weight
from tensormagic.ir.facts import not_negative
from tensormagic.ir.node import Node, topological
from tensormagic.ir.rewriting.roundings import cancels
from tensormagic.ir.rewriting.rules import bare
from tensormagic.ir.rewriting.within import ops_within, within
from tensormagic.ops.scalars.scalar import (
    absolute,
    add,
    arcsin,
    arcsinh,
    arctan,
    arctanh,
    cos,
    cosh,
    divide,
    expm1,
    less,
    less_equal,
    log,
    log1p,
    logical_and,
    maximum,
    multiply,
    negative,
    sin,
    sinh,
    square,
    subtract,
    tan,
    tanh,
)
from tensormagic.transform.rewriting.sums.expansions import less_beginning
from tensormagic.transform.rewriting.sums.first_looks import read
from tensormagic.transform.rewriting.sums.numbers_near import number_at
from tensormagic.transform.rewriting.sums.polynomials import NOTHING, Polynomial, TooLarge, by_turns
from tensormagic.transform.rewriting.sums.rationals import Quotient, Reading, form_of, is_given, over_one, product
from tensormagic.transform.rewriting.sums.series import dear
from tensormagic.transform.rewriting.sums.terms import Apart, Sum, as_text, number_of, sum_of, written

_NEAR = 0.5
"""Operands up to this size count as small."""
_LEFT = 0.25
"""Two sides cancel if their difference is at most this part of them; a form is used where its terms are at most this part of the sides."""
_KEPT = 2.0**-5
"""Which part of the sum of its terms' sizes a form must be, at places where the sides cancel."""
_LOST = 2.0**8
"""A form is used where it is larger than this many roundings of its terms."""
_SMALL, _ELSEWHERE = 2.0**-7, 1.37
_LEAVES = 4
_NODES = 40
_DEEP = 8


# reading --------------------------------------------------------------------------------------------------------------


@dataclass
class _Beginnings(Reading):
    """Nodes as quotients of polynomials, with functions replaced by their leading terms up to ``order`` and a remainder atom.

    ``equal`` says that the sides cancel where operands are equal, as roots of products and their factors do.
    ``near`` holds the conditions under which this is good; ``rests`` maps each remainder atom to its text.
    """

    order: int = 1
    equal: bool = False
    near: dict[Node, None] = field(default_factory=dict[Node, None])
    rests: dict[Node, Node] = field(default_factory=dict[Node, Node])

    def _read(self, node: Node, depth: int) -> Quotient:
        text = node if written(node) is not None else bare(as_text(node))
        begins = _FUNCTIONS.get(text.op.name) if depth else None
        found = begins(self, text, depth - 1) if begins is not None else None
        if text is not node or found is not None:
            self.through[node] = None
        return super()._read(text, depth) if found is None else found

    def number(self, value: Fraction | int) -> Quotient:
        """Return a number as a quotient."""
        return Quotient({NOTHING: value} if value else {}, Counter())

    def one(self, node: Node) -> Quotient:
        """Return ``node`` as an atom that is not read further."""
        return Quotient(self.atom(bare(node)), Counter())

    def total(self, *terms: Quotient) -> Quotient:
        """Return the sum of quotients."""
        return reduce(lambda a, b: self.sum(a, b, 1), terms)

    def times(self, a: Quotient, value: Fraction | int) -> Quotient:
        """Return ``value * a``."""
        return product(a, self.number(value))

    def rest(self, text: Node) -> Quotient:
        """Return the remainder ``text`` of a function after its leading terms, as an atom with a series; raise TooLarge if it has none."""
        found = less_beginning(text, text.type.dtype)
        if found is None:
            raise TooLarge
        self.near[found.near] = None
        self.rests[bare(found.value)] = text
        return self.one(found.value)

    def up_to(self, small: Node) -> None:
        """Require that ``small`` is near 0."""
        self.near[less(absolute(small), _NEAR)] = None

    def small(self, node: Node, depth: int) -> Quotient | None:
        """Return ``node`` as a quotient that vanishes at 0, or None if it does not vanish there, or is not accurate."""
        found = self.of(node, depth)
        return None if NOTHING in found.top or not found.top or not _is_accurate(node) else found


def _is_accurate(node: Node) -> bool:
    """Return whether a small value is accurate: a product of such, a function, or a sum of given numbers."""
    inner = bare(node)
    if inner.op in {add, subtract}:
        terms = sum_of(inner).terms
        return all(is_given(bare(n)) or (len(n.args) < 2 and _is_accurate(n)) for _, n, _ in terms)
    return all(map(_is_accurate, inner.args)) if inner.op in _PRODUCTS else True


_PRODUCTS = frozenset((multiply, divide, negative, square))
_ROOTS = ops_within(("sqrt",))


def _less_one(base: Node) -> Node | None:
    """Return ``x`` if ``base`` is ``1 + x``, else None; a quotient by 12 is not taken for a multiple of a rounded number."""
    inner = bare(base)
    for one, other in (inner.args, inner.args[::-1]) if inner.op is add else ():
        if number_of(bare(one)) == 1:
            return other
    total = sum_of(inner, text=True) if inner.op is subtract or written(inner) is not None or inner.op is add else None
    if total is None or total.number != 1 or not total.terms:
        return None
    value = total.minus(Sum((), Fraction(1))).node()
    return value if isinstance(value, Node) else None


def _exponential(of: _Beginnings, text: Node, depth: int) -> Quotient | None:
    return _risen(of, text.args[0], of.small(text.args[0], depth), 1)


def _rise(of: _Beginnings, text: Node, depth: int) -> Quotient | None:
    return _risen(of, text.args[0], of.small(text.args[0], depth), 0) if of.order > 1 else None


def _risen(of: _Beginnings, rise: Node, meant: Quotient | None, number: int) -> Quotient | None:
    """Return ``exp(rise)``, or ``expm1(rise)`` if ``number`` is 0, where ``meant`` is the linear term; None if ``meant`` is None."""
    if meant is None:
        return None
    if of.order == 1:
        of.up_to(rise)
        return of.total(of.number(1), of.one(expm1(rise)))
    return of.total(of.number(number), meant, of.rest(subtract(expm1(rise), rise)))


def _power(of: _Beginnings, text: Node, depth: int) -> Quotient | None:
    """Return a power whose base is near 1, or whose exponent is small, or None for other powers."""
    base, exponent = text.args
    n, more = number_of(bare(exponent)), _less_one(base)
    if n is not None and (n.denominator == 1 and abs(n) <= _WHOLE):
        return None
    if more is not None:
        meant = _logarithm_of(of, more, depth)
        logarithm = log1p(more)
    elif n is None:
        meant, logarithm = of.one(log(base)), log(base)
    else:
        return None
    rise = exponent * logarithm
    return None if meant is None else _risen(of, rise, product(of.of(exponent, depth), meant), 1)


_WHOLE = 4


def _logarithm_of(of: _Beginnings, more: Node, depth: int) -> Quotient | None:
    """Return ``log1p(more)``, or None if ``more`` does not vanish at 0."""
    meant = of.small(more, depth)
    if meant is None:
        return None
    if of.order == 1:
        of.up_to(more)
        return of.one(log1p(more))
    return of.total(meant, of.rest(subtract(log1p(more), more)))


def _logarithm(of: _Beginnings, text: Node, depth: int) -> Quotient | None:
    more = _less_one(text.args[0]) if text.op is log else text.args[0]
    return None if more is None else _logarithm_of(of, more, depth)


def _root(of: _Beginnings, text: Node, depth: int) -> Quotient | None:
    more = _less_one(text.args[0])
    total = None if more is not None else of.of(text.args[0], depth)
    if total is not None and not total.below and total.top.get(NOTHING) == 1 and len(total.top) > 1:
        more = _linear_or_product(text.args[0])  # (1 - x) * (1 + x)
    meant = None if more is None else of.small(more, depth)
    if more is None or meant is None:
        return _mean(of, text, depth)
    of.up_to(more)
    rise = of.one(more / (1 + text))  # r for sqrt(1 + u): u is 2 * r + r**2
    if of.order == 1:
        return of.total(of.number(1), rise)
    half = Fraction(1, 2)
    return of.total(of.number(1), of.times(meant, half), of.times(product(rise, rise), -half))


def _mean(of: _Beginnings, root: Node, depth: int) -> Quotient | None:
    """Return ``sqrt(p * q)`` as the mean of ``p`` and ``q`` less what goes with the square of their difference, or None."""
    inner = bare(root.args[0])
    if inner.op is not multiply or not of.equal:
        return None
    p, q = inner.args
    apart = sum_of(p).minus(sum_of(q)).node()
    if not isinstance(apart, Node) or not _is_accurate(apart):
        return None
    size = (p + q) + 2 * root
    of.near[less(absolute(apart), size * 0.25)] = None
    half = Fraction(1, 2)
    rest = of.one(apart * (apart / size))
    return of.total(of.times(of.of(p, depth), half), of.times(of.of(q, depth), half), of.times(rest, -half))


def _linear_or_product(base: Node) -> Node | None:
    """Return ``base - 1`` without rounding if ``base`` is ``(1 - x) * (1 + x)`` or the like, else None."""
    inner = bare(base)
    if inner.op is not multiply:
        return None
    first, second = (_less_one(a) for a in inner.args)
    if first is None or second is None:
        return None
    total = sum_of(first).minus(sum_of(second).times(-1))
    one = sum_of(second)
    if len(total) or len(one.terms) != 1 or abs(one.terms[0][2]) != 1:
        return None
    return negative(square(one.terms[0][1]))


def _cosine(sign: int, half: _Function, whole: _Function) -> _Begins:
    def read_(of: _Beginnings, text: Node, depth: int) -> Quotient | None:
        angle = text.args[0]
        meant = of.small(angle, depth)
        if meant is None:
            return None
        if of.order == 1:
            of.up_to(angle)
            part = of.one(half(angle * 0.5))
            return of.total(of.number(1), of.times(product(part, part), 2 * sign))
        squared = of.times(product(meant, meant), Fraction(sign, 2))
        begun = square(angle) * 0.5
        rest = of.rest(subtract(whole(angle), 1 + begun if sign > 0 else 1 - begun))
        return of.total(of.number(1), squared, rest)

    return read_


def _odd(function: _Function) -> _Begins:
    def read_(of: _Beginnings, text: Node, depth: int) -> Quotient | None:
        angle, sign = _without_sign(text.args[0])
        meant = of.small(angle, depth)
        if meant is None:
            return None
        if of.order == 1:
            return of.times(of.one(function(angle)), sign)
        return of.times(of.total(meant, of.rest(subtract(function(angle), angle))), sign)

    return read_


def _without_sign(node: Node) -> tuple[Node, int]:
    """Return the argument of an odd function without its sign, and the sign."""
    inner = bare(node)
    return (inner.args[0], -1) if inner.op is negative else (node, 1)


def _logistic(of: _Beginnings, text: Node, depth: int) -> Quotient | None:
    angle, sign = _without_sign(text.args[0])
    half = angle * 0.5
    found = _odd(tanh)(of, tanh(half), depth)
    return None if found is None else of.total(of.number(Fraction(1, 2)), of.times(found, Fraction(sign, 2)))


_Function = Callable[[Node], Node]
_Begins = Callable[[_Beginnings, Node, int], Quotient | None]
_FUNCTIONS: dict[str, _Begins] = {
    "exp": _exponential,
    "expm1": _rise,
    "power": _power,
    "log": _logarithm,
    "log1p": _logarithm,
    "sqrt": _root,
    "cos": _cosine(-1, sin, cos),
    "cosh": _cosine(1, sinh, cosh),
    "sigmoid": _logistic,
    **{f.name: _odd(f) for f in (sin, tan, arcsin, arctan, sinh, tanh, arcsinh, arctanh)},
}
BEGINS = ops_within((*_FUNCTIONS, "where"))
"""The ops of which a sum must have at least one."""


# where they cancel ----------------------------------------------------------------------------------------------------


def by_beginnings(a: Node, b: Node) -> Apart | None:
    """Return ``a - b`` by the remainders of functions after their leading terms, or None if these do not cancel.

    The result is ``local`` if a series is lighter, and ``rough`` if the sides also cancel for operands near each
    other, and so does the form.
    """
    leaves = _leaves(a, b) or []
    places = list(_cancelling(a, b, _near_zero(leaves)))
    roots = bool((within(a) | within(b)) & _ROOTS)
    if not places and not roots:
        return None
    equal = list(_cancelling(a, b, _near_each_other(leaves)))
    if equal and roots and (means := _by_order(a, b, 1, [*places, *equal], equal=True)) is not None:
        return replace(means, rough=True)
    if not places:
        return None
    found = _first(a, b, [*places, *equal])
    if found is None:
        found = _first(a, b, places) if equal else None
        return None if found is None else replace(found, rough=True)
    if len(places[0]) > 1:
        return found
    total = subtract(a, b)
    series = less_beginning(total, total.type.dtype)
    return replace(found, local=series is not None and _weight(series.value) < _weight(found.value))


def _first(a: Node, b: Node, places: list[_Numbers]) -> Apart | None:
    """Return the form of the lowest order that is good at all of these places, or None."""
    return next((f for order in (1, 2) if (f := _by_order(a, b, order, places)) is not None), None)


def _weight(value: Node | float) -> int:
    return sum(map(weight, topological([value]))) if isinstance(value, Node) else 0


_Numbers = dict[Node, float]


def _near_zero(leaves: list[Node]) -> Iterator[_Numbers]:
    """Yield numbers for the operands: all small, and each one small alone."""
    if leaves:
        yield {n: _SMALL * (1 + 0.37 * k) for k, n in enumerate(leaves)}
    if len(leaves) > 1:
        elsewhere = {n: _ELSEWHERE + 0.41 * k for k, n in enumerate(leaves)}
        yield from ({**elsewhere, n: _SMALL} for n in leaves)


def _near_each_other(leaves: list[Node]) -> Iterator[_Numbers]:
    """Yield numbers for the operands: all small, and two of them near each other."""
    numbers = {n: 4 * _SMALL * (1 + 0.37 * k) for k, n in enumerate(leaves)}
    yield from ({**numbers, m: numbers[n] * (1 + _SMALL)} for n, m in combinations(leaves, 2))


def _cancelling(a: Node, b: Node, every: Iterable[_Numbers]) -> Iterator[_Numbers]:
    """Yield those sets of numbers at which the two sides cancel."""
    for numbers in every:
        known = dict(numbers)
        with suppress(ArithmeticError, ValueError):
            first, second = number_at(a, known, _DEEP), number_at(b, known, _DEEP)
            if abs(first - second) < _LEFT * max(abs(first), abs(second)):
                yield numbers


def _leaves(*sides: Node) -> list[Node] | None:
    """Return the nodes at which reading stops, if they are few and there are functions of them, or None."""
    found: dict[Node, None] = {}
    seen: set[Node] = set()
    stack = [*map(bare, sides)]
    begins = False
    while stack:
        node = stack.pop()
        if node in seen:
            continue
        seen.add(node)
        text, parts = read(node)
        begins = begins or text.op.name in _FUNCTIONS
        if parts:
            stack += map(bare, parts)
        elif number_of(text) is None:
            found[text] = None
        if len(seen) > _NODES or len(found) > _LEAVES:
            return None
    return [*found] if begins else None


def _by_order(a: Node, b: Node, order: int, places: list[_Numbers], *, equal: bool = False) -> Apart | None:
    """Return the form with leading terms up to ``order``, if its terms cancel at none of these places, or None."""
    reading = _Beginnings(order=order, equal=equal)
    found = over_one(reading, a, b)
    if found is None or not reading.near or not all(_is_better(reading, *found, at) for at in places):
        return None
    whole, _ = found
    value, bound = form_of(whole, reading.atoms)
    if not isinstance(value, Node) or not isinstance(bound, Node):
        return None
    info, size = np.finfo(value.type.dtype.type), _size(bound)
    near = [*reading.near, less(size, maximum(_size(a), _size(b)) * _LEFT)]
    if value is not bound:  # where all of it cancels, the text may be 0
        near.append(less_equal(size * float(info.eps * _LOST), absolute(value)))
    if whole.below:  # nor where a denominator underflows
        near.append(less(float(info.tiny / info.eps), reduce(multiply, [size, *map(_size, by_turns(whole.below))])))
    stays = set(topological([value, bound, *reading.near]))
    parts = tuple(n for n in reading.through if n.args)
    every = reduce(logical_and, near)
    if dear(value, every, parts) or any(map(cancels, (subtract(a, b), *parts))):
        return None  # it costs too much, or the code works with rounding errors
    return Apart(value, every, tuple(n for n in parts if n not in stays), known=True)


def _size(node: Node) -> Node:
    return node if not_negative(node) else absolute(node)


def _is_better(reading: _Beginnings, whole: Quotient, sides: list[Polynomial], at: _Numbers) -> bool:
    """Return whether the terms of a form are small compared with the sides, and do not cancel, at these numbers."""
    numbers = {**at, **{n: _number(text, at) for n, text in reading.rests.items()}}
    values = [_number(n, numbers) for n in reading.atoms]
    terms = _terms(whole.top, values)
    size = sum(map(abs, terms))
    return abs(sum(terms)) >= _KEPT * size and size <= _LEFT * max(abs(sum(_terms(s, values))) for s in sides)


def _number(node: Node, numbers: _Numbers) -> float:
    return number_at(node, dict(numbers), _DEEP)


def _terms(p: Polynomial, values: list[float]) -> list[float]:
    """Return the values of the terms of a polynomial."""
    found: list[float] = []
    for powers, c in p.items():
        term = float(c)
        for value, power in zip(values, powers, strict=False):
            term *= value**power
        found.append(term)
    return found
