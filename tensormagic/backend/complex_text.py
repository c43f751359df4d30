"""Complex numbers in kernels: which functions of them have code, and its text. Sums of them stay with NumPy, which adds in pairs."""

from __future__ import annotations

import numpy as np

from tensormagic.ir.node import Node
from tensormagic.ops.leaf import constant_value
from tensormagic.ops.pointwise import ASTYPE
from tensormagic.ops.scalars.scalar import power

COMPLEX = np.dtype("c16")
_SOURCES = {
    "add": "{0} + {1}",
    "subtract": "{0} - {1}",
    "multiply": "{0} * {1}",
    "divide": "complex_divide({0}, {1})",
    "reciprocal": "complex_reciprocal({0})",
    "negative": "-{0}",
    "positive": "{0}",
    "square": "{0} * {0}",
    "conjugate": "{0}.conjugate()",
    "real": "{0}.real",
    "imag": "{0}.imag",
    "from_parts": "complex({0}, {1})",
    "absolute": "hypot({0}.real, {0}.imag)",
    "exp": "complex_exp({0})",
    "equal": "{0} == {1}",
    "not_equal": "{0} != {1}",
    "isnan": "{0}.real != {0}.real or {0}.imag != {0}.imag",
    "isinf": "abs({0}.real) == np.inf or abs({0}.imag) == np.inf",
    "isfinite": "abs({0}.real) < np.inf and abs({0}.imag) < np.inf",
    "where": "{1} if {0} else {2}",
    "stop_gradient": "{0}",
}
_OF_ARRAYS = {"multiply": "complex_multiply({0}, {1})", "square": "complex_multiply({0}, {0})"}


def is_complex(node: Node) -> bool:
    """Whether a node takes or gives complex numbers."""
    return any(t.dtype == COMPLEX for n in (node, *node.args) for t in n.types)


def source_of(node: Node) -> str | None:
    """The scalar expression of a pointwise node; None where it runs in NumPy."""
    if not is_complex(node):
        return node.op.scalar_source(node)  # type: ignore[attr-defined,no-any-return]
    if node.op is ASTYPE:
        given = node.args[0].type.dtype
        return None if node.type.dtype != COMPLEX else "{0}" if given == COMPLEX else "complex({0}, 0.0)"
    if node.op is power:
        value = constant_value(node.args[1])
        squared = value is not None and not value.shape and value == 2
        return _source("square", node) if squared else None
    return _source(node.op.name, node)


def _source(name: str, node: Node) -> str | None:
    """NumPy's products of arrays are not those of numbers: it rounds them once less."""
    return (_OF_ARRAYS.get(name) if node.type.form == "array" else None) or _SOURCES.get(name)
