"""The cheapest set of vertices that separates available values from wanted ones: a minimum cut, by Dinic's algorithm."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

V = TypeVar("V", bound=Hashable)
_SOURCE, _SINK = 0, 1


@dataclass
class _Network:
    """A flow network: edges by number, each followed by its reverse."""

    to: list[int] = field(default_factory=list[int])
    room: list[float] = field(default_factory=list[float])
    leaving: list[list[int]] = field(default_factory=lambda: [[], []])
    level: list[int] = field(default_factory=list[int])

    def vertex(self) -> int:
        self.leaving.append([])
        return len(self.leaving) - 1

    def edge(self, start: int, end: int, room: float) -> None:
        for a, b, r in ((start, end, room), (end, start, 0.0)):
            self.leaving[a].append(len(self.to))
            self.to.append(b)
            self.room.append(r)

    def maximise(self) -> None:
        """Find the maximum flow from source to sink."""
        while self._levelled():
            following = [0] * len(self.leaving)
            while path := self._path(following):
                sent = min(self.room[e] for e in path)
                for e in path:
                    self.room[e] -= sent
                    self.room[e ^ 1] += sent

    def _levelled(self) -> bool:
        self.level = [-1] * len(self.leaving)
        self.level[_SOURCE] = 0
        queue = deque([_SOURCE])
        while queue:
            v = queue.popleft()
            for e in self.leaving[v]:
                if self.room[e] > 0 and self.level[self.to[e]] < 0:
                    self.level[self.to[e]] = self.level[v] + 1
                    queue.append(self.to[e])
        return self.level[_SINK] >= 0

    def _path(self, following: list[int]) -> list[int]:
        """Return edges with residual capacity from source to sink, each one level further; empty if there is no path."""
        path: list[int] = []
        v = _SOURCE
        while v != _SINK:
            edges = self.leaving[v]
            while following[v] < len(edges):
                e = edges[following[v]]
                if self.room[e] > 0 and self.level[self.to[e]] == self.level[v] + 1:
                    break
                following[v] += 1
            if following[v] < len(edges):
                path.append(edges[following[v]])
                v = self.to[path[-1]]
            elif not path:
                return []
            else:
                v = self.to[path.pop() ^ 1]
                following[v] += 1
        return path

    def before_sink(self) -> set[int]:
        """Return the vertices from which more could still flow to the sink."""
        found = {_SINK}
        stack = [_SINK]
        while stack:
            for e in self.leaving[stack.pop()]:
                v = self.to[e]
                if self.room[e ^ 1] > 0 and v not in found:
                    found.add(v)
                    stack.append(v)
        return found


def cheapest_cut(
    wanted: Iterable[V], operands: Callable[[V], Iterable[V] | None], weight: Callable[[V], float]
) -> list[V]:
    """Return the cheapest values to keep so that all ``wanted`` ones can be computed; of equal choices, those nearest to these.

    Parameters
    ----------
    wanted
        What must be computable.
    operands
        The operands of a value; None for a value that must be kept if it is needed.
    weight
        The cost of keeping a value.
    """
    network = _Network()
    entry: dict[V, int] = {}
    stack = list(dict.fromkeys(wanted))
    ends = set(stack)
    edges: list[tuple[V, V]] = []
    while stack:
        v = stack.pop()
        if v in entry:
            continue
        entry[v] = network.vertex()
        network.vertex()
        network.edge(entry[v], entry[v] + 1, weight(v))
        if v in ends:
            network.edge(entry[v] + 1, _SINK, math.inf)
        given = operands(v)
        if given is None:
            network.edge(_SOURCE, entry[v], math.inf)
            continue
        for a in given:
            edges.append((a, v))
            stack.append(a)
    for a, v in edges:
        network.edge(entry[a] + 1, entry[v], math.inf)
    network.maximise()
    return _between(entry, network.before_sink())


def _between(entry: Mapping[V, int], beyond: set[int]) -> list[V]:
    return [v for v, number in entry.items() if number + 1 in beyond and number not in beyond]
