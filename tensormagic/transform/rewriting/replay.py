"""Replays a rewriting step by step: what was logged is done again up to each rule that fired."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tensormagic.ir.graph import Graph
from tensormagic.ir.node import Node
from tensormagic.ir.rewriting.driver import rewrite_graph
from tensormagic.ir.rewriting.log import Firing
from tensormagic.ir.rewriting.rules import Found, Rule
from tensormagic.ir.rewriting.table import Table

MOST_NODES = 12_000  # in all steps together: beyond this, several rules share one step
MOST_STEPS = 120


def replayed(graph: Graph, fired: Sequence[Firing], last: Graph) -> Iterator[tuple[tuple[Firing, ...], Graph]]:
    """Yield the steps of a rewriting: for each, the rules that fired and the graph after them.

    Parameters
    ----------
    graph
        The graph before rewriting.
    fired
        The log of the rewriting. Housekeeping belongs to the step before it.
    last
        The graph after rewriting. If the log does not lead there because of final tidying, that is a step of its own.
    """
    notable = [k for k, firing in enumerate(fired) if not firing.rule.quiet]
    room = max(1, min(MOST_STEPS, MOST_NODES // max(len(graph.nodes), 1)))
    width = max(1, -(-len(notable) // room))
    now, begin = graph, 0
    for start in range(0, len(notable), width):
        end = notable[start + width] if start + width < len(notable) else len(fired)
        now = _rewritten(graph, fired[:end])
        told = tuple(firing for firing in fired[begin:end] if not firing.rule.quiet)
        begin = end
        yield told, now
    if now.results != last.results:
        yield (), last


def _rewritten(graph: Graph, fired: Sequence[Firing]) -> Graph:
    whole = next((k for k in reversed(range(len(fired))) if fired[k].results), None)
    if whole is not None:  # a rewrite of loops has recorded the graph after it
        graph, fired = graph.with_results(fired[whole].results), fired[whole + 1 :]
    becomes: dict[Node, Node] = {}
    for firing in fired:
        becomes.setdefault(firing.before, firing.after)

    def apply(node: Node) -> Found | None:
        after = becomes.get(node)
        return None if after is None else Found(after)

    # whether a rule may fire was decided when it fired: here it always may
    again = Rule("what was logged", "exact", (), apply, fuel=1 + len(fired) ** 2, quiet=True, judged=True)
    return rewrite_graph(graph, Table([again]))[0]
