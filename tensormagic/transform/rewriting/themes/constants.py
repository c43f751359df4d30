"""What is known at capture is computed at once, and what is the same for all elements is computed once."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

from tensormagic.ir.node import Node, make
from tensormagic.ir.size import Size, is_at_least
from tensormagic.ir.type import evaluate
from tensormagic.ops.leaf import CONSTANT, IOTA, SIZE, constant, size_of
from tensormagic.ops.move import BROADCAST, broadcast
from tensormagic.ops.move_kind import Shape, broadcast_shapes
from tensormagic.transform.rewriting.notation import exact

LIMIT = 1024
"""Arrays of more elements are not folded, unless an operand has as many."""

_PURE = {"pointwise", "fold", "move", "update", "contract"}


@exact(heads="constant", quiet=True)
def fold_constants(node: Node) -> Node | None:
    """``an op of constants -> its value``."""
    if not node.args or node.op is BROADCAST or any(a.op is not CONSTANT for a in node.args):
        return None
    pure = node.op.kind in _PURE or node.op.name in LIBRARY
    if not pure or len(node.types) != 1:
        return None
    sizes = [s for s in node.type.shape if isinstance(s, int)]
    most = max(LIMIT, *(a["bits"].array().size for a in node.args))
    if len(sizes) < node.type.ndim or math.prod(sizes) > most:
        return None
    try:
        with np.errstate(all="raise", under="ignore"):  # NumPy's warnings must appear when the graph runs
            values = [a.op.evaluate(a, (), int) for a in node.args]
            value = node.op.evaluate(node, values, lambda s: evaluate(s, _unknown))
    except (
        ValueError,  # LinAlgError included
        ArithmeticError,
        LookupError,
    ):  # raised again when the graph runs; or a size is not known
        return None
    folded = constant(np.asarray(value), node.type.form)
    return folded if folded.type == node.type else None


@exact(roots="constant", kinds="b", quiet=True)
def equal_truth_values(node: Node) -> Node | None:
    """``np.array([True, True]) -> one True for all elements``."""
    if node.op is not CONSTANT or node.type.dtype.kind != "b" or not node.type.shape:
        return None
    value = node["bits"].array()
    if not 0 < value.size <= LIMIT or value.min() != value.max():
        return None
    return broadcast(constant(np.bool_(value.flat[0])), node.type.shape)


LIBRARY = frozenset(
    ("sort", "argsort", "searchsorted", "det", "inv", "slogdet", "solve", "cholesky", "svdvals", "eigvalsh", "gather")
)
"""Library functions that depend on their operands alone, and are computed at once for known operands."""


def are_rounded(nodes: Iterable[Node]) -> bool:
    """Return whether a node computes a float from constants alone: accurate forms must be found before it is folded."""
    return any(_is_rounded(n) for n in nodes if n.op.kind in _PURE)


def _is_rounded(node: Node) -> bool:
    if node.op is BROADCAST or len(node.types) != 1 or node.type.dtype.kind not in "fc":
        return False
    return bool(node.args) and all((a.args[0] if a.op is BROADCAST else a).op is CONSTANT for a in node.args)


def _unknown(atom: object) -> int:
    raise LookupError(atom)


@exact(heads="broadcast", quiet=True)
def through_broadcasts(node: Node) -> Node | None:
    """``f(broadcast(x), broadcast(y)) -> broadcast(f(x, y))``."""
    if node.op.kind != "pointwise" or any(a.op is not BROADCAST for a in node.args):
        return None
    inner = [a.args[0] for a in node.args]
    small = broadcast_shapes([x.type.shape for x in inner])
    if small == node.type.shape or not all(_stretches(x.type.shape, small) for x in inner):
        return None
    return broadcast(make(node.op, [broadcast(x, small) for x in inner], **node.params), node.type.shape)


def _stretches(source: Shape, target: Shape) -> bool:
    """Return whether ``source`` broadcasts to ``target`` without assuming that two sizes are equal."""
    tail = target[len(target) - len(source) :]
    return all(s in (1, t) for s, t in zip(source, tail, strict=True))


# sizes ----------------------------------------------------------------------------------------------------------------

Ends = tuple[Size, Size]


def ends(node: Node, depth: int = 6) -> Ends | None:
    """Return inclusive bounds of integers as sizes, or None if they are not known."""
    if depth == 0 or node.type.dtype.kind != "i" or node.type.dtype.itemsize < 8:
        return None
    if node.op is CONSTANT:
        value = node["bits"].array()
        return (int(value.min()), int(value.max())) if value.size else None
    if node.op is IOTA:
        return 0, node.type.shape[node["axis"]] - 1
    if node.op.name in {"broadcast", "reshape", "transpose", "slice", "astype", "form"}:
        return ends(node.args[0], depth - 1)
    size = size_of(node) if node.op is SIZE else None
    if size is not None:
        return size, size
    inner = [ends(a, depth - 1) for a in node.args] if node.op.name in {"negative", "add", "subtract"} else [None]
    if None in inner:
        return None
    known: list[Ends] = inner  # type: ignore[assignment]
    if node.op.name == "negative":
        return -known[0][1], -known[0][0]
    (low, high), (first, last) = known
    return (low + first, high + last) if node.op.name == "add" else (low - last, high - first)


@exact(roots="less less_equal greater greater_equal", kinds="biuf", quiet=True)
def comparisons_of_sizes(node: Node) -> Node | None:
    """``x.shape[0] < 0 -> False, and for all comparisons that the ends of sizes and of indices decide``."""
    left, right = (ends(a) for a in node.args)
    if left is None or right is None:
        return None
    if node.op.name.startswith("greater"):
        left, right = right, left
    strict = int(not node.op.name.endswith("equal"))
    if is_at_least(right[0] - left[1], strict):
        return broadcast(constant(np.bool_(True)), node.type.shape)
    if is_at_least(left[0] - right[1], 1 - strict):
        return broadcast(constant(np.bool_(False)), node.type.shape)
    return None


@exact(roots="maximum minimum", kinds="i", quiet=True)
def extremes_of_sizes(node: Node) -> Node | None:
    """``maximum(x.shape[0], 0) -> x.shape[0], and for minimum``."""
    first, second = node.args
    left, right = ends(first), ends(second)
    if left is None or right is None:
        return None
    above = is_at_least(left[0] - right[1], 0)
    if not above and not is_at_least(right[0] - left[1], 0):
        return None
    return first if above == (node.op.name == "maximum") else second
