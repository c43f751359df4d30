"""The formulas of vecmath: range reduction and polynomial, branch-free, for both float formats.

Each formula maps `Value`s to a `Value`; run once, it emits its instructions for a scalar or for lanes. Nothing here knows Numba.
Errors are compensated by hand where one rounding more would cost the last bit, so no instruction may be reassociated.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from math import inf, nan

from tensormagic.backend import vecmath_tables as tables
from tensormagic.backend.vecmath_ir import Value

__all__ = ["FORMATS", "Format", "erf", "exp", "expm1", "log", "log1p", "sigmoid", "tanh"]


@dataclass(frozen=True)
class Format:
    """What a formula has to know of a float format, and its polynomials.

    `lower` and `upper` are where exp is 0 and inf; `round_to_int` added to a float of moderate size leaves its nearest
    integer in the low bits.
    """

    mantissa: int
    bias: int
    round_to_int: float
    upper: float
    lower: float
    flat: float
    polynomials: tables.Polynomials

    @property
    def one(self) -> int:
        """The bits of 1.0."""
        return self.bias << self.mantissa

    def code(self, number: float) -> int:
        """The bits of a number."""
        real, integer = ("<d", "<q") if self.mantissa == 52 else ("<f", "<i")
        (code,) = struct.unpack(integer, struct.pack(real, number))
        return int(code)


FORMATS = {
    64: Format(52, 1023, 1.5 * 2.0**52, 709.9, -745.5, 20.0, tables.FLOAT64),
    32: Format(23, 127, 1.5 * 2.0**23, 89.0, -104.5, 10.0, tables.FLOAT32),
}


def _format(x: Value) -> Format:
    return FORMATS[x.emitter.bits]


def _clamp(x: Value, lower: float, upper: float) -> Value:
    """Between the bounds; nan stays."""
    x = (x > upper).select(upper, x)
    return (x < lower).select(lower, x)


def _reduce(x: Value) -> tuple[Value, Value, Value]:
    """n, near, low with n ln 2 + near - low = x, all three exact but for low's last bits; near - low is at most ln(2)/2."""
    f = _format(x)
    shifted = x.fma(f.polynomials.log2_e, f.round_to_int)
    n = shifted - f.round_to_int
    return shifted.bits() - f.code(f.round_to_int), n.fma(-f.polynomials.ln2_high, x), n * f.polynomials.ln2_low


def _power_of_two(n: Value) -> Value:
    """2**n for n in the range of normal exponents."""
    f = _format(n)
    return ((n + f.bias) << f.mantissa).real()


def _scale(n: Value) -> tuple[Value, Value]:
    """Two factors whose product is 2**n, for n down to the subnormal and up to the infinite."""
    f = _format(n)
    twice = n + 2 * f.bias
    first = twice.unsigned_shift(1)
    return (first << f.mantissa).real(), ((twice - first) << f.mantissa).real()


def _fast_sum(large: Value | float, small: Value) -> tuple[Value, Value]:
    """The rounded sum and its exact error, where `large` has the larger magnitude or is 0."""
    total = small + large
    return total, small - (total - large)


def _curve(near: Value, low: Value, coefficients: tuple[float, ...]) -> Value:
    """e**r - 1 with r = near - low, by the polynomial of (e**r - 1 - r) / r**2."""
    r = near - low
    return near + (r * r).fma(r.polynomial(*coefficients), -low)


def exp(x: Value) -> Value:
    """e**x."""
    f = _format(x)
    n, near, low = _reduce(_clamp(x, f.lower, f.upper))
    power = 1.0 + _curve(near, low, f.polynomials.exp)
    first, second = _scale(n)
    return power * first * second


def expm1(x: Value) -> Value:
    """e**x - 1."""
    f = _format(x)
    n, near, low = _reduce(_clamp(x, -2.0 * f.flat, f.upper))
    r = near - low
    lost = (near - r) - low
    high, low = _fast_sum(near, (r * r).fma(r.polynomial(*f.polynomials.expm1), lost.fma(r, -low)))
    half = _power_of_two(n - 1)                 # 2**n itself may overflow before its product with a small factor
    total, error = _fast_sum(half - 0.5, half * high)
    result = (total + half.fma(low, error)) * 2.0
    return (abs(x) < 2.0 ** -(f.mantissa + 2)).select(x, result)


def _divide(high: Value, low: Value, divisor_high: Value, divisor_low: Value) -> Value:
    """(high + low) / (divisor_high + divisor_low), rounded about once."""
    inverse = 1.0 / divisor_high
    quotient = high * inverse
    rest = high.minus_product(quotient, divisor_high) + quotient.fma(-divisor_low, low)
    return rest.fma(inverse, quotient)


def tanh(x: Value) -> Value:
    """The hyperbolic tangent: x plus a polynomial where x is small, else 1 - 2 / (e**(2|x|) + 1)."""
    f = _format(x)
    z = x * x
    near = (x * z).fma(z.polynomial(*f.polynomials.tanh_near), x)
    magnitude = abs(x)
    n, reduced, low = _reduce(_clamp(magnitude * 2.0, 0.0, 2.0 * f.flat))
    power = _power_of_two(n)
    far = 1.0 - 2.0 / _curve(reduced, low, f.polynomials.exp).fma(power, power + 1.0)
    return (magnitude < f.polynomials.tanh_far).select(near, far).copysign(x)


def sigmoid(x: Value) -> Value:
    """1 / (1 + e**-x), with full relative accuracy where it is small."""
    f = _format(x)
    n, near, low = _reduce(_clamp(-abs(x), f.lower, 0.0))
    high, low = _fast_sum(1.0, _curve(near, low, f.polynomials.exp))
    first, second = _scale(n)
    power, low = high * first * second, low * first * second
    bottom, bottom_error = _fast_sum(1.0, power)
    negative = x < 0.0
    return _divide(negative.select(power, 1.0), negative.select(low, 0.0), bottom, bottom_error + low)


def _log_parts(x: Value) -> tuple[Value, Value]:
    """The biased exponent k, and m between sqrt(1/2) and sqrt(2), of a normal positive x."""
    f = _format(x)
    root = f.code(0.5**0.5)
    shifted = x.bits() + (f.one - root)
    fraction = (shifted & ((1 << f.mantissa) - 1)) + root
    return shifted.unsigned_shift(f.mantissa), fraction.real()


def _log_sum(k: Value, m: Value, tail: Value | None) -> Value:
    """k ln 2 + log(m) + tail / m, where `tail` is tiny and may be left out; the tail comes times 2."""
    p = _format(m).polynomials
    f = m - 1.0
    s = f / (f + 2.0)
    z = s * s
    half_square = f * 0.5 * f
    low = k * p.ln2_low
    if tail is not None:
        low = tail.fma(s.polynomial(0.5, -1.0, 1.0, -1.0), low)
    rest = half_square - s.fma(z.fma(z.polynomial(*p.log), half_square), low)
    return k.fma(p.ln2_high, f - rest)


def _exponent(k: Value, offset: Value | float) -> Value:
    """A biased exponent as a float, less the offset that was prepared by `_offset`."""
    f = _format(k)
    return (k | f.code(2.0**f.mantissa)).real() - offset


def log(x: Value) -> Value:
    """The natural logarithm."""
    f = _format(x)
    up = f.mantissa + 2
    tiny = x < 2.0 ** (1 - f.bias)
    k, m = _log_parts(tiny.select(x * 2.0**up, x))
    offset = 2.0**f.mantissa + f.bias
    result = _log_sum(_exponent(k, tiny.select(offset + up, offset)), m, None)
    result = (x > 0.0).select(result, x.equals(0.0).select(-inf, nan))
    return x.equals(inf).select(inf, result)


def log1p(x: Value) -> Value:
    """log(1 + x)."""
    f = _format(x)
    u = x + 1.0
    back = u - x
    error = (1.0 - back) + (x - (u - back))
    k, m = _log_parts(u)
    scale = ((2 * f.bias + 1 - k) << f.mantissa).real()
    result = _log_sum(_exponent(k, 2.0**f.mantissa + f.bias), m, error * scale)
    result = (x > -1.0).select(result, x.equals(-1.0).select(-inf, nan))
    result = (abs(x) < 2.0 ** -(f.mantissa + 2)).select(x, result)
    return x.equals(inf).select(inf, result)


def erf(x: Value) -> Value:
    """The error function: x plus x times a polynomial in x*x below 1, 1 - exp(-polynomial) above."""
    f = _format(x)
    p = f.polynomials
    a = abs(x)
    near = x.fma((x * x).polynomial(*p.erf_near, exact=2), x)
    n, reduced, low = _reduce(-_clamp(a, 0.0, p.erf_one).polynomial(*p.erf_far, exact=3))
    power = _power_of_two(n)
    far = ((1.0 - power) - power * _curve(reduced, low, p.exp)).copysign(x)
    return (a < 1.0).select(near, far)
