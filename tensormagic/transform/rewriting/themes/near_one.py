"""A rule for logarithms of what is near 1: sums, products, and all functions of which the difference from 1 has a form."""

from __future__ import annotations

import math
from dataclasses import dataclass

from tensormagic.ir.node import Node
from tensormagic.ir.rewriting.rules import Found, bare
from tensormagic.ops.leaf import constant
from tensormagic.ops.scalars.scalar import (
    absolute,
    add,
    divide,
    isfinite,
    less,
    log,
    log1p,
    log2,
    log10,
    logical_and,
    multiply,
    power,
    sqrt,
    subtract,
    where,
)
from tensormagic.transform.rewriting.notation import stable
from tensormagic.transform.rewriting.sums.difference import known
from tensormagic.transform.rewriting.sums.rationals import over_common
from tensormagic.transform.rewriting.sums.terms import Sum, raised, sum_of
from tensormagic.transform.rewriting.themes.rises import rise_from_one

_NEAR = 0.5
_DEEP = 2
"""How many levels of products and roots are split."""
_FUNCTIONS = frozenset(("tan", "cos", "tanh", "erf", "erfc", "hypot", "cbrt", "sinc", "arctan", "exp2"))
_SUMS = frozenset((add, subtract))
_PRODUCTS = frozenset((multiply, divide))
_POWERS = frozenset((sqrt, power))
_OWN = frozenset((*_SUMS, multiply, sqrt, power))
UNITS = {log: 1.0, log2: 1 / math.log(2), log10: 1 / math.log(10)}
"""The logarithms, with their ratio to the natural one."""


@dataclass(frozen=True)
class Logarithm:
    """A logarithm with the condition ``near``, that its argument is near 1, and ``parts``, the nodes whose rounding it avoids."""

    value: Node
    near: Node
    parts: tuple[Node, ...]


@stable(roots="log log2 log10", fuel=1, judged=True)
def logarithms_near_one_of_all(node: Node) -> Found | None:
    """``log((1 + x)**2 + y**2) -> log1p(2 * x + x**2 + y**2) near 0, and for products and functions near 1: log(tan(pi / 4 + x))``."""
    total = node.args[0]
    inner = bare(total)
    if node.type.dtype.kind != "f" or _is_one_and_more(inner):
        return None
    found = near_one(total) if raised(inner).op in _OWN or inner.op.name in _FUNCTIONS else None
    if found is None:
        return None
    function = next(f for f in UNITS if f is node.op)
    value = found.value if function is log else found.value * UNITS[function]
    return Found(where(found.near, value, function(where(found.near, 1, total))), absorbs=(inner, *found.parts))


def _is_one_and_more(total: Node) -> bool:
    """Return whether a sum contains the 1 it is near, and no exponentials to be rewritten by ``expm1``."""
    return total.op in _SUMS and sum_of(total, text=True).number in {1, -1} and rise_from_one(total) is None


def near_one(total: Node) -> Logarithm | None:
    """Return the logarithm of a value near 1, or None if its difference from 1 has no form."""
    return _of(total, _DEEP)


def _of(total: Node, depth: int) -> Logarithm | None:
    inner = raised(total)  # powers are read as written
    if inner.op in _SUMS and (rise := rise_from_one(inner)) is not None:
        near = less(absolute(rise), _NEAR)
        return Logarithm(log1p(where(near, rise, 0)), near, (inner,))
    if inner.op in _SUMS or inner.op is multiply:
        apart = over_common(total, constant(1.0), known)
        if apart is not None and apart.near is not None and isinstance(apart.value, Node):
            return Logarithm(log1p(where(apart.near, apart.value, 0)), apart.near, apart.parts)
    if depth and inner.op in _PRODUCTS:
        return _of_product(inner, depth)
    if depth and inner.op in _POWERS:
        return _of_power(inner, depth)
    if inner.op in _SUMS:
        return _of_sum(inner)
    apart = known(total, constant(1.0)) if inner.op.name in _FUNCTIONS else None
    if apart is None or not isinstance(apart.value, Node):
        return None
    near = less(absolute(apart.value), _NEAR)
    near = near if apart.near is None else logical_and(apart.near, near)
    return Logarithm(log1p(where(near, apart.value, 0)), near, apart.parts)


def _of_product(product: Node, depth: int) -> Logarithm | None:
    """Return the sum of the logarithms of two factors near 1, or None."""
    first, second = (_of(a, depth - 1) for a in product.args)
    if first is None or second is None:
        return None
    parts = (product, *map(bare, product.args), *first.parts, *second.parts)
    value = first.value + second.value if product.op is multiply else first.value - second.value
    return Logarithm(value, logical_and(first.near, second.near), tuple(dict.fromkeys(parts)))


def _of_power(node: Node, depth: int) -> Logarithm | None:
    """Return the logarithm of a power or root of a value near 1, as a multiple, or None."""
    found = _of(node.args[0], depth - 1)
    if found is None:
        return None
    near = found.near if node.op is sqrt else logical_and(found.near, logical_and(less(0, node), isfinite(node)))
    times = node.args[1] if node.op is power else 0.5
    return Logarithm(found.value * times, near, (node, *found.parts))


def _of_sum(node: Node) -> Logarithm | None:
    """Return the logarithm of a sum of 1 and something small, or None for other sums."""
    total = sum_of(node)
    small = total.minus(Sum((), total.number)).largest_first() if total.number == 1 and total.terms else None
    if not isinstance(small, Node):
        return None
    near = less(absolute(small), _NEAR)
    return Logarithm(log1p(where(near, small, 0)), near, (node,))
