"""Differences of powers: beside an exponential, 1, or another power of the same base. Knows no rules."""

from __future__ import annotations

from tensormagic.ir.node import Node
from tensormagic.ir.rewriting.rules import bare
from tensormagic.ops.scalars.scalar import (
    absolute,
    divide,
    exp,
    expm1,
    isfinite,
    less,
    log,
    logical_and,
    power,
    square,
    subtract,
    where,
)
from tensormagic.transform.rewriting.sums.expansions import less_beginning
from tensormagic.transform.rewriting.sums.forms import Image
from tensormagic.transform.rewriting.sums.one_in_place_of_another import same
from tensormagic.transform.rewriting.sums.terms import Apart, log_of_quotient, number_of, sum_of


def of_power_and_exponential(a: Node, b: Node, sides: tuple[Node, Node]) -> Apart | None:
    """Return ``x ** y - exp(z)`` by ``y * log(x) - z``, or None if this has no accurate form; ``sides`` are both as written."""
    if (sides[0].op, sides[1].op) not in {(power, exp), (exp, power)}:
        return None
    exponents = [n.args[1] * log(n.args[0]) if n.op is power else n.args[0] for n in sides]
    series = less_beginning(subtract(*exponents), a.type.dtype)
    if series is None:
        return None
    near = logical_and(series.near, less(absolute(series.value), 0.5))
    base = next(n.args[0] for n in sides if n.op is power)
    near = logical_and(near, logical_and(less(0, base), isfinite(b)))
    return Apart(
        b * expm1(where(near, series.value, 0)),
        near,
        (*(n for n in (bare(a), bare(b), bare(base)) if n.args),),
        known=True,
    )


def of_one_base(a: Node, b: Node, sides: tuple[Node, Node]) -> Apart | None:
    """Return the difference of two powers of one base, as ``(x / y)**12 - (x / y)**6``, by the lower power and ``expm1``; else None.

    Exponents less than 1 apart are left: ``x**(y + 1) - x**y`` is a factor times a difference.
    """
    if any(n.op is not power for n in sides) or not same(*(n.args[0] for n in sides)):
        return None
    rest, base = sum_of(sides[0].args[1]).minus(sum_of(sides[1].args[1])), bare(sides[0].args[0])
    if rest.terms or abs(rest.number) <= 1:
        return None
    logarithm = log_of_quotient(*base.args) if base.op is divide else log(base)
    rise = logarithm * float(rest.number)
    near = logical_and(less(absolute(rise), 0.5), isfinite(b))
    return Apart(b * expm1(where(near, rise, 0)), near, (bare(a),), known=True)


def is_any_power(of: Image) -> bool:
    """Return whether it is a power with an exponent that is not an integer."""
    n = number_of(of.more) if isinstance(of.more, Node) else None
    return of.name == "power" and (n is None or n.denominator != 1)


def by_exponents(a: Node, b: Node) -> Apart | None:
    """Return ``x ** y - 1`` as ``expm1(y * log(x))``, or None if the sides are not of this form."""
    for u, v, sign in ((a, b, 1), (b, a, -1)):
        inner = bare(u)
        if inner.op.name == "power" and number_of(bare(v)) == 1:
            base = bare(inner.args[0])
            rise = inner.args[1] * (log_of_quotient(*base.args) if base.op is divide else log(inner.args[0]))
            return Apart(expm1(rise) * sign, less(absolute(rise), 0.5), (inner,), known=True)
    return None


def of_whole_powers(a: Image, b: Image) -> Apart | None:
    """Return ``x**4 - y**4`` or ``x**3 - y**3`` by their factors, or None for other powers."""
    if a.name != "power" or a.argument is None or b.argument is None or not isinstance(a.more, Node):
        return None
    n, x, y = number_of(a.more), a.argument, b.argument
    parts = (bare(a.node), bare(b.node))
    if n == 4:
        return Apart((x - y) * (x + y) * (square(x) + square(y)), None, parts)
    if n == 3:
        near = less(absolute(x - y), absolute(y) * 0.5)
        return Apart((x - y) * (square(x) + x * y + square(y)), near, parts)
    return None
