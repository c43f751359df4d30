"""Half floats in kernels: they are what memory holds, and are computed with in single precision.

Each operation is done in single precision and rounded to half, as NumPy does it: values that nothing stores are rounded, too. A sum
keeps single precision until its end. What has no such form (stores, products of matrices, running sums) stays with the library.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tensormagic.backend.kinds import BY_KERNELS
from tensormagic.ir import site
from tensormagic.ir.node import Node, make, rebuild, replaced, topological
from tensormagic.ops.fold_kind import Fold, Row
from tensormagic.ops.leaf import CONSTANT, constant
from tensormagic.ops.move_kind import Move
from tensormagic.ops.pointwise import ASTYPE, Pointwise

HALF, SINGLE, DOUBLE = np.dtype(np.float16), np.dtype(np.float32), np.dtype(np.float64)


def in_single(results: Sequence[Node]) -> list[Node]:
    """The same results, with half floats computed in single precision wherever kernels can."""
    nodes = topological(results)
    if not any(t.dtype == HALF for n in nodes for t in n.types):
        return list(results)
    memo: dict[Node, Node] = {}
    for node in nodes:
        memo[node] = _of(node, memo)
        if memo[node] is not node:
            site.inherit(memo[node], node)
    return [memo[r] for r in results]


def _of(node: Node, memo: dict[Node, Node]) -> Node:
    takes = [a for a in node.args if a.type.dtype == HALF] if all(len(a.types) == 1 for a in node.args) else []
    gives = len(node.types) == 1 and node.type.dtype == HALF
    if not takes and not (gives and node.op is ASTYPE):
        return replaced(node, memo)
    args = [memo[a] for a in node.args]
    if node.op is ASTYPE:
        return _cast(args[0], node)
    op: Any = node.op
    if not _is_done(op):
        return replaced(node, memo)
    wide = rebuild(node, [_wide(a) for a in args], memo)
    if isinstance(op, Pointwise) and op.scalar_source(wide) is None:
        return replaced(node, memo)
    site.inherit(wide, node)
    return _converted(wide, HALF) if gives else wide


def _is_done(op: Any) -> bool:
    if isinstance(op, Fold):
        return op.positional or (op.step is not None and not isinstance(op, Row))
    return isinstance(op, Pointwise) or (isinstance(op, Move) and op.index is not None)


def _cast(x: Node, node: Node) -> Node:
    """A conversion from half or to half."""
    before, after = x.type.dtype, node.type.dtype
    if before == after or before.kind == "c" or after.kind == "c" or node.type.form == "python":
        return rebuild(node, [x])
    if before == HALF:
        wide = _wide(x)
        found = wide if after == SINGLE else make(ASTYPE, [wide], dtype=after)
        return found if after == SINGLE or ASTYPE.scalar_source(found) is not None else rebuild(node, [x])
    if x.op is CONSTANT and not x.type.shape:
        return constant(x["bits"].array()[()].astype(HALF))
    if before not in {SINGLE, DOUBLE}:  # integers beyond 2**24 are infinite in half either way
        x = make(ASTYPE, [x], dtype=SINGLE)
    return _converted(x, HALF)


def _wide(x: Node) -> Node:
    """A value in single precision."""
    if x.type.dtype != HALF:
        return x
    if x.op is CONSTANT and not x.type.shape:
        return constant(x["bits"].array()[()].astype(SINGLE))
    return _converted(x, SINGLE)


def _converted(x: Node, dtype: np.dtype[Any]) -> Node:
    params: dict[str, Any] = {"dtype": dtype, BY_KERNELS: True}
    return make(ASTYPE, [x], **params)


__all__ = ["HALF", "in_single"]
