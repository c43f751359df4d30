"""Bounds of a node's numbers, known without computing them; nan is always possible."""

from __future__ import annotations

from tensormagic.backend.planning.kinds import stripped
from tensormagic.ir.node import Node
from tensormagic.ops.leaf import constant_value
from tensormagic.ops.scalars.comparison import maximum, minimum
from tensormagic.ops.scalars.scalar import exp, exp2, multiply, negative


def is_at_most_zero(node: Node) -> bool:
    """Return whether no element is above 0."""
    node = stripped(node)
    if node.op is negative:
        return is_at_least_zero(node.args[0])
    if node.op is minimum:
        return any(map(is_at_most_zero, node.args))
    value = constant_value(node)
    return value is not None and node.type.dtype.kind in "iuf" and bool((value <= 0).all())


def is_at_least_zero(node: Node) -> bool:
    """Return whether no element is below 0."""
    node = stripped(node)
    if node.op.not_negative:
        return True
    if node.op is maximum:
        return any(map(is_at_least_zero, node.args))
    if node.op is multiply:
        return node.args[0] is node.args[1]
    value = constant_value(node)
    return value is not None and node.type.dtype.kind in "iuf" and bool((value >= 0).all())


def is_of_unit(node: Node) -> bool:
    """Return whether every element is between 0 and 1."""
    node = stripped(node)
    return node.op in {exp, exp2} and is_at_most_zero(node.args[0])
