"""Measure nodes inside loops, branches and calls: in some iterations, including the first and the last, and over all.

A region is computed twice: first to count and to time, then to look at the values in the chosen iterations.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tensormagic.ir.graph import Graph
from tensormagic.ir.node import Node
from tensormagic.ir.size import Size
from tensormagic.notebook.pictures.labels import DID_NOT
from tensormagic.notebook.pictures.watching import Enough, Frame, Looking, Place, is_region, watched
from tensormagic.ops.leaf import CONSTANT, PARAMETER
from tensormagic.ops.regions.control import COND, LOOP, WHILE
from tensormagic.ops.regions.recursion import RECURSIVE

MOST_ITERATIONS = 9  # that are told of one graph inside
MOST_TOLD = 2_000  # values in all: each is some hundred bytes of the page
LONGEST = 1.5  # seconds for counting, and for looking at the values, beyond what NumPy itself needs for all regions
LONGEST_EXTREMES = 0.4  # seconds for keeping count in one region; then the least and the greatest are not looked for
NOT_ALL = "Only the first loops and branches show the values inside: there was no time or room for all."
NONE = "The values inside loops and branches are not shown: there was no time or room for them."
Summary = Callable[[Any], dict[str, Any]]


@dataclass(frozen=True)
class Region:
    """The result of running a region, with notes on what is inside.

    Parameters
    ----------
    value
        Its value, or its values; None if there was not enough time.
    whole
        Whether it was computed to the end.
    told
        The notes on the region besides its value.
    inside
        The notes on the nodes inside, by their places.
    """

    value: Any
    whole: bool
    told: dict[str, Any]
    inside: dict[Place, dict[str, Any]]


class Inside:
    """Measures nodes inside regions, within limits of time and memory.

    Parameters
    ----------
    number
        The number that a size is.
    summary
        What is told of a value.
    """

    def __init__(self, number: Callable[[Size], int], summary: Summary) -> None:
        self.number = number
        self.summary = summary
        self.left = LONGEST
        self.room = MOST_TOLD
        self.note = ""
        self.looked = False  # into one region at least

    def region(self, node: Node, operands: Sequence[Any], end: float) -> Region:
        """Run a region, until ``end`` at the latest, and a second time to record the values inside."""
        begun, count = time.perf_counter(), max(_count_inside(node), 1)
        most = min(MOST_ITERATIONS, max(self.room // (2 * count), min(self.room // count, 1)))
        if most < 1 or self.left <= 0:
            self.note = NOT_ALL if self.looked else NONE
            value, whole = self._run(node, operands, Looking(end))
            return Region(value, whole, _seconds(time.perf_counter() - begun), {})
        self.looked, counting = True, _Counting(end)
        value, whole = self._run(node, operands, counting)
        looking = _Looking(begun + counting.clock + self.left, counting, most, self.summary)
        self._run(node, operands, looking)
        self.left -= time.perf_counter() - begun - counting.clock
        inside = dict(_told(node, counting, looking, whole=whole))
        self.room -= sum(len(one.get("iterations", ())) for one in inside.values())
        if not whole:
            self.note = "Only the first iterations of a long loop are shown: all of them would take NumPy too long."
        told = {**_seconds(counting.clock), "ran": _ran(counting, whole=whole)}
        return Region(value, whole, told | (_went((node,), counting) if whole else {}), inside)

    def _run(self, node: Node, operands: Sequence[Any], looking: Looking) -> tuple[Any, bool]:
        """Return the value, and whether it ran to its end."""
        with suppress(Enough):
            return watched(node, operands, self.number, looking), True
        return None, False


# counting -------------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Record:
    """What is known of a node inside: how often it was computed, how long that took, and between which numbers it was."""

    times: int = 0
    seconds: float = 0.0
    low: float = np.inf
    high: float = -np.inf

    def between(self, value: Any) -> None:
        """Make room for a value, or for all elements of one; a nan is nowhere."""
        if isinstance(value, np.ndarray):
            if value.dtype.kind in "iuf" and value.size:
                self.low = min(self.low, float(np.fmin.reduce(value, axis=None)))
                self.high = max(self.high, float(np.fmax.reduce(value, axis=None)))
        elif isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool):
            self.low = min(self.low, float(value))
            self.high = max(self.high, float(value))


@dataclass(slots=True)
class _Part:
    """A graph inside: how often it has run, and its nodes."""

    runs: int = 0
    records: dict[Node, _Record] = field(default_factory=dict[Node, _Record])


class _Counting(Looking):
    """Counts the runs of each graph, and times nodes by a clock that is stopped while counting."""

    def __init__(self, end: float) -> None:
        super().__init__(end)
        self.parts: dict[Place, _Part] = {}
        self.root: Frame | None = None
        self.clock = 0.0
        self.spent = 0.0
        self.extremes = True  # whether the least and the greatest number of each node are looked for
        self._since = self._begin = time.perf_counter()
        self._begun: list[float] = []
        self._running: list[_Part | None] = []  # for each frame

    def runs(self, place: Place, otherwise: int = 0) -> int:
        """Return how often the graph in a place has run."""
        return self.parts[place].runs if place in self.parts else otherwise

    def starts(self, graph: Graph, table: Mapping[Node, Any]) -> None:
        self._stop()
        super().starts(graph, table)
        self._go_on()

    def begins(self, node: Node, given: Sequence[Any]) -> None:
        self._stop()
        super().begins(node, given)
        if len(self.frames) > len(self._running):
            self.root = self.root or self.frames[0]
            self._running.append(None)
        self._begun.append(self.clock)
        self._go_on()

    def ends(self, node: Node, value: Any) -> None:
        self._stop()
        super().ends(node, value)
        self._go_on()

    def started(self, frame: Frame, table: Mapping[Node, Any]) -> None:
        inside = frame.inside
        part = self._running[-1] = self.parts.setdefault(inside, _Part()) if inside is not None else None
        if part is not None and frame.graph is not None:
            part.runs += 1
            for node in frame.graph.parameters:
                self._note(part, node, table[node], 0.0)

    def made(self, node: Node, value: Any) -> None:
        del self._running[len(self.frames) :]
        seconds = self.clock - self._begun.pop()
        part = self._running[-1] if self._running else None
        if part is not None:
            self._note(part, node, value, seconds)

    def _note(self, part: _Part, node: Node, value: Any, seconds: float) -> None:
        record = part.records.get(node)
        if record is None:
            record = part.records[node] = _Record()
        record.times += 1
        record.seconds += seconds
        if self.extremes:
            record.between(value)

    def _stop(self) -> None:
        self._begin = time.perf_counter()
        self.clock += self._begin - self._since

    def _go_on(self) -> None:
        self._since = time.perf_counter()
        self.spent += self._since - self._begin
        if self.spent > LONGEST_EXTREMES:
            self.extremes = False


# looking --------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Seen:
    """A measured value, with the iterations of the loops around it and the run of its graph."""

    iterations: Sequence[tuple[Frame, int]]
    graph: str
    run: int
    told: Mapping[str, Any]

    def when(self, runs: int, *, calls: bool) -> str:
        """Return ``iteration 3 of 200``, the outermost loop first, the call of a recursive function, or "" outside loops."""
        parts = [
            f"iteration {iteration}{'' if loop.iterations is None else f' of {loop.iterations}'}"
            for loop, iteration in self.iterations
        ]
        if self.graph == "test" and self.iterations:  # it comes before the iteration, and once more
            loop, iteration = self.iterations[-1]
            parts[-1] = f"test {iteration + 1}{'' if loop.iterations is None else f' of {loop.iterations + 1}'}"
        return ", ".join([*parts, *([f"call {self.run} of {runs}"] if calls and runs > 1 else [])])


class _Looking(Looking):
    """Looks at the values in some of the runs that were counted."""

    def __init__(self, end: float, counted: _Counting, most: int, summary: Summary) -> None:
        super().__init__(end)
        self.chosen = {place: _spread(part.runs, most) for place, part in counted.parts.items()}
        self.runs = dict.fromkeys(counted.parts, 0)
        self.waiting = sum(part.runs for part in counted.parts.values())
        self.summary = summary
        self.seen: dict[Place, list[_Seen]] = {}

    def started(self, frame: Frame, table: Mapping[Node, Any]) -> None:
        inside = frame.inside
        frame.shown = False
        if inside is None:
            return
        if not self.waiting:  # what comes now was not counted
            raise Enough
        self.waiting -= 1
        frame.run = self.runs[inside] = self.runs[inside] + 1
        frame.shown = frame.run in self.chosen[inside]
        if frame.shown:
            for node, value in table.items():
                if node.op is not CONSTANT:
                    self.made(node, value)

    def made(self, node: Node, value: Any) -> None:
        if self.frames and self.frames[-1].shown:
            frame = self.frames[-1]
            iterations = [(loop, loop.iteration) for loop in self.loops()]
            seen = _Seen(iterations, frame.running, frame.run, self.summary(value))
            self.seen.setdefault((*(frame.inside or ()), node), []).append(seen)


def _spread(count: int, most: int) -> set[int]:
    """Return some numbers from 1 to ``count``, with both ends; of one, the last.

    >>> sorted(_spread(200, 5)), sorted(_spread(3, 5)), sorted(_spread(7, 1))
    ([1, 51, 101, 150, 200], [1, 2, 3], [7])
    """
    if most == 1:
        return {count}
    return {1 + round(k * (count - 1) / (most - 1)) for k in range(most)}


# telling --------------------------------------------------------------------------------------------------------------


def _graphs(region: Node) -> Iterator[tuple[str, Graph]]:
    return ((name, graph) for name, graph in region.params.items() if isinstance(graph, Graph))


def _count_inside(region: Node) -> int:
    """Return the number of nodes in the inner graphs, at all levels."""
    count, stack = 0, [region]
    while stack:
        for _, graph in _graphs(stack.pop()):
            count += len(graph.nodes)
            stack += filter(is_region, graph.nodes)
    return count


def _ran(counting: _Counting, *, whole: bool) -> str:
    """Return how many iterations a loop had; which way a branch went."""
    root = counting.root
    if root is None:
        return ""
    if root.is_loop:
        iterations = root.count if root.count is not None else root.iteration
        return (
            f"{'' if whole or root.count is not None else 'more than '}{iterations} iteration{'s' * (iterations != 1)}"
        )
    return {"then": "then", "otherwise": "else"}.get(root.way, "")


def _ways(place: Place, counting: _Counting) -> str:
    """Return the iterations of a loop inside, in all; how often each way of a branch was taken."""
    op, runs = place[-1].op, counting.runs
    if op in {LOOP, WHILE}:
        return f"{runs((*place, 'body'))} iterations"
    if op is not COND:
        return ""
    return f"then {_times(runs((*place, 'then')))}, else {_times(runs((*place, 'otherwise')))}"


def went(place: Place, runs: Callable[[Place], int]) -> dict[str, str]:
    """Return the captions of a region's frames after a run: the side of a branch that ran, or the iterations of a ``while``."""
    op = place[-1].op
    if op is WHILE:
        count = runs((*place, "body"))
        return {"": f"{count} iteration{'s' * (count != 1)}"}
    if op is not COND:
        return {}
    sides = {"then": runs((*place, "then")), "else": runs((*place, "otherwise"))}
    once = sum(sides.values()) == 1
    return {side: DID_NOT if not n else "ran" if once else f"ran {_times(n)}" for side, n in sides.items()}


def _went(place: Place, counting: _Counting) -> dict[str, Any]:
    """Return the iterations and branches of a run, as a note beside the value; empty for other regions."""
    said = went(place, counting.runs)
    return {"went": said} if said else {}


def _told(
    region: Node, counting: _Counting, looking: _Looking, *, whole: bool
) -> Iterator[tuple[Place, dict[str, Any]]]:
    """Yield what is told of each node inside."""
    stack: list[tuple[Place, bool]] = [((region,), True)]
    while stack:
        around, ran = stack.pop()
        for name, graph in _graphs(around[-1]):
            inside = (*around, name)
            runs = counting.runs(inside)
            known = bool(runs) or not ran or around[-1].op in {COND, LOOP, WHILE}
            for node in graph.nodes:
                if not known:
                    break
                if is_region(node):
                    stack.append(((*inside, node), bool(runs)))
                if node.op is not CONSTANT:
                    yield (*inside, node), _node(node, inside, counting, looking, whole=whole)


def _node(node: Node, inside: Place, counting: _Counting, looking: _Looking, *, whole: bool) -> dict[str, Any]:
    place, runs = (*inside, node), counting.runs(inside)
    record = counting.parts[inside].records.get(node) if inside in counting.parts else None
    if record is None:
        return {"ran": DID_NOT if whole else "did not run in the iterations shown"}
    told: dict[str, Any] = {} if node.op is PARAMETER else _seconds(record.seconds)
    around = counting.runs(inside[:-2], 1)
    ran = ""
    if whole and record.times < runs:
        ran = f"{_times(record.times)}, for all iterations"
    elif runs > 1 or around > 1:
        ran = f"{record.times} of {around} times" if inside[-2].op is COND else _times(record.times)
        ran = ran if whole else f"at least {ran}"
    ran = ": ".join(filter(None, [ran, _ways(place, counting)]))
    told |= {"ran": ran} if ran else {}
    told |= _went(place, counting) if whole else {}
    if counting.extremes and record.times > 1 and record.low <= record.high:
        told["over"] = f"min {record.low:.4g}, max {record.high:.4g}"
    calls = inside[-2].op is RECURSIVE
    seen = looking.seen.get(place, ())
    return told | ({"iterations": [[s.when(runs, calls=calls), dict(s.told)] for s in seen]} if seen else {})


def _seconds(seconds: float) -> dict[str, Any]:
    return {"seconds": float(f"{seconds:.3g}")}


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"
