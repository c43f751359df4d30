"""Sums and products of tangents and cotangents, in which masked zeros stay zero, whatever they are multiplied by."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tensormagic.ir.node import Node
from tensormagic.ops.leaf import CONSTANT, constant
from tensormagic.ops.move import broadcast, reshape, slice_, transpose
from tensormagic.ops.op import Tangent


def total(terms: Sequence[Node]) -> Tangent:
    """Return the sum of tangents or cotangents, or None if there are none. Terms with a common mask are added under it."""
    result: Tangent = None
    for term in terms:
        result = term if result is None else _add_masked(result, term)
    return result


def _add_masked(left: Node, right: Node) -> Node:
    from tensormagic.ops.scalars.scalar import add, logical_or, where

    a, b = masked(left), masked(right)
    if a is None or b is None:
        return add(left, right)
    cond, x, zero_first = a
    if cond is b[0] and zero_first == b[2]:
        return _mask(where, cond, add(x, b[1]), zero_first)
    # Each part stays masked by its own condition; where neither holds, the sum is masked.
    return _mask(where, logical_or(_holds(a), _holds(b)), add(left, right), zero_first=False)


def _holds(mask: tuple[Node, Node, bool]) -> Node:
    """Return the mask of where a masked value is not zero."""
    from tensormagic.ops.scalars.scalar import logical_not

    return logical_not(mask[0]) if mask[2] else mask[0]


def _mask(where: Callable[..., Node], cond: Node, value: Node, zero_first: bool) -> Node:
    zero = broadcast(constant(value.type.dtype.type(0)), value.type.shape)
    return where(cond, zero, value) if zero_first else where(cond, value, zero)


def masked(node: Node) -> tuple[Node, Node, bool] | None:
    """Return ``(condition, value, zero_first)`` if ``node`` is masked with zeros by a condition, also below moves, or None."""
    if node.op.name == "where":
        for position, zero_first in ((2, False), (1, True)):
            zero = node.args[position]
            while zero.op.name == "broadcast":
                zero = zero.args[0]
            if zero.op is CONSTANT and not zero["bits"].array().any():
                return node.args[0], node.args[1 if position == 2 else 2], zero_first
        return None
    if node.op.name in _MOVES and (inner := masked(node.args[0])):
        move = _MOVES[node.op.name]
        return move(inner[0], node), move(inner[1], node), inner[2]
    return None


def masked_by(condition: Node, value: Node, *, zero_first: bool = False) -> Node:
    """Return ``value`` where a condition holds (or fails, with ``zero_first``), and zero elsewhere."""
    from tensormagic.ops.scalars.scalar import where

    return _mask(where, condition, value, zero_first)


_MOVES: dict[str, Callable[[Node, Node], Node]] = {
    "broadcast": lambda x, node: broadcast(x, node["shape"]),
    "reshape": lambda x, node: reshape(x, node["shape"]),
    "transpose": lambda x, node: transpose(x, node["permutation"]),
    "slice": lambda x, node: slice_(x, node["slices"]),
}


def multiply_by(partial: Node, tangent: Node) -> Node:
    """Return ``partial * tangent``; structural zeros of the tangent stay zero even if the partial is infinite."""
    from tensormagic.ops.reverse.cancelled import product
    from tensormagic.ops.reverse.support import scaled

    partial = broadcast(partial, tangent.type.shape) if partial.type.shape != tangent.type.shape else partial
    if (
        tangent.op is CONSTANT
        and partial.type == tangent.type
        and not tangent.type.shape
        and tangent["bits"].array() == 1
    ):
        return partial  # the case at the start of every gradient
    return scaled(product, partial, tangent)
