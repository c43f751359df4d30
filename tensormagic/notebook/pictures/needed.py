"""Find the parts of a graph that its results need: the results of a loop or a branch that are read, and their operands.

A loop may return more than is read, such as the last value of a variable or the class of a number, which the
picture leaves out.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

from tensormagic.ir.graph import Graph
from tensormagic.ir.node import Node, topological
from tensormagic.ir.operation import Operation
from tensormagic.ops.leaf import PARAMETER
from tensormagic.ops.opaque import ITEM
from tensormagic.ops.regions.control import COND, LOOP, WHILE

_GRAPHS: dict[Operation, set[str]] = {LOOP: {"body"}, WHILE: {"test", "body"}, COND: {"then", "otherwise"}}


@dataclass(frozen=True)
class Needed:
    """The nodes that some results of a graph need.

    Parameters
    ----------
    nodes
        These nodes, operands first.
    results
        Of a loop or a branch among them, the results that are read.
    ends
        The results of its graphs that are needed for these: what a loop reads in its next iteration, too.
    operands
        The operands of it that are needed for these; of other nodes all are.
    """

    nodes: list[Node] = field(default_factory=list[Node])
    results: dict[Node, set[int]] = field(default_factory=dict[Node, set[int]])
    ends: dict[Node, set[int]] = field(default_factory=dict[Node, set[int]])
    operands: dict[Node, set[int]] = field(default_factory=dict[Node, set[int]])

    def reads(self, node: Node, operand: int) -> bool:
        """Return whether an operand of a node is needed."""
        return node not in self.operands or operand in self.operands[node]

    def read_of(self, node: Node) -> list[int]:
        """Return the results of a node that are read, in order."""
        return sorted(self.results.get(node, range(len(node.types))))

    def ends_of(self, region: Node) -> list[int] | None:
        """Return the results of the graphs of a loop or a branch that are needed, in order; of another region all are."""
        return sorted(self.ends[region]) if region in self.ends else None

    @property
    def parameters(self) -> set[int]:
        """Return the parameters of the graph among the nodes."""
        return {n["index"] for n in self.nodes if n.op is PARAMETER}


def needed(graph: Graph, wanted: Iterable[int]) -> Needed:
    """Return the nodes that the results with these numbers depend on."""
    found = Needed()
    ends = [graph.results[k] for k in wanted]
    live = set(ends)
    whole = set(ends)  # regions that something reads as they are, and not one result of them
    for node in reversed(topological(ends)):
        if node not in live:
            continue
        found.nodes.append(node)
        if node.op is ITEM:
            found.results.setdefault(node.args[0], set()).add(node["index"])
        elif _is_divided(node):
            read = found.results.setdefault(node, set())
            if node in whole or len(node.types) == 1:
                read |= set(range(len(node.types)))
            found.ends[node], operands = _divided(node, set(read))
            found.operands[node] = operands
            live.update((*(node.args[k] for k in operands), *node.sized_by))
            continue
        else:
            whole.update(node.needs)
        live.update(node.needs)
    found.nodes.reverse()
    return found


def _is_divided(node: Node) -> bool:
    """Return whether results of a node may need some of its operands only."""
    return node.op in _GRAPHS and {name for name, p in node.params.items() if isinstance(p, Graph)} == _GRAPHS[node.op]


def _divided(node: Node, read: set[int]) -> tuple[set[int], set[int]]:
    """Return the results and the operands of a loop or a branch that some of its results need; a loop needs more in its next iteration."""
    if node.op is COND:
        first = len(node.args) - len(node["then"].parameters)
        inside = needed(node["then"], read).parameters | needed(node["otherwise"], read).parameters
        return read, {*range(first), *(first + k for k in inside)}
    counted = int(node.op is LOOP)
    tested: Collection[int] = () if counted else needed(node["test"], [0]).parameters
    read |= {k for k in tested if k < node["carries"]}
    while True:
        inside = needed(node["body"], read).parameters
        more = {k - counted for k in inside if counted <= k < counted + node["carries"]} - read
        if not more:
            return read, {*range(counted), *inside, *tested, *(k + counted for k in read)}
        read |= more
