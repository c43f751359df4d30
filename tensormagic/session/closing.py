"""Closing a graph over requested nodes: it is cut at inputs and at known values, unless rules see more in the whole graph."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from tensormagic.ir.closing import Closed, close
from tensormagic.ir.node import Node
from tensormagic.ops.leaf import CONSTANT, INPUT, parameter
from tensormagic.session import kept, work
from tensormagic.session.programs import executable
from tensormagic.transform.values import Parts, absorbed, parted


def close_over(
    nodes: Sequence[Node], leaves: Sequence[Node] = (), guards: Any = (), *, use_values: bool = True
) -> Closed:
    """Return the graph of ``nodes``, cut at inputs and at known values, except where rules see more in the whole than in its parts.

    A constant stays a constant even if its value was computed, as equal constants are one node wherever they are
    used.
    """
    tables = kept.values.near() if use_values else []
    whole = set(nodes)  # the nodes at which the graph is not cut

    def is_leaf(n: Node) -> bool:
        if not n.args:
            return n.op is INPUT
        return n not in whole and len(n.types) == 1 and any(n in known for known in tables) and not _is_constant(n)

    while True:
        with work.working("building the graph"):
            closed = close(nodes, is_leaf, parameter, leaves, guards, alone=bool(leaves))
        if not use_values:
            return closed
        kept.values.adopt(closed.leaves)
        more = parted(nodes, closed.leaves, partial(absorbed_in, closed), kept.values.table())
        if not more:
            return closed
        whole |= more


def _is_constant(n: Node) -> bool:
    """Return whether a node is a constant, or moves the elements of one."""
    while n.op.kind == "move" and len(n.needs) == 1:
        n = n.needs[0]
    return n.op is CONSTANT


def absorbed_in(closed: Closed) -> Parts:
    """Return the nodes whose rounding rules absorb in a graph."""
    return absorbed(closed, executable(closed.graph).rewritten)
