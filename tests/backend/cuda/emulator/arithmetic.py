"""What instructions compute, on arrays of lanes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tests.backend.cuda.emulator.memory import EmulatorError
from tests.backend.cuda.emulator.program import DTYPES, Instruction

Array = Any
_ROUNDED = {"rni": np.rint, "rzi": np.trunc, "rmi": np.floor, "rpi": np.ceil}


def compute(instruction: Instruction, values: list[Array], kinds: list[np.dtype[Any]]) -> Array:
    """The result of an instruction that touches no memory; ``kinds``: the dtype that it is in."""
    function = _TABLE.get(instruction.name)
    if function is None:
        raise EmulatorError(f"this instruction is not known: {instruction.text}")
    with np.errstate(all="ignore"):
        return function(instruction, values, kinds[0])


def kinds_of(instruction: Instruction) -> list[np.dtype[Any]]:
    """The dtype that an instruction computes in, and those of its operands."""
    if not instruction.modifiers:
        raise EmulatorError(f"this instruction is not known: {instruction.text}")
    dtype, count = instruction.dtype, len(instruction.operands) - 1
    name = instruction.name
    if name == "cvt":
        return [DTYPES[instruction.modifiers[-2]], instruction.dtype]
    if name == "selp":
        return [dtype, dtype, dtype, DTYPES["pred"]]
    if name == "setp":
        return [dtype, dtype, dtype, *([DTYPES["pred"]] * (count - 2))]
    if name in {"shl", "shr"}:
        return [dtype, dtype, DTYPES["u32"]]
    if name in {"bfi", "bfe"}:
        return [*([dtype] * (count - 1)), DTYPES["u32"], DTYPES["u32"]]
    if name in {"mul", "mad"} and "wide" in instruction.modifiers:
        return [dtype, dtype, dtype, np.dtype(f"{dtype.kind}{2 * dtype.itemsize}")][: count + 1]
    return [dtype] * (count + 1)


def _convert(instruction: Instruction, values: list[Array], dtype: np.dtype[Any]) -> Array:
    (x,) = values
    rounding = next((_ROUNDED[m] for m in instruction.modifiers if m in _ROUNDED), None)
    if x.dtype.kind == "f" and dtype.kind in "iu":
        bounds = np.iinfo(dtype)
        whole = (rounding or np.trunc)(x).astype(np.longdouble)
        inside = np.clip(np.where(np.isnan(whole), 0, whole), bounds.min, bounds.max)
        return inside.astype(dtype)
    return rounding(x).astype(dtype) if rounding is not None else x.astype(dtype)


def _compare(instruction: Instruction, values: list[Array], _dtype: np.dtype[Any]) -> Array:
    x, y = values[:2]
    relation = instruction.modifiers[0]
    either = np.isnan(x) | np.isnan(y) if x.dtype.kind == "f" else np.False_
    if relation in {"nan", "num"}:
        found = either if relation == "nan" else ~either
    elif relation in _RELATIONS:
        found = _RELATIONS[relation](x, y) & ~either
    else:
        found = _RELATIONS[relation[:-1]](x, y) | either
    if len(values) == 3:
        joined = {"and": np.logical_and, "or": np.logical_or, "xor": np.logical_xor}[instruction.modifiers[1]]
        found = joined(found, values[2])
    return found


def fused(values: list[Array], dtype: np.dtype[Any]) -> Array:
    """``x * y + z`` with one rounding."""
    x, y, z = np.broadcast_arrays(*values)
    if dtype == np.float32:
        return _float32_of(x.astype(np.float64) * y.astype(np.float64), z.astype(np.float64))
    product = x * y
    error = _product_error(x, y, product)
    plain = product + z
    near, left = _summed(z, error)
    total, lost = _summed(product, near)
    exact = total + _odd(lost, left)  # rounded once, since what is added is rounded to odd
    fine = np.isfinite(exact) & np.isfinite(error)
    rest = (x.astype(np.longdouble) * y.astype(np.longdouble) + z).astype(dtype)
    return np.where(fine, np.where(error == 0, plain, exact), rest)


def _summed(x: Array, y: Array) -> tuple[Array, Array]:
    """A sum, and what rounding took from it."""
    total = x + y
    back = total - x
    return total, (x - (total - back)) + (y - back)


def _odd(x: Array, y: Array) -> Array:
    """A sum of float64 rounded to odd: what it is rounded to next is as if it were exact."""
    total, lost = _summed(x, y)
    bits = total.view(np.int64)
    odd = np.isfinite(total) & (lost != 0) & (bits & 1 == 0)
    step = np.where((lost > 0) == (total > 0), 1, -1)
    return np.where(odd, (bits + np.where(odd, step, 0)).view(np.float64), total)


def _float32_of(product: Array, term: Array) -> Array:
    """An exact product and a term as a float32, rounded once."""
    return _odd(product, term).astype(np.float32)


def _product_error(x: Array, y: Array, product: Array) -> Array:
    """What rounding took from a product, by halves whose products are exact."""
    factor = 134217729.0
    a, b = x * factor, y * factor
    high, other = a - (a - x), b - (b - y)
    low, rest = x - high, y - other
    return ((high * other - product) + high * rest + low * other) + low * rest


def _multiply(instruction: Instruction, values: list[Array], dtype: np.dtype[Any]) -> Array:
    x, y = values[:2]
    if dtype.kind == "f":
        return x * y if len(values) == 2 else fused(values, dtype)
    if "wide" in instruction.modifiers:
        wide = np.dtype(f"{dtype.kind}{2 * dtype.itemsize}")
        found = x.astype(wide) * y.astype(wide)
    elif "hi" in instruction.modifiers:
        bits, mask = 8 * dtype.itemsize, (1 << (8 * dtype.itemsize)) - 1
        pairs = zip(*(v.tolist() for v in np.broadcast_arrays(x, y)), strict=True)
        found = np.array([(a * b >> bits) & mask for a, b in pairs], f"u{dtype.itemsize}").view(dtype)
    else:
        found = x * y
    return found + values[2] if len(values) == 3 else found


def product(instruction: Instruction, values: list[Array], dtype: np.dtype[Any]) -> Array:
    """The low or high half of a product of integers."""
    with np.errstate(all="ignore"):
        return _multiply(instruction, values, dtype)


def _divide(_instruction: Instruction, values: list[Array], dtype: np.dtype[Any]) -> Array:
    x, y = values
    if dtype.kind == "f":
        return x / y
    safe = np.where(y == 0, 1, y).astype(dtype)
    if dtype.kind == "u":
        return np.where(y == 0, np.iinfo(dtype).max, x // safe).astype(dtype)
    quotient = x // safe
    towards_zero = quotient + ((x % safe != 0) & ((x < 0) != (safe < 0)))
    return np.where(y == 0, -1, towards_zero).astype(dtype)


def _remainder(_instruction: Instruction, values: list[Array], dtype: np.dtype[Any]) -> Array:
    x, y = values
    return np.fmod(x, np.where(y == 0, 1, y).astype(dtype))


def _shift(instruction: Instruction, values: list[Array], dtype: np.dtype[Any]) -> Array:
    x, count = values
    bits = 8 * dtype.itemsize
    inside = np.minimum(count, bits - 1).astype(dtype)
    if instruction.name == "shl":
        return np.where(count >= bits, 0, x << inside).astype(dtype)
    beyond = x >> np.array(bits - 1, dtype) if dtype.kind == "i" else np.zeros_like(x)
    return np.where(count >= bits, beyond, x >> inside).astype(dtype)


def _insert(_instruction: Instruction, values: list[Array], dtype: np.dtype[Any]) -> Array:
    """Bits of the first in place of bits of the second."""
    part, whole, start, count = values
    mask = np.where(count >= 8 * dtype.itemsize, ~dtype.type(0), (dtype.type(1) << count.astype(dtype)) - dtype.type(1))
    at = start.astype(dtype)
    return (whole & ~(mask << at)) | ((part & mask) << at)


def _permute(_instruction: Instruction, values: list[Array], _dtype: np.dtype[Any]) -> Array:
    """Four bytes of eight, or the sign of one, by the digits of the last operand."""
    low, high, chosen = (v.astype(np.uint64) for v in values)
    both = low | (high << np.uint64(32))
    found = np.zeros_like(both)
    for k in range(4):
        digit = (chosen >> np.uint64(4 * k)) & np.uint64(15)
        byte = (both >> ((digit & np.uint64(7)) * np.uint64(8))) & np.uint64(255)
        sign = np.where(byte & np.uint64(128), np.uint64(255), np.uint64(0))
        found |= np.where(digit & np.uint64(8), sign, byte) << np.uint64(8 * k)
    return found.astype(np.uint32)


def _leading_zeros(_instruction: Instruction, values: list[Array], dtype: np.dtype[Any]) -> Array:
    bits = 8 * dtype.itemsize
    return np.array([bits - int(v).bit_length() for v in np.atleast_1d(values[0]).tolist()], np.uint32)


def _exact(function: Callable[..., Array]) -> Callable[..., Array]:
    """A function of operands of one kind."""

    def run(_instruction: Instruction, values: list[Array], dtype: np.dtype[Any]) -> Array:
        return np.asarray(function(*values)).astype(dtype, copy=False)

    return run


_RELATIONS: dict[str, Callable[..., Array]] = {
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
    "lo": np.less,
    "ls": np.less_equal,
    "hi": np.greater,
    "hs": np.greater_equal,
}
_TABLE: dict[str, Callable[..., Array]] = {
    "abs": _exact(np.abs),
    "add": _exact(np.add),
    "and": _exact(np.bitwise_and),
    "bfi": _insert,
    "clz": _leading_zeros,
    "copysign": _exact(lambda sign, x: np.copysign(x, sign)),
    "cvt": _convert,
    "cvta": _exact(lambda x: x),
    "div": _divide,
    "fma": lambda _, values, dtype: fused(values, dtype),
    "mad": _multiply,
    "max": _exact(lambda x, y: np.fmax(x, y) if x.dtype.kind == "f" else np.maximum(x, y)),
    "min": _exact(lambda x, y: np.fmin(x, y) if x.dtype.kind == "f" else np.minimum(x, y)),
    "mov": _exact(lambda x: x),
    "mul": _multiply,
    "neg": _exact(np.negative),
    "not": _exact(np.invert),
    "or": _exact(np.bitwise_or),
    "prmt": _permute,
    "rcp": _exact(lambda x: 1 / x),
    "rem": _remainder,
    "selp": _exact(lambda yes, no, which: np.where(which, yes, no)),
    "setp": _compare,
    "shl": _shift,
    "shr": _shift,
    "sqrt": _exact(np.sqrt),
    "sub": _exact(np.subtract),
    "xor": _exact(np.bitwise_xor),
}
