"""Turn tapes of compiled loops into growing arrays: each iteration appends its entry.

A tape whose entries all have one shape, known before the loop runs, becomes an array with an axis for the
iterations. Its length is unknown until the loop has run, so its memory grows meanwhile.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from tensormagic.backend.planning.inline import DTYPES, Growing, Instance, expand_all, room
from tensormagic.backend.planning.kinds import graphs_of, kind_of
from tensormagic.ir import site
from tensormagic.ir.graph import Graph
from tensormagic.ir.node import Node, as_size, make, replaced, topological
from tensormagic.ir.size import Size, nodes_of, symbol
from tensormagic.ir.type import Type
from tensormagic.ops.form import to_form
from tensormagic.ops.leaf import PARAMETER, Source, input_node
from tensormagic.ops.move import Slices, reshape, slice_
from tensormagic.ops.opaque import ITEM
from tensormagic.ops.regions.control import COND, LOOP, WHILE
from tensormagic.ops.regions.region import graph_over
from tensormagic.ops.reverse.tape import EMPTY, RECORD, REPLAY, is_tape
from tensormagic.ops.update import set_at

LENGTH = symbol("entries", least=1)  # of every tape: no code mentions it


class _TapeError(Exception):
    """A tape that is no array."""


def untaped(results: Sequence[Node]) -> tuple[list[Node], dict[Node, Node]] | None:
    """Return the same results with growing arrays for tapes, and the original of each new node, or None if impossible or needless."""
    if not _has_tapes(tuple(results)):
        return None
    try:
        walk = _Walk({})
        return walk.of(results), {new: old for old, new in walk.memo.items()}
    except _TapeError:
        return None


def _has_tapes(results: tuple[Node, ...]) -> bool:
    nodes = topological(results)
    return any(any(t.form == "tape" for t in n.types) or any(map(_graph_has_tapes, graphs_of(n))) for n in nodes)


@lru_cache(maxsize=256)
def _graph_has_tapes(graph: Graph) -> bool:
    return _has_tapes(tuple(expand_all([*graph.results, *graph.checked])))


class _Walk:
    """Nodes over arrays in place of tapes.

    Parameters
    ----------
    memo
        Replacements of nodes; empty outside loops, where tapes are only passed on.
    """

    def __init__(self, memo: dict[Node, Node]) -> None:
        self.inside = bool(memo)
        self.memo = memo

    def of(self, results: Sequence[Node]) -> list[Node]:
        """Return the replacements of ``results``."""
        for node in topological(results, stop=lambda n: n in self.memo):
            if node not in self.memo and node.op is not EMPTY:
                new = self.memo[node] = self._converted(node)
                site.inherit(new, node)
        return [self._array(r) for r in results]

    def _array(self, node: Node) -> Node:
        found = self.memo.get(node)
        if found is None or any(t.form == "tape" for t in found.types):
            raise _TapeError
        return found

    def _converted(self, node: Node) -> Node:
        if node.op in {RECORD, REPLAY} and not self.inside:
            raise _TapeError
        if node.op is RECORD:
            tape, index, value = map(self._array, node.args)
            return set_at(tape, reshape(value, (1, *value.type.shape)), _entry(index, value.type.shape))
        if node.op is REPLAY:
            tape, index = map(self._array, node.args)
            shape = replaced(node, self.memo)["shape"] if node.sized_by else node["shape"]
            return to_form(reshape(slice_(tape, _entry(index, shape)), shape), node.type.form)
        if node.op in {LOOP, WHILE} and any(map(_graph_has_tapes, graphs_of(node))):
            return self._repetition(node)
        if node.op is COND and any(map(_graph_has_tapes, graphs_of(node))):
            raise _TapeError
        if node.op is not ITEM and any(map(is_tape, node.args)):
            raise _TapeError
        for operand in node.args:
            self._array(operand)
        return replaced(node, self.memo)

    def _repetition(self, node: Node) -> Node:
        """Return a loop with arrays for its tapes, if all of it can be one function."""
        first, carries, body = int(node.op is LOOP), node["carries"], node["body"]
        outside = Instance(body, [*body.parameters[:first], *node.args[first:]])
        args = [self._array(count) for count in node.args[:first]]
        inner: dict[Node, Node] = {}
        for k, (p, operand) in enumerate(zip(body.parameters[first:], node.args[first:], strict=True)):
            if not is_tape(p):
                args.append(self._array(operand))
                continue
            shape = _shape(body, p, k if k < carries else None)
            inner[p] = input_node(Source("tape"), Type(p.type.dtype, (LENGTH, *shape)))
            if k < carries and operand.op is not EMPTY:
                raise _TapeError
            own = Type(p.type.dtype, (LENGTH, *(outside.size(s) for s in shape)))
            args.append(room(own, Growing) if k < carries else self._array(operand))
        graphs = {"body": _over(body, inner)}
        if not first:
            test: Graph = node["test"]
            pairs = zip(test.parameters, body.parameters, strict=True)
            graphs["test"] = _over(test, {p: _like(inner[q], k) for k, (p, q) in enumerate(pairs) if q in inner})
        params: dict[str, Any] = {**node.params, **graphs}
        new = make(node.op, args, **params)
        if kind_of(new) != "region":
            raise _TapeError
        return new


def _entry(index: Node, shape: Sequence[Size]) -> Slices:
    """Return the slice of an array that a tape's entry occupies."""
    place = as_size(index)
    if place is None or any(n.op is not PARAMETER for n in nodes_of(place)):
        raise _TapeError
    return ((place, 1, 1), *((0, s, 1) for s in shape))


def _like(array: Node, number: int) -> Node:
    """Return an array like one of another graph, with new symbols for its symbolic sizes."""
    extents = [s if isinstance(s, int) else symbol(f"tape{number}.{k}") for k, s in enumerate(array.type.shape[1:])]
    return input_node(Source("tape"), Type(array.type.dtype, (LENGTH, *extents)))


def _over(graph: Graph, tapes: dict[Node, Node]) -> Graph:
    """Return a graph over arrays in place of tapes."""
    known = {p: tapes.get(p, p) for p in graph.parameters}
    expanded = expand_all([*graph.results, *graph.checked])
    found = _Walk(dict(known)).of(expanded)
    if any(new is not old for old, new in zip(graph.checked, found[len(graph.results) :], strict=True)):
        raise _TapeError
    return graph_over([known[p] for p in graph.parameters], found[: len(graph.results)], graph)


def _shape(body: Graph, tape: Node, carry: int | None) -> tuple[Size, ...]:
    """Return the shape of a tape's entries, in sizes of a body; a carried tape gets one entry per iteration."""
    users = [n for n in topological(expand_all(body.results)) if tape in n.args]
    if tape.type.dtype not in DTYPES or not users:
        raise _TapeError
    if carry is None:
        shapes = {n["shape"] if n.op is REPLAY else None for n in users}
    else:
        (end,) = expand_all([body.results[carry]])
        shapes = {n.args[2].type.shape if n.op is RECORD and n is end else None for n in users}
    shape = next(iter(shapes))
    if len(shapes) > 1 or shape is None or any(nodes_of(s) for s in shape):
        raise _TapeError
    return shape
