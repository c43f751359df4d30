"""Scalar functions and reductions for kernels compiled by Numba, which LLVM turns into vector code in innermost loops.

Call them inside nopython code: ``exp(x)`` with x float64 or float32 is of the same type. Importing compiles nothing; a
function emits its instructions into the kernel that calls it. What the instructions are is written in
`vecmath_formulas` and `vecmath_trig`; this file knows only how Numba asks for them.

Errors are below 1 ulp (unit in the last place) but for softplus 1.4, erfc 3.2, and logaddexp 1.4, that in ulps of the
largest of result and operands: as measured on every float32 and many float64 (`benchmarks/results/vecmath.md`).
Infinities, nans, signed zeros and subnormal numbers are as in NumPy; sin and cos are right for every finite argument.
Results depend on whether the machine has fma, and not on the width of its vectors.

Why intrinsics, and no jitted functions: in a warm process a kernel of one loop compiles in 41 ms without exp, in 48
with exp as an intrinsic, in 54 with a jitted function (129 where it is used first), in 51 with ``forceinline`` (119),
in 94 with ``inline="always"``, which types the whole body again; and the intrinsic's code is the fastest, 0.46 ns an
element against 0.52. Integers keep their width, where Numba would widen 32 bits to 64. (2026-11-21, CPython 3.11, AMD
EPYC with 2 cores, numba 0.68.1.)

>>> import numba
>>> numba.njit(lambda x: exp(x))(0.0)
1.0
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba
from numba import extending
from numba.core import errors

from tensormagic.backend import vecmath_formulas as formulas
from tensormagic.backend import vecmath_trig as trig
from tensormagic.backend.vecmath_ir import Emitter, Value

__all__ = [
    "FUNCTIONS",
    "add_reassoc",
    "cos",
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
    "sin",
    "softplus",
    "tanh",
]

_numba: Any = numba  # untyped, as are its parts
_intrinsic: Any = extending.intrinsic
_TypingError: Any = errors.TypingError


def _check(name: str, kinds: tuple[Any, ...]) -> None:
    if len(set(kinds)) > 1 or kinds[0] not in (_numba.float64, _numba.float32):
        message = f"vecmath.{name} takes float64 or float32, all of one kind, not {', '.join(map(str, kinds))}"
        raise _TypingError(message)


def _machine(context: Any) -> tuple[bool, int]:
    """Whether fma is one instruction on the target, and the width of its vector registers in bits."""
    triple, _, text = context.codegen().magic_tuple()
    features = set(text.split(","))
    has_fma = "+fma" in features or triple.startswith(("aarch64", "arm64"))
    return has_fma, 512 if "+avx512f" in features else 256 if "+avx2" in features else 128


Formula = Callable[..., Value]


def _generator(formula: Formula, kind: Any) -> Callable[..., Any]:
    """What Numba calls to emit the function for operands of a kind."""

    def generate(context: Any, builder: Any, _signature: Any, arguments: tuple[Any, ...]) -> Any:
        emitter = Emitter(builder, kind.bitwidth, 0, *_machine(context))
        return formula(*(Value(emitter, argument) for argument in arguments)).raw

    return generate


def _unary(name: str, formula: Formula) -> Any:
    def typed(_typing: Any, x: Any) -> Any:
        _check(name, (x,))
        return x(x), _generator(formula, x)

    return _named(typed, name, formula)


def _binary(name: str, formula: Formula) -> Any:
    def typed(_typing: Any, a: Any, b: Any) -> Any:
        _check(name, (a, b))
        return a(a, b), _generator(formula, a)

    return _named(typed, name, formula)


def _named(typed: Callable[..., Any], name: str, formula: Formula) -> Any:
    typed.__name__, typed.__doc__ = name, formula.__doc__
    return _intrinsic(typed)


cos = _unary("cos", trig.cos)
erf = _unary("erf", formulas.erf)
erfc = _unary("erfc", formulas.erfc)
exp = _unary("exp", formulas.exp)
exp2 = _unary("exp2", formulas.exp2)
expm1 = _unary("expm1", formulas.expm1)
log = _unary("log", formulas.log)
log1p = _unary("log1p", formulas.log1p)
log2 = _unary("log2", formulas.log2)
log10 = _unary("log10", formulas.log10)
logaddexp = _binary("logaddexp", formulas.logaddexp)
power = _binary("power", formulas.power)
sigmoid = _unary("sigmoid", formulas.sigmoid)
sin = _unary("sin", trig.sin)
softplus = _unary("softplus", formulas.softplus)
tanh = _unary("tanh", formulas.tanh)
add_reassoc = _binary("add_reassoc", formulas.add_reassoc)
max_propagate = _binary("max_propagate", formulas.max_propagate)
min_propagate = _binary("min_propagate", formulas.min_propagate)

FUNCTIONS: dict[str, Any] = {
    "cos": cos,
    "erf": erf,
    "erfc": erfc,
    "exp": exp,
    "exp2": exp2,
    "expm1": expm1,
    "log": log,
    "log1p": log1p,
    "log2": log2,
    "log10": log10,
    "logaddexp": logaddexp,
    "power": power,
    "sigmoid": sigmoid,
    "sin": sin,
    "softplus": softplus,
    "tanh": tanh,
}
"""The functions by the names of the operations they are; logaddexp and power take two operands, the others one."""
