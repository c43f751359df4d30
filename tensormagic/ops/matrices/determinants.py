"""Determinants, and the matrix of cofactors that their derivatives need."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tensormagic.ir.node import Node, make
from tensormagic.ir.type import Type
from tensormagic.ops.contract import matmul
from tensormagic.ops.matrices.linalg import inv
from tensormagic.ops.matrices.matrix import (
    as_column,
    one,
    prepared,
    real_dtype,
    square,
    square_guards,
    square_type,
    swap,
    trace_of_product,
    typed,
)
from tensormagic.ops.op import Tangent, Value
from tensormagic.ops.opaque import Opaque, in_stack, items
from tensormagic.ops.pointwise import astype
from tensormagic.ops.scalars.scalar import imag, real
from tensormagic.ops.tangents import total


def _adjugate_numpy(a: Value, *directions: Value) -> Value:
    """Return the adjugate by singular values, which is accurate for singular matrices, too.

    For a diagonal matrix it holds all products but for one factor.
    """

    def others(
        s: Value,
    ) -> (
        Value
    ):  # the product of the others, for each number; nested, since the source of this function is shown by itself
        before, after = np.ones_like(s), np.ones_like(s)
        before[..., 1:] = np.cumprod(s[..., :-1], axis=-1)
        after[..., :-1] = np.cumprod(s[..., :0:-1], axis=-1)[..., ::-1]
        return before * after

    u, s, vh = np.linalg.svd(a)
    count = s.shape[-1]
    adjoint_u, v = np.conjugate(np.swapaxes(u, -1, -2)), np.conjugate(np.swapaxes(vh, -1, -2))
    sign = np.linalg.det(u) * np.linalg.det(vh)
    middle = others(s)[..., :, None] * adjoint_u
    for direction in directions:
        moved = adjoint_u @ direction @ v
        pairs = np.zeros(
            (*s.shape, count), s.dtype
        )  # the product of the others, for each pair; 0 for a number with itself
        for k in range(count):
            rest = s.copy()
            rest[..., k] = 1
            pairs[..., k, :] = others(rest)
            pairs[..., k, k] = 0
        changed = -pairs * moved
        own = np.sum(pairs * np.diagonal(moved, axis1=-2, axis2=-1)[..., None, :], axis=-1)
        changed[..., range(count), range(count)] = own
        middle = changed @ adjoint_u
    return (sign[..., None, None] * np.matmul(v, middle)).astype(a.dtype, copy=False)


def _adjugate_tangent(node: Node, tangents: Sequence[Tangent]) -> Tangent:
    a, t = node.args[0], tangents[0]
    if len(node.args) == 1:
        return None if t is None else make(ADJUGATE, (a, t))
    direction, moved = node.args[1], tangents[1]
    terms = [] if moved is None else [make(ADJUGATE, (a, moved))]
    if t is not None:  # the second derivative uses the inverse
        whole, change, inverse = make(ADJUGATE, (a,)), make(ADJUGATE, (a, t)), inv(a)
        turned_inverse = matmul(matmul(inverse, t), inverse)
        terms.append(_spread(inverse, trace_of_product(change, direction)))
        terms.append(-_spread(turned_inverse, trace_of_product(whole, direction)))
        terms.append(matmul(matmul(turned_inverse, direction), whole) - matmul(matmul(inverse, direction), change))
    return total(terms)


def _spread(x: Node, factor: Node) -> Node:
    """Return matrices, each times its own number."""
    return x * as_column(as_column(factor))


def _adjugate_back(node: Node, cotangent: Node, linear: Sequence[bool]) -> Sequence[Tangent]:
    del linear  # it is linear in the direction only
    return [None, swap(make(ADJUGATE, (node.args[0], swap(cotangent))))]


ADJUGATE = Opaque(
    name="adjugate",
    cubed=350,
    split_rows=in_stack,
    types=square_type,
    numpy=_adjugate_numpy,
    tangent=_adjugate_tangent,
    back=_adjugate_back,
    check=square_guards,
    doc="The transposed matrix of cofactors: det(a) times the inverse, and defined for singular matrices; or its derivative.",
)


def _det_tangent(node: Node, tangents: Sequence[Tangent]) -> Tangent:
    a, t = one(node, tangents)
    return trace_of_product(make(ADJUGATE, (a,)), t)


DET = Opaque(
    name="det",
    in_numpy="np.linalg.det",
    cubed=20,
    split_rows=in_stack,
    types=lambda args, _params: typed(args[0].type.dtype, square(args[0])[0]),
    numpy=np.linalg.det,
    tangent=_det_tangent,
    check=square_guards,
    doc="The determinant.",
)


def det(a: Node) -> Node:
    """Return ``np.linalg.det``; its first two derivatives hold for singular matrices too, higher ones raise there."""
    return make(DET, (prepared(a),))


def _slogdet_types(args: tuple[Node, ...], _params: Mapping[str, Any]) -> tuple[Type, ...]:
    lead, _ = square(args[0])
    dtype = args[0].type.dtype
    return typed(dtype, lead), typed(real_dtype(dtype), lead)


def _slogdet_tangent(node: Node, tangents: Sequence[Tangent]) -> tuple[Tangent, ...]:
    a, t = one(node, tangents)
    change = trace_of_product(inv(a), t)
    if a.type.dtype.kind != "c":
        return None, change
    sign, _ = items(node)
    return sign * (astype(imag(change), sign.type.dtype) * 1j), real(change)


SLOGDET = Opaque(
    name="slogdet",
    in_numpy="np.linalg.slogdet",
    weight=150,
    cubed=20,
    split_rows=in_stack,
    types=_slogdet_types,
    numpy=np.linalg.slogdet,
    tangent=_slogdet_tangent,
    check=square_guards,
    doc="The sign of the determinant, and the logarithm of its absolute value.",
)


def slogdet(a: Node) -> tuple[Node, ...]:
    """Return ``np.linalg.slogdet``: sign and logarithm."""
    return items(make(SLOGDET, (prepared(a),)))
