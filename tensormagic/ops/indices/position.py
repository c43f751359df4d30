"""Indices that are known only when the graph runs: counted from the front, and checked against the axis."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tensormagic.ir.errors import BoundsError, DTypeError
from tensormagic.ir.node import Node, make
from tensormagic.ir.operation import Bounds
from tensormagic.ir.size import Size
from tensormagic.ir.type import Type
from tensormagic.ops.leaf import constant, size_node
from tensormagic.ops.op import Value
from tensormagic.ops.opaque import Opaque
from tensormagic.ops.pointwise import astype


@dataclass(frozen=True, eq=False, kw_only=True)
class Position(Opaque):
    """An op that checks an index, so that its value lies within its axis."""

    def bounds(self, node: Node) -> Bounds:
        return 0, node["extent"] - 1

    def expression(self, node: Node, given: Sequence[str], scope: Any) -> str | None:
        index = node.args[0].type
        if index.shape or index.form == "array" or index.dtype != np.int64:
            return None
        extent = scope.size(node["extent"])
        counted = f"{scope.text.object(_counted)}({given[0]}, {extent}, {node['number']})"
        return f"{given[0]} if 0 <= {given[0]} < {extent} else {counted}"


def _type(args: tuple[Node, ...], params: Mapping[str, Any]) -> Type:
    (index,) = args
    if index.type.dtype.kind not in "iu":
        raise DTypeError(f"an index is an integer, not {index.type}")
    return Type(np.dtype(np.int64), index.type.shape, index.type.form)


def _counted(index: Any, extent: int, number: int) -> Any:
    """Return a checked index as a nonnegative integer."""
    if not -extent <= index < extent:
        raise BoundsError(f"index {index} is out of bounds for axis {number} with size {extent}")
    return index + extent if index < 0 else index


def _numpy(index: Value, extent: int, number: int) -> Value:
    given = np.asarray(index)
    wrong = given[(given < -extent) | (given >= extent)]
    if wrong.size:
        raise BoundsError(f"index {wrong.flat[0]} is out of bounds for axis {number} with size {extent}")
    return np.where(given < 0, given + extent, given).astype(np.int64)


POSITION = Position(
    name="position",
    raises=True,
    types=_type,
    numpy=_numpy,
    doc="An index counted from the front; one that is out of bounds is an IndexError when the graph runs.",
)


def position(index: Size, extent: Size, number: int) -> Node:
    """Return the nonnegative place of ``index`` along axis ``number`` of ``extent``, checked when the graph runs."""
    return make(POSITION, (size_node(index),), extent=extent, number=number)


def merged(extents: Sequence[Size], indices: Sequence[Node], numbers: Sequence[int]) -> Node:
    """Return indices into several axes as one index into these axes laid end to end; errors name the axes by ``numbers``."""
    flat: Node | None = None
    for node, extent, number in zip(indices, extents, numbers, strict=True):
        place = make(POSITION, (astype(node, np.int64),), extent=extent, number=number)
        flat = place if flat is None else flat * size_node(extent) + place
    return constant(0) if flat is None else flat
