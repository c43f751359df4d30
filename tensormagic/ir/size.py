"""Sizes: integer polynomials in normal form over symbols, divisions, extremes, and integer nodes of the graph itself."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary, WeakValueDictionary

from tensormagic.ir.lazily import lazily


@dataclass(frozen=True, eq=False)
class Symbol:
    """A size that is known when the graph runs: ``n0``, or the extent of an input's axis; at least ``least``.

    ``hint`` is the size that was seen at capture: it finds errors early, and is no part of the symbol's identity.
    """

    name: str
    hint: int | None = None
    least: int = 2

    def __eq__(self, other: object) -> bool:
        return self is other or (
            other.__class__ is Symbol and self.name == other.name and self.least == other.least  # type: ignore[attr-defined]
        )

    def __hash__(self) -> int:
        return self._hash

    @lazily
    def _hash(self) -> int:
        return hash((self.name, self.least))

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, eq=False)
class Apply:
    """A size that is not a polynomial: ``floordiv``, ``mod``, ``min`` or ``max`` of two sizes."""

    function: str
    left: Size
    right: Size

    def __eq__(self, other: object) -> bool:
        """Compare hash and key, which contain all but the least values of symbols, so that shared parts are not traversed again."""
        return self is other or (isinstance(other, Apply) and self._hash == other._hash and self.key == other.key)

    def __hash__(self) -> int:
        return self._hash

    @lazily
    def _hash(self) -> int:
        return hash((self.function, self.left, self.right))

    def __str__(self) -> str:
        return f"{self.function}({self.left}, {self.right})"

    @lazily
    def atoms(self) -> tuple[Any, ...]:
        """The symbols and nodes that the size mentions."""
        return tuple(dict.fromkeys([*atoms(self.left), *atoms(self.right)]))

    @lazily
    def nodes(self) -> tuple[Any, ...]:
        """The nodes that the size mentions."""
        return tuple(a for a in self.atoms if not isinstance(a, Symbol))

    @lazily
    def depth(self) -> int:
        """How deeply such sizes are nested."""
        sides = [s for s in (self.left, self.right) if isinstance(s, Dim)]
        return 1 + max((a.depth for s in sides for m, _ in s.terms for a, _ in m if isinstance(a, Apply)), default=0)

    @lazily
    def age(self) -> tuple[int, int]:
        """A sort key by the newest node and the depth, so that inner sizes come first."""
        return max((n.serial for n in self.nodes), default=-1), self.depth

    @lazily
    def is_negative(self) -> bool:
        """Whether the size may be below 0."""
        return not is_at_least(atom(self), 0)

    @lazily
    def key(self) -> str:
        """A sort key."""
        return _digest(f"{self.function}({_key(self.left)}, {_key(self.right)})")


Atom = Any  # Symbol, Apply, or a Node that is an integer without axes
Monomial = tuple[tuple[Atom, int], ...]

_APPLY: dict[str, Callable[[int, int], int]] = {
    "floordiv": lambda a, b: a // b,
    "mod": lambda a, b: a % b,
    "min": min,
    "max": max,
}


class Dim:
    """An integer polynomial over atoms in normal form (``terms``); immutable, never constant (a constant size is an ``int``)."""

    def __init__(self, terms: tuple[tuple[Monomial, int], ...]) -> None:
        self.terms = terms

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Dim) and self.terms == other.terms)

    def __hash__(self) -> int:
        return self._hash

    @lazily
    def _hash(self) -> int:
        return hash(self.terms)

    def __str__(self) -> str:
        return self._text

    __repr__ = __str__

    @lazily
    def _text(self) -> str:
        return text(self, str)

    @lazily
    def key(self) -> str:
        """A sort key, within one process."""
        return _digest("+".join(_monomial_text(m, c, _key) for m, c in self.terms))

    @lazily
    def atoms(self) -> tuple[Any, ...]:
        """The symbols and nodes that the size mentions, in order of appearance."""
        direct = [a for monomial, _ in self.terms for a, _ in monomial]
        return tuple(dict.fromkeys(inner for a in direct for inner in (a.atoms if isinstance(a, Apply) else (a,))))

    @lazily
    def nodes(self) -> tuple[Any, ...]:
        """The nodes that the size mentions, in order of appearance."""
        return tuple(a for a in self.atoms if not isinstance(a, Symbol))

    @lazily
    def seen(self) -> int | None:
        """The value at capture, or None if unknown: see :func:`hint`."""
        try:
            return evaluate(self, _hint_of)
        except LookupError:
            return None

    @lazily
    def least(self) -> int | None:
        """A known lower bound, or None: see :func:`lower_bound`."""
        found = _least.get(self, False)
        if found is False:
            from tensormagic.ir.bounds import least

            found = _least[self] = least(self)
        return found

    def __add__(self, other: Size) -> Size:
        if isinstance(other, Dim):
            return self._with(other.terms, 1)
        if not other:
            return self
        *more, (monomial, number) = self.terms
        if monomial:  # the number is the last term
            return Dim((*self.terms, ((), other)))
        return Dim((*more, ((), number + other)) if number + other else tuple(more))

    def _with(self, other: tuple[tuple[Monomial, int], ...], factor: int) -> Size:
        """Return the sum of this size and ``factor`` times the terms ``other``."""
        terms, fresh = dict(self.terms), False
        for monomial, coefficient in other:
            there = terms.get(monomial)
            if there is None:
                terms[monomial], fresh = coefficient * factor, True
            elif total := there + coefficient * factor:
                terms[monomial] = total
            else:
                del terms[monomial]
        return normal(terms) if fresh else _of(terms)

    __radd__ = __add__

    def __neg__(self) -> Size:
        return self * -1

    def __sub__(self, other: Size) -> Size:
        return self._with(other.terms, -1) if isinstance(other, Dim) else self + -other

    def __rsub__(self, other: Size) -> Size:
        return -1 * self + other

    def __mul__(self, other: Size) -> Size:
        if isinstance(other, int):  # this keeps the order of the terms
            return self if other == 1 else Dim(tuple([(m, c * other) for m, c in self.terms])) if other else 0
        terms: dict[Monomial, int] = {}
        for left, a in self.terms:
            for right, b in terms_of(other):
                monomial = _monomial_product(left, right)
                terms[monomial] = terms.get(monomial, 0) + a * b
        return normal(terms)

    __rmul__ = __mul__

    def __floordiv__(self, other: Size) -> Size:
        return apply("floordiv", self, other)

    def __mod__(self, other: Size) -> Size:
        return apply("mod", self, other)


Size = int | Dim
_least: WeakKeyDictionary[Dim, int | None] = WeakKeyDictionary()  # known bounds of live sizes, shared by equal ones


def symbol(name: str, hint: int | None = None, least: int = 2) -> Dim:
    """Return the size that is the single symbol ``name``."""
    return atom(Symbol(name, hint, least))


def hint(size: Size) -> int | None:
    """Return the value of ``size`` at capture, or None if unknown."""
    return size if isinstance(size, int) else size.seen


def _hint_of(a: Atom) -> int:
    number = a.hint if isinstance(a, Symbol) else None
    if number is None:
        raise LookupError
    return int(number)


def size_text(size: Size) -> str:
    """Return a size as text for people: the number seen at capture, or the expression with deep parts left out."""
    number = hint(size)
    return text(size, lambda a: str(a).partition("#")[0], 2) if number is None else str(number)


def text(size: Size, name: Callable[[Atom], str], levels: int = -1) -> str:
    """Return a size as an expression, in an order that follows from the names; ``name`` gives the name of each symbol and node.

    Nested parts are written out to a depth of ``levels``; -1 for all.
    """
    if isinstance(size, int):
        return str(size)

    def named(a: Atom) -> str:
        if not isinstance(a, Apply):
            return name(a)
        sides = [text(s, name, levels - 1) if levels or isinstance(s, int) else "…" for s in (a.left, a.right)]
        return f"{a.function}({', '.join(sides)})"

    parts = sorted((-len(m), _monomial_text(m, 1, named), _monomial_text(m, c, named)) for m, c in size.terms)
    return "+".join(part for _, _, part in parts).replace("+-", "-")


def nodes_of(size: Any) -> tuple[Any, ...]:
    """Return the nodes that a size mentions."""
    return size.nodes if isinstance(size, Dim) else ()


# arithmetic -----------------------------------------------------------------------------------------------------------


def atom(a: Atom) -> Dim:
    """Return the size that is the single atom ``a``."""
    return Dim(((((a, 1),), 1),))


def bare_atom(size: Size) -> Atom | None:
    """Return the atom that ``size`` consists of, or None if it is anything else."""
    if isinstance(size, Dim) and len(size.terms) == 1:
        monomial, coefficient = size.terms[0]
        if coefficient == 1 and len(monomial) == 1 and monomial[0][1] == 1:
            return monomial[0][0]
    return None


def apply(function: str, left: Size, right: Size) -> Size:
    """Return ``floordiv``, ``mod``, ``min`` or ``max`` of two sizes, simplified if possible."""
    if isinstance(left, int) and isinstance(right, int):
        return _APPLY[function](left, right)
    if function in {"min", "max"}:
        return left if left == right else _extreme(function, left, right)
    if left == right and is_at_least(left, 1):
        return 1 if function == "floordiv" else 0
    if right == 1:
        return left if function == "floordiv" else 0
    if isinstance(right, int) and isinstance(left, Dim):
        return _divide_constant(function, left, right)
    return atom(Apply(function, left, right))


_undecided: WeakValueDictionary[Any, Dim] = WeakValueDictionary()


def _extreme(function: str, left: Size, right: Size) -> Size:
    """Return ``min`` or ``max`` of two sizes, decided if the sign of the difference is known."""
    seen = tuple(
        [a.hint for a in (*atoms(left), *atoms(right)) if isinstance(a, Symbol)]
    )  # symbols are equal whatever their hints
    key = function, left, right, seen
    known = _undecided.get(key)
    if known is not None:
        return known
    difference = lower_bound(left - right)
    if difference is not None and difference >= 0:
        return right if function == "min" else left
    difference = lower_bound(right - left)
    if difference is not None and difference >= 0:
        return left if function == "min" else right
    found = _undecided[key] = atom(Apply(function, left, right))
    return found


def _divide_constant(function: str, left: Dim, right: int) -> Size:
    """Return ``floordiv`` or ``mod`` by a constant, with the divisible terms taken out."""
    whole = {m: c // right for m, c in left.terms if c % right == 0}
    rest = normal({m: c for m, c in left.terms if c % right != 0})
    inner = bare_atom(without_number(rest))
    if function == "floordiv" and isinstance(inner, Apply) and inner.function == function and right > 0:
        divisor, number = inner.right, number_in(rest)
        if isinstance(divisor, int) and divisor > 0:  # a quotient of a quotient is one
            return normal(whole) + apply(function, inner.left + divisor * number, divisor * right)
    left_over: Size = atom(Apply(function, rest, right)) if isinstance(rest, Dim) else _APPLY[function](rest, right)
    return left_over if function == "mod" else normal(whole) + left_over


def divide_exactly(total: Size, divisor: Size) -> Size | None:
    """Return ``total / divisor`` if ``divisor`` is a single term and the quotient a polynomial, or None."""
    if isinstance(divisor, Dim) and len(divisor.terms) != 1:
        return 1 if total == divisor else None
    ((monomial, coefficient),) = terms_of(divisor)
    quotient: dict[Monomial, int] = {}
    for m, c in terms_of(total):
        powers = dict(m)
        for a, power in monomial:
            powers[a] = powers.get(a, 0) - power
        if c % coefficient or min(powers.values(), default=0) < 0:
            return None
        quotient[tuple((a, p) for a, p in powers.items() if p)] = c // coefficient
    return normal(quotient)


def evaluate(size: Size, value_of: Callable[[Atom], int]) -> int:
    """Return the value of ``size``; ``value_of`` gives the number of each symbol and node."""
    if isinstance(size, int):
        return size
    total = 0
    for monomial, coefficient in size.terms:
        for a, power in monomial:
            number = (
                _APPLY[a.function](evaluate(a.left, value_of), evaluate(a.right, value_of))
                if isinstance(a, Apply)
                else value_of(a)
            )
            coefficient *= number**power  # noqa: PLW2901 (the running product)
        total += coefficient
    return total


def add_terms(total: dict[Monomial, int], term: Size, factor: Monomial) -> None:
    """Add a size times a monomial to the terms of a sum."""
    for monomial, coefficient in terms_of(term):
        product = _monomial_product(monomial, factor)
        total[product] = total.get(product, 0) + coefficient


def atoms(size: Size) -> tuple[Atom, ...]:
    """Return the symbols and nodes that ``size`` mentions, in order of appearance."""
    return size.atoms if isinstance(size, Dim) else ()


def product(sizes: tuple[Size, ...]) -> Size:
    """Return the number of elements of a shape."""
    total: Size = 1
    for size in sizes:
        total = total * size
    return total


def terms_of(size: Size) -> tuple[tuple[Monomial, int], ...]:
    """Return the monomials of a size, each with its coefficient."""
    if isinstance(size, Dim):
        return size.terms
    return (((), size),) if size else ()


def normal(terms: dict[Monomial, int]) -> Size:
    """Return the size with these monomials and coefficients."""
    kept = {m: c for m, c in terms.items() if c} if 0 in terms.values() else terms
    return _of(dict(sorted(kept.items(), key=_rank)) if len(kept) > 1 else kept)


def _of(terms: dict[Monomial, int]) -> Size:
    """Return the size with these terms, which are sorted."""
    if len(terms) < 2 and (not terms or () in terms):
        return terms.get((), 0)
    return Dim(tuple(terms.items()))


def _rank(term: tuple[Monomial, int]) -> tuple[int, str]:
    """Return a sort key of terms: those with many factors first, the constant last."""
    monomial = term[0]
    if len(monomial) == 1:
        ((a, power),) = monomial
        return -1, _key(a) if power == 1 else f"{_key(a)}^{power}"
    return -len(monomial), _monomial_text(monomial, 1, _key)


def _monomial_product(left: Monomial, right: Monomial) -> Monomial:
    if not left or not right:
        return left or right
    powers = dict(left)
    for a, power in right:
        powers[a] = powers.get(a, 0) + power
    return tuple(sorted(powers.items(), key=lambda item: _key(item[0])))


def _monomial_text(monomial: Monomial, coefficient: int, name: Callable[[Atom], str]) -> str:
    factors = sorted(name(a) if power == 1 else f"{name(a)}^{power}" for a, power in monomial)
    if coefficient != 1 or not factors:
        factors.insert(0, str(coefficient))
    return "*".join(factors)


def _digest(key: str) -> str:
    """Return a key, or its hash if it is long, as shared parts would make it grow without bound."""
    return key if len(key) < _LONGEST_KEY else hashlib.blake2b(key.encode(), digest_size=16).hexdigest()


_LONGEST_KEY = 200


def _key(a: Any) -> str:
    """Return a sort key of atoms: symbols by name, nodes by age."""
    return a.name if isinstance(a, Symbol) else str(a) if isinstance(a, int) else a.key


# bounds ---------------------------------------------------------------------------------------------------------------


def lower_bound(size: Size) -> int | None:
    """Return a known lower bound of ``size``, or None."""
    return size if isinstance(size, int) else size.least


def is_at_least(size: Size, number: int) -> bool:
    """Return whether ``size`` is known to be at least ``number``."""
    bound = lower_bound(size)
    return bound is not None and bound >= number


def number_in(size: Size) -> int:
    """Return the constant term."""
    if not isinstance(size, Dim):
        return size
    monomial, number = size.terms[-1]  # the number is the last term
    return 0 if monomial else number


def without_number(size: Size) -> Size:
    """Return ``size`` without its constant term."""
    return size - number_in(size)


def without_more(size: Size) -> Size:
    """Return ``size`` without its constant term, if that is positive."""
    return size if isinstance(size, int) else size - max(number_in(size), 0)


def factors(size: Size) -> list[Size]:
    """Return the factors of a single term, without symbols and numbers; empty for a sum."""
    terms = terms_of(size)
    return [atom(a) for a, _ in terms[0][0] if not isinstance(a, Symbol)] if len(terms) == 1 else []
