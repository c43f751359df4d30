"""Rules of sums with exponentials near 0, where an exponential is 1 and a rise: what stands beside the rise may go."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce

from tensormagic.ir.node import Node
from tensormagic.ir.rewriting.rules import Found, bare
from tensormagic.ir.rewriting.within import ops_within, within
from tensormagic.ops.leaf import constant
from tensormagic.ops.scalars.scalar import (
    absolute,
    add,
    divide,
    exp,
    expm1,
    less,
    log,
    log1p,
    logical_and,
    multiply,
    power,
    subtract,
    where,
)
from tensormagic.transform.rewriting.notation import stable
from tensormagic.transform.rewriting.sums.common_factors import without_common_factors
from tensormagic.transform.rewriting.sums.expansions import less_beginning
from tensormagic.transform.rewriting.sums.terms import Sum, behind, log_of_quotient, number_of, raised, sum_of
from tensormagic.transform.rewriting.themes.explog import exponentials_of, split

_NEAR = 0.5
"""Exponents up to this size count as near 0."""


@dataclass(frozen=True)
class _Rises:
    """A sum with exponentials and powers, by ``expm1``.

    Parameters
    ----------
    rest
        Its value where all exponents are 0.
    weighted
        Weights, numbers and exponents of the ``expm1`` terms.
    """

    rest: Sum
    weighted: Sequence[tuple[Node, Fraction, Node]]

    @property
    def exponents(self) -> tuple[Node, ...]:
        """The exponents of the exponentials."""
        return tuple(exponent for _, _, exponent in self.weighted)

    def node(self) -> Node:
        """Return the sum of the ``expm1`` terms."""
        return reduce(add, [_rise(*one) for one in self.weighted])


def _rise(weight: Node, times: Fraction, exponent: Node) -> Node:
    factor = weight if times == 1 else weight * float(times)
    return expm1(exponent) if number_of(factor) == 1 else factor * expm1(exponent)


_Pair = tuple[Node, Node]


def _by_rises(node: Node, of_power: Callable[[Node], _Pair | None] | None = None) -> _Rises | None:
    """Return a sum with exponentials and powers, in terms of ``expm1``, or None for a sum without, or of exponentials alone."""
    total = sum_of(node, text=True)
    rest, weighted = Sum((), total.number), list[tuple[Node, Fraction, Node]]()
    powers = 0
    for _, term, times in total.terms:
        pair = split(bare(term))
        if pair is None:
            pair = (of_power or _of_power)(bare(term))
            powers += pair is not None
        if pair is None:
            rest = rest.minus(sum_of(term).times(-times))
            continue
        weight, exponent = pair
        rest = rest.minus(sum_of(weight).times(-times))
        weighted.append((weight, times, exponent))
    if not weighted or (len(weighted) == len(total.terms) and not total.number and not powers):
        return None
    return _Rises(rest, weighted)


def _of_power(term: Node) -> tuple[Node, Node] | None:
    """Return a power as its base and the exponent of the remaining factor (the power equals the base where that exponent is 0), or None."""
    inner = raised(term)
    if (
        inner.op is not power
        or number_of(bare(inner.args[1])) is not None
        or number_of(bare(inner.args[0])) is not None
    ):
        return None
    base, exponent = inner.args
    step = sum_of(exponent).minus(Sum((), Fraction(1))).node()
    return (base, step * log(base)) if isinstance(step, Node) else None


def _of_small_power(term: Node, depth: int = 2) -> _Pair | None:
    """Return a product as a factor and the exponent of e that its only power is, or None; where that exponent is 0 it is the factor."""
    inner = raised(term)
    if inner.op is multiply and depth:
        for factor, other in (inner.args, inner.args[::-1]):
            if (pair := _of_small_power(bare(other), depth - 1)) is not None:
                return (factor if number_of(pair[0]) == 1 else factor * pair[0]), pair[1]
    if inner.op is not power or number_of(bare(inner.args[1])) is not None:
        return None
    base = bare(inner.args[0])
    return constant(1.0), inner.args[1] * (log_of_quotient(*base.args) if base.op is divide else log(inner.args[0]))


@stable(roots="subtract add", within="exp", fuel=1, judged=True, cancels=True)
def weighted_exponentials_less_their_weights(node: Node) -> Found | None:
    """``y * exp(x) + (1 - y) * exp(-x) - 1 -> by expm1 where exponents are near 0, for all sums that are 0 where they are``."""
    if node.type.dtype.kind != "f" or not any(number_of(bare(a)) for a in node.args) or not _has_weighted(node):
        return None
    return _by_rises_alone(node)


def _has_weighted(node: Node, depth: int = 1) -> bool:
    """Return whether a term, or one of a nested sum, is an exponential or a product with one (a quick test)."""
    for inner in map(bare, node.args):
        if inner.op is multiply and any(
            bare(a).op is exp and number_of(bare(b)) is None for a, b in (inner.args, inner.args[::-1])
        ):
            return True
        if depth and inner.op in _SUMS and _has_weighted(inner, depth - 1):
            return True
    return False


_SUMS = frozenset((add, subtract))
_ARITHMETIC = frozenset((add, subtract, multiply))


@stable(roots="subtract add", within="power", fuel=1, judged=True, cancels=True)
def powers_less_their_bases(node: Node) -> Found | None:
    """``1 - x**y - (1 - x)**y -> by x * expm1((y - 1) * log(x)), where y is near 1, for all sums that are 0 where exponents are 1``."""
    return _by_rises_alone(node) if node.type.dtype.kind == "f" else None


def _by_rises_alone(node: Node) -> Found | None:
    """Return the form of a sum of ``expm1`` terms alone: by these for exponents near 0, elsewhere the sum; None for other sums."""
    found = _by_rises(node)
    if found is None or len(found.rest):
        return None
    near = reduce(logical_and, [less(absolute(e), _NEAR) for e in found.exponents])
    left, right = node.args
    right = right if node.op is subtract else -right
    return Found(behind(near, found.node(), left, right), absorbs=tuple(n for n in map(bare, node.args) if n.args))


def rise_from_one(total: Node) -> Node | None:
    """Return a sum minus 1 by ``expm1``, as ``y * expm1(x)`` for ``y * exp(x) + (1 - y)``, or None if it is not 1 at exponents 0."""
    if not within(total) & _WITH_RISES or exponentials_of(total) is not None:
        return None
    return _from_one(_by_rises(total)) or (
        _from_one(_by_rises(total, _of_small_power)) if within(total) & _POWERS else None
    )


def _from_one(found: _Rises | None) -> Node | None:
    return None if found is None or found.rest.terms or found.rest.number != 1 else found.node()


_POWERS = ops_within(("power",))
_WITH_RISES = ops_within(("exp", "power"))


def _less_exponential(node: Node, depth: int = 3) -> Node | None:
    """Return the exponential ``e`` of a factor ``1 - e`` or ``e - 1`` of ``node``, or None."""
    inner = bare(node)
    if inner.op is multiply and depth:
        return next((own for a in inner.args if (own := _less_exponential(a, depth - 1)) is not None), None)
    if inner.op is not subtract:
        return None
    first, second = map(bare, inner.args)
    own = second if number_of(first) == 1 else first if number_of(second) == 1 else inner
    return own if own.op is exp else None


def _with_rise(node: Node, near: Node, own: Node, depth: int = 3) -> Node | None:
    """Return a product with a sum that contains ``own``, with the sum by ``expm1`` where ``own`` is near 1, or None."""
    inner = bare(node)
    if inner.op is multiply and depth:
        for p, q in (inner.args, inner.args[::-1]):
            found = _with_rise(p, near, own, depth - 1)
            if found is not None:
                return found * q
    if inner.op not in {add, subtract}:
        return None
    found = _by_rises(inner)
    if found is None or found.exponents != (own.args[0],):
        return None
    if len(found.rest):
        return where(near, found.rest.node() + found.node(), node)
    left, right = inner.args
    return behind(near, found.node(), left, right if inner.op is subtract else -right)


@stable(
    roots="divide",
    within="exp",
    fuel=1,
    judged=True,
    extends="the sign of an infinite value where exp(x) is rounded to 1",
)
def quotients_by_rises(node: Node) -> Found | None:
    """``(y - z * exp(x)) / (1 - exp(x)) -> both by expm1(x), where x is near 0, the other way round, and with factors``."""
    top, below = node.args
    own = (_less_exponential(below) or _less_exponential(top)) if node.type.dtype.kind == "f" else None
    if own is None:
        return None
    near = less(absolute(own.args[0]), _NEAR)
    sides = [_with_rise(side, near, own) for side in node.args]
    if sides[0] is None or sides[1] is None:
        return None
    return Found(divide(*sides), absorbs=(*_sums_with(top, own), *_sums_with(below, own)))


def _sums_with(node: Node, own: Node, depth: int = 5) -> tuple[Node, ...]:
    """Return the products and sums between ``node`` and the exponential ``own``."""
    inner = bare(node)
    if not depth or inner.op not in _ARITHMETIC:
        return ()
    below = dict.fromkeys(n for a in inner.args for n in _sums_with(a, own, depth - 1))
    return (inner, *below) if below or own in map(bare, inner.args) else ()


def _beside_one(base: Node) -> Node | None:
    """Return ``x`` if ``base`` is ``1 + x`` as written, or None; a quotient by 12 is not taken for a multiple of a rounded number."""
    inner = bare(base)
    for one, other in (inner.args, inner.args[::-1]) if inner.op is add else ():
        if number_of(bare(one)) == 1:
            return other
    return None


@stable(roots="subtract add", within="power where", fuel=1, judged=True, cancels=True)
def powers_less_what_they_begin_with(node: Node) -> Found | None:
    """``(1 + x) ** y - 1 - x * y -> (expm1(r) - r) + (r - x * y) for r = y * log1p(x), where x and r are near 0``."""
    if node.type.dtype.kind != "f":
        return None
    left = without_common_factors(node)
    found = _beginning_of_power(node if left is None else left.total)
    if found is None:
        return None
    near, value, parts = found
    within_ = () if left is None else left.within
    value = value if left is None else left.times(value)
    first, second = node.args
    second = second if node.op is subtract else -second
    return Found(behind(near, value, first, second), absorbs=tuple(dict.fromkeys((*within_, *parts))))  # type: ignore[arg-type]


def _beginning_of_power(node: Node) -> tuple[Node, Node, tuple[Node, ...]] | None:
    """Return for a power minus its leading terms: where its form holds, the form, and the nodes no longer read; or None."""
    total = sum_of(node, text=True)
    powers = [(n, times) for _, n, times in total.terms if raised(n).op is power]
    if len(powers) != 1 or abs(powers[0][1]) != 1 or total.number != -powers[0][1]:
        return None
    (own, sign), text = powers[0], raised(powers[0][0])
    base, exponent = text.args
    small = sum_of(base).minus(Sum((), Fraction(1)))
    rest = Sum(tuple((k, n, -times * sign) for k, n, times in total.terms if n is not own), Fraction(0))
    if small.number or not small.terms or not rest.terms:
        return None
    rise = exponent * log1p(_beside_one(base) or small.node())
    first = less_beginning(subtract(expm1(rise), rise), node.type.dtype)
    second = less_beginning(subtract(rise, rest.node()), node.type.dtype) if first is not None else None
    if first is None or second is None:
        return None
    value = first.value + second.value
    between = (n for n in (*map(bare, node.args), bare(own), bare(base)) if n.op in {add, subtract, where, power})
    return logical_and(first.near, second.near), value if sign > 0 else -value, tuple(between)
