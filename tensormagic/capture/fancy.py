"""Reading by masks and arrays of integers, ``x[rows, columns]``: NumPy's rule of what goes where, on top of one gather."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tensormagic.capture.arguments import done
from tensormagic.capture.library.ordering import as_indices
from tensormagic.capture.library.selection import coordinates
from tensormagic.capture.names import implements
from tensormagic.capture.operands import node_of
from tensormagic.capture.value import Tensor, wrap
from tensormagic.ir.errors import BoundsError, ShapeError
from tensormagic.ir.node import Node
from tensormagic.ir.size import Size, hint, is_at_least, nodes_of, product, size_text
from tensormagic.ops.effects.checks import require
from tensormagic.ops.indices import selection
from tensormagic.ops.indices.gather import gather, take_along_axis
from tensormagic.ops.leaf import IOTA, constant, constant_value, iota, size_node
from tensormagic.ops.move import BROADCAST, broadcast, concatenate, reshape, transpose
from tensormagic.ops.move_kind import broadcast_shapes, same, show
from tensormagic.ops.scalars import scalar


@implements("getitem")
def getitem(x: Tensor, items: list[Any]) -> Tensor:
    """``x[items]``, one item an axis (a mask for several), where at least one is an array or a truth value."""
    x, items = _with_numbers_first(*_with_masks(x, items))
    advanced = [k for k, i in enumerate(items) if not (i is None or isinstance(i, slice))]
    adjacent = advanced == list(range(advanced[0], advanced[-1] + 1))
    sliced = x[tuple(part for k, i in enumerate(items) for part in _kept(i, k in advanced))].node
    first = [sum(len(_kept(i, k in advanced)) for k, i in enumerate(items[:n])) for n in advanced]
    if len(advanced) == 1 and is_mask(items[advanced[0]]):
        return done(_selected(sliced, node_of(items[advanced[0]]), first[0]))
    places: list[int] = []
    nodes: list[Node] = []
    for k, axis in zip(advanced, first, strict=True):
        if is_mask(items[k]):
            found = coordinates(fitting(node_of(items[k]), sliced, axis))
        else:
            found = [_integers(items[k])]
            if not found[0].type.shape or names_any([items[n] for n in advanced]):
                within_bounds(found[0], sliced.type.shape[axis], _axis(items, k), x)
        places += range(axis, axis + len(found))
        nodes += found
    try:
        shape = broadcast_shapes([n.type.shape for n in nodes])
    except ShapeError:
        shapes = " ".join(show(n.type.shape) for n in nodes)
        raise BoundsError(
            f"shape mismatch: indexing arrays could not be broadcast together with shapes {shapes}"
        ) from None
    if len(places) == 1:
        return done(gather(sliced, nodes[0], places[0]))
    return done(_taken(sliced, places, [broadcast(n, shape) for n in nodes], adjacent))


def _taken(x: Node, places: list[int], nodes: list[Node], adjacent: bool) -> Node:
    """The elements of ``x`` at indices of one shape into several axes."""
    rest = [k for k in range(x.type.ndim) if k not in places]
    extents = [x.type.shape[k] for k in places]
    counted = next((k for k, n in enumerate(nodes) if _counts(n, extents[k])), None)
    if counted is not None and len(places) == 2:
        return _of_each(x, places[counted], places[1 - counted], nodes[1 - counted], adjacent)
    merged = reshape(transpose(x, (*places, *rest)), (product(tuple(extents)), *(x.type.shape[k] for k in rest)))
    result = gather(merged, _flat(nodes, extents), 0)
    # adjacent: the new axes stand where these stood
    return _moved(result, nodes[0].type.ndim, places[0]) if adjacent else result


def _counts(index: Node, extent: Size) -> bool:
    """Whether it names each place of an axis once, in order: ``np.arange(len(x))``."""
    own = index.args[0] if index.op is BROADCAST and index.type.ndim == 1 else index
    return own.op is IOTA and own.type.shape == (extent,)


def _of_each(x: Node, first: int, second: int, index: Node, adjacent: bool) -> Node:
    """For each place along one axis that which ``index`` names along another: ``x[np.arange(len(x)), index]``."""
    shape = x.type.shape
    picked = reshape(broadcast(index, (shape[first],)), tuple(s if k == first else 1 for k, s in enumerate(shape)))
    found = take_along_axis(x, broadcast(picked, tuple(1 if k == second else s for k, s in enumerate(shape))), second)
    rest = [k for k in range(x.type.ndim) if k not in {first, second}]
    if not adjacent:  # the new axis stands first
        found = transpose(found, (first, second, *rest))
        return reshape(found, (shape[first], *(shape[k] for k in rest)))
    return reshape(found, tuple(s for k, s in enumerate(shape) if k != second))


def _with_numbers_first(x: Tensor, items: list[Any]) -> tuple[Tensor, list[Any]]:
    """``x[mask, 1]`` as ``x[:, 1][mask]``: a mask beside numbers of places that are there is a mask alone of what these name."""
    numbers = [k for k, i in enumerate(items) if isinstance(i, int | np.integer) and not isinstance(i, bool)]
    masks = [k for k, i in enumerate(items) if k not in numbers and not (i is None or isinstance(i, slice))]
    if not numbers or len(masks) != 1 or not is_mask(items[masks[0]]) or not node_of(items[masks[0]]).type.ndim:
        return x, items
    advanced = sorted([*numbers, *masks])
    if advanced != list(range(advanced[0], advanced[-1] + 1)) and masks[0]:
        return x, items  # the picked axis stands first, and would not
    part: list[Any] = []
    for k, item in enumerate(items):
        if k not in numbers:
            part += [] if item is None else [slice(None)] * len(_kept(item, k in masks))
            continue
        extent = x.node.type.shape[len(part)]
        if not is_at_least(extent, item + 1 if item >= 0 else -item):
            return x, items
        part.append(item)
    return x[tuple(part)], [i for k, i in enumerate(items) if k not in numbers]


# masks ----------------------------------------------------------------------------------------------------------------


def is_mask(item: Any) -> bool:
    """Whether an index entry is a mask."""
    if isinstance(item, bool | np.bool_):
        return True
    if isinstance(item, list):
        return bool(item) and not any(isinstance(v, Tensor) for v in item) and np.asarray(item).dtype == bool
    return getattr(item, "dtype", None) == np.bool_


def _with_masks(x: Tensor, items: list[Any]) -> tuple[Tensor, list[Any]]:
    """The same index with a mask of one axis, on an axis of its own, for every truth value."""
    if not any(is_mask(i) and not node_of(i).type.ndim for i in items):
        return x, items
    axes: list[Any] = []
    found: list[Any] = []
    for item in items:
        alone = is_mask(item) and not node_of(item).type.ndim
        found.append(wrap(reshape(node_of(item), (1,))) if alone else item)
        if item is not None:
            axes += [None] if alone else [slice(None)] * len(_kept(item, not isinstance(item, slice)))
    return x[tuple(axes)], found


def _kept(item: Any, advanced: bool) -> list[Any]:
    """What stands for an entry where only slices and new axes are taken."""
    if not advanced:
        return [item]
    return [slice(None)] * (node_of(item).type.ndim if is_mask(item) else 1)


def fitting(mask: Node, x: Node, first: int) -> Node:
    """``mask``, which covers axes of ``x`` from ``first`` on, to read or to store: raises where extents differ, or checks that they do not.

    An axis of extent 0 fits every axis, as in NumPy: such a mask selects nothing.
    """
    wanted = x.type.shape[first : first + mask.type.ndim]
    selects = 0 not in mask.type.shape
    mask = _covering(mask, wanted) if selects else mask
    for axis, (own, extent) in enumerate(zip(wanted, mask.type.shape, strict=True), first):
        if extent != 0 and (not same(own, extent) or (extent == 1) != (own == 1)):
            raise BoundsError(
                f"boolean index did not match indexed array along axis {axis}; size of axis is {size_text(own)} "
                f"but size of corresponding boolean axis is {size_text(extent)}"
            )
    return broadcast(mask if selects else constant(False), wanted)


def _covering(mask: Node, wanted: Sequence[Size]) -> Node:
    """A mask as long as the axes that it covers, where extents are data-dependent: it is as long as these, or 0, when the graph runs."""
    for axis, (own, extent) in enumerate(zip(wanted, mask.type.shape, strict=True)):
        if own == extent or not (nodes_of(own) or nodes_of(extent)):
            continue
        size = size_node(extent)
        fits = scalar.logical_or(scalar.equal(size, 0), scalar.equal(size, size_node(own)))
        end = broadcast(constant(False), (*mask.type.shape[:axis], 1, *mask.type.shape[axis + 1 :]))
        places = require(scalar.minimum(iota((own,), 0), size), fits, _NOT_COVERED, "index")
        mask = gather(concatenate([mask, end], axis), places, axis)
    return mask


_NOT_COVERED = "boolean index did not match indexed array: the size of an axis is not that of the boolean axis"


def _selected(x: Node, mask: Node, first: int) -> Node:
    """``x`` where a mask of some axes, from ``first`` on, is true."""
    mask = fitting(mask, x, first)
    behind = x.type.shape[first + mask.type.ndim :]
    merged = reshape(x, (*x.type.shape[:first], mask.type.size, *behind))
    return gather(merged, selection.places(mask), first)


# integers -------------------------------------------------------------------------------------------------------------


def _axis(items: list[Any], place: int) -> int:
    return sum(0 if i is None else node_of(i).type.ndim if is_mask(i) else 1 for i in items[:place])


def names_any(arrays: list[Any]) -> bool:
    """Whether the arrays of an index name elements for sure: where none is named, what is in them may be out of bounds."""
    if any(map(is_mask, arrays)):
        return False
    return all(hint(as_indices(i).type.size) not in {None, 0} for i in arrays)


def _integers(item: Any) -> Node:
    node = as_indices(item)
    if node.type.dtype.kind not in "iu":
        raise BoundsError("arrays used as indices must be of integer (or boolean) type")
    return node


def within_bounds(index: Node, extent: Size, axis: int, x: Tensor) -> None:
    """Raise for an index that is known and out of bounds, at once."""
    known, size = constant_value(index), hint(extent)
    if known is not None and size is not None and known.size and index.type.size != 0:
        wrong = known[(known < -size) | (known >= size)]
        if wrong.size:
            raise BoundsError(
                f"index {wrong.ravel()[0]} is out of bounds for axis {axis} with size {size}",
                f"The array has shape {show(x.type.shape)}.",
            )


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
