"""Carries the sum in place of an array that a loop adds to at each iteration and that is summed after the loop.

The derivative by a number that is used at each element of an array is such a sum. Without this an array of its size
is read and written at each iteration.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache, reduce

from tensormagic.ir.graph import Graph
from tensormagic.ir.node import Node, make, topological, users
from tensormagic.ir.site import substituted
from tensormagic.ops.fold import SUM
from tensormagic.ops.leaf import constant, is_constant_zero
from tensormagic.ops.move import broadcast
from tensormagic.ops.opaque import ITEM, items
from tensormagic.ops.regions.control import CALL
from tensormagic.ops.regions.loops import LOOP, unindexed
from tensormagic.ops.regions.region import graph_over, matched, stand_in, witnesses
from tensormagic.ops.scalars.scalar import add


def totalled(results: Sequence[Node]) -> dict[Node, Node]:
    """Return replacements for sums of arrays that loops add to, and for the other results of these loops."""
    nodes = topological(results)
    used = users(nodes)
    found: dict[Node, dict[int, Node]] = {}
    for node in nodes:
        if node.op is not SUM or node.type.shape or node.args[0].op is not ITEM:
            continue
        end = node.args[0]
        alike = end.type.dtype == node.type.dtype and end.type.dtype.kind == "f"
        if alike and used[end] == [node] and end not in results:
            found.setdefault(end.args[0], {})[end["index"]] = node
    goals: dict[Node, Node] = {}
    for region, sums in found.items():
        if region.op is LOOP:
            goals |= _loop_of_sums(region, sums)
        elif region.op is CALL:
            goals |= _call_of_sums(region, sums)
    return goals


def _loop_of_sums(loop: Node, sums: dict[int, Node]) -> dict[Node, Node]:
    """Return replacements by a loop with a number for each carry that it only adds to."""
    body: Graph = loop["body"]
    taken = {k: node for k, node in sums.items() if _only_adds(body, k)}
    own, operands, nexts = list(body.parameters[1:]), list(loop.args[1:]), list(body.results)
    gone: dict[Node, Node] = {}
    for k, node in taken.items():
        total = stand_in("total", node.type)
        nexts[k] = add(total, _sum(reduce(add, _terms(nexts[k], own[k]) or [])))
        gone[own[k]] = _zeros(own[k])
        own[k], operands[k] = total, _sum(operands[k])
    if not taken:
        return {}
    nexts = substituted(nexts, gone)
    sizes, _ = matched(unindexed(body, 1), loop.args[1:], "loop")
    saying, said = witnesses(nexts, own, sizes)
    inner = graph_over([body.parameters[0], *own, *saying], nexts, body)
    ends = items(make(LOOP, [loop.args[0], *operands, *said], body=inner, carries=loop["carries"]))
    return _in_place_of(loop, ends, taken)


def _call_of_sums(call: Node, sums: dict[int, Node]) -> dict[Node, Node]:
    """Return replacements by a call that returns the sums of what loops inside it add to; zero arguments stay zero inside."""
    graph: Graph = call["graph"]
    taken = {k: node for k, node in sums.items() if _is_added_up(graph.results[k])}
    if not taken:
        return {}
    gone = {
        p: _zeros(p) for p, a in zip(graph.parameters, call.args, strict=True) if is_constant_zero(a) and p.type.inexact
    }
    results = [_sum(r) if k in taken else r for k, r in enumerate(graph.results)]
    inner = graph_over(graph.parameters, substituted(results, gone), graph)
    return _in_place_of(call, items(make(CALL, call.args, graph=inner)), taken)


def _in_place_of(region: Node, ends: Sequence[Node], taken: dict[int, Node]) -> dict[Node, Node]:
    others = {old: ends[k] for k, old in enumerate(items(region)) if k not in taken}
    return others | {node: ends[k] for k, node in taken.items()}


def _zeros(value: Node) -> Node:
    return broadcast(constant(value.type.dtype.type(0)), value.type.shape)


def _sum(value: Node) -> Node:
    if is_constant_zero(value):
        return constant(value.type.dtype.type(0))
    return make(SUM, [value], axes=tuple(range(value.type.ndim)))


def _is_added_up(value: Node) -> bool:
    """Return whether a value is a carry that a loop only adds to."""
    return value.op is ITEM and value.args[0].op is LOOP and _only_adds(value.args[0]["body"], value["index"])


def _only_adds(body: Graph, k: int) -> bool:
    """Return whether the iterations of a loop add to carry ``k``, and do nothing else with it."""
    carry = body.parameters[1 + k]
    others = [r for j, r in enumerate(body.results) if j != k]
    return bool(_terms(body.results[k], carry)) and carry not in _read([*others, *body.checked])


def _terms(result: Node, carry: Node) -> list[Node] | None:
    """Return the terms added to ``carry`` in ``result``, also in regions, or None if ``result`` is another function of it."""
    found: list[Node] = []
    while result is not carry:
        if result.op is add:
            moving = [a for a in result.args if carry in _read([a])]
            if len(moving) != 1 or moving[0].type != result.type:
                return None
            found.append(next(a for a in result.args if a is not moving[0]))
            result = moving[0]
        elif _adds_within(result, carry):
            return [*found, result]  # which begins from zero
        else:
            return None
    return found


def _adds_within(result: Node, carry: Node) -> bool:
    """Return whether ``result`` comes from a region that begins with ``carry`` and only adds to it."""
    if result.op is not ITEM or result.args[0].op not in {LOOP, CALL}:
        return False
    region, k = result.args[0], result["index"]
    moving = [j for j in _needed(region, k) if carry in _read([region.args[j]])]
    if len(moving) != 1 or region.args[moving[0]] is not carry:
        return False
    if region.op is LOOP:
        return moving == [1 + k] and _only_adds(region["body"], k)
    graph: Graph = region["graph"]
    own = graph.parameters[moving[0]]
    others = [r for j, r in enumerate(graph.results) if j != k]
    return bool(_terms(graph.results[k], own)) and own not in _read([*others, *graph.checked])


def _read(roots: Iterable[Node]) -> set[Node]:
    """Return the nodes that ``roots`` depend on; of a region's arguments only those that its result needs."""
    found: set[Node] = set()
    stack = list(roots)
    while stack:
        node = stack.pop()
        if node in found:
            continue
        found.add(node)
        if node.op is ITEM and node.args[0].op in {LOOP, CALL}:
            region = node.args[0]
            stack += [region.args[j] for j in _needed(region, node["index"])]
        else:
            stack += node.needs
    return found


@lru_cache(maxsize=256)
def _needed(region: Node, k: int) -> list[int]:
    """Return the arguments that result ``k`` of a loop or call depends on."""
    graph: Graph = region["body" if region.op is LOOP else "graph"]
    own, carries = graph.parameters, region.params.get("carries", 0)
    wanted = {k}
    while True:
        read = _read([*(graph.results[j] for j in wanted), *graph.checked])
        reached = [j for j, p in enumerate(own) if p in read]
        more = {j - 1 for j in reached if 1 <= j <= carries} - wanted
        if not more:
            return sorted({*reached, *(1 + j for j in wanted if j < carries), *([0] if carries else [])})
        wanted |= more
