"""Runs closed graphs with NumPy, node by node; an array that nothing reads any more is stored into in place."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from functools import lru_cache
from sys import getrefcount
from typing import Any, NamedTuple, Protocol

import numpy as np

from tensormagic.ir.errors import GuardError, ShapeError
from tensormagic.ir.graph import Graph, check, checks_after, sizer
from tensormagic.ir.node import Node, moves
from tensormagic.ir.operation import Guard
from tensormagic.ir.size import Size, Symbol
from tensormagic.ir.type import Type
from tensormagic.ops.leaf import CONSTANT
from tensormagic.ops.op import Value, as_form

Compute = Callable[[Node, list[Value], Callable[[Size], int]], Value]


class Step(NamedTuple):
    """One node of a schedule.

    Parameters
    ----------
    node, operands
        The node and its operands.
    before, after
        Operands that nothing reads later: dropped before the node, or after it if its sizes mention them.
    guards
        Checked once the value is known.
    copies
        Whether its value, a view, is copied because the array behind it is stored into while the view is needed.
    reuse
        How it is computed in the memory of its first operand if nothing else holds that; else None.
    consume
        How a region is computed that may store into operands that nothing else holds; None for others.
    """

    node: Node
    operands: tuple[Node, ...]
    before: tuple[Node, ...]
    after: tuple[Node, ...]
    guards: Sequence[Guard]
    copies: bool
    reuse: Compute | None
    consume: Compute | None


class Schedule(NamedTuple):
    """The steps of a closed graph.

    Parameters
    ----------
    first
        What is checked before the first.
    constants
        Values that are always the same.
    once
        The steps that are the same at every iteration of a loop.
    steps
        The others.
    """

    first: Sequence[Guard]
    constants: dict[Node, Value]
    once: list[Step]
    steps: list[Step]


def by_rank(nodes: Sequence[Node], parameters: Sequence[Node], ranks: Sequence[int]) -> list[Node]:
    """Return the nodes sorted by the rank of the last parameter they need; otherwise the order stays, operands first."""
    rank = dict(zip(parameters, ranks, strict=True))
    for node in nodes:
        if node not in rank:
            rank[node] = max((rank.get(a, 0) for a in node.needs), default=0)
    return sorted(nodes, key=rank.__getitem__)


@lru_cache(maxsize=256)
def schedule(graph: Graph, moving: int | None = None, ranks: tuple[int, ...] = ()) -> Schedule:
    """Return the steps in which a graph runs; reads of an array come before stores into it, if possible.

    Parameters
    ----------
    graph
        A closed graph.
    moving
        For the body of a loop, the number of leading parameters that change from iteration to iteration.
    ranks
        The order in which the parameters arrive; empty if all are there from the start.
    """
    own = set(graph.parameters)
    constants = {n: n.op.evaluate(n, (), int) for n in graph.nodes if n.op is CONSTANT}
    nodes = by_rank(graph.nodes, graph.parameters, ranks) if ranks else graph.nodes
    rest = [n for n in nodes if n not in own and n.op is not CONSTANT]
    still = _still(rest, {*constants, *graph.parameters[moving:]}) if moving is not None else []
    before = set(still)
    kept = {*graph.results, *graph.checked, *constants, *before}
    nodes = _ordered([n for n in rest if n not in before])
    checks = checks_after(graph, [*still, *nodes])
    return Schedule(checks.get(None, ()), constants, _steps(still, {*kept, *own}, checks), _steps(nodes, kept, checks))


def _still(nodes: Sequence[Node], known: set[Node]) -> list[Node]:
    """Return the nodes that depend on ``known`` alone."""
    found: list[Node] = []
    for n in nodes:
        if all(a in known for a in n.needs):
            known.add(n)
            found.append(n)
    return found


def _steps(nodes: list[Node], kept: set[Node], checks: Mapping[Node | None, list[Guard]]) -> list[Step]:
    last = {a: k for k, n in enumerate(nodes) for a in n.needs}
    copied = _copied(nodes, last)
    steps: list[Step] = []
    for k, n in enumerate(nodes):
        dead = [a for a in dict.fromkeys(n.needs) if last[a] == k and a not in kept]
        before = tuple(a for a in dead if a not in n.sized_by)
        after = tuple(a for a in dead if a in n.sized_by)
        reuse, consume = getattr(n.op, "reuse", None), getattr(n.op, "consume", None)
        steps.append(Step(n, n.args, before, after, checks.get(n, ()), n in copied, reuse, consume))
    return steps


def _stored(node: Node) -> tuple[Node, ...]:
    """Return the operands that a node may store into."""
    return node.args if hasattr(node.op, "consume") else node.args[:1] if hasattr(node.op, "reuse") else ()


def _ordered(nodes: list[Node]) -> list[Node]:
    """Return ``nodes`` with each store into an array delayed until all reads that can come before it are done."""
    if not any(map(_stored, nodes)):
        return nodes
    own = set(nodes)
    waiting = {n: sum(a in own for a in n.needs) for n in nodes}
    readers: dict[Node, list[Node]] = {}
    for n in nodes:
        for a in n.needs:
            readers.setdefault(a, []).append(n)
    place = {n: k for k, n in enumerate(nodes)}
    left = {a: len(users) for a, users in readers.items()}
    ready = [place[n] for n in nodes if not waiting[n] and not _stored(n)]
    stores = [n for n in nodes if not waiting[n] and _stored(n)]
    heapq.heapify(ready)
    order: list[Node] = []
    while ready or stores:
        if ready:
            node = nodes[heapq.heappop(ready)]
        else:
            node = min(stores, key=lambda n: (max(left.get(a, 0) for a in _stored(n)), place[n]))
            stores.remove(node)
        order.append(node)
        for a in node.needs:
            left[a] -= 1
        for user in readers.get(node, ()):
            waiting[user] -= 1
            if not waiting[user]:
                if _stored(user):
                    stores.append(user)
                else:
                    heapq.heappush(ready, place[user])
    return order


def _copied(nodes: list[Node], last: dict[Node, int]) -> set[Node]:
    """Return the views that are still read when the array behind them is stored into."""
    stored = {a: k for k, n in enumerate(nodes) for a in _stored(n) if last[a] == k}
    if not stored:
        return set()
    until: dict[Node, int] = {}
    for n in reversed(nodes):
        until[n] = max(until.get(n, -1), last.get(n, -1))
        if moves(n):
            a = n.args[0]
            until[a] = max(until.get(a, -1), until[n])
    return {n for n in nodes if moves(n) and n.args[0] in stored and until[n] >= stored[n.args[0]]}


def _alone(values: list[Value]) -> int:
    return getrefcount(values[0])


_ONE = _alone([object()])


def interpret(graph: Graph, values: Iterable[Value]) -> list[Value]:
    """Return the results of a closed graph, run with NumPy."""
    return run(graph, list(values))


def bind(graph: Graph, values: Sequence[Value]) -> dict[Symbol, int]:
    """Return the values of a graph's symbols for values of its parameters."""
    try:
        return graph.bind([np.shape(v) for v in values])
    except GuardError as error:  # data-dependent sizes: the graph around the region has checked the others
        raise ShapeError(error.message) from None


class Watcher(Protocol):
    """An observer of running graphs. Operands that it keeps are not stored into in place."""

    def starts(self, graph: Graph, table: Mapping[Node, Value]) -> None:
        """Tell that a graph starts; ``table`` has the values known before its first step."""
        ...

    def begins(self, node: Node, given: Sequence[Value]) -> None:
        """Tell that ``node`` is about to be computed from ``given``."""
        ...

    def ends(self, node: Node, value: Value) -> None:
        """Tell that the node has been computed."""
        ...


watcher: ContextVar[Watcher | None] = ContextVar("watcher", default=None)


class Elsewhere(Protocol):
    """Computes steps or graphs in place of NumPy."""

    def __call__(self, step: Step, given: list[Value], size: sizer) -> Value:
        """Return the value of a step; operands that only the list holds may be stored into."""
        ...

    def whole(self, graph: Graph, values: list[Value], moving: int | None) -> list[Value] | None:
        """Return the results of a graph whose first ``moving`` parameters change at each iteration, or None to run it step by step."""
        ...

    def ranks(self, graph: Graph) -> tuple[int, ...]:
        """Return the order in which the parameters of a graph arrive; empty if all are there from the start."""
        ...


elsewhere: ContextVar[Elsewhere | None] = ContextVar("elsewhere", default=None)


def is_plain() -> bool:
    """Return whether NumPy computes, without a watcher."""
    return watcher.get() is None and elsewhere.get() is None


@dataclass
class Iterations:
    """Values that the iterations of a loop share.

    Parameters
    ----------
    moving
        The number of leading parameters of the body that change from iteration to iteration.
    sizes
        The result of :func:`bind` at the first iteration.
    values
        What depends on the other parameters alone.
    """

    moving: int
    sizes: dict[Symbol, int] | None = None
    values: dict[Node, Value] | None = None


def run(graph: Graph, values: list[Value], iterations: Iterations | None = None) -> list[Value]:
    """Return the results as :func:`interpret`; ``values`` is emptied, so that arrays held by nothing else may be stored into."""
    other = elsewhere.get()
    if other is not None:
        found = other.whole(graph, values, None if iterations is None else iterations.moving)
        if found is not None:
            return found
    ranks = other.ranks(graph) if other is not None and iterations is None else ()
    first, constants, once, steps = schedule(graph, None if iterations is None else iterations.moving, ranks)
    sizes = bind(graph, values) if iterations is None or iterations.sizes is None else iterations.sizes
    table: dict[Any, Value] = dict(constants)
    for p in reversed(graph.parameters):
        table[p] = values.pop() if p.type.shape else formed(values.pop(), p.type)
    size = sizer(sizes, table)
    for guard in first:
        check(guard, size.atom)
    if iterations is not None and iterations.values is not None:
        table.update(iterations.values)
    watch = watcher.get()
    if watch is not None:
        watch.starts(graph, table)
    if iterations is not None and iterations.values is None:
        _walk(once, table, size, watch)
        iterations.values = {step.node: table[step.node] for step in once}
        iterations.sizes = sizes
    _walk(steps, table, size, watch)
    return [formed(table[r], r.type) for r in graph.results]


def computed(step: Step, given: list[Value], size: Callable[[Size], int]) -> Value:
    """Return the value of a step, computed in the memory of its first operand if only the list holds that."""
    node, reuse, consume = step.node, step.reuse, step.consume
    if reuse is not None and (type(given[0]) is not np.ndarray or is_own(given[0])) and _alone(given) <= _ONE:
        return reuse(node, given, size)
    if consume is not None:
        return consume(node, given, size)
    return node.op.evaluate(node, given, size)


def is_alone(values: list[Value]) -> bool:
    """Return whether only the list holds its first element."""
    return _alone(values) <= _ONE


def _walk(steps: Sequence[Step], table: dict[Any, Value], size: sizer, watch: Watcher | None) -> None:
    own = elsewhere.get() or computed
    for step in steps:
        node, operands, before, after, guards, copies = step[:6]
        given = [table[a] for a in operands]
        for a in before:
            del table[a]
        if watch is not None:
            watch.begins(node, given)
        value = own(step, given, size)
        table[node] = value.copy() if copies and getattr(value, "base", None) is not None else value
        del given, value
        if watch is not None:
            watch.ends(node, table[node])
        for guard in guards:
            check(guard, size.atom)
        for a in after:
            del table[a]


def is_own(array: np.ndarray[Any, Any]) -> bool:
    """Return whether an array that nothing else holds has its memory for itself: its own, or that of a base held by nothing else."""
    flags = array.flags
    if not (flags.writeable and flags.c_contiguous):
        return False
    return flags.owndata or (type(array.base) is np.ndarray and array.base.flags.owndata and _held(array) <= _BY_ONE)


def _held(array: np.ndarray[Any, Any]) -> int:
    return getrefcount(array.base)


_BY_ONE = _held(np.zeros(1).reshape(1))


def formed(value: Value, t: Type) -> Value:
    """Return a value in the form of its type."""
    return value if t.shape else as_form(value, t.form)
