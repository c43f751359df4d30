"""Apply element-wise functions below a reshape instead of above it, as elements keep their order.

``np.ravel(x.T) * np.ravel(w)`` stores the transposed array and reads it again, as a reshape has no index by which
loops could read its operand. The function is applied to the operand instead, in the same loops, and the reshape of
the result is a view. An array reshaped back needs no reshape at all.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tensormagic.ir.node import Node, make, topological, users
from tensormagic.ir.site import substituted
from tensormagic.ir.size import Size
from tensormagic.ops.move import BROADCAST, RESHAPE, TRANSPOSE, broadcast, reshape, squeezes
from tensormagic.ops.move_kind import Move
from tensormagic.ops.pointwise import Pointwise


def before_reshape(node: Node) -> Node | None:
    """Return a function of reshaped arrays as the reshape of a function of the arrays, or None if nothing is gained."""
    if not isinstance(node.op, Pointwise) or not node.type.shape or len(node.types) != 1:
        return None
    below = [a.args[0] for a in node.args if a.op is RESHAPE and not squeezes(a)]
    if not any(map(_is_written_out, below)) or len({_long(b) for b in below}) != 1:
        return None
    shape = _long(below[0])
    args: list[Node] = []
    for a in node.args:
        if a.op is RESHAPE and a.type.shape == node.type.shape and not squeezes(a):
            args.append(reshape(a.args[0], shape))
        elif not a.type.shape:
            args.append(a)
        elif a.op is BROADCAST and not a.args[0].type.shape:
            args.append(broadcast(a.args[0], shape))
        else:
            return None
    found = make(node.op, args, **node.params)
    return reshape(found, node.type.shape) if found.type.shape == shape else None


def without_round_trips(results: Sequence[Node]) -> list[Node]:
    """Return ``results`` with functions applied directly to arrays instead of between a reshape and its inverse.

    A mask over a 2-d array selects from the flat array, so ``z[m] = z[m]**2`` is a ``where`` of flat arrays.
    """
    nodes = topological(results)
    ends = [n for n in nodes if n.op is RESHAPE and isinstance(n.args[0].op, Pointwise) and not squeezes(n)]
    if not ends:
        return list(results)
    reads, shown = users(nodes), frozenset(results)
    goals = {n: _back(n, lambda a: len(reads[a]) == 1 and a not in shown) for n in ends}
    found = {old: new for old, new in goals.items() if new is not None}
    return substituted(results, found) if found else list(results)


def _back(node: Node, alone: Callable[[Node], bool]) -> Node | None:
    """Return a reshape of element-wise functions as these functions of arrays in its shape, or None if that cancels no reshape."""
    top, shape, undone = node.args[0], node.type.shape, False
    made: dict[Node, Node] = {}
    for n in topological([top], stop=lambda n: n.type.shape != top.type.shape or not isinstance(n.op, Pointwise)):
        if n.type.shape != top.type.shape:
            made[n] = n
        elif n.op is RESHAPE and n.args[0].type.shape == shape:
            made[n], undone = n.args[0], True
        elif n.op is BROADCAST and not n.args[0].type.shape:
            made[n] = broadcast(n.args[0], shape)
        elif isinstance(n.op, Pointwise) and alone(n):
            made[n] = make(n.op, [made[a] for a in n.args], **n.params)
        elif isinstance(n.op, Pointwise | Move):
            return None  # it would be computed twice, or written out
        else:
            made[n] = reshape(n, shape)
    return made[top] if undone else None


def _long(node: Node) -> tuple[Size, ...]:
    """Return a shape without axes of extent 1."""
    return tuple([s for s in node.type.shape if s != 1])


def _is_written_out(node: Node) -> bool:
    """Return whether an array must be computed for a reshape of it."""
    return node.op is TRANSPOSE or node.op is BROADCAST or isinstance(node.op, Pointwise)
