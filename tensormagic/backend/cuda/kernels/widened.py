"""Half floats, bfloat16 and complex64 in kernels: stored as such, and computed with in the next wider dtype.

Each operation is rounded to the stored dtype as in NumPy, also where nothing is stored. A sum, running or not,
keeps the wider dtype until its end. What has no such form (scatters, matrix products) stays with the library.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tensormagic.backend.planning.inline import joined
from tensormagic.backend.planning.kinds import BY_KERNELS, is_taken, kind_of
from tensormagic.backend.printing.complex_text import source_of
from tensormagic.ir import site
from tensormagic.ir.node import Node, make, rebuild, replaced, topological
from tensormagic.ir.stored import is_stored, text_of
from tensormagic.ops.contract import CONTRACT
from tensormagic.ops.fold import SUM
from tensormagic.ops.fold_kind import Fold, Row
from tensormagic.ops.leaf import CONSTANT, constant
from tensormagic.ops.move import CONCATENATE, slice_
from tensormagic.ops.move_kind import Move
from tensormagic.ops.pointwise import ASTYPE, Pointwise
from tensormagic.ops.scalars.complex_parts import from_parts
from tensormagic.ops.update import ADD_AT, SET

SINGLE, DOUBLE = np.dtype(np.float32), np.dtype(np.float64)
WIDER = {np.dtype(np.float16): SINGLE, np.dtype(np.complex64): np.dtype(np.complex128)}
"""What kernels compute in, for each dtype that they only load and store."""


def wider_of(dtype: np.dtype[Any]) -> np.dtype[Any] | None:
    """Return the dtype that kernels compute in for a dtype that they only load and store, or None for any other."""
    return WIDER.get(dtype, SINGLE if is_stored(dtype) else None)


_ASKED = frozenset(["pointwise", "contract"])  # kinds of which kernels have only some ops


def in_wider(results: Sequence[Node]) -> list[Node]:
    """Return the same results, with values of such dtypes computed in the wider dtype wherever kernels can."""
    nodes = topological(results)
    if not any(wider_of(t.dtype) for n in nodes for t in n.types):
        return list(results)
    memo: dict[Node, Node] = {}
    for node in nodes:
        memo[node] = _of(node, memo)
        if memo[node] is not node:
            site.inherit(memo[node], node)
    return [memo[r] for r in results]


def _of(node: Node, memo: dict[Node, Node]) -> Node:
    single = len(node.types) == 1 and all(len(a.types) == 1 for a in node.args)
    if not single or not any(wider_of(n.type.dtype) for n in (node, *node.args)) or node.op.kind == "leaf":
        return replaced(node, memo)
    args = [memo[a] for a in node.args]
    if node.op is ASTYPE:
        return _cast(args[0], node)
    if node.op is SET or node.op is ADD_AT:
        return _stored(node, args, memo)
    if node.op is CONCATENATE:
        return joined(rebuild(node, args, memo), **{BY_KERNELS: True})
    wide = rebuild(node, [_wide(a, parts=node.op is from_parts) for a in args], memo) if _is_done(node) else None
    if wide is None or (node.op.kind in _ASKED and kind_of(wide) == "library"):
        return replaced(node, memo)
    site.inherit(wide, node)
    return _narrow(wide, node.type.dtype)


def _is_done(node: Node) -> bool:
    op: Any = node.op
    if op is CONTRACT:  # with a vector, it is a reduction
        return node.type.dtype.kind != "c"
    if isinstance(op, Fold):
        if any(a.type.dtype.kind == "c" for a in node.args):
            return op is SUM
        return op.positional or op.sequential or (op.step is not None and not isinstance(op, Row))
    return isinstance(op, Pointwise) or (isinstance(op, Move) and op.index is not None) or is_taken(op)


def _stored(node: Node, args: Sequence[Node], memo: dict[Node, Node]) -> Node:
    """Return a store of numbers in their stored dtype; a sum is rounded before it is stored."""
    same = rebuild(node, args, memo)
    base, part = same.args
    if base.type.dtype != part.type.dtype:
        return same
    if node.op is ADD_AT:
        part = _narrow(slice_(_wide(base), same["slices"]) + _wide(part), base.type.dtype)
    params: dict[str, Any] = {"slices": same["slices"], BY_KERNELS: True}
    return make(SET, [base, part], **params)


def _cast(x: Node, node: Node) -> Node:
    """Return a conversion from or to such a dtype."""
    before, after = x.type.dtype, node.type.dtype
    if before == after or (before.kind == "c" and after.kind != "c") or node.type.form == "python":
        return rebuild(node, [x])
    if x.op is CONSTANT and not x.type.shape and wider_of(after):
        return constant(x["bits"].array()[()].astype(after))
    if wider_of(before):
        x = _wide(x)
    wider = wider_of(after)
    if wider is None:
        found = x if x.type.dtype == after else make(ASTYPE, [x], dtype=after)
        return found if found is x or source_of(found) is not None else rebuild(node, [x])
    if after.kind == "c" and x.type.dtype.kind != "c":  # rounded once, to the dtype of a part
        x = make(ASTYPE, [x], dtype=SINGLE) if x.type.dtype != SINGLE else x
        x = make(ASTYPE, [x], dtype=wider)
    elif is_stored(after) or x.type.dtype not in {SINGLE, DOUBLE, wider}:
        # integers beyond 2**24 are infinite in half either way; ml_dtypes converts to bfloat16 by way of single
        # precision
        x = make(ASTYPE, [x], dtype=SINGLE) if x.type.dtype != SINGLE else x
    return _narrow(x, after)


def _wide(x: Node, *, parts: bool = False) -> Node:
    """Return a value in the wider dtype; with ``parts``, float32 parts of complex numbers become float64."""
    wider = wider_of(x.type.dtype) or (DOUBLE if parts else None)
    if wider is None or x.type.dtype == wider:
        return x
    if x.op is CONSTANT and not x.type.shape:
        return constant(x["bits"].array()[()].astype(wider))
    if (
        BY_KERNELS in x.params
        and x.op is ASTYPE
        and x.args[0].type.dtype == wider
        and _is_exact(x.args[0], x.type.dtype)
    ):
        return x.args[0]
    return _by_kernels(x, wider) if wider_of(x.type.dtype) else make(ASTYPE, [x], dtype=wider)


def _is_exact(x: Node, dtype: np.dtype[Any]) -> bool:
    """Return whether rounding to a dtype changes nothing, as the values were moved only since they were widened from it."""
    while isinstance(x.op, Move):
        x = x.args[0]
    return x.op is ASTYPE and x.args[0].type.dtype == dtype


def _narrow(x: Node, dtype: np.dtype[Any]) -> Node:
    """Return a value rounded to a dtype."""
    if x.type.dtype == dtype:
        return x
    return _by_kernels(x, dtype) if wider_of(dtype) else make(ASTYPE, [x], dtype=dtype)


def _by_kernels(x: Node, dtype: np.dtype[Any]) -> Node:
    params: dict[str, Any] = {"dtype": text_of(dtype), BY_KERNELS: True}
    return make(ASTYPE, [x], **params)
