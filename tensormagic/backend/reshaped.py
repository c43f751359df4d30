"""Functions of elements before the reshape of what they are taken of, where that has to be computed anyway.

``np.ravel(x.T) * np.ravel(w)`` writes the transposed array out, reads it again, and so for each operand that is no array yet: a
reshape has no index by which loops could read what is below it. Its elements keep their order, so the function can be taken of what is
below, which is written into the same loops; the reshape of the result is a view.
"""

from __future__ import annotations

from tensormagic.ir.node import Node, make
from tensormagic.ir.size import Size
from tensormagic.ops.move import BROADCAST, RESHAPE, TRANSPOSE, broadcast, reshape, squeezes
from tensormagic.ops.pointwise import Pointwise


def before_reshape(node: Node) -> Node | None:
    """A function of reshaped arrays as the reshape of one of the arrays; None where nothing is gained."""
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


def _long(node: Node) -> tuple[Size, ...]:
    """The shape of an array without axes of extent 1."""
    return tuple([s for s in node.type.shape if s != 1])


def _is_written_out(node: Node) -> bool:
    """Whether an array has to be computed for a reshape of it to be one."""
    return node.op is TRANSPOSE or node.op is BROADCAST or isinstance(node.op, Pointwise)
