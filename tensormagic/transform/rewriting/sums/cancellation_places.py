"""Places where sums may cancel: which operand is small there, and how the others depend on it. Knows no rules."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from tensormagic.ir.node import Node
from tensormagic.ir.rewriting.rules import bare
from tensormagic.ops.scalars.scalar import divide, exp, log, multiply, negative, subtract
from tensormagic.transform.rewriting.sums.power_series import NoSeriesError, Series, exponential, number, power_of_x
from tensormagic.transform.rewriting.sums.terms import key_of, number_of, sum_of

_Powers = frozenset[tuple[Node, Fraction]]
NEAR = 2.0**-6
_ELSEWHERE = 1.37


class Place:
    """A place near which something is small: operands are read as series in ``small()``."""

    away = False
    """Whether the sum may be 0 at this place by the limit of its operands only."""
    reached = True
    """Whether operands may be exactly at the place, and not only near it."""

    @property
    def opposite(self) -> bool:
        """Whether this place mirrors the place before it in the search, where a sum may cancel, too."""
        return False

    @property
    def numbers(self) -> Mapping[Node, float]:
        """Machine numbers for the operands near the place."""
        return self.away_by(NEAR)

    @property
    def nearer(self) -> Mapping[Node, float]:
        """The same operands, four times nearer to the place."""
        return self.away_by(NEAR / 4)

    def away_by(self, distance: float) -> Mapping[Node, float]:
        """Return numbers for the operands for which the small quantity has the value ``distance``."""
        raise NotImplementedError

    def given(self, node: Node, known: int) -> dict[_Powers, Series] | None:
        """Return an operand as a series in the small quantity, or None if it must be read further."""
        raise NotImplementedError

    def small(self) -> Node:
        """Return the small quantity."""
        raise NotImplementedError

    def fraction(self, power: Fraction, known: int) -> dict[_Powers, Series]:
        """Return a power with a fractional exponent of the small quantity."""
        return {frozenset(((self.small(), power),)): number(Fraction(1), known)}

    def logarithm(self, known: int) -> dict[_Powers, Series]:
        """Return the logarithm of the small quantity."""
        return {frozenset(((log(self.small()), Fraction(1)),)): number(Fraction(1), known)}

    def exponent(self, key: _Powers, own: Series) -> int | None:
        """Return which power of the small quantity the exponential of ``own`` times ``key`` is, or None if it is none."""
        del key, own
        return None

    def shifted(self, a: Mapping[_Powers, Series]) -> Node | None:
        """Return the operand from which ``a`` differs by something small, or None."""
        del a
        return None

    def beside(self, key: _Powers, own: Series) -> Node | None:
        """Return the exponential of a product that is not small, to be used as a factor, or None."""
        del key, own
        return None


def _one(*of: tuple[Node, int]) -> _Powers:
    return frozenset((n, Fraction(p)) for n, p in of)


@dataclass(frozen=True)
class Beside(Place):
    """An operand near a number."""

    base: Node
    at: Fraction

    def away_by(self, distance: float) -> Mapping[Node, float]:
        return {self.base: float(self.at) + distance}

    def given(self, node: Node, known: int) -> dict[_Powers, Series] | None:
        if node is not self.base:
            return None
        x = power_of_x(1, known)
        return {frozenset(): x + number(self.at, known) if self.at else x}

    def small(self) -> Node:
        return subtract(self.base, float(self.at)) if self.at else self.base


@dataclass(frozen=True)
class Far(Place):
    """A large operand."""

    base: Node
    away = True

    def away_by(self, distance: float) -> Mapping[Node, float]:
        return {self.base: 1 / distance}

    def given(self, node: Node, known: int) -> dict[_Powers, Series] | None:
        return {frozenset(): power_of_x(-1, known)} if node is self.base else None

    def small(self) -> Node:
        return divide(1, self.base)

    def fraction(self, power: Fraction, known: int) -> dict[_Powers, Series]:
        return {frozenset(((self.base, -power),)): number(Fraction(1), known)}

    def logarithm(self, known: int) -> dict[_Powers, Series]:
        return {frozenset(((log(self.base), Fraction(1)),)): number(Fraction(-1), known)}


@dataclass(frozen=True)
class Over(Place):
    """An operand small compared with another one, or near it."""

    base: Node
    over: Node
    at: int

    def away_by(self, distance: float) -> Mapping[Node, float]:
        return {self.over: _ELSEWHERE, self.base: _ELSEWHERE * (self.at + distance)}

    def given(self, node: Node, known: int) -> dict[_Powers, Series] | None:
        if node is not self.base:
            return None
        x = power_of_x(1, known)
        return {_one((self.over, 1)): x + number(Fraction(1), known) if self.at else x}

    def small(self) -> Node:
        if not self.at:
            return divide(self.base, self.over)
        return divide(sum_of(self.base).minus(sum_of(self.over)).largest_first(), self.over)


@dataclass(frozen=True)
class Near(Place):
    """An operand near another one; exponentials, sines and cosines are read by their difference, which occurs in the sum."""

    base: Node
    over: Node

    def away_by(self, distance: float) -> Mapping[Node, float]:
        return {self.over: _ELSEWHERE, self.base: _ELSEWHERE + distance}

    def given(self, node: Node, known: int) -> dict[_Powers, Series] | None:
        if node is not self.base:
            return None
        return {_one((self.over, 1)): number(Fraction(1), known), frozenset(): power_of_x(1, known)}

    def small(self) -> Node:
        return subtract(self.base, self.over)

    def beside(self, key: _Powers, own: Series) -> Node | None:
        if key != _one((self.over, 1)) or own.order or any(own.terms[1:]) or abs(own.terms[0]) != 1:
            return None
        return exp(self.over if own.terms[0] == 1 else negative(self.over))

    def shifted(self, a: Mapping[_Powers, Series]) -> Node | None:
        own, small = a.get(_one((self.over, 1))), a.get(frozenset())
        if len(a) != 2 or own is None or small is None or small.order < 1:
            return None
        return self.over if not own.order and own.terms[0] == 1 and not any(own.terms[1:]) else None


@dataclass(frozen=True)
class Step(Near):
    """A small operand added to another one; sines, hyperbolic sines and exponentials of their sum are read by it."""

    def away_by(self, distance: float) -> Mapping[Node, float]:
        return {self.over: _ELSEWHERE, self.base: distance}

    def given(self, node: Node, known: int) -> dict[_Powers, Series] | None:
        return {frozenset(): power_of_x(1, known)} if node is self.base else None

    def small(self) -> Node:
        return self.base


def _is_difference(node: Node, other: Node) -> int:
    """Return 1 if the nodes are equal, -1 if one is the difference of the other with the sides exchanged, else 0."""
    if node is other:
        return 1
    if node.op is not subtract or other.op is not subtract:
        return 0
    own, sides = ([bare(a) for a in n.args] for n in (node, other))
    return (own == sides) - (own == sides[::-1])


def _multiple_of(node: Node, other: Node) -> Fraction | None:
    """Return the constant factor if ``node`` is a multiple of ``other``, else None."""
    if node.op is not multiply or other not in map(bare, node.args):
        return None
    return next((value for a in node.args if bare(a) is not other and (value := number_of(bare(a)))), None)


@dataclass(frozen=True)
class Product(Place):
    """A small product, or quotient, of two operands: ``base`` is read as the product over ``over``."""

    product: Node
    base: Node
    over: Node
    power: int
    """The power of the base in the product."""
    other: int
    """The power of the other operand in the product."""
    text: Node | None = None
    """The power whose exponent times the logarithm of its base is the small product, if there is one."""

    def away_by(self, distance: float) -> Mapping[Node, float]:
        if self.text is not None:
            base, exponent = self.text.args
            large, small = _ELSEWHERE, distance / _ELSEWHERE
            first, second = (small, large) if self.over is bare(exponent) else (large, small)
            return {**_with_logarithm(base, first), bare(exponent): second}
        given = (distance * _ELSEWHERE**-self.other) ** (1 / self.power)
        if self.below is not None:
            return {self.over: _ELSEWHERE, self.below: given * given}
        found = {self.over: _ELSEWHERE, self.base: given}
        if self.base.op is multiply:
            found |= {bare(a): given / float(t) for a in self.base.args if (t := _multiple_of(self.base, bare(a)))}
        if self.base.op is subtract:  # as the same operands elsewhere have it
            first, second = map(bare, self.base.args)
            found = {first: 2 * _ELSEWHERE + given, second: 2 * _ELSEWHERE} | found
        return found

    @property
    def below(self) -> Node | None:
        """The radicand, if the base is a square root, else None."""
        return bare(self.base.args[0]) if self.base.op.name == "sqrt" else None

    def given(self, node: Node, known: int) -> dict[_Powers, Series] | None:
        if node is self.product:
            return {frozenset(): power_of_x(1, known)}
        if node is self.over:
            return {_one((node, 1)): number(Fraction(1), known)}
        if node is self.text:
            return {frozenset(): exponential(power_of_x(1, known))}
        if abs(self.power) == 1 and (sign := _is_difference(node, self.base)):
            series = power_of_x(self.power, known)
            return {_one((self.over, -self.other * self.power)): series if sign > 0 else -series}
        if abs(self.power) == 1 and (times := _multiple_of(self.base, node)):
            return {
                _one((self.over, -self.other * self.power)): power_of_x(self.power, known) * number(1 / times, known)
            }
        if node is self.below and abs(self.power) == 1:
            return {_one((self.over, -2 * self.other * self.power)): power_of_x(2 * self.power, known)}
        if key_of(node) == ("square", self.base) and abs(self.power) == 2:
            return {_one((self.over, -self.other * self.power // 2)): power_of_x(self.power // 2, known)}
        return None

    def small(self) -> Node:
        return self.product


@dataclass(frozen=True)
class Exponential(Place):
    """A large operand, positive or negative, whose exponentials are small."""

    base: Node
    sign: int
    times: Fraction
    reached = False

    @property
    def opposite(self) -> bool:
        return self.sign < 0

    def away_by(self, distance: float) -> Mapping[Node, float]:
        return {self.base: self.sign * 4.16 / float(self.times)}

    @property
    def nearer(self) -> Mapping[Node, float]:
        return {self.base: self.sign * 5.55 / float(self.times)}

    def given(self, node: Node, known: int) -> dict[_Powers, Series] | None:
        return {_one((self.base, 1)): number(Fraction(1), known)} if node is self.base else None

    def small(self) -> Node:
        return exp(self.base * float(-self.sign * self.times))

    def logarithm(self, known: int) -> dict[_Powers, Series]:
        return {_one((self.base, 1)): number(-self.sign * self.times, known)}

    def exponent(self, key: _Powers, own: Series) -> int | None:
        if key != _one((self.base, 1)) or own.order or any(own.terms[1:]):
            return None
        power = -self.sign * Fraction(own.terms[0]) / self.times
        if power.denominator != 1:
            raise NoSeriesError
        return int(power)


def _with_logarithm(base: Node, value: float) -> dict[Node, float]:
    """Return machine numbers for which ``base`` has the logarithm ``value``."""
    inner = bare(base)
    total = sum_of(inner)
    if len(total.terms) == 1 and isinstance(total.terms[0][0], Node):
        times, number = float(total.terms[0][2]), float(total.number)
        return {total.terms[0][0]: (math.exp(value) - number) / times}
    return {inner: math.exp(value)}
