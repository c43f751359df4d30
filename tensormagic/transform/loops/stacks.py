"""Reduces carries of loops to what is read: stacks of which one iteration is read, and carries that are equal at every iteration.

With ``states[k] = h`` at each iteration and ``states[-1]`` after the loop, only that iteration's value is carried.
Where it is not the last iteration and nothing else is read, the loop ends with that iteration.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tensormagic.ir.graph import Graph
from tensormagic.ir.node import Node, as_size, make, topological, users
from tensormagic.ir.site import substituted
from tensormagic.ir.size import Size, is_at_least, nodes_of
from tensormagic.ops.leaf import size_node, size_of
from tensormagic.ops.move import SLICE, reshape, slice_
from tensormagic.ops.opaque import ITEM, item, items
from tensormagic.ops.regions.loops import LOOP, unindexed
from tensormagic.ops.regions.region import graph_over, matched, stand_in, witnesses
from tensormagic.ops.update import SET
from tensormagic.transform.loops.stored_places import bare

_SILENT = {"leaf", "pointwise", "move", "fold", "contract", "update"}
"""Kinds of ops that raise nothing, so that iterations whose results nobody reads may be left out."""


def loops_of(results: Sequence[Node]) -> dict[Node, list[Node]]:
    """Return the loops, and those of their results that are read."""
    found: dict[Node, list[Node]] = {}
    for node in topological(results):
        loop = node.args[0] if node.op is ITEM else node
        if loop.op is LOOP and (node.op is ITEM or len(node.types) == 1):
            found.setdefault(loop, []).append(node)
    return found


# stacks of which one iteration is read -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Read:
    """A read of one iteration of a stack: the carry, the reading node, the stored value, and whether it is the last iteration."""

    carry: int
    reader: Node
    value: Node
    iteration: Size
    last: bool


def unstacked(results: Sequence[Node]) -> dict[Node, Node]:
    """Return replacements for reads of single iterations from a stack that a loop stores."""
    used = users(topological(results))
    for loop, ends in loops_of(results).items():
        iterations = size_of(loop.args[0])
        if iterations is None or nodes_of(iterations):
            continue
        for end in ends:
            readers = used.get(end, [])
            if end in results or len(readers) != 1 or readers[0].op is not SLICE:
                continue
            found = _read(loop, end["index"] if end.op is ITEM else 0, readers[0], iterations)
            if found is not None and (found.last or (len(ends) == 1 and _silent(loop["body"]))):
                return _carried(loop, found)
    return {}


def _silent(body: Graph) -> bool:
    return not body.checked and all(n.op.kind in _SILENT for n in body.nodes)


def _read(loop: Node, k: int, reader: Node, iterations: Size) -> _Read | None:
    body: Graph = loop["body"]
    carry, store, at = body.parameters[1 + k], body.results[k], as_size(body.parameters[0])
    if store.op is not SET or store.args[0] is not carry or not carry.type.shape or at is None:
        return None
    (first, *rest), (place, *others) = store["slices"], reader["slices"]
    whole = [(0, s, 1) for s in carry.type.shape[1:]]
    outside = [(0, s, 1) for s in reader.args[0].type.shape[1:]]
    if rest != whole or others != outside or first[1:] != (1, 1) or place[1:] != (1, 1):
        return None
    iteration = place[0] - (first[0] - at)
    if nodes_of(iteration) or (not (is_at_least(iteration, 0) and is_at_least(iterations - 1 - iteration, 0))):
        return None
    if carry in topological([store.args[1], *(r for j, r in enumerate(body.results) if j != k), *body.checked]):
        return None
    return _Read(k, reader, store.args[1], iteration, last=iteration == iterations - 1)


def _carried(loop: Node, read: _Read) -> dict[Node, Node]:
    """Return the results of the loop with the value of one iteration as a carry in place of the stack, for as many iterations as needed."""
    body: Graph = loop["body"]
    own, operands, nexts = list(body.parameters[1:]), list(loop.args[1:]), list(body.results)
    k = read.carry
    same = next((j for j, r in enumerate(nexts) if j != k and bare(r) is bare(read.value)), None)
    if read.last and same is not None and nexts[same].type.dtype == read.value.type.dtype:
        return {read.reader: reshape(items(loop)[same], read.reader.type.shape)}
    own[k], nexts[k] = stand_in("iteration", read.value.type), read.value
    operands[k] = slice_(operands[k], read.reader["slices"])
    sizes, _ = matched(unindexed(body, 1), loop.args[1:], "loop")
    saying, said = witnesses(nexts, own, sizes)
    inner = graph_over([body.parameters[0], *own, *saying], nexts, body)
    count = loop.args[0] if read.last else size_node(read.iteration + 1)
    ends = items(make(LOOP, [count, *operands, *said], body=inner, carries=loop["carries"]))
    others = {old: ends[j] for j, old in enumerate(items(loop)) if j != k}
    return others | {read.reader: ends[k]}


# equal carries --------------------------------------------------------------------------------------------------------


def united(results: Sequence[Node]) -> dict[Node, Node]:
    """Return replacements for the results of loops that carry the same value twice."""
    for loop in loops_of(results):
        body: Graph = loop["body"]
        own = body.parameters[1 : 1 + loop["carries"]]
        first = _classes(loop, own)
        if all(j == k for k, j in enumerate(first)):
            continue
        now = substituted([*body.results], {own[k]: own[j] for k, j in enumerate(first) if j != k})
        inner = body.with_results(now)
        new = make(LOOP, loop.args, body=inner, carries=loop["carries"])
        goals = {old: item(new, first[k]) for k, old in enumerate(items(loop)) if first[k] != k or new is not loop}
        if new is not loop or not goals.keys().isdisjoint(topological(results)):
            return goals
    return {}


def _classes(loop: Node, own: Sequence[Node]) -> list[int]:
    """Return for each carry the first one that equals it at every iteration: both begin and continue alike."""
    body: Graph = loop["body"]
    keys: list[object] = [(loop.args[1 + k], p.type) for k, p in enumerate(own)]
    while True:
        first = [keys.index(key) for key in keys]
        moved = {own[k]: own[j] for k, j in enumerate(first) if j != k}
        if not moved:
            return first
        nexts = substituted([*body.results], moved)
        new: list[object] = [(first[k], nexts[k]) for k in range(len(own))]
        if [new.index(key) for key in new] == first:
            return first
        keys = new
