"""Rules of what was said of values by ``tm.assume``: laws that hold where it is true."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tensormagic.ir.node import Node
from tensormagic.ir.rewriting.rules import Above, Finite, Positive, Regular
from tensormagic.ops.scalars.scalar import absolute, log, power, sign, sqrt, square
from tensormagic.transform.rewriting.notation import exact, real, stable

Rewrites = Iterator[tuple[Any, ...]]


@exact(fuel=1, judged=True)
def quotients_of_equals(r: Regular, f: Finite, a: Above) -> Rewrites:
    """Equal operands cancel, where they are known to be numbers."""
    yield r / r, 1
    yield f - f, 0
    yield sign(a), 1


@stable(fuel=1, judged=True)
def signs_known(p: Positive) -> Rewrites:
    """A value that is not negative is its own absolute value, but for the sign of a zero."""
    yield absolute(p), p


@stable(fuel=1, judged=True)
def products_with_zero(f: Finite) -> Rewrites:
    """Zero times a number, but for the sign of the zero."""
    yield f * 0, 0


@real(fuel=1, judged=True)
def positive_numbers(a: Above, b: Above, p: Positive, x: Node) -> Rewrites:
    """Laws of positive numbers."""
    yield log(a * b), log(a) + log(b)
    yield log(power(a, x)), x * log(a)
    yield square(sqrt(p)), p
    yield sqrt(p) * sqrt(p), p
