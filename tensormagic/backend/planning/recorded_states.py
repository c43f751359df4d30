"""Merge records of a loop's carry into the carry: one array of all states, of which an iteration reads one and writes the next.

``H[t] = u; u = f(u)`` writes every value twice, and copies it where ``f`` stores into ``u``. With one row more,
``H[t + 1] = f(H[t])`` does all of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from tensormagic.backend.planning.fusion import may_round
from tensormagic.backend.planning.inline import expand_all, is_box, rim, room
from tensormagic.backend.planning.kinds import graphs_of, kind_of
from tensormagic.ir import site
from tensormagic.ir.graph import Graph, bare_symbol
from tensormagic.ir.node import Node, as_size, make, replaced, topological
from tensormagic.ir.size import Size, nodes_of
from tensormagic.ir.type import Type
from tensormagic.ops.leaf import constant_value, size_of
from tensormagic.ops.move import RESHAPE, reshape, slice_
from tensormagic.ops.opaque import ITEM, items
from tensormagic.ops.regions.loops import LOOP
from tensormagic.ops.regions.region import graph_over, stand_in, symbols_in, unused
from tensormagic.ops.update import SET, set_at


def in_states(results: Sequence[Node]) -> tuple[list[Node], dict[Node, Node]]:
    """Return the same results, in simple ops, with such loops rewritten, and the original of each new node."""
    memo: dict[Node, Node] = {}
    nodes = topological(results)
    if not any(map(graphs_of, nodes)):
        return list(results), {}
    for node in nodes:
        if node.op is ITEM and node.args[0].op is LOOP:
            found = memo.get(node)
            memo[node] = found if found is not None else replaced(node, memo)
            continue
        graphs = {name: _converted(value) for name, value in node.params.items() if isinstance(value, Graph)}
        new = replaced(node, memo)
        if any(node[name] is not graph for name, graph in graphs.items()):
            params: dict[str, Any] = {**new.params, **graphs}
            new = make(new.op, new.args, **params)
            site.inherit(new, node)
        memo[node] = new
        if node.op is LOOP:
            ends = _Loop(new).ends({k for k, item in enumerate(items(node)) if item in results})
            memo.update((item, end) for item, end in zip(items(node), ends, strict=False))
    return [memo[r] for r in results], {new: old for old, new in memo.items() if new is not old}


def _converted(graph: Graph) -> Graph:
    """Return a graph with such loops rewritten, or the same graph if it has none."""
    return _known(graph, may_round())


@lru_cache(maxsize=256)
def _known(graph: Graph, _rounds: bool) -> Graph:
    if not any(map(graphs_of, graph.nodes)):
        return graph
    old = expand_all(graph.results)
    new, _ = in_states(old)
    return graph if new == old else graph_over(list(graph.parameters), new, graph)


@dataclass
class _State:
    """A carry and the positions of its records: of values at the start of iterations, and of values at their end."""

    carry: int
    before: list[int] = field(default_factory=list[int])
    after: list[int] = field(default_factory=list[int])


class _Loop:
    """One counted loop."""

    def __init__(self, node: Node) -> None:
        self.node = node
        self.body: Graph = node["body"]
        self.index, *self.own = self.body.parameters
        self.operands = node.args[1:]
        self.carries: int = node["carries"]
        self.iterations = size_of(node.args[0])

    def ends(self, shown: set[int]) -> tuple[Node, ...]:
        """Return replacements for the results of the loop, keeping those numbered in ``shown``, or () if there are none."""
        if self.iterations is None or nodes_of(self.iterations) or self.body.checked:
            return ()
        for k in range(self.carries):
            state = self._state(k, shown)
            if state is not None and (found := self._rebuilt(state)) is not None:
                return found
        return ()

    def _state(self, k: int, shown: set[int]) -> _State | None:
        """Return the records of a carry, or None if merging them does not pay."""
        carry, end = self.own[k], self.body.results[k]
        if not carry.type.shape or end is carry or carry.type != end.type or any(map(nodes_of, carry.type.shape)):
            return None
        found = _State(k)
        for m in range(self.carries):
            value = self._recorded(m) if m != k and m not in shown else None
            if value is carry:
                found.before.append(m)
            elif value is end:
                found.after.append(m)
        return found if found.before or found.after else None

    def _recorded(self, m: int) -> Node | None:
        """Return the value that each iteration stores in its own row of carry ``m``, or None if the carry is used otherwise."""
        stack, end = self.own[m], self.body.results[m]
        stores = end.op is SET and end.args[0] is stack and stack.type.shape
        if constant_value(self.operands[m]) is None or not stores:
            return None
        others = [r for j, r in enumerate(self.body.results) if j != m]
        readers = [n for n in self.body.nodes if stack in n.args]
        (first, extent, step), *rest = end["slices"]
        value = end.args[1]
        whole = all(s == (0, n, 1) for s, n in zip(rest, stack.type.shape[1:], strict=True))
        fits = (extent, step) == (1, 1) and first == as_size(self.index) and whole
        if readers != [end] or end in others or stack in others or not fits or value.op is not RESHAPE:
            return None
        inner = value.args[0]
        alike = inner.type.shape == stack.type.shape[1:] and self.operands[m].type.shape[0] == self.iterations
        return inner if alike and inner.type.dtype == stack.type.dtype else None

    def _rebuilt(self, state: _State) -> tuple[Node, ...] | None:
        """Return the results of the loop over states, or None if its body would lack sizes."""
        k, gone = state.carry, {state.carry, *state.before, *state.after}
        extent = self.own[(state.before + state.after)[0]].type.shape[0]
        shape = self.own[k].type.shape
        inside = extent + 1 if isinstance(extent, int) else next(unused(self.body.nodes))
        states = stand_in("states", Type(self.own[k].type.dtype, (inside, *shape)))
        kept = [j for j in range(len(self.own)) if j not in gone]
        at: Any = as_size(self.index)
        row = reshape(slice_(states, _row(at, shape)), shape)
        nexts = [self.body.results[j] for j in kept if j < self.carries]
        now = _with([*nexts, self.body.results[k]], self.own[k], row)
        later = _stored(states, at + 1, now[-1], row)
        site.inherit(later, self.body.results[k])
        parameters = [states, *(self.own[j] for j in kept)]
        if not _says_sizes(parameters, [later, *now, self.index]):
            return None
        body = graph_over([self.index, *parameters], [later, *now[:-1]], self.body)
        iterations: Any = self.iterations
        outer = self.operands[k].type.shape
        array = room(Type(self.own[k].type.dtype, (iterations + 1, *outer)))
        start = set_at(array, reshape(self.operands[k], (1, *outer)), _row(0, outer))
        operands = [start, *(self.operands[j] for j in kept)]
        carries = 1 + len(nexts)
        new = make(LOOP, [self.node.args[0], *operands], body=body, carries=carries)
        if kind_of(new) != "region":
            return None
        site.inherit(new, self.node)
        every, *others = items(new)
        whole = tuple((0, s, 1) for s in outer)
        ends = dict(zip(kept, others, strict=False))
        ends[k] = reshape(slice_(every, _row(iterations, outer)), outer)
        ends |= dict.fromkeys(state.before, slice_(every, ((0, iterations, 1), *whole)))
        ends |= dict.fromkeys(state.after, slice_(every, ((1, iterations, 1), *whole)))
        return tuple(ends[j] for j in range(self.carries))


def _row(place: Size, shape: Sequence[Size]) -> tuple[tuple[Size, Size, int], ...]:
    return ((place, 1, 1), *((0, s, 1) for s in shape))


def _with(roots: Sequence[Node], old: Node, new: Node) -> list[Node]:
    """Return nodes with ``old`` replaced by ``new``, keeping their sites."""
    memo = {old: new}
    for node in topological(roots, stop=lambda n: n in memo):
        if node not in memo:
            memo[node] = replaced(node, memo)
            site.inherit(memo[node], node)
    return [memo[root] for root in roots]


def _stored(states: Node, place: Size, value: Node, row: Node) -> Node:
    """Return the states with another value stored; if that is ``row`` with a slice overwritten, only the rest is copied."""
    shape = row.type.shape
    part = value["slices"] if value.op is SET and value.args[0] is row else ()
    if not part or not is_box(part):
        return set_at(states, reshape(value, (1, *shape)), _row(place, shape))
    for box in rim(part, shape):
        piece = slice_(row, box)
        states = set_at(states, reshape(piece, (1, *piece.type.shape)), ((place, 1, 1), *box))
    new = value.args[1]
    return set_at(states, reshape(new, (1, *new.type.shape)), ((place, 1, 1), *part))


def _says_sizes(parameters: Sequence[Node], roots: Sequence[Node]) -> bool:
    """Return whether every size that nodes mention is an axis of a parameter."""
    nodes = topological(roots)
    values = [v for n in nodes for v in (*n.params.values(), *(t.shape for t in n.types))]
    return set(symbols_in(values)) <= {bare_symbol(s) for p in parameters for s in p.type.shape}
