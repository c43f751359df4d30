"""Which side of a choice a number is read on: of two values on different sides of one condition, each element reads only one.

In ``where(c, f(x), 0) + where(c, 0, g(x))`` no element sees the roundings of both. Knows ops by their facts alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from tensormagic.ir.node import Node

_FAR = 8
"""How many levels of readers are searched."""
_MOST = 3
"""How many readers a number may have."""

Sides = frozenset[tuple[Node, int]]
"""Conditions, with the operand that a choice by them reads: 1 where they hold, 2 where they do not."""
_NONE: Sides = frozenset()


def is_choice(node: Node) -> bool:
    """Return whether a node picks each element from one of two operands by a condition."""
    return node.op.picks and len(node.args) == 3 and node.args[0].type.dtype.kind == "b"


def sides_of(
    node: Node,
    users: Mapping[Node, Sequence[Node]],
    is_shown: Callable[[Node], bool],
    depth: int = _FAR,
) -> Sides:
    """Return the branches of choices outside of which no element of ``node`` is read.

    Parameters
    ----------
    node
        A number.
    users, is_shown
        What reads nodes, and which of them are results.
    depth
        How many levels are looked at.
    """
    readers = users.get(node, ())
    if not depth or not readers or len(readers) > _MOST or is_shown(node):
        return _NONE
    found: Sides | None = None
    for reader in readers:
        own = read_by(reader, node, users, is_shown, depth)
        found = own if found is None else found & own
        if not found:
            return _NONE
    return found or _NONE


def read_by(
    reader: Node,
    node: Node,
    users: Mapping[Node, Sequence[Node]],
    is_shown: Callable[[Node], bool],
    depth: int = _FAR,
) -> Sides:
    """Return the branches outside of which ``reader`` passes on no element of ``node``: its own, and those of its readers."""
    if reader.op.kind != "pointwise" and not reader.op.hands_on:
        return _NONE
    above = sides_of(reader, users, is_shown, depth - 1)
    if is_choice(reader) and reader.args.count(node) == 1 and (k := reader.args.index(node)):
        return above | {(reader.args[0], k)}
    return above


def exclude(one: Sides, other: Sides) -> bool:
    """Return whether no element is read on both of two sets of branches."""
    return any((condition, 3 - k) in other for condition, k in one)
