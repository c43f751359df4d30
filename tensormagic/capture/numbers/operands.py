"""Python's numbers as operands: huge integers, booleans in arithmetic, complex comparisons, division by zero."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tensormagic.capture.python.words import said
from tensormagic.ir.errors import DTypeError
from tensormagic.ir.node import Node, as_size
from tensormagic.ir.size import is_at_least, nodes_of
from tensormagic.ops.effects.checks import not_zero, require
from tensormagic.ops.form import FORM
from tensormagic.ops.leaf import PARAMETER, constant_value
from tensormagic.ops.pointwise import Pointwise, astype
from tensormagic.ops.scalars import scalar

_COMPARISONS = {scalar.less, scalar.less_equal, scalar.greater, scalar.greater_equal, scalar.equal, scalar.not_equal}
_LOGIC = {
    scalar.bitwise_and,
    scalar.bitwise_or,
    scalar.bitwise_xor,
    scalar.logical_and,
    scalar.logical_or,
    scalar.logical_xor,
    scalar.logical_not,
    scalar.where,
    *_COMPARISONS,
}
_ORDERED = {scalar.less, scalar.less_equal, scalar.greater, scalar.greater_equal, scalar.floor_divide, scalar.remainder}
_DIVISIONS: dict[Pointwise, Callable[[Any, Any], Any]] = {
    scalar.divide: operator.truediv,
    scalar.floor_divide: operator.floordiv,
    scalar.remainder: operator.mod,
}


def is_huge(value: Any) -> bool:
    """Return whether a value is a Python integer that int64 does not hold."""
    return type(value) is int and not -(2**63) <= value < 2**63


def representable(value: int, others: Sequence[np.dtype[Any]], op: Pointwise) -> Any:
    """Return a huge integer as an operand beside others, as NumPy takes it; raise OverflowError if it does not."""
    if any(d.kind in "fc" for d in others):
        return float(value)
    if op in _COMPARISONS:  # larger than every integer
        return (
            np.float64(np.inf if value > 0 else -np.inf)
            if not (np.uint64 in others and 0 <= value < 2**64)
            else np.uint64(value)
        )
    if np.uint64 in others and 0 <= value < 2**64:
        return np.uint64(value)
    raise OverflowError("Python int too large to convert to C long")


def as_python(op: Pointwise, nodes: Sequence[Node]) -> list[Node]:
    """Return operands that are all Python numbers: booleans become integers, and complex numbers have no order."""
    if any(n.type.dtype.kind == "c" for n in nodes) and op in _ORDERED:
        raise DTypeError(f"{op.name} is not supported between complex numbers", "Compare their absolute values.")
    if op not in _LOGIC and all(n.type.dtype.kind == "b" for n in nodes):
        nodes = [astype(n, np.int64) for n in nodes]
    if op in _DIVISIONS:
        kinds = {n.type.dtype.kind for n in nodes}
        dividend = 1j if "c" in kinds else 1.0 if "f" in kinds else 1
        divided = [nodes[0], _divisor(nodes[1], said(_DIVISIONS[op], dividend, 0))]
        return (
            [as_float(n, "is divided, which Python does") for n in divided]
            if op is scalar.divide and not kinds & {"f", "c"}
            else divided
        )
    if op in _SHIFTS and constant_value(nodes[1]) is None:
        return [nodes[0], require(nodes[1], scalar.greater_equal(nodes[1], 0), "negative shift count")]
    if op is scalar.power:
        return [_base(*nodes), nodes[1]]
    return list(nodes)


def _base(base: Node, exponent: Node) -> Node:
    """Return the base of a Python power, with errors when the graph runs for infinite or complex results."""
    kinds = {n.type.dtype.kind for n in (base, exponent)}
    if not kinds & {"f", "c"}:
        return _whole_base(base, exponent)
    is_complex, power = "c" in kinds, constant_value(exponent)
    if power is None or power.imag or power.real < 0:
        below = scalar.less(scalar.real(exponent) if exponent.type.dtype.kind == "c" else exponent, 0)
        if exponent.type.dtype.kind == "c":
            below = scalar.logical_or(below, scalar.not_equal(scalar.imag(exponent), 0))
        elif exponent.type.inexact:
            below = scalar.logical_and(below, scalar.isfinite(exponent))
        text = said(operator.pow, 0j if is_complex else 0.0, -1)
        base = require(base, scalar.logical_or(scalar.not_equal(base, 0), scalar.logical_not(below)), text, "division")
    if not is_complex and exponent.type.inexact and (power is None or power % 1):
        message = "a negative Python number is raised to a power that is not an integer: the result is complex"
        real = scalar.logical_or(scalar.greater_equal(base, 0), scalar.logical_not(scalar.isfinite(base)))
        whole = scalar.logical_or(scalar.equal(exponent, scalar.trunc(exponent)), scalar.isnan(exponent))
        real = scalar.logical_or(real, whole)
        base = require(base, real, message, "number")
    return base


def _whole_base(base: Node, exponent: Node) -> Node:
    """Return an integer base with an integer exponent; the graph raises for a negative one, where Python gives a float."""
    size = as_size(exponent)
    if constant_value(exponent) is not None or (size is not None and is_at_least(size, 0)):
        return base
    holds = scalar.greater_equal(exponent, 0)
    either = scalar.logical_or(scalar.not_equal(base, 0), holds)
    base = require(base, either, said(operator.pow, 0, -1), "division")
    text = "a Python integer is raised to a negative power, which gives a float: convert the base, float(n)"
    return require(base, holds, text, "number")


def compared(op: Pointwise, nodes: Sequence[Node]) -> Node | None:
    """Return a data-dependent integer and a float compared by exact values, as in Python; None if comparing floats is the same."""
    if op not in _COMPARISONS or [n.type.dtype.kind for n in nodes] not in (["i", "f"], ["f", "i"]):
        return None
    if nodes[0].type.dtype.kind == "f":
        nodes, op = nodes[::-1], _MIRRORED.get(op, op)
    whole, other = nodes
    if not _is_long(whole):
        return None
    near = astype(whole, np.dtype(float))
    inside = scalar.less(near, 2.0**63)
    back = astype(scalar.minimum(near, _LARGEST), np.dtype(np.int64))
    same = scalar.equal(near, other)
    if op in {scalar.equal, scalar.not_equal}:
        found = scalar.logical_and(same, scalar.logical_and(inside, scalar.equal(whole, back)))
        return scalar.logical_not(found) if op is scalar.not_equal else found
    below = scalar.logical_or(scalar.less(whole, back), scalar.logical_not(inside))
    above = scalar.logical_and(scalar.greater(whole, back), inside)
    tie = {scalar.less: below, scalar.greater: above}.get(op)
    if tie is None:
        tie = scalar.logical_not(above if op is scalar.less_equal else below)
    strict = scalar.less if op in {scalar.less, scalar.less_equal} else scalar.greater
    return scalar.logical_or(strict(near, other), scalar.logical_and(same, tie))


_MIRRORED = {
    scalar.less: scalar.greater,
    scalar.greater: scalar.less,
    scalar.less_equal: scalar.greater_equal,
    scalar.greater_equal: scalar.less_equal,
}
_SHIFTS = {scalar.left_shift, scalar.right_shift}
_DIGITS = 2**53  # up to this, every integer is exact as a float
_LARGEST = 2.0**63 - 1024  # the largest float that int64 holds


def _is_long(number: Node) -> bool:
    """Return whether an integer may have more digits than a float: a known large one, or one from 64-bit data."""
    value, size = constant_value(number), as_size(number)
    if value is not None:
        return bool(abs(int(value)) > _DIGITS)
    found = (number,) if size is None else nodes_of(size)
    return any(n.op is not PARAMETER and _own(n).type.dtype.itemsize == 8 for n in found)


def _own(number: Node) -> Node:
    """Return the NumPy number from which a Python number was made."""
    while number.op is FORM:
        number = number.args[0]
    return number


def as_float(number: Node, what: str) -> Node:
    """Return a Python integer converted to a float exactly; one with more digits is refused when the graph runs."""
    if number.type.form != "python" or number.type.dtype.kind != "i" or not _is_long(number):
        return number
    text = f"an integer of more than 53 bits {what} without rounding it to a float: write float(n)"
    return require(number, scalar.less_equal(scalar.absolute(number), _DIGITS), text, "number")


def in_range(op: Pointwise, result: Node, base: Node, exponent: Node) -> Node:
    """Return a power of Python's numbers, or a shift; the graph raises where a float is infinite, or 64 bits do not suffice."""
    power = constant_value(exponent)
    if result.type.dtype.kind == "i":
        return _in_bits(op, result, base, exponent)
    if op is not scalar.power:
        return result
    if result.type.dtype.kind == "c":
        return result if power == 0 else _finite(result, base, exponent)
    if not result.type.inexact or (power is not None and 0 <= power <= 1):
        return result
    given = [n for n in (base, exponent) if n.type.inexact and constant_value(n) is None]
    finite = scalar.logical_not(scalar.isinf(result))
    holds = functools.reduce(scalar.logical_or, [scalar.logical_not(scalar.isfinite(n)) for n in given], finite)
    return require(result, holds, "(34, 'Numerical result out of range')", "overflow")


def _finite(result: Node, *operands: Node) -> Node:
    """Return a power of complex numbers, checked to be finite: for others the values and errors depend on Python's version."""
    asked = [result, *(n for n in operands if n.type.inexact and constant_value(n) is None)]
    holds = functools.reduce(scalar.logical_and, map(scalar.isfinite, asked))
    power = constant_value(operands[1])
    if power is None or power.imag or power.real < 0:  # where too small a number is an error
        some = scalar.logical_or(scalar.not_equal(result, 0), scalar.equal(operands[0], 0))
        holds = scalar.logical_and(holds, some)
    return require(
        result, holds, "a power of Python's complex numbers is 0 or not finite, or one of them is not", "number"
    )


def _in_bits(op: Pointwise, result: Node, base: Node, exponent: Node) -> Node:
    """Return an integer of Python's, which has as many bits as it needs; more than 64 are refused when the graph runs."""
    first, second = (astype(n, np.float64) for n in (base, exponent))
    size = (
        scalar.power(scalar.absolute(first), second)
        if op is scalar.power
        else scalar.absolute(first) * scalar.exp2(second)
    )
    return require(result, scalar.less(size, 2.0**63), "an integer of more than 64 bits is not captured", "number")


def _divisor(node: Node, message: str) -> Node:
    """Return a divisor of Python's; zero is an error when the graph runs, unless it is known not to be zero."""
    size, value = as_size(node), constant_value(node)
    known = value is not None and value.all()
    return node if known or (size is not None and is_at_least(size, 1)) else not_zero(node, message)
