"""Polynomials over nodes, with fractions as coefficients, and their conversion back to nodes. Knows nothing of rules."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction

from tensormagic.ir.node import Node
from tensormagic.ops.scalars.scalar import absolute, square
from tensormagic.transform.rewriting.sums.rational_looks import ATOMS

_MONOMIALS = 12
Powers = tuple[int, ...]
Coefficient = Fraction | int
Polynomial = dict[Powers, Coefficient]
NOTHING: Powers = (0,) * ATOMS
ONE: Polynomial = {NOTHING: 1}


class TooLarge(Exception):  # noqa: N818 (no error: there is no form)
    """Raised when an expression is larger than what is analysed."""


def plus(p: Polynomial, q: Polynomial, times: int = 1) -> Polynomial:
    """Return ``p + times * q``."""
    found = dict(p)
    for powers, c in q.items():
        found[powers] = found.get(powers, 0) + times * c
    return _bounded({k: c for k, c in found.items() if c})


def multiplied(p: Polynomial, q: Polynomial) -> Polynomial:
    """Return the product of two polynomials."""
    found: Polynomial = {}
    for one, c in p.items():
        for other, d in q.items():
            powers = tuple(map(int.__add__, one, other))
            found[powers] = found.get(powers, 0) + c * d
    return _bounded({k: c for k, c in found.items() if c})


def _bounded(p: Polynomial) -> Polynomial:
    if len(p) > _MONOMIALS:
        raise TooLarge
    return p


def degree(p: Polynomial) -> int:
    """Return the total degree of a polynomial."""
    return max(map(sum, p), default=0)


def to_power(node: Node, power: int) -> Node:
    """Return a positive integer power of a node, by repeated squaring."""
    found = node if power % 2 else None
    if power > 1:
        half = square(to_power(node, power // 2))
        found = half if found is None else half * found
    return found if found is not None else node


def as_node(p: Polynomial, atoms: list[Node]) -> Node | float:
    """Return a polynomial as nodes, with its most frequent atom factored out first."""
    if len(p) == 1:
        ((powers, c),) = p.items()
        return monomial(powers, c, atoms)
    count = [sum(powers[k] > 0 for powers in p) for k in range(ATOMS)]
    most = max(range(ATOMS), key=count.__getitem__)
    if not count[most]:
        return float(p[NOTHING])
    least = min(powers[most] for powers in p if powers[most])
    inside = {lowered(q, most, least): c for q, c in p.items() if q[most]}
    outside = {q: c for q, c in p.items() if not q[most]}
    factor = to_power(atoms[most], least)
    sign = -1 if all(c < 0 for c in inside.values()) else 1
    part = scaled(as_node({q: sign * c for q, c in inside.items()}, atoms), factor)
    if not outside:
        return -part if sign < 0 else part
    if sign < 0:
        return as_node(outside, atoms) - part
    if all(c < 0 for c in outside.values()):
        return part - as_node({q: -c for q, c in outside.items()}, atoms)
    return part + as_node(outside, atoms)


def lowered(powers: Powers, at: int, by: int) -> Powers:
    """Return the powers of a monomial, with that of one atom lowered by ``by``."""
    return tuple(n - by * (k == at) for k, n in enumerate(powers))


def scaled(part: Node | float, factor: Node) -> Node:
    """Return the product of ``part``, a node or a number, and ``factor``."""
    if isinstance(part, Node):
        return factor * part
    return factor if part == 1 else -factor if part == -1 else factor * part


def monomial(powers: Powers, c: Coefficient, atoms: list[Node]) -> Node | float:
    """Return a monomial as a node, or as a number if it has no atoms."""
    found: Node | float = float(c)
    for atom, power in zip(atoms, powers, strict=False):
        if power:
            found = scaled(found, to_power(atom, power))
    return found


def by_turns(factors: Counter[Node]) -> list[Node]:
    """Return the factors of a product so that equal ones are apart: a square may overflow or underflow where ``x * y`` does not."""
    return [n for k in range(max(factors.values(), default=0)) for n, times in factors.items() if times > k]


def magnitudes(p: Polynomial, atoms: list[Node]) -> tuple[Polynomial, list[Node]]:
    """Return a polynomial with absolute coefficients and atoms, which bounds the sum of its monomials' sizes."""
    return {powers: abs(c) for powers, c in p.items()}, [absolute(a) for a in atoms]


def is_linear(p: Polynomial) -> bool:
    """Return whether there are no products of atoms."""
    return max(map(sum, p), default=0) == 1


def is_exact(p: Polynomial) -> bool:
    """Return whether a sum of two terms has no rounding if it is a difference of numbers near each other."""
    return len(p) == 2 and is_linear(p) and all(abs(c) == 1 for powers, c in p.items() if any(powers))


def with_squares(p: Polynomial, k: int, of: Polynomial) -> Polynomial:
    """Return a polynomial with the squares of one atom replaced by another polynomial."""
    found: Polynomial = {}
    for q, c in p.items():
        one: Polynomial = {lowered(q, k, q[k]): c}
        for _ in range(q[k] // 2):
            one = multiplied(one, of)
        found = plus(found, one)
    return found


def loses_terms(top: Polynomial, sides: list[Polynomial]) -> bool:
    """Return whether at least half of a term common to both sides cancels in their difference."""
    return any(abs(top.get(m, 0)) * 2 <= abs(c) for m, c in sides[0].items() if m in sides[1])
