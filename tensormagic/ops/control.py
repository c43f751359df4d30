"""Region ops: cond, loop, while, call and grad, on closed graphs that share nothing with what is around them.

Their derivatives are regions again: the jvp, or the transpose, of the graph inside. How a graph is differentiated is
known one floor up; ``install_derivatives`` hands it down, as ``install_operators`` hands the pointwise ops to nodes.
So a region answers the same questions as any other op, and the walk over a graph has no case of its own for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from tensormagic.ir.errors import DifferentiationError, DTypeError, ShapeError
from tensormagic.ir.graph import Graph, bare_symbol
from tensormagic.ir.node import Node, make
from tensormagic.ir.node import substitute as substitute_nodes
from tensormagic.ir.type import Size, Symbol, Type, atoms, evaluate, substitute
from tensormagic.ops.leaf import Source, input_node, parameter
from tensormagic.ops.move import broadcast, same, show
from tensormagic.ops.op import Guard, Op, Tangent, Value, as_form
from tensormagic.ops.opaque import items
from tensormagic.ops.pointwise import astype
from tensormagic.ops.update import zeros_like

# interpretation -------------------------------------------------------------------------------------------------------

_Step = tuple[Node, list[Node], list[Node]]


@lru_cache(maxsize=256)
def _schedule(graph: Graph) -> list[_Step]:
    """Each node with its operands, and with the values that nothing reads after it."""
    nodes = [n for n in graph.nodes if n not in set(graph.parameters)]
    last = {a: k for k, n in enumerate(nodes) for a in n.args}
    kept = {*graph.results, *graph.parameters}
    return [
        (n, list(n.args), [a for a in dict.fromkeys(n.args) if last[a] == k and a not in kept])
        for k, n in enumerate(nodes)
    ]


def interpret(graph: Graph, values: Sequence[Value]) -> list[Value]:
    """The results of a closed graph by NumPy, node by node."""
    sizes = graph.bind([np.shape(v) for v in values])

    def size(s: Size) -> int:
        return s if isinstance(s, int) else evaluate(s, sizes.__getitem__)

    table: dict[Node, Value] = {p: _formed(v, p.type) for p, v in zip(graph.parameters, values, strict=True)}
    for node, operands, dead in _schedule(graph):
        table[node] = node.op.evaluate(node, [table[a] for a in operands], size)  # type: ignore[attr-defined]
        for a in dead:
            del table[a]
    return [_formed(table[r], r.type) for r in graph.results]


def _formed(value: Value, t: Type) -> Value:
    return value if t.shape else as_form(value, t.form)


# types ----------------------------------------------------------------------------------------------------------------


def _matched(graph: Graph, operands: Sequence[Node], what: str) -> tuple[dict[Symbol, Size], list[Guard]]:
    """What each symbol of ``graph`` is for these operands, and what else must hold of their sizes."""
    if len(graph.parameters) != len(operands):
        raise ShapeError(f"{what} takes {len(graph.parameters)} operands, {len(operands)} are given")
    symbols: dict[Symbol, Size] = {}
    rest: list[tuple[Size, Size]] = []
    for number, (p, operand) in enumerate(zip(graph.parameters, operands, strict=True)):
        if p.type.dtype != operand.type.dtype:
            raise DTypeError(f"{what}: operand {number} is {operand.type}, its graph takes {p.type}")
        if p.type.ndim != operand.type.ndim:
            raise ShapeError(f"{what}: operand {number} has shape {show(operand.type.shape)}, its graph takes {p.type}")
        for inner, outer in zip(p.type.shape, operand.type.shape, strict=True):
            symbol = bare_symbol(inner)
            if symbol is not None and symbol not in symbols and outer not in {0, 1}:
                symbols[symbol] = outer
            else:
                rest.append((inner, outer))
    guards = [(_outside(inner, symbols, what), "==", outer) for inner, outer in rest]
    for inner, _, outer in guards:
        if not same(inner, outer):
            raise ShapeError(f"{what}: a size is {outer} where its graph takes {inner}")
    known = set(symbols)
    guards += [
        (substitute(a, symbols), r, substitute(b, symbols))
        for a, r, b in graph.guards
        if {*atoms(a), *atoms(b)} <= known
    ]
    return symbols, [g for g in guards if not (g[1] == "==" and g[0] == g[2])]


def _outside(size: Size, symbols: Mapping[Symbol, Size], what: str) -> Size:
    if any(a not in symbols for a in atoms(size)):
        raise ShapeError(f"{what}: its graph was made for sizes of at least 2, and an operand has fewer")
    return substitute(size, symbols)


def _result_types(graph: Graph, symbols: Mapping[Symbol, Size]) -> tuple[Type, ...]:
    return tuple(
        Type(r.type.dtype, tuple(substitute(s, symbols) for s in r.type.shape), r.type.form) for r in graph.results
    )


def _agreed(left: Sequence[Type], right: Sequence[Type], what: str) -> list[Guard]:
    """What makes two lists of types the same; raises where nothing can."""
    fits = len(left) == len(right) and all(
        a.dtype == b.dtype and a.form == b.form and a.ndim == b.ndim and all(map(same, a.shape, b.shape))
        for a, b in zip(left, right, strict=True)
    )
    if not fits:
        raise DTypeError(f"{what}: {', '.join(map(str, left))} against {', '.join(map(str, right))}")
    pairs = [(s, t) for a, b in zip(left, right, strict=True) for s, t in zip(a.shape, b.shape, strict=True)]
    return [(s, "==", t) for s, t in pairs if s != t]


def _tangent_type(t: Type) -> Type:
    return t.with_shape(t.shape)


# derivatives of graphs ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Derivatives:
    """How graphs are differentiated: :mod:`tensormagic.transform.grad` says so when it is imported."""

    jvp: Callable[[Sequence[Node], dict[Node, Node]], list[Tangent]]
    transpose: Callable[[Sequence[tuple[Node, Node]], set[Node]], dict[Node, Node]]
    gradient: Callable[[Node, Sequence[Node]], list[Node]]


_derivatives: list[Derivatives] = []


def install_derivatives(derivatives: Derivatives) -> None:
    """Say how the graphs of regions are differentiated."""
    _derivatives[:] = [derivatives]


def _rules() -> Derivatives:
    if not _derivatives:
        raise DifferentiationError("derivatives of regions are not there yet", "import tensormagic.transform.grad")
    return _derivatives[0]


def _like(tangent: Tangent, node: Node) -> Node:
    """A tangent or cotangent of ``node`` in its dtype and shape, zeros where there is none."""
    return zeros_like(node) if tangent is None else broadcast(astype(tangent, node.type.dtype), node.type.shape)


def _linearised(graph: Graph, moving: Sequence[int]) -> tuple[tuple[Node, ...], list[Tangent]]:
    """The parameters of ``graph`` with tangents of those ``moving`` after them, and the tangents of its results."""
    own = graph.parameters
    extra = tuple(parameter(len(own) + k, _tangent_type(own[i].type)) for k, i in enumerate(moving))
    return (*own, *extra), _rules().jvp(graph.results, {own[i]: t for i, t in zip(moving, extra, strict=True)})


def _renumbered(parameters: Sequence[Node], results: Sequence[Node], graph: Graph) -> Graph:
    """A graph of ``results`` over ``parameters``, numbered in this order, with the guards of ``graph``."""
    numbered = {p: parameter(k, p.type) for k, p in enumerate(parameters)}
    return Graph(tuple(numbered.values()), tuple(substitute_nodes(results, numbered)), graph.guards)


def _transposed(graph: Graph, linear: Sequence[bool], given: Sequence[int]) -> Graph:
    """From the operands that are not linear and cotangents of the results ``given`` to those of the linear operands.

    Sizes are bound by the operands that stay: the primal of each linear operand is among them.
    """
    cotangents = [input_node(Source("cotangent"), _tangent_type(graph.results[k].type)) for k in given]
    seeds = [p for p, wanted in zip(graph.parameters, linear, strict=True) if wanted]
    kept = [p for p, wanted in zip(graph.parameters, linear, strict=True) if not wanted]
    found = _rules().transpose([(graph.results[k], c) for k, c in zip(given, cotangents, strict=True)], set(seeds))
    return _renumbered([*kept, *cotangents], [_like(found.get(s), s) for s in seeds], graph)


# the ops --------------------------------------------------------------------------------------------------------------


def _packed(values: Sequence[Any]) -> Any:
    """What a node with as many results has: one, or a tuple."""
    return values[0] if len(values) == 1 else tuple(values)


def _listed(value: Any, node: Node) -> list[Any]:
    return [value] if len(node.types) == 1 else list(value)


def _spread(found: Mapping[int, Node], node: Node) -> Any:
    """Tangents by number of result, as ``node`` has them."""
    return _packed([found.get(k) for k in range(len(node.types))])


def _places(flags: Sequence[Any]) -> list[int]:
    return [k for k, flag in enumerate(flags) if flag is not None and flag is not False]


@dataclass(frozen=True, eq=False, kw_only=True)
class Branches(Op):
    """Graphs of the same operands, one of which runs: ``cond`` chooses by its first operand, ``call`` has no choice."""

    kind = "region"
    chooses: bool

    def _graphs(self, params: Mapping[str, Any]) -> dict[str, Graph]:
        return {name: graph for name, graph in params.items() if isinstance(graph, Graph)}

    def _operands(self, args: tuple[Node, ...]) -> tuple[Node, ...]:
        return args[1:] if self.chooses else args

    def _typed(self, args: tuple[Node, ...], params: Mapping[str, Any]) -> tuple[tuple[Type, ...], list[Guard]]:
        if self.chooses and (args[0].type.shape or args[0].type.dtype != np.dtype(bool)):
            raise DTypeError(f"the predicate of a cond is a bool, not {args[0].type}")
        types: tuple[Type, ...] | None = None
        guards: list[Guard] = []
        for graph in self._graphs(params).values():
            symbols, needed = _matched(graph, self._operands(args), self.name)
            guards += needed
            found = _result_types(graph, symbols)
            guards += _agreed(types, found, "the branches give different types") if types is not None else []
            types = found if types is None else types
        return types or (), guards

    def infer(self, args: tuple[Node, ...], params: Mapping[str, Any]) -> Type | tuple[Type, ...]:
        return _packed(self._typed(args, params)[0])

    def guards(self, node: Node) -> list[Guard]:
        return self._typed(node.args, node.params)[1]

    def evaluate(self, node: Node, values: Sequence[Value], size: Callable[[Size], int]) -> Value:
        del size
        if not self.chooses:
            return _packed(interpret(node["graph"], values))
        return _packed(interpret(node["then"] if values[0] else node["otherwise"], values[1:]))

    def _again(self, node: Node, graphs: Mapping[str, Graph], operands: Sequence[Node]) -> tuple[Node, ...]:
        """The same choice among other graphs."""
        return items(make(self, (*node.args[: int(self.chooses)], *operands), None, **graphs))

    def jvp(self, node: Node, tangents: Sequence[Tangent]) -> Any:
        given = self._operands(tuple(tangents))  # type: ignore[arg-type]
        moving = _places(given)
        linear = {name: _linearised(graph, moving) for name, graph in self._graphs(node.params).items()}
        active = [k for k in range(len(node.types)) if any(found[k] is not None for _, found in linear.values())]
        if not active:
            return _spread({}, node)
        graphs: dict[str, Graph] = {}
        for name, (parameters, found) in linear.items():
            graph = node[name]
            graphs[name] = Graph(parameters, tuple(_like(found[k], graph.results[k]) for k in active), graph.guards)
        results = self._again(node, graphs, [*self._operands(node.args), *(given[k] for k in moving)])
        return _spread(dict(zip(active, results, strict=True)), node)

    def transpose(self, node: Node, cotangent: Any, linear: Sequence[bool]) -> Sequence[Tangent]:
        cotangents = _listed(cotangent, node)
        given = _places(cotangents)
        wanted = linear[int(self.chooses) :]
        graphs = {name: _transposed(graph, wanted, given) for name, graph in self._graphs(node.params).items()}
        kept = [a for a, w in zip(self._operands(node.args), wanted, strict=True) if not w]
        found = iter(self._again(node, graphs, [*kept, *(cotangents[k] for k in given)]))
        return [*[None] * int(self.chooses), *(next(found) if w else None for w in wanted)]


COND = Branches(name="cond", chooses=True, doc="One of two graphs on the same operands; only the chosen one runs.")
CALL = Branches(name="call", chooses=False, doc="A graph on operands.")


def cond(pred: Node, then: Graph, otherwise: Graph, operands: Sequence[Node]) -> tuple[Node, ...]:
    """The results of ``then`` where ``pred`` is true, else those of ``otherwise``."""
    return items(make(COND, (pred, *operands), then=then, otherwise=otherwise))


def call(graph: Graph, operands: Sequence[Node]) -> tuple[Node, ...]:
    """The results of ``graph`` on ``operands``."""
    return items(make(CALL, operands, graph=graph))


@dataclass(frozen=True, eq=False, kw_only=True)
class Repeat(Op):
    """A body that takes ``params["carries"]`` carries, and constants, to the next carries.

    ``counted`` (``loop``): the first operand is the count, and the body's first parameter the index. Otherwise
    (``while``) a second graph on the same operands says whether to go on.
    """

    kind = "region"
    counted: bool

    def _typed(self, args: tuple[Node, ...], params: Mapping[str, Any]) -> tuple[tuple[Type, ...], list[Guard]]:
        first = int(self.counted)
        for node in (*args[:first], *params["body"].parameters[:first]):
            if node.type.shape or node.type.dtype.kind not in "iu":
                raise DTypeError(f"the count and the index of a loop are integers, not {node.type}")
        carried = args[first : first + params["carries"]]
        symbols, guards = _matched(_unindexed(params["body"], first), args[first:], self.name)
        types = _result_types(params["body"], symbols)
        entry = [
            Type(p.type.dtype, a.type.shape, p.type.form)
            for p, a in zip(params["body"].parameters[first:], carried, strict=False)
        ]
        guards += _agreed(entry, types, "a carry changes its type")
        if not self.counted:
            guards += _matched(params["test"], args, self.name)[1]
            answer = params["test"].results[0].type
            if answer.shape or answer.dtype != np.dtype(bool):
                raise DTypeError(f"the test of a while loop gives a bool, not {answer}")
        return tuple(entry), guards

    def infer(self, args: tuple[Node, ...], params: Mapping[str, Any]) -> Type | tuple[Type, ...]:
        return _packed(self._typed(args, params)[0])

    def guards(self, node: Node) -> list[Guard]:
        return self._typed(node.args, node.params)[1]

    def evaluate(self, node: Node, values: Sequence[Value], size: Callable[[Size], int]) -> Value:
        del size
        body, carries = node["body"], node["carries"]
        state = list(values[int(self.counted) :])
        entry = [p.type for p in body.parameters[int(self.counted) :]]
        state = [_formed(v, t) for v, t in zip(state, entry, strict=True)]
        for index in self._turns(node, values, state):
            state[:carries] = interpret(body, [*index, *state])
        return _packed(state[:carries])

    def _turns(self, node: Node, values: Sequence[Value], state: list[Value]) -> Iterator[tuple[int, ...]]:
        if self.counted:
            yield from ((k,) for k in range(int(values[0])))
        else:
            while interpret(node["test"], state)[0]:
                yield ()

    def jvp(self, node: Node, tangents: Sequence[Tangent]) -> Any:
        """One loop over values and tangents together."""
        first, carries, body = int(self.counted), node["carries"], node["body"]
        operands, given = node.args[first:], tangents[first:]
        moving = self._moving(body, _places(given), carries)
        carried = [k for k in moving if k < carries]
        if not carried:
            return _spread({}, node)
        parameters, found = _linearised(body, [first + k for k in moving])
        index, primal, moved = (
            parameters[:first],
            parameters[first : first + len(operands)],
            parameters[first + len(operands) :],
        )
        order = [*primal[:carries], *moved[: len(carried)], *primal[carries:], *moved[len(carried) :]]
        results = [*body.results, *(_like(found[k], body.results[k]) for k in carried)]
        params: dict[str, Any] = {
            "body": _renumbered([*index, *order], results, body),
            "carries": carries + len(carried),
        }
        if not self.counted:
            params["test"] = _renumbered(order, node["test"].results, node["test"])
        starts = [_like(given[k], operands[k]) for k in moving]
        arguments = [
            *node.args[:first],
            *operands[:carries],
            *starts[: len(carried)],
            *operands[carries:],
            *starts[len(carried) :],
        ]
        ends = items(make(self, arguments, **params))
        return _spread(dict(zip(carried, ends[carries:], strict=True)), node)

    def _moving(self, body: Graph, moving: list[int], carries: int) -> list[int]:
        """The operands that have tangents at some turn: what moves a carry moves it from then on."""
        first = int(self.counted)
        while True:
            _, found = _linearised(body, [first + k for k in moving])
            grown = sorted({*moving, *(k for k in range(carries) if found[k] is not None)})
            if grown == moving:
                return moving
            moving = grown

    def transpose(self, node: Node, cotangent: Any, linear: Sequence[bool]) -> Sequence[Tangent]:
        raise DifferentiationError(
            f"reverse mode does not go through {self.name} yet",
            "Use tm.jvp (forward mode), or a Python loop over a fixed range, which is unrolled.",
        )


def _unindexed(body: Graph, first: int) -> Graph:
    """A body without its index, for matching: parameters only."""
    return Graph(body.parameters[first:], body.results, body.guards)


LOOP = Repeat(name="loop", counted=True, doc="A graph repeated a number of times on its own results.")
WHILE = Repeat(name="while", counted=False, doc="A graph repeated on its own results as long as another one says so.")


def loop(count: Node, body: Graph, carries: Sequence[Node], constants: Sequence[Node] = ()) -> tuple[Node, ...]:
    """The carries after ``count`` turns of ``body(index, *carries, *constants)``."""
    return items(make(LOOP, (count, *carries, *constants), body=body, carries=len(carries)))


def while_loop(test: Graph, body: Graph, carries: Sequence[Node], constants: Sequence[Node] = ()) -> tuple[Node, ...]:
    """The carries when ``test(*carries, *constants)`` is first false; a turn is ``body(*carries, *constants)``."""
    return items(make(WHILE, (*carries, *constants), test=test, body=body, carries=len(carries)))


@dataclass(frozen=True, eq=False, kw_only=True)
class Grad(Op):
    """The gradients of a graph's one real result with respect to the operands that ``params["wrt"]`` counts.

    It stays one node until the graph inside has been rewritten; :meth:`expand` then gives it in simpler ops.
    """

    kind = "region"

    def infer(self, args: tuple[Node, ...], params: Mapping[str, Any]) -> Type | tuple[Type, ...]:
        _matched(params["graph"], args, self.name)
        return _packed([_tangent_type(args[k].type) for k in params["wrt"]])

    def guards(self, node: Node) -> list[Guard]:
        return _matched(node["graph"], node.args, self.name)[1]

    def expand(self, node: Node) -> Node:
        return make(CALL, node.args, graph=_gradient_graph(node["graph"], node["wrt"]))

    def evaluate(self, node: Node, values: Sequence[Value], size: Callable[[Size], int]) -> Value:
        del size
        return _packed(interpret(_gradient_graph(node["graph"], node["wrt"]), values))

    def jvp(self, node: Node, tangents: Sequence[Tangent]) -> Any:
        return CALL.jvp(self.expand(node), tangents)


@lru_cache(maxsize=256)
def _gradient_graph(graph: Graph, wrt: tuple[int, ...]) -> Graph:
    return graph.with_results(_rules().gradient(graph.results[0], [graph.parameters[k] for k in wrt]))


GRAD = Grad(name="grad", doc="The gradients of a graph's result with respect to some of its operands.")


def grad(graph: Graph, operands: Sequence[Node], wrt: tuple[int, ...]) -> tuple[Node, ...]:
    """The gradients of the one result of ``graph`` at ``operands``, with respect to those that ``wrt`` counts."""
    return items(make(GRAD, operands, graph=graph, wrt=wrt))
