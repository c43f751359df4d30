"""Scalar functions and reductions for kernels compiled by Numba, which LLVM turns into vector code in innermost loops.

Call them inside nopython code: with ``exp = FUNCTIONS["exp"]``, ``exp(x)`` is of the type of x, float64 or float32.
Importing compiles nothing; a function emits its instructions into the kernel that calls it. What the instructions are is
written in the files `vecmath_*`, each of which names its functions once, in ``__all__``; this file knows only how Numba
asks for them.

Errors are at most 1 ulp (unit in the last place) but for log2 1.01 in float32, softplus 1.4, erfc 3.2, arctan2 1.2 (where
the smaller operand is about to underflow), and logaddexp 1.4, in ulps of the largest of result and operands: as measured
on many float32 and float64 (`benchmarks/results/vecmath.md`). Infinities, nans, signed zeros, subnormal numbers are as in
NumPy; sin, cos and tan are right for every finite argument. Results depend on whether the machine has fma, and not on
the width of its vectors.

Why intrinsics, and no jitted functions: in a warm process a kernel of one loop compiles in 41 ms without exp, in 48
with exp as an intrinsic, in 54 with a jitted function (129 where it is used first), in 51 with ``forceinline`` (119),
in 94 with ``inline="always"``, which types the whole body again; and the intrinsic's code is the fastest, 0.46 ns an
element against 0.52. Integers keep their width, where Numba would widen 32 bits to 64. (2026-11-21, CPython 3.11, AMD
EPYC with 2 cores, numba 0.68.1.)

>>> import numba
>>> exp = FUNCTIONS["exp"]
>>> numba.njit(lambda x: exp(x))(0.0)
1.0
"""

from __future__ import annotations

from collections.abc import Callable
from inspect import signature
from typing import Any

import numba
from numba import extending
from numba.core import errors

from tensormagic.backend.cpu.target import abilities
from tensormagic.backend.vecmath import folds, formulas, hyperbolic, inverse, roots, trig, unit
from tensormagic.backend.vecmath.ir import Emitter, Value

_numba: Any = numba  # untyped, as are its parts
_intrinsic: Any = extending.intrinsic
_TypingError: Any = errors.TypingError


def _check(name: str, kinds: tuple[Any, ...]) -> None:
    if len(set(kinds)) > 1 or kinds[0] not in (_numba.float64, _numba.float32):
        message = f"vecmath.{name} takes float64 or float32, all of one kind, not {', '.join(map(str, kinds))}"
        raise _TypingError(message)


def machine(context: Any) -> tuple[bool, int, bool]:
    """Return the abilities of Numba's target (see `abilities`)."""
    triple, _, text = context.codegen().magic_tuple()
    return abilities(triple, text)


Formula = Callable[..., Value]


def _generator(formula: Formula, kind: Any) -> Callable[..., Any]:
    """Return the function that Numba calls to emit a formula for operands of a kind."""

    def generate(context: Any, builder: Any, _signature: Any, arguments: tuple[Any, ...]) -> Any:
        emitter = Emitter(builder, kind.bitwidth, 0, *machine(context))
        return formula(*(Value(emitter, argument) for argument in arguments)).raw

    return generate


def _of_one(formula: Formula) -> Callable[..., Any]:
    def typed(_typing: Any, x: Any) -> Any:
        _check(formula.__name__, (x,))
        return x(x), _generator(formula, x)

    return typed


def _of_two(formula: Formula) -> Callable[..., Any]:
    def typed(_typing: Any, a: Any, b: Any) -> Any:
        _check(formula.__name__, (a, b))
        return a(a, b), _generator(formula, a)

    return typed


def _function(formula: Formula) -> Any:
    """Return the formula as a function for compiled code, of one operand or of two of one kind."""
    typed = (_of_one if len(signature(formula).parameters) == 1 else _of_two)(formula)
    typed.__name__, typed.__doc__ = formula.__name__, formula.__doc__
    return _intrinsic(typed)


def _functions(*modules: Any) -> dict[str, Any]:
    return {name: _function(getattr(module, name)) for module in modules for name in module.__all__}


FUNCTIONS: dict[str, Any] = _functions(formulas, hyperbolic, inverse, roots, trig)
"""The functions by the names of the operations they are; arctan2, hypot, logaddexp and power take two operands."""

PARTIAL: dict[str, Any] = _functions(unit)
"""Functions that are right only for some numbers, which their text says."""

FOLDS: dict[str, Any] = _functions(folds)
"""The steps of folds, of two operands."""
