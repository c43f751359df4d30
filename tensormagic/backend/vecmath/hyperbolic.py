"""The hyperbolic functions of vecmath and their inverses, with the digits of the larger terms kept in two parts."""

from __future__ import annotations

from math import inf, nan

from tensormagic.backend.vecmath.ir import Value
from tensormagic.backend.vecmath.parts import (
    clamp,
    curve,
    divided,
    fast_sum,
    format_of,
    log_of_sum,
    power_of_two,
    reduce_exp,
    two_sum,
)

__all__ = ["arccosh", "arcsinh", "arctanh", "cosh", "sinh"]

_LARGE = 2.0**60  # where x*x overflows in no format, and adding 1 or -1 to it changes nothing
_NEGLIGIBLE = 60  # e**-x beside e**x, for an x of so many doublings


def _halves(x: Value) -> tuple[Value, Value, Value, Value]:
    """Find a, low and b with e**x / 2 = (a + low) 2**k and e**-x / 2 = b 2**k for x at least 0; and k."""
    f = format_of(x)
    n, near, low = reduce_exp(clamp(x, 0.0, f.upper + 1.0))
    high, low = fast_sum(1.0, curve(near, low, f.polynomials.exp))
    root = power_of_two(-(n > _NEGLIGIBLE).select(_NEGLIGIBLE, n))
    return high, low, root * root / high, n - 1


def cosh(x: Value) -> Value:
    """Return (e**x + e**-x) / 2."""
    high, low, other, n = _halves(abs(x))
    total, error = fast_sum(high, other)
    return (total + (error + low)).scaled(n)


def sinh(x: Value) -> Value:
    """Return (e**x - e**-x) / 2; below 1, x plus a polynomial."""
    high, low, other, n = _halves(abs(x))
    total, error = fast_sum(high, -other)
    far = (total + (error + low)).scaled(n)
    z = x * x
    near = (x * z).fma(z.polynomial(*format_of(x).polynomials.sinh), x)
    return (abs(x) < 1.0).select(near, far).copysign(x)


def _straight(x: Value) -> float:
    """Return where the inverse functions of slope 1 at 0 are x but for a part of a last bit."""
    return 2.0 ** -(format_of(x).mantissa // 2 + 2)


def _log_of_twice(x: Value, small: Value, low: Value) -> Value:
    """Return log(1 + small + low), or log(2x) where x is large."""
    large = x > _LARGE
    return log_of_sum(large.select(x, small), large.select(0.0, low), large.select(1.0, 0.0))


def arcsinh(x: Value) -> Value:
    """Return log(x + sqrt(x*x + 1)), odd: as log(1 + x + x*x / (1 + sqrt(x*x + 1)))."""
    a = abs(x)
    root, rest = _root(*_square_plus_one(a))
    bottom, bottom_low = two_sum(root, 1.0)
    quotient, left = divided(*a.product(a), bottom, bottom_low + rest)
    total, error = two_sum(a, quotient)
    result = _log_of_twice(a, total, error + left)
    return ((a < inf) & (a > _straight(x))).select(result, a).copysign(x)


def _square_plus_one(a: Value) -> tuple[Value, Value]:
    square, low = a.product(a)
    total, error = two_sum(square, 1.0)
    return total, error + low


def _root(high: Value, low: Value) -> tuple[Value, Value]:
    """Return the square root of high + low in two parts; of 0, 0."""
    root = high.emitter.call("sqrt", high)
    rest = (high.minus_product(root, root) + low) / (root + root)
    return root, root.equals(0.0).select(0.0, rest)


def arccosh(x: Value) -> Value:
    """Return log(x + sqrt(x*x - 1)), as log(1 + t + sqrt(t*t + 2t)) with t = x - 1."""
    t = x - 1.0
    square, low = t.product(t)
    total, error = two_sum(square, t * 2.0)
    root, rest = _root(total, error + low)
    total, error = two_sum(root, t)
    result = _log_of_twice(x, total, error + rest)
    return (x < inf).select((x >= 1.0).select(result, nan), x)


def arctanh(x: Value) -> Value:
    """Return log((1 + x) / (1 - x)) / 2, as log(1 + 2x / (1 - x)) / 2."""
    a = abs(x)
    bottom = 1.0 - a
    low = (1.0 - bottom) - a
    quotient, rest = divided(a * 2.0, 0.0, bottom, low)
    result = log_of_sum(quotient, rest) * 0.5
    result = (a > _straight(x)).select(result, a)
    return (a < 1.0).select(result, a.equals(1.0).select(inf, nan)).copysign(x)
