"""Bounds of sizes: the known bounds of their atoms are substituted until a number is left."""

from __future__ import annotations

from collections.abc import Callable

from tensormagic.ir.size import (
    Apply,
    Atom,
    Monomial,
    Size,
    Symbol,
    add_terms,
    apply,
    atom,
    atoms,
    evaluate,
    hint,
    is_at_least,
    nodes_of,
    normal,
    number_in,
    terms_of,
)
from tensormagic.ir.substituting import substitute

_STEPS = 64
"""How many replacements by a bound are tried for one size."""
_DEEP, _FEW = 6, 8
"""From this depth on, as of a size that is halved again and again, only so few replacements are tried."""


def least(size: Size) -> int | None:
    """Return a lower bound of ``size``, or None if none is found."""
    found = _estimate(size, _from_symbols, [_STEPS if _depth(size) < _DEEP else _FEW])
    return found if isinstance(found, int) else None


def _depth(size: Size) -> int:
    """Return how deeply divisions, minima and maxima are nested."""
    return (
        0
        if isinstance(size, int)
        else max((a.depth for m, _ in size.terms for a, _ in m if isinstance(a, Apply)), default=0)
    )


def floor_of_nodes(size: Size) -> Size | None:
    """Return a lower bound of ``size`` without nodes, the largest for the sizes seen at capture, or None if there is none."""
    return size if isinstance(size, int) else _estimate(size, _seen, [_STEPS])


def _seen(size: Size) -> Size | None:
    return None if nodes_of(size) or hint(size) is None else size


def _from_symbols(size: Size) -> int | None:
    """Return a lower bound of a polynomial over symbols, each written as its least value plus something nonnegative; else None."""
    if isinstance(size, int):
        return size
    found = atoms(size)
    if any(not isinstance(a, Symbol) for m, _ in size.terms for a, _ in m):
        return None
    if any(c < 0 for m, c in size.terms if m):
        if all(len(m) < 2 and sum(p for _, p in m) < 2 for m, _ in size.terms):
            return None
        shifted = substitute(size, {a: atom(a) + a.least for a in found})
        return None if any(c < 0 for m, c in terms_of(shifted) if m) else number_in(shifted)
    return evaluate(size, lambda a: a.least)


def _estimate(size: Size, finish: Callable[[Size], Size | None], budget: list[int]) -> Size | None:
    """Return a lower bound of ``size``, or None: bounded atoms are replaced one by one, dependent ones first; then ``finish`` is called."""
    target = _last_bounded(size)
    if target is None:
        return finish(size)
    budget[0] -= 1
    if budget[0] < 0:
        return None
    best: tuple[int, Size] | None = None
    for cases in _cases(size, target):
        found = [_estimate(case, finish, budget) for case in cases]
        if None not in found:
            least = found[0] if len(found) == 1 else apply("min", found[0], found[1])  # type: ignore[arg-type]
            seen = hint(least)  # type: ignore[arg-type]
            if seen is not None and (best is None or seen > best[0]):
                best = seen, least  # type: ignore[assignment]
    return None if best is None else best[1]


def _last_bounded(size: Size) -> Atom | None:
    """Return the atom whose bounds may mention the other atoms, or None if no atom has bounds."""
    found = dict.fromkeys(a for m, _ in terms_of(size) for a, _ in m if not isinstance(a, Symbol))
    bounded = [a for a in found if isinstance(a, Apply) or a.bounds != (None, None)]
    return max(bounded, key=_age, default=None)


def _age(a: Atom) -> tuple[int, int]:
    return a.age if isinstance(a, Apply) else (a.serial, 0)


def _cases(size: Size, target: Atom) -> list[tuple[Size, ...]]:
    """Return groups of sizes without ``target``; the minimum of each group is a lower bound of ``size``."""
    if not isinstance(target, Apply):
        return _one_sided(size, target, *target.bounds)
    left, right = target.left, target.right
    if target.function in {"min", "max"}:
        ends = [(None, s) if target.function == "min" else (s, None) for s in (left, right)]
        sides = [case for low, high in ends for case in _one_sided(size, target, low, high)]
        return [*sides, (_replaced(size, target, left), _replaced(size, target, right))]
    if not is_at_least(right, 1):
        return []
    if target.function == "mod":
        return _one_sided(size, target, 0, right - 1)
    scaled = _scaled(size, target, left, right) if isinstance(right, int) else []
    return scaled + (_one_sided(size, target, 0, left) if is_at_least(left, 0) else [])


def _replaced(size: Size, target: Atom, value: Size) -> Size:
    total: dict[Monomial, int] = {}
    for monomial, coefficient in terms_of(size):
        power, rest = _split(monomial, target)
        term: Size = coefficient
        for _ in range(power):
            term = term * value
        add_terms(total, term, rest)
    return normal(total)


def _split(monomial: Monomial, target: Atom) -> tuple[int, Monomial]:
    """Return the power of an atom in a monomial, and the other factors."""
    for k, (a, power) in enumerate(monomial):
        if a == target:
            return power, monomial[:k] + monomial[k + 1 :]
    return 0, monomial


def _one_sided(size: Size, target: Atom, low: Size | None, high: Size | None) -> list[tuple[Size, ...]]:
    """Return ``size`` with ``target`` at its lower bound where it is added and at its upper bound where it is subtracted.

    The list is empty if that proves nothing.
    """
    total: dict[Monomial, int] = {}
    for monomial, coefficient in terms_of(size):
        power, rest = _split(monomial, target)
        term: Size = coefficient
        if power:
            bound = low if coefficient > 0 else high
            monotonic = power == 1 or (low is not None and is_at_least(low, 0))
            if bound is None or not monotonic or any(_is_negative(a) for a, _ in rest):
                return []
            for _ in range(power):
                term = term * bound
        add_terms(total, term, rest)
    return [(normal(total),)]


def _is_negative(a: Atom) -> bool:
    """Return whether an atom may be below 0."""
    if isinstance(a, Symbol):
        return a.least < 0
    return a.is_negative if isinstance(a, Apply) else not is_at_least(atom(a), 0)


def _scaled(size: Size, target: Apply, left: Size, right: int) -> list[tuple[Size, ...]]:
    """Return a bound for a quotient that occurs once, times a multiple of its divisor: ``right * (left // right)`` is at most ``left``."""
    found = [(m, c) for m, c in terms_of(size) if _split(m, target)[0]]
    if len(found) != 1 or found[0][0] != ((target, 1),) or found[0][1] % right:
        return []
    coefficient = found[0][1] // right
    return [(_replaced(size, target, 0) + coefficient * (left if coefficient < 0 else left - (right - 1)),)]
