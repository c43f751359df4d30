"""Joins two loops over the same range that carry numbers, as a processor can compute both chains of numbers at the same time.

``s = a * s + x[k]`` waits for the ``s`` before it, and so does ``t = b * t + x[k]`` in a loop of its own. Loops over
arrays have enough to do at each iteration, and stay as they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any

from tensormagic.ir.errors import TensorError
from tensormagic.ir.graph import Graph
from tensormagic.ir.node import Node, as_size, make, topological
from tensormagic.ir.size import Size, atom, nodes_of
from tensormagic.ir.substituting import substitute
from tensormagic.ir.type import Type
from tensormagic.ops.leaf import index_node, size_of
from tensormagic.ops.opaque import items
from tensormagic.ops.regions.loops import LOOP, unindexed
from tensormagic.ops.regions.region import graph_over, instantiated, matched, stand_in, witnesses
from tensormagic.transform.loops.stacks import loops_of

_KINDS = {"leaf", "move", "pointwise", "update"}  # none of them raises, so the order of the loops does not matter
_MOST = 200  # nodes of both iterations


def joined(results: Sequence[Node]) -> dict[Node, Node]:
    """Return replacements for the results of two loops that do not depend on each other."""
    by_count: dict[Node, list[Node]] = {}
    for loop in loops_of(results):
        if _carries_numbers(loop):
            by_count.setdefault(loop.args[0], []).append(loop)
    for loops in by_count.values():
        for first, second in combinations(loops, 2):
            if first in topological([second]) or second in topological([first]):
                continue
            try:
                goals = _as_one(first, second)
            except TensorError:
                continue
            if goals:
                return goals
    return {}


def _carries_numbers(loop: Node) -> bool:
    """Return whether each iteration only computes and stores numbers."""
    body: Graph = loop["body"]
    iterations = size_of(loop.args[0])
    if iterations is None or nodes_of(iterations) or body.checked or len(body.nodes) > _MOST // 2:
        return False
    if any(p.params.get("within") for p in body.parameters[1:]):
        return False
    return all(n.op.kind in _KINDS and len(n.types) == 1 and _is_number(n) for n in body.nodes)


def _is_number(node: Node) -> bool:
    value = node.args[1] if node.op.kind == "update" else node
    return node.op.kind in {"leaf", "move"} or all(s == 1 for s in value.type.shape)


def _as_one(first: Node, second: Node) -> dict[Node, Node]:
    """Return replacements for the results of both loops by those of one; empty if sizes differ from iteration to iteration."""
    iterations: Size = size_of(first.args[0])  # type: ignore[assignment] (as was seen)
    index = index_node("iteration", 0, iterations)
    fixed: dict[Node, Node] = {}
    carries: list[Node] = []
    starts: list[Node] = []
    nexts: list[Node] = []
    guards: list[tuple[Size, str, Size]] = []
    for loop in (first, second):
        body: Graph = loop["body"]
        at, *own = body.parameters
        sizes, _ = matched(unindexed(body, 1), loop.args[1:], "loop")
        sizes[at] = as_size(index)  # type: ignore[assignment] (a size)
        known = {at: index}
        for k, (p, operand) in enumerate(zip(own, loop.args[1:], strict=True)):
            shape = tuple(substitute(s, sizes) for s in p.type.shape)
            if shape != operand.type.shape:
                return {}
            if k < loop["carries"]:
                known[p] = stand_in(f"carry{len(carries)}", Type(p.type.dtype, shape, p.type.form))
                carries.append(known[p])
                starts.append(operand)
            elif operand in fixed:
                known[p] = fixed[operand]
            else:
                known[p] = fixed[operand] = stand_in(f"fixed{len(fixed)}", Type(p.type.dtype, shape, p.type.form))
            if known[p].type.form != p.type.form:
                return {}
        nexts += instantiated(body.results, known, sizes)
        guards += [(substitute(a, sizes), relation, substitute(b, sizes)) for a, relation, b in body.guards]
    own = [*carries, *fixed.values()]
    every: dict[Any, Any] = {a: atom(a) for n in topological([*nexts, *own, index]) for a in n.symbols}
    saying, said = witnesses(nexts, [*own, index], every)
    inner = graph_over([index, *own, *saying], nexts, Graph((), (), tuple(guards)))
    new = items(make(LOOP, [first.args[0], *starts, *fixed, *said], body=inner, carries=len(carries)))
    return dict(zip((*items(first), *items(second)), new, strict=True))
