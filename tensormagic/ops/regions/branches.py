"""Branches: graphs of the same operands, of which one runs; ``cond``, ``call``, ``checkpoint`` and ``grad``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from tensormagic.ir.errors import DTypeError
from tensormagic.ir.graph import Graph, bare_symbol
from tensormagic.ir.node import Node, make, topological
from tensormagic.ir.operation import Guard
from tensormagic.ir.size import Size, bare_atom, nodes_of
from tensormagic.ir.substituting import substitute
from tensormagic.ir.type import Type
from tensormagic.ops.interpret import run
from tensormagic.ops.leaf import constant
from tensormagic.ops.loop_text import Given, Text, write_graph
from tensormagic.ops.move import broadcast
from tensormagic.ops.op import Tangent, Value
from tensormagic.ops.opaque import items
from tensormagic.ops.regions.region import (
    Pulled,
    Pushed,
    Region,
    agreed,
    derivatives,
    graph_over,
    like,
    matched,
    result_types,
    stand_in,
    tangent_type,
    unread,
    unused,
    witnesses,
)
from tensormagic.ops.regions.rows import axes_of_results, packed_axes
from tensormagic.ops.reverse.residuals import residuals, restored
from tensormagic.ops.reverse.tape import empty_tape, is_tape, read_tape, record, tape_type
from tensormagic.ops.rows import Axes, Found, Mixed
from tensormagic.ops.tangents import masked_by


@dataclass(frozen=True, eq=False)
class _Branch:
    """One of the graphs, with the values of its symbols for the operands."""

    graph: Graph
    operands: Sequence[Node]
    symbols: Mapping[Any, Size]
    types: tuple[Type, ...]  # the types of the results, in sizes outside

    def knows(self, inner: Size, outer: Size) -> bool:
        """Return whether a size of the graph must equal ``outer``, since operands must fit where the graph runs."""
        pairs = zip(self.graph.parameters, self.operands, strict=True)
        axes = [axis for p, o in pairs for axis in zip(p.type.shape, o.type.shape, strict=True)]
        if (inner, outer) in axes:
            return True
        others = ((bare_symbol(own), size) for own, size in axes)
        if any(a is not None and substitute(inner, {**self.symbols, a: size}) == outer for a, size in others):
            return True
        fit = {a: substitute(own, self.symbols) for own, size in axes if (a := bare_atom(size)) is not None}
        return substitute(outer, fit) == substitute(inner, self.symbols)


def _of_both(first: _Branch, second: _Branch, number: int) -> tuple[Type, list[Guard]]:
    """Return the type of a result, with sizes that hold on both branches, and the guards needed for that.

    A branch may know that two sizes are equal if it is taken; on the other branch they may differ.
    """
    own, other = first.types[number], second.types[number]
    inner = (branch.graph.results[number].type.shape for branch in (first, second))
    shape: list[Size] = []
    guards: list[Guard] = []
    for s, t, mine, theirs in zip(own.shape, other.shape, *inner, strict=True):
        known = (
            [] if s == t else [n for branch, n, of in ((first, t, mine), (second, s, theirs)) if branch.knows(of, n)]
        )
        if len(known) == 1:
            shape.append(known[0])
            continue
        shape.append(s)
        if s != t:
            guards.append((s, "==", t))
    return own.with_shape(tuple(shape), own.form), guards


def packed(values: Sequence[Any]) -> Any:
    """Return a single result, or a tuple of several."""
    return values[0] if len(values) == 1 else tuple(values)


@dataclass(frozen=True, eq=False, kw_only=True)
class Branches(Region):
    """Graphs over the same operands, one of which runs: ``cond`` chooses by its first operand, ``call`` has one graph only.

    Parameters
    ----------
    chooses
        Whether the first operand selects the graph.
    saves
        Whether reverse mode saves what it reads; otherwise the graph runs again.
    """

    chooses: bool
    saves: bool = True

    def graphs(self, params: Mapping[str, Any]) -> dict[str, Graph]:
        """Return the graphs by parameter name."""
        return {name: graph for name, graph in params.items() if isinstance(graph, Graph)}

    def _operands(self, args: Sequence[Any]) -> Sequence[Any]:
        return args[1:] if self.chooses else args

    def _typed(self, args: tuple[Node, ...], params: Mapping[str, Any]) -> tuple[tuple[Type, ...], list[Guard]]:
        if self.chooses and (args[0].type.shape or args[0].type.dtype != np.dtype(bool)):
            raise DTypeError(f"the predicate of a cond is a bool, not {args[0].type}")
        branches: list[_Branch] = []
        guards: list[Guard] = []
        for graph in self.graphs(params).values():
            symbols, needed = matched(graph, self._operands(args), self.name)
            guards += needed
            branches.append(_Branch(graph, self._operands(args), symbols, result_types(graph, symbols)))
        if len(branches) == 1:
            return branches[0].types, guards
        first, second = branches
        if not agreed(first.types, second.types, "the branches give different types"):
            return first.types, guards
        both = [_of_both(first, second, k) for k in range(len(first.types))]
        return tuple(t for t, _ in both), guards + [g for _, needed in both for g in needed]

    def infer(self, args: tuple[Node, ...], params: Mapping[str, Any]) -> Type | tuple[Type, ...]:
        return packed(self._typed(args, params)[0])

    def guards(self, node: Node) -> list[Guard]:
        return self._typed(node.args, node.params)[1]

    def split(self, node: Node, axes: Axes, rows: Size) -> Found:
        if self.chooses and axes[0] is not None:
            raise Mixed("chooses by rows: np.where chooses for each of them")
        operands, own = self._operands(node.args), self._operands(axes)
        found = [axes_of_results(g, operands, own, rows, self.name) for g in self.graphs(node.params).values()]
        if any(f != found[0] for f in found):
            raise Mixed("has branches of which one has rows, and the other has not")
        return packed_axes(found[0])

    def driven(self, begins: Sequence[Value], call: Callable[[str, Sequence[Value]], list[Value]]) -> list[Value]:
        """Return the results, if the caller runs the graphs: ``call(name, [])`` runs the named one."""
        return call(("then" if begins[0] else "otherwise") if self.chooses else "graph", [])

    def consume(self, node: Node, values: list[Value], size: Callable[[Size], int]) -> Value:
        del size
        if not self.chooses:
            return packed(run(next(iter(self.graphs(node.params).values())), values))
        return packed(run(node["then"] if values.pop(0) else node["otherwise"], values))

    def written(self, node: Node, text: Text, given: Sequence[Given], targets: Sequence[str]) -> None:
        """Write the graphs into the text of a loop."""
        if not self.chooses:
            write_graph(text, next(iter(self.graphs(node.params).values())), given, targets)
            return
        with text.block(f"if {given[0].name}:"):
            write_graph(text, node["then"], given[1:], targets)
        with text.block("else:"):
            write_graph(text, node["otherwise"], given[1:], targets)

    def again(self, node: Node, graphs: Mapping[str, Graph], operands: Sequence[Node]) -> tuple[Node, ...]:
        """Return the results of the same choice among other graphs."""
        return items(make(self, (*node.args[: int(self.chooses)], *operands), None, **graphs))

    # derivatives

    def push(self, node: Node, tangents: Sequence[Tangent]) -> Pushed:
        given = self._operands(tangents)
        moving = [k for k, t in enumerate(given) if t is not None]
        found = {name: _pushed(graph, moving) for name, graph in self.graphs(node.params).items()}
        count = len(node.types)
        active = [k for k in range(count) if any(changes[k] is not None for _, _, changes in found.values())]
        if not active:
            return Pushed(items(node), [None] * count)
        graphs: dict[str, Graph] = {}
        for name, (parameters, results, changes) in found.items():
            ends = [like(changes[k], results[k]) for k in active]
            graphs[name] = graph_over(parameters, [*results, *ends], node[name])
        operands = self._operands(node.args)
        ends = self.again(node, graphs, [*operands, *(like(given[k], operands[k]) for k in moving)])
        moved: list[Tangent] = [None] * count
        for k, end in zip(active, ends[count:], strict=True):
            moved[k] = end
        return Pushed(ends[:count], moved)

    def pull(
        self, node: Node, cotangents: Sequence[Tangent], wanted: Sequence[bool], sums: Sequence[Tangent]
    ) -> Pulled:
        first = int(self.chooses)
        operands = self._operands(node.args)
        given = [k for k, c in enumerate(cotangents) if c is not None]
        moving = [k for k, w in enumerate(wanted[first:]) if w]
        graphs = self.graphs(node.params)
        parts = [_Part(graph, given, moving, self.saves) for graph in graphs.values()]
        sizes = [matched(graph, operands, self.name)[0] for graph in graphs.values()]
        ends, saved = self._forward(node, parts)
        moved = [n for n in range(len(moving)) if any(part.moves(n) for part in parts)]
        back: list[Tangent] = [None] * len(node.args)
        if moved:
            pulled = [like(cotangents[k], ends[k]) for k in given]
            starts = [like(sums[first + moving[n]], operands[moving[n]]) for n in moved]
            found = self._backward(node, parts, sizes, moved, [*saved, *pulled, *starts])
            for n, end in zip(moved, found, strict=True):
                k = first + moving[n]
                which = [name for name, part in zip(graphs, parts, strict=True) if part.moves(n)]
                masks = self.chooses and len(which) == 1 and sums[k] is None and not is_tape(end)
                back[k] = masked_by(node.args[0], end, zero_first=which[0] == "otherwise") if masks else end
        return Pulled(ends, back, {first + moving[n] for n in moved})

    def _forward(self, node: Node, parts: Sequence[_Part]) -> tuple[tuple[Node, ...], list[Node]]:
        """Return the results, from a region that also returns what the branches save, and the saved values."""
        count = len(node.types)
        if not any(part.saved for part in parts):
            return items(node), []
        graphs: dict[str, Graph] = {}
        for name, part in zip(self.graphs(node.params), parts, strict=True):
            extra = [slot for owner in parts for slot in _slots(owner, part)]
            graphs[name] = graph_over(part.graph.parameters, [*part.results, *extra], part.graph)
        ends = self.again(node, graphs, self._operands(node.args))
        return ends[:count], list(ends[count:])

    def _backward(
        self,
        node: Node,
        parts: Sequence[_Part],
        sizes: Sequence[Mapping[Any, Size]],
        moved: Sequence[int],
        values: Sequence[Node],
    ) -> tuple[Node, ...]:
        """Return the cotangents of the moving operands, from saved values, cotangents of the results, and sums so far."""
        operands = self._operands(node.args)
        borders = [part.border(parts, moved) for part in parts]
        used = [k for k in range(len(operands)) if any(k in border.read for border in borders)]
        lists = [
            [part.graph.parameters[k] for k in used] + b.parameters for part, b in zip(parts, borders, strict=True)
        ]
        seen = [witnesses(b.results, own, s) for b, own, s in zip(borders, lists, sizes, strict=True)]
        graphs: dict[str, Graph] = {}
        for n, (name, border) in enumerate(zip(self.graphs(node.params), borders, strict=True)):
            free = unused([*topological([*lists[n], *border.results]), *(w for inner, _ in seen for w in inner)])
            others = [w if m == n else unread(w.type, free) for m, (inner, _) in enumerate(seen) for w in inner]
            graphs[name] = graph_over([*lists[n], *others], border.results)
        outer = [*(operands[k] for k in used), *values, *(w for _, found in seen for w in found)]
        return self.again(node, graphs, outer) if self.saves else call(graphs["graph"], outer)


# reverse mode of one branch -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Border:
    """The parameters and results of a branch's backward graph, apart from the operands."""

    read: set[int]
    parameters: list[Node]
    results: list[Node]


class _Part:
    """One graph, with the cotangents of its operands and the inner values these read."""

    def __init__(self, graph: Graph, given: Sequence[int], moving: Sequence[int], saves: bool) -> None:
        own = [graph.parameters[k] for k in moving]
        seeds: list[Tangent] = [None] * len(graph.results)
        for k in given:
            seeds[k] = stand_in("cotangent", tangent_type(graph.results[k].type))
        self.sums = [stand_in("sum", tangent_type(p.type)) for p in own]
        found, back = derivatives().pull([*graph.results, *own], [*seeds, *self.sums], own)
        self.graph = graph
        self.pulled = [c for c in seeds if c is not None]
        self.results = found[: len(graph.results)]
        self.cotangents = [like(c, p) for c, p in zip(back, own, strict=True)]
        known = graph.parameters
        self.saved = residuals(self.cotangents, [*self.pulled, *self.sums], known) if saves else []

    def moves(self, number: int) -> bool:
        """Return whether the graph adds something to the cotangent of an operand."""
        return self.cotangents[number] is not self.sums[number]

    def border(self, parts: Sequence[_Part], moved: Sequence[int]) -> _Border:
        """Return the backward graph of this branch, which receives the values saved by all branches."""
        slots: list[Node] = []
        own: list[Node] = []
        for owner in parts:
            for value in owner.saved:
                t = value.type
                taped = _is_taped(value)
                slots.append(
                    stand_in("saved", tape_type(t) if taped else Type(t.dtype, _shape(value, owner, self), t.form))
                )
                own += slots[-1:] if owner is self else []

        def read(k: int, shape: tuple[Size, ...]) -> Node:
            t = self.saved[k].type
            return read_tape(own[k], constant(0), Type(t.dtype, shape, t.form)) if _is_taped(self.saved[k]) else own[k]

        results = restored([self.cotangents[n] for n in moved], self.saved, read)
        nodes = set(topological(results))
        places = {k for k, p in enumerate(self.graph.parameters) if p in nodes}
        return _Border(places, [*slots, *self.pulled, *(self.sums[n] for n in moved)], results)


def _is_taped(value: Node) -> bool:
    """Return whether the shape of a saved value is known only inside the branch."""
    return any(nodes_of(s) for s in value.type.shape)


def _shape(value: Node, owner: _Part, reader: _Part) -> tuple[Size, ...]:
    """Return the shape of a value saved by one branch, in the sizes of another."""
    pairs = zip(owner.graph.parameters, reader.graph.parameters, strict=True)
    sizes = {
        symbol: t
        for p, q in pairs
        for s, t in zip(p.type.shape, q.type.shape, strict=True)
        if (symbol := bare_symbol(s)) is not None
    }
    return tuple(substitute(s, sizes) for s in value.type.shape)


def _slots(owner: _Part, part: _Part) -> list[Node]:
    """Return the values that ``part`` returns for the saved values of ``owner``: these if it is the owner, else zeros."""
    found: list[Node] = []
    for value in owner.saved:
        if _is_taped(value):
            empty = empty_tape(value.type)
            found.append(record(empty, constant(0), value) if owner is part else empty)
        elif owner is part:
            found.append(value)
        else:
            found.append(_zeros(value.type, _shape(value, owner, part)))
    return found


def _zeros(t: Type, shape: tuple[Size, ...]) -> Node:
    if t.form == "tape":
        return empty_tape(t)
    zero = t.dtype.type(0)
    if t.form == "python":
        return constant(zero.item())
    return broadcast(constant(np.asarray(zero) if t.form == "array" and not shape else zero), shape)


def _pushed(graph: Graph, moving: Sequence[int]) -> tuple[list[Node], list[Node], list[Tangent]]:
    """Return the parameters of a graph with tangents for those ``moving``, its results and their tangents."""
    own = graph.parameters
    extra = [stand_in("tangent", tangent_type(own[k].type)) for k in moving]
    results, changes = derivatives().push(graph.results, {own[k]: t for k, t in zip(moving, extra, strict=True)})
    return [*own, *extra], results, changes


# the ops --------------------------------------------------------------------------------------------------------------

COND = Branches(name="cond", chooses=True, doc="One of two graphs on the same operands; only the chosen one runs.")
CALL = Branches(name="call", chooses=False, doc="A graph on operands.")
CHECKPOINT = Branches(
    name="checkpoint",
    chooses=False,
    saves=False,
    doc="A graph on operands, of which a gradient keeps the operands only: it runs again for its derivative.",
)


def cond(pred: Node, then: Graph, otherwise: Graph, operands: Sequence[Node]) -> tuple[Node, ...]:
    """Return the results of ``then`` if ``pred`` is true, else of ``otherwise``."""
    return items(make(COND, (pred, *operands), then=then, otherwise=otherwise))


def call(graph: Graph, operands: Sequence[Node]) -> tuple[Node, ...]:
    """Return the results of ``graph`` on ``operands``."""
    return items(make(CALL, operands, graph=graph))


def checkpoint(graph: Graph, operands: Sequence[Node]) -> tuple[Node, ...]:
    """Return the results of ``graph`` on ``operands``; a derivative recomputes the inner values it reads."""
    return items(make(CHECKPOINT, operands, graph=graph))


@dataclass(frozen=True, eq=False, kw_only=True)
class Grad(Region):
    """The gradients of a graph's single real result with respect to the operands numbered in ``params["wrt"]``.

    It stays one node until the graph inside has been rewritten; :meth:`expand` then gives it in simpler ops.
    """

    def infer(self, args: tuple[Node, ...], params: Mapping[str, Any]) -> Type | tuple[Type, ...]:
        matched(params["graph"], args, self.name)
        return packed([tangent_type(args[k].type) for k in params["wrt"]])

    def guards(self, node: Node) -> list[Guard]:
        return matched(node["graph"], node.args, self.name)[1]

    def expand(self, node: Node) -> Node:
        return make(CALL, node.args, graph=_gradient_graph(node["graph"], node["wrt"]))

    def consume(self, node: Node, values: list[Value], size: Callable[[Size], int]) -> Value:
        del size
        return packed(run(_gradient_graph(node["graph"], node["wrt"]), values))

    def written(self, node: Node, text: Text, given: Sequence[Given], targets: Sequence[str]) -> None:
        """Write the graph into the text of a loop."""
        write_graph(text, _gradient_graph(node["graph"], node["wrt"]), given, targets)

    def push(self, node: Node, tangents: Sequence[Tangent]) -> Pushed:
        return CALL.push(self.expand(node), tangents)

    def pull(
        self, node: Node, cotangents: Sequence[Tangent], wanted: Sequence[bool], sums: Sequence[Tangent]
    ) -> Pulled:
        return CALL.pull(self.expand(node), cotangents, wanted, sums)


@lru_cache(maxsize=256)
def _gradient_graph(graph: Graph, wrt: tuple[int, ...]) -> Graph:
    return graph.with_results(derivatives().gradient(graph.results[0], [graph.parameters[k] for k in wrt]))


GRAD = Grad(name="grad", doc="The gradients of a graph's result with respect to some of its operands.")


def grad(graph: Graph, operands: Sequence[Node], wrt: tuple[int, ...]) -> tuple[Node, ...]:
    """Return the gradients of the only result of ``graph`` at ``operands``, with respect to those numbered in ``wrt``."""
    return items(make(GRAD, operands, graph=graph, wrt=wrt))
