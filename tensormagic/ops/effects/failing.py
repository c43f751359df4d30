"""Whether operations may raise when the graph runs: for some values, or for some sizes that depend on data."""

from __future__ import annotations

import functools
from typing import Any

from tensormagic.ir.graph import Graph
from tensormagic.ir.node import Node
from tensormagic.ir.size import nodes_of
from tensormagic.ops.form import FORM


def may_fail(node: Node) -> bool:
    """Return whether an operation may raise when the graph runs, because of values or of data-dependent sizes."""
    of_data = bool(node.sized_by) or any(map(has_sizes_of_data, node.args))
    if not of_data and not node.param_items and _is_plain(node.op):
        return False
    if node.op.may_raise(node) or (of_data and any(nodes_of(g[0]) or nodes_of(g[2]) for g in node.op.guards(node))):
        return True
    return any(may_fail(n) for _, graph in node.param_items if isinstance(graph, Graph) for n in graph.nodes)


@functools.cache
def _is_plain(op: Any) -> bool:
    """Return whether an op without params cannot raise, unless sizes are data-dependent."""
    return op.kind == "pointwise" and not op.raises


def has_sizes_of_data(node: Node) -> bool:
    """Return whether the shape of a value is data-dependent."""
    return any(nodes_of(s) for t in node.types for s in t.shape)


def computes_floats(node: Node) -> bool:
    """Return whether an operation may raise a floating-point error, if ``np.errstate`` asks for that."""
    moves = node.op.kind in {"leaf", "move"} or node.op is FORM
    return not moves and any(t.dtype.kind != "b" for t in node.types)
