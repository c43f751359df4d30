"""The user's lines, for errors of workers: a graph is sent as text, without the sites of its nodes, so its lines are sent with it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tensormagic.backend.numpy_tier import reference
from tensormagic.ir import site
from tensormagic.ir.graph import Graph, every_node
from tensormagic.ir.node import Node
from tensormagic.ir.size import Symbol


def lines_of(graph: Graph) -> tuple[str, ...]:
    """Return for each node the line that it came from; empty if that is not known."""
    return tuple(_line(node) for node in every_node(graph))


def _line(node: Node) -> str:
    spans = site.of(node)
    written = [s for s in spans if not s.role.startswith("rewritten")] or spans
    return str(max(written, key=lambda s: (s.run, s))) if written else ""


def tell(
    error: Exception,
    graph: Graph,
    sizes: Mapping[Symbol, int],
    values: Sequence[Any],
    lines: Sequence[str],
    where: str,
) -> None:
    """Add the line and the rows to an error's message; the nodes that it names are removed, since they are not sent."""
    numbers = {node: k for k, node in enumerate(every_node(graph))}
    node = getattr(error, "tensor_node", None)
    if node not in numbers:  # the error comes from a rewritten graph, or from machine code, which knows no nodes
        node = _met_again(error, graph, sizes, values)
    line = lines[numbers[node]] if node in numbers else ""
    for name in [k for k, v in vars(error).items() if isinstance(v, Node)]:
        delattr(error, name)
    error.add_note(f"At {line}, in {where}." if line else f"In {where}.")


def _met_again(error: Exception, graph: Graph, sizes: Mapping[Symbol, int], values: Sequence[Any]) -> Node | None:
    """Return the node at which NumPy raises the same error, or None."""
    try:
        reference.compile(graph)(dict(sizes), *values)
    except Exception as again:  # noqa: BLE001 (looked at)
        return getattr(again, "tensor_node", None) if str(again) == str(error) else None
    return None
