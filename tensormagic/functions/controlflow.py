"""Control flow that stays in the graph: ``tm.cond``, ``tm.while_loop``, ``tm.fori_loop`` and ``tm.scan``.

The functions are run once over stand-ins. Values that they read from the code around them are computed outside, once,
and passed in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from tensormagic.capture import context
from tensormagic.capture.numbers.known_values import arithmetic
from tensormagic.capture.random.generators import Drawn
from tensormagic.capture.staging import runtime
from tensormagic.capture.staging.calls.staged import called
from tensormagic.capture.staging.regions import (
    around,
    common_type,
    fitting,
    fitting_branches,
    graph_of,
    grown_type,
    of_type,
)
from tensormagic.capture.tree import flatten, structure
from tensormagic.capture.values.abstract import stand_in_tensor
from tensormagic.capture.values.operands import node_of
from tensormagic.capture.values.value import as_size, wrap
from tensormagic.functions.calls.callables import of_callable
from tensormagic.functions.calls.function import Function
from tensormagic.functions.calls.program import refuse_stores
from tensormagic.functions.calls.results import numbers_alone
from tensormagic.ir.errors import DTypeError, ShapeError
from tensormagic.ir.node import Node
from tensormagic.ir.type import Size, Type, apply, atom, hint
from tensormagic.ops.leaf import Source, constant, index_node, input_node, size_node
from tensormagic.ops.move import Slices, broadcast, reshape, slice_
from tensormagic.ops.move_kind import same
from tensormagic.ops.pointwise import astype
from tensormagic.ops.regions import control
from tensormagic.ops.scalars import scalar
from tensormagic.ops.update import set_at

# regions of functions -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Traced:
    """The result of a function applied to stand-ins."""

    stand_ins: list[Node]
    results: list[Node]
    build: Callable[[Any], Any]
    form: Any


def _traced(fun: Any, types: Sequence[Type], build: Callable[[Any], Any]) -> Traced:
    """Return ``fun`` traced over stand-ins of ``types``; ``build`` makes the tuple of its arguments of them."""
    function = of_callable(fun)
    stand_ins = [input_node(Source(f"operand{k}"), t) for k, t in enumerate(types)]
    tensors = [stand_in_tensor(n, f"number {k}") for k, n in enumerate(stand_ins)]
    with Drawn(function.name):
        result = function.body(*build(iter(tensors)))
    refuse_stores(tensors, function.name)
    leaves, again = flatten(result)
    return Traced(stand_ins, numbers_alone(leaves, function.name), again, structure(result))


def _run(label: str, functions: tuple[Any, ...], body: Callable[..., Any], *args: Any) -> Any:
    """Return the result of ``body``, which calls ``functions`` and returns lazy arrays; arrays if called on arrays outside of capture."""
    return Function(body, label, roots=functions)(*args)


def _built(nodes: Iterable[Node], build: Callable[[Any], Any]) -> Any:
    return build(iter([wrap(context.record(n)) for n in nodes]))


# branches -------------------------------------------------------------------------------------------------------------


def cond(pred: Any, then: Callable[..., Any], otherwise: Callable[..., Any], *operands: Any) -> Any:
    """Return ``then(*operands)`` if ``pred`` is true, else ``otherwise(*operands)``; only that branch is computed.

    Parameters
    ----------
    pred
        One boolean, which may be data-dependent.
    then, otherwise
        Functions of ``operands``; other values that they read are computed in either case.
    *operands
        Arrays, numbers, or containers of these.

    Returns
    -------
    array, number or container
        The result of the chosen function. Numbers of both branches are converted to one dtype.

    Raises
    ------
    DTypeError
        If ``pred`` is not a single boolean, or the functions return different containers.
    ShapeError
        If they return different shapes.

    Examples
    --------
    >>> import numpy as np
    >>> cond(np.float64(2.0) > 1.0, lambda x: x * 2, lambda x: x - 1, 5.0)
    10.0
    """

    def body(pred: Any, *operands: Any) -> Any:
        leaves, build = flatten(operands)
        nodes = [node_of(v) for v in leaves]
        first, second = (_traced(f, [n.type for n in nodes], build) for f in (then, otherwise))
        if first.form != second.form:
            raise DTypeError("cond: the branches return different containers", "Let both return the same structure.")
        pairs = list(zip(first.results, second.results, strict=True))
        types = [common_type("cond: the branches give", a.type, b.type) for a, b in pairs]
        branches = []
        for traced in (first, second):
            results = [of_type(r, t) for r, t in zip(traced.results, types, strict=True)]
            branches.append((results, traced.stand_ins))
        free = list(dict.fromkeys(n for results, own in branches for n in around(results, own)))
        graphs = [graph_of(results, [*own, *free]) for results, own in branches]
        predicate = astype(node_of(pred), bool)
        given = fitting_branches(graphs, [*nodes, *free], predicate)
        chosen = control.cond(predicate, graphs[0], graphs[1], given)
        return _built(chosen, first.build)

    capture = context.current()
    if (
        capture is not None and capture.running.recursions
    ):  # as for `if`: a branch may call the function that is being traced
        return runtime.chosen(pred, lambda: called(then)(*operands), lambda: called(otherwise)(*operands))
    return _run("cond", (then, otherwise), body, pred, *operands)


# loops ----------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Iteration:
    """One iteration of a loop, traced for carries whose types it preserves."""

    stand_ins: list[Node]
    results: list[Node]
    rest: list[Node]


def _steady(
    label: str, starts: Sequence[Node], iteration: Callable[[list[Node]], tuple[list[Node], list[Node]]]
) -> tuple[list[Node], Iteration]:
    """Return the initial carries in types that an iteration preserves, and the iteration; Python numbers take the iteration's type."""
    types = [n.type for n in starts]
    while True:
        stand_ins = [input_node(Source(f"carry{k}"), t) for k, t in enumerate(types)]
        results, rest = iteration(stand_ins)
        if len(results) != len(starts):
            raise ShapeError(
                f"{label}: the function returns {len(results)} values to carry on, but {len(starts)} are given"
            )
        grown = [
            grown_type(label, f"carry number {k}", s.type, t, r.type)
            for k, (s, t, r) in enumerate(zip(starts, types, results, strict=True))
        ]
        if grown == types:
            begun = [of_type(s, t) for s, t in zip(starts, types, strict=True)]
            return begun, Iteration(stand_ins, [of_type(r, t) for r, t in zip(results, types, strict=True)], rest)
        types = grown


def while_loop(test: Callable[[Any], Any], body: Callable[[Any], Any], start: Any) -> Any:
    """Apply ``body`` to ``start``, then to its own result, as long as ``test`` of the carry is true.

    Parameters
    ----------
    test
        Takes the carry, returns one boolean.
    body
        Takes the carry, returns the next one, with the same containers, shapes and dtypes.
    start
        The first carry: an array, a number, or a container of these. A Python number takes the dtype of the body's result.

    Returns
    -------
    array, number or container
        The last carry, for which ``test`` is false.

    Raises
    ------
    ShapeError
        If an iteration changes the shape of a carry.
    DTypeError
        If ``test`` does not return a single boolean, or ``body`` returns another container.

    Examples
    --------
    >>> while_loop(lambda x: x < 100.0, lambda x: x * 2, 1.0)
    128.0
    """

    def run(start: Any) -> Any:
        leaves, build = flatten(start)

        def iteration(carries: list[Node]) -> tuple[list[Node], list[Node]]:
            return _applied("while_loop", body, carries, build, start), _applied(
                "while_loop", test, carries, build, None
            )

        begun, traced = _steady("while_loop", [node_of(v) for v in leaves], iteration)
        free = list(dict.fromkeys(n for part in (traced.results, traced.rest) for n in around(part, traced.stand_ins)))
        known = [*traced.stand_ins, *free]
        graphs = [graph_of([astype(r, bool) for r in traced.rest], known), graph_of(traced.results, known)]
        given = fitting(graphs[1], fitting(graphs[0], [*begun, *free], None), None)
        return _built(control.while_loop(graphs[0], graphs[1], given[: len(begun)], given[len(begun) :]), build)

    return _run("while_loop", (test, body), run, start)


def _applied(
    label: str, fun: Any, carries: list[Node], build: Callable[[Any], Any], like: Any, *before: Node
) -> list[Node]:
    """Return the nodes of ``fun(*before, carry)``, which is a carry again if ``like`` is given."""
    function = of_callable(fun)
    tensors = [stand_in_tensor(n, f"carry {k}") for k, n in enumerate(carries)]
    with Drawn(function.name):
        result = function.body(*map(wrap, before), build(iter(tensors)))
    refuse_stores(tensors, function.name)
    if like is not None and structure(result) != structure(like):
        raise DTypeError(
            f"{label}: {function.name} returns a different container from the one it is given",
            "Return the same structure as its argument.",
        )
    return [node_of(v) for v in flatten(result)[0]]


def fori_loop(lower: Any, upper: Any, body: Callable[[Any, Any], Any], start: Any) -> Any:
    """Apply ``carry = body(k, carry)`` for ``k`` in ``range(lower, upper)``, beginning with ``start``.

    Parameters
    ----------
    lower, upper
        Integers, which may be data-dependent. If ``upper`` is not above ``lower``, the result is ``start``.
    body
        Takes the index and the carry, returns the next carry, with the same containers, shapes and dtypes.
    start
        The first carry: an array, a number, or a container of these.

    Returns
    -------
    array, number or container
        The last carry.

    Raises
    ------
    ShapeError
        If an iteration changes the shape of a carry.
    DTypeError
        If ``body`` returns another container.
    TypeError
        If a bound is not an integer.

    Examples
    --------
    >>> fori_loop(0, 4, lambda k, x: x * 2 + k, 1.0)
    27.0
    """

    def run(lower: Any, upper: Any, start: Any) -> Any:
        leaves, build = flatten(start)
        first = node_of(lower)
        iterations = size_node(apply("max", as_size(upper) - as_size(lower), 0))
        index = index_node("index", 0, as_size(wrap(iterations)))

        def iteration(carries: list[Node]) -> tuple[list[Node], list[Node]]:
            return _applied("fori_loop", body, carries, build, start, arithmetic(scalar.add, [index, first])), []

        begun, traced = _steady("fori_loop", [node_of(v) for v in leaves], iteration)
        return _built(_looped(iterations, index, begun, traced.stand_ins, traced.results), build)

    return _run("fori_loop", (body,), run, lower, upper, start)


def _looped(
    iterations: Node, index: Node, begun: list[Node], carries: list[Node], results: list[Node]
) -> tuple[Node, ...]:
    free = around(results, [index, *carries])
    body = graph_of(results, [index, *carries, *free])
    given = fitting(body, [*begun, *free], scalar.greater(iterations, 0), first=1)
    return control.loop(iterations, body, given[: len(begun)], given[len(begun) :])


def scan(fun: Callable[[Any, Any], tuple[Any, Any]], start: Any, xs: Any, length: Any = None) -> tuple[Any, Any]:
    """Apply ``carry, y = fun(carry, x)`` for every ``x`` along the first axis of ``xs``; return the last carry, and all y stacked.

    Parameters
    ----------
    fun
        Takes the carry and one element of ``xs``, returns the next carry and a result.
    start
        The first carry.
    xs
        An array or a container of arrays with a common first axis, or None.
    length
        The number of iterations, if ``xs`` is None.

    Returns
    -------
    tuple
        The last carry, and the results, each with a first axis for the iterations.

    Raises
    ------
    ShapeError
        If parts of ``xs`` have different lengths, neither ``xs`` nor ``length`` is given, or an iteration changes the shape of a carry.
    DTypeError
        If ``fun`` does not return a pair, or carries another container.

    Examples
    --------
    >>> import numpy as np
    >>> scan(lambda total, x: (total + x, total * x), 0.0, np.array([1.0, 2.0, 3.0]))
    (np.float64(6.0), array([0., 2., 9.]))
    """

    def run(start: Any, xs: Any) -> Any:
        leaves, build = flatten(start)
        elements, build_element = flatten(xs)
        stacks = [node_of(v) for v in elements]
        iterations = _iterations(stacks, length)
        index = index_node("index", 0, iterations)
        shape: list[Any] = []

        def iteration(carries: list[Node]) -> tuple[list[Node], list[Node]]:
            x = _built([_element(s, index) for s in stacks], build_element)
            tensors = [stand_in_tensor(n, f"carry {k}") for k, n in enumerate(carries)]
            with Drawn("the function of scan"):
                carry, y = _pair(of_callable(fun).body(build(iter(tensors)), x))
            if structure(carry) != structure(start):
                raise DTypeError(
                    "scan: the function returns carried values in a different structure from the one it is given"
                )
            results, again = flatten(y)
            shape[:] = [again]
            return [node_of(v) for v in flatten(carry)[0]], [node_of(v) for v in results]

        begun, traced = _steady("scan", [node_of(v) for v in leaves], iteration)
        empty = [_empty(y, iterations) for y in traced.rest]
        filled = [input_node(Source(f"results{k}"), n.type) for k, n in enumerate(empty)]
        written = [_written(f, index, y) for f, y in zip(filled, traced.rest, strict=True)]
        ends = _looped(
            size_node(iterations), index, [*begun, *empty], [*traced.stand_ins, *filled], [*traced.results, *written]
        )
        return _built(ends[: len(begun)], build), _built(ends[len(begun) :], shape[0])

    return _run("scan", (fun,), run, start, xs)


def _pair(given: Any) -> tuple[Any, Any]:
    """Return the carry and the output that a scan's function returns; raise DTypeError if it returns no pair."""
    if not issubclass(type(given), tuple) or len(given) != 2:  # isinstance would ask a lazy array for its class
        raise DTypeError(
            "scan: the function does not give a pair",
            "Return (carry, result); None for no result.",
        )
    return given


def _iterations(stacks: Sequence[Node], length: Any) -> Size:
    """Return the number of iterations of a scan."""
    if any(not s.type.ndim for s in stacks):
        raise ShapeError("scan: xs contains a number, but each part of xs needs a first axis")
    sizes = [s.type.shape[0] for s in stacks] + ([] if length is None else [as_size(length)])
    if not sizes:
        raise ShapeError("scan: xs is empty", "Give the number of iterations as length.")
    if not all(same(sizes[0], s) for s in sizes):
        raise ShapeError(f"scan: the parts of xs have different lengths: {', '.join(str(hint(s)) for s in sizes)}")
    return sizes[0]


def _empty(y: Node, iterations: Size) -> Node:
    """Return zeros for a stack of results."""
    return broadcast(constant(y.type.dtype.type(0)), (iterations, *y.type.shape))


def _written(stack: Node, index: Node, y: Node) -> Node:
    """Return ``stack`` with ``y`` at ``index``."""
    return set_at(stack, reshape(y, (1, *y.type.shape)), _place(stack, index))


def _element(stack: Node, index: Node) -> Node:
    """Return the element of ``stack`` at ``index``."""
    return reshape(slice_(stack, _place(stack, index)), stack.type.shape[1:])


def _place(stack: Node, index: Node) -> Slices:
    """Return the slice of one element along the first axis."""
    return ((atom(index), 1, 1), *((0, s, 1) for s in stack.type.shape[1:]))
