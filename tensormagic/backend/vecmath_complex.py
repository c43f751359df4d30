"""Functions of complex numbers for kernels, as NumPy computes them: quotients without overflow on the way, ``exp`` of infinities.

These are jitted functions and no intrinsics: they branch, so that no vector code comes of them in any case.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from numba import extending

from tensormagic.backend.vecmath import FUNCTIONS as _FUNCTIONS
from tensormagic.backend.vecmath import machine
from tensormagic.backend.vecmath_ir import Emitter, Value

__all__ = ["FUNCTIONS"]

_intrinsic: Any = extending.intrinsic
_jit: Any = numba.njit(error_model="numpy")
_exp, _cos, _sin = (_FUNCTIONS[name] for name in ("exp", "cos", "sin"))
_SCALED = 700.0  # beyond this exp may overflow where its product with a cosine does not


@_intrinsic
def _fused(_typing: Any, a: Any, b: Any, c: Any) -> Any:
    """``a * b + c``, rounded once where the machine can do that."""

    def generate(context: Any, builder: Any, _signature: Any, arguments: tuple[Any, ...]) -> Any:
        emitter = Emitter(builder, a.bitwidth, 0, *machine(context))
        left, right, term = (Value(emitter, argument) for argument in arguments)
        return left.fma(right, term).raw

    return a(a, b, c), generate


@_jit
def _multiply(x: Any, y: Any) -> Any:
    """As NumPy's vector loops do; its loops over numbers round each product."""
    return complex(_fused(x.real, y.real, -(x.imag * y.imag)), _fused(x.real, y.imag, x.imag * y.real))


@_jit
def _divide(x: Any, y: Any) -> Any:
    a, b, c, d = x.real, x.imag, y.real, y.imag
    if abs(c) >= abs(d):
        if c == 0 and d == 0:
            return complex(a / abs(c), b / abs(c))
        ratio = d / c
        scale = 1.0 / (c + d * ratio)
        return complex((a + b * ratio) * scale, (b - a * ratio) * scale)
    ratio = c / d
    scale = 1.0 / (d + c * ratio)
    return complex((a * ratio + b) * scale, (b * ratio - a) * scale)


@_jit
def _reciprocal(x: Any) -> Any:
    a, b = x.real, x.imag
    if abs(b) <= abs(a):
        ratio = b / a
        length = a + b * ratio
        return complex(1.0 / length, -ratio / length)
    ratio = a / b
    length = a * ratio + b
    return complex(ratio / length, -1.0 / length)


@_jit
def _of_exp(x: Any) -> Any:
    a, b = x.real, x.imag
    if b == 0:
        return complex(_exp(a), b)
    if abs(a) < _SCALED and abs(b) < np.inf:
        scale = _exp(a)
        return complex(scale * _cos(b), scale * _sin(b))
    if not abs(b) < np.inf:
        if a == np.inf:
            return complex(np.inf, np.nan)
        return complex(0.0, 0.0) if a == -np.inf else complex(np.nan, np.nan)
    half = _exp(a * 0.5)
    return complex((half * _cos(b)) * half, (half * _sin(b)) * half)


FUNCTIONS: dict[str, Any] = {
    "complex_multiply": _multiply,
    "complex_divide": _divide,
    "complex_reciprocal": _reciprocal,
    "complex_exp": _of_exp,
}
"""The functions by the names that kernels call them by."""
