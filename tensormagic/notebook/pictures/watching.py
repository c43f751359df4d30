"""Recompute a loop, a branch or a call in NumPy under observation: which inner graph runs, in which iteration.

Nothing is printed again.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tensormagic.ir.graph import Graph
from tensormagic.ir.node import Node
from tensormagic.ir.size import Size
from tensormagic.ops.effects.telling import silently
from tensormagic.ops.interpret import watcher
from tensormagic.ops.regions.control import COND, LOOP, WHILE
from tensormagic.ops.regions.recursion import ITSELF

Place = tuple[Any, ...]  # regions, and in each the name of a graph, down to a node: the outermost first


class Enough(Exception):  # noqa: N818 (nothing is wrong)
    """Raised to stop a computation that nobody wants to see more of."""


@dataclass(eq=False)
class Frame:
    """A region that is being computed.

    Parameters
    ----------
    node
        The region.
    place
        The enclosing regions' graphs, and the region.
    count
        The number of iterations of a loop, if known.
    iteration
        How many iterations have begun.
    ended
        Whether all have ended.
    way
        For a branch, the name of the graph that its predicate has selected.
    running, graph
        The graph that runs, and its name; empty for one that no picture shows.
    run
        How often that graph has started, in all iterations of the enclosing loops. Set by the observer.
    shown
        Whether its values are recorded. Set by the observer.
    """

    node: Node
    place: Place
    count: int | None = None
    iteration: int = 0
    ended: bool = False
    way: str = ""
    running: str = ""
    graph: Graph | None = None
    run: int = 0
    shown: bool = False

    @property
    def inside(self) -> Place | None:
        """Return where the graph is that runs, or None for one that no picture has."""
        return (*self.place, self.running) if self.running else None

    @property
    def is_loop(self) -> bool:
        """Return whether there are iterations."""
        return self.node.op in {LOOP, WHILE}

    @property
    def iterations(self) -> int | None:
        """Return how many iterations there are, or None where nobody has seen the end."""
        return self.iteration if self.ended else self.count


class Looking:
    """An observer of a run. Subclasses override the methods called when a graph starts and when a node has its value."""

    def __init__(self, end: float = float("inf")) -> None:
        self.frames: list[Frame] = []
        self.end = end

    def starts(self, graph: Graph, table: Mapping[Node, Any]) -> None:
        """Handle the start of a graph: an iteration, a side of a branch, a call."""
        if time.perf_counter() > self.end:
            raise Enough
        if self.frames:
            frame = self.frames[-1]
            frame.graph, frame.running = graph, _name(frame, graph)
            frame.iteration += frame.running == "body"
            self.started(frame, table)

    def begins(self, node: Node, given: Sequence[Any]) -> None:
        """Handle the start of a node's computation."""
        if is_region(node):
            frame = Frame(node, self._place(node), int(given[0]) if node.op is LOOP else None)
            frame.way = ("then" if given[0] else "otherwise") if node.op is COND else ""
            self.frames.append(frame)

    def ends(self, node: Node, value: Any) -> None:
        """Handle the end of a node's computation."""
        if is_region(node):
            self.frames.pop().ended = True
        self.made(node, value)

    def started(self, frame: Frame, table: Mapping[Node, Any]) -> None:
        """Handle the start of a graph, whose place is that of the frame; for subclasses."""

    def made(self, node: Node, value: Any) -> None:
        """Handle the end of a node's computation in the running graph; for subclasses."""

    def loops(self) -> Iterator[Frame]:
        """Return the loops that are turning, the outermost first."""
        return (frame for frame in self.frames if frame.is_loop)

    def _place(self, node: Node) -> Place:
        if not self.frames:
            return (node,)
        if node.op is ITSELF:  # a call of a function inside itself: its graph is that of the function around it
            return next((f for f in reversed(self.frames) if node["of"] in f.node.params), self.frames[-1]).place
        return (*(self.frames[-1].inside or (*self.frames[-1].place, "")), node)


def _name(frame: Frame, graph: Graph) -> str:
    """Return the name of a graph among those of the region that runs it."""
    return frame.way or next((name for name, known in frame.place[-1].params.items() if known is graph), "")


def is_region(node: Node) -> bool:
    """Return whether there are graphs inside."""
    return node.op.kind == "region"


def watched(node: Node, operands: Sequence[Any], number: Callable[[Size], int], looking: Looking) -> Any:
    """Return the value of a node, computed while somebody looks on.

    Raises
    ------
    Enough
        Where nobody wants to see the rest.
    """
    token = watcher.set(looking)
    try:
        with silently():
            looking.begins(node, operands)
            value = node.op.evaluate(node, operands, number)
            looking.ends(node, value)
            return value
    finally:
        watcher.reset(token)
