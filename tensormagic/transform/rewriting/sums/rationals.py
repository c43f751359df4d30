"""Differences of quotients and products, over one denominator: what both sides share cancels exactly. Knows nothing of rules.

``x / (1 - y) - x`` is ``x * y / (1 - y)``, and ``1 / (x + 1) - 2 / x + 1 / (x - 1)`` is ``2 / (x + 1) / x / (x -
1)``. Numerators are polynomials with fractions as coefficients; their atoms are the nodes that are no sums, products
or quotients themselves.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import reduce
from itertools import permutations

from tensormagic.ir.cost import weight
from tensormagic.ir.node import Node, topological
from tensormagic.ir.rewriting.roundings import cancels_with
from tensormagic.ir.rewriting.rules import bare
from tensormagic.ops.leaf import constant
from tensormagic.ops.scalars.scalar import absolute, add, isfinite, less, logical_and, multiply, square, where
from tensormagic.transform.rewriting.sums.factors import factored, square_less_square, squares_of_differences
from tensormagic.transform.rewriting.sums.polynomials import (
    NOTHING,
    ONE,
    Polynomial,
    TooLarge,
    as_node,
    by_turns,
    degree,
    is_exact,
    is_linear,
    loses_terms,
    magnitudes,
    monomial,
    multiplied,
    plus,
    scaled,
    to_power,
    with_squares,
)
from tensormagic.transform.rewriting.sums.rational_looks import ARITHMETIC, ATOMS, DEEP, NODES, is_small_power, worth_it
from tensormagic.transform.rewriting.sums.terms import Apart, in_range, key_of, number_of, written

_PRICE = 2
"""How many times the operations of the text a form may take."""

_SQUARES = frozenset(("add", "subtract", "multiply", "square"))
"""Radicands with these ops are read in place of even powers of the root."""


@dataclass(frozen=True)
class Quotient:
    """A polynomial over a product of nodes."""

    top: Polynomial
    below: Counter[Node]


@dataclass
class Reading:
    """Reads nodes as quotients of polynomials over one list of atoms; ``through`` are the nodes that were read."""

    atoms: list[Node] = field(default_factory=list[Node])
    through: dict[Node, None] = field(default_factory=dict[Node, None])
    _factors: dict[Node, Polynomial] = field(default_factory=dict[Node, Polynomial])
    _known: dict[Node, Quotient] = field(default_factory=dict[Node, Quotient])

    def of(self, node: Node, depth: int = DEEP) -> Quotient:
        """Return ``node`` as a quotient."""
        inner = bare(node)
        found = self._known.get(inner)
        if found is None:
            if len(self._known) > NODES:
                raise TooLarge
            found = self._known[inner] = self._read(inner, depth)
        return found

    def _read(self, node: Node, depth: int) -> Quotient:
        value = number_of(node)
        if value is not None:
            number = value.numerator if value.denominator == 1 else value
            return Quotient({NOTHING: number} if number else {}, Counter())
        sides = written(node)
        name = node.op.name
        power = number_of(bare(node.args[1])) if name == "power" else None
        if not depth or (sides is None and name not in ARITHMETIC) or (name == "power" and not is_small_power(power)):
            return Quotient(self.atom(node), Counter())
        self.through[node] = None
        if sides is not None or name in {"add", "subtract"}:
            left, right = sides or node.args
            return self.sum(self.of(left, depth - 1), self.of(right, depth - 1), 1 if name == "add" else -1)
        first = self.of(node.args[0], depth - 1)
        if name == "negative":
            return self.sum(Quotient({}, Counter()), first, -1)
        if name in {"multiply", "square"}:
            return product(first, self.of(node.args[-1], depth - 1))
        if name == "power":
            return self._raised(first, node.args[0], int(power or 0))
        one = Quotient(ONE, Counter())
        return self._over(one, first, node.args[0]) if name == "reciprocal" else self._divided(first, node, depth)

    def _divided(self, top: Quotient, node: Node, depth: int) -> Quotient:
        return self._over(top, self.of(node.args[1], depth - 1), node.args[1])

    def atom(self, node: Node) -> Polynomial:
        """Return ``node`` as an atom that is not read further; raise TooLarge if there are too many."""
        if node not in self.atoms:
            if len(self.atoms) == ATOMS:
                raise TooLarge
            self.atoms.append(node)
        at = self.atoms.index(node)
        return {tuple(int(k == at) for k in range(ATOMS)): 1}

    def _raised(self, base: Quotient, node: Node, power: int) -> Quotient:
        found = one = Quotient(ONE, Counter())
        for _ in range(abs(power)):
            found = product(found, base)
        return found if power > 0 else self._over(one, base, node, -power)

    def _over(self, top: Quotient, below: Quotient, node: Node, power: int = 1) -> Quotient:
        """Return ``top / below``, where ``below`` was read from ``node``.

        Numbers and atoms divide directly; sums become factors of the denominator.
        """
        inner = bare(node)
        if inner.op.name in {"multiply", "square"} and inner not in self._factors and not below.below:
            args = inner.args if inner.op.name == "multiply" else inner.args * 2
            for arg in args:
                top = self._over(top, self.of(arg), arg, power)
            return top
        value = number_of(inner)
        if value is not None:
            if not value:
                raise TooLarge
            return Quotient({k: Fraction(c) / value**power for k, c in top.top.items()}, top.below)
        if not below.top:
            raise TooLarge
        if below.below:  # 1 / (1 / x - 1 / y)
            return self._over_quotient(top, below, power)
        self._factors[inner] = below.top
        return Quotient(top.top, top.below + Counter({inner: power}))

    def _over_quotient(self, top: Quotient, below: Quotient, power: int) -> Quotient:
        """Return ``top / below`` for a quotient ``below`` whose numerator is a sum or difference of two numbers."""
        inner = as_node(below.top, self.atoms)
        if not is_exact(below.top) or not _are_given(below.top, self.atoms) or not isinstance(inner, Node):
            raise TooLarge
        self._factors[inner] = below.top
        found = top.top
        for factor in below.below.elements():
            for _ in range(power):
                found = multiplied(found, self._factors[factor] if factor in self._factors else self.atom(factor))
        return Quotient(found, top.below + Counter({inner: power}))

    def sum(self, a: Quotient, b: Quotient, times: int) -> Quotient:
        """Return ``a + times * b`` over their common denominator."""
        below = a.below | b.below
        return Quotient(plus(self.widened(a, below), self.widened(b, below), times), below)

    def widened(self, a: Quotient, below: Counter[Node]) -> Polynomial:
        """Return the numerator of ``a`` over ``below``."""
        top = a.top
        for factor, power in (below - a.below).items():
            for _ in range(power):
                top = multiplied(top, self._factors[factor])
        return top


def product(a: Quotient, b: Quotient) -> Quotient:
    """Return ``a * b``."""
    return Quotient(multiplied(a.top, b.top), a.below + b.below)


# as nodes -------------------------------------------------------------------------------------------------------------


def _without_common(
    p: Polynomial, below: Counter[Node], atoms: list[Node]
) -> tuple[Polynomial, list[Node], Counter[Node]]:
    """Return a numerator without its common atoms, these atoms, and the denominator with them cancelled."""
    common = [min(powers[k] for powers in p) for k in range(ATOMS)]
    core = {tuple(n - m for n, m in zip(powers, common, strict=True)): c for powers, c in p.items()}
    own = Counter({atom: power for atom, power in zip(atoms, common, strict=False) if power})
    return core, by_turns(own - below), below - own


def _by_factors(p: Polynomial, atoms: list[Node], *, roots: bool) -> tuple[Node | float, Node | float] | None:
    """Return a polynomial as a product of factors, and a bound of its size from the magnitudes of its parts, or None without factors.

    ``roots``: it comes from roots, so that a plain sum is better than factors.
    """
    if roots and is_linear(p):
        total_ = as_node(p, atoms)
        return total_, total_
    squares = squares_of_differences(p)
    if squares is not None:
        total = reduce(add, [square(atoms[i] - atoms[j]) * float(abs(c)) for i, j, c in squares])
        return (total if squares[0][2] > 0 else -total), total
    if (triangle := square_less_square(p)) is not None:
        i, j, k, c = triangle
        other = atoms[i] - atoms[j]
        product = (atoms[k] - other) * (atoms[k] + other)
        product = product if c == 1 else product * float(c)
        exact = less(absolute(other), absolute(atoms[i]) * 0.5)
        return product, where(exact, product, math.inf)
    found = factored(p)
    if found is None:
        return None
    parts = [to_power(part, n) for f, n in found.factors if isinstance(part := as_node(f, atoms), Node)]
    number = float(found.number)
    value = (
        reduce(multiply, parts)
        if number == 1
        else -reduce(multiply, parts)
        if number == -1
        else reduce(multiply, parts) * number
    )
    if found.rest == ONE:
        return value, value
    rest, size = as_node(found.rest, atoms), as_node(*magnitudes(found.rest, atoms))
    return value * rest, value * size


def _without_roots(p: Polynomial, atoms: list[Node]) -> tuple[Polynomial, list[Node], tuple[Node, ...]]:
    """Return a polynomial with even powers of roots replaced by powers of their radicands, and the roots it had.

    Its value does not show their rounding: another reader of one of them would no longer read the same number.
    """
    whole = p, atoms, ()
    atoms, had = list(atoms), ()
    for k, atom in enumerate(atoms):
        if atom.op.name == "sqrt" and any(q[k] for q in p) and not any(q[k] % 2 for q in p):
            inner = bare(atom.args[0])
            at = atoms.index(inner) if inner in atoms else k
            atoms[at], had = inner, (*had, atom)
            found: Polynomial = {}
            for q, c in p.items():
                powers = [0 if m == k else n for m, n in enumerate(q)]
                powers[at] += q[k] // 2
                found[tuple(powers)] = found.get(tuple(powers), 0) + c
            p = {q: c for q, c in found.items() if c}
    return (p, atoms, had) if p else whole


def _by_what_roots_are_of(
    reading: Reading, top: Polynomial, sides: list[Polynomial]
) -> tuple[Polynomial, list[Polynomial]]:
    """Return a difference and its sides without even powers of roots, if terms then cancel: ``1 / s - s``."""
    for k, atom in enumerate(reading.atoms):
        inner = bare(atom.args[0]) if atom.op.name == "sqrt" else atom
        even = any(q[k] for q in top) and not any(q[k] % 2 for p in (top, *sides) for q in p)
        if inner.op.name not in _SQUARES or not even:
            continue
        before = dict(reading.through)
        try:
            of = reading.of(inner)
            new, *parts = (with_squares(p, k, of.top) for p in (top, *sides)) if not of.below else (top,)
        except TooLarge:
            new = parts = None
        if new and parts and loses_terms(new, parts):
            reading.through[atom] = None
            return new, parts
        reading.through = before
    return top, sides


def _are_given(p: Polynomial, atoms: list[Node]) -> bool:
    """Return whether a sum is of given numbers: computed ones have rounding errors as large as those that are saved."""
    return all(is_given(atoms[k]) for powers in p for k, power in enumerate(powers) if power)


def is_given(node: Node) -> bool:
    """Return whether a node is an input, or elements of one."""
    while node.args:
        if node.op.kind != "move":
            return False
        node = node.args[0]
    return True


def _plain(a: Node, b: Node, core: Polynomial, below: Counter[Node]) -> bool:
    """Return whether a difference is best left: a difference of two squares, which has a rule of its own, or of a square and a number."""
    if any(isinstance(key_of(bare(u)), tuple) and number_of(bare(v)) is not None for u, v in ((a, b), (b, a))):
        return True
    return not below and len(core) == 2 and max(map(sum, core)) <= 2


def over_one(reading: Reading, a: Node, b: Node) -> tuple[Quotient, list[Polynomial]] | None:
    """Return ``a - b`` and both sides over one denominator, or None if that fails, or if the code computes rounding errors on purpose."""
    try:
        first, second = reading.of(a), reading.of(b)
        whole = reading.sum(first, second, -1)
        sides = [reading.widened(q, whole.below) for q in (first, second)]
    except TooLarge:
        return None
    if not whole.top or any(cancels_with(x, y) for x, y in permutations(reading.atoms, 2)):
        return None
    return whole, sides


def form_of(whole: Quotient, atoms: list[Node]) -> tuple[Node | float, Node | float]:
    """Return a quotient as nodes, with a bound of its size."""
    core, factors, below = _without_common(whole.top, whole.below, atoms)
    tops = _by_factors(core, atoms, roots=False) or _as_sum(core, atoms)
    value, bound = (_quotient(top, factors, below) for top in tops)
    return value, bound


def over_common(a: Node, b: Node, known: Callable[[Node, Node], Apart | None], *, within: bool = False) -> Apart | None:
    """Return ``a - b`` over one denominator if terms cancel in the numerator, or if it is a ``known`` difference; else None.

    ``within`` a function, a remaining product is used everywhere.
    """
    first, second = in_range(a), in_range(b)
    reading = Reading()
    found = over_one(reading, first, second) if worth_it(first, second) else None
    if found is None or (not found[0].below and max(map(degree, found[1])) < 2):
        return None
    whole, sides = found
    top, sides = _by_what_roots_are_of(reading, whole.top, sides)
    core, factors, below = _without_common(top, whole.below, reading.atoms)
    core, atoms, squared = _without_roots(core, reading.atoms)
    split = _split(a, b, core, whole.below, atoms, squared=bool(squared))
    cancels = split is not None or loses_terms(top, sides)
    exact = not cancels and bool(whole.below) and is_exact(core) and _are_given(core, atoms)
    looks = len(core) == 2 and split is None if cancels else bool(whole.below)
    inner = _of_functions(core, atoms, known) if looks else None
    if not cancels and not exact and inner is None:
        return None
    tops = (inner.value, inner.value) if inner is not None else split or _as_sum(core, atoms)
    value, bound = (_quotient(top, factors, below) for top in tops)
    if within and len(core) == 1 and not below and isinstance(value, Node):
        return Apart(value, None, tuple(n for n in reading.through if n.args), known=True)
    beside = a if not exact or number_of(bare(a)) is not None else b  # as close as logarithms of such quotients require
    everywhere = (
        exact and not factors and below.total() == 1 and number_of(bare(a)) is None
    )  # `log(1 - x / y)` reads x / y
    near = _is_number(core, atoms) if everywhere else _near(bound, beside, below, inner)
    ranged = tuple(bare(n) for n, was in ((a, first), (b, second)) if n is not was)
    parts = tuple(n for n in (*ranged, *reading.through, *squared, *(() if inner is None else inner.parts)) if n.args)
    local = inner is not None and (inner.local or inner.rough)
    if _dear(value, near, (a, b), parts, reading.atoms):
        return None
    return Apart(value, near, parts, known=True, local=local or (inner is None and tops[0] is not tops[1]))


def _split(
    a: Node, b: Node, core: Polynomial, below: Counter[Node], atoms: list[Node], *, squared: bool
) -> tuple[Node | float, Node | float] | None:
    """Return a numerator as a product of factors, with its bound, or None if it stays the sum of the text."""
    stays = _plain(a, b, core, below) and not (squared and is_linear(core))
    return None if stays else _by_factors(core, atoms, roots=squared)


def _as_sum(core: Polynomial, atoms: list[Node]) -> tuple[Node | float, Node | float]:
    """Return a numerator as a sum of its terms, with its bound: the sum of their magnitudes if they may cancel again."""
    sizes = {Fraction(abs(c)) for c in core.values()}
    if len(core) == 2 and len(sizes) == 1 and sizes != {1} and is_linear(core):  # exact where both operands are close
        value = as_node({powers: 1 if c > 0 else -1 for powers, c in core.items()}, atoms) * float(sizes.pop())
        return value, value
    value = as_node(core, atoms)
    return value, value if len(core) == 1 or is_exact(core) else as_node(*magnitudes(core, atoms))


def _near(bound: Node | float, a: Node, below: Counter[Node], inner: Apart | None) -> Node:
    """Return where a form of ``a - b`` is better: where it is small compared with ``a``, and its parts hold."""
    size = absolute(bound) if isinstance(bound, Node) else abs(bound)
    near = less(size, absolute(a) * 0.5)
    if below and isinstance(size, Node):  # if a denominator has overflowed, the form is 0
        near = logical_and(near, less(0, size))
    return logical_and(near, inner.near) if inner is not None and inner.near is not None else near


def _is_number(core: Polynomial, atoms: list[Node]) -> Node:
    """Return where a difference of two given numbers is finite: the form is then at least as accurate as the text."""
    difference = as_node(core, atoms)
    return isfinite(difference) if isinstance(difference, Node) else constant(True)


def _quotient(top: Node | float, factors: list[Node], below: Counter[Node]) -> Node | float:
    """Return the quotient, multiplied and divided alternately to avoid overflow."""
    value = top
    divisors, factors = by_turns(below), list(factors)
    if factors and not isinstance(value, Node):
        value = scaled(value, factors.pop(0))
    while divisors or factors:
        if divisors:
            divisor = divisors.pop(0)
            value = value / divisor
        if factors:
            value = scaled(value, factors.pop(0))
    return value


def _of_functions(core: Polynomial, atoms: list[Node], known: Callable[[Node, Node], Apart | None]) -> Apart | None:
    """Return a numerator of two terms as a known difference, or None."""
    if len(core) != 2:
        return _of_root(core, atoms, known)
    (p, c), (q, d) = core.items()
    if c * d > 0:
        return None
    times = abs(c) if abs(c) == abs(d) else 1  # applied once, after the difference
    left, right = (monomial(m, Fraction(abs(k)) / times, atoms) for m, k in ((p, c), (q, d)))
    found = known(*(s if isinstance(s, Node) else constant(s) for s in (left, right)))
    factor = float(times) if c > 0 else -float(times)
    if found is None or factor == 1:
        return found
    value = -found.value if factor == -1 else found.value * factor
    return Apart(value, found.near, found.parts, known=True, local=found.local)


def _of_root(core: Polynomial, atoms: list[Node], known: Callable[[Node, Node], Apart | None]) -> Apart | None:
    """Return a numerator of a root, or two multiplied, and other terms as a known difference: ``1 - (x * y + z) / sqrt(u)``; else None."""
    roots = [k for k, atom in enumerate(atoms) if atom.op.name == "sqrt"]
    of_roots = [powers for powers in core if any(powers[k] for k in roots)]
    if len(of_roots) != 1 or abs(core[of_roots[0]]) != 1:
        return None
    if max(of_roots[0]) > 1 or any(power for k, power in enumerate(of_roots[0]) if k not in roots):
        return None
    sign = int(core[of_roots[0]])
    rest = as_node({powers: -sign * c for powers, c in core.items() if powers != of_roots[0]}, atoms)
    root = monomial(of_roots[0], 1, atoms)
    found = known(root, rest) if isinstance(root, Node) and isinstance(rest, Node) else None
    return found if found is None or sign > 0 else replace(found, value=-found.value)


def _dear(
    value: Node | float, near: Node, sides: tuple[Node, Node], parts: tuple[Node, ...], atoms: list[Node]
) -> bool:
    """Return whether the form costs too much compared with the text."""
    stays = {*parts, *map(bare, sides), *atoms, *sides}
    roots = [near, *([value] if isinstance(value, Node) else [])]
    own = [n for n in topological(roots, lambda n: n not in stays) if n not in stays]
    return sum(map(weight, own)) > _PRICE * (2 + sum(map(weight, parts)))
