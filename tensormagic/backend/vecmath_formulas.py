"""The formulas of vecmath: range reduction and polynomial, branch-free, for both float formats.

Each formula maps `Value`s to a `Value`; run once, it emits its instructions for scalars or for lanes. Nothing here
knows Numba. Errors are compensated by hand where one rounding more would cost the last bit, so no instruction may be
reassociated.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from math import inf, nan

from tensormagic.backend import vecmath_tables as tables
from tensormagic.backend.vecmath_ir import Value

__all__ = [
    "FORMATS",
    "Format",
    "add_reassoc",
    "erf",
    "erfc",
    "exp",
    "exp2",
    "expm1",
    "log",
    "log1p",
    "log2",
    "log10",
    "logaddexp",
    "max_propagate",
    "min_propagate",
    "power",
    "sigmoid",
    "softplus",
    "tanh",
]


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
    """Find n, near, low with x = n ln 2 + near - low and |near - low| at most ln(2)/2.

    All three are exact but for the last bits of low.
    """
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


def _power_parts(x: Value) -> tuple[Value, Value]:
    """e**x for x at most 0 (nan stays), rounded and what the rounding lost."""
    f = _format(x)
    n, near, low = _reduce(_clamp(x, f.lower, 0.0))
    high, low = _fast_sum(1.0, _curve(near, low, f.polynomials.exp))
    first, second = _scale(n)
    return high * first * second, low * first * second


def exp(x: Value) -> Value:
    """e**x."""
    f = _format(x)
    n, near, low = _reduce(_clamp(x, f.lower, f.upper))
    power = 1.0 + _curve(near, low, f.polynomials.exp)
    first, second = _scale(n)
    return power * first * second


def exp2(x: Value) -> Value:
    """2**x."""
    f = _format(x)
    x = _clamp(x, f.lower * 1.4427, f.upper * 1.4427)
    shifted = x + f.round_to_int
    near, error = (x - (shifted - f.round_to_int)).product(f.polynomials.ln2)
    low = (x - (shifted - f.round_to_int)).fma(-f.polynomials.ln2_error, -error)
    power = 1.0 + _curve(near, low, f.polynomials.exp)
    first, second = _scale(shifted.bits() - f.code(f.round_to_int))
    return power * first * second


def expm1(x: Value) -> Value:
    """e**x - 1."""
    f = _format(x)
    n, near, low = _reduce(_clamp(x, -2.0 * f.flat, f.upper))
    r = near - low
    slope = ((near - r) - low).fma(r, -low)
    high, low = _fast_sum(near, (r * r).fma(r.polynomial(*f.polynomials.expm1), slope))
    half = _power_of_two(n - 1)  # 2**n itself may overflow before its product with a small factor
    level = half - 0.5
    lost = (half - level) - 0.5
    total, error = _fast_sum(level, half * high)
    result = (total + half.fma(low, error + lost)) * 2.0
    return (abs(x) < 2.0 ** -(f.mantissa + 2)).select(x, result)


def _divide(high: Value, low: Value | float, divisor_high: Value, divisor_low: Value) -> Value:
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
    power, low = _power_parts(-abs(x))
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


def _fraction_log(m: Value, low: Value | float) -> tuple[Value, Value]:
    """Find f and rest with log(m) + low = f - rest, where f = m - 1."""
    f = m - 1.0
    s = f / (f + 2.0)
    z = s * s
    half_square = f * 0.5 * f
    return f, half_square - s.fma(z.fma(z.polynomial(*_format(m).polynomials.log), half_square), low)


def _exponent(k: Value, offset: Value | float) -> Value:
    """An exponent as a float: the biased one put into the low bits of 2**mantissa, less the offset for both."""
    f = _format(k)
    return (k | f.code(2.0**f.mantissa)).real() - offset


def _finite_log(x: Value) -> tuple[Value, Value]:
    """Find k and m with x = 2**k m, for finite positive x; m is between sqrt(1/2) and sqrt(2)."""
    f = _format(x)
    up = f.mantissa + 2
    tiny = x < 2.0 ** (1 - f.bias)
    k, m = _log_parts(tiny.select(x * 2.0**up, x))
    offset = 2.0**f.mantissa + f.bias
    return _exponent(k, tiny.select(offset + up, offset)), m


def _log_domain(x: Value, result: Value, zero: float = 0.0) -> Value:
    """The result where x is above `zero` and finite, else what a logarithm is there."""
    result = (x > zero).select(result, x.equals(zero).select(-inf, nan))
    return x.equals(inf).select(inf, result)


def log(x: Value) -> Value:
    """The natural logarithm."""
    p = _format(x).polynomials
    k, m = _finite_log(x)
    f, rest = _fraction_log(m, k * p.ln2_low)
    return _log_domain(x, k.fma(p.ln2_high, f - rest))


def _log_of_base(x: Value, base: tables.Base) -> Value:
    """Log of x as k log(2) + log(m) in another base, all in two parts."""
    k, m = _finite_log(x)
    f, rest = _fraction_log(m, 0.0)
    high, low = _fast_sum(f, -rest)
    high, error = high.product(base.of_e)
    low = low.fma(base.of_e, high.fma(base.of_e_ratio, error))
    total, error = _fast_sum(k * base.of_2, high)
    return _log_domain(x, total + (k.fma(base.of_2_error, error) + low))


def log2(x: Value) -> Value:
    """The logarithm of base 2; exact for powers of 2."""
    return _log_of_base(x, _format(x).polynomials.base_2)


def log10(x: Value) -> Value:
    """The logarithm of base 10."""
    return _log_of_base(x, _format(x).polynomials.base_10)


def _log_of_sum(x: Value, low: Value | float) -> Value:
    """log(1 + x + low) for x above -1 and finite, where `low` is beyond the last bit of x."""
    f = _format(x)
    u = x + 1.0
    back = u - x
    error = (1.0 - back) + (x - (u - back)) + low
    biased, m = _log_parts(u)
    # The error belongs to u = 2**k m; beside m it is error / 2**k, here doubled, which keeps the power in range.
    scale = ((2 * f.bias + 1 - biased) << f.mantissa).real()
    k = _exponent(biased, 2.0**f.mantissa + f.bias)
    # 1/m = (1 - s) / (1 + s) with s = (m - 1) / (m + 1), to the few bits that matter here, halved.
    s = (m - 1.0) / (m + 1.0)
    tail = (error * scale).fma(s.polynomial(0.5, -1.0, 1.0, -1.0), k * f.polynomials.ln2_low)
    fraction, rest = _fraction_log(m, tail)
    return k.fma(f.polynomials.ln2_high, fraction - rest)


def log1p(x: Value) -> Value:
    """log(1 + x)."""
    return _log_domain(x, _log_of_sum(x, 0.0), -1.0).copysign(x)


def softplus(x: Value) -> Value:
    """log(1 + e**x), without overflow."""
    return (x < 0.0).select(0.0, x) + _log_of_sum(*_power_parts(-abs(x)))


def logaddexp(x: Value, y: Value) -> Value:
    """log(e**x + e**y), without overflow; exact where an operand is infinite."""
    distance = x.equals(y).select(0.0, -abs(x - y))
    return (x > y).select(x, y) + _log_of_sum(*_power_parts(distance))


def _small_erf(x: Value) -> Value:
    return x.fma((x * x).polynomial(*_format(x).polynomials.erf_near, exact=3), x)


def erf(x: Value) -> Value:
    """The error function: x plus x times a polynomial in x*x below 1, 1 - exp(-polynomial) above."""
    f = _format(x)
    p = f.polynomials
    a = abs(x)
    n, reduced, low = _reduce(-_clamp(a, 0.0, p.erf_one).polynomial(*p.erf_far, exact=3))
    power = _power_of_two(n)
    far = ((1.0 - power) - power * _curve(reduced, low, p.exp)).copysign(x)
    return (a < 1.0).select(_small_erf(x), far)


def erfc(x: Value) -> Value:
    """1 - erf(x), with relative accuracy where it is small.

    Beyond 0.4 it is e**(-x*x) / (1 + 2x) times a polynomial in (x - c) / (x + c).
    """
    p = _format(x).polynomials
    a = _clamp(abs(x), 0.0, p.erfc_zero)
    square, error = a.product(a)
    n, near, low = _reduce(-square)
    high, low = _fast_sum(1.0, _curve(near, low + error, p.exp))
    factor = ((a - p.erfc_center) / (a + p.erfc_center)).polynomial(*p.erfc, exact=2)
    twice = a * 2.0
    bottom = twice + 1.0
    back = bottom - twice
    scaled = _divide(factor, 0.0, bottom, (1.0 - back) + (twice - (bottom - back)))
    first, second = _scale(n)
    tail = scaled.fma(high, scaled * low) * first * second
    return (abs(x) < 0.4).select(1.0 - _small_erf(x), (x < 0.0).select(2.0 - tail, tail))


def _precise_log(x: Value) -> tuple[Value, Value]:
    """The logarithm of a finite positive x in two parts: about twice the digits, less ten bits."""
    p = _format(x).polynomials
    k, m = _finite_log(x)
    f = m - 1.0
    bottom, bottom_low = _fast_sum(2.0, f)
    inverse = 1.0 / bottom
    s = f * inverse
    s_low = s.fma(-bottom_low, f.minus_product(s, bottom)) * inverse
    # log(m) = 2s + 2/3 s**3 + s**5 times a polynomial in s*s, where s = f / (2 + f)
    z, z_low = s.product(s)
    z_low = s_low.fma(s * 2.0, z_low)
    cube, cube_low = z.product(s)
    cube_low = z_low.fma(s, z.fma(s_low, cube_low))
    third, third_low = cube.product(p.two_thirds)
    third_low = cube_low.fma(p.two_thirds, cube.fma(p.two_thirds_error, third_low))
    rest = (cube * z).fma(z.polynomial(*p.log_long), s_low * 2.0 + third_low)
    high, low = _fast_sum(s * 2.0, third)
    high, error = _fast_sum(k * p.ln2_high, high)
    return _fast_sum(high, k.fma(p.ln2_low, error) + (low + rest))


def _power_sign(x: Value, y: Value) -> tuple[Value, Value]:
    """Where x**y has no real value, and the bits of its sign: that of x where y is an odd integer."""
    half = y * 0.5
    whole = y.equals(x.emitter.call("floor", y))
    odd = whole & ~half.equals(x.emitter.call("floor", half))
    sign = x.bits() & -(1 << (x.emitter.bits - 1))
    return (x < 0.0) & (x > -inf) & ~whole & y.equals(y), odd.select(sign, 0)


def power(x: Value, y: Value) -> Value:
    """x**y, with the special cases of C and NumPy."""
    f = _format(x)
    magnitude = abs(x)
    high, low = _precise_log(magnitude)
    high = (magnitude < inf).select(magnitude.equals(0.0).select(-inf, high), magnitude)
    product, error = high.product(y)
    usual = abs(product) < f.upper * 1.1
    tail = usual.select(low.fma(y, error), 0.0)
    product = (magnitude.equals(1.0) & y.equals(y)).select(0.0, product)
    n, near, below = _reduce(_clamp(product, f.lower, f.upper))
    first, second = _scale(n)
    result = (1.0 + _curve(near, below - tail, f.polynomials.exp)) * first * second
    unreal, sign = _power_sign(x, y)
    result = unreal.select(nan, (result.bits() ^ sign).real())
    return (x.equals(1.0) | y.equals(0.0)).select(1.0, result)


def add_reassoc(a: Value, b: Value) -> Value:
    """Sum a + b, which LLVM may sum in another order: for the accumulator of a fold only."""
    return a.add_reassoc(b)


def max_propagate(a: Value, b: Value) -> Value:
    """The larger; nan where either is nan; 0.0 is above -0.0, so the order of a fold does not show."""
    return a.emitter.call("maximum", a, b)


def min_propagate(a: Value, b: Value) -> Value:
    """The smaller; nan where either is nan; -0.0 is below 0.0, so the order of a fold does not show."""
    return a.emitter.call("minimum", a, b)
