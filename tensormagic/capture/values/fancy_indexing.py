"""Reading by masks and integer arrays, ``x[rows, columns]``: NumPy's rule for the result's axes, by one gather."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensormagic.capture.names import implements
from tensormagic.capture.values.arguments import done
from tensormagic.capture.values.index_arrays import arranged, is_mask, kept, resolve, shape_of
from tensormagic.capture.values.operands import node_of
from tensormagic.capture.values.value import Tensor, wrap
from tensormagic.ir.node import Node
from tensormagic.ir.size import Size, is_at_least
from tensormagic.ops.indices import selection
from tensormagic.ops.indices.gather import gather, take_along_axis
from tensormagic.ops.leaf import IOTA
from tensormagic.ops.move import BROADCAST, broadcast, reshape, transpose


@implements("getitem")
def getitem(x: Tensor, items: list[Any]) -> Tensor:
    """Return ``x[items]``, one item an axis (a mask for several), where at least one is an array or a boolean."""
    index = resolve(*_with_numbers_first(*_with_masks(x, items)), numbers_first=False)
    view, places, arrays = index.view.node, index.places, index.arrays
    if index.mask is not None:
        return done(_selected(view, index.mask, index.at))
    if len(places) == 1:
        return done(gather(view, arrays[0], places[0]))
    counted = next((k for k, n in enumerate(arrays) if _counts(n, view.type.shape[places[k]])), None)
    if counted is not None and len(places) == 2 and len(shape_of(arrays)) == 1:
        return done(_of_each(view, places[counted], places[1 - counted], arrays[1 - counted], not index.apart))
    front, arrange = arranged(index)
    return done(arrange.taken(front))


def _counts(index: Node, extent: Size) -> bool:
    """Return whether an index names each place of an axis once, in order: ``np.arange(len(x))``."""
    own = index.args[0] if index.op is BROADCAST and index.type.ndim == 1 else index
    return own.op is IOTA and own.type.shape == (extent,)


def _of_each(x: Node, first: int, second: int, index: Node, adjacent: bool) -> Node:
    """Return, for each place along one axis, the element that ``index`` selects along another: ``x[np.arange(len(x)), index]``."""
    shape = x.type.shape
    picked = reshape(broadcast(index, (shape[first],)), tuple(s if k == first else 1 for k, s in enumerate(shape)))
    found = take_along_axis(x, broadcast(picked, tuple(1 if k == second else s for k, s in enumerate(shape))), second)
    rest = [k for k in range(x.type.ndim) if k not in {first, second}]
    if not adjacent:  # the new axis comes first
        found = transpose(found, (first, second, *rest))
        return reshape(found, (shape[first], *(shape[k] for k in rest)))
    return reshape(found, tuple(s for k, s in enumerate(shape) if k != second))


def _with_numbers_first(x: Tensor, items: list[Any]) -> tuple[Tensor, list[Any]]:
    """Return ``x`` and an index with integers in bounds applied first: ``x[mask, 1]`` is ``x[:, 1][mask]``."""
    advanced = [k for k, i in enumerate(items) if not (i is None or isinstance(i, slice))]
    numbers = [k for k in advanced if isinstance(items[k], int | np.integer) and not isinstance(items[k], bool)]
    masks = [k for k in advanced if k not in numbers]
    if not numbers or len(masks) != 1 or not is_mask(items[masks[0]]) or not node_of(items[masks[0]]).type.ndim:
        return x, items
    if advanced[-1] - advanced[0] >= len(advanced) and masks[0]:
        return x, items  # the selected axis comes first, and would not otherwise
    part: list[Any] = []
    for k, item in enumerate(items):
        if k not in numbers:
            part += [] if item is None else [slice(None)] * len(kept(item, k in masks))
            continue
        extent = x.node.type.shape[len(part)]
        if not is_at_least(extent, item + 1 if item >= 0 else -item):
            return x, items
        part.append(item)
    return x[tuple(part)], [i for k, i in enumerate(items) if k not in numbers]


# masks ----------------------------------------------------------------------------------------------------------------


def _with_masks(x: Tensor, items: list[Any]) -> tuple[Tensor, list[Any]]:
    """Return the index with each boolean replaced by a mask of one element on an axis of its own."""
    if not any(is_mask(i) and not node_of(i).type.ndim for i in items):
        return x, items
    axes: list[Any] = []
    found: list[Any] = []
    for item in items:
        alone = is_mask(item) and not node_of(item).type.ndim
        found.append(wrap(reshape(node_of(item), (1,))) if alone else item)
        if item is not None:
            axes += [None] if alone else [slice(None)] * len(kept(item, not isinstance(item, slice)))
    return x[tuple(axes)], found


def _selected(x: Node, mask: Node, first: int) -> Node:
    """Return the part of ``x`` where a mask of some axes, from ``first`` on, is true."""
    behind = x.type.shape[first + mask.type.ndim :]
    merged = reshape(x, (*x.type.shape[:first], mask.type.size, *behind))
    return gather(merged, selection.places(mask), first)
