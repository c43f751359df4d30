"""Evaluate polynomials by Horner's rule with fused multiply-adds, where the machine has them.

It takes half the instructions, and is no less accurate. A short sum such as ``3 * x - 1`` is left alone: with its
product rounded, it may be exactly 0, which users notice. After a few steps the sum is no such number any more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import numpy as np

from tensormagic.backend.planning.fusion import may_round
from tensormagic.ir.node import Node, topological, users
from tensormagic.ops.leaf import CONSTANT
from tensormagic.ops.move import BROADCAST
from tensormagic.ops.scalars.scalar import add, multiply

_FIRST = 3  # the step of a polynomial from which on sums are fused
_DTYPES = {np.dtype(np.float32), np.dtype(np.float64)}


def steps_rounded_once(
    roots: Iterable[Node],
    stored: Callable[[Node], bool],
    carries: Mapping[Node, Node],
    index: Node | None,
) -> dict[Node, tuple[Node, Node]]:
    """Return the sums that can be computed by one fused multiply-add, each with its product and its constant.

    Parameters
    ----------
    roots
        What a loop over elements computes.
    stored
        Whether a node has an array of its own, where it is read.
    carries, index
        For an iteration of an inner loop: its carries, by their next values, and its index.
    """
    if not may_round():
        return {}
    own = set(roots)
    nodes = topological(list(own), stop=lambda n: stored(n) and n not in own)
    used, changing = users(nodes), _depending(nodes, {index, *carries.values()})
    steps: dict[Node, int] = {}
    found: dict[Node, tuple[Node, Node]] = {}
    for node in nodes:
        parts = _parts(node) if node.op is add and node.type.dtype in _DTYPES else None
        if parts is None or stored(parts[0]) or used[parts[0]] != [node]:
            continue
        product, number = parts
        steps[node] = 1 + max(steps.get(a, 0) for a in product.args)
        # an iteration that adds a value of its own is a step of a polynomial, else one of a recurrence
        factors = [a for a in product.args if a is not carries.get(node)]
        repeats = len(factors) == 1 and factors[0] not in changing and number in changing
        if steps[node] >= _FIRST or repeats:
            found[node] = parts
    return found


def _depending(nodes: Iterable[Node], on: set[Node | None]) -> set[Node | None]:
    """Return the nodes that depend on any of the nodes ``on``, with these."""
    found = set(on)
    for node in nodes:
        if any(n in found for n in node.needs):
            found.add(node)
    return found


def _parts(node: Node) -> tuple[Node, Node] | None:
    """Return a product and the number added to it, or None for other sums."""
    left, right = node.args
    for product, number in ((left, right), (right, left)):
        if product.op is multiply and product.type.dtype == node.type.dtype and _is_number(number):
            return product, number
    return None


def _is_number(node: Node) -> bool:
    """Return whether a node is the same number for all elements."""
    return node.op is CONSTANT or (node.op is BROADCAST and all(s == 1 for s in node.args[0].type.shape))
