"""Loops and branches that combine rows, such as the iterations of a descent: driven by this process, with their graphs split.

Rows that a graph reads and that are computed before it are computed again in each of its stages, as for any stage.
Only rows that an iteration passes to the next one are kept on the workers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tensormagic.distributed.stages import Inner
from tensormagic.ir.graph import Graph
from tensormagic.ir.node import Node, topological
from tensormagic.ir.size import Size, atoms
from tensormagic.ir.type import Type
from tensormagic.ops.leaf import SIZE, constant_value
from tensormagic.ops.regions.branches import Branches, packed
from tensormagic.ops.regions.loops import Repeat
from tensormagic.ops.regions.region import instantiated, matched, stand_in
from tensormagic.ops.rows import Merged, missing_rows

Within = Callable[[Sequence[Node], Sequence[Node], Sequence[Any]], Inner]
"""Splits results that depend on other nodes and on a state, whose axes of rows are given."""
FEW = 4  # up to so many iterations that pass rows on, these rows are computed again in each


@dataclass(frozen=True)
class Driving:
    """How to drive a region: this process runs its control flow, and its graphs run on chunks.

    Parameters
    ----------
    graphs
        Its graphs, split, by the names of the parameters that hold them.
    begins
        The operands that are read before its graphs run: the choice, or the count and the initial carries.
    axes
        The axis of rows in its results, as for a node.
    in_order
        Whether an iteration has to wait for the one before.
    """

    graphs: Mapping[str, Inner]
    begins: tuple[Node, ...]
    axes: Any
    in_order: bool


def driving(node: Node, axes: Sequence[Any], rows: Size, within: Within) -> Driving | None:
    """Return how to drive a region whose operands have their rows along these axes, or None if it cannot be driven.

    Parameters
    ----------
    node
        The region.
    axes
        The axis of rows in each operand; None for one that is whole.
    rows
        The number of rows.
    within
        Splits a graph of the region.

    Raises
    ------
    CaptureError
        If a graph combines rows in a way that has no rule.
    """
    if any(t.form == "tape" for n in (node, *node.args) for t in n.types):
        return None
    if isinstance(node.op, Repeat):
        return _loop(node, axes, rows, within)
    return _branch(node, axes, within) if isinstance(node.op, Branches) else None


def _loop(node: Node, axes: Sequence[Any], rows: Size, within: Within) -> Driving | None:
    """Return how to drive a loop whose count or test is the same for all rows, or None if its carries have other rows."""
    first, carries = int(node.op.counted), node["carries"]
    begins = node.args[: first + carries]
    own = list(axes[first : first + carries])
    if (
        any(a is not None for a in axes[:first])
        or (first and _counts(node.args[0], rows))
        or not all(map(_is_leading, begins[first:], own, [rows] * carries))
    ):
        return None
    body: Graph = node["body"]
    entry = [p.type for p in body.parameters]
    state = [stand_in("index", entry[0])] if first else []
    state += [
        stand_in("carry", Type(t.dtype, b.type.shape, t.form))
        for t, b in zip(entry[first:], begins[first:], strict=False)
    ]
    others = node.args[first + carries :]
    inner = within(_over(body, [*state, *others]), state, [None] * first + own)
    found = [inner.split.axes.get(k) for k in range(carries)]
    if found != own:
        return None
    graphs = {"body": inner}
    if not first:
        graphs["test"] = within(_over(node["test"], [*state, *others]), state, own)
        if graphs["test"].split.axes:
            return None
    return Driving(graphs, begins, packed(found), _in_order(node, inner, own, first))


def _counts(number: Node, rows: Size) -> bool:
    """Return whether a number of iterations follows from that of the rows, so that each iteration would go over all of them."""
    return any(n.op is SIZE and set(atoms(rows)) & set(n.symbols) for n in topological([number]))


def _is_leading(node: Node, axis: Any, rows: Size) -> bool:
    """Return whether a node has all rows along its first axis, or is the same for all of them."""
    return axis is None or (axis == 0 and not isinstance(axis, Merged) and missing_rows(node.type.shape[0], rows) == 0)


def _over(graph: Graph, operands: Sequence[Node]) -> list[Node]:
    """Return the results of a region's graph applied to operands, in terms of their sizes."""
    sizes, _ = matched(graph, operands, "a region")  # other conditions were checked when the region was made
    return instantiated(graph.results, dict(zip(graph.parameters, operands, strict=True)), sizes)


def _in_order(node: Node, body: Inner, own: Sequence[Any], first: int) -> bool:
    """Return whether what an iteration computes of rows depends on what the one before has computed of them."""
    graph = body.split.graph
    carries = graph.parameters[first : first + len(own)]
    changed = {p for p, r in zip(carries, graph.results, strict=True) if p is not r}
    count = constant_value(node.args[0]) if first else None
    hands_on = any(p in changed and a is not None for p, a in zip(carries, own, strict=True))
    if hands_on and (count is None or int(count) > FEW):
        return True
    return any(changed & {*stage.before.reads, *stage.reads} for stage in body.split.stages)


def _branch(node: Node, axes: Sequence[Any], within: Within) -> Driving | None:
    """Return how to drive a branch that is the same for all rows, or None if only one of its graphs has results with rows."""
    op: Any = node.op
    first = int(op.chooses)
    if any(a is not None for a in axes[:first]):
        return None
    graphs = {name: within(_over(graph, node.args[first:]), [], []) for name, graph in op.graphs(node.params).items()}
    found = [[g.split.axes.get(k) for k in range(len(node.types))] for g in graphs.values()]
    if any(f != found[0] for f in found):
        return None
    return Driving(graphs, node.args[:first], packed(found[0]), in_order=True)
