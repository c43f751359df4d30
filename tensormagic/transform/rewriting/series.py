"""Series at 0: what is left of a function when the beginning of its series is taken away. Knows nothing of rules."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import count, islice
from typing import Any

import numpy as np

from tensormagic.ir.node import Node
from tensormagic.ir.rules import bare
from tensormagic.ops.scalars.scalar import absolute, less, square, where
from tensormagic.transform.rewriting.terms import Sum, sum_of


def _odd(coefficient: Callable[[int], Fraction]) -> Iterator[Fraction]:
    """An odd function's coefficients, by the number of the term."""
    for k in count():
        yield Fraction(0)
        yield coefficient(k)


def _exponential() -> Iterator[Fraction]:
    yield Fraction(0)
    for k in count(1):
        yield Fraction(1, math.factorial(k))


def _logarithm() -> Iterator[Fraction]:
    yield Fraction(0)
    for k in count(1):
        yield Fraction((-1) ** (k + 1), k)


def _tangent(sign: int) -> Iterator[Fraction]:
    """Of ``t' = 1 + sign * t * t``: the tangent, and the hyperbolic one."""
    found = [Fraction(0)]
    for k in count():
        yield found[k]
        squares = sum((found[j] * found[k - j] for j in range(k + 1)), Fraction(0))
        found.append((sign * squares + (k == 0)) / (k + 1))


def _arcsine(k: int) -> Fraction:
    return Fraction(math.comb(2 * k, k), 4**k * (2 * k + 1))


SERIES: dict[str, tuple[Callable[[], Iterator[Fraction]], float]] = {
    "sin": (lambda: _odd(lambda k: Fraction((-1) ** k, math.factorial(2 * k + 1))), 1.0),
    "sinh": (lambda: _odd(lambda k: Fraction(1, math.factorial(2 * k + 1))), 1.0),
    "expm1": (_exponential, 0.5),
    "log1p": (_logarithm, 0.125),
    "tan": (lambda: _tangent(1), 0.5),
    "tanh": (lambda: _tangent(-1), 0.5),
    "arctan": (lambda: _odd(lambda k: Fraction((-1) ** k, 2 * k + 1)), 0.25),
    "arctanh": (lambda: _odd(lambda k: Fraction(1, 2 * k + 1)), 0.25),
    "arcsin": (lambda: _odd(_arcsine), 0.25),
    "arcsinh": (lambda: _odd(lambda k: (-1) ** k * _arcsine(k)), 0.25),
}
"""For each function the coefficients of its series at 0, and up to where it takes the place of a difference."""


@lru_cache(maxsize=128)
def _remainder(name: str, first: int, digits: int) -> tuple[list[float], int]:
    """The coefficients from ``x ** first`` on that ``digits`` bits need, and the step between their powers."""
    series, radius = SERIES[name]
    step = 1 if name in {"expm1", "log1p"} else 2
    found: list[Fraction] = []
    for value in islice(series(), first, None, step):
        found.append(value)
        if abs(value) * Fraction(radius) ** (step * (len(found) - 1)) < abs(found[0]) * Fraction(2) ** -(digits + 3):
            break
    return [float(v) for v in found], step


def _polynomial(x: Node, powers: Sequence[tuple[object, Fraction]]) -> dict[int, Fraction] | None:
    """The coefficients by the powers of ``x``; None where something else is added."""
    found: dict[int, Fraction] = {}
    for key, times in powers:
        if key is x:
            power = 1
        elif key == ("square", x):
            power = 2
        else:
            return None
        found[power] = times
    return found


def _multiple(node: Node) -> tuple[Node, Fraction]:
    """What an argument is a multiple of, and by what."""
    total = sum_of(node)
    if len(total.terms) == 1 and not total.number and isinstance(total.terms[0][0], Node):
        return total.terms[0][0], total.terms[0][2]
    return bare(node), Fraction(1)


def _beginning(total: Sum) -> tuple[Node, Fraction, int, Node] | None:
    """A function in ``total``, its factor, and which power of the remainder is the first, where the rest is the beginning of its series.

    The last is what the argument is a multiple of.
    """
    for key, node, times in total.terms:
        name = bare(node).op.name
        if name not in SERIES or not isinstance(key, Node):
            continue
        x, by = _multiple(bare(node).args[0])
        rest = _polynomial(x, [(k, t) for k, _, t in total.terms if k is not key])
        if rest is None or not rest or total.number:
            continue
        terms = list(islice(SERIES[name][0](), 8))
        last = max(rest)
        if all(rest.get(k, Fraction(0)) == -times * terms[k] * by**k for k in range(1, last + 1)):
            following = next(k for k in range(last + 1, 8) if terms[k])
            if following > 3:
                continue
            return node, times, following, x
    return None


@dataclass(frozen=True)
class Remainder:
    """A function less the beginning of its series: its ``value``, where ``x`` is ``near`` 0, and the function's node.

    ``base`` is what its argument is a multiple of.
    """

    value: Node
    near: Node
    function: Node
    base: Node


def less_beginning(total: Sum, dtype: np.dtype[Any]) -> Remainder | None:
    """``total`` by a series, where it is a function less the beginning of its series; else None."""
    found = _beginning(total)
    if found is None:
        return None
    node, times, first, base = found
    name, x = bare(node).op.name, bare(node).args[0]
    coefficients, step = _remainder(name, first, np.finfo(dtype.type).nmant)
    near = less(absolute(x), SERIES[name][1])
    small = where(near, x, 0)
    by = square(small) if step == 2 else small
    value: Node | float = coefficients[-1]
    for c in reversed(coefficients[:-1]):
        value = value * by + c
    power = small if first == 1 else square(small) if first == 2 else square(small) * small
    value = value * power if times == 1 else value * power * float(times)
    return Remainder(value, near, node, base)
