"""The identity that derivatives do not pass."""

from __future__ import annotations

from tensormagic.ir.node import Node, make
from tensormagic.ops.scalar import leaf

STOP = leaf(
    "stop_gradient",
    lambda x: x.copy() if hasattr(x, "copy") else x,
    dtypes=lambda operands: (tuple(operands), operands[0]),
    source=dict.fromkeys("fiubc", "{0}"),
    step=True,
    doc="The number itself, which derivatives take for a constant.",
)


def stop(x: Node) -> Node:
    """``x``, constant for derivatives."""
    return make(STOP, (x,)) if x.type.inexact else x
