"""Functions of numbers that are known to be of a part of the domain: fewer steps than for all of it."""

from __future__ import annotations

from tensormagic.backend.vecmath_ir import Value
from tensormagic.backend.vecmath_parts import log_of_unit_sum

__all__ = ["log1p_unit"]


def log1p_unit(x: Value) -> Value:
    """log(1 + x) for x from 0 to 1; nan stays."""
    return log_of_unit_sum(x, 0.0)
