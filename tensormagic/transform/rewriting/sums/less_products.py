"""Sums and products of values near 1, by their differences from 1. Knows nothing of rules."""

from __future__ import annotations

from collections.abc import Callable

from tensormagic.ir.node import Node
from tensormagic.ir.rewriting.rules import bare
from tensormagic.ops.leaf import constant
from tensormagic.ops.scalars.scalar import absolute, cos, expm1, log1p, multiply, power, square
from tensormagic.transform.rewriting.sums.difference import known
from tensormagic.transform.rewriting.sums.forms import both, within
from tensormagic.transform.rewriting.sums.rationals import over_common
from tensormagic.transform.rewriting.sums.terms import Apart, number_of, raised


def less_product(a: Node, b: Node) -> Apart | None:
    """Return ``1 - u * v`` for two factors near 1, by their differences from 1, or None if these have no forms."""
    product = bare(b)
    if product.op is not multiply or number_of(bare(a)) != 1 or bare(product.args[0]) is bare(product.args[1]):
        return None
    if (found := _less_powers(product)) is not None:
        return found
    one = constant(1.0)
    u, v = product.args
    first, second = known(one, u), known(one, v)
    if first is None or second is None:
        return None
    terms = (first.value, u * second.value)
    bound = absolute(a) * 0.5
    near = both(*(within(t, bound) for t in terms), first.near, second.near)
    parts = (product, *(n for n in (*first.parts, *second.parts) if n.args))
    return Apart(terms[0] + terms[1], near if isinstance(near, Node) else None, parts, known=True)


def _less_powers(product: Node) -> Apart | None:
    """Return ``1 - (1 + x)**y * (1 - x)**y`` by the product of the bases minus 1, or None for other products."""
    first, second = map(raised, product.args)
    if first.op is not power or second.op is not power or bare(first.args[1]) is not bare(second.args[1]):
        return None
    found = over_common(first.args[0] * second.args[0], constant(1.0), known)
    if found is None or not isinstance(found.value, Node):
        return None
    rise = first.args[1] * log1p(found.value)
    near = both(within(rise, 0.5), within(found.value, 0.5), found.near)
    parts = tuple(n for n in (product, *map(bare, product.args), first, second, *found.parts) if n.args)
    return Apart(-expm1(rise), near if isinstance(near, Node) else None, tuple(dict.fromkeys(parts)), known=True)


def beside_one(a: Node, b: Node) -> Apart | None:
    """Return ``cosh(x) - cos(y)`` and the like, with both near 1, by their differences from 1; else None."""
    first, second = (known(n, constant(1.0)) if bare(n).op.name in _AT_ONE else None for n in (a, b))
    if first is None or second is None:
        return None
    return _together(a, first, second, (a, b))


def beside_minus_one(a: Node, b: Node) -> Apart | None:
    """Return ``cosh(x) + cos(y)`` as ``cosh(x) - (-cos(y))``, with one term near 1 and the other near -1; else None."""
    inner = bare(b)
    if inner.op.name not in _AT_MINUS_ONE or bare(a).op.name not in _AT_ONE:
        return None
    first = known(a, constant(1.0))
    return first and _together(a, first, Apart(-_AT_MINUS_ONE[inner.op.name](inner.args[0])), (a, b))


def _together(a: Node, first: Apart, second: Apart, sides: tuple[Node, Node]) -> Apart:
    bound = absolute(a) * 0.5
    near = both(*(within(n.value, bound) for n in (first, second)), first.near, second.near)
    parts = tuple(n for n in (*map(bare, sides), *first.parts, *second.parts) if n.args)
    return Apart(first.value - second.value, near if isinstance(near, Node) else None, parts, known=True, local=True)


_AT_ONE = frozenset(("exp", "cos", "cosh", "sqrt", "cbrt", "erfc"))
"""Functions that are 1 at the operand 0 or 1."""
_AT_MINUS_ONE: dict[str, Callable[[Node], Node]] = {"cos": lambda x: 2 * square(cos(x * 0.5))}
"""Functions that are -1 somewhere, with their value plus 1 there."""
