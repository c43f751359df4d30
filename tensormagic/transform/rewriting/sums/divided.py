"""Sums that vanish with an operand, divided by it term by term, so that nothing cancels in the derivative. Knows no rules.

``(x * expm1(y * u) + z * expm1(y * v)) / y`` is ``x * u * f(y * u) + z * v * f(y * v)`` for ``f(r) = expm1(r) / r``, a series
near 0. The slope of the quotient by ``y`` has terms that are larger than their sum; that of the other text has not.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

import numpy as np

from tensormagic.ir.node import Node
from tensormagic.ir.rewriting.rules import bare
from tensormagic.ops.scalars.scalar import (
    absolute,
    add,
    arcsin,
    arcsinh,
    arctan,
    arctanh,
    divide,
    expm1,
    less,
    log1p,
    multiply,
    negative,
    sin,
    sinh,
    subtract,
    tan,
    tanh,
    where,
)
from tensormagic.transform.rewriting.sums.cancellation_places import Beside
from tensormagic.transform.rewriting.sums.expansions import Expansion, Part, of_part
from tensormagic.transform.rewriting.sums.power_series import NoSeriesError, Series
from tensormagic.transform.rewriting.sums.terms import number_of, sum_of

_DEEP = 8
"""How many levels of operands are looked through."""
_KNOWN = 44
"""How many terms of a series are computed."""
_RADII = (1.0, 0.5, 0.25, 0.125)
"""The radii of an argument in which the series may be used: the first is taken for which it has few enough terms."""
_FUNCTIONS: frozenset[Callable[..., Node]] = frozenset(
    (expm1, log1p, sin, sinh, tan, tanh, arcsin, arcsinh, arctan, arctanh)
)
"""Functions that are close to their argument near 0."""
_SUMS = frozenset((add, subtract))
_NONE: frozenset[tuple[Node, object]] = frozenset()


def over(node: Node, below: Node) -> Node | float | None:
    """Return ``node / below`` if ``node`` is a sum, product or function whose parts have the factor ``below``, else None."""
    found = _over(node, bare(below), _DEEP)
    return found if isinstance(found, Node) else None


def _over(node: Node, below: Node, depth: int) -> Node | float | None:
    inner = bare(node)
    if (times := _multiple(inner, below)) is not None:
        return times
    if not depth or not inner.args:
        return None
    if inner.op in _SUMS:
        return _of_sum(inner, below, depth)
    if inner.op is multiply:
        return _of_product(inner, below, depth)
    if inner.op is where:
        return _of_form(inner, below, depth)
    if inner.op in _FUNCTIONS:
        return _of_function(inner, below, depth)
    found = _over(inner.args[0], below, depth - 1) if inner.op is negative or inner.op is divide else None
    return None if found is None else -found if inner.op is negative else found / inner.args[1]


def _of_sum(inner: Node, below: Node, depth: int) -> Node | float | None:
    """Return a sum each of whose terms has the factor, with the factor removed, or None."""
    left, right = (_over(a, below, depth - 1) for a in inner.args)
    if left is None or right is None:
        return None
    return left + right if inner.op is add else left - right


def _of_form(inner: Node, below: Node, depth: int) -> Node | float | None:
    """Return a ``where`` form with the factor removed on both sides, or the form alone if the text is 0; None if that fails."""
    near, form, text = inner.args
    found = _over(form, below, depth - 1)
    if found is None or number_of(bare(text)) == 0:
        return found
    return where(near, found, text / below)


def _of_product(inner: Node, below: Node, depth: int) -> Node | float | None:
    """Return a product with the factor removed from one of its factors, or None."""
    for one, other in (inner.args, inner.args[::-1]):
        found = _over(one, below, depth - 1)
        if found is not None:
            return other if found == 1 else found * other
    return None


def _of_function(inner: Node, below: Node, depth: int) -> Node | None:
    """Return a function whose argument has the factor, as the function over its argument times the reduced argument, or None."""
    argument = inner.args[0]
    rest = _over(argument, below, depth - 1)
    series = None if rest is None else over_argument(inner)
    return None if series is None or rest is None else series * rest


def _multiple(node: Node, below: Node) -> float | None:
    """Return 1 or -1 if ``node`` is that multiple of ``below``, else None."""
    if node is below:
        return 1.0
    if node.op not in _SUMS or below.op not in _SUMS:
        return None
    one, other = sum_of(node), sum_of(below)
    return next((float(sign) for sign in (1, -1) if not len(one.minus(other.times(sign)))), None)


def over_argument(function: Node) -> Node | None:
    """Return a function divided by its argument, by a series for small arguments (1 at 0), or None if it has none."""
    argument = bare(function.args[0])
    small = function.args[0]
    with suppress(NoSeriesError):
        read = Expansion(Beside(argument, 0), _KNOWN).of(function.op(argument))  # type: ignore[arg-type,operator]
        own = read.get(_NONE)  # type: ignore[call-overload]
        if own is None or len(read) != 1 or own.order != 1:
            return None
        part, bits = Part(frozenset(), Series(0, own.terms), ()), np.finfo(function.type.dtype.type).nmant
        for radius in _RADII:
            near = less(absolute(small), radius)
            value = of_part(part, small, near, radius, bits)
            if value is not None:
                return where(near, value, function / where(near, 1, small))
    return None
