"""Control flow that stays in the graph: ``tm.cond``, ``tm.while_loop``, ``tm.fori_loop`` and ``tm.scan``.

The functions are run once over stand-ins. What they read from around them is computed outside, once, and handed in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tensormagic.capture.tree import flatten, structure
from tensormagic.capture.value import arithmetic, as_size, node_of, wrap
from tensormagic.functions.function import Function, of_callable, refuse_stores, stand_in_tensor
from tensormagic.ir.errors import DTypeError, ShapeError
from tensormagic.ir.graph import Graph, bare_symbol, close
from tensormagic.ir.node import Node, topological
from tensormagic.ir.type import Dim, Size, Symbol, Type, atom, atoms, hint, python, python_kind
from tensormagic.ops import control, scalar
from tensormagic.ops.form import to_form
from tensormagic.ops.gather import gather
from tensormagic.ops.leaf import CONSTANT, Source, constant, input_node, iota, parameter, size_node
from tensormagic.ops.move import broadcast, reshape, same, show
from tensormagic.ops.pointwise import astype

# regions of functions -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Traced:
    """What a function gave for stand-ins."""

    stand_ins: list[Node]
    results: list[Node]
    build: Callable[[Any], Any]
    form: Any


def _traced(fun: Any, types: Sequence[Type], build: Callable[[Any], Any]) -> Traced:
    """Run ``fun`` over stand-ins of ``types``; ``build`` makes the tuple of its arguments of them."""
    function = of_callable(fun)
    stand_ins = [input_node(Source(f"operand{k}"), t) for k, t in enumerate(types)]
    tensors = [stand_in_tensor(n, f"number {k}") for k, n in enumerate(stand_ins)]
    result = function.body(*build(iter(tensors)))
    refuse_stores(tensors, function.name)
    leaves, again = flatten(result)
    return Traced(stand_ins, [node_of(v) for v in leaves], again, structure(result))


def _around(results: Sequence[Node], stand_ins: Sequence[Node]) -> list[Node]:
    """What ``results`` need beside ``stand_ins``: computed outside, and handed in."""
    own = set(stand_ins)
    order = topological(results, stop=lambda n: n in own)
    inside = set(own)
    for node in order:
        if any(a in inside for a in node.args):
            inside.add(node)
    used = [a for n in order if n in inside and n not in own for a in n.args]
    free = [n for n in dict.fromkeys([*used, *results]) if n not in inside and n.op is not CONSTANT]
    bound = {bare_symbol(s) for n in (*stand_ins, *free) for s in n.type.shape}
    needed = dict.fromkeys(a for n in order if n in inside for a in _symbols(n))
    return free + [broadcast(constant(False), (atom(a),)) for a in needed if a not in bound]


def _symbols(node: Node) -> Iterable[Symbol]:
    """The sizes that a node mentions."""
    stack: list[Any] = [*node.params.values(), *(t.shape for t in node.types)]
    while stack:
        value = stack.pop()
        if isinstance(value, Dim):
            yield from (a for a in atoms(value) if isinstance(a, Symbol))
        elif isinstance(value, tuple):
            stack += value


def _graph(results: Sequence[Node], leaves: Sequence[Node]) -> Graph:
    cut = set(leaves)
    return close(results, lambda n: n in cut, parameter, leaves=leaves).graph


def _of_type(node: Node, t: Type) -> Node:
    cast = broadcast(astype(node, t.dtype), t.shape)
    return cast if t.shape else to_form(cast, t.form)


def _run(label: str, body: Callable[..., Any], *args: Any) -> Any:
    """``body``, which gives lazy arrays; arrays, where it is called on arrays outside captured code."""
    return Function(body, label, changes=True)(*args)


def _built(nodes: Iterable[Node], build: Callable[[Any], Any]) -> Any:
    return build(iter([wrap(n) for n in nodes]))


# branches -------------------------------------------------------------------------------------------------------------


def cond(pred: Any, then: Callable[..., Any], otherwise: Callable[..., Any], *operands: Any) -> Any:
    """``then(*operands)`` where ``pred`` is true, else ``otherwise(*operands)``; only that one is computed.

    Examples
    --------
    >>> cond(np.float64(2.0) > 1.0, lambda x: x * 2, lambda x: x - 1, 5.0)
    10.0
    """

    def body(pred: Any, *operands: Any) -> Any:
        leaves, build = flatten(operands)
        nodes = [node_of(v) for v in leaves]
        first, second = (_traced(f, [n.type for n in nodes], build) for f in (then, otherwise))
        if first.form != second.form:
            raise DTypeError("cond: the branches give different containers", "Let both return the same.")
        pairs = list(zip(first.results, second.results, strict=True))
        types = [_common(a.type, b.type) for a, b in pairs]
        branches = []
        for traced in (first, second):
            results = [_of_type(r, t) for r, t in zip(traced.results, types, strict=True)]
            branches.append((results, traced.stand_ins))
        free = list(dict.fromkeys(n for results, own in branches for n in _around(results, own)))
        graphs = [_graph(results, [*own, *free]) for results, own in branches]
        chosen = control.cond(astype(node_of(pred), bool), graphs[0], graphs[1], [*nodes, *free])
        return _built(chosen, first.build)

    return _run("cond", body, pred, *operands)


def _common(left: Type, right: Type) -> Type:
    """The type of a result that is one or the other."""
    if len(left.shape) != len(right.shape) or not all(map(same, left.shape, right.shape)):
        raise ShapeError(f"cond: the branches give shapes {show(left.shape)} and {show(right.shape)}")
    form = left.form if left.form == right.form else "scalar"
    return Type(np.result_type(left.dtype, right.dtype), left.shape, form)


# loops ----------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Turn:
    """One turn of a loop, traced for carries whose types it does not change."""

    stand_ins: list[Node]
    results: list[Node]
    rest: list[Node]


def _steady(
    label: str, starts: Sequence[Node], turn: Callable[[list[Node]], tuple[list[Node], list[Node]]]
) -> tuple[list[Node], Turn]:
    """The starts in types that a turn keeps, and the turn; a Python number takes the type that the turn gives it."""
    types = [n.type for n in starts]
    while True:
        stand_ins = [input_node(Source(f"carry{k}"), t) for k, t in enumerate(types)]
        results, rest = turn(stand_ins)
        if len(results) != len(starts):
            raise ShapeError(f"{label}: the function gives {len(results)} carries where {len(starts)} begin")
        grown = [
            _grown(label, k, s.type, t, r.type) for k, (s, t, r) in enumerate(zip(starts, types, results, strict=True))
        ]
        if grown == types:
            begun = [_of_type(s, t) for s, t in zip(starts, types, strict=True)]
            return begun, Turn(stand_ins, [_of_type(r, t) for r, t in zip(results, types, strict=True)], rest)
        types = grown


def _grown(label: str, number: int, start: Type, before: Type, after: Type) -> Type:
    if len(before.shape) != len(after.shape) or not all(map(same, before.shape, after.shape)):
        raise ShapeError(
            f"{label}: carry number {number} begins with shape {show(before.shape)} and becomes {show(after.shape)}"
        )
    if start.form == "python":
        if after.form == before.form == "python":
            return Type(np.result_type(before.dtype, after.dtype), (), "python")
        return Type(np.result_type(after.dtype, python_kind(start)()), (), "scalar")
    if after.dtype != before.dtype and not (
        after.form == "python" and np.result_type(before.dtype, after.dtype) == before.dtype
    ):
        raise DTypeError(
            f"{label}: carry number {number} begins as {before} and becomes {after}",
            "Begin with the type that it becomes.",
        )
    return before


def while_loop(test: Callable[[Any], Any], body: Callable[[Any], Any], start: Any) -> Any:
    """``body`` of its own result, from ``start`` on, as long as ``test`` of it is true.

    Examples
    --------
    >>> while_loop(lambda x: x < 100.0, lambda x: x * 2, 1.0)
    128.0
    """

    def run(start: Any) -> Any:
        leaves, build = flatten(start)

        def turn(carries: list[Node]) -> tuple[list[Node], list[Node]]:
            return _applied("while_loop", body, carries, build, start), _applied(
                "while_loop", test, carries, build, None
            )

        begun, traced = _steady("while_loop", [node_of(v) for v in leaves], turn)
        free = list(dict.fromkeys(n for part in (traced.results, traced.rest) for n in _around(part, traced.stand_ins)))
        known = [*traced.stand_ins, *free]
        graphs = [_graph([astype(r, bool) for r in traced.rest], known), _graph(traced.results, known)]
        return _built(control.while_loop(graphs[0], graphs[1], begun, free), build)

    return _run("while_loop", run, start)


def _applied(
    label: str, fun: Any, carries: list[Node], build: Callable[[Any], Any], like: Any, *before: Node
) -> list[Node]:
    """The nodes of ``fun(*before, carry)``, a carry again where ``like`` is one."""
    function = of_callable(fun)
    tensors = [stand_in_tensor(n, f"carry {k}") for k, n in enumerate(carries)]
    result = function.body(*map(wrap, before), build(iter(tensors)))
    refuse_stores(tensors, function.name)
    if like is not None and structure(result) != structure(like):
        raise DTypeError(
            f"{label}: {function.name} gives another container than it is given", "Return what begins the loop."
        )
    return [node_of(v) for v in flatten(result)[0]]


def fori_loop(lower: Any, upper: Any, body: Callable[[Any, Any], Any], start: Any) -> Any:
    """``carry = body(k, carry)`` for ``k`` in ``range(lower, upper)``, from ``start`` on.

    Examples
    --------
    >>> fori_loop(0, 4, lambda k, x: x * 2 + k, 1.0)
    27.0
    """

    def run(lower: Any, upper: Any, start: Any) -> Any:
        leaves, build = flatten(start)
        first = node_of(lower)
        turns = scalar.maximum(arithmetic(scalar.subtract, [node_of(upper), first]), 0)
        index = input_node(Source("index"), python(int))

        def turn(carries: list[Node]) -> tuple[list[Node], list[Node]]:
            return _applied("fori_loop", body, carries, build, start, scalar.add(index, first)), []

        begun, traced = _steady("fori_loop", [node_of(v) for v in leaves], turn)
        return _built(_looped(turns, index, begun, traced.stand_ins, traced.results), build)

    return _run("fori_loop", run, lower, upper, start)


def _looped(turns: Node, index: Node, begun: list[Node], carries: list[Node], results: list[Node]) -> tuple[Node, ...]:
    free = _around(results, [index, *carries])
    return control.loop(turns, _graph(results, [index, *carries, *free]), begun, free)


def scan(fun: Callable[[Any, Any], tuple[Any, Any]], start: Any, xs: Any, length: Any = None) -> tuple[Any, Any]:
    """``carry, y = fun(carry, x)`` for every ``x`` along the first axis of ``xs``: the last carry, and every y stacked.

    Parameters
    ----------
    fun
        Takes the carry and one element of ``xs``, gives the next carry and a result.
    start
        The first carry.
    xs
        An array or a container of arrays with a common first axis; None for none.
    length
        How many turns, where ``xs`` is None.

    Examples
    --------
    >>> scan(lambda total, x: (total + x, total * x), 0.0, np.array([1.0, 2.0, 3.0]))
    (np.float64(6.0), array([0., 2., 9.]))
    """

    def run(start: Any, xs: Any) -> Any:
        leaves, build = flatten(start)
        elements, build_element = flatten(xs)
        stacks = [node_of(v) for v in elements]
        turns = _turns(stacks, length)
        index = input_node(Source("index"), python(int))
        shape: list[Any] = []

        def turn(carries: list[Node]) -> tuple[list[Node], list[Node]]:
            x = _built([gather(s, index, 0) for s in stacks], build_element)
            tensors = [stand_in_tensor(n, f"carry {k}") for k, n in enumerate(carries)]
            carry, y = of_callable(fun).body(build(iter(tensors)), x)
            if structure(carry) != structure(start):
                raise DTypeError("scan: the function gives another container of carries than it is given")
            results, again = flatten(y)
            shape[:] = [again]
            return [node_of(v) for v in flatten(carry)[0]], [node_of(v) for v in results]

        begun, traced = _steady("scan", [node_of(v) for v in leaves], turn)
        empty = [_empty(y, turns) for y in traced.rest]
        filled = [input_node(Source(f"results{k}"), n.type) for k, n in enumerate(empty)]
        written = [_written(f, index, y) for f, y in zip(filled, traced.rest, strict=True)]
        ends = _looped(
            size_node(turns), index, [*begun, *empty], [*traced.stand_ins, *filled], [*traced.results, *written]
        )
        return _built(ends[: len(begun)], build), _built(ends[len(begun) :], shape[0])

    return _run("scan", run, start, xs)


def _turns(stacks: Sequence[Node], length: Any) -> Size:
    """How many turns a scan has."""
    if any(not s.type.ndim for s in stacks):
        raise ShapeError("scan: xs holds a number: each part of it needs a first axis")
    sizes = [s.type.shape[0] for s in stacks] + ([] if length is None else [as_size(length)])
    if not sizes:
        raise ShapeError("scan: xs is empty", "Say how many turns with length.")
    if not all(same(sizes[0], s) for s in sizes):
        raise ShapeError(f"scan: the parts of xs have different lengths: {', '.join(str(hint(s)) for s in sizes)}")
    return sizes[0]


def _empty(y: Node, turns: Size) -> Node:
    """Zeros for a stack of results."""
    return broadcast(constant(y.type.dtype.type(0)), (turns, *y.type.shape))


def _written(stack: Node, index: Node, y: Node) -> Node:
    """``stack`` with ``y`` at ``index``."""
    size, *shape = stack.type.shape
    here = scalar.equal(reshape(iota((size,), 0), (size, *[1] * len(shape))), index)
    return scalar.where(here, broadcast(y, stack.type.shape), stack)
