"""Element-wise functions of the standard: each the ufunc of NumPy that means the same."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tensormagic.numpy.calling import call, ufunc


def _unary(name: str, function: Any) -> Callable[[Any], Any]:
    def apply(x: Any, /) -> Any:
        return ufunc(function, x)

    return _named(apply, name, function)


def _binary(name: str, function: Any) -> Callable[[Any, Any], Any]:
    def apply(x1: Any, x2: Any, /) -> Any:
        return ufunc(function, x1, x2)

    return _named(apply, name, function)


def _named(apply: Any, name: str, function: Any) -> Any:
    apply.__name__ = apply.__qualname__ = name
    apply.__doc__ = f"``np.{function.__name__}``, element by element."
    return apply


abs = _unary("abs", np.absolute)
acos = _unary("acos", np.arccos)
acosh = _unary("acosh", np.arccosh)
asin = _unary("asin", np.arcsin)
asinh = _unary("asinh", np.arcsinh)
atan = _unary("atan", np.arctan)
atanh = _unary("atanh", np.arctanh)
bitwise_invert = _unary("bitwise_invert", np.invert)
ceil = _unary("ceil", np.ceil)
conj = _unary("conj", np.conjugate)
cos = _unary("cos", np.cos)
cosh = _unary("cosh", np.cosh)
exp = _unary("exp", np.exp)
expm1 = _unary("expm1", np.expm1)
floor = _unary("floor", np.floor)
isfinite = _unary("isfinite", np.isfinite)
isinf = _unary("isinf", np.isinf)
isnan = _unary("isnan", np.isnan)
log = _unary("log", np.log)
log1p = _unary("log1p", np.log1p)
log2 = _unary("log2", np.log2)
log10 = _unary("log10", np.log10)
logical_not = _unary("logical_not", np.logical_not)
negative = _unary("negative", np.negative)
positive = _unary("positive", np.positive)
reciprocal = _unary("reciprocal", np.reciprocal)
sign = _unary("sign", np.sign)
signbit = _unary("signbit", np.signbit)
sin = _unary("sin", np.sin)
sinh = _unary("sinh", np.sinh)
sqrt = _unary("sqrt", np.sqrt)
square = _unary("square", np.square)
tan = _unary("tan", np.tan)
tanh = _unary("tanh", np.tanh)
trunc = _unary("trunc", np.trunc)

add = _binary("add", np.add)
atan2 = _binary("atan2", np.arctan2)
bitwise_and = _binary("bitwise_and", np.bitwise_and)
bitwise_left_shift = _binary("bitwise_left_shift", np.left_shift)
bitwise_or = _binary("bitwise_or", np.bitwise_or)
bitwise_right_shift = _binary("bitwise_right_shift", np.right_shift)
bitwise_xor = _binary("bitwise_xor", np.bitwise_xor)
copysign = _binary("copysign", np.copysign)
divide = _binary("divide", np.divide)
equal = _binary("equal", np.equal)
floor_divide = _binary("floor_divide", np.floor_divide)
greater = _binary("greater", np.greater)
greater_equal = _binary("greater_equal", np.greater_equal)
hypot = _binary("hypot", np.hypot)
less = _binary("less", np.less)
less_equal = _binary("less_equal", np.less_equal)
logaddexp = _binary("logaddexp", np.logaddexp)
logical_and = _binary("logical_and", np.logical_and)
logical_or = _binary("logical_or", np.logical_or)
logical_xor = _binary("logical_xor", np.logical_xor)
maximum = _binary("maximum", np.maximum)
minimum = _binary("minimum", np.minimum)
multiply = _binary("multiply", np.multiply)
nextafter = _binary("nextafter", np.nextafter)
not_equal = _binary("not_equal", np.not_equal)
pow = _binary("pow", np.power)
remainder = _binary("remainder", np.remainder)
subtract = _binary("subtract", np.subtract)


def clip(x: Any, /, min: Any = None, max: Any = None) -> Any:
    """Return ``x`` held between two bounds, each a number, an array or None."""
    return call(np.clip, x, min, max)


def imag(x: Any, /) -> Any:
    """Return the imaginary part."""
    return call(np.imag, x)


def real(x: Any, /) -> Any:
    """Return the real part."""
    return call(np.real, x)


def round(x: Any, /) -> Any:
    """Return the nearest integer, the even one of two."""
    return call(np.round, x)
