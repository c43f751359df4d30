"""Computes functions of the loop index and of constants before the loop, as one array.

``s = 0.5 * s + exp(x[k])`` computes an exponential at each iteration, one after the other; before the loop a
processor computes several at once. Cheap functions stay, and so do those for which the loop reads no array of that
length: it would need more memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tensormagic.ir.cost import weight
from tensormagic.ir.errors import TensorError
from tensormagic.ir.graph import Graph, following
from tensormagic.ir.node import Node, as_size, make, topological, users
from tensormagic.ir.site import inherit, substituted
from tensormagic.ir.size import atoms, is_at_least, nodes_of
from tensormagic.ir.type import Type
from tensormagic.ops.leaf import size_of
from tensormagic.ops.move import reshape, slice_
from tensormagic.ops.opaque import items
from tensormagic.ops.regions.loops import LOOP, unindexed
from tensormagic.ops.regions.region import graph_over, matched, stand_in
from tensormagic.transform.loops.iterations import Iterations
from tensormagic.transform.loops.stacks import loops_of

_FUNCTION = 20
"""The weight of functions that are several times as fast when many elements are computed together."""


def hoisted(results: Sequence[Node]) -> dict[Node, Node]:
    """Return replacements for the results of loops that compute functions of numbers which do not depend on their carries."""
    goals: dict[Node, Node] = {}
    for loop in loops_of(results):
        iterations = size_of(loop.args[0])
        if iterations is None or nodes_of(iterations) or not is_at_least(iterations, 1) or loop["body"].checked:
            continue
        try:
            stacks = Iterations(loop, iterations)
            found = {
                n: stack for n in _functions(loop) if stacks.is_there(n) and (stack := stacks.stack(n)) is not None
            }
            goals |= _reading(loop, found)
        except TensorError:
            continue
    return goals


def _functions(loop: Node) -> list[Node]:
    """Return numbers that depend on the index and on constants alone and cost as much as a function call, as late as possible."""
    body: Graph = loop["body"]
    index, *own = body.parameters
    carried = following(body, own[: loop["carries"]])
    moving = following(body, [index]) - carried - {index}
    readers = users(body.nodes)

    def inside(node: Node) -> bool:
        return node in moving and node.op.kind == "pointwise" and not node.type.shape

    ends = [n for n in body.nodes if inside(n) and not all(map(inside, readers.get(n, [])))]
    return [n for n in ends if any(inside(m) and weight(m) >= _FUNCTION for m in topological([n]))]


def _reading(loop: Node, stacks: dict[Node, Node]) -> dict[Node, Node]:
    """Return replacements for the results of a loop by those of one that reads the values computed before it."""
    body: Graph = loop["body"]
    index, *own = body.parameters
    sizes, _ = matched(unindexed(body, 1), loop.args[1:], "loop")
    length = (index.params.get("within") or (None, None))[1]
    if not stacks or length is None or any(a not in sizes for a in atoms(length)):
        return {}
    at: Any = as_size(index)
    reads: dict[Node, Node] = {}
    for n in stacks:
        own.append(stand_in("stack", Type(n.type.dtype, (length,))))
        reads[n] = reshape(slice_(own[-1], ((at, 1, 1),)), ())
        inherit(reads[n], n)
    inner = graph_over([index, *own], substituted(body.results, reads), body)
    new = make(LOOP, [*loop.args, *stacks.values()], body=inner, carries=loop["carries"])
    return dict(zip(items(loop), items(new), strict=True))
