"""Stores ``x[index] = value`` with all of NumPy's indices, each as a new value of the part that is stored into."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensormagic.capture import context
from tensormagic.capture.errors.deprecated import show_deprecations
from tensormagic.capture.errors.refusal import refuse
from tensormagic.capture.library.ordering import as_indices
from tensormagic.capture.numbers.undecided_dtypes import refuse_cut
from tensormagic.capture.stores.alias import may_share
from tensormagic.capture.stores.converted import value_of
from tensormagic.capture.values.casts import loses, warn_of_loss
from tensormagic.capture.values.equal_sizes import agreed, open_equations
from tensormagic.capture.values.index_arrays import Arranged, Index, Items, arranged, chooses, is_mask, resolve
from tensormagic.capture.values.indexing import basic, listed, put_part, spelt_out
from tensormagic.capture.values.operands import has_lazy, node_of
from tensormagic.capture.values.value import Tensor, as_size, wrap
from tensormagic.ir.errors import BoundsError, DataShapeError, DTypeError, ShapeError
from tensormagic.ir.node import Node
from tensormagic.ir.size import is_at_least, nodes_of, size_text
from tensormagic.ir.type import Size, hint, product
from tensormagic.ops.effects.checks import of_value, require
from tensormagic.ops.indices import scatter
from tensormagic.ops.indices.gather import gather
from tensormagic.ops.indices.selection import places
from tensormagic.ops.indices.unselected import unselected
from tensormagic.ops.leaf import constant, iota, size_node
from tensormagic.ops.move import broadcast, reshape, transpose
from tensormagic.ops.move_kind import shape_text, show
from tensormagic.ops.pointwise import astype
from tensormagic.ops.scalars import scalar

# what an index names --------------------------------------------------------------------------------------------------


def entries(index: Any) -> Items:
    """Return the entries of an index: lists as arrays, integers unchanged."""
    return [_entry(i) for i in (index if isinstance(index, tuple) else (index,))]


def _entry(item: Any) -> Any:
    item = listed(item)
    if isinstance(item, list):
        item = wrap(as_indices(item) if has_lazy(item) or not np.size(item) else constant(np.asarray(item)))
    if isinstance(item, np.ndarray) and not item.ndim and item.dtype.kind in "iu":
        return int(item)
    if getattr(item, "dtype", np.dtype(int)).kind not in "biu":
        raise BoundsError("arrays used as indices must be of integer (or boolean) type")
    return item


def spread(items: Items, ndim: int) -> Items:
    """Return the entries with the ellipsis expanded: one for each axis, masks for several, None for new ones."""
    used = sum(0 if i is None or i is Ellipsis else node_of(i).type.ndim if is_mask(i) else 1 for i in items)
    return spelt_out(items, ndim, used)


def is_advanced(items: Items) -> bool:
    """Return whether an index has arrays, masks or integers that are known only when the graph runs."""
    return any(chooses(i) for i in items)


# x[index] = value -----------------------------------------------------------------------------------------------------


def setitem(self: Tensor, index: Any, value: Any) -> None:
    """Store ``x[index] = value``."""
    if self.type.form != "array":
        raise DTypeError(
            f"a number of type {self.type} does not support item assignment",
            "A number is not an array: assign a new value to the name.",
        )
    items = entries(index)
    spelt = spread(items, self.ndim)
    node = value_of(value, self.dtype, basic=not is_advanced(spelt))
    refuse_cut(self.place.buffer.first, node)
    if is_advanced(spelt):
        _copied(self, spelt, value)
        store(resolve(self, spelt), node, self.dtype)
        return
    part = basic(spelt, self.type.shape, as_size)
    if node.type.ndim and not part.shape and not any(i is Ellipsis for i in items):
        node = _only_element(value, node, self.dtype)
    if isinstance(value, list | tuple):
        _refuse_deep(node, len(part.shape))
    new = as_stored(node, self.dtype, part.shape)
    if part.shape == self.type.shape:  # nothing may be left of its own values
        new = agreed(new, open_equations(self.node))
    self.place.write(context.record(put_part(part, self.node, new)))


def _refuse_deep(sequence: Node, rank: int) -> None:
    """Raise for a sequence nested deeper than there are axes to store into; NumPy drops leading axes of arrays only."""
    if sequence.type.ndim > rank:
        message = "setting an array element with a sequence. The requested array would exceed the maximum number of dimension of"
        raise ShapeError(f"{message} {rank}.")


def _copied(x: Tensor, items: Items, value: Any) -> None:
    """Raise for a store in which NumPy reads memory that it is changing: with one mask over all axes it makes no copy first."""
    masked = len(items) == 1 and is_mask(items[0]) and getattr(items[0], "ndim", 0) == x.ndim
    own = not isinstance(value, Tensor) or value.place is x.place
    if masked and not own and may_share(value.place.buffer, x.place.buffer):
        refuse(
            "storing a part of an array into the same array through a mask",
            "Store a copy of that part: x[mask] = part.copy().",
        )


def _only_element(value: Any, node: Node, dtype: np.dtype[Any]) -> Node:
    """Return what an array or sequence becomes as one element: its truth, or its only number where NumPy accepts that."""
    element = np.empty((), dtype)
    if nodes_of(node.type.size) and show_deprecations(np.ndarray.fill, element, np.empty(1, node.type.dtype)) is None:
        refuse(
            "storing an array into one element, of a data-dependent number of elements",
            "Store its .any() or .item(), or one element.",
        )
    error = show_deprecations(np.ndarray.fill, element, value)
    if error is None and isinstance(value, list | tuple):
        return constant(bool(value))
    if error is None and node.type.size in {0, 1}:
        return reshape(node, ()) if node.type.size else constant(False)
    message = "setting an array element with a sequence."
    raise TypeError(str(error)) if isinstance(error, TypeError) else ShapeError(message)


def storable(node: Node, dtype: np.dtype[Any]) -> Node:
    """Return a value cast to be stored into an array of ``dtype``, with NumPy's warning if that discards an imaginary part.

    Raises
    ------
    DTypeError
        If a Python complex number would be stored into a real array.
    """
    if not loses(node.type.dtype, dtype):
        return astype(node, dtype)
    if node.type.form == "python":
        raise DTypeError(
            f"a value of type {node.type} cannot be stored into an array of dtype {dtype}", "Take its .real first."
        )
    warn_of_loss(node.type.dtype, dtype)
    return astype(scalar.real(node), dtype)


def as_stored(node: Node, dtype: np.dtype[Any], shape: tuple[Size, ...]) -> Node:
    """Return a value cast and broadcast to be stored into an array of ``dtype`` and ``shape``."""
    message = "could not broadcast input array from shape {} into shape {}"
    fitted(node, shape, message)  # NumPy checks this first
    return fitted(storable(node, dtype), shape, message)


def fitted(node: Node, shape: tuple[Size, ...], message: str, *, stretch: bool = True) -> Node:
    """Return a value broadcast to a shape; NumPy drops leading axes of extent 1.

    Without ``stretch``, data-dependent extents are assumed to equal those of the shape.
    """
    given = node.type.shape
    extra = max(node.type.ndim - len(shape), 0)
    if extra and set(given[:extra]) == {1}:
        node = reshape(node, given[extra:])
    try:
        return broadcast(_stretched(node, shape, message) if stretch else node, shape)
    except ShapeError:
        said = message.format(show(given), show(shape))
        if any(nodes_of(s) for s in given[:extra]):
            raise DataShapeError(said, _NOT_DROPPED) from None
        empty = (any(s == 0 or nodes_of(s) for s in side) for side in (given, shape))
        if all(empty) and any(nodes_of(s) for s in (*given, *shape)):  # NumPy takes any shape for no elements
            raise DataShapeError(said, "Store a number, or an array of that shape.") from None
        raise ShapeError(said) from None


def _stretched(node: Node, shape: tuple[Size, ...], message: str) -> Node:
    """Return a value with data-dependent extents set to those of the target; when the graph runs, they must be that, or 1."""
    given = node.type.shape
    for axis, own in enumerate(given):
        wanted = shape[axis - node.type.ndim] if node.type.ndim <= len(shape) else own
        if own == wanted or not nodes_of(own) or is_at_least(own, 2) or _are_shapes_alike(own, wanted):
            continue
        size, sizes = size_node(own), [*map(size_text, given)]
        sizes[axis] = of_value(sizes[axis])
        fits = scalar.logical_or(scalar.equal(size, 1), scalar.equal(size, size_node(wanted)))
        size = require(size, fits, message.format(shape_text(sizes), show(shape)))
        places = scalar.where(scalar.equal(size, 1), 0, iota((wanted,), 0))
        node = gather(node, places, axis)
    return node


def _are_shapes_alike(own: Size, wanted: Size) -> bool:
    """Return whether two sizes that only depend on shapes were equal at capture; a guard checks this later."""
    difference = own - wanted
    return not nodes_of(difference) and hint(difference) == 0


_NOT_DROPPED = "An axis whose size depends on data is not dropped when it happens to be 1: write value[0]."
_MISMATCH = "shape mismatch: value array of shape {} could not be broadcast to indexing result of shape {}"


def store(index: Index, value: Node, dtype: np.dtype[Any]) -> None:
    """Store a value where ``index`` says."""
    kept = scalar.real(value) if loses(value.type.dtype, dtype) else value
    kept = storable(kept, dtype)
    if index.mask is not None:
        new = _masked(index, index.mask, kept)
    else:
        front, arrange = arranged(index)
        new = arrange.back(scatter.scatter_set(front, arrange.indices, chosen_first(arrange, kept)))
    storable(value, dtype)  # NumPy checks shapes first
    index.view.place.write(context.record(new))


def chosen_first(arrange: Arranged, value: Node, *, stretch: bool = True) -> Node:
    """Return a value to be stored, broadcast as by :func:`fitted`, with the axes that arrays select from first."""
    kept = value.type.shape[max(value.type.ndim - len(arrange.result), 0) :]
    if 0 in kept:
        value = reshape(value, kept)  # NumPy drops leading axes of any extent, where there are no elements
    value = fitted(value, arrange.result, _MISMATCH, stretch=stretch)
    count, at = len(arrange.shape), arrange.position
    others = [k for k in range(value.type.ndim) if not at <= k < at + count]
    return transpose(value, (*range(at, at + count), *others))


# through a mask -------------------------------------------------------------------------------------------------------


def _masked(index: Index, mask: Node, value: Node) -> Node:
    """Return the view's value with ``value`` where the mask is true."""
    at, node = index.at, index.view.node
    count = mask.type.ndim
    _check_rank(value, index.alone and node.type.ndim == count)
    rest = (*node.type.shape[:at], *node.type.shape[at + count :])
    extra = value.type.ndim - len(rest) - 1
    if extra > 0 and set(value.type.shape[:extra]) == {1}:
        value = reshape(value, value.type.shape[extra:])
    axis = (0 if index.apart else at) - (
        len(rest) + 1 - value.type.ndim
    )  # the axis of the value that runs along what is selected
    if axis >= 0 and value.type.shape[axis] != 1:
        return _placed(index, mask, value)
    wide = reshape(value, (*[1] * (len(rest) + 1 - value.type.ndim), *value.type.shape))
    if index.apart:
        wide = transpose(wide, (*range(1, at + 1), 0, *range(at + 1, wide.type.ndim)))
    shape = wide.type.shape
    wide = reshape(wide, (*shape[:at], *[1] * count, *shape[at + 1 :]))
    try:
        wide = broadcast(wide, node.type.shape)
    except ShapeError:
        said = _MISMATCH.format(show(value.type.shape), show((1, *rest)))
        if any(nodes_of(s) for s in value.type.shape[: max(extra, 0)]):
            raise DataShapeError(said, _NOT_DROPPED) from None
        raise ShapeError(said) from None
    return scalar.where(spread_mask(mask, node, at), wide, node)


def _check_rank(value: Node, whole: bool) -> None:
    if whole and value.type.ndim > 1:
        raise DTypeError(
            "NumPy boolean array indexing assignment requires a 0 or 1-dimensional input, "
            f"input has {value.type.ndim} dimensions"
        )


def spread_mask(mask: Node, node: Node, at: int) -> Node:
    """Return a mask of some axes of ``node``, from ``at`` on, as one of all axes."""
    behind = node.type.ndim - at - mask.type.ndim
    return broadcast(reshape(mask, (*mask.type.shape, *[1] * behind)), node.type.shape)


def by_places(index: Index, mask: Node) -> tuple[Node, Arranged]:
    """Return the view with the axes of its mask merged and in front, and the places where the mask is true."""
    node, count = index.view.node, mask.type.ndim
    extents = node.type.shape[index.at : index.at + count]
    others = tuple(k for k in range(node.type.ndim) if not index.at <= k < index.at + count)
    rest = tuple(node.type.shape[k] for k in others)
    order = (*range(index.at, index.at + count), *others)
    front = reshape(transpose(node, order), (product(extents), *rest))
    found = places(broadcast(mask, extents))
    return front, Arranged(found, order, extents, rest, found.type.shape, 0 if index.apart else index.at)


def _placed(index: Index, mask: Node, value: Node) -> Node:
    """Return the view's value like :func:`_masked`, with a different value for every place."""
    front, arrange = by_places(index, mask)
    try:
        values = chosen_first(arrange, value, stretch=False)
    except ShapeError:
        if index.view.ndim != mask.type.ndim:
            raise
        raise ShapeError(
            f"NumPy boolean array indexing assignment cannot assign {show(value.type.shape[:1])[1:-2]} input values "
            f"to the {show(arrange.shape)[1:-2]} output values where the mask is true"
        ) from None
    whole = unselected(values, arrange.indices, 0, front.type.shape[0])
    if whole is None:
        return arrange.back(scatter.scatter_set(front, arrange.indices, chosen_first(arrange, value)))
    chosen = spread_mask(reshape(broadcast(mask, arrange.extents), (front.type.shape[0],)), front, 0)
    return arrange.back(scalar.where(chosen, whole, front))


def fill(self: Tensor, value: Any) -> None:
    """Fill an array with one number, as ``ndarray.fill``; NumPy's scalars stay unchanged.

    A boolean array takes the truth of a list or tuple.
    """
    if self.dtype.kind == "b" and isinstance(value, list | tuple):
        value = bool(value)
    elif (node := node_of(value)).type.shape:
        value = wrap(_only_element(value, node, self.dtype))
    if self.type.form != "scalar":
        self[...] = value


Tensor.__setitem__ = setitem
Tensor.fill = fill
