"""Functions that call themselves under data-dependent conditions.

The op ``recursive`` holds their graphs, in which the op ``itself`` stands for a call. The derivative of a call is a
call of the derivative: forward mode makes a function of values and tangents, reverse mode one of operands and
cotangents, which calls the function for the values that it reads.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

import numpy as np

from tensormagic.ir.graph import Graph
from tensormagic.ir.node import Node, as_size, make
from tensormagic.ir.operation import Guard
from tensormagic.ir.size import Size, is_at_least
from tensormagic.ir.type import Type
from tensormagic.ops.form import to_form
from tensormagic.ops.interpret import run
from tensormagic.ops.leaf import constant, index_node, size_node
from tensormagic.ops.move import Slices, broadcast, reshape, slice_
from tensormagic.ops.op import Tangent, Value
from tensormagic.ops.opaque import items
from tensormagic.ops.regions.branches import packed
from tensormagic.ops.regions.loops import LOOP
from tensormagic.ops.regions.region import (
    Pulled,
    Pushed,
    Region,
    derivatives,
    graph_over,
    like,
    matched,
    result_types,
    stand_in,
    tangent_type,
    unused,
)
from tensormagic.ops.update import set_at

PUSHED, PULLED, OWN = "d_", "v_", "f_"
FRAMES = 16  # Python frames of one call, at most


@dataclass
class _Calls:
    """The graphs of the running functions by name, the current depth of calls, and its limit."""

    graphs: Mapping[str, Graph]
    depth: int = 0
    most: int = 1000


_running: ContextVar[_Calls | None] = ContextVar("running", default=None)


@contextmanager
def _bound(graphs: Mapping[str, Graph]) -> Generator[None]:
    outer, limit = _running.get(), sys.getrecursionlimit()
    most = limit if outer is None else outer.most
    token = _running.set(_Calls({**(outer.graphs if outer else {}), **graphs}, 0, most))
    sys.setrecursionlimit(max(limit, most * FRAMES))
    try:
        yield
    finally:
        sys.setrecursionlimit(limit)
        _running.reset(token)


def _call(name: str, values: list[Value]) -> Value:
    calls = _running.get()
    if calls is None:
        raise AssertionError(name)
    if calls.depth >= calls.most:
        message = "maximum recursion depth exceeded"
        raise RecursionError(message)
    calls.depth += 1
    try:
        return packed(run(calls.graphs[name], values))
    finally:
        calls.depth -= 1


class _Function(Region):
    """The common base of a call and a function: derivatives are calls of another function, by name."""

    def called(self, node: Node, name: str, operands: Sequence[Node], types: Sequence[Type]) -> tuple[Node, ...]:
        """Return the results, of ``types``, of the function ``name``."""
        raise NotImplementedError

    def push(self, node: Node, tangents: Sequence[Tangent]) -> Pushed:
        moving = _inexact(a.type for a in node.args)
        ends = _inexact(node.types)
        given = [like(tangents[k], node.args[k]) for k in moving]
        types = [*node.types, *(tangent_type(node.types[k]) for k in ends)]
        found = self.called(node, PUSHED + node["of"], [*node.args, *given], types)
        moved: list[Tangent] = [None] * len(node.types)
        for k, tangent in zip(ends, found[len(node.types) :], strict=True):
            moved[k] = tangent
        return Pushed(found[: len(node.types)], moved)

    def pull(
        self, node: Node, cotangents: Sequence[Tangent], wanted: Sequence[bool], sums: Sequence[Tangent]
    ) -> Pulled:
        del sums
        moving = _inexact(a.type for a in node.args)
        own = items(node)
        given = [like(cotangents[k], own[k]) for k in _inexact(node.types)]
        types = [tangent_type(node.args[k].type) for k in moving]
        back: list[Tangent] = [None] * len(node.args)
        if given and moving:
            for k, end in zip(moving, self.called(node, PULLED + node["of"], [*node.args, *given], types), strict=True):
                back[k] = end if wanted[k] else None
        return Pulled(own, back, set())


def _inexact(types: Any) -> list[int]:
    return [k for k, t in enumerate(types) if t.inexact]


@dataclass(frozen=True, eq=False, kw_only=True)
class Itself(_Function):
    """A call of the function ``params["of"]`` inside its own graph, or inside that of a derivative."""

    def infer(self, args: tuple[Node, ...], params: Mapping[str, Any]) -> Type | tuple[Type, ...]:
        rows = zip(params["dtypes"], params["shapes"], params["forms"], strict=True)
        return packed([Type(np.dtype(d), tuple(s), f) for d, s, f in rows])

    def consume(self, node: Node, values: list[Value], size: Callable[[Size], int]) -> Value:
        del size
        return _call(node["of"], values)

    def called(self, node: Node, name: str, operands: Sequence[Node], types: Sequence[Type]) -> tuple[Node, ...]:
        return itself(name, operands, types)


@dataclass(frozen=True, eq=False, kw_only=True)
class Recursive(_Function):
    """The function ``params["of"]`` on operands; the other params are graphs of functions by name."""

    def infer(self, args: tuple[Node, ...], params: Mapping[str, Any]) -> Type | tuple[Type, ...]:
        graph: Graph = params[params["of"]]
        return packed(result_types(graph, matched(graph, args, self.name)[0]))

    def guards(self, node: Node) -> list[Guard]:
        return matched(node[node["of"]], node.args, self.name)[1]

    def consume(self, node: Node, values: list[Value], size: Callable[[Size], int]) -> Value:
        del size
        with _bound({k: v for k, v in node.params.items() if isinstance(v, Graph)}):
            return _call(node["of"], values)

    def called(self, node: Node, name: str, operands: Sequence[Node], types: Sequence[Type]) -> tuple[Node, ...]:
        graphs = {k: v for k, v in node.params.items() if isinstance(v, Graph)}
        return recursive(name, _completed(name, graphs), operands)

    def batch(self, node: Node, args: Sequence[Node], batched: Sequence[bool], size: Size) -> Any:
        """Return the results of a loop over the elements of a batch, each with its own calls."""
        graph: Graph = node[node["of"]]
        inner = size if isinstance(size, int) else next(unused(graph.nodes, is_at_least(size, 2)))
        index = index_node("index", 0, inner)
        pairs = list(zip(graph.parameters, batched, strict=True))
        given = [stand_in("stack", Type(p.type.dtype, (inner, *p.type.shape))) if b else p for p, b in pairs]
        own = [_row(g, index, p.type) if b else g for g, (p, b) in zip(given, pairs, strict=True)]
        results = items(make(self, own, **node.params))
        filled = [stand_in("results", Type(r.type.dtype, (inner, *r.type.shape))) for r in results]
        ends = [
            set_at(f, reshape(r, (1, *r.type.shape)), _place(f, index)) for f, r in zip(filled, results, strict=True)
        ]
        body = graph_over([index, *filled, *given], ends)
        starts = [broadcast(constant(t.dtype.type(0)), (size, *t.shape)) for t in node.types]
        return items(make(LOOP, [size_node(size), *starts, *args], body=body, carries=len(starts)))


def _place(stack: Node, index: Node) -> Slices:
    place = as_size(index)
    if place is None:
        raise AssertionError
    return ((place, 1, 1), *((0, s, 1) for s in stack.type.shape[1:]))


def _row(stack: Node, index: Node, t: Type) -> Node:
    row = reshape(slice_(stack, _place(stack, index)), t.shape)
    return row if t.shape else to_form(row, t.form)


ITSELF = Itself(name="itself", doc="A call of a function inside its own graph.")
RECURSIVE = Recursive(name="recursive", doc="A function that calls itself, depending on data, on operands.")


def itself(name: str, operands: Sequence[Node], types: Sequence[Type]) -> tuple[Node, ...]:
    """Return the results of a call of ``name`` inside its own graph."""
    return items(
        make(
            ITSELF,
            operands,
            of=name,
            dtypes=tuple(t.dtype.str for t in types),
            shapes=tuple(t.shape for t in types),
            forms=tuple(t.form for t in types),
        )
    )


def recursive(name: str, graphs: Mapping[str, Graph], operands: Sequence[Node]) -> tuple[Node, ...]:
    """Return the results of the function ``name``; ``graphs`` has its graph and those of the functions it calls."""
    return items(make(RECURSIVE, operands, None, of=name, **graphs))


# graphs of derivatives ------------------------------------------------------------------------------------------------


def _completed(name: str, known: Mapping[str, Graph]) -> dict[str, Graph]:
    """Return the graphs of ``name`` and of all that it calls; missing ones are derived as derivatives of known ones."""
    graphs = dict(known)
    needed: dict[str, Graph] = {}
    pending = [name]
    while pending:
        one = pending.pop()
        if one not in needed and _base(one) in known:
            needed[one] = _derived(one, graphs)
            pending += _calls(needed[one])
    return needed


def _base(name: str) -> str:
    while name.startswith((PUSHED, PULLED)):
        name = name[2:]
    return name


def _derived(name: str, graphs: dict[str, Graph]) -> Graph:
    if name not in graphs:
        inner = _derived(name[2:], graphs)
        graphs[name] = _pushed(inner) if name.startswith(PUSHED) else _pulled(inner)
    return graphs[name]


def _pushed(graph: Graph) -> Graph:
    own = [graph.parameters[k] for k in _inexact(p.type for p in graph.parameters)]
    extra = [stand_in("tangent", tangent_type(p.type)) for p in own]
    results, changes = derivatives().push(graph.results, dict(zip(own, extra, strict=True)))
    ends = [like(changes[k], results[k]) for k in _inexact(r.type for r in results)]
    return graph_over([*graph.parameters, *extra], [*results, *ends], graph)


def _pulled(graph: Graph) -> Graph:
    own = [graph.parameters[k] for k in _inexact(p.type for p in graph.parameters)]
    ends = _inexact(r.type for r in graph.results)
    seeds = [stand_in("cotangent", tangent_type(graph.results[k].type)) for k in ends]
    given: list[Tangent] = [None] * len(graph.results)
    for k, seed in zip(ends, seeds, strict=True):
        given[k] = seed
    _, found = derivatives().pull(graph.results, given, own)
    back = [like(c, p) for c, p in zip(found, own, strict=True)]
    return graph_over([*graph.parameters, *seeds], back, graph)


def _calls(graph: Graph) -> Iterator[str]:
    """Yield the names of the functions that a graph calls, also in graphs inside it."""
    pending, seen = [graph], set[Graph]()
    while pending:
        one = pending.pop()
        for node in one.nodes:
            if node.op is ITSELF:
                yield node["of"]
            inner = [g for g in node.params.values() if isinstance(g, Graph) and g not in seen]
            seen.update(inner)
            pending += inner
