"""One box for each call and for each part of an array: what ``np.mean(x)`` or ``p[rows, t]`` became, as the user wrote it.

The derivative of such a box is that of all that it is made of. It knows nodes, and the texts that they come from.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from tensormagic.ir.node import Node
from tensormagic.notebook.pictures.joining import repeats
from tensormagic.notebook.pictures.naming import Place, Written
from tensormagic.ops.leaf import PARAMETER
from tensormagic.ops.opaque import ITEM
from tensormagic.ops.regions.control import Region


@dataclass(frozen=True, eq=False)
class Call:
    """A call in the user's text that is drawn as one box with its last node.

    Parameters
    ----------
    written
        The call, or the indexing expression.
    cell
        The cell that it is written in.
    parts
        Its nodes, the last one included.
    operands
        The nodes outside that it reads, in the order in which it reads them.
    """

    written: Written
    cell: str
    parts: frozenset[Node]
    operands: tuple[Node, ...]


Where = tuple[str, Place]  # a cell, and a place in its text
Places = Mapping[Where, Written | None]


def calls(
    nodes: Sequence[Node],
    given: Callable[[Node], list[Node]],
    expressions: Callable[[Node], Places],
    kept: Collection[Node],
) -> dict[Node, Call]:
    """Return the calls among nodes, by the last node of each.

    Parameters
    ----------
    nodes
        Nodes in topological order.
    given
        The operands of a node, in order.
    expressions
        The places of a node, with the call there; None where there is no call.
    kept
        Nodes with a box of their own: those that have a name, and the result. They may only end a call.
    """
    return _Calls(nodes, given, expressions, kept).found()


class _Calls:
    """The nodes, who uses them, and where they were written."""

    def __init__(
        self,
        nodes: Sequence[Node],
        given: Callable[[Node], list[Node]],
        expressions: Callable[[Node], Places],
        kept: Collection[Node],
    ) -> None:
        shown = set(nodes)
        self.nodes = nodes
        self.given = {node: [a for a in given(node) if a in shown] for node in nodes}
        self.users: dict[Node, list[Node]] = {node: [] for node in nodes}
        for node, operands in self.given.items():
            for operand in operands:
                self.users[operand].append(node)
        self.places = {node: expressions(node) if node.op is not PARAMETER else {} for node in nodes}
        self.kept = set(kept)

    def found(self) -> dict[Node, Call]:
        """Return the calls, found from the end of the graph; no node is in two of them."""
        found: dict[Node, Call] = {}
        for last in reversed(self.nodes):
            if len(last.types) > 1 or _is_control(last) or any(last in call.parts for call in found.values()):
                continue
            for place, written in self.places[last].items():
                parts = self.parts(last, place) if written else []
                if written and len(parts) > 1 and not repeats([n.op.name for n in parts]):
                    outside = dict.fromkeys(
                        a for n in self.nodes if n in parts for a in self.given[n] if a not in parts
                    )
                    found[last] = Call(written, place[0], frozenset(parts), tuple(outside))
                    self.kept.update(parts)
                    break
        return found

    def parts(self, last: Node, place: Where) -> list[Node]:
        """Return the nodes of a call, last first; empty if nodes outside read an inner one, or the call has nodes elsewhere."""
        if any(self.is_in(user, place) for user in self.users[last]):
            return []
        found = {last: None}
        more = [last]
        while more:  # a node that several parts read is taken when all of these are
            reached = dict.fromkeys(a for part in found for a in self.given[part])
            more = [a for a in reached if a not in found and a not in self.kept and self.is_in(a, place)]
            more = [a for a in more if all(user in found for user in self.users[a])]
            found |= dict.fromkeys(more)
        alone = [n for n, own in self.places.items() if list(own) == [place] and n not in found]
        return [] if alone else list(found)

    def is_in(self, node: Node, place: Where) -> bool:
        """Return whether a node was made by the expression at a place, and by no part of it: that is an operand."""
        own = self.places[node]
        return place in own and not any(other != place and _holds(place, other) for other in own)


def _holds(place: Where, other: Where) -> bool:
    """Return whether a place has another inside it."""
    (cell, (line, column, end, end_column)), (there, (first, start, last, stop)) = place, other
    return cell == there and (line, column) <= (first, start) and (last, stop) <= (end, end_column)


def _is_control(node: Node) -> bool:
    """Return whether a node is a loop or a branch, or a result of one: these have a text of their own."""
    while node.op is ITEM:
        node = node.args[0]
    return isinstance(node.op, Region)
