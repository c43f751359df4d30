"""Python's numbers as operands: huge integers, truth values in arithmetic, complex numbers in comparisons, integers divided by zero."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tensormagic.ir.errors import DTypeError
from tensormagic.ir.node import Node, as_size
from tensormagic.ir.size import is_at_least
from tensormagic.ops.effects.checks import not_zero
from tensormagic.ops.leaf import constant_value
from tensormagic.ops.pointwise import astype

_COMPARISONS = {"less", "less_equal", "greater", "greater_equal", "equal", "not_equal"}
_LOGIC = {
    "bitwise_and",
    "bitwise_or",
    "bitwise_xor",
    "logical_and",
    "logical_or",
    "logical_xor",
    "logical_not",
    "where",
    *_COMPARISONS,
}

_DIVISIONS = {
    "divide": "division by zero",
    "floor_divide": "integer division or modulo by zero",
    "remainder": "integer modulo by zero",
}


def is_huge(value: Any) -> bool:
    """Whether a value is a Python integer that int64 does not hold."""
    return type(value) is int and not -(2**63) <= value < 2**63


def representable(value: int, others: Sequence[np.dtype[Any]], op: str) -> Any:
    """A huge integer as an operand beside others, as NumPy takes it; an OverflowError where it does not."""
    if any(d.kind in "fc" for d in others):
        return float(value)
    if op in _COMPARISONS:  # beyond every integer
        return (
            np.float64(np.inf if value > 0 else -np.inf)
            if not (np.uint64 in others and 0 <= value < 2**64)
            else np.uint64(value)
        )
    if np.uint64 in others and 0 <= value < 2**64:
        return np.uint64(value)
    raise OverflowError("Python int too large to convert to C long")


def as_python(op: str, nodes: Sequence[Node]) -> list[Node]:
    """Operands that are all Python numbers: truth values count as integers, and complex numbers have no order."""
    if any(n.type.dtype.kind == "c" for n in nodes) and op in {
        "less",
        "less_equal",
        "greater",
        "greater_equal",
        "floor_divide",
        "remainder",
    }:
        raise DTypeError(f"{op} is not supported between complex numbers", "Compare their absolute values.")
    if op not in _LOGIC and all(n.type.dtype.kind == "b" for n in nodes):
        nodes = [astype(n, np.int64) for n in nodes]
    if op in _DIVISIONS and all(n.type.dtype.kind in "biu" for n in nodes):
        return [nodes[0], _divisor(nodes[1], _DIVISIONS[op])]
    return list(nodes)


def _divisor(node: Node, message: str) -> Node:
    """An integer that Python divides by: zero is an error when the graph runs, where it is not known to be none."""
    size, value = as_size(node), constant_value(node)
    known = value is not None and value.all()
    return node if known or (size is not None and is_at_least(size, 1)) else not_zero(node, message)
