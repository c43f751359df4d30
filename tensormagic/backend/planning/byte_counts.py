"""Numbers of bytes as formulas in sizes: the maximum of several polynomials, none of which always dominates another."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from tensormagic.ir.size import Atom, Size, Symbol, atoms, evaluate, is_at_least, text
from tensormagic.ir.substituting import substitute


@dataclass(frozen=True)
class Amount:
    """The maximum of some sizes.

    Parameters
    ----------
    sizes
        Polynomials in sizes; those that never exceed another one are left out.
    """

    sizes: tuple[Size, ...] = (0,)

    @property
    def atoms(self) -> tuple[Atom, ...]:
        """Return the symbols and nodes in the formula."""
        return tuple(dict.fromkeys(a for size in self.sizes for a in atoms(size)))

    @property
    def nodes(self) -> tuple[Any, ...]:
        """Return the nodes in the formula; with any, the amount is data-dependent."""
        return tuple(a for a in self.atoms if not isinstance(a, Symbol))

    def __add__(self, other: Size) -> Amount:
        return most(size + other for size in self.sizes)

    def number(self, value_of: Callable[[Atom], int]) -> int:
        """Return the value; ``value_of`` gives the number of each symbol and node."""
        return max(evaluate(size, value_of) for size in self.sizes)

    def replaced(self, replacement: Mapping[Atom, Size]) -> Amount:
        """Return the amount with other sizes for symbols and nodes."""
        return most(substitute(size, replacement) for size in self.sizes)

    def written(self, name: Callable[[Atom], str]) -> str:
        """Return the formula as text; ``name`` gives the name of each symbol and node."""
        parts = [text(size, name) for size in self.sizes]
        return parts[0] if len(parts) == 1 else f"max({', '.join(parts)})"


def most(sizes: Iterable[Size]) -> Amount:
    """Return the largest of some sizes.

    Examples
    --------
    >>> from tensormagic.ir.size import symbol
    >>> n = symbol("n")
    >>> most([8 * n, 8 * n + 8, 4]).sizes
    (8*n+8,)
    """
    kept: list[Size] = []
    for size in dict.fromkeys(sizes):
        if not any(_is_more(other, size) for other in kept):
            kept = [other for other in kept if not _is_more(size, other)] + [size]
    return Amount(tuple(kept) or (0,))


def _is_more(size: Size, other: Size) -> bool:
    """Return whether ``size`` is known to be at least ``other``."""
    return is_at_least(size - other, 0)
