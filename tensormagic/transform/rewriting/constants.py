"""What is known at capture is computed at once, and what is the same for all elements is computed once."""

from __future__ import annotations

import math

import numpy as np

from tensormagic.ir.node import Node, make
from tensormagic.ir.type import evaluate
from tensormagic.ops.leaf import CONSTANT, constant
from tensormagic.ops.move import BROADCAST, Shape, broadcast, broadcast_shapes
from tensormagic.transform.rewriting.notation import exact

LIMIT = 1024
"""Arrays of more elements are not folded, unless an operand has as many."""

_PURE = {"pointwise", "fold", "move", "update", "contract"}


@exact(quiet=True)
def fold_constants(node: Node) -> Node | None:
    """``an op of constants -> its value``."""
    if not node.args or node.op is BROADCAST or any(a.op is not CONSTANT for a in node.args):
        return None
    if getattr(node.op, "kind", "") not in _PURE or len(node.types) != 1:
        return None
    sizes = [s for s in node.type.shape if isinstance(s, int)]
    most = max(LIMIT, *(a["bits"].array().size for a in node.args))
    if len(sizes) < node.type.ndim or math.prod(sizes) > most:
        return None
    try:
        with np.errstate(all="ignore"):
            values = [a.op.evaluate(a, (), int) for a in node.args]  # type: ignore[attr-defined]
            value = node.op.evaluate(node, values, lambda s: evaluate(s, _unknown))  # type: ignore[attr-defined]
    except (
        ValueError,
        ArithmeticError,
        LookupError,
    ):  # raised again when the graph runs, or of a size that is not known
        return None
    folded = constant(np.asarray(value), node.type.form)
    return folded if folded.type == node.type else None


def _unknown(atom: object) -> int:
    raise LookupError(atom)


@exact(quiet=True)
def through_broadcasts(node: Node) -> Node | None:
    """``f(broadcast(x), broadcast(y)) -> broadcast(f(x, y))``."""
    if getattr(node.op, "kind", "") != "pointwise" or any(a.op is not BROADCAST for a in node.args):
        return None
    inner = [a.args[0] for a in node.args]
    small = broadcast_shapes([x.type.shape for x in inner])
    if small == node.type.shape or not all(_stretches(x.type.shape, small) for x in inner):
        return None
    return broadcast(make(node.op, [broadcast(x, small) for x in inner], **node.params), node.type.shape)


def _stretches(source: Shape, target: Shape) -> bool:
    """Whether ``source`` is brought to ``target`` without assuming two sizes equal."""
    tail = target[len(target) - len(source) :]
    return all(s in (1, t) for s, t in zip(source, tail, strict=True))
