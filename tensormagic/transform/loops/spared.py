"""Runs a branch or an iteration for elements of a batch that it does not apply to with the operands of one that it does apply to.

So nothing is raised for them, no loop runs for ever, and no derivative is infinite.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tensormagic.ir.graph import Graph
from tensormagic.ir.node import Node, topological
from tensormagic.ir.size import Size, nodes_of
from tensormagic.ir.type import Type
from tensormagic.ops.fold import ANY, ARGMAX, SUM, fold
from tensormagic.ops.indices.gather import gather
from tensormagic.ops.leaf import parameter
from tensormagic.ops.move import RESHAPE, TRANSPOSE, broadcast, reshape
from tensormagic.ops.regions.control import cond
from tensormagic.ops.regions.region import graph_over, instantiated, matched
from tensormagic.ops.reverse.tape import is_tape
from tensormagic.ops.scalars.scalar import stop_gradient, where
from tensormagic.ops.update import zeros_like

_MASKED = {RESHAPE, TRANSPOSE, SUM}  # ops through which the search for masked cotangents looks


def harmless(graph: Graph) -> bool:
    """Return whether ``graph`` may run for any element: it raises nothing, terminates, and its derivatives stay masked."""
    given = set(graph.parameters)
    moving = set(given)
    for node in graph.nodes:
        if node in given or not any(a in moving for a in node.needs):
            continue
        moving.add(node)
        kind = node.op.kind
        last = kind == "move" and all(a in given for a in node.args)
        if node.sized_by or not (kind == "pointwise" or node.op in _MASKED or last):
            return False
    return not graph.checks


def inlined(graph: Graph, operands: Sequence[Node]) -> tuple[Node, ...] | None:
    """Return the results of a graph over operands, or None if a guard would be lost."""
    sizes, guards = matched(graph, operands, "cond")
    if guards or graph.guards:
        return None
    return tuple(instantiated(graph.results, dict(zip(graph.parameters, operands, strict=True)), sizes))


def can_be_skipped(graph: Graph) -> bool:
    """Return whether zeros can replace the results of ``graph`` if no element needs it."""
    nodes = topological([*graph.parameters, *graph.results])
    tapes = any(is_tape(n) for n in nodes)
    return not tapes and not any(nodes_of(s) for r in graph.results for s in r.type.shape)


def donated(chosen: Node, stacks: Sequence[Node], moving: Sequence[bool], size: Size) -> list[Node]:
    """Return ``stacks`` with a chosen element in place of each element that is not chosen; only those marked in ``moving`` change."""
    if size == 0 or not any(m and not is_tape(s) for s, m in zip(stacks, moving, strict=True)):
        return list(stacks)
    first = fold(ARGMAX, chosen, (0,))
    return [
        _donated(chosen, s, first, size) if m and not is_tape(s) else s for s, m in zip(stacks, moving, strict=True)
    ]


def _donated(chosen: Node, stack: Node, first: Node, size: Size) -> Node:
    shape = stack.type.shape
    donor = broadcast(reshape(stop_gradient(gather(stack, first, 0)), (1, *shape[1:])), shape)
    return where(reshape(chosen, (size, *[1] * (len(shape) - 1))), stack, donor)


def where_any(chosen: Node, graph: Graph, operands: Sequence[Node]) -> tuple[Node, ...]:
    """Return the results of ``graph``, whose last parameter is ``chosen``; zeros if nothing is chosen."""
    given = [*operands, chosen]
    zeros = graph_over(graph.parameters, [zeros_like(r) for r in graph.results])
    return cond(fold(ANY, chosen, (0,)), graph, zeros, given)


def with_chosen(parameters: Sequence[Node], size: Size) -> tuple[Node, ...]:
    """Return ``parameters`` and one more for the mask of chosen elements."""
    return (*parameters, parameter(len(parameters), Type(np.dtype(bool), (size,))))
