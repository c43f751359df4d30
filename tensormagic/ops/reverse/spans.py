"""Long loops in blocks of iterations, so that the memory of a gradient grows with the square root of the iterations.

A gradient keeps only the states at the beginnings of blocks. The iterations of a block run again when the backward
pass reaches it, and their records live as long as the block.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isqrt
from typing import Any

from tensormagic.ir import site
from tensormagic.ir.graph import Graph
from tensormagic.ir.node import Node, as_size, make
from tensormagic.ir.size import Size, hint
from tensormagic.ops.form import to_form
from tensormagic.ops.leaf import constant, index_node, size_node
from tensormagic.ops.opaque import items
from tensormagic.ops.pointwise import astype
from tensormagic.ops.regions.branches import checkpoint
from tensormagic.ops.regions.loops import LOOP
from tensormagic.ops.regions.region import graph_over
from tensormagic.ops.reverse.residuals import bytes_of

MOST_BYTES = 16 << 20  # bytes of records of a loop that is not divided into blocks
FEWEST_ITERATIONS = 64


def block_length(
    iterations: Size | None, body: Graph, carries: Sequence[Node], saved: Sequence[Node], sizes: Mapping[Any, Size]
) -> int:
    """Return the number of iterations in a block that minimises memory, or 0 if the loop is better left as it is.

    It is left if it records little in all, or if one iteration records less than half of its initial state: a loop
    that stores one element per iteration into a long array records only that element.
    """
    seen = 0 if iterations is None or extent(body) is None else hint(iterations) or 0
    if seen < FEWEST_ITERATIONS or body.checked:
        return 0
    recorded = sum(bytes_of(t, sizes) for n in saved for t in n.types)
    begun = sum(bytes_of(p.type, sizes) for p in carries)
    if seen * recorded <= MOST_BYTES or begun > 2 * recorded:
        return 0
    return max(2, isqrt(seen * begun // recorded))


def extent(body: Graph) -> Size | None:
    """Return the number of iterations in the sizes of a body, or None if its index has no known bound."""
    within = body.parameters[0].params.get("within") or (None, None)
    return within[1]


def in_blocks(node: Node, operands: Sequence[Node], iterations: Size, length: int) -> list[Node]:
    """Return the results of a counted loop over ``operands``, run in blocks of ``length`` iterations and one block of the rest."""
    body, carries = node["body"], node["carries"]
    own = list(body.parameters[1:])
    within = extent(body) or 0
    block, iteration = index_node("block", 0, within // length), index_node("iteration", 0, length)
    inside = graph_over(
        [iteration, *own[:carries], block, *own[carries:]], _shifted(body, _at(block) * length + _at(iteration)), body
    )
    ends = make(LOOP, [constant(length), *own[:carries], block, *own[carries:]], body=inside, carries=carries)
    again = checkpoint(graph_over([block, *own], items(ends)), [block, *own])
    found = items(
        make(
            LOOP,
            [size_node(iterations // length), *operands],
            body=graph_over([block, *own], again, body),
            carries=carries,
        )
    )
    if iterations % length != 0:
        last = index_node("iteration", 0, within % length)
        rest = graph_over([last, *own], _shifted(body, _at(last) + within // length * length), body)
        found = items(
            make(LOOP, [size_node(iterations % length), *found, *operands[carries:]], body=rest, carries=carries)
        )
    return list(found)


def _at(index: Node) -> Size:
    size = as_size(index)
    assert size is not None  # noqa: S101 (an integer)
    return size


def _shifted(body: Graph, place: Size) -> list[Node]:
    """Return the results of a body at another index."""
    index = body.parameters[0]
    return site.substituted(body.results, {index: to_form(astype(size_node(place), index.type.dtype), index.type.form)})
