"""Convolution of rows: bilinear, so that its derivative and its transpose are convolutions again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tensormagic.ir.errors import ShapeError
from tensormagic.ir.node import Node, make
from tensormagic.ir.type import Size, Type
from tensormagic.ops.move import flip, lead, slice_
from tensormagic.ops.op import Tangent, Value
from tensormagic.ops.opaque import Opaque
from tensormagic.ops.pointwise import astype
from tensormagic.ops.tangents import total


def _type(args: tuple[Node, ...], _params: Mapping[str, Any]) -> Type:
    a, v = (x.type for x in args)
    if a.shape[-1] == 0 or v.shape[-1] == 0:
        raise ShapeError(f"{'a' if a.shape[-1] == 0 else 'v'} cannot be empty")
    return Type(a.dtype, (*a.shape[:-1], a.shape[-1] + v.shape[-1] - 1))


def _numpy(a: Value, v: Value) -> Value:
    if np.ndim(a) == 1:
        return np.convolve(a, v)
    shape = (*a.shape[:-1], a.shape[-1] + v.shape[-1] - 1)
    return np.array([_numpy(x, y) for x, y in zip(a, v, strict=True)], a.dtype).reshape(shape)


def _tangent(node: Node, tangents: Sequence[Tangent]) -> Tangent:
    a, v = node.args
    left, right = tangents
    parts = [] if left is None else [make(CONVOLVE, (left, v))]
    parts += [] if right is None else [make(CONVOLVE, (a, right))]
    return total(parts)


def _back(node: Node, cotangent: Node, linear: Sequence[bool]) -> Sequence[Tangent]:
    """Return the cotangent of each operand: the valid part of the convolution with the other operand reversed."""

    def part(own: Node, other: Node) -> Node:
        axis = own.type.ndim - 1
        wide = make(CONVOLVE, (cotangent, flip(other, (axis,))))
        whole: list[tuple[Size, Size, int]] = [(0, s, 1) for s in own.type.shape[:-1]]
        return slice_(wide, (*whole, (other.type.shape[-1] - 1, own.type.shape[-1], 1)))

    a, v = node.args
    return part(a, v) if linear[0] else None, part(v, a) if linear[1] else None


def _stacked(_node: Node, args: Sequence[Node], batched: Sequence[bool], size: Size) -> Node:
    return make(CONVOLVE, [lead(a, b, size) for a, b in zip(args, batched, strict=True)])


CONVOLVE = Opaque(
    name="convolve",
    types=_type,
    numpy=_numpy,
    tangent=_tangent,
    back=_back,
    stacked=_stacked,
    doc="The full convolution of the last axes of two arrays; the axes before are equal.",
)


def convolve(a: Node, v: Node) -> Node:
    """Return the full convolution of two rows, in their common dtype."""
    dtype = np.result_type(a.type.dtype, v.type.dtype)
    return make(CONVOLVE, (astype(a, dtype), astype(v, dtype)))
