"""The parts that formulas of vecmath share: float formats, e**x and the logarithm in parts, sums and quotients in two parts.

Nothing here knows Numba. Errors are compensated by hand where one rounding more would cost the last bit, so no
instruction may be reassociated.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

from tensormagic.backend.vecmath import tables
from tensormagic.backend.vecmath.ir import Value


@dataclass(frozen=True)
class Format:
    """What a formula has to know of a float format, and its polynomials.

    `lower` and `upper` are where exp is 0 and inf, `flat` is where tanh is 1; `round_to_int` added to a float of
    moderate size leaves its nearest integer in the low bits.
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
        """Return the bits of 1.0."""
        return self.bias << self.mantissa

    def code(self, number: float) -> int:
        """Return the bits of a number."""
        real, integer = ("<d", "<q") if self.mantissa == 52 else ("<f", "<i")
        (code,) = struct.unpack(integer, struct.pack(real, number))
        return int(code)


FORMATS = {
    64: Format(52, 1023, 1.5 * 2.0**52, 709.9, -745.5, 20.0, tables.FLOAT64),
    32: Format(23, 127, 1.5 * 2.0**23, 89.0, -104.5, 10.0, tables.FLOAT32),
}


def format_of(x: Value) -> Format:
    """Return the constants of the float format of x."""
    return FORMATS[x.emitter.bits]


def clamp(x: Value, lower: float, upper: float) -> Value:
    """Return x clipped to the bounds; nan stays."""
    x = (x > upper).select(upper, x)
    return (x < lower).select(lower, x)


def reduce_exp(x: Value) -> tuple[Value, Value, Value]:
    """Find n, near, low with x = n ln 2 + near - low and |near - low| at most ln(2)/2.

    All three are exact but for the last bits of low.
    """
    f = format_of(x)
    shifted = x.fma(f.polynomials.log2_e, f.round_to_int)
    n = shifted - f.round_to_int
    return shifted.bits() - f.code(f.round_to_int), n.fma(-f.polynomials.ln2_high, x), n * f.polynomials.ln2_low


def power_of_two(n: Value) -> Value:
    """Return 2**n for n in the range of normal exponents."""
    f = format_of(n)
    return ((n + f.bias) << f.mantissa).real()


def fast_sum(large: Value | float, small: Value) -> tuple[Value, Value]:
    """Return the rounded sum and its exact error, where `large` has the larger magnitude or is 0."""
    total = small + large
    return total, small - (total - large)


def two_sum(a: Value, b: Value | float) -> tuple[Value, Value]:
    """Return the rounded sum and its exact error, whichever of the two is larger."""
    total = a + b
    back = total - a
    return total, (a - (total - back)) + (b - back)


def curve(near: Value, low: Value, coefficients: tuple[float, ...]) -> Value:
    """Return e**r - 1 with r = near - low, by the polynomial of (e**r - 1 - r) / r**2."""
    r = near - low
    return near + (r * r).fma(r.polynomial(*coefficients), -low)


def power_parts(x: Value) -> tuple[Value, Value]:
    """Return e**x for x at most 0 (nan stays), rounded, and the rounding error."""
    f = format_of(x)
    n, near, low = reduce_exp(clamp(x, f.lower, 0.0))
    high, low = fast_sum(1.0, curve(near, low, f.polynomials.exp))
    return high.scaled(n), low.scaled(n)


def _quotient(high: Value, low: Value | float, divisor_high: Value, divisor_low: Value) -> tuple[Value, Value, Value]:
    inverse = 1.0 / divisor_high
    quotient = high * inverse
    rest = high.minus_product(quotient, divisor_high) + quotient.fma(-divisor_low, low)
    return inverse, quotient, rest


def divide(high: Value, low: Value | float, divisor_high: Value, divisor_low: Value) -> Value:
    """Return (high + low) / (divisor_high + divisor_low), rounded about once."""
    inverse, quotient, rest = _quotient(high, low, divisor_high, divisor_low)
    return rest.fma(inverse, quotient)


def divided(high: Value, low: Value | float, divisor_high: Value, divisor_low: Value) -> tuple[Value, Value]:
    """Return the same in two parts."""
    inverse, quotient, rest = _quotient(high, low, divisor_high, divisor_low)
    return quotient, rest * inverse


def log_parts(x: Value) -> tuple[Value, Value]:
    """Return the biased exponent k, and m between sqrt(1/2) and sqrt(2), of a normal positive x."""
    f = format_of(x)
    root = f.code(0.5**0.5)
    shifted = x.bits() + (f.one - root)
    fraction = (shifted & ((1 << f.mantissa) - 1)) + root
    return shifted.unsigned_shift(f.mantissa), fraction.real()


def fraction_log(f: Value, s: Value, low: Value | float, coefficients: tuple[float, ...]) -> Value:
    """Find the rest with log(1 + f) + low = f - rest, where s = f / (2 + f)."""
    z = s * s
    half_square = f * 0.5 * f
    return half_square - s.fma(z.fma(z.polynomial(*coefficients), half_square), low)


def log_arguments(m: Value) -> tuple[Value, Value]:
    """Return the arguments of `fraction_log`: m - 1, and s."""
    f = m - 1.0
    return f, f / (f + 2.0)


def rough_inverse(x: Value) -> Value:
    """Return 1/x to 5.1 %, for a positive x between the roots of the smallest and the largest float: enough for a correction."""
    f = format_of(x)
    return (f.code(1.0) + f.code(0.9495) - x.bits()).real()


def _half_inverse(s: Value) -> Value:
    """Return 1/m as (1 - s) / (1 + s) with s = (m - 1) / (m + 1), to the few bits that matter in a correction, halved."""
    return s.polynomial(0.5, -1.0, 1.0)


def real_exponent(k: Value, offset: Value | float) -> Value:
    """Return an exponent as a float: the biased one put into the low bits of 2**mantissa, less the offset for both."""
    f = format_of(k)
    return (k | f.code(2.0**f.mantissa)).real() - offset


def finite_log(x: Value) -> tuple[Value, Value]:
    """Find k and m with x = 2**k m, for finite positive x; m is between sqrt(1/2) and sqrt(2)."""
    f = format_of(x)
    up = f.mantissa + 2
    tiny = x < 2.0 ** (1 - f.bias)
    k, m = log_parts(tiny.select(x * 2.0**up, x))
    offset = 2.0**f.mantissa + f.bias
    return real_exponent(k, tiny.select(offset + up, offset)), m


def log_of_sum(x: Value, low: Value | float, doublings: Value | None = None) -> Value:
    """Return log((1 + x + low) 2**doublings) for x above -1 and finite, where `low` is beyond the last bit of x."""
    f = format_of(x)
    u = x + 1.0
    back = u - x
    error = (1.0 - back) + (x - (u - back))
    error = error + low if isinstance(low, Value) else error
    biased, m = log_parts(u)
    # The error belongs to u = 2**k m; beside m it is error / 2**k, here doubled, which keeps the power in range.
    scale = ((2 * f.bias + 1 - biased) << f.mantissa).real()
    k = real_exponent(biased, 2.0**f.mantissa + f.bias)
    k = k if doublings is None else k + doublings
    fraction, s = log_arguments(m)
    tail = (error * scale).fma(_half_inverse(s), k * f.polynomials.ln2_low)
    return k.fma(f.polynomials.ln2_high, fraction - fraction_log(fraction, s, tail, f.polynomials.log))


def log_of_unit_sum(x: Value, low: Value | float) -> Value:
    """Return log(1 + x + low) for x from 0 to 1, where `low` is beyond the last bit of x: (1 + x)/2 where x is above 1/2."""
    f = format_of(x)
    above = x > 0.5
    fraction = above.select((x - 1.0) * 0.5, x)
    s = fraction / (fraction + 2.0)
    tail = above.select(f.polynomials.ln2_low, 0.0)
    if isinstance(low, Value):
        tail = (low * above.select(1.0, 2.0)).fma(_half_inverse(s), tail)
    rest = fraction_log(fraction, s, tail, f.polynomials.log_unit)
    return above.select(f.polynomials.ln2_high, 0.0) + (fraction - rest)
