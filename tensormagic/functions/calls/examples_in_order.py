"""Examples run one after the other, for a function that draws from a generator which all examples share, in NumPy's order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tensormagic.capture.staging.regions import around, graph_of, zeros_of
from tensormagic.capture.stores.place import Buffer
from tensormagic.ir.node import Node, substitute
from tensormagic.ir.size import Size
from tensormagic.ir.type import Type
from tensormagic.ops.leaf import Source, index_node, input_node, size_node
from tensormagic.ops.move import reshape, slice_
from tensormagic.ops.regions import control
from tensormagic.ops.update import place_in, set_at


def one_by_one(
    results: Sequence[Node], stacks: Mapping[Node, Node], size: Size, drawn: Mapping[Buffer, Node]
) -> list[Node]:
    """Return batches of ``results``, computed by a loop over the examples that carries the states of generators.

    Parameters
    ----------
    results
        The requested nodes, for one example.
    stacks
        The batch for each stand-in of one example.
    size
        The number of examples.
    drawn
        The buffers of the states, with their values before the first example; they are left as after the last one.
    """
    index = index_node("index", 0, size)
    states = [input_node(Source("state"), node.type) for node in drawn.values()]
    given = [input_node(Source("stack"), stack.type) for stack in stacks.values()]
    known = dict(zip(drawn.values(), states, strict=True))
    known |= {example: _taken(g, index) for example, g in zip(stacks, given, strict=True)}
    ends = substitute([*(b.node for b in drawn), *results], known)
    count = len(states)
    starts = [zeros_of(Type(r.type.dtype, (size, *r.type.shape))) for r in ends[count:]]
    filled = [input_node(Source("results"), s.type) for s in starts]
    ends[count:] = [
        set_at(stack, reshape(r, (1, *r.type.shape)), place_in(stack, index))
        for stack, r in zip(filled, ends[count:], strict=True)
    ]
    own = [index, *states, *filled, *given]
    free = around(ends, own)
    body = graph_of(ends, [*own, *free])
    found = control.loop(size_node(size), body, [*drawn.values(), *starts], [*stacks.values(), *free])
    for buffer, state in zip(drawn, found[:count], strict=True):
        buffer.put(state)
    return list(found[count:])


def _taken(stack: Node, index: Node) -> Node:
    return reshape(slice_(stack, place_in(stack, index)), stack.type.shape[1:])
