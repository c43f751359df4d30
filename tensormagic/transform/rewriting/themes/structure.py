"""Rules of moves, updates and casts: chains become one, and what is stored is read back without the store."""

from __future__ import annotations

import numpy as np

from tensormagic.ir.node import Node
from tensormagic.ir.type import Size, lower_bound
from tensormagic.ops.leaf import CONSTANT, constant
from tensormagic.ops.move import (
    BROADCAST,
    CONCATENATE,
    RESHAPE,
    SLICE,
    TRANSPOSE,
    Slices,
    broadcast,
    concatenate,
    reshape,
    slice_,
    transpose,
)
from tensormagic.ops.pointwise import ASTYPE, astype
from tensormagic.ops.update import ADD_AT, SET, add_at, set_at, zeros_like
from tensormagic.transform.rewriting.notation import exact, stable


@exact(roots="transpose", heads="transpose")
def transposes(node: Node) -> Node | None:
    """``transpose(transpose(x)) -> transpose(x)``."""
    inner = node.args[0]
    if inner.op is not TRANSPOSE:
        return None
    return transpose(inner.args[0], tuple(inner["permutation"][k] for k in node["permutation"]))


@exact(roots="reshape", heads="reshape")
def reshapes(node: Node) -> Node | None:
    """``reshape(reshape(x)) -> reshape(x)``."""
    inner = node.args[0]
    return reshape(inner.args[0], node["shape"]) if inner.op is RESHAPE else None


@exact(roots="broadcast", quiet=True)
def broadcasts(node: Node) -> Node | None:
    """``broadcast(broadcast(x)) -> broadcast(x), and a reshape that only prepends axes goes too``."""
    inner = node.args[0]
    if inner.op is BROADCAST:
        return broadcast(inner.args[0], node["shape"])
    if inner.op is RESHAPE:
        source, target = inner.args[0].type.shape, inner.type.shape
        extra = len(target) - len(source)
        if extra > 0 and target == (1,) * extra + source:
            return broadcast(inner.args[0], node["shape"])
    if inner.op is CONSTANT and inner["bits"].array().size == 1 and inner.type.form != "scalar":
        return broadcast(constant(inner["bits"].array().reshape(())[()]), node["shape"])
    return None


@exact(roots="reshape transpose slice", heads="broadcast", quiet=True)
def moves_of_equals(node: Node) -> Node | None:
    """``reshape(broadcast(s)) -> broadcast(s) where s is one number, and for transpose and slice``."""
    inner = node.args[0]
    if inner.op is not BROADCAST or inner.args[0].type.shape:
        return None
    return broadcast(inner.args[0], node.type.shape) if node.type.shape else inner.args[0]


@exact(roots="slice", heads="slice")
def slices_of_slices(node: Node) -> Node | None:
    """``x[a:][b:] -> x[a + b:]``."""
    inner = node.args[0]
    if inner.op is not SLICE:
        return None
    pairs = zip(inner["slices"], node["slices"], strict=True)
    return slice_(
        inner.args[0], tuple((a + start * step, length, step * by) for (a, _, step), (start, length, by) in pairs)
    )


@exact(roots="slice", heads="concatenate")
def slices_of_parts(node: Node) -> Node | None:
    """``concatenate([x, y])[part of y] -> y[part]``."""
    inner = node.args[0]
    if inner.op is not CONCATENATE:
        return None
    axis = inner["axis"]
    low, high = _ends(node["slices"][axis])
    offset: Size = 0
    for part in inner.args:
        extent = part.type.shape[axis]
        if _sure(low - offset) and _sure(offset + extent - 1 - high):
            moved = tuple(
                (s - offset, n, by) if k == axis else (s, n, by) for k, (s, n, by) in enumerate(node["slices"])
            )
            return slice_(part, moved)
        offset = offset + extent
    return None


@exact(roots="concatenate", heads="slice")
def joined_slices(node: Node) -> Node | None:
    """``concatenate([x[:n], x[n:]]) -> x``."""
    axis, first = node["axis"], node.args[0]
    if any(a.op is not SLICE or a.args[0] is not first.args[0] for a in node.args):
        return None
    start, total, step = first["slices"][axis]
    for part in node.args[1:]:
        here, length, by = part["slices"][axis]
        if (
            by != step
            or here != start + total * step
            or _others(part["slices"], axis) != _others(first["slices"], axis)
        ):
            return None
        total = total + length
    return slice_(first.args[0], tuple((start, total, step) if k == axis else s for k, s in enumerate(first["slices"])))


@exact(roots="concatenate", heads="concatenate")
def concatenates(node: Node) -> Node | None:
    """``concatenate([concatenate([x, y]), z]) -> concatenate([x, y, z])``."""
    if not any(a.op is CONCATENATE and a["axis"] == node["axis"] for a in node.args) or len(node.args) > _WIDEST:
        return None
    parts: list[Node] = []
    for a in node.args:
        parts += a.args if a.op is CONCATENATE and a["axis"] == node["axis"] else (a,)
    return concatenate(parts, node["axis"])


_WIDEST = 8
"""More operands are not joined: unlimited flattening would copy parts that chains share."""


def _others(slices: Slices, axis: int) -> Slices:
    return tuple(s for k, s in enumerate(slices) if k != axis)


def _sure(size: Size) -> bool:
    """Return whether ``size`` is surely not negative."""
    bound = lower_bound(size)
    return bound is not None and bound >= 0


def _ends(part: tuple[Size, Size, int]) -> tuple[Size, Size]:
    """Return the least and the greatest index of a slice."""
    start, length, step = part
    last = start + (length - 1) * step
    return (start, last) if step > 0 else (last, start)


def _apart(left: Slices, right: Slices) -> bool:
    """Return whether two slices are known to be disjoint."""
    for a, b in zip(left, right, strict=True):
        (low, high), (start, stop) = _ends(a), _ends(b)
        if _sure(start - high - 1) or _sure(low - stop - 1):
            return True
    return False


# updates --------------------------------------------------------------------------------------------------------------


@exact(roots="slice", heads="set")
def read_of_store(node: Node) -> Node | None:
    """``x with x[i] = v, read at i -> v; read where nothing was stored -> x``."""
    inner = node.args[0]
    if inner.op is not SET:
        return None
    if inner["slices"] == node["slices"]:
        return inner.args[1]
    return slice_(inner.args[0], node["slices"]) if _apart(inner["slices"], node["slices"]) else None


@exact(roots="slice", heads="add_at")
def read_beside_sum(node: Node) -> Node | None:
    """``x with x[i] += v, read where nothing was added -> x``."""
    inner = node.args[0]
    if inner.op is not ADD_AT or not _apart(inner["slices"], node["slices"]):
        return None
    return slice_(inner.args[0], node["slices"])


@exact(roots="set")
def stores(node: Node) -> Node | None:
    """``x[i] = v and then x[i] = w -> x[i] = w; x[:] = v -> v``."""
    x, value = node.args
    if node["slices"] == tuple((0, s, 1) for s in x.type.shape):
        return value
    if x.op in {SET, ADD_AT} and x["slices"] == node["slices"]:
        return set_at(x.args[0], value, node["slices"])
    return None


def _is_zero(node: Node) -> bool:
    return node is zeros_like(node)


@stable(roots="add_at", neutral=True)
def sums_with_zeros(node: Node) -> Node | None:
    """``zeros with zeros[:] += v -> v; x with x[i] += 0 -> x``."""
    x, value = node.args
    if _is_zero(value):
        return x
    return value if _is_zero(x) and node["slices"] == tuple((0, s, 1) for s in x.type.shape) else None


@stable(roots="slice", heads="add_at", neutral=True)
def read_of_sum_with_zeros(node: Node) -> Node | None:
    """``zeros with zeros[i] += v, read at i -> v``."""
    inner = node.args[0]
    if inner.op is not ADD_AT or inner["slices"] != node["slices"] or not _is_zero(inner.args[0]):
        return None
    return inner.args[1]


@stable(roots="add", neutral=True)
def sums_of_sparse(node: Node) -> Node | None:
    """``x + (zeros with zeros[i] += v) -> x with x[i] += v, and for = in place of +=``."""
    for x, sparse in (node.args, node.args[::-1]):
        if sparse.op in {ADD_AT, SET} and _is_zero(sparse.args[0]) and x.type == sparse.type == node.type:
            return add_at(x, sparse.args[1], sparse["slices"])
    return None


# casts ----------------------------------------------------------------------------------------------------------------

_DIGITS = {"float16": 11, "float32": 24, "float64": 53}


def keeps_values(before: np.dtype[np.generic], after: np.dtype[np.generic]) -> bool:
    """Return whether every value of ``before`` is representable in ``after``."""
    if before == after:
        return True
    if before.kind in "iu" and after.kind == "f":
        return before.itemsize * 8 <= _DIGITS.get(after.name, 0)
    return before.kind in "biuf" and after.kind in "biuf" and np.can_cast(before, after, "safe")


@exact(roots="astype", heads="astype")
def casts(node: Node) -> Node | None:
    """``astype(astype(x)) -> astype(x) where the first cast keeps all values``."""
    inner = node.args[0]
    if (
        inner.op is not ASTYPE
        or not keeps_values(inner.args[0].type.dtype, inner.type.dtype)
        or node.type.dtype.kind == "c"
    ):
        return None
    return astype(inner.args[0], node.type.dtype)
