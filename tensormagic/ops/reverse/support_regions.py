"""Where a tangent that is the result of a branch, a call or a loop may be nonzero: a region of the same kind computes the mask."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tensormagic.ir.graph import Graph
from tensormagic.ir.node import Node, make, topological
from tensormagic.ir.type import Type
from tensormagic.ops.form import to_form
from tensormagic.ops.leaf import constant
from tensormagic.ops.move import broadcast
from tensormagic.ops.opaque import ITEM, items
from tensormagic.ops.regions.region import graph_over, stand_in
from tensormagic.ops.reverse.support import DEEPEST, Search, support
from tensormagic.ops.reverse.tape import is_tape


def mark(cotangent: Node) -> Node:
    """Return a stand-in for the mask of where a cotangent may be nonzero."""
    shape = cotangent.type.shape
    return stand_in("touched", Type(np.dtype(bool), shape, "array" if shape else "scalar"))


def marked(found: Node | None, like: Node) -> Node:
    """Return a mask, or True everywhere for None, in the type of a mark."""
    shape = like.type.shape
    everywhere = broadcast(constant(np.True_), shape) if found is None else found
    return everywhere if shape else to_form(everywhere, "scalar")


def of_region(node: Node, search: Search) -> Node | None:
    """Return where the result of a region may be nonzero, or None if it is not known."""
    region, place = (node.args[0], node["index"]) if node.op is ITEM else (node, 0)
    if not search.steep or is_tape(node):
        return None
    find = {"cond": _of_branches, "call": _of_branches, "checkpoint": _of_branches, "loop": _of_loop}
    return find[region.op.name](region, place, search) if region.op.name in find else None


def _of_operands(operands: Sequence[Node], search: Search) -> list[Node | None]:
    return [support(a, search) if a.type.inexact and not is_tape(a) else None for a in operands]


def _of_branches(region: Node, place: int, search: Search) -> Node | None:
    op: Any = region.op
    operands = region.args[int(op.chooses) :]
    given = _of_operands(operands, search)
    ways: dict[str, tuple[Graph, list[Node], Node]] = {}
    some, read = False, set[int]()
    for name, graph in op.graphs(region.params).items():
        marks = {p: mark(p) for p, s in zip(graph.parameters, given, strict=True) if s is not None}
        result = graph.results[place]
        found = support(result, Search(2 * DEEPEST, steep=True, known=marks))
        some |= found is not None
        ways[name] = graph, list(marks.values()), marked(found, result)
        needed = set(topological([ways[name][2]]))
        read |= {k for k, p in enumerate(graph.parameters) if p in needed or p not in marks}
    if not some:
        return None
    graphs = {
        name: graph_over([*(graph.parameters[k] for k in sorted(read)), *marks], [found], graph)
        for name, (graph, marks, found) in ways.items()
    }
    values = [marked(s, a) for s, a in zip(given, operands, strict=True) if s is not None]
    return op.again(region, graphs, [*(operands[k] for k in sorted(read)), *values])[0]


def _of_loop(region: Node, place: int, search: Search) -> Node | None:
    """Return the mask by a loop over marks alone, if these depend only on the iteration and on loop constants; else None."""
    body: Graph = region["body"]
    carries: int = region["carries"]
    count, *operands = region.args
    index, *own = body.parameters
    given = _of_operands(operands, search)
    fixed = {p: mark(p) for p, s in zip(own[carries:], given[carries:], strict=True) if s is not None}
    moving = {k: mark(own[k]) for k in range(carries) if own[k].type.inexact and not is_tape(own[k])}
    found = _over_iterations(body, own[:carries], moving, fixed)
    if place not in found:
        return None
    starts = [marked(given[k], own_operand) for k, own_operand in enumerate(operands[:carries]) if k in found]
    values = [marked(s, a) for s, a in zip(given[carries:], operands[carries:], strict=True) if s is not None]
    marks = [moving[k] for k in found]
    graph = graph_over([index, *marks, *own[carries:], *fixed.values()], list(found.values()), body)
    results = items(make(region.op, [count, *starts, *operands[carries:], *values], body=graph, carries=len(marks)))
    return results[list(found).index(place)]


def _over_iterations(
    body: Graph, own: Sequence[Node], moving: Mapping[int, Node], fixed: Mapping[Node, Node]
) -> dict[int, Node]:
    """Return the marks of carries after an iteration, in terms of those before it; only for carries with known marks."""
    kept = dict(moving)
    while True:
        known = {**fixed, **{own[k]: m for k, m in kept.items()}}
        look = Search(2 * DEEPEST, steep=True, known=known)
        found = {k: marked(s, own[k]) for k in kept if (s := support(body.results[k], look)) is not None}
        found = {k: s for k, s in found.items() if not set(own).intersection(topological([s]))}
        if len(found) == len(kept):
            return found
        kept = {k: m for k, m in kept.items() if k in found}
