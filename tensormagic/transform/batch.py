"""Batches as graphs: nodes rebuilt over a new leading axis.

Each kind of op has its rule; regions are batched here, by the graphs inside.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from tensormagic.ir import site
from tensormagic.ir.graph import Graph
from tensormagic.ir.node import Node, topological
from tensormagic.ir.type import Size, Type, atoms, symbol
from tensormagic.ops.control import CALL, COND, GRAD, LOOP, WHILE, call, cond, loop, while_loop
from tensormagic.ops.fold import ANY, MAX, fold
from tensormagic.ops.leaf import constant, parameter
from tensormagic.ops.move import lead, reshape
from tensormagic.ops.opaque import ITEM, item
from tensormagic.ops.scalar import less, where

Stacks = Node | tuple[Node, ...]  # a tuple for the results of a region


def batch(results: Sequence[Node], stacks: Mapping[Node, Node], size: Size) -> list[Node | None]:
    """``results`` for a whole stack at once; None for those that are the same for each element of it.

    Parameters
    ----------
    results
        The nodes that are wanted.
    stacks
        For some nodes, the node that takes its place: with an axis of ``size`` before the axes of the node itself.
    size
        How many elements the stack has.
    """
    known: dict[Node, Stacks] = dict(stacks)
    for node in topological(results, stop=lambda n: n in stacks):
        if node not in known and any(a in known for a in node.args):
            known[node] = _stacked(node, known, size)
    return [found if isinstance(found := known.get(r), Node) else None for r in results]


def _stacked(node: Node, known: Mapping[Node, Stacks], size: Size) -> Stacks:
    if node.op is ITEM:
        group = known[node.args[0]]
        return item(group, node["index"]) if isinstance(group, Node) else group[node["index"]]
    args = [a if (found := known.get(a)) is None else found for a in node.args]
    flags = [a in known for a in node.args]
    rule = _REGIONS.get(node.op.name)
    new: Stacks = rule(node, args, flags, size) if rule else node.op.batch(node, args, flags, size)  # type: ignore[attr-defined]
    for part in (new,) if isinstance(new, Node) else new:
        site.inherit(part, node)
    return new[0] if isinstance(new, tuple) and len(node.types) == 1 else new


# regions --------------------------------------------------------------------------------------------------------------


def _inner_size(graph: Graph, size: Size) -> Size:
    """The size of the batch inside a closed graph: a symbol that it does not use."""
    if size in {0, 1}:
        return size
    used = {str(a) for n in graph.nodes for t in n.types for s in t.shape for a in atoms(s)}
    number = next(k for k in range(len(used) + 1) if f"n{k}" not in used)
    return symbol(f"n{number}")


def _parameters(graph: Graph, flags: Sequence[bool], size: Size) -> tuple[Node, ...]:
    """The parameters of ``graph``, those that are marked with a leading axis."""
    types = [
        Type(p.type.dtype, (size, *p.type.shape)) if f else p.type for p, f in zip(graph.parameters, flags, strict=True)
    ]
    return tuple(parameter(k, t) for k, t in enumerate(types))


def _inside(graph: Graph, parameters: Sequence[Node], flags: Sequence[bool], size: Size) -> list[Node | None]:
    """The results of ``graph`` over parameters of which some are stacks."""
    return batch(
        graph.results, {p: new for p, new, f in zip(graph.parameters, parameters, flags, strict=True) if f}, size
    )


def _led(results: Sequence[Node], found: Sequence[Node | None], size: Size) -> list[Node]:
    return [lead(r, False, size) if f is None else f for r, f in zip(results, found, strict=True)]


def _chosen(condition: Node, new: Node, old: Node, size: Size) -> Node:
    """For each element of the stack, ``new`` where its condition holds, else ``old``."""
    return where(reshape(condition, (size, *[1] * (new.type.ndim - 1))), new, old)


def _closed(graph: Graph, flags: Sequence[bool], size: Size) -> Graph:
    """``graph`` with stacks for some parameters and for all results."""
    inner = _inner_size(graph, size)
    parameters = _parameters(graph, flags, inner)
    return Graph(parameters, tuple(_led(graph.results, _inside(graph, parameters, flags, inner), inner)), graph.guards)


def _call(node: Node, args: Sequence[Node], flags: Sequence[bool], size: Size) -> tuple[Node, ...]:
    return call(_closed(node["graph"], flags, size), args)


def _grad(node: Node, args: Sequence[Node], flags: Sequence[bool], size: Size) -> tuple[Node, ...]:
    return _call(GRAD.expand(node), args, flags, size)


def _cond(node: Node, args: Sequence[Node], flags: Sequence[bool], size: Size) -> tuple[Node, ...]:
    """Where the predicate differs within the stack, both branches run."""
    predicate, *operands = args
    graphs = (node["then"], node["otherwise"])
    if not flags[0]:
        return cond(predicate, _closed(graphs[0], flags[1:], size), _closed(graphs[1], flags[1:], size), operands)
    both = []
    for graph in graphs:
        if any(flags[1:]):
            both.append(call(_closed(graph, flags[1:], size), operands))
        else:
            both.append(tuple(lead(r, False, size) for r in call(graph, operands)))
    return tuple(_chosen(predicate, new, old, size) for new, old in zip(*both, strict=True))


def _moving(body: Graph, first: int, carries: int, flags: Sequence[bool], size: Size) -> list[bool]:
    """Which operands are stacks at some turn: what makes a carry one keeps it one."""
    flags = list(flags)
    while True:
        parameters = _parameters(body, [*[False] * first, *flags], size)
        found = _inside(body, parameters, [*[False] * first, *flags], size)
        grown = [f or (k < carries and found[k] is not None) for k, f in enumerate(flags)]
        if grown == flags:
            return flags
        flags = grown


def _loop(node: Node, args: Sequence[Node], flags: Sequence[bool], size: Size) -> tuple[Node, ...]:
    """Where the count differs within the stack, the loop runs to the largest; elements that are done do not change."""
    body, carries = node["body"], node["carries"]
    count, *operands = args
    inner = _inner_size(body, size)
    uneven = flags[0]
    moving = [uneven or f if k < carries else f for k, f in enumerate(flags[1:])]
    moving = _moving(body, 1, carries, moving, inner)
    parameters = _parameters(body, [False, *moving], inner)
    found = _inside(body, parameters, [False, *moving], inner)
    results = [
        lead(r, False, inner) if m and f is None else f or r
        for r, f, m in zip(body.results, found, moving, strict=False)
    ]
    operands = [lead(a, f, size) if m else a for a, f, m in zip(operands, flags[1:], moving, strict=True)]
    if uneven:
        counts = parameter(len(parameters), Type(count.type.dtype, (inner,)))
        unfinished = less(parameters[0], counts)
        results = [_chosen(unfinished, new, old, inner) for new, old in zip(results, parameters[1:], strict=False)]
        parameters = (*parameters, counts)
        operands.append(count)
        count = constant(0) if size == 0 else fold(MAX, count, (0,))
    turn = Graph(parameters, tuple(results), body.guards)
    ends = loop(count, turn, operands[:carries], operands[carries:])
    return tuple(lead(e, m, size) for e, m in zip(ends, moving, strict=False))


def _while(node: Node, args: Sequence[Node], flags: Sequence[bool], size: Size) -> tuple[Node, ...]:
    """Where the test differs within the stack, the loop runs until none goes on; the others do not change."""
    body, test, carries = node["body"], node["test"], node["carries"]
    inner = _inner_size(body, size)
    moving = _moving(body, 0, carries, flags, inner)
    uneven = _inside(test, _parameters(test, moving, inner), moving, inner)[0] is not None
    if uneven:
        moving = _moving(body, 0, carries, [k < carries or f for k, f in enumerate(moving)], inner)
    parameters = _parameters(body, moving, inner)
    found = _inside(body, parameters, moving, inner)
    results = [
        lead(r, False, inner) if m and f is None else f or r
        for r, f, m in zip(body.results, found, moving, strict=False)
    ]
    (answer,) = _inside(test, parameters, moving, inner)
    whole = test.results[0] if answer is None else fold(ANY, answer, (0,))
    if answer is not None:
        results = [_chosen(answer, new, old, inner) for new, old in zip(results, parameters, strict=False)]
    operands = [lead(a, f, size) if m else a for a, f, m in zip(args, flags, moving, strict=True)]
    turn, going = Graph(parameters, tuple(results), body.guards), Graph(parameters, (whole,), test.guards)
    ends = while_loop(going, turn, operands[:carries], operands[carries:])
    return tuple(lead(e, m, size) for e, m in zip(ends, moving, strict=False))


_REGIONS: dict[str, Callable[[Node, Sequence[Node], Sequence[bool], Size], tuple[Node, ...]]] = {
    CALL.name: _call,
    COND.name: _cond,
    GRAD.name: _grad,
    LOOP.name: _loop,
    WHILE.name: _while,
}
