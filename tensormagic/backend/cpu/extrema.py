"""The maximum and minimum of many floats for Numba, in three parts that LLVM turns into one instruction each.

Extrema that pass nans on and order the zeros take six instructions a vector, each of which waits for the one before. So a
loop keeps an extremum that knows neither, whether there was a nan, and the signs that all or any of the numbers had;
behind the loop these are put together.
"""

from __future__ import annotations

from typing import Any

import numba
from llvmlite import ir
from numba.extending import intrinsic

_types: Any = numba.types
_FLAGS = ("nnan", "nsz")


def _signs_of(x: Any) -> Any:
    """Return Numba's type of the bits of a float."""
    return _types.int64 if x == _types.float64 else _types.int32


def _bits(builder: Any, x: Any) -> Any:
    return builder.bitcast(x, ir.IntType(64 if isinstance(x.type, ir.DoubleType) else 32))


def _extremum(name: str, llvm_name: str) -> Any:
    def typed(_typing: Any, total: Any, _x: Any) -> Any:
        def generate(_context: Any, builder: Any, _sig: Any, args: Any) -> Any:
            kind = args[0].type
            full = f"llvm.{llvm_name}.{kind.intrinsic_name}"
            function = builder.module.globals.get(full) or ir.Function(
                builder.module, ir.FunctionType(kind, [kind, kind]), full
            )
            return builder.call(function, args, fastmath=_FLAGS)

        return total(total, total), generate

    typed.__name__, typed.__doc__ = name, f"llvm.{llvm_name} of numbers without nans, whose zeros are one."
    return intrinsic(typed)


@intrinsic
def nan_seen(_typing: Any, seen: Any, x: Any) -> Any:
    """Whether there was a nan before, or x is one."""

    def generate(_context: Any, builder: Any, _sig: Any, args: Any) -> Any:
        return builder.or_(args[0], builder.fcmp_unordered("uno", args[1], args[1]))

    return _types.boolean(_types.boolean, x), generate


@intrinsic
def common_sign(_typing: Any, signs: Any, x: Any) -> Any:
    """The bits that all numbers have: the sign among them."""

    def generate(_context: Any, builder: Any, _sig: Any, args: Any) -> Any:
        return builder.and_(args[0], _bits(builder, args[1]))

    return _signs_of(x)(_signs_of(x), x), generate


@intrinsic
def any_sign(_typing: Any, signs: Any, x: Any) -> Any:
    """The bits that any number has: the sign among them."""

    def generate(_context: Any, builder: Any, _sig: Any, args: Any) -> Any:
        return builder.or_(args[0], _bits(builder, args[1]))

    return _signs_of(x)(_signs_of(x), x), generate


@intrinsic
def extremum(_typing: Any, total: Any, seen: Any, signs: Any) -> Any:
    """The three parts put together."""

    def generate(_context: Any, builder: Any, _sig: Any, args: Any) -> Any:
        number, nan, bits = args
        zero = builder.bitcast(builder.and_(bits, ir.Constant(bits.type, -(1 << (bits.type.width - 1)))), number.type)
        is_zero = builder.fcmp_ordered("==", number, ir.Constant(number.type, 0.0))
        return builder.select(nan, ir.Constant(number.type, float("nan")), builder.select(is_zero, zero, number))

    return total(total, seen, signs), generate


EXTREMA: dict[str, Any] = {
    "larger": _extremum("larger", "maxnum"),
    "smaller": _extremum("smaller", "minnum"),
    "nan_seen": nan_seen,
    "common_sign": common_sign,
    "any_sign": any_sign,
    "extremum": extremum,
}
