"""Uses values without the check they wait for, once the check is known not to fail.

What code computes and does not use is computed where it may raise an error. For example, two masks that may differ in
length are known to be alike once one size has replaced the other.
"""

from __future__ import annotations

from collections.abc import Sequence

from tensormagic.ir.node import Node, topological
from tensormagic.ops.effects.failing import may_fail
from tensormagic.ops.effects.raising import AFTER
from tensormagic.ops.indices.gather import Gather
from tensormagic.ops.indices.selection import Places
from tensormagic.ops.opaque import Store


def without_waiting(results: Sequence[Node]) -> dict[Node, Node]:
    """Return replacements for values that wait for nodes in which nothing may fail, and which only compute."""
    nodes = topological(results)
    waits = [n for n in nodes if n.op is AFTER]
    if not waits:
        return {}
    counts: dict[Node, bool] = {}
    for node in nodes:
        counts[node] = any(counts[n] for n in node.needs) or not _only_computes(node) or may_fail(node)
    return {n: n.args[1] for n in waits if not counts[n.args[0]]}


def _only_computes(node: Node) -> bool:
    return node.op.kind not in {"opaque", "region"} or node.op is AFTER or isinstance(node.op, Gather | Places | Store)
