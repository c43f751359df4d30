"""Replaces reads of the element that the previous iteration has stored by a number that is carried.

``y[k] = a * y[k - 1] + x[k]`` carries ``y[k - 1]`` as a number, which a compiled loop holds in a register. An array
that is only read where nothing is stored yet, and not after the loop, is not stored at all; the cotangents of such
arrays are not.
"""

from __future__ import annotations

from collections.abc import Sequence

from tensormagic.ir.graph import Graph
from tensormagic.ir.node import Node, make
from tensormagic.ir.site import inherit, substituted
from tensormagic.ir.substituting import substitute
from tensormagic.ir.type import Type
from tensormagic.ops.leaf import size_of
from tensormagic.ops.move import RESHAPE, reshape, slice_
from tensormagic.ops.opaque import items
from tensormagic.ops.regions.loops import LOOP, unindexed
from tensormagic.ops.regions.region import graph_over, matched, stand_in, witnesses
from tensormagic.ops.update import SET
from tensormagic.transform.loops.stacks import loops_of
from tensormagic.transform.loops.stored_places import Places, bare, is_inside, places_of

_LEAST = 200
"""Loops known to have fewer iterations are left: one more carry costs as much as they would gain."""


def handed_on(results: Sequence[Node]) -> dict[Node, Node]:
    """Return replacements for the results of loops that store elements only for the next iteration, or for no reader."""
    for loop, ends in loops_of(results).items():
        every = items(loop)
        read = {every.index(end) for end in ends}
        body: Graph = loop["body"]
        for k in range(loop["carries"]):
            end, slot = body.results[k], body.parameters[1 + k]
            roots = [*body.results, *body.checked]
            found = places_of(slot, end, roots, body.parameters[0], set())
            if found is None or loop.args[1 + k].type.dtype != slot.type.dtype:
                continue
            new = _as_constant(loop, k, found) if k not in read and not found.before else _as_number(loop, k, found)
            if new is not None:
                return {old: new[j] for j, old in enumerate(every) if j in new}
    return {}


def _as_constant(loop: Node, k: int, places: Places) -> dict[int, Node]:
    """Return the results of the loop with carry ``k`` as a constant array, as no iteration reads what another has stored."""
    body: Graph = loop["body"]
    own, operands = list(body.parameters[1:]), list(loop.args[1:])
    nexts = substituted(body.results, dict.fromkeys(places.just, body.results[k].args[1]))
    slot, start, carries = own.pop(k), operands.pop(k), loop["carries"] - 1
    del nexts[k]
    own.insert(carries, slot)
    operands.insert(carries, start)
    ends = items(
        make(LOOP, [loop.args[0], *operands], body=graph_over([body.parameters[0], *own], nexts, body), carries=carries)
    )
    return dict(zip((j for j in range(carries + 1) if j != k), ends, strict=True))


def _as_number(loop: Node, k: int, places: Places) -> dict[int, Node] | None:
    """Return the results of the loop with the element that the last iteration has stored as one more carry, or None if that fails."""
    body: Graph = loop["body"]
    end, start, carries = body.results[k], loop.args[1 + k], loop["carries"]
    iterations = size_of(loop.args[0])
    if isinstance(iterations, int) and iterations < _LEAST:
        return None
    if end.op is not SET or any(s != 1 for s in end.args[1].type.shape):
        return None
    sizes, _ = matched(unindexed(body, 1), loop.args[1:], "loop")
    part = tuple((substitute(first, sizes), substitute(length, sizes), by) for first, length, by in places.first_before)
    if not (places.before or places.just) or not is_inside(part, start.type.shape):
        return None
    number = stand_in("before", Type(end.type.dtype, (), "scalar"))
    shaped = [n for n in body.nodes if n.op is RESHAPE and n.args[0] in places.before]
    nexts = substituted(body.results, dict.fromkeys(places.just, end.args[1]))
    reads = {n: reshape(number, n.type.shape) for n in (*places.before, *shaped)}
    for old, new in reads.items():
        inherit(new, old)
    nexts = substituted(nexts, reads)
    nexts.insert(carries, reshape(bare(nexts[k].args[1]), ()))
    inherit(nexts[carries], end)
    own, operands = list(body.parameters[1:]), list(loop.args[1:])
    own.insert(carries, number)
    operands.insert(carries, reshape(slice_(start, part), ()))
    saying, said = witnesses(nexts, own, sizes)
    inner = graph_over([body.parameters[0], *own, *saying], nexts, body)
    ends = items(make(LOOP, [loop.args[0], *operands, *said], body=inner, carries=carries + 1))
    return dict(enumerate(ends[:carries]))
