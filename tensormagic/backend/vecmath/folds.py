"""The steps of reductions whose order kernels may change: sums, and the extrema of numbers with nans."""

from __future__ import annotations

from tensormagic.backend.vecmath.ir import Value

__all__ = ["add_reassoc", "max_propagate", "min_propagate"]


def add_reassoc(a: Value, b: Value) -> Value:
    """Sum a + b, which LLVM may sum in another order: for the accumulator of a fold only."""
    return a.add_reassoc(b)


def max_propagate(a: Value, b: Value) -> Value:
    """Return the larger; nan where either is nan; 0.0 is above -0.0, so the order of a fold does not show."""
    return a.emitter.call("maximum", a, b)


def min_propagate(a: Value, b: Value) -> Value:
    """Return the smaller; nan where either is nan; -0.0 is below 0.0, so the order of a fold does not show."""
    return a.emitter.call("minimum", a, b)
