"""Where sums are looked at for what cancels there: what is small, and how operands are read by it. Knows nothing of rules."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from tensormagic.ir.facts import not_negative
from tensormagic.ir.node import Node
from tensormagic.ir.rules import bare
from tensormagic.ir.within import at_last, ops_within, within
from tensormagic.ops.scalars.scalar import divide, exp, log, log1p, multiply, negative, subtract
from tensormagic.transform.rewriting.power_series import NoSeriesError, Series, exponential, number, power_of_x
from tensormagic.transform.rewriting.terms import Sum, as_text, key_of, number_of, sum_of, written

_Powers = frozenset[tuple[Node, Fraction]]
NEAR = 2.0**-6
_ELSEWHERE = 1.37


class Place:
    """Where something is small: ``small()``, in place of which operands are read."""

    away = False
    """Whether it may be 0 where the text is something else."""
    reached = True
    """Whether operands may be at the place, and not only near it."""

    @property
    def opposite(self) -> bool:
        """Whether it is the other side of the place before, where a sum may cancel as well."""
        return False

    @property
    def numbers(self) -> Mapping[Node, float]:
        """The operands near there, as numbers of the machine."""
        return self.away_by(NEAR)

    def away_by(self, distance: float) -> Mapping[Node, float]:
        """The operands where what is small is this."""
        raise NotImplementedError

    def given(self, node: Node, known: int) -> dict[_Powers, Series] | None:
        """An operand by what is small; None for what is read further."""
        raise NotImplementedError

    def small(self) -> Node:
        """What is small."""
        raise NotImplementedError

    def fraction(self, power: Fraction, known: int) -> dict[_Powers, Series]:
        """A broken power of it."""
        return {frozenset(((self.small(), power),)): number(Fraction(1), known)}

    def logarithm(self, known: int) -> dict[_Powers, Series]:
        """Its logarithm."""
        return {frozenset(((log(self.small()), Fraction(1)),)): number(Fraction(1), known)}

    def exponent(self, key: _Powers, own: Series) -> int | None:
        """Which power of it the exponential of a product is; None for no such product."""
        del key, own
        return None

    def shifted(self, a: Mapping[_Powers, Series]) -> Node | None:
        """The operand that ``a`` is but for what is small; None for another sum."""
        del a
        return None

    def beside(self, key: _Powers, own: Series) -> Node | None:
        """The exponential of a product that is not small, as a factor; None for what has none."""
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
    """An operand small beside another one, or near it."""

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
    """An operand near another one, by their difference, which stands in the sum: exponentials, sines and cosines are read by it."""

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
class Product(Place):
    """A small product, or quotient, of two operands: ``base`` is read by it and the other one, ``over``."""

    product: Node
    base: Node
    over: Node
    power: int
    """That of the base in the product."""
    other: int
    """That of the other operand there."""
    text: Node | None = None
    """A power, of which the product of its exponent and the logarithm of its base is small."""

    def away_by(self, distance: float) -> Mapping[Node, float]:
        if self.text is not None:
            base, exponent = self.text.args
            large, small = _ELSEWHERE, distance / _ELSEWHERE
            first, second = (small, large) if self.over is bare(exponent) else (large, small)
            return {**_with_logarithm(base, first), bare(exponent): second}
        given = (distance * _ELSEWHERE**-self.other) ** (1 / self.power)
        if self.below is not None:
            return {self.over: _ELSEWHERE, self.below: given * given}
        return {self.over: _ELSEWHERE, self.base: given}

    @property
    def below(self) -> Node | None:
        """What the base is the root of."""
        return bare(self.base.args[0]) if self.base.op.name == "sqrt" else None

    def given(self, node: Node, known: int) -> dict[_Powers, Series] | None:
        if node is self.product:
            return {frozenset(): power_of_x(1, known)}
        if node is self.over:
            return {_one((node, 1)): number(Fraction(1), known)}
        if node is self.text:
            return {frozenset(): exponential(power_of_x(1, known))}
        if node is self.base and abs(self.power) == 1:
            return {_one((self.over, -self.other * self.power)): power_of_x(self.power, known)}
        if node is self.below and abs(self.power) == 1:
            return {_one((self.over, -2 * self.other * self.power)): power_of_x(2 * self.power, known)}
        if key_of(node) == ("square", self.base) and abs(self.power) == 2:
            return {_one((self.over, -self.other * self.power // 2)): power_of_x(self.power // 2, known)}
        return None

    def small(self) -> Node:
        return self.product


@dataclass(frozen=True)
class Exponential(Place):
    """A large operand, positive or negative, of which exponentials are taken: they are small, and it is not."""

    base: Node
    sign: int
    times: Fraction
    reached = False

    @property
    def opposite(self) -> bool:
        return self.sign < 0

    def away_by(self, distance: float) -> Mapping[Node, float]:
        return {self.base: self.sign * 4.16 / float(self.times)}

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


# which are looked at --------------------------------------------------------------------------------------------------

_EXPONENTIALS = frozenset(("exp", "exp2", "expm1", "sinh", "cosh", "tanh", "sigmoid", "softplus", "log1mexp"))
SPECIAL = ("erf", "erfc", "erfcx", "gammaln")
"""Functions of SciPy's that have a series somewhere."""
OTHERS = (
    *("log2", "log10", "logaddexp", "exp2", "softplus", "sigmoid", "log1mexp"),
    *("hypot", "sinc", "arccos", "arctan2"),
)
"""Functions that are read by what others they consist of."""
_SUMS = frozenset(("add", "subtract", "negative", "where"))
_NODES = 32
_DEEP = 7
_ATOMS = 3


@dataclass
class Look:
    """What is found in a sum: operands, exponents of functions, products that functions are of; whether two operands are subtracted."""

    atoms: dict[Node, int]
    exponents: dict[Node, None] = field(default_factory=dict[Node, None])
    products: dict[Node, None] = field(default_factory=dict[Node, None])
    divided: bool = False

    @property
    def operands(self) -> tuple[Node, ...]:
        """The operands, the most frequent first."""
        return tuple(a for a, _ in sorted(self.atoms.items(), key=lambda n: -n[1]))

    def take(self, function: Node) -> None:
        """One function more."""
        if function.op.name in _EXPONENTIALS:
            self.exponents.setdefault(bare(function.args[0]))
        _products(function, self.products)


def is_deep(total: Node) -> bool:
    """Whether a sum goes deeper than it is looked through; where forms stand in it, of which the text is looked at, that is not known."""
    ops = within(total)
    return bool(ops & _TOO_DEEP) and not ops & _FORMS


def look_at(total: Node, *, products: bool = False) -> Look | None:
    """A first look, which most sums do not pass: functions of few operands, whole powers for ``products``."""
    leaves: dict[Node, Node] = {}
    functions: list[Node] = []
    times: dict[Node, int] = {}
    level: Sequence[Node] = total.args
    for _ in range(_DEEP):
        below: list[Node] = []
        for given in level:
            node = given if given.below is None else given.below
            times[node] = known = times.get(node, 0) + 1
            if known > 1:
                continue
            text, parts = read(node)
            if parts:
                below += parts
                if text.op.name in _FUNCTIONS:
                    functions.append(text)
            elif text.op.name != "constant":
                leaves[node] = text
        if len(times) > _NODES or len(leaves) > _ATOMS:
            return None
        level = below
    if level or not (functions if products else any(map(is_function, functions))):
        return None
    found = Look({text: times[node] for node, text in leaves.items()})
    for function in functions:
        found.take(function)
    found.divided = len(leaves) == 2 and any(_subtracts(node, leaves) for node in times)
    return found


def _subtracts(node: Node, leaves: Mapping[Node, Node]) -> bool:
    """Whether a node is the difference of the operands."""
    return node.op is subtract and {*map(bare, node.args)} == {*leaves}


def read(node: Node) -> tuple[Node, Sequence[Node]]:
    """A node as it was written, and what it is read by."""
    name = node.op.name
    if name != "where":
        return node, node.args if name in _READ else ()
    if (sides := written(node)) is not None:
        return node, sides
    text = bare(as_text(node))
    return text, text.args if text.op.name in _READ else ()


_FUNCTIONS = _EXPONENTIALS | frozenset(
    (
        "log",
        "log1p",
        "xlogy",
        "sqrt",
        "cbrt",
        "power",
        "sin",
        "cos",
        "tan",
        "arctan",
        "arctanh",
        "arcsin",
        "arcsinh",
        *OTHERS,
        *SPECIAL,
    )
)


def is_function(node: Node) -> bool:
    """Whether there is more than arithmetic: whole powers are products."""
    if node.op.name != "power":
        return node.op.name in _FUNCTIONS
    times = number_of(bare(node.args[1]))
    return times is None or times.denominator != 1


_READ = _FUNCTIONS | frozenset(
    ("add", "subtract", "negative", "absolute", "multiply", "divide", "square", "reciprocal")
)


_TOO_DEEP, _FORMS = at_last(_READ), ops_within(("where",))
"""Where sums go deeper than they are looked through, and where forms stand in them, of which the text is looked at."""


def _products(function: Node, found: dict[Node, None]) -> None:
    """The products and quotients of operands within the argument of a function."""
    pool = [function.args[0]]
    while pool:
        node = bare(pool.pop())
        if node.op.name in _SUMS:
            pool += node.args if node.op.name != "where" else ()
        elif node.op.name in {"multiply", "divide"} and all(number_of(bare(a)) is None for a in node.args):
            if not any(bare(a).op.name in _FUNCTIONS - {"sqrt"} for a in node.args):
                found.setdefault(node)
        elif node.op.name in {"multiply", "divide"}:
            pool += node.args
    if function.op.name == "power" and number_of(bare(function.args[1])) is None:
        found.setdefault(function)


_HALF = Fraction(1, 2)
_ONE = Sum((), Fraction(1))


def _with_logarithm(base: Node, value: float) -> dict[Node, float]:
    """Numbers of the machine with which ``base`` has this logarithm."""
    inner = bare(base)
    total = sum_of(inner)
    if len(total.terms) == 1 and isinstance(total.terms[0][0], Node):
        times, number = float(total.terms[0][2]), float(total.number)
        return {total.terms[0][0]: (math.exp(value) - number) / times}
    return {inner: math.exp(value)}


def places(look: Look) -> Iterator[Place]:
    """The places at which a sum is looked at."""
    atoms = look.operands
    if len(atoms) == 1:
        base = atoms[0]
        yield from (Beside(base, Fraction(at)) for at in (0, 1, _HALF))
        yield Far(base)
        yield from _of_exponentials(base, look)
    elif len(atoms) == 2:
        first, second = atoms
        yield Over(first, second, 1)
        yield Over(first, second, 0)
        yield Over(second, first, 0)
        if look.divided:
            yield Near(first, second)
    for product in look.products:
        yield from of_product(product)


def _of_exponentials(base: Node, look: Look) -> Iterator[Place]:
    """Where the exponentials of an operand are small: their exponents are multiples of it."""
    times: set[Fraction] = set()
    for exponent in look.exponents:
        total = sum_of(exponent)
        if len(total.terms) == 1 and bare(total.terms[0][1]) is base:
            times.add(abs(total.terms[0][2]))
    for least in sorted(times)[:1]:
        for sign in (1,) if not_negative(base) else (1, -1):
            yield Exponential(base, sign, least)


def of_product(product: Node) -> Iterator[Place]:
    """Where a product is small, each factor by it and the other one."""
    if product.op.name == "power":
        base, exponent = product.args
        less_ = sum_of(base).minus(_ONE)
        own = less_.node() if less_.terms and not less_.number else None
        logarithm = log(base) if not isinstance(own, Node) else log1p(own)
        yield Product(multiply(exponent, logarithm), bare(logarithm), bare(exponent), 1, 1, product)
        return
    first, second = map(bare, product.args)
    other = 1 if product.op.name == "multiply" else -1
    for base, over, power, more in ((first, second, 1, other), (second, first, other, 1)):
        key = key_of(base)
        if isinstance(key, tuple):
            yield Product(product, key[1], over, 2 * power, more)
        elif number_of(base) is None:
            yield Product(product, base, over, power, more)


__all__ = [
    "NEAR",
    "OTHERS",
    "SPECIAL",
    "Look",
    "Place",
    "is_deep",
    "is_function",
    "look_at",
    "of_product",
    "places",
    "read",
]
