"""Scalar functions in kernels, for numba-cuda: those of `vecmath`, with the processor's polynomials, and primitives under them.

Rounding, extrema, half floats, words of 128 bits, complex numbers: each is a few instructions, or a text compiled
with the kernel.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from inspect import signature
from typing import Any

import llvmlite.ir
import numpy as np

from tensormagic.backend.cuda.compiling.front import part
from tensormagic.backend.vecmath import division_text as divisions
from tensormagic.backend.vecmath import formulas, hyperbolic, inverse, roots, trig, unit
from tensormagic.backend.vecmath.complex_text import CONSTANTS, TEXTS
from tensormagic.backend.vecmath.ir import Emitter, Value

ir: Any = llvmlite.ir
_types = part("numba.cuda").types
_intrinsic = part("numba.cuda.extending").intrinsic
_I32, _I64 = ir.IntType(32), ir.IntType(64)


def declared(builder: Any, name: str, result: Any, arguments: list[Any]) -> Any:
    """Return a function of the target, declared in the module that is built."""
    module = builder.module
    return module.globals.get(name) or ir.Function(module, ir.FunctionType(result, arguments), name)


def _unsigned(name: str, emit: str, doc: str) -> Any:
    """Return a quotient or remainder of indices, which are never negative: an unsigned division, which is quicker."""

    def typed(_typing: Any, a: Any, b: Any) -> Any:
        def generate(_context: Any, builder: Any, _sig: Any, args: Any) -> Any:
            return getattr(builder, emit)(*args)

        return _types.int64(_types.int64, _types.int64), generate

    typed.__name__, typed.__doc__ = name, doc
    return _intrinsic(typed)


def _rounding(name: str, llvm_name: str) -> Any:
    def typed(_typing: Any, x: Any) -> Any:
        def generate(_context: Any, builder: Any, _sig: Any, args: Any) -> Any:
            kind = args[0].type
            full = f"llvm.{llvm_name}.{kind.intrinsic_name}"
            return builder.call(declared(builder, full, kind, [kind]), args)

        return x(x), generate

    typed.__name__, typed.__doc__ = name, f"llvm.{llvm_name} of a float."
    return _intrinsic(typed)


def _extremum(name: str, *, largest: bool) -> Any:
    """Return the larger or smaller of two floats; nan where either is nan; 0.0 is above -0.0."""

    def typed(_typing: Any, a: Any, _b: Any) -> Any:
        def generate(_context: Any, builder: Any, _sig: Any, args: Any) -> Any:
            x, y = args
            bits = _I64 if isinstance(x.type, ir.DoubleType) else _I32
            join = builder.and_ if largest else builder.or_
            zeros = builder.bitcast(join(builder.bitcast(x, bits), builder.bitcast(y, bits)), x.type)
            first = builder.select(builder.fcmp_ordered(">" if largest else "<", x, y), x, y)
            found = builder.select(builder.fcmp_ordered("==", x, y), zeros, first)
            found = builder.select(builder.fcmp_unordered("uno", y, y), y, found)
            return builder.select(builder.fcmp_unordered("uno", x, x), x, found)

        return a(a, a), generate

    typed.__name__, typed.__doc__ = name, _extremum.__doc__
    return _intrinsic(typed)


@_intrinsic
def absolute(_typing: Any, x: Any) -> Any:
    """A number without its sign, of its own type."""

    def generate(_context: Any, builder: Any, _sig: Any, args: Any) -> Any:
        kind = args[0].type
        if isinstance(kind, ir.IntType):
            negative = builder.icmp_signed("<", args[0], ir.Constant(kind, 0))
            return builder.select(negative, builder.neg(args[0]), args[0])
        return builder.call(declared(builder, f"llvm.fabs.{kind.intrinsic_name}", kind, [kind]), args)

    return x(x), generate


@_intrinsic
def widened(_typing: Any, bits: Any) -> Any:
    """A half float, by its bits, in single precision."""

    def generate(_context: Any, builder: Any, _sig: Any, args: Any) -> Any:
        function = declared(builder, "llvm.convert.from.fp16.f32", ir.FloatType(), [ir.IntType(16)])
        return builder.call(function, args)

    return _types.float32(bits), generate


@_intrinsic
def narrowed(_typing: Any, x: Any) -> Any:
    """The bits of the nearest half float."""

    def generate(_context: Any, builder: Any, _sig: Any, args: Any) -> Any:
        kind = args[0].type
        function = declared(builder, f"llvm.convert.to.fp16.{kind.intrinsic_name}", ir.IntType(16), [kind])
        return builder.call(function, args)

    return _types.uint16(x), generate


@_intrinsic
def widened_bfloat16(_typing: Any, bits: Any) -> Any:
    """A bfloat16, by its bits, in single precision, of which it is the upper half."""

    def generate(_context: Any, builder: Any, _sig: Any, args: Any) -> Any:
        return builder.bitcast(builder.shl(builder.zext(args[0], _I32), ir.Constant(_I32, 16)), ir.FloatType())

    return _types.float32(bits), generate


@_intrinsic
def narrowed_bfloat16(_typing: Any, x: Any) -> Any:
    """The bits of the nearest bfloat16, to even in the middle; nan is one of the two that ml_dtypes has."""

    def generate(_context: Any, builder: Any, _sig: Any, args: Any) -> Any:
        bits = builder.bitcast(args[0], _I32)
        upper = builder.lshr(bits, ir.Constant(_I32, 16))
        up = builder.add(builder.and_(upper, ir.Constant(_I32, 1)), ir.Constant(_I32, 0x7FFF))
        rounded = builder.lshr(builder.add(bits, up), ir.Constant(_I32, 16))
        nan = builder.or_(builder.and_(upper, ir.Constant(_I32, 0x8000)), ir.Constant(_I32, 0x7FC0))
        found = builder.select(builder.fcmp_unordered("uno", args[0], args[0]), nan, rounded)
        return builder.trunc(found, ir.IntType(16))

    return _types.uint16(x), generate


@_intrinsic
def leap(_typing: Any, high: Any, low: Any, by_high: Any, by_low: Any, and_high: Any, and_low: Any) -> Any:
    """A product and a sum of 128 bits, each by its upper and its lower half."""
    word, wide = _types.uint64, ir.IntType(128)

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        shift = ir.Constant(wide, 64)
        x, y, z = (
            builder.or_(builder.shl(builder.zext(args[k], wide), shift), builder.zext(args[k + 1], wide))
            for k in (0, 2, 4)
        )
        found = builder.add(builder.mul(x, y), z)
        parts = [builder.trunc(builder.lshr(found, shift), _I64), builder.trunc(found, _I64)]
        return context.make_tuple(builder, sig.return_type, parts)

    return _types.UniTuple(word, 2)(*[word] * 6), generate


def _unit(name: str, word: Callable[..., Any], count: int) -> Any:
    """Return the number from 0 to 1 that the upper 53 bits of a word say, which comes from so many words."""

    def generate(_context: Any, builder: Any, _sig: Any, args: Any) -> Any:
        bits = builder.lshr(word(builder, *args), ir.Constant(_I64, 11))
        return builder.fmul(builder.uitofp(bits, ir.DoubleType()), ir.Constant(ir.DoubleType(), 2.0**-53))

    def of_one(_typing: Any, x: Any) -> Any:
        return _types.float64(x), generate

    def of_two(_typing: Any, high: Any, low: Any) -> Any:
        return _types.float64(high, low), generate

    typed = of_one if count == 1 else of_two
    typed.__name__, typed.__doc__ = name, _unit.__doc__
    return _intrinsic(typed)


def _pcg(builder: Any, high: Any, low: Any) -> Any:
    """Return the word of a state of PCG64."""
    mixed, count = builder.xor(high, low), builder.lshr(high, ir.Constant(_I64, 58))
    left = builder.and_(builder.sub(ir.Constant(_I64, 64), count), ir.Constant(_I64, 63))
    return builder.or_(builder.lshr(mixed, count), builder.shl(mixed, left))


def _dxsm(builder: Any, high: Any, low: Any) -> Any:
    """Return the word of a state of PCG64DXSM."""
    high = builder.xor(high, builder.lshr(high, ir.Constant(_I64, 32)))
    high = builder.mul(high, ir.Constant(_I64, 0xDA942042E4DD58B5))
    high = builder.xor(high, builder.lshr(high, ir.Constant(_I64, 48)))
    return builder.mul(high, builder.or_(low, ir.Constant(_I64, 1)))


def _function(formula: Callable[..., Value]) -> Any:
    """Return a formula of `vecmath`, for operands of one kind of float."""

    def emit(kind: Any) -> Any:
        def generate(_context: Any, builder: Any, _sig: Any, args: Any) -> Any:
            emitter = Emitter(builder, kind.bitwidth, 0, has_fma=True, register=64)
            return formula(*(Value(emitter, argument) for argument in args)).raw

        return generate

    def of_one(_typing: Any, x: Any) -> Any:
        return x(x), emit(x)

    def of_two(_typing: Any, a: Any, b: Any) -> Any:
        return a(a, b), emit(a)

    typed = of_one if len(signature(formula).parameters) == 1 else of_two
    typed.__name__, typed.__doc__ = formula.__name__, formula.__doc__
    return _intrinsic(typed)


class _CardEmitter(Emitter):
    """Emits instructions that NVVM lacks by others."""

    def call(self, name: str, *values: Value) -> Value:
        """Call an LLVM intrinsic, or emit others for one that NVVM lacks."""
        if name == "fshl":
            first, second, count = values
            return (first << count) | Value(self, self.builder.lshr(second.unsigned_shift(1).raw, (63 - count).raw))
        if name == "ctlz" and values[0].raw.type.width > 64:
            return self._zeros_of_wide(values[0])
        return super().call(name, *values)

    def _zeros_of_wide(self, number: Value) -> Value:
        builder = self.builder
        count = declared(builder, "llvm.ctlz.i64", _I64, [_I64, ir.IntType(1)])
        plain = ir.Constant(ir.IntType(1), 0)
        high, low = number.unsigned_shift(64).resized(64).raw, number.resized(64).raw
        below = builder.add(builder.call(count, [low, plain]), ir.Constant(_I64, 64))
        is_zero = builder.icmp_signed("==", high, ir.Constant(_I64, 0))
        found = builder.select(is_zero, below, builder.call(count, [high, plain]))
        return Value(self, found).resized(number.raw.type.width)


def _trigonometric(name: str) -> Any:
    """Return the sine, cosine or tangent: arguments that are large are reduced apart."""

    def typed(_typing: Any, x: Any) -> Any:
        def generate(_context: Any, builder: Any, _sig: Any, args: Any) -> Any:
            value = Value(_CardEmitter(builder, x.bitwidth, 0, has_fma=True, register=64), args[0])
            plain = trig.of_quadrant(name, *trig.reduced(value)).raw
            large = trig.is_large(value).raw
            start, kind = builder.block, args[0].type
            with builder.if_then(large, likely=False):
                wide = args[0] if x.bitwidth == 64 else builder.fpext(args[0], ir.DoubleType())
                exact = Value(_CardEmitter(builder, 64, 0, has_fma=True, register=64), wide)
                found = trig.of_quadrant(name, *trig.reduced_large(exact)).raw
                found = found if x.bitwidth == 64 else builder.fptrunc(found, kind)
                last = builder.block
            merged = builder.phi(kind)
            merged.add_incoming(plain, start)
            merged.add_incoming(found, last)
            return merged

        return x(x), generate

    typed.__name__, typed.__doc__ = name, _trigonometric.__doc__
    return _intrinsic(typed)


@_intrinsic
def _fused(_typing: Any, a: Any, b: Any, c: Any) -> Any:
    """``a * b + c``, rounded once."""

    def generate(_context: Any, builder: Any, _sig: Any, args: Any) -> Any:
        kind = args[0].type
        return builder.call(declared(builder, f"llvm.fma.{kind.intrinsic_name}", kind, [kind] * 3), args)

    return a(a, b, c), generate


_STORED = {
    "widened_parts": "def widened_parts(x):\n    return complex(np.float64(x.real), np.float64(x.imag))\n",
    "narrowed_parts": "def narrowed_parts(x):\n    return complex(np.float32(x.real), np.float32(x.imag))\n",
}
"""To complex128 and back: complex64 is what memory holds."""


_REAL: dict[str, Any] = {
    "quotient": _unsigned("quotient", "udiv", "a // b of numbers that are not negative."),
    "rest": _unsigned("rest", "urem", "a % b of numbers that are not negative."),
    **{name: _rounding(name, name) for name in ("floor", "ceil", "trunc", "rint", "sqrt")},
    "max_propagate": _extremum("max_propagate", largest=True),
    "min_propagate": _extremum("min_propagate", largest=False),
    **{
        name: _function(getattr(module, name))
        for module in (formulas, hyperbolic, inverse, roots, unit)
        for name in module.__all__
    },
    **{name: _trigonometric(name) for name in ("sin", "cos", "tan")},
    "math": math,
    "abs": absolute,
    "leap": leap,
    "unit_of_pcg": _unit("unit_of_pcg", _pcg, 2),
    "unit_of_dxsm": _unit("unit_of_dxsm", _dxsm, 2),
    "unit_of_word": _unit("unit_of_word", lambda _builder, word: word, 1),
    "widened": widened,
    "narrowed": narrowed,
    "widened_bfloat16": widened_bfloat16,
    "narrowed_bfloat16": narrowed_bfloat16,
}
NUMBERS: dict[str, Any] = dict(_REAL)
for _name, _text in {**divisions.TEXTS, **TEXTS, **_STORED}.items():
    _names: dict[str, Any] = {**NUMBERS, **divisions.CONSTANTS, **CONSTANTS, "fused": _fused, "np": np}
    exec(compile(_text, f"<{_name}>", "exec"), _names)  # noqa: S102 (the project's own text)
    NUMBERS[_name] = _names[_name]
