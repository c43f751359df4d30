"""Broadcasts numbers within regions in place of before them, so that rules see in a body that it multiplies with a number."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tensormagic.ir.graph import Graph
from tensormagic.ir.node import Node, make, users
from tensormagic.ir.site import substituted
from tensormagic.ops.leaf import CONSTANT
from tensormagic.ops.move import BROADCAST, broadcast
from tensormagic.ops.opaque import items
from tensormagic.ops.regions.region import graph_over, stand_in


def stretched(regions: Iterable[Node]) -> dict[Node, Node]:
    """Return replacements for the results of regions with one graph whose operands include broadcast numbers."""
    found = {node: graphs for node in regions if len(graphs := _graphs(node)) == 1}
    return {old: new for node, ((name, graph),) in found.items() for old, new in _within(node, name, graph).items()}


def _graphs(node: Node) -> list[tuple[str, Graph]]:
    return [(name, value) for name, value in node.params.items() if isinstance(value, Graph)]


def _within(node: Node, name: str, graph: Graph) -> dict[Node, Node]:
    own, operands = list(graph.parameters), list(node.args)
    first = 1 + node["carries"] if "carries" in node.params else 0
    used = users(graph.nodes)
    new: dict[Node, Node] = {}
    for p, operand in list(zip(own, operands, strict=True))[first:]:
        number = operand.args[0] if operand.op is BROADCAST else operand
        if number.type.shape or not p.type.shape or p not in used or number.type.dtype != p.type.dtype:
            continue
        inner = number
        if number.op is not CONSTANT:
            inner = stand_in("number", number.type)
            own.append(inner)
            operands.append(number)
        new[p] = broadcast(inner, p.type.shape)
    if not new:
        return {}
    changed = graph.with_nodes(substituted([*graph.results, *graph.checked], new))
    changed = graph_over(own, changed.results, changed)
    params: dict[str, Any] = {**node.params, name: changed}
    ends = items(make(node.op, operands, **params))
    return dict(zip(items(node), ends, strict=True))
