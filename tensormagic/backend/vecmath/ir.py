"""Arithmetic on LLVM values by Python's operators: how the formulas of vecmath become instructions.

A formula is a Python function of `Value`s; running it once emits its instructions, for scalars or for vectors of
lanes. It knows llvmlite's IR builder and nothing of Numba, of graphs or of which functions exist.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import llvmlite.ir

ir: Any = llvmlite.ir  # llvmlite is typed in part only

MOST_CHAINED = 8  # terms of a polynomial that are summed one after the other
_SPLITTER = {64: 134217729.0, 32: 4097.0}


@dataclass(frozen=True)
class Emitter:
    """Where instructions go, and what the machine has.

    Parameters
    ----------
    builder
        An llvmlite ``IRBuilder``.
    bits
        Width of the float format, 32 or 64; integers beside it have the same width.
    lanes
        0 for scalars, else the number of lanes of every value.
    has_fma
        Whether ``llvm.fma`` is one instruction on the target.
    register
        Width of the target's vector registers in bits.
    has_scale
        Whether ``llvm.ldexp`` is an instruction for scalars and for vectors of any number of lanes.
    """

    builder: Any
    bits: int
    lanes: int
    has_fma: bool
    register: int
    has_scale: bool = False

    @property
    def real(self) -> Any:
        """Return LLVM's type of a float value."""
        return self._shaped(ir.DoubleType() if self.bits == 64 else ir.FloatType())

    @property
    def integer(self) -> Any:
        """Return LLVM's type of an integer value."""
        return self._shaped(ir.IntType(self.bits))

    def _shaped(self, element: Any) -> Any:
        return ir.VectorType(element, self.lanes) if self.lanes else element

    def constant(self, number: float, kind: Any) -> Value:
        """Return the same number in every lane."""
        text = ir.Constant(kind, [number] * self.lanes if self.lanes else number)
        return Value(self, text)

    def call(self, name: str, *values: Value) -> Value:
        """Call LLVM's intrinsic of that name, overloaded on the type of its first operand."""
        kind = values[0].raw.type
        module = self.builder.module
        full = f"llvm.{name}.{_suffix(kind)}"
        if name == "ldexp":  # overloaded on the exponent, too
            full += f".{_suffix(values[1].raw.type)}"
        function = module.globals.get(full)
        if function is None:
            function = ir.Function(module, ir.FunctionType(kind, [v.raw.type for v in values]), full)
        return Value(self, self.builder.call(function, [v.raw for v in values]))


def _suffix(kind: Any) -> str:
    if isinstance(kind, ir.VectorType):
        return f"v{kind.count}{_suffix(kind.element)}"
    return f"i{kind.width}" if isinstance(kind, ir.IntType) else kind.intrinsic_name


class Value:
    """A float, an integer or a truth value in LLVM, scalar or lane by lane.

    Python's operators emit instructions of strict IEEE arithmetic; `equals` stands for ``==``.
    """

    __slots__ = ("emitter", "raw")

    def __init__(self, emitter: Emitter, raw: Any) -> None:
        self.emitter = emitter
        self.raw = raw

    @property
    def _is_float(self) -> bool:
        kind = self.raw.type
        element = kind.element if isinstance(kind, ir.VectorType) else kind
        return not isinstance(element, ir.IntType)

    def _lift(self, other: Value | float) -> Value:
        return other if isinstance(other, Value) else self.emitter.constant(other, self.raw.type)

    def _binary(self, other: Value | float, real: str, integer: str, *, swap: bool = False) -> Value:
        a, b = self, self._lift(other)
        if swap:
            a, b = b, a
        emit = getattr(self.emitter.builder, real if self._is_float else integer)
        return Value(self.emitter, emit(a.raw, b.raw))

    def __add__(self, other: Value | float) -> Value:
        return self._binary(other, "fadd", "add")

    __radd__ = __add__

    def __sub__(self, other: Value | float) -> Value:
        return self._binary(other, "fsub", "sub")

    def __rsub__(self, other: Value | float) -> Value:
        return self._binary(other, "fsub", "sub", swap=True)

    def __mul__(self, other: Value | float) -> Value:
        return self._binary(other, "fmul", "mul")

    __rmul__ = __mul__

    def __truediv__(self, other: Value | float) -> Value:
        return self._binary(other, "fdiv", "fdiv")

    def __rtruediv__(self, other: Value | float) -> Value:
        return self._binary(other, "fdiv", "fdiv", swap=True)

    def __and__(self, other: Value | int) -> Value:
        return self._binary(other, "and_", "and_")

    def __or__(self, other: Value | int) -> Value:
        return self._binary(other, "or_", "or_")

    def __xor__(self, other: Value | int) -> Value:
        return self._binary(other, "xor", "xor")

    def __lshift__(self, other: Value | int) -> Value:
        return self._binary(other, "shl", "shl")

    def __neg__(self) -> Value:
        builder = self.emitter.builder
        return Value(self.emitter, builder.fneg(self.raw) if self._is_float else builder.neg(self.raw))

    def __invert__(self) -> Value:
        return Value(self.emitter, self.emitter.builder.not_(self.raw))

    def __abs__(self) -> Value:
        return self.emitter.call("fabs", self)

    def _compare(self, relation: str, other: Value | float) -> Value:
        builder = self.emitter.builder
        emit = builder.fcmp_ordered if self._is_float else builder.icmp_signed
        return Value(self.emitter, emit(relation, self.raw, self._lift(other).raw))

    def __lt__(self, other: Value | float) -> Value:
        return self._compare("<", other)

    def __gt__(self, other: Value | float) -> Value:
        return self._compare(">", other)

    def __ge__(self, other: Value | float) -> Value:
        return self._compare(">=", other)

    def equals(self, other: Value | float) -> Value:
        """Return where the two are equal; false for nan."""
        return self._compare("==", other)

    def select(self, yes: Value | float, no: Value | float) -> Value:
        """Return `yes` where this truth value holds, else `no`."""
        emitter = self.emitter
        pattern = next((v for v in (yes, no) if isinstance(v, Value)), None)
        kind = pattern.raw.type if pattern is not None else emitter.real
        a, b = (v if isinstance(v, Value) else emitter.constant(v, kind) for v in (yes, no))
        return Value(emitter, emitter.builder.select(self.raw, a.raw, b.raw))

    def unsigned_shift(self, count: int) -> Value:
        """Shift right, filling with zeros."""
        return self._binary(count, "lshr", "lshr")

    def bits(self) -> Value:
        """Return the float's bits as an integer of its width."""
        return Value(self.emitter, self.emitter.builder.bitcast(self.raw, self.emitter.integer))

    def real(self) -> Value:
        """Return the integer's bits as a float."""
        return Value(self.emitter, self.emitter.builder.bitcast(self.raw, self.emitter.real))

    def to_real(self) -> Value:
        """Return the signed integer's value as a float."""
        return Value(self.emitter, self.emitter.builder.sitofp(self.raw, self.emitter.real))

    def resized(self, bits: int) -> Value:
        """Return the integer in another width: its low bits, or filled with zeros."""
        builder, kind = self.emitter.builder, ir.IntType(bits)
        return Value(self.emitter, (builder.zext if bits > self.raw.type.width else builder.trunc)(self.raw, kind))

    def copysign(self, other: Value) -> Value:
        """Take the other's sign."""
        return self.emitter.call("copysign", self, other)

    def add_reassoc(self, other: Value) -> Value:
        """Add, leaving LLVM free to take this and other such sums in another order."""
        return Value(self.emitter, self.emitter.builder.fadd(self.raw, other.raw, flags=("reassoc",)))

    def scaled(self, exponent: Value) -> Value:
        """Multiply by 2 to that power, an integer from the smallest to the largest finite number's, rounded once."""
        emitter = self.emitter
        if emitter.has_scale:
            return emitter.call("ldexp", self, exponent)
        mantissa, bias = (52, 1023) if emitter.bits == 64 else (23, 127)
        twice = exponent + 2 * bias  # the power itself may be out of range, where the result is not
        first = twice.unsigned_shift(1)
        return self * (first << mantissa).real() * ((twice - first) << mantissa).real()

    def fma(self, factor: Value | float, term: Value | float) -> Value:
        """Multiply and add a term: rounded once where the machine has the instruction, else twice."""
        factor, term = self._lift(factor), self._lift(term)
        if self.emitter.has_fma:
            return self.emitter.call("fma", self, factor, term)
        return self * factor + term

    def product(self, factor: Value | float) -> tuple[Value, Value]:
        """Return the rounded product and its exact error; without fma by Dekker's splitting, for factors far from overflow."""
        factor = self._lift(factor)
        high = self * factor
        if self.emitter.has_fma:
            return high, self.fma(factor, -high)
        (a, b), (c, d) = _halves(self), _halves(factor)
        return high, ((a * c - high) + a * d + b * c) + b * d

    def minus_product(self, a: Value, b: Value | float) -> Value:
        """Subtract a * b, exactly wherever the result is a float."""
        if self.emitter.has_fma:
            return a.fma(-b, self)
        high, error = a.product(b)
        return (self - high) - error

    def _horner(self, power: Value, terms: Sequence[float]) -> Value:
        result = self._lift(terms[-1])
        for coefficient in reversed(terms[:-1]):
            result = result.fma(power, coefficient)
        return result

    def polynomial(self, *coefficients: float, exact: int = 1) -> Value:
        """Return the polynomial with these coefficients, constant term first.

        Even and odd terms are summed apart by Horner's rule: chains of half the length, with one product more than
        Horner's alone. The first `exact` terms are added last, where the rounding of another sum would show.
        """
        terms = coefficients[exact:]
        if len(terms) > MOST_CHAINED:
            square = self * self
            result = self._horner(square, terms[1::2]).fma(self, self._horner(square, terms[::2]))
        else:
            result = self._horner(self, terms)
        for coefficient in reversed(coefficients[:exact]):
            result = result.fma(self, coefficient)
        return result


def _halves(number: Value) -> tuple[Value, Value]:
    """Return the number as a sum of two with half the digits each, whose products are exact."""
    shifted = number * _SPLITTER[number.emitter.bits]
    high = shifted - (shifted - number)
    return high, number - high
