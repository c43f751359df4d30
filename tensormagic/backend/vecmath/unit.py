"""Functions of numbers that are of a part of the domain, with fewer steps than for all of it; and parts of the texts of others."""

from __future__ import annotations

from tensormagic.backend.vecmath.ir import Value
from tensormagic.backend.vecmath.parts import log_of_unit_sum

__all__ = ["copysign", "log1p_unit", "lost"]


def log1p_unit(x: Value) -> Value:
    """Return log(1 + x) for x from 0 to 1; nan stays."""
    return log_of_unit_sum(x, 0.0)


def lost(x: Value, y: Value) -> Value:
    """Return the rounding error of the product of x and y, for factors far from overflow and underflow."""
    return x.product(y)[1]


def copysign(x: Value, y: Value) -> Value:
    """Return the magnitude of x with the sign of y."""
    return x.copysign(y)
