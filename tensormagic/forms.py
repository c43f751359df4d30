"""Graphs that were closed before, over other values, known by their form: an iteration that Python runs asks for what the last one did."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tensormagic.ir.closing import Closed, close
from tensormagic.ir.graph import Graph
from tensormagic.ir.node import Node, topological
from tensormagic.ir.size import Size, nodes_of
from tensormagic.ops.leaf import CONSTANT, INPUT, parameter
from tensormagic.ops.named import NAMED

LONG = 100  # nodes of a graph that is looked for
_KEPT = 512

Key = tuple[Any, ...]


@dataclass(eq=False)
class Found:
    """A graph to compute, cut at values that are available.

    Parameters
    ----------
    nodes
        The nodes to compute and the leaves, in topological order.
    values
        The value of each leaf, and of the arrays that leaves are parts of.
    form
        The key that equal graphs share whatever the values.
    """

    nodes: list[Node]
    values: dict[Node, Any]
    form: Key


@dataclass(eq=False)
class Known:
    """A closed graph, with the place of each leaf in its form, and the graph's node at each place."""

    graph: Graph
    leaves: tuple[int, ...]
    became: tuple[Node | None, ...]
    more: dict[Any, Any] = field(default_factory=dict[Any, Any])  # further facts, kept by the users of the graph

    def closed(self, found: Found) -> Closed:
        """The graph, over other leaves."""
        mapping = {old: new for old, new in zip(found.nodes, self.became, strict=True) if new is not None}
        return Closed(self.graph, tuple(found.nodes[k] for k in self.leaves), mapping)


def find(
    result: Node, values: Mapping[Node, Any], held: Callable[[Node], Any], size: Callable[[Size], int]
) -> Found | None:
    """Find what ``result`` is computed from: available values, inputs, and parts that are read of these.

    Parts are cut out here, so that reading another part gives the same graph. None if the graph is large, or if sizes
    are data-dependent.

    Parameters
    ----------
    result
        The wanted node.
    values
        The available values.
    held
        Gives the value of a leaf.
    size
        Evaluates a size.
    """
    given: dict[Node, Any] = {}

    def ends(node: Node) -> bool:
        if node in given:
            return True
        chain = [node]
        while not ((whole := chain[-1]) in given or whole in values or whole.op is INPUT):
            if whole.op.kind != "move" or len(whole.args) != 1 or whole.sized_by or len(chain) > LONG:
                return False
            chain.append(whole.args[0])
        if whole not in given:
            given[whole] = held(whole)
        for part in reversed(chain[:-1]):
            given[part] = part.op.evaluate(part, (given[part.args[0]],), size)
        return True

    nodes = topological([result], lambda n: n.op is CONSTANT or (n is not result and ends(n)))
    form = _form(nodes, given) if len(nodes) <= LONG else None
    return None if form is None else Found(nodes, given, form)


def _form(nodes: Sequence[Node], given: Mapping[Node, Any]) -> Key | None:
    place: dict[Node, int] = {}
    parts: list[Any] = []
    for node in nodes:
        place[node] = len(parts)
        if node in given:
            t = node.type
            if node.params.get("within") is not None or any(map(nodes_of, t.shape)):
                return None
            parts.append((t.dtype, t.shape, t.form))
        elif node.op is CONSTANT:
            parts.append(node)
        elif node.sized_by or node.op is NAMED:
            return None
        else:
            parts.append((node.op, node.param_items, *[place[a] for a in node.args]))
    return tuple(parts)


class Forms:
    """The forms that were closed last."""

    def __init__(self) -> None:
        self.known: OrderedDict[Key, Known] = OrderedDict()

    def close(self, found: Found) -> Known | None:
        """The graph of what was found; None if its checks depend on sizes of values computed before."""
        known = self.known.get(found.form)
        if known is None:
            closed = close(found.nodes[-1:], found.values.__contains__, parameter)
            if closed.before:
                return None
            place = {n: k for k, n in enumerate(found.nodes)}
            became = tuple(closed.mapping.get(n) for n in found.nodes)
            known = self.known[found.form] = Known(closed.graph, tuple(place[n] for n in closed.leaves), became)
            if len(self.known) > _KEPT:
                self.known.popitem(last=False)
        self.known.move_to_end(found.form)
        return known
