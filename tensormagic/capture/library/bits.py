"""The bits of numbers: packed and unpacked, and the parts of a floating number; and zeros at the ends of an array."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from tensormagic.capture.arguments import done, strong, tensor
from tensormagic.capture.names import implements
from tensormagic.capture.refusal import refuse
from tensormagic.capture.value import Tensor, node_of, read_only, wrap
from tensormagic.ir.errors import DTypeError
from tensormagic.ops import bits
from tensormagic.ops.move import broadcast, broadcast_shapes, reshape
from tensormagic.ops.pointwise import astype
from tensormagic.ops.scalars import scalar

_ORDERS = {"big", "little"}


def _flat(x: Any, axis: Any, bitorder: str, name: str) -> tuple[Any, int]:
    if bitorder not in _ORDERS:
        message = "'order' must be either 'little' or 'big'"
        raise ValueError(message)
    node = node_of(x)
    axis = None if axis is None else operator.index(axis)
    if axis is None or not node.type.ndim:
        return reshape(node, (node.type.size,)), 0
    if node.type.dtype.kind not in "biu":
        raise DTypeError(f"{name} takes integers and truth values")
    return node, axis


@implements(np.packbits)
def packbits(a: Any, axis: Any = None, bitorder: str = "big") -> Tensor:
    """``np.packbits``: whether elements are zero, eight in a byte."""
    node, axis = _flat(a, axis, bitorder, "np.packbits")
    if node.type.dtype.kind not in "biu":
        raise DTypeError("Expected an input array of integer or boolean data type")
    return done(bits.packbits(node, axis, bitorder))


@implements(np.unpackbits)
def unpackbits(a: Any, axis: Any = None, count: Any = None, bitorder: str = "big") -> Tensor:
    """``np.unpackbits``: the bits of bytes; of the first ``count`` of them."""
    node, axis = _flat(a, axis, bitorder, "np.unpackbits")
    if node.type.dtype != np.uint8:
        raise DTypeError("Expected an input array of unsigned byte data type")
    if count is not None:
        refuse("np.unpackbits with count", "Take the first of all bits by a slice.")
    return done(bits.unpackbits(node, axis, bitorder))


@implements(np.frexp)
def frexp(x: Any) -> tuple[Tensor, Tensor]:
    """``np.frexp``: a fraction and a power of two."""
    node = strong(x).node
    dtype = np.frexp.resolve_dtypes((node.type.dtype, None, None))[0]
    fraction, exponent = bits.frexp(astype(node, dtype))
    return done(fraction), done(exponent)


@implements(np.ldexp)
def ldexp(x1: Any, x2: Any) -> Tensor:
    """``np.ldexp``: a number times a power of two."""
    x, exponent = strong(x1).node, strong(x2).node
    dtype, whole, _ = np.ldexp.resolve_dtypes((x.type.dtype, exponent.type.dtype, None))
    shape = broadcast_shapes([x.type.shape, exponent.type.shape])
    return done(bits.ldexp(broadcast(astype(x, dtype), shape), astype(exponent, whole)))


@implements(np.trim_zeros)
def trim_zeros(filt: Any, trim: str = "fb", axis: Any = None) -> Any:
    """``np.trim_zeros`` of a row: without the zeros at its ends, as an array of its own, which cannot be stored through."""
    row = tensor(filt)
    if row.ndim != 1 or axis not in {None, 0, -1}:
        refuse("np.trim_zeros of more than one axis", "Trim a row.")
    sides = trim.lower()
    if sides not in {"fb", "bf", "f", "b"}:
        message = f"unexpected character(s) in `trim`: {trim!r}"
        raise ValueError(message)
    other: Any = wrap(scalar.not_equal(row.node, 0))
    before, behind = other.cumsum() > 0, other[::-1].cumsum()[::-1] > 0
    return read_only(row[before & behind if len(sides) == 2 else before if sides == "f" else behind])
