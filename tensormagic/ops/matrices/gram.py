"""The product of a transposed matrix with the matrix itself, which takes half the work of other products."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tensormagic.ir.node import Node, make
from tensormagic.ir.type import Type
from tensormagic.ops.contract import matmul
from tensormagic.ops.matrices.matrix import matrix, swap
from tensormagic.ops.op import Tangent, Value
from tensormagic.ops.opaque import Opaque


def _type(args: tuple[Node, ...], _params: Mapping[str, Any]) -> Type:
    lead, _, columns = matrix(args[0])
    return args[0].type.with_shape((*lead, columns, columns))


def _numpy(a: Value) -> Value:
    array = np.asarray(a)
    return np.matmul(array.swapaxes(-1, -2), array)  # with one array on both sides NumPy calls BLAS's symmetric product


def _tangent(node: Node, tangents: Sequence[Tangent]) -> Tangent:
    (a,), (moved,) = node.args, tangents
    if moved is None:
        return None
    half = matmul(swap(a), moved)
    return half + swap(half)


GRAM = Opaque(name="gram", cubed=20, types=_type, numpy=_numpy, tangent=_tangent, doc="a.T @ a, for real matrices.")


def gram(a: Node) -> Node:
    """Return ``a.T @ a``."""
    return make(GRAM, (a,))
