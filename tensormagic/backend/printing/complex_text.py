"""Complex numbers in kernels: which functions have code for them, and that code. Sums stay with NumPy, which adds pairwise."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensormagic.ir.node import Node
from tensormagic.ops.leaf import constant_value
from tensormagic.ops.pointwise import ASTYPE, Pointwise
from tensormagic.ops.scalars.scalar import power, square

COMPLEX = np.dtype("c16")


def is_complex(node: Node) -> bool:
    """Return whether a node has complex operands or results."""
    return any(t.dtype == COMPLEX for n in (node, *node.args) for t in n.types)


def source_of(node: Node) -> str | None:
    """Return the scalar expression of a pointwise node, or None if NumPy computes it."""
    op: Any = node.op
    if not is_complex(node):
        return op.scalar_source(node)
    if op is ASTYPE:
        given = node.args[0].type.dtype
        return None if node.type.dtype != COMPLEX else "{0}" if given == COMPLEX else "complex({0}, 0.0)"
    if op is power:
        value = constant_value(node.args[1])
        squared = value is not None and not value.shape and value == 2
        return _source(square if squared else power, node)
    return _source(op, node)


def _source(op: Pointwise, node: Node) -> str | None:
    """Return the expression for complex numbers; for array elements another one, as NumPy rounds their products once less."""
    return (op.complex_elements if node.type.form == "array" else "") or op.complex_source or None
