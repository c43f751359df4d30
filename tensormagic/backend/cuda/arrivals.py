"""Order the copies of inputs to the device: the input that most work depends on first, where that gains something."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

from tensormagic.backend.cuda.choice import COPIED_BYTES, seconds, work_of
from tensormagic.backend.cuda.offending import CHECKS
from tensormagic.ir.graph import Graph
from tensormagic.ir.node import Node
from tensormagic.ir.size import Size, evaluate
from tensormagic.ops.draws.random import DRAW, SEED
from tensormagic.ops.effects.telling import TELL
from tensormagic.ops.interpret import by_rank

GAIN = 1.1  # another order than the graph's is taken only where the run ends this many times sooner
_IN_ORDER = CHECKS | {TELL, DRAW, SEED}  # their order in the text has to stay: what is printed, drawn or refused first


@dataclass(frozen=True)
class Order:
    """An order in which inputs are copied to the device.

    Parameters
    ----------
    parameters
        The numbers of those that are copied, the first one first.
    ranks
        For each parameter its place in that order, 0 for one that is there: what is computed is sorted by the last one that it needs.
        Nothing where the order is that of the graph.
    """

    parameters: tuple[int, ...]
    ranks: tuple[int, ...] = ()


NO_ORDER = Order(())


def by_first_use(graph: Graph, parameters: Iterable[int]) -> list[int]:
    """Return the numbers of parameters, sorted by the place at which each is first read."""
    first: Mapping[Any, int] = {a: -k for k, node in enumerate(reversed(graph.nodes)) for a in node.args}
    return sorted(parameters, key=lambda k: first.get(graph.parameters[k], 1))


def ordered(graph: Graph, away: Sequence[int], shapes: Sequence[tuple[int, ...]]) -> Order:
    """Return the order in which the parameters numbered in ``away`` are copied.

    For a fixed order of computation, copying in the order of first use ends first. So another order pays only where
    something else is computed first, too: the input on which the longest chain of work depends.
    """
    plain = by_first_use(graph, away)
    if len(plain) < 2 or any(n.op in _IN_ORDER or n.op.may_raise(n) for n in graph.nodes):
        return Order(tuple(plain))
    sizes = graph.bind(list(shapes))

    def size(s: Size) -> int:
        return s if isinstance(s, int) else evaluate(s, lambda a: sizes.get(a, 1))

    costs = {n: seconds(work_of(n, size), 0)[1] for n in graph.nodes if n.args and n.op.kind not in {"leaf", "move"}}
    copies = {k: _bytes(graph.parameters[k], size) / COPIED_BYTES for k in plain}
    tails = _tails(graph, costs)
    critical = sorted(plain, key=lambda k: -tails.get(graph.parameters[k], 0.0))
    ranks = _ranks(graph, critical)
    if _ends(graph, plain, copies, costs, None) <= GAIN * _ends(graph, critical, copies, costs, ranks):
        return Order(tuple(plain))
    return Order(tuple(critical), ranks)


def _bytes(node: Node, size: Callable[[Size], int]) -> int:
    return prod(map(size, node.type.shape)) * node.type.dtype.itemsize


def _tails(graph: Graph, costs: Mapping[Node, float]) -> dict[Node, float]:
    """Return for each node the time of the longest chain of computation that depends on it."""
    found: dict[Node, float] = {}
    for node in reversed(graph.nodes):
        own = costs.get(node, 0.0) + found.get(node, 0.0)
        for a in node.needs:
            found[a] = max(found.get(a, 0.0), own)
    return found


def _ranks(graph: Graph, order: Sequence[int]) -> tuple[int, ...]:
    place = {k: rank for rank, k in enumerate(order, 1)}
    return tuple(place.get(k, 0) for k in range(len(graph.parameters)))


def _ends(
    graph: Graph,
    order: Sequence[int],
    copies: Mapping[int, float],
    costs: Mapping[Node, float],
    ranks: Sequence[int] | None,
) -> float:
    """Return the time at which a run ends that copies inputs one after another in this order and computes beside it."""
    there: dict[Node, float] = {}
    copied = now = 0.0
    for k in order:
        copied += copies[k]
        there[graph.parameters[k]] = copied
    for node in by_rank(graph.nodes, graph.parameters, ranks) if ranks else graph.nodes:
        now = max(now, *(there.get(a, 0.0) for a in node.needs), 0.0) + costs.get(node, 0.0)
    return now
