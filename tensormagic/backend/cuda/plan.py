"""Plan the steps of a graph for a GPU: loops and branches are steps of their own, but where one thread runs a whole loop.

Complex numbers are added up by their parts: two sums of one pass.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tensormagic.backend.cuda.kernels.widened import in_wider
from tensormagic.backend.planning.inline import by_parts, expand_all, marked
from tensormagic.backend.planning.kinds import graphs_of, refuse
from tensormagic.backend.planning.plan import Arranged, arranged
from tensormagic.backend.planning.purpose import for_device
from tensormagic.ir import site
from tensormagic.ir.graph import Graph
from tensormagic.ir.node import Node, replaced, topological
from tensormagic.ops.fold import SUM

DRIVEN = -(1 << 40)  # marks regions in plans for a GPU, which are no kernels; those in plans for the processor may be


@for_device
def plan_device(graph: Graph, changed: Iterable[int] = ()) -> Arranged:
    """Return the steps of a closed graph; parameters numbered in ``changed`` belong to the graph and may be stored into."""
    carries = [graph.parameters[k] for k in changed]
    return arranged(graph, simple_on_device([*graph.results, *graph.checked]), carries, apart=True)


@for_device
def simple_on_device(nodes: Sequence[Node]) -> list[Node]:
    """Return the nodes lowered to simpler ops, with regions marked as steps outside kernels."""
    return _driven(in_wider(expand_all(nodes)))


def plan_alone(graph: Graph, changed: Iterable[int] = ()) -> Arranged:
    """Return the steps of a graph in which loops and branches are kernels, each run by a single thread."""
    carries = [graph.parameters[k] for k in changed]
    return arranged(graph, in_wider(expand_all([*graph.results, *graph.checked])), carries, apart=True)


def _driven(results: Sequence[Node]) -> list[Node]:
    """Return the results with their regions marked as steps outside kernels, and complex sums split into parts."""
    memo: dict[Node, Node] = {}
    for node in topological(results):
        new = replaced(node, memo)
        if new.op is SUM:
            new = by_parts(new) or new
        if graphs_of(node):
            new = marked(new, DRIVEN)
            refuse(new)
        if new is not node:
            site.inherit(new, node)
        memo[node] = new
    return [memo[r] for r in results]
