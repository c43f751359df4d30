"""Computes on all elements what code computes on the elements that a mask selects: stored or summed by the same mask, it is a choice."""

from __future__ import annotations

from collections.abc import Callable

from tensormagic.ir import site
from tensormagic.ir.node import Node, make
from tensormagic.ir.size import Size
from tensormagic.ops.indices.gather import GATHER
from tensormagic.ops.indices.selection import PLACES
from tensormagic.ops.move import BROADCAST, RESHAPE, broadcast
from tensormagic.ops.pointwise import Pointwise

_LIMIT = 200  # nodes that are searched


def unselected(value: Node, places: Node, axis: int, size: Size) -> Node | None:
    """Return ``value``, whose ``axis`` runs along ``places``, extended to all ``size`` elements, or None.

    None unless it is made of selections by the same places, of numbers, and of element-wise functions.
    """
    found: dict[Node, Node | None] = {}
    order = _of_elements(value)
    if order is None:
        return None
    rank = value.type.ndim
    counts = {n.args[1].type.shape[0] for n in order if n.op is GATHER and _same_places(n.args[1], places)}
    counts.add(places.type.shape[0])
    for node in order:
        stretched = node.op is BROADCAST and not _renames(node) and node.type.ndim >= rank - axis
        if stretched and node.type.shape[axis - rank] not in {1, *counts}:
            return (
                None  # the broadcast is to a size written otherwise than the number of places, which a store compares
            )
        found[node] = of_all(node, found.get, places, axis - rank, size)
        if found[node] is None:
            return None
    return found[value]


def _of_elements(value: Node) -> list[Node] | None:
    """Return the nodes between ``value`` and the selections, operands first, or None if there are too many."""
    order: list[Node] = []
    seen: set[Node] = set()
    pending = [(value, False)]
    while pending:
        node, done = pending.pop()
        if done:
            order.append(node)
        elif node not in seen:
            seen.add(node)
            pending.append((node, True))
            if isinstance(node.op, Pointwise) or _renames(node):
                pending += [(a, False) for a in node.args]
            if len(seen) > _LIMIT:
                return None
    return order


def of_all(node: Node, known: Callable[[Node], Node | None], places: Node, axis: int, size: Size) -> Node | None:
    """Return one node over selected elements as one over all elements, or None if it is not element-wise, or may raise.

    Parameters
    ----------
    node
        The node.
    known
        Gives its operands for all elements.
    places, axis, size
        The places, the axis that runs along them, counted from the last, and the number of all elements.
    """
    shape = node.type.shape
    if len(shape) < -axis or shape[axis] == 1:
        return node  # the same for every element
    wide = (*shape[: len(shape) + axis], size, *shape[len(shape) + axis + 1 :])
    if node.op is GATHER and _same_places(node.args[1], places) and node["axis"] == len(shape) + axis:
        source = node.args[0]
        return source if source.type.shape == wide else broadcast(source, wide)
    if _renames(node):
        inner = known(node.args[0])
        return None if inner is None else broadcast(inner, wide)
    if node.op is BROADCAST and (len(node.args[0].type.shape) < -axis or node.args[0].type.shape[axis] == 1):
        return broadcast(node.args[0], wide)
    if not isinstance(node.op, Pointwise) or node.op.may_raise(node):
        return None
    args = [known(a) for a in node.args]
    nodes = [a for a in args if a is not None]
    if len(nodes) < len(args):
        return None
    whole = make(node.op, nodes, **node.params)
    site.inherit(whole, node, site.OF_ALL)
    return whole


def _same_places(left: Node, right: Node) -> bool:
    """Return whether two selections use one mask; its extents may differ in how they are written."""
    return left is right or (left.op is PLACES and right.op is PLACES and _mask_of(left) is _mask_of(right))


def _mask_of(places: Node) -> Node:
    mask = places.args[0]
    while mask.op is RESHAPE or _renames(mask):
        mask = mask.args[0]
    return mask


def _renames(node: Node) -> bool:
    """Return whether a broadcast only states that sizes are equal that are written differently."""
    if node.op is not BROADCAST or node.args[0].type.ndim != node.type.ndim:
        return False
    return all(s != 1 or t == 1 for s, t in zip(node.args[0].type.shape, node.type.shape, strict=True))
