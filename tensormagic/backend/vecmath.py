"""Scalar functions and reductions for kernels compiled by Numba, which LLVM turns into vector code in an innermost loop.

Call them inside nopython code: `exp(x)` with x float64 or float32. Nothing is compiled before a kernel uses it. It knows Numba's
extension interface; the formulas themselves are in `vecmath_formulas`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba import types
from numba.core.errors import TypingError
from numba.extending import intrinsic

from tensormagic.backend import vecmath_formulas as formulas
from tensormagic.backend import vecmath_trig as trig
from tensormagic.backend.vecmath_ir import Emitter, Value

__all__ = ["FUNCTIONS", "add_reassoc", "cos", "erf", "exp", "expm1", "log", "log1p", "max_propagate", "min_propagate", "sigmoid", "sin", "tanh"]


def _check(name: str, *kinds: Any) -> None:
    if any(kind not in (types.float64, types.float32) for kind in kinds) or len(set(kinds)) != 1:
        message = f"vecmath.{name} takes float64 or float32, all of one kind, not {', '.join(map(str, kinds))}"
        raise TypingError(message)


def _features(context: Any) -> tuple[bool, int]:
    """Whether fma is one instruction on the target, and the width of its vector registers in bits."""
    triple, _, text = context.codegen().magic_tuple()
    features = set(text.split(","))
    has_fma = "+fma" in features or triple.startswith(("aarch64", "arm64"))
    return has_fma, 512 if "+avx512f" in features else 256 if "+avx2" in features else 128


def _emitter(context: Any, builder: Any, kind: Any) -> Emitter:
    return Emitter(builder, kind.bitwidth, 0, _features(context)[0])


def _widths(context: Any, kind: Any) -> tuple[int, ...]:
    """The numbers of lanes for which a function has vector variants: a full register, and half of one."""
    lanes = _features(context)[1] // kind.bitwidth
    return (lanes, lanes // 2) if lanes > 2 else (lanes,)


def _define(name: str, formula: Callable[[Value], Value]) -> Any:
    def typed(_typing: Any, x: Any) -> Any:
        _check(name, x)

        def generate(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
            return formula(Value(_emitter(context, builder, x), arguments[0])).raw

        return x(x), generate

    typed.__name__ = name
    typed.__doc__ = formula.__doc__
    return intrinsic(typed)


exp = _define("exp", formulas.exp)
expm1 = _define("expm1", formulas.expm1)
log = _define("log", formulas.log)
log1p = _define("log1p", formulas.log1p)
tanh = _define("tanh", formulas.tanh)
sigmoid = _define("sigmoid", formulas.sigmoid)
erf = _define("erf", formulas.erf)


def _define_trigonometric(name: str, formula: Callable[[Value, tuple[int, ...]], Value]) -> Any:
    def typed(_typing: Any, x: Any) -> Any:
        _check(name, x)

        def generate(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
            value = Value(_emitter(context, builder, x), arguments[0])
            return formula(value, _widths(context, x)).raw

        return x(x), generate

    typed.__name__ = name
    typed.__doc__ = formula.__doc__
    return intrinsic(typed)


sin = _define_trigonometric("sin", trig.sin)
cos = _define_trigonometric("cos", trig.cos)


@intrinsic
def add_reassoc(_typing: Any, a: Any, b: Any) -> Any:
    """a + b, which LLVM may sum in another order: for the accumulator of a fold only."""
    _check("add_reassoc", a, b)

    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.fadd(*arguments, flags=("reassoc",))

    return a(a, b), generate


def _define_extremum(name: str, llvm_name: str) -> Any:
    def typed(_typing: Any, a: Any, b: Any) -> Any:
        _check(name, a, b)

        def generate(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
            emitter = _emitter(context, builder, a)
            return emitter.call(llvm_name, *(Value(emitter, v) for v in arguments)).raw

        return a(a, b), generate

    typed.__name__ = name
    typed.__doc__ = f"The {llvm_name} of two floats; nan where either is nan, and -0.0 below 0.0."
    return intrinsic(typed)


max_propagate = _define_extremum("max_propagate", "maximum")
min_propagate = _define_extremum("min_propagate", "minimum")

FUNCTIONS = {"exp": exp, "expm1": expm1, "log": log, "log1p": log1p, "tanh": tanh, "sigmoid": sigmoid, "erf": erf, "sin": sin, "cos": cos}
