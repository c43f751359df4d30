"""The exponential, logarithmic and error functions of vecmath: range reduction and polynomial, branch-free.

Each formula maps `Value`s to a `Value`; run once, it emits its instructions for scalars or for lanes, in both float
formats. `__all__` names the functions that kernels may call.
"""

from __future__ import annotations

from math import inf, nan

from tensormagic.backend.vecmath import tables
from tensormagic.backend.vecmath.ir import Value
from tensormagic.backend.vecmath.parts import (
    clamp,
    curve,
    divide,
    fast_sum,
    finite_log,
    format_of,
    fraction_log,
    log_arguments,
    log_of_sum,
    log_of_unit_sum,
    power_of_two,
    power_parts,
    reduce_exp,
)

__all__ = [
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
    "power",
    "sigmoid",
    "softplus",
    "tanh",
]


def exp(x: Value) -> Value:
    """Return e**x."""
    f = format_of(x)
    n, near, low = reduce_exp(clamp(x, f.lower, f.upper))
    power = 1.0 + curve(near, low, f.polynomials.exp)
    return power.scaled(n)


def exp2(x: Value) -> Value:
    """Return 2**x."""
    f = format_of(x)
    x = clamp(x, f.lower * 1.4427, f.upper * 1.4427)
    shifted = x + f.round_to_int
    near, error = (x - (shifted - f.round_to_int)).product(f.polynomials.ln2)
    low = (x - (shifted - f.round_to_int)).fma(-f.polynomials.ln2_error, -error)
    power = 1.0 + curve(near, low, f.polynomials.exp)
    return power.scaled(shifted.bits() - f.code(f.round_to_int))


def expm1(x: Value) -> Value:
    """Return e**x - 1."""
    f = format_of(x)
    n, near, low = reduce_exp(clamp(x, -2.0 * f.flat, f.upper))
    r = near - low
    slope = ((near - r) - low).fma(r, -low)
    high, low = fast_sum(near, (r * r).fma(r.polynomial(*f.polynomials.expm1), slope))
    half = power_of_two(n - 1)  # 2**n itself may overflow before its product with a small factor
    level = half - 0.5
    lost = (half - level) - 0.5
    total, error = fast_sum(level, half * high)
    result = (total + half.fma(low, error + lost)) * 2.0
    return (abs(x) < 2.0 ** -(f.mantissa + 2)).select(x, result)


def tanh(x: Value) -> Value:
    """Return the hyperbolic tangent: x plus a polynomial where x is small, else 1 - 2 / (e**(2|x|) + 1)."""
    f = format_of(x)
    z = x * x
    near = (x * z).fma(z.polynomial(*f.polynomials.tanh_near), x)
    magnitude = abs(x)
    n, reduced, low = reduce_exp(clamp(magnitude * 2.0, 0.0, 2.0 * f.flat))
    power = power_of_two(n)
    far = 1.0 - 2.0 / curve(reduced, low, f.polynomials.exp).fma(power, power + 1.0)
    return (magnitude < f.polynomials.tanh_far).select(near, far).copysign(x)


def sigmoid(x: Value) -> Value:
    """Return 1 / (1 + e**-x), with full relative accuracy where it is small."""
    power, low = power_parts(-abs(x))
    bottom, bottom_error = fast_sum(1.0, power)
    negative = x < 0.0
    return divide(negative.select(power, 1.0), negative.select(low, 0.0), bottom, bottom_error + low)


def _log_domain(x: Value, result: Value, zero: float = 0.0) -> Value:
    """Return the result where x is above `zero` and finite, else what a logarithm is there."""
    result = (x > zero).select(result, x.equals(zero).select(-inf, nan))
    return x.equals(inf).select(inf, result)


def log(x: Value) -> Value:
    """Return the natural logarithm."""
    p = format_of(x).polynomials
    k, m = finite_log(x)
    f, s = log_arguments(m)
    return _log_domain(x, k.fma(p.ln2_high, f - fraction_log(f, s, k * p.ln2_low, p.log)))


def _log_of_base(x: Value, base: tables.Base) -> Value:
    """Log of x as k log(2) + log(m) in another base, all in two parts."""
    k, m = finite_log(x)
    f, s = log_arguments(m)
    rest = fraction_log(f, s, 0.0, format_of(x).polynomials.log)
    high, lost = f.product(base.of_e)
    total, error = fast_sum(k * base.of_2, high)
    small = high.fma(base.of_e_ratio, lost) + error
    half = f * 0.5
    _, square_lost = half.product(f)  # of the square that `rest` holds
    small = square_lost.fma(-base.of_e, small)
    if base.of_2_error:
        small = k.fma(base.of_2_error, small)
    return _log_domain(x, total + rest.fma(-base.of_e, small))  # rest last: it is the largest of what is left


def log2(x: Value) -> Value:
    """Return the logarithm of base 2; exact for powers of 2."""
    return _log_of_base(x, format_of(x).polynomials.base_2)


def log10(x: Value) -> Value:
    """Return the logarithm of base 10."""
    return _log_of_base(x, format_of(x).polynomials.base_10)


def log1p(x: Value) -> Value:
    """Return log(1 + x)."""
    return _log_domain(x, log_of_sum(x, 0.0), -1.0).copysign(x)


def softplus(x: Value) -> Value:
    """Return log(1 + e**x), without overflow."""
    return (x < 0.0).select(0.0, x) + log_of_unit_sum(*power_parts(-abs(x)))


def logaddexp(x: Value, y: Value) -> Value:
    """Return log(e**x + e**y), without overflow; exact where an operand is infinite."""
    distance = x.equals(y).select(0.0, -abs(x - y))
    return (x > y).select(x, y) + log_of_unit_sum(*power_parts(distance))


def _small_erf(x: Value) -> Value:
    return x.fma((x * x).polynomial(*format_of(x).polynomials.erf_near, exact=3), x)


def erf(x: Value) -> Value:
    """Return the error function: x plus x times a polynomial in x*x below 1, 1 - exp(-polynomial) above."""
    f = format_of(x)
    p = f.polynomials
    a = abs(x)
    n, reduced, low = reduce_exp(-clamp(a, 0.0, p.erf_one).polynomial(*p.erf_far, exact=3))
    power = power_of_two(n)
    far = ((1.0 - power) - power * curve(reduced, low, p.exp)).copysign(x)
    return (a < 1.0).select(_small_erf(x), far)


def erfc(x: Value) -> Value:
    """Return 1 - erf(x), with relative accuracy where it is small.

    Beyond 0.4 it is e**(-x*x) / (1 + 2x) times a polynomial in (x - c) / (x + c).
    """
    p = format_of(x).polynomials
    a = clamp(abs(x), 0.0, p.erfc_zero)
    square, error = a.product(a)
    n, near, low = reduce_exp(-square)
    high, low = fast_sum(1.0, curve(near, low + error, p.exp))
    factor = ((a - p.erfc_center) / (a + p.erfc_center)).polynomial(*p.erfc, exact=2)
    twice = a * 2.0
    bottom = twice + 1.0
    back = bottom - twice
    scaled = divide(factor, 0.0, bottom, (1.0 - back) + (twice - (bottom - back)))
    tail = scaled.fma(high, scaled * low).scaled(n)
    return (abs(x) < 0.4).select(1.0 - _small_erf(x), (x < 0.0).select(2.0 - tail, tail))


def _precise_log(x: Value) -> tuple[Value, Value]:
    """Return the logarithm of a finite positive x in two parts: about twice the digits, less ten bits."""
    p = format_of(x).polynomials
    k, m = finite_log(x)
    f = m - 1.0
    bottom, bottom_low = fast_sum(2.0, f)
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
    high, low = fast_sum(s * 2.0, third)
    high, error = fast_sum(k * p.ln2_high, high)
    return fast_sum(high, k.fma(p.ln2_low, error) + (low + rest))


def _power_sign(x: Value, y: Value) -> tuple[Value, Value]:
    """Return where x**y has no real value, and the bits of its sign: that of x where y is an odd integer."""
    half = y * 0.5
    whole = y.equals(x.emitter.call("floor", y))
    odd = whole & ~half.equals(x.emitter.call("floor", half))
    sign = x.bits() & -(1 << (x.emitter.bits - 1))
    return (x < 0.0) & (x > -inf) & ~whole & y.equals(y), odd.select(sign, 0)


def power(x: Value, y: Value) -> Value:
    """Return x**y, with the special cases of C and NumPy."""
    f = format_of(x)
    magnitude = abs(x)
    high, low = _precise_log(magnitude)
    high = (magnitude < inf).select(magnitude.equals(0.0).select(-inf, high), magnitude)
    product, error = high.product(y)
    usual = abs(product) < f.upper * 1.1
    tail = usual.select(low.fma(y, error), 0.0)
    product = (magnitude.equals(1.0) & y.equals(y)).select(0.0, product)
    n, near, below = reduce_exp(clamp(product, f.lower, f.upper))
    result = (1.0 + curve(near, below - tail, f.polynomials.exp)).scaled(n)
    unreal, sign = _power_sign(x, y)
    result = unreal.select(nan, (result.bits() ^ sign).real())
    return (x.equals(1.0) | y.equals(0.0)).select(1.0, result)
