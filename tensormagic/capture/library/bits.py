"""The bits of numbers: packed and unpacked, and the parts of a float; and zeros at the ends of an array."""

from __future__ import annotations

import inspect
import operator
from typing import Any, cast

import numpy as np

from tensormagic.capture.errors.refusal import needs_value, refuse
from tensormagic.capture.names import implements
from tensormagic.capture.values.arguments import done, extent_number, strong, tensor
from tensormagic.capture.values.operands import node_of
from tensormagic.capture.values.value import Tensor, wrap
from tensormagic.ir.errors import DTypeError
from tensormagic.ops import bits
from tensormagic.ops.form import to_form
from tensormagic.ops.move import broadcast, reshape
from tensormagic.ops.move_kind import broadcast_shapes
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
    """Implement ``np.packbits``: whether elements are zero, eight in a byte."""
    node, axis = _flat(a, axis, bitorder, "np.packbits")
    if node.type.dtype.kind not in "biu":
        raise DTypeError("Expected an input array of integer or boolean data type")
    return done(bits.packbits(node, axis, bitorder))


@implements(np.unpackbits)
def unpackbits(a: Any, axis: Any = None, count: Any = None, bitorder: str = "big") -> Tensor:
    """Implement ``np.unpackbits``: the bits of bytes; of the first ``count`` of them."""
    node, axis = _flat(a, axis, bitorder, "np.unpackbits")
    if node.type.dtype != np.uint8:
        raise DTypeError("Expected an input array of unsigned byte data type")
    found = done(bits.unpackbits(node, axis, bitorder))
    if count is None:
        return found
    place, number = axis % found.ndim, operator.index(count)
    there = extent_number(found.node, place)
    if number < -there:
        raise ValueError(f"-count larger than number of elements (count={number})")
    own = found[(slice(None),) * place + (slice(None, number),)]
    missing = max(number - there, 0)
    padded: Any = np.pad(cast("Any", own), [(0, missing if k == place else 0) for k in range(own.ndim)])
    return padded if missing else own.copy()


@implements(np.frexp)
def frexp(x: Any) -> tuple[Tensor, Tensor]:
    """Implement ``np.frexp``: a fraction and a power of two."""
    node = strong(x).node
    dtype = np.frexp.resolve_dtypes((node.type.dtype, None, None))[0]
    fraction, exponent = (n if n.type.shape else to_form(n, "scalar") for n in bits.frexp(astype(node, dtype)))
    return done(fraction), done(exponent)


@implements(np.ldexp)
def ldexp(x1: Any, x2: Any) -> Tensor:
    """Implement ``np.ldexp``: a number times a power of two."""
    x, exponent = strong(x1).node, strong(x2).node
    dtype, whole, _ = np.ldexp.resolve_dtypes((x.type.dtype, exponent.type.dtype, None))
    shape = broadcast_shapes([x.type.shape, exponent.type.shape])
    return done(bits.ldexp(broadcast(astype(x, dtype), shape), astype(exponent, whole)))


@implements(np.trim_zeros)
def trim_zeros(filt: Any, trim: str = "fb", axis: Any = None) -> Any:
    """Implement ``np.trim_zeros``: a view of the array without the zeros at its ends; a list stays a list."""
    array = tensor(filt)
    several = array.ndim != 1 or axis not in {None, 0, -1}
    if several and "axis" not in inspect.signature(np.trim_zeros).parameters:  # as in NumPy before 2.2
        refuse("np.trim_zeros of more than one axis", "Trim a row.")
    sides = trim.lower()
    if sides not in {"fb", "bf", "f", "b"}:
        message = f"unexpected character(s) in `trim`: {trim!r}"
        raise ValueError(message)
    axes = range(array.ndim) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    parts = {k % array.ndim: _between(array, k % array.ndim, sides) for k in map(operator.index, axes)}
    if isinstance(filt, list | tuple):  # a slice of it, with data-dependent bounds
        needs_value("np.trim_zeros of a list", "Give it an array: np.trim_zeros(np.array(values)).")
        places: list[Any] = [slice(*(None if v is None else int(v) for v in (p.start, p.stop))) for p in parts.values()]
        at: Any = tuple(places) if len(places) > 1 else places[0] if places else None
        return filt if at is None else filt[at]
    for place, part in parts.items():
        array = array[(slice(None),) * place + (part,)]
    return array


def _between(array: Tensor, place: int, sides: str) -> slice:
    """Return the slice between the first and the last place along an axis where not all is zero."""
    others = tuple(k for k in range(array.ndim) if k != place)
    other: Any = wrap(scalar.not_equal(array.node, 0))
    other = other.any(axis=others) if others else other
    first = (other.cumsum() == 0).sum() if "f" in sides else None
    return slice(first, (other[::-1].cumsum() > 0).sum() if "b" in sides else None)
