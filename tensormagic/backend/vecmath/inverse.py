"""The inverse trigonometric functions of vecmath: an odd polynomial of a reduced argument, plus quarters of pi.

The reduced argument and pi are kept in two parts, so that their sum is rounded about once.
"""

from __future__ import annotations

from math import inf, nan

from tensormagic.backend.vecmath.ir import Value
from tensormagic.backend.vecmath.parts import clamp, divided, fast_sum, format_of, two_sum

__all__ = ["arccos", "arcsin", "arctan", "arctan2"]


def _plus_quarters(count: Value, high: Value, low: Value) -> Value:
    """Count pi/4 + high + low, where high has at most the magnitude of count pi/4 unless count is 0."""
    first, second = format_of(high).polynomials.quarter_pi
    total, error = fast_sum(count * first, high)
    return total + (error + count.fma(second, low))


def _reduced_sine(x: Value) -> tuple[Value, Value, Value]:
    """Return whether abs(x) is above 1/2, and the angle in two parts: of x, or beyond half the angle from there to 1."""
    a = abs(x)
    above = a > 0.5
    z = above.select((1.0 - a) * 0.5, x * x)
    root = x.emitter.call("sqrt", z)
    lost = z.minus_product(root, root) / (root + root)
    high = above.select(root, a)
    low = high * z * z.polynomial(*format_of(x).polynomials.arcsin)
    return above, high, low + (above & (root > 0.0)).select(lost, 0.0)


def arcsin(x: Value) -> Value:
    """Return the angle between -pi/2 and pi/2 whose sine is x; above 1/2 in magnitude, pi/2 less twice that of sqrt((1-x)/2)."""
    above, high, low = _reduced_sine(x)
    high, low = (above.select(v * -2.0, v) for v in (high, low))
    return _plus_quarters(above.select(2.0, 0.0), high, low).copysign(x)


def arccos(x: Value) -> Value:
    """Return the angle between 0 and pi whose cosine is x."""
    above, high, low = _reduced_sine(x)
    negative = x < 0.0
    doubled = above.select(2.0, -1.0)
    factor = negative.select(-doubled, doubled)
    count = above.select(negative.select(4.0, 0.0), 2.0)
    return _plus_quarters(count, high * factor, low * factor)


def _arctan_of_ratio(a: Value, b: Value) -> tuple[Value, Value, Value]:
    """Find a count of quarters of pi and high, low with arctan(a/b) their sum, for 0 <= a <= b, b neither 0 nor inf."""
    p = format_of(a).polynomials
    steep = a > b * 0.4142135623730951
    difference, lost = two_sum(a, -b)
    total, error = two_sum(a, b)
    top, top_low = steep.select(difference, a), steep.select(lost, 0.0)
    bottom, bottom_low = steep.select(total, b), steep.select(error, 0.0)
    high, low = divided(top, top_low, bottom, bottom_low)
    z = high * high
    return steep.select(1.0, 0.0), high, (high * z).fma(z.polynomial(*p.arctan), low)


def _turned(swapped: Value, count: Value, high: Value, low: Value, quarters: float) -> tuple[Value, Value, Value]:
    """That many quarters of pi less the angle, where `swapped`."""
    return swapped.select(quarters - count, count), swapped.select(-high, high), swapped.select(-low, low)


def arctan(x: Value) -> Value:
    """Return the angle between -pi/2 and pi/2 whose tangent is x."""
    a = clamp(abs(x), 0.0, 2.0**60)
    above = a > 1.0
    count, high, low = _arctan_of_ratio(above.select(1.0, a), above.select(a, 1.0))
    return _plus_quarters(*_turned(above, count, high, low, 2.0)).copysign(x)


def _in_range(a: Value, b: Value) -> tuple[Value, Value]:
    """Both times a power of 2 that keeps their sum and its products in range; infinities and zeros as finite numbers."""
    f = format_of(a)
    up, down = 3 * f.mantissa, 2 * f.mantissa  # up for most, so that what a division leaves does not underflow
    near, far = 2.0 ** (f.bias - up - f.mantissa // 2 - 4), 2.0 ** (f.bias - down)
    factor = (b < near).select(2.0**up, (b > far).select(2.0**-down, 1.0))
    endless = b.equals(inf)
    a = endless.select(a.equals(inf).select(1.0, 0.0), a * factor)
    return a, (endless | b.equals(0.0)).select(1.0, b * factor)


def arctan2(y: Value, x: Value) -> Value:
    """Return the angle of the point (x, y), between -pi and pi; signed zeros and infinities are points of their own."""
    across, up = abs(x), abs(y)
    swapped = up > across
    a, b = _in_range(swapped.select(across, up), swapped.select(up, across))
    angle = _turned(swapped, *_arctan_of_ratio(a, b), 2.0)
    angle = _turned(x.bits() < 0, *angle, 4.0)
    known = x.equals(x) & y.equals(y)
    return known.select(_plus_quarters(*angle).copysign(y), nan)
