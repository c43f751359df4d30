"""Keeps an array within its frame of zeros as the carry of a loop that would copy it there at each iteration.

The backward loop of a stencil carries an array whose neighbours are read, as in :mod:`tensormagic.transform.shifts`:
the inner part is stored, and the rim is only added to. If the inner part is carried within its frame of zeros, and
the rim in an array of its own, nothing is copied into a frame, and an iteration is one pass.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from tensormagic.ir.graph import Graph
from tensormagic.ir.node import Node, make, topological, users
from tensormagic.ir.site import substituted
from tensormagic.ir.size import Size, nodes_of
from tensormagic.ir.substituting import substitute as with_sizes
from tensormagic.ops.leaf import constant, is_constant_zero
from tensormagic.ops.move import SLICE, broadcast, slice_
from tensormagic.ops.opaque import items
from tensormagic.ops.regions.loops import LOOP, unindexed
from tensormagic.ops.regions.region import graph_over, matched, stand_in
from tensormagic.ops.update import ADD_AT, SET, set_at

Slices = tuple[tuple[Size, Size, int], ...]


@dataclass
class _Carry:
    """A carry whose inner part is read, put into a frame of zeros, and stored anew, by its number."""

    number: int
    store: Node  # the store of the inner part, before additions to the rim
    inner: Node  # the part as it is read
    frame: Node  # the inner part in the middle of zeros


def framed(results: Sequence[Node]) -> dict[Node, Node]:
    """Return replacements for the results of loops that carry such arrays."""
    goals: dict[Node, Node] = {}
    for node in topological(results):
        if node.op is LOOP:
            found = next((c for k in range(node["carries"]) if (c := _carry(node["body"], k)) is not None), None)
            if found is not None:
                goals.update(_rebuilt(node, found))
    return goals


def _carry(body: Graph, k: int) -> _Carry | None:
    """Return the facts about carry ``k`` if it is such an array, else None."""
    carry, links = body.parameters[1 + k], [body.results[k]]
    while links[-1].op is ADD_AT:
        links.append(links[-1].args[0])
    store = links[-1]
    if len(links) == 1 or store.op is not SET or store.args[0] is not carry:
        return None
    used = users(body.nodes)
    readers = [n for n in used[carry] if n is not store]
    if len(readers) != 1 or readers[0].op is not SLICE or readers[0]["slices"] != store["slices"]:
        return None
    shown = [*body.checked, *(r for j, r in enumerate(body.results) if j != k)]
    if carry in shown or not _leads_to_its_end_alone(links, used, shown):
        return None
    frame = _frame(readers[0], store, used)
    return None if frame is None else _Carry(k, store, readers[0], frame)


def _leads_to_its_end_alone(links: Sequence[Node], used: Mapping[Node, Sequence[Node]], shown: Sequence[Node]) -> bool:
    """Return whether a chain of updates is read only by itself, and its end is one result of the loop."""
    end = links[0]
    if end in shown or end in used:
        return False
    return all(used[below] == [above] and below not in shown for above, below in pairwise(links))


def _frame(inner: Node, store: Node, used: Mapping[Node, Sequence[Node]]) -> Node | None:
    """Return the store of a part into the middle of zeros, if there is exactly one and its sizes are the same in each iteration."""
    frames = [n for n in used.get(inner, ()) if n.op is SET and n.args[1] is inner and is_constant_zero(n.args[0])]
    sizes = [s for f in frames for s in (*f.type.shape, *(x for own in (*store["slices"], *f["slices"]) for x in own))]
    return frames[0] if len(frames) == 1 and not any(map(nodes_of, sizes)) else None


def _rebuilt(loop: Node, found: _Carry) -> dict[Node, Node]:
    body, k, count = loop["body"], found.number, loop["carries"]
    index, *own = body.parameters
    operands = list(loop.args[1:])
    sizes, _ = matched(unindexed(body, 1), operands, "loop")
    frame = stand_in("frame", found.frame.type)
    rim = stand_in("rim", own[k].type)
    middle, part = found.frame["slices"], found.store["slices"]
    new = {found.frame: frame, found.inner: slice_(frame, middle), found.store: rim}
    *nexts, inside = substituted([*body.results, found.store.args[1]], new)
    nexts.append(set_at(found.frame.args[0], inside, middle))
    parameters = [*own[:k], rim, *own[k + 1 : count], frame, *own[count:]]
    changed = graph_over([index, *parameters], nexts, body)

    def outside(slices: Slices) -> Slices:
        return tuple((with_sizes(at, sizes), with_sizes(extent, sizes), step) for at, extent, step in slices)

    zero = constant(frame.type.dtype.type(0))
    shape = tuple(with_sizes(s, sizes) for s in frame.type.shape)
    start = set_at(broadcast(zero, shape), slice_(operands[k], outside(part)), outside(middle))
    arguments = [loop.args[0], *operands[:count], start, *operands[count:]]
    *ends, last = items(make(LOOP, arguments, body=changed, carries=count + 1))
    ends[k] = set_at(ends[k], slice_(last, outside(middle)), outside(part))
    return dict(zip(items(loop), ends, strict=True))
