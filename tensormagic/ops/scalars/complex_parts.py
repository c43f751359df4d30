"""Complex numbers built from their parts; a product with the imaginary unit would turn infinite parts into nan."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tensormagic.ir.node import Node
from tensormagic.ops.op import Tangent, Value
from tensormagic.ops.pointwise import Signature, Weak
from tensormagic.ops.scalars.function import float_loop2, scalar_op
from tensormagic.ops.scalars.scalar import imag, negative, real


def _numpy(first: Value, second: Value) -> Value:
    dtype = np.result_type(np.complex64, first, second)
    made: np.ndarray[Any, Any] = np.empty(np.broadcast_shapes(np.shape(first), np.shape(second)), dtype)
    made.real, made.imag = first, second
    return made[()]


def _complex(*parts: Any) -> np.dtype[Any]:
    return np.result_type(np.complex64, *parts)


def _dtypes(operands: Sequence[Weak]) -> Signature:
    (part, _), _ = float_loop2(operands)
    part = np.result_type(part, np.float32)
    return (part, part), _complex(part)


def _tangent(_node: Node, tangents: Sequence[Tangent]) -> Tangent:
    first, second = tangents
    return from_parts(0.0 if first is None else first, 0.0 if second is None else second)


from_parts = scalar_op(
    "from_parts",
    _numpy,
    arity=2,
    dtypes=_dtypes,
    source={},
    linearise=_tangent,
    back=lambda _node, ct, linear: (real(ct) if linear[0] else None, negative(imag(ct)) if linear[1] else None),
    complex_source="complex({0}, {1})",
    doc="The complex number of a real and an imaginary part.",
)
