"""The cube root and the length of a pair, each corrected by what its rounding lost."""

from __future__ import annotations

from math import inf

from tensormagic.backend.vecmath.ir import Value
from tensormagic.backend.vecmath.parts import finite_log, format_of, rough_inverse

__all__ = ["cbrt", "hypot"]


def cbrt(x: Value) -> Value:
    """Return the cube root, from a polynomial of 1 over the root, which a series makes exact but for a few last bits."""
    f = format_of(x)
    a = abs(x)
    k, m = finite_log(a)
    third = (k * (1.0 / 3.0) + f.round_to_int) - f.round_to_int
    rest = third.fma(-3.0, k)  # of three exponents
    more, less = rest > 0.0, rest < 0.0
    root = 2.0 ** (1.0 / 3.0)
    w = m.polynomial(*f.polynomials.cbrt) * more.select(1.0 / root, less.select(root, 1.0))
    m = m * more.select(2.0, less.select(0.5, 1.0))
    if f.mantissa == 52:
        e = 1.0 - m * w * w * w
        w = w.fma(e * e.fma(2 / 9, 1 / 3), w)
    y = m * w * w
    square, lost = y.product(y)
    cube, error = square.product(y)
    y = y - ((cube - m) + lost.fma(y, error)) * (w * w) * (1.0 / 3.0)
    scale = ((third + (2.0**f.mantissa + f.bias)).bits() << f.mantissa).real()
    usual = (a > 0.0) & (a < inf)
    return usual.select(y * scale, x).copysign(x)


def hypot(x: Value, y: Value) -> Value:
    """Return sqrt(x*x + y*y), without overflow or underflow on the way."""
    f = format_of(x)
    x, y = abs(x), abs(y)
    larger = x > y
    a, b = larger.select(x, y), larger.select(y, x)
    # The first two bits of the larger one's exponent choose a power of two beside which squares stay in range.
    apart, quarters = (2.0**700, 61) if f.mantissa == 52 else (2.0**90, 29)
    quarter = a.bits() & (3 << quarters)
    factor, back = (f.code(apart) - quarter).real(), (quarter + f.code(1 / apart)).real()
    a, b = a * factor, b * factor
    square, lost = a.product(a)
    other, error = b.product(b)
    total = square + other
    rest = (other - (total - square)) + lost + error
    root = x.emitter.call("sqrt", total)
    result = (total.minus_product(root, root) + rest).fma(rough_inverse(root + root), root) * back
    return (x.equals(inf) | y.equals(inf)).select(inf, result)
