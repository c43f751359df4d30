"""Reading by arrays of integers, ``x[rows, columns]``: NumPy's rule of what goes where, on top of one gather."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensormagic.capture import context
from tensormagic.capture.names import implements
from tensormagic.capture.ordering import as_indices
from tensormagic.capture.value import Tensor, refuse, wrap
from tensormagic.ir.errors import BoundsError, ShapeError
from tensormagic.ir.node import Node
from tensormagic.ir.type import Size, hint, product
from tensormagic.ops import scalar
from tensormagic.ops.gather import gather
from tensormagic.ops.leaf import constant_value, size_node
from tensormagic.ops.move import broadcast, broadcast_shapes, reshape, show, transpose


@implements("getitem")
def getitem(x: Tensor, items: list[Any]) -> Tensor:
    """``x[items]``, one item an axis, where at least one is an array or a captured integer."""
    if any(_is_mask(i) for i in items):
        refuse(
            "reading through a mask",
            "Its size depends on data: use np.where(mask, x, 0), or run the cell with --plain.",
        )
    sliced = x[tuple(i if i is None or isinstance(i, slice) else slice(None) for i in items)].node
    places = [k for k, i in enumerate(items) if not (i is None or isinstance(i, slice))]
    nodes = [_checked(items[k], sliced.type.shape[k], _axis(items, k), x) for k in places]
    try:
        shape = broadcast_shapes([n.type.shape for n in nodes])
    except ShapeError:
        shapes = " ".join(show(n.type.shape) for n in nodes)
        raise BoundsError(
            f"shape mismatch: indexing arrays could not be broadcast together with shapes {shapes}"
        ) from None
    if len(places) == 1:
        return wrap(context.record(gather(sliced, nodes[0], places[0])))
    rest = [k for k in range(sliced.type.ndim) if k not in places]
    extents = [sliced.type.shape[k] for k in places]
    front = transpose(sliced, (*places, *rest))
    merged = reshape(front, (product(tuple(extents)), *(sliced.type.shape[k] for k in rest)))
    result = gather(merged, _flat([broadcast(n, shape) for n in nodes], extents), 0)
    if places == list(range(places[0], places[-1] + 1)):  # adjacent: the new axes stand where these stood
        result = _moved(result, len(shape), places[0])
    return wrap(context.record(result))


def _is_mask(item: Any) -> bool:
    if isinstance(item, bool | np.bool_):
        return True
    if isinstance(item, list):
        return np.asarray(item).dtype == bool if not any(isinstance(v, Tensor) for v in item) else False
    return getattr(item, "dtype", None) == np.bool_


def _axis(items: list[Any], place: int) -> int:
    return sum(i is not None for i in items[:place])


def _checked(item: Any, extent: Size, axis: int, x: Tensor) -> Node:
    """An index as a node of integers; one that is known and out of bounds is an error at once."""
    node = as_indices(item)
    if node.type.dtype.kind not in "iu":
        raise BoundsError("arrays used as indices must be of integer (or boolean) type")
    known, size = constant_value(node), hint(extent)
    if known is not None and size is not None and known.size and node.type.size != 0:
        wrong = known[(known < -size) | (known >= size)]
        if wrong.size:
            raise BoundsError(
                f"index {wrong.ravel()[0]} is out of bounds for axis {axis} with size {size}",
                f"The array has shape {show(x.type.shape)}.",
            )
    return node


def _flat(nodes: list[Node], extents: list[Size]) -> Node:
    """Indices into several axes as one into their product; one out of bounds stays so."""
    flat: Node | None = None
    fits: Node | None = None
    for node, extent in zip(nodes, extents, strict=True):
        size = size_node(extent)
        inside = scalar.logical_and(scalar.greater_equal(node, -size), scalar.less(node, size))
        position = scalar.where(scalar.less(node, 0), node + size, node)
        flat = position if flat is None else flat * size + position
        fits = inside if fits is None else scalar.logical_and(fits, inside)
    if flat is None or fits is None:
        raise AssertionError
    return scalar.where(fits, flat, size_node(product(tuple(extents))))


def _moved(result: Node, count: int, position: int) -> Node:
    """The first ``count`` axes, moved behind ``position`` others."""
    others = range(count, result.type.ndim)
    order = (*others[:position], *range(count), *others[position:])
    return transpose(result, order)
