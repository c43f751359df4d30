"""Batches as graphs: nodes rebuilt over a new leading axis.

Each kind of op has its rule; regions are batched here, by the graphs inside.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from tensormagic.ir import site
from tensormagic.ir.errors import ShapeError
from tensormagic.ir.graph import Graph, Guard
from tensormagic.ir.node import Node, make, substitute, topological
from tensormagic.ir.operation import Operation
from tensormagic.ir.size import Size, atoms, is_at_least, nodes_of, symbol
from tensormagic.ir.type import Type
from tensormagic.ops.effects.raising import CHECK
from tensormagic.ops.fold import ALL, ANY, ARGMIN, MAX, fold
from tensormagic.ops.form import to_form
from tensormagic.ops.indices.gather import gather
from tensormagic.ops.leaf import constant, parameter
from tensormagic.ops.move import lead, reshape
from tensormagic.ops.opaque import ITEM, item
from tensormagic.ops.pointwise import astype
from tensormagic.ops.regions.control import (
    CALL,
    CHECKPOINT,
    COND,
    CUSTOM,
    GRAD,
    LOOP,
    WHILE,
    call,
    checkpoint,
    cond,
    custom,
    loop,
    while_loop,
)
from tensormagic.ops.reverse.tape import ADD_RECORD, RECORD, choose_tape, is_tape
from tensormagic.ops.scalars.scalar import less, logical_not, where
from tensormagic.transform.loops.spared import can_be_skipped, donated, harmless, inlined, where_any, with_chosen
from tensormagic.transform.uneven import uneven_checks, without_sizes

Stacks = Node | tuple[Node, ...]  # a tuple for the results of a region
_UNEVEN = "a check of sizes differs within the batch"
_MASKS = "Work on arrays of one size, with np.where to ignore the others."


def batch(results: Sequence[Node], stacks: Mapping[Node, Node], size: Size) -> list[Node | None]:
    """Return ``results`` for a whole batch at once, or None for those that do not depend on the batched nodes.

    Parameters
    ----------
    results
        The requested nodes.
    stacks
        Batched replacements of some nodes, each with a leading axis of ``size``.
    size
        The number of elements in the batch.
    """
    known: dict[Node, Stacks] = dict(stacks)
    for node in uneven_checks(results, known):
        known[node] = _first_failing(node, stacks, known, size)
    _fill(results, known, size)
    return [found if isinstance(found := known.get(r), Node) else None for r in results]


def _fill(results: Sequence[Node], known: dict[Node, Stacks], size: Size) -> None:
    """Add to ``known`` the batched versions of all nodes that ``results`` need."""
    for node in topological(results, stop=known.__contains__):
        if node not in known and any(a in known for a in node.needs):
            known[node] = _stacked(node, known, size)


def _first_failing(node: Node, stacks: Mapping[Node, Node], known: dict[Node, Stacks], size: Size) -> Node:
    """Return a batched check that reports only the first failing element, as the parts of its message differ in size."""
    token, holds, *details = node.args
    _fill([token, holds], known, size)
    held, before = known.get(holds), known.get(token)
    number, every = constant(0), holds
    if isinstance(held, Node):
        number, every = fold(ARGMIN, astype(held, np.int64), (0,)), fold(ALL, held, (0,))
    rows = {n: to_form(gather(s, number, 0), n.type.form) for n, s in stacks.items() if not is_tape(s)}
    start = lead(before if isinstance(before, Node) else token, isinstance(before, Node), size)
    found = make(CHECK, (start, every, *substitute(details, rows)), **node.params)
    site.inherit(found, node)
    return found


def _stacked(node: Node, known: dict[Node, Stacks], size: Size) -> Stacks:
    if any(n in known for n in node.sized_by):
        same = without_sizes(node, known)
        _fill([same], known, size)
        return known[same]
    if node.op is ITEM:
        group = known[node.args[0]]
        return item(group, node["index"]) if isinstance(group, Node) else group[node["index"]]
    args: list[Any] = [a if (found := known.get(a)) is None else found for a in node.args]
    flags = [a in known for a in node.args]
    rule = _REGIONS.get(node.op)
    new: Stacks = rule(node, args, flags, size) if rule else node.op.batch(node, args, flags, size)
    for part in (new,) if isinstance(new, Node) else new:
        site.inherit(part, node)
    return new[0] if isinstance(new, tuple) and len(node.types) == 1 else new


# regions --------------------------------------------------------------------------------------------------------------


def _inner_size(graph: Graph, size: Size) -> Size:
    """Return the size of the batch inside a closed graph: a number, or a symbol the graph does not use."""
    if size in {0, 1}:
        return size
    used = {str(a) for n in graph.nodes for t in n.types for s in t.shape for a in atoms(s)}
    least = 2 if is_at_least(size, 2) else 0
    name = "n" if least else "any"
    number = next(k for k in range(len(used) + 1) if f"{name}{k}" not in used)
    return symbol(f"{name}{number}", None, least)


def _parameters(graph: Graph, flags: Sequence[bool], size: Size) -> tuple[Node, ...]:
    """Return the parameters of ``graph``, with a leading axis for those that ``flags`` marks."""
    return tuple(
        parameter(k, Type(p.type.dtype, (size, *p.type.shape))) if f and not is_tape(p) else p
        for k, (p, f) in enumerate(zip(graph.parameters, flags, strict=True))
    )


def _loosened(graph: Graph, flags: Sequence[bool]) -> Graph:
    """Return ``graph`` without the bounds of its integers that mention batched parameters."""
    moving = {p for p, f in zip(graph.parameters, flags, strict=True) if f}
    loose = [p for p in graph.parameters if any(n in moving for s in p.params.get("within", ()) for n in nodes_of(s))]
    if not loose:
        return graph
    return _over(graph, [parameter(p["index"], p.type) if p in loose else p for p in graph.parameters])


def _over(graph: Graph, parameters: Sequence[Node]) -> Graph:
    """Return ``graph`` over parameters of the same types, with other known bounds."""
    replacement = {p: new for p, new in zip(graph.parameters, parameters, strict=True) if p is not new}
    if not replacement:
        return graph
    new = substitute([*graph.results, *graph.checked], replacement)
    known = {**replacement, **dict(zip(graph.checked, new[len(graph.results) :], strict=True))}
    return Graph(tuple(parameters), tuple(new[: len(graph.results)]), graph.guards_over(known), graph.names)


def _inside(graph: Graph, parameters: Sequence[Node], flags: Sequence[bool], size: Size) -> list[Node | None]:
    """Return the results of ``graph`` over parameters of which some are batched; None for results that are not."""
    return batch(
        graph.results, {p: new for p, new, f in zip(graph.parameters, parameters, flags, strict=True) if f}, size
    )


def _guards(graph: Graph, parameters: Sequence[Node], flags: Sequence[bool], size: Size) -> tuple[Guard, ...]:
    """Return the guards of ``graph``; raise ShapeError if one differs within the batch."""
    moving = {p: new for p, new, f in zip(graph.parameters, parameters, flags, strict=True) if f}
    if any(found is not None for found in batch(graph.checked, moving, size)):
        raise ShapeError(_UNEVEN, _MASKS)
    return graph.guards


def _led(results: Sequence[Node], found: Sequence[Node | None], size: Size) -> list[Node]:
    return [lead(r, False, size) if f is None else f for r, f in zip(results, found, strict=True)]


def _chosen(condition: Node, new: Node, old: Node, size: Size) -> Node:
    """Return for each element of the batch ``new`` if its condition holds, else ``old``."""
    if is_tape(new):
        return choose_tape(condition, new, old)
    return where(reshape(condition, (size, *[1] * (new.type.ndim - 1))), new, old)


def _going(condition: Node, new: Node, old: Node, plain: Node, size: Size, moving: set[Node]) -> Node:
    """Return :func:`_chosen` for a loop's carry, whose unbatched update is ``plain``; a tape gets no entries for finished elements."""
    writes: list[tuple[Node, Node]] = []
    node = new
    while node is not old and node.op in {RECORD, ADD_RECORD} and plain.op is node.op:
        writes.append((node, plain))
        node, plain = node.args[0], plain.args[0]
    if node is not old or not writes:
        return _chosen(condition, new, old, size)
    for write, single in reversed(writes):
        _, index, value = write.args
        index = lead(index, index.type.ndim > single.args[1].type.ndim, size)
        value = lead(value, value is not single.args[2] or value in moving, size)
        node = make(write.op, (node, _chosen(condition, index, constant(-1), size), value))
    return node


def _moving_tapes(parameters: Sequence[Node], flags: Sequence[bool]) -> set[Node]:
    """Return the parameters that are batched tapes; their types do not show it."""
    return {p for p, f in zip(parameters, flags, strict=True) if f and is_tape(p)}


def _closed(graph: Graph, flags: Sequence[bool], size: Size) -> Graph:
    """Return ``graph`` with batches for some parameters and for all results."""
    inner = _inner_size(graph, size)
    graph = _loosened(graph, flags)
    parameters = _parameters(graph, flags, inner)
    results = _led(graph.results, _inside(graph, parameters, flags, inner), inner)
    return Graph(parameters, tuple(results), _guards(graph, parameters, flags, inner))


def _call(node: Node, args: Sequence[Node], flags: Sequence[bool], size: Size) -> tuple[Node, ...]:
    return call(_closed(node["graph"], flags, size), args)


def _checkpoint(node: Node, args: Sequence[Node], flags: Sequence[bool], size: Size) -> tuple[Node, ...]:
    return checkpoint(_closed(node["graph"], flags, size), args)


def _custom(node: Node, args: Sequence[Node], flags: Sequence[bool], size: Size) -> tuple[Node, ...]:
    """Return the batched results, with every operand batched, so that the cotangents are batched, too."""
    graph, back = (_closed(g, [True] * len(g.parameters), size) for g in (node["graph"], node["back"]))
    return custom(graph, back, [lead(a, f, size) for a, f in zip(args, flags, strict=True)])


def _grad(node: Node, args: Sequence[Node], flags: Sequence[bool], size: Size) -> tuple[Node, ...]:
    return _call(GRAD.expand(node), args, flags, size)


def _cond(node: Node, args: Sequence[Node], flags: Sequence[bool], size: Size) -> tuple[Node, ...]:
    """Return the batched results of a branch: if the predicate differs within the batch, each branch runs that some element takes."""
    predicate, *operands = args
    graphs = (node["then"], node["otherwise"])
    operands, inner = _with_size(operands, flags[1:], size)
    if not flags[0]:
        return cond(predicate, _closed(graphs[0], inner, size), _closed(graphs[1], inner, size), operands)
    both = [
        _side(graph, operands, inner, chosen, size)
        for graph, chosen in zip(graphs, (predicate, logical_not(predicate)), strict=True)
    ]
    return tuple(_chosen(predicate, new, old, size) for new, old in zip(*both, strict=True))


def _with_size(operands: Sequence[Node], flags: Sequence[bool], size: Size) -> tuple[list[Node], Sequence[bool]]:
    """Return the operands, at least one array among them batched, as batched tapes alone do not show the batch size."""
    arrays = [k for k, operand in enumerate(operands) if not is_tape(operand)]
    if not any(flags) or not arrays or any(flags[k] for k in arrays):
        return [*operands], flags
    first = arrays[0]
    led = [lead(operand, False, size) if k == first else operand for k, operand in enumerate(operands)]
    return led, [flag or k == first for k, flag in enumerate(flags)]


def _side(graph: Graph, operands: Sequence[Node], flags: Sequence[bool], chosen: Node, size: Size) -> tuple[Node, ...]:
    """Return the results of one branch for a batch; their values are arbitrary for elements that do not take the branch."""
    if harmless(graph) or size == 0 or not can_be_skipped(graph):
        closed = _closed(graph, flags, size) if any(flags) else graph
        found = (inlined(closed, operands) if harmless(graph) else None) or call(closed, operands)
        return found if any(flags) else tuple(lead(r, False, size) for r in found)
    inner = _inner_size(graph, size)
    graph = _loosened(graph, flags)
    parameters = with_chosen(_parameters(graph, flags, inner), inner)
    safe = donated(parameters[-1], parameters[:-1], flags, inner)
    results = _led(graph.results, _inside(graph, safe, flags, inner), inner)
    return where_any(chosen, Graph(parameters, tuple(results), _guards(graph, safe, flags, inner)), operands)


def _moving(body: Graph, first: int, carries: int, flags: Sequence[bool], size: Size) -> list[bool]:
    """Return which operands are batched at some iteration; a carry that becomes batched stays so."""
    flags = list(flags)
    while True:
        parameters = _parameters(body, [*[False] * first, *flags], size)
        found = _inside(body, parameters, [*[False] * first, *flags], size)
        grown = [f or (k < carries and found[k] is not None) for k, f in enumerate(flags)]
        if grown == flags:
            return flags
        flags = grown


def _loop(node: Node, args: Sequence[Node], flags: Sequence[bool], size: Size) -> tuple[Node, ...]:
    """Return the batched results of a loop.

    If the count differs within the batch, it runs to the largest, and finished elements do not change.
    """
    body, carries = node["body"], node["carries"]
    count, *operands = args
    inner = _inner_size(body, size)
    uneven = flags[0]
    moving = [uneven or f if k < carries else f for k, f in enumerate(flags[1:])]
    moving = _moving(body, 1, carries, moving, inner)
    body = _loosened(body, [False, *moving])
    parameters = _parameters(body, [False, *moving], inner)
    guards = _guards(body, parameters, [False, *moving], inner)
    counts = parameter(len(parameters), count.type.with_shape((inner,)))
    unfinished = less(parameters[0], counts) if uneven else None
    safe = parameters
    if unfinished is not None and not harmless(body):
        safe = [parameters[0], *donated(unfinished, parameters[1:], moving, inner)]
    found = _inside(body, safe, [False, *moving], inner)
    results = [
        lead(r, False, inner) if m and f is None else f or r
        for r, f, m in zip(body.results, found, moving, strict=False)
    ]
    operands = [lead(a, f, size) if m else a for a, f, m in zip(operands, flags[1:], moving, strict=True)]
    if unfinished is not None:
        tapes = _moving_tapes(parameters[1:], moving)
        results = [
            _going(unfinished, new, old, plain, inner, tapes)
            for new, old, plain in zip(results, parameters[1:], body.results, strict=False)
        ]
        parameters = (*parameters, counts)
        operands.append(count)
        count = constant(0) if size == 0 else fold(MAX, count, (0,))
    iteration = Graph(parameters, tuple(results), guards)
    ends = loop(count, iteration, operands[:carries], operands[carries:])
    return tuple(lead(e, m, size) for e, m in zip(ends, moving, strict=False))


def _while(node: Node, args: Sequence[Node], flags: Sequence[bool], size: Size) -> tuple[Node, ...]:
    """Return the batched results of a loop: if the test differs within the batch, it runs until no element goes on."""
    body, carries = node["body"], node["carries"]
    test = _over(node["test"], body.parameters)
    inner = _inner_size(body, size)
    moving = _moving(body, 0, carries, flags, inner)
    uneven = _inside(test, _parameters(test, moving, inner), moving, inner)[0] is not None
    if uneven:
        moving = _moving(body, 0, carries, [k < carries or f for k, f in enumerate(moving)], inner)
    parameters = _parameters(body, moving, inner)
    (answer,) = _inside(test, parameters, moving, inner)
    safe = parameters if answer is None or harmless(body) else donated(answer, parameters, moving, inner)
    found = _inside(body, safe, moving, inner)
    results = [
        lead(r, False, inner) if m and f is None else f or r
        for r, f, m in zip(body.results, found, moving, strict=False)
    ]
    whole = test.results[0] if answer is None else fold(ANY, answer, (0,))
    if answer is not None:
        tapes = _moving_tapes(parameters, moving)
        results = [
            _going(answer, new, old, plain, inner, tapes)
            for new, old, plain in zip(results, parameters, body.results, strict=False)
        ]
    operands = [lead(a, f, size) if m else a for a, f, m in zip(args, flags, moving, strict=True)]
    iteration = Graph(parameters, tuple(results), _guards(body, parameters, moving, inner))
    going = Graph(parameters, (whole,), _guards(test, parameters, moving, inner))
    ends = while_loop(going, iteration, operands[:carries], operands[carries:])
    return tuple(lead(e, m, size) for e, m in zip(ends, moving, strict=False))


_REGIONS: dict[Operation, Callable[[Node, Sequence[Node], Sequence[bool], Size], tuple[Node, ...]]] = {
    CALL: _call,
    CHECKPOINT: _checkpoint,
    COND: _cond,
    CUSTOM: _custom,
    GRAD: _grad,
    LOOP: _loop,
    WHILE: _while,
}
