"""Functions whose derivatives are computed in another way: ``tm.checkpoint`` and ``tm.custom_gradient``."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from tensormagic.capture import context
from tensormagic.capture.random.generators import Drawn
from tensormagic.capture.staging.branches.merged_values import is_number
from tensormagic.capture.staging.regions import around, graph_of, of_type
from tensormagic.capture.stores.place import Buffer
from tensormagic.capture.tree import flatten
from tensormagic.capture.values.abstract import stand_in_tensor
from tensormagic.capture.values.operands import node_of
from tensormagic.capture.values.value import Tensor, wrap
from tensormagic.functions.calls.callables import of_callable
from tensormagic.functions.calls.function import Function
from tensormagic.functions.calls.program import refuse_stores
from tensormagic.functions.calls.results import numbers_alone, numbers_in
from tensormagic.functions.gradients.closed_functions import lazily_read
from tensormagic.functions.gradients.derivatives import derived
from tensormagic.functions.gradients.gradient_nodes import normal_form
from tensormagic.functions.reads.changed_containers import Copies
from tensormagic.functions.travel import maker
from tensormagic.ir.errors import CaptureError, DifferentiationError
from tensormagic.ir.node import Node, substitute, topological
from tensormagic.ir.operation import Operation
from tensormagic.ops.leaf import CONSTANT, Source, input_node, is_constant_zero
from tensormagic.ops.move import CONCATENATE
from tensormagic.ops.regions.control import checkpoint as checkpointed
from tensormagic.ops.regions.custom import custom
from tensormagic.ops.scalars.scalar import add, multiply, subtract, where
from tensormagic.transform import grad as modes
from tensormagic.transform.grad import depends


@dataclass(frozen=True)
class _Traced:
    """A function run with stand-ins for its arguments."""

    nodes: list[Node]
    stand_ins: list[Node]
    result: Any
    stored: list[
        tuple[Node, Callable[[Node], object]]
    ]  # contents of arrays that were stored into, and functions that store them


def _traced(function: Function, args: tuple[Any, ...], options: dict[str, Any]) -> _Traced:
    leaves, build = flatten((args, options))
    moving = [v for v in leaves if is_number(v)]
    nodes = [node_of(v) for v in moving]
    stand_ins = [input_node(Source(f"operand{k}"), n.type) for k, n in enumerate(nodes)]
    tensors = [stand_in_tensor(n, f"number {k + 1}") for k, n in enumerate(stand_ins)]
    context.stand_for(stand_ins, nodes)
    own = iter(tensors)
    given, named = build(iter([next(own) if is_number(v) else v for v in leaves]))
    copies = Copies((args, options), (given, named))
    before = {t.place.buffer: t.place.buffer.version for t in lazily_read()}
    with Drawn(function.name), context.standing():
        result = numbers_in(function.body(*given, **named), function.name)
    copies.refuse(function.name)
    outside = list(dict.fromkeys(t.place.buffer for t in lazily_read()))
    stored: list[tuple[Node, Callable[[Node], object]]] = [
        (b.node, b.put) for b in outside if b.version != before.get(b, 0)
    ]
    for tensor, value in zip(tensors, moving, strict=True):
        if tensor.place.buffer.stored:
            if not isinstance(value, Tensor):
                refuse_stores([tensor], function.name)
            stored.append((tensor.place.buffer.node, value.place.write))
    return _Traced(nodes, stand_ins, result, stored)


@maker
def checkpoint(fun: Any) -> Function:
    """Return ``fun`` such that a gradient stores only its arguments, and computes the values inside again.

    This trades time for memory: in a loop of many iterations, each iteration stores its arguments instead of every value inside.

    Parameters
    ----------
    fun
        A function of arrays, or a cell's NAME.

    Returns
    -------
    Function
        The same function, with the same derivatives of every order.

    Raises
    ------
    CaptureError
        If ``fun`` is not a function; at a call, if it cannot be captured.

    References
    ----------
    A. Griewank and A. Walther, "Evaluating Derivatives", 2nd edition, SIAM 2008, chapter 12.

    Examples
    --------
    >>> import numpy as np
    >>> from tensormagic import grad
    >>> block = checkpoint(lambda x: np.sin(np.sin(x)))
    >>> bool(grad(block)(1.0) == np.cos(np.sin(1.0)) * np.cos(1.0))
    True
    """
    function = of_callable(fun)

    def body(*args: Any, **options: Any) -> Any:
        operands = [node_of(v) for v in flatten((args, options))[0] if is_number(v)]
        with Drawn(function.name) as drawn, _noting() as own:
            result = numbers_in(function.body(*args, **options), function.name)
        given = [v.place.buffer for v in flatten(result)[0] if isinstance(v, Tensor)]
        _compute_again(drawn.changed(given), operands, own)
        return result

    return derived(function, "checkpoint", body)


@contextmanager
def _noting() -> Generator[set[Node]]:
    """Record the values of the expressions in a block."""
    capture, found = context.current(), set[Node]()
    if capture is None:
        raise AssertionError
    capture.order.within.append(found)
    try:
        yield found
    finally:
        capture.order.within[:] = [one for one in capture.order.within if one is not found]


def _compute_again(buffers: Sequence[Buffer], operands: Sequence[Node], own: set[Node]) -> None:
    """Mark the values in buffers to be recomputed from the operands when a derivative needs values in between."""
    given = [n for n in dict.fromkeys(operands) if n.op is not CONSTANT]
    stand_ins = {n: input_node(Source(f"operand{k}"), n.type) for k, n in enumerate(given)}
    values = [b.node for b in buffers]

    def is_outside(node: Node) -> bool:
        return node in stand_ins or (node not in own and context.is_built(node))

    outside = {n: n for n in topological(values, stop=is_outside) if is_outside(n)}
    inside: dict[Node, Node] = {}
    results = substitute(values, outside | stand_ins, inside)
    free = around(results, list(stand_ins.values()))
    again = [k for k, (old, new) in enumerate(zip(values, results, strict=True)) if new is not old and old not in given]
    if not again:
        return
    graph = graph_of([results[k] for k in again], [*stand_ins.values(), *free])
    for k, node in zip(again, checkpointed(graph, [*given, *free]), strict=True):
        buffers[k].renew(context.record(node))
    capture = context.current()
    if capture is not None:  # it is computed in the captured code, and not apart from it
        capture.order.made[:] = [n for n in capture.order.made if n not in own or inside.get(n, n) is n]


@maker
def custom_gradient(fun: Any) -> Function:
    """Return a function with a derivative of its own.

    Parameters
    ----------
    fun
        Returns a pair: the value, and a function that maps its cotangent (of the same containers as the value) to the
        cotangents of the arguments, a tuple if there are several. This function has to be linear. Values that ``fun`` reads
        beside its arguments count as constants.

    Returns
    -------
    Function
        Returns the value. Reverse mode calls the function that came with it; forward mode uses its transpose.

    Raises
    ------
    DifferentiationError
        If ``fun`` does not return such a pair, or the wrong number of cotangents, or cotangents that are not linear in that
        of the value.

    Examples
    --------
    >>> from tensormagic import grad
    >>> clipped = custom_gradient(lambda x: (x * x, lambda cotangent: cotangent * 1.0))
    >>> clipped(3.0), grad(clipped)(3.0)
    (9.0, 1.0)
    """
    function = of_callable(fun)

    def body(*args: Any, **options: Any) -> Any:
        traced = _traced(function, args, options)
        if traced.stored:
            raise CaptureError(
                f"{function.name} has its own derivative, but stores into arrays that it is given or reads",
                "Make a new array in it: w = w.copy().",
            )
        value, pull = _pair(traced.result, function)
        leaves, build = flatten(value)
        results = numbers_alone(leaves, function.name)
        cotangents = [
            input_node(Source(f"cotangent{k}"), r.type.with_shape(r.type.shape)) for k, r in enumerate(results)
        ]
        given = [c for c, r in zip(cotangents, results, strict=True) if r.type.inexact]
        back = _cotangents(pull(build(iter([wrap(c) for c in cotangents]))), traced.stand_ins, function)
        _check_linear(back, given, function)
        free = around([*results, *back], [*traced.stand_ins, *cotangents])
        operands = [*traced.stand_ins, *free]
        graphs = graph_of(results, operands), graph_of(back, [*operands, *given])
        return build(iter([wrap(context.record(n)) for n in custom(*graphs, [*traced.nodes, *free])]))

    return derived(function, "custom_gradient", body)


def _pair(result: Any, function: Function) -> tuple[Any, Callable[[Any], Any]]:
    if not (isinstance(result, tuple) and len(result) == 2 and callable(result[1])):
        raise DifferentiationError(
            f"{function.name} must return a pair: a value and a function",
            "Return (value, lambda cotangent: ...), where the function gives the cotangents of the arguments.",
        )
    return result[0], result[1]


def _cotangents(found: Any, stand_ins: Sequence[Node], function: Function) -> list[Node]:
    """Return the cotangents of the arguments, in their types; raise DifferentiationError if their number is wrong."""
    nodes = [node_of(v) for v in flatten(found)[0]]
    if len(nodes) != len(stand_ins):
        raise DifferentiationError(
            f"{function.name} returns {len(nodes)} cotangents for {len(stand_ins)} arguments",
            "Return one for each argument: zeros where there is no derivative.",
        )
    return [of_type(n, s.type.with_shape(s.type.shape)) for n, s in zip(nodes, stand_ins, strict=True)]


def _check_linear(back: Sequence[Node], cotangents: Sequence[Node], function: Function) -> None:
    """Raise for cotangents that are not linear in those of the results, as these would have no forward mode."""
    found = normal_form(back, cotangents)
    seeds = {c: input_node(Source("seed"), c.type) for c in cotangents}
    moved = set(cotangents)
    for node in topological(found):
        if any(a in moved for a in node.args):
            moved.add(node)
    for number, (node, tangent) in enumerate(zip(found, modes.jvp(found, seeds), strict=True), 1):
        fixed = node not in moved and not _is_zero(node)
        bent = node in moved and (tangent is None or any(depends([tangent], c) for c in cotangents))
        if fixed or bent or _is_moved_off(node, moved):
            raise DifferentiationError(
                f"the function that {function.name} returns for its derivative is not linear: "
                f"cotangent {number} of {len(found)} {'does not depend on' if fixed else 'is no multiple of'} what it is given",
                "Return a product of the cotangent and a derivative; clip or round the gradient after tm.grad.",
            )


def _is_zero(node: Node) -> bool:
    return is_constant_zero(node) or (node.op is multiply and any(map(_is_zero, node.args)))


def _is_moved_off(result: Node, moved: set[Node]) -> bool:
    """Return whether a number is added to something that depends on the cotangent."""
    sums: dict[Operation, int] = {add: 0, subtract: 0, where: 1, CONCATENATE: 0}
    return any(
        n in moved and n.op in sums and not all(a in moved or _is_zero(a) for a in n.args[sums[n.op] :])
        for n in topological([result])
    )
