"""Where the rows of a batch are in the result of an op, for where they are in its operands: one rule for each kind of op."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from tensormagic.ir.node import Node
from tensormagic.ir.size import Size, product
from tensormagic.ops.contract import Contract
from tensormagic.ops.contract import split as letters_of
from tensormagic.ops.fold import Fold, Row, Softmax
from tensormagic.ops.pointwise import Pointwise

Axes = Sequence[int | None]
Found = int | str
COMBINED: dict[str, np.ufunc] = {
    "add": np.add,
    "multiply": np.multiply,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "logical_or": np.logical_or,
    "logical_and": np.logical_and,
    "logaddexp": np.logaddexp,
}
"""What puts two parts together."""
FOLDS = {
    "sum": "add",
    "prod": "multiply",
    "max": "maximum",
    "min": "minimum",
    "any": "logical_or",
    "all": "logical_and",
    "logsumexp": "logaddexp",
}


class Mixed(Exception):  # noqa: N818 (caught where the user's line is known)
    """Rows are mixed in a way that has no rule."""


def axis_of(node: Node, axes: Axes, rows: Size) -> Found:
    """The axis of rows in a result; for a part, what combines two of them.

    Parameters
    ----------
    node
        A node that reads rows, or whose shape has their number.
    axes
        The axis of rows in each operand; None for one that is whole.
    rows
        The number of rows.
    """
    rule = _BY_NAME.get(node.op.name) or next((rule for kind, rule in _BY_KIND if isinstance(node.op, kind)), None)
    if rule is None:
        raise Mixed("has no rule for rows that are split")
    return rule(node, axes, rows)


def _common(axes: Axes) -> int:
    """The axis that all operands have their rows along."""
    found = set(axes)
    if found == {None}:
        raise Mixed("has a size that follows from the number of rows")
    if None in found:
        raise Mixed("takes rows together with what is whole")
    if len(found) != 1:
        raise Mixed("takes together what has the rows along different axes")
    return next(a for a in axes if a is not None)


def _pointwise(node: Node, axes: Axes, rows: Size) -> Found:
    del rows
    rank = node.type.ndim
    axis = _common([a + rank - n.type.ndim for n, a in zip(node.args, axes, strict=True) if a is not None])
    for n, a in zip(node.args, axes, strict=True):
        own = axis - rank + n.type.ndim
        if a is None and own >= 0 and n.type.shape[own] != 1:
            raise Mixed("takes rows together with a whole array that is as long")
    return axis


def _fold(node: Node, axes: Axes, rows: Size) -> Found:
    del rows
    axis = _common(axes)
    if axis not in node["axes"]:
        return axis - sum(k < axis for k in node["axes"])
    if node.op.name not in FOLDS or (node.op.name == "logsumexp" and node.type.dtype.kind == "c"):
        raise Mixed("over all rows is not put together from chunks")
    return FOLDS[node.op.name]


def _along(node: Node, axes: Axes, rows: Size) -> Found:
    """What runs along axes and keeps the shape."""
    del rows
    axis = _common(axes)
    if axis in (node["axes"] if "axes" in node.params else (node["axis"],)):
        raise Mixed("runs along the rows, and each of these depends on others")
    return axis


def _contract(node: Node, axes: Axes, rows: Size) -> Found:
    del rows
    inputs, out = letters_of(node["subscripts"])
    found = {own[axis] for own, axis in zip(inputs, axes, strict=True) if axis is not None}
    if len(found) != 1:
        raise Mixed("multiplies each row with every other one")
    (letter,) = found
    if any(letter in own for own, axis in zip(inputs, axes, strict=True) if axis is None):
        raise Mixed("takes rows together with a whole array that is as long")
    if letter in out:
        return out.index(letter)
    return "logical_or" if node.type.dtype.kind == "b" else "add"


def _broadcast(node: Node, axes: Axes, rows: Size) -> Found:
    (axis,), shape = axes, node["shape"]
    if axis is not None:
        return axis + len(shape) - node.args[0].type.ndim
    if rows not in shape:
        raise Mixed("has a shape that follows from the number of rows")
    return shape.index(rows)


def _transpose(node: Node, axes: Axes, rows: Size) -> Found:
    del rows
    return node["permutation"].index(_common(axes))


def _reshape(node: Node, axes: Axes, rows: Size) -> Found:
    axis, before, after = _common(axes), node.args[0].type.shape, node["shape"]
    for k, size in enumerate(after):
        if size == rows and product(after[:k]) == product(before[:axis]):
            return k
    raise Mixed("puts rows together with other axes")


def _slice(node: Node, axes: Axes, rows: Size) -> Found:
    axis = _common(axes)
    if node["slices"][axis] != (0, rows, 1):
        raise Mixed("picks or moves rows")
    return axis


def _concatenate(node: Node, axes: Axes, rows: Size) -> Found:
    del rows
    axis = _common(axes)
    if axis == node["axis"]:
        raise Mixed("puts rows after one another")
    return axis


def _gather(node: Node, axes: Axes, rows: Size) -> Found:
    del rows
    (own, picked), axis = axes, node["axis"]
    if own is None and picked is not None:
        return axis + picked
    if own is None or picked is not None or own == axis:
        raise Mixed("picks rows")
    return own if own < axis else own - 1 + node.args[1].type.ndim


def _iota(node: Node, axes: Axes, rows: Size) -> Found:
    del axes
    shape = node["shape"]
    if rows not in shape or shape.index(rows) == node["axis"]:
        raise Mixed("numbers the rows, and a chunk does not know how many are before it")
    return shape.index(rows)


_Rule = Callable[[Node, Axes, Size], Found]
_BY_NAME: dict[str, _Rule] = {
    "broadcast": _broadcast,
    "transpose": _transpose,
    "reshape": _reshape,
    "slice": _slice,
    "concatenate": _concatenate,
    "gather": _gather,
    "iota": _iota,
    "sort": _along,
    "argsort": _along,
    "take_along_axis": _along,
    "named": lambda _node, axes, _rows: _common(axes),
}
_BY_KIND: tuple[tuple[type, _Rule], ...] = (
    (Row, _along),
    (Softmax, _along),
    (Fold, _fold),
    (Contract, _contract),
    (Pointwise, _pointwise),
)
