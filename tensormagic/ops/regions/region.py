"""The common part of all ops with graphs: how a graph fits its operands, and how it is differentiated.

How a graph is differentiated is known one floor up; ``install_derivatives`` passes it down, as ``install_operators``
passes the pointwise ops to nodes. So a region implements the same methods as any other op.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from tensormagic.ir import site
from tensormagic.ir.errors import DataShapeError, DifferentiationError, DTypeError, ShapeError
from tensormagic.ir.graph import Graph, bare_symbol
from tensormagic.ir.node import Node, as_size, make, resized, topological
from tensormagic.ir.operation import Guard
from tensormagic.ir.size import Dim, Size, Symbol, atom, atoms, nodes_of, symbol
from tensormagic.ir.substituting import substitute
from tensormagic.ir.type import Type
from tensormagic.ops.form import to_form
from tensormagic.ops.leaf import Source, constant, input_node, parameter, size_of
from tensormagic.ops.move import broadcast
from tensormagic.ops.move_kind import same, show
from tensormagic.ops.op import Op, Tangent, Value
from tensormagic.ops.pointwise import astype
from tensormagic.ops.reverse.tape import is_tape, zeros

# types ----------------------------------------------------------------------------------------------------------------


def matched(graph: Graph, operands: Sequence[Node], what: str) -> tuple[dict[Any, Size], list[Guard]]:
    """Return the values of the symbols and integer parameters of ``graph`` for these operands, and the guards on their sizes."""
    if len(graph.parameters) != len(operands):
        raise ShapeError(f"{what} takes {len(graph.parameters)} operands, {len(operands)} are given")
    symbols: dict[Any, Size] = {}
    rest: list[tuple[Size, Size]] = []
    for number, (p, operand) in enumerate(zip(graph.parameters, operands, strict=True)):
        if p.type.dtype != operand.type.dtype:
            raise DTypeError(f"{what}: operand {number} is {operand.type}, its graph takes {p.type}")
        if p.type.ndim != operand.type.ndim:
            raise ShapeError(f"{what}: operand {number} has shape {show(operand.type.shape)}, its graph takes {p.type}")
        for inner, outer in zip(p.type.shape, operand.type.shape, strict=True):
            symbol = bare_symbol(inner)
            if symbol is not None and symbol not in symbols and (outer not in {0, 1} or not symbol.least):
                symbols[symbol] = outer
            else:
                rest.append((inner, outer))
    guards = [(outside(inner, symbols, what), "==", outer) for inner, outer in rest]
    for inner, _, outer in guards:
        if not same(inner, outer):
            raise ShapeError(f"{what}: a size is {outer} where its graph takes {inner}")
    known = set(symbols)
    guards += [
        (substitute(a, symbols), r, substitute(b, symbols))
        for a, r, b in graph.guards
        if {*atoms(a), *atoms(b)} <= known
    ]
    symbols.update(
        (p, size) for p, o in zip(graph.parameters, operands, strict=True) if (size := size_of(o)) is not None
    )
    # data-dependent sizes are checked where the region runs
    return symbols, [g for g in guards if not (nodes_of(g[0]) or nodes_of(g[2]) or (g[1] == "==" and g[0] == g[2]))]


def outside(size: Size, symbols: Mapping[Any, Size], what: str) -> Size:
    """Return a size of a graph in terms of the operands' sizes."""
    if any(a not in symbols for a in atoms(size)):
        raise ShapeError(f"{what}: its graph was made for sizes of at least 2, and an operand has fewer")
    return substitute(size, symbols)


def result_types(graph: Graph, symbols: Mapping[Any, Size]) -> tuple[Type, ...]:
    """Return the types of the results seen from outside; raise DataShapeError for a size computed inside."""
    for r in graph.results:
        inner = [n for s in r.type.shape for n in nodes_of(s) if n not in symbols]
        if inner:
            raise DataShapeError(
                f"the shape of a result, {show(r.type.shape)}, depends on data that a branch or an iteration computes ({inner[0]})",
                "Give the result a size that is known outside: fill an array of the largest size, and return how much of it counts.",
            )
    return tuple(
        Type(r.type.dtype, tuple(substitute(s, symbols) for s in r.type.shape), r.type.form) for r in graph.results
    )


def agreed(left: Sequence[Type], right: Sequence[Type], what: str) -> list[Guard]:
    """Return the guards under which two lists of types are equal; raise DTypeError if they cannot be."""
    fits = len(left) == len(right) and all(
        a.dtype == b.dtype and a.form == b.form and a.ndim == b.ndim and all(map(same, a.shape, b.shape))
        for a, b in zip(left, right, strict=True)
    )
    if not fits:
        raise DTypeError(f"{what}: {', '.join(map(str, left))} against {', '.join(map(str, right))}")
    pairs = [(s, t) for a, b in zip(left, right, strict=True) for s, t in zip(a.shape, b.shape, strict=True)]
    return [(s, "==", t) for s, t in pairs if s != t]


def tangent_type(t: Type) -> Type:
    """Return the type of tangents and cotangents of a value of type ``t``."""
    return t.with_shape(t.shape)


# derivatives of graphs ------------------------------------------------------------------------------------------------

Moved = tuple[list[Node], list[Tangent]]


@dataclass(frozen=True)
class Derivatives:
    """The functions that differentiate graphs, which :mod:`tensormagic.transform.grad` sets when it is imported.

    Parameters
    ----------
    push
        ``push(results, tangents)``: the results, with regions that give values and tangents at once, and their tangents.
    pull
        ``pull(results, cotangents, wrt)``: the results, with regions that also give what the derivative reads, and the
        cotangents of ``wrt``.
    active
        ``active(results, wrt)``: the nodes that carry derivatives from ``wrt`` to ``results``.
    gradient
        ``gradient(result, wrt)``.
    """

    push: Callable[[Sequence[Node], dict[Node, Node]], Moved]
    pull: Callable[[Sequence[Node], Sequence[Tangent], Sequence[Node]], Moved]
    active: Callable[[Sequence[Node], Sequence[Node]], set[Node]]
    gradient: Callable[[Node, Sequence[Node]], list[Node]]


_derivatives: list[Derivatives] = []


def install_derivatives(derivatives: Derivatives) -> None:
    """Set how the graphs of regions are differentiated."""
    _derivatives[:] = [derivatives]


def derivatives() -> Derivatives:
    """Return the functions that differentiate the graphs of regions."""
    if not _derivatives:
        raise DifferentiationError("derivatives of regions are not there yet", "import tensormagic.transform.grad")
    return _derivatives[0]


def like(tangent: Tangent, node: Node) -> Node:
    """Return a tangent or cotangent of ``node`` in its proper type; zeros for None."""
    if tangent is not None and is_tape(node):
        return tangent
    of = tangent_type(node.type)
    found = zeros(node) if tangent is None else broadcast(astype(tangent, of.dtype), of.shape)
    return found if of.shape or of.form == "tape" else to_form(found, of.form)


class Pushed(NamedTuple):
    """The result of forward mode on a region: the region that replaces it, result by result, and the tangents."""

    results: tuple[Node, ...]
    tangents: list[Tangent]


class Pulled(NamedTuple):
    """The result of reverse mode on a region.

    Parameters
    ----------
    results
        What takes the place of each of its results.
    cotangents
        One an operand.
    summed
        The operands whose cotangent holds what had been gathered before.
    """

    results: tuple[Node, ...]
    cotangents: list[Tangent]
    summed: set[int]


@dataclass(frozen=True, eq=False, kw_only=True)
class Region(Op):
    """An op with graphs that share no nodes with the graph around them; its derivatives are regions again."""

    kind = "region"
    any_dtype = True

    def consume(self, node: Node, values: list[Value], size: Callable[[Size], int]) -> Value:
        """Return the value as ``evaluate``; arrays that only ``values`` holds may be stored into."""
        raise NotImplementedError

    def evaluate(self, node: Node, values: Sequence[Value], size: Callable[[Size], int]) -> Value:
        return self.consume(node, list(values), size)

    def effort(self, node: Node) -> Size:
        return 0

    def push(self, node: Node, tangents: Sequence[Tangent]) -> Pushed:
        """Return the result of forward mode."""
        raise NotImplementedError

    def pull(
        self, node: Node, cotangents: Sequence[Tangent], wanted: Sequence[bool], sums: Sequence[Tangent]
    ) -> Pulled:
        """Return the result of reverse mode for the operands that are ``wanted``; ``sums`` are their cotangents gathered so far."""
        raise NotImplementedError

    def jvp(self, node: Node, tangents: Sequence[Tangent]) -> Any:
        found = self.push(node, tangents).tangents
        return found[0] if len(found) == 1 else tuple(found)


# borders --------------------------------------------------------------------------------------------------------------


def stand_in(name: str, t: Type) -> Node:
    """Return an input node that later becomes a parameter."""
    return input_node(Source(name), t)


def unread(t: Type, free: Iterator[Dim]) -> Node:
    """Return a parameter that nothing reads, with sizes of its own."""
    return stand_in("unread", Type(t.dtype, tuple(s if isinstance(s, int) else next(free) for s in t.shape), t.form))


def symbols_in(values: Iterable[Any]) -> dict[Symbol, None]:
    """Return the symbols in sizes, and in tuples of sizes."""
    found: dict[Symbol, None] = {}
    stack = list(values)
    while stack:
        value = stack.pop()
        if isinstance(value, Dim):
            found.update((a, None) for a in atoms(value) if isinstance(a, Symbol))
        elif type(value) is tuple:
            stack += value
    return found


def unused(nodes: Sequence[Node], two: bool = False) -> Iterator[Dim]:
    """Yield fresh symbols that ``nodes`` do not mention; at least 2 if ``two``."""
    names = {a.name for n in nodes for a in n.symbols}
    name = "n" if two else "any"
    return (symbol(f"{name}{k}", None, 2 if two else 0) for k in itertools.count() if f"{name}{k}" not in names)


def witnesses(
    results: Iterable[Node], parameters: Sequence[Node], sizes: Mapping[Any, Size]
) -> tuple[list[Node], list[Node]]:
    """Return additional parameters that carry sizes which no other parameter has, and the operands for them.

    Parameters
    ----------
    results
        What is computed.
    parameters
        The present parameters.
    sizes
        The value of each symbol outside.
    """
    bound = {bare_symbol(s) for p in parameters for s in p.type.shape}
    nodes = topological([*results, *parameters])
    needed = dict.fromkeys(a for n in nodes for a in n.symbols)
    inner, outer = [], []
    for a in sorted((a for a in needed if a not in bound), key=lambda a: a.name):
        inner.append(stand_in("size", Type(constant(False).type.dtype, (atom(a),))))
        outer.append(broadcast(constant(False), (sizes[a],)))
    return inner, outer


def instantiated(nodes: Iterable[Node], known: Mapping[Node, Node], sizes: Mapping[Any, Size]) -> list[Node]:
    """Return nodes of a graph with its parameters and symbols replaced by their values outside."""
    nodes = list(nodes)
    memo = dict(known)
    for n in topological(nodes, stop=known.__contains__):
        if n not in memo:
            memo[n] = resized(n, [memo[a] for a in n.args], {**sizes, **as_sizes(n.sized_by, memo)})
            site.inherit(memo[n], n)
    return [memo[n] for n in nodes]


def loosened(graph: Graph) -> Graph:
    """Return the same graph for sizes of at least 2, if it was captured for larger ones."""
    known = {s for n in graph.nodes for s in n.symbols if s.least > 2}
    inner = [n for n in graph.nodes if any(isinstance(v, Graph) for v in n.params.values())]
    if not known and not inner:
        return graph
    sizes: dict[Any, Size] = {s: atom(Symbol(s.name, s.hint, 2)) for s in known}
    memo: dict[Node, Node] = {}
    for node in dict.fromkeys((*graph.parameters, *graph.nodes)):
        memo[node] = new = resized(node, [memo[a] for a in node.args], {**sizes, **as_sizes(node.sized_by, memo)})
        if node in inner:
            memo[node] = with_loosened(new)
    every = {**sizes, **as_sizes(graph.checked, memo)}
    guards = tuple((substitute(a, every), r, substitute(b, every)) for a, r, b in graph.guards)
    return Graph(tuple(memo[p] for p in graph.parameters), tuple(memo[r] for r in graph.results), guards, graph.names)


def as_sizes(nodes: Iterable[Node], memo: Mapping[Node, Node]) -> dict[Any, Size]:
    """Return integer nodes mapped to the sizes of their replacements."""
    return {n: s for n in nodes if (s := as_size(memo[n])) is not None}


def with_loosened(node: Node) -> Node:
    """Return a region whose graphs are :func:`loosened`."""
    params: dict[str, Any] = {k: loosened(v) if isinstance(v, Graph) else v for k, v in node.param_items}
    return make(node.op, node.args, **params)


def graph_over(parameters: Sequence[Node], results: Sequence[Node], like: Graph | None = None) -> Graph:
    """Return the graph of ``results`` over ``parameters``, in this order, with the guards of ``like``."""
    source = Graph((), ()) if like is None else like
    return source.renumbered(parameter, parameters, results)
