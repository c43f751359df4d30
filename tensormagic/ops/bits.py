"""The bits of numbers: packed into bytes, taken out of them, read as another dtype, and the parts of a floating number."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tensormagic.ir.node import Node, make
from tensormagic.ir.size import apply
from tensormagic.ir.type import Size, Type
from tensormagic.ops.move import broadcast, lead
from tensormagic.ops.move_kind import normalise_axis
from tensormagic.ops.op import Tangent, Value
from tensormagic.ops.opaque import Opaque, item, items
from tensormagic.ops.scalars import scalar

_BYTE = np.dtype(np.uint8)


def _resized(args: tuple[Node, ...], axis: int, extent: Size) -> Type:
    shape = args[0].type.shape
    return Type(_BYTE, (*shape[:axis], extent, *shape[axis + 1 :]))


def _packed_type(args: tuple[Node, ...], params: Mapping[str, Any]) -> Type:
    extent = args[0].type.shape[params["axis"]]
    return _resized(args, params["axis"], apply("floordiv", extent + 7, 8))


def _unpacked_type(args: tuple[Node, ...], params: Mapping[str, Any]) -> Type:
    return _resized(args, params["axis"], args[0].type.shape[params["axis"]] * 8)


def _whole(_node: Node, _tangents: Sequence[Tangent]) -> Tangent:
    return None


PACK = Opaque(
    name="packbits",
    types=_packed_type,
    numpy=np.packbits,
    tangent=_whole,
    doc="Eight truth values in each byte.",
)
UNPACK = Opaque(
    name="unpackbits",
    types=_unpacked_type,
    numpy=np.unpackbits,
    tangent=_whole,
    doc="The eight bits of each byte.",
)


def packbits(x: Node, axis: int, bitorder: str) -> Node:
    """Return ``np.packbits`` along an axis."""
    return make(PACK, (x,), axis=normalise_axis(axis, x.type.ndim), bitorder=bitorder)


def unpackbits(x: Node, axis: int, bitorder: str) -> Node:
    """Return ``np.unpackbits`` along an axis."""
    return make(UNPACK, (x,), axis=normalise_axis(axis, x.type.ndim), bitorder=bitorder)


# the same bits as another dtype ---------------------------------------------------------------------------------------


def _as_other(x: Value, dtype: str) -> Value:
    return np.asarray(x).view(dtype)[()] if np.ndim(x) == 0 else np.asarray(x).view(dtype)


REINTERPRET = Opaque(
    name="reinterpret",
    types=lambda args, params: Type(np.dtype(params["dtype"]), args[0].type.shape, args[0].type.form),
    numpy=_as_other,
    doc="The same bits as elements of another dtype of the same size.",
)


def reinterpret(x: Node, dtype: np.dtype[Any]) -> Node:
    """Return ``x.view(dtype)`` for a dtype of the same size."""
    return x if x.type.dtype == dtype else make(REINTERPRET, (x,), dtype=dtype.str)


# a fraction and a power of two ----------------------------------------------------------------------------------------


def _parts_types(args: tuple[Node, ...], _params: Mapping[str, Any]) -> tuple[Type, ...]:
    t = args[0].type
    return Type(t.dtype, t.shape, t.form), Type(np.dtype(np.int32), t.shape, t.form)


def _scaled_type(args: tuple[Node, ...], _params: Mapping[str, Any]) -> Type:
    t = args[0].type
    return Type(t.dtype, t.shape, t.form)


def _scaled_tangent(node: Node, tangents: Sequence[Tangent]) -> Tangent:
    return None if tangents[0] is None else make(LDEXP, (tangents[0], node.args[1]))


def _scaled_back(node: Node, cotangent: Node, _linear: Sequence[bool]) -> Sequence[Tangent]:
    return make(LDEXP, (cotangent, node.args[1])), None


def _scaled_stacked(_node: Node, args: Sequence[Node], batched: Sequence[bool], size: Size) -> Node:
    return make(LDEXP, [lead(a, b, size) for a, b in zip(args, batched, strict=True)])


LDEXP = Opaque(
    name="ldexp",
    types=_scaled_type,
    numpy=np.ldexp,
    tangent=_scaled_tangent,
    back=_scaled_back,
    stacked=_scaled_stacked,
    doc="A floating number times a power of two.",
)


def ldexp(x: Node, exponent: Node) -> Node:
    """Return ``np.ldexp`` of operands of one shape."""
    return make(LDEXP, (x, broadcast(exponent, x.type.shape)))


def _parts_tangent(node: Node, tangents: Sequence[Tangent]) -> tuple[Tangent, ...]:
    moved = tangents[0]
    return None if moved is None else make(LDEXP, (moved, scalar.negative(item(node, 1)))), None


FREXP = Opaque(
    name="frexp",
    types=_parts_types,
    numpy=np.frexp,
    tangent=_parts_tangent,
    doc="A fraction from 1/2 to 1, and an exponent: x is the fraction times 2 to the exponent.",
)


def frexp(x: Node) -> tuple[Node, ...]:
    """Return ``np.frexp`` of a floating array or number."""
    return items(make(FREXP, (x,)))
