"""Upper bounds of sizes that change from iteration to iteration, for memory that is allocated before the first."""

from __future__ import annotations

from collections.abc import Container

from tensormagic.ir.node import Node
from tensormagic.ir.size import Apply, Atom, Size, apply, atom, lower_bound, nodes_of


class RefusedError(Exception):
    """A region cannot be one function: needed memory has no known bound, or a name would be ambiguous."""

    def __init__(self, region: Node | None) -> None:
        self.region = region
        super().__init__()


def upper(size: Size, known: Container[Node]) -> Size | None:
    """Return an upper bound of ``size`` that mentions only the nodes ``known``, or None if there is none."""
    return _bound(size, known, above=True)


def _bound(size: Size, known: Container[Node], *, above: bool) -> Size | None:
    if isinstance(size, int):
        return size
    total: Size = 0
    for monomial, coefficient in size.terms:
        term: Size | None = coefficient
        open_ = [a for a, _ in monomial if not _is_known(a, known)]
        if (
            any((lower_bound(atom(a)) or 0) < 0 or lower_bound(atom(a)) is None for a, _ in monomial)
            and len(monomial) > 1
            and open_
        ):
            return None
        for a, power in monomial:
            bound = _bound_of(a, known, above=above == (coefficient > 0)) if a in open_ else atom(a)
            for _ in range(power):
                term = None if term is None or bound is None else term * bound
        if term is None:
            return None
        total = total + term
    return total


def _is_known(a: Atom, known: Container[Node]) -> bool:
    nodes = a.nodes if isinstance(a, Apply) else (a,) if isinstance(a, Node) else ()
    return all(n in known for n in nodes)


def _bound_of(a: Atom, known: Container[Node], *, above: bool) -> Size | None:
    if isinstance(a, Node):
        end = a.bounds[1 if above else 0]
        return None if end is None else _bound(end, known, above=above)
    if a.function in {"min", "max"}:
        ends = [_bound(side, known, above=above) for side in (a.left, a.right)]
        both = [end for end in ends if end is not None]
        enough = len(both) == 2 or (both and (a.function == "min") == above)
        return None if not enough else both[0] if len(both) == 1 else apply(a.function, both[0], both[1])
    if a.function == "floordiv" and isinstance(a.right, int) and a.right > 0:
        left = _bound(a.left, known, above=above)
        return None if left is None else apply("floordiv", left, a.right)
    return (a.right - 1 if above else 0) if a.function == "mod" and isinstance(a.right, int) else None


def is_fixed(size: Size, known: Container[Node]) -> bool:
    """Return whether a size mentions only the nodes ``known``."""
    return all(n in known for n in nodes_of(size))
