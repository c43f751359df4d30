"""Find which side of a branch ran, for a picture drawn before anyone looks: by running NumPy, within a limit of work.

The limit counts work, not time, so that a cell has one picture, however busy the machine is.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from tensormagic.backend.planning.costs import of_node
from tensormagic.backend.planning.kinds import graphs_of
from tensormagic.ir.errors import TensorError
from tensormagic.ir.graph import Graph
from tensormagic.ir.node import Node, topological
from tensormagic.ir.size import Size
from tensormagic.notebook.pictures.inside import went
from tensormagic.notebook.pictures.watching import Enough, Frame, Looking, Place, is_region, watched
from tensormagic.ops.effects.telling import silently
from tensormagic.ops.regions.control import COND, WHILE

MOST_WORK = 1_000  # nodes that are computed
AS_MUCH = 16_384  # elements, or flops, that are as much work as a node
LONGEST = 0.5  # seconds; it ends what was taken for little work


def glimpse(
    graph: Graph, parameters: Mapping[Node, Any], number: Callable[[Size], int]
) -> dict[Any, Mapping[str, str]]:
    """Return the captions of branches and ``while`` loops in this run, by node, and inside regions by place.

    Parameters
    ----------
    graph
        The graph.
    parameters
        The values of its parameters.
    number
        The number that a size is.
    """
    turning = [node for node in graph.nodes if is_region(node) and _asks(node)]
    if not turning:
        return {}
    counting = _Runs(MOST_WORK, time.perf_counter() + LONGEST)
    found: dict[Any, Mapping[str, str]] = {}
    values = {node: parameters[node] for node in topological(turning) if node in parameters}
    with np.errstate(all="ignore"), silently():
        for node in topological(turning):
            if node not in values:
                try:
                    values[node] = _computed(node, [values[arg] for arg in node.args], number, counting)
                except (Enough, TensorError, ArithmeticError, LookupError, TypeError, ValueError):
                    break  # what is not known is not said
                found |= {place: told for place, told in counting.told() if place[0] is node}
    return {place[0] if len(place) == 1 else place: told for place, told in found.items()}


def _asks(region: Node) -> bool:
    """Return whether a region is a branch or a ``while``, or has one inside."""
    return region.op in {COND, WHILE} or any(
        is_region(node) and _asks(node) for graph in graphs_of(region) for node in graph.nodes
    )


def _computed(node: Node, operands: Sequence[Any], number: Callable[[Size], int], counting: _Runs) -> Any:
    """Return the value of a node, if that is little work."""
    if is_region(node):
        return watched(node, operands, number, counting)
    counting.spend(1 + of_node(node, number).flops // AS_MUCH)
    return node.op.evaluate(node, operands, number)


class _Runs(Looking):
    """Counts the runs of each inner graph, until the limit of work is reached."""

    def __init__(self, work: int, end: float) -> None:
        super().__init__(end)
        self.left = work
        self.runs: Counter[Place] = Counter()
        self.regions: dict[Place, None] = {}

    def spend(self, work: int) -> None:
        """Subtract work that was done from the limit, and raise Enough when it is used up."""
        self.left -= work
        if self.left < 0:
            raise Enough

    def begins(self, node: Node, given: Sequence[Any]) -> None:
        super().begins(node, given)
        if is_region(node):
            frame = self.frames[-1]
            self.regions[frame.place] = None
            if (frame.count or 0) * sum(len(graph.nodes) for graph in graphs_of(node)) > 2 * self.left:
                raise Enough  # before it has begun: that it would end in time is seen to be wrong

    def started(self, frame: Frame, table: Mapping[Node, Any]) -> None:
        if frame.inside is not None:
            self.runs[frame.inside] += 1

    def made(self, node: Node, value: Any) -> None:
        self.spend(1 + getattr(value, "size", 1) // AS_MUCH)

    def told(self) -> list[tuple[Place, Mapping[str, str]]]:
        """Return the captions of each region."""
        return [(place, said) for place in self.regions if (said := went(place, self.runs.__getitem__))]
