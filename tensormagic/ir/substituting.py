"""Replaces symbols and nodes in sizes by other sizes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tensormagic.ir.size import Apply, Atom, Dim, Monomial, Size, add_terms, apply, bare_atom, normal


def substitute(size: Size, replacement: Mapping[Atom, Size]) -> Size:
    """Return ``size`` with symbols and nodes replaced."""
    return _substitute(size, replacement, {})


def _substitute(size: Size, replacement: Mapping[Atom, Size], done: dict[Apply, Size]) -> Size:
    """Return :func:`substitute`'s result, with the results so far in ``done``, since one part may occur several times."""
    if isinstance(size, int):
        return size
    alone = bare_atom(size)
    if alone is not None and not isinstance(alone, Apply):
        return replacement.get(alone, size)
    if not any(a in replacement for a in size.atoms):
        return size
    total: dict[Monomial, int] = {}
    for monomial, coefficient in size.terms:
        kept: list[tuple[Atom, int]] = []
        term: Size = coefficient
        for a, power in monomial:
            base = _replacing(a, replacement, done)
            if base is None:
                kept.append((a, power))
            else:
                for _ in range(power):
                    term = term * base
        add_terms(total, term, tuple(kept))
    return normal(total)


def _replacing(a: Atom, replacement: Mapping[Atom, Size], done: dict[Apply, Size]) -> Size | None:
    """Return the replacement of an atom, or None if it stays."""
    if not isinstance(a, Apply):
        return replacement.get(a)
    if a not in done:
        if not any(inner in replacement for inner in a.atoms):
            return None
        done[a] = apply(a.function, *(_substitute(s, replacement, done) for s in (a.left, a.right)))
    return done[a]


def substitute_in(value: Any, replacement: Mapping[Atom, Size]) -> Any:
    """Return a parameter of a node with symbols and nodes replaced in its sizes."""
    if isinstance(value, Dim):
        return substitute(value, replacement)
    return tuple(substitute_in(v, replacement) for v in value) if type(value) is tuple else value
