"""Elements selected by data, on lazy arrays: nonzero, compress, extract, unique and the like; sizes of results are nodes of the graph."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensormagic.capture.errors.refusal import refuse
from tensormagic.capture.hooks import hooks
from tensormagic.capture.library.ordering import as_indices
from tensormagic.capture.names import implements
from tensormagic.capture.values.arguments import done, one_axis
from tensormagic.capture.values.operands import node_of
from tensormagic.capture.values.value import Tensor, wrap
from tensormagic.ir.errors import ShapeError
from tensormagic.ir.node import Node
from tensormagic.ir.size import product
from tensormagic.ops.indices import selection
from tensormagic.ops.indices.gather import gather
from tensormagic.ops.indices.sorting import row_order
from tensormagic.ops.leaf import size_node
from tensormagic.ops.move import concatenate, expand_dims, reshape, transpose
from tensormagic.ops.move_kind import normalise_axis
from tensormagic.ops.scalars import scalar


def truth(x: Node) -> Node:
    """Return the mask of the elements that are not zero."""
    return x if x.type.dtype.kind == "b" else scalar.not_equal(x, 0)


def coordinates(mask: Node) -> list[Node]:
    """Return the indices where a mask is true: for each axis the indices along it."""
    flat = selection.places(mask)
    shape = mask.type.shape
    found: list[Node] = []
    for axis, extent in enumerate(shape):
        index = flat
        if axis + 1 < len(shape):
            index = scalar.floor_divide(index, size_node(product(shape[axis + 1 :])))
        found.append(scalar.remainder(index, size_node(extent)) if axis else index)
    return found


@implements(np.nonzero, method="nonzero")
def nonzero(a: Any) -> tuple[Tensor, ...]:
    """Implement ``np.nonzero``: the indices of the elements that are not zero, an array for each axis."""
    x = node_of(a)
    if not x.type.ndim:
        raise ShapeError("Calling nonzero on 0d arrays is not allowed. Use np.atleast_1d(scalar).nonzero() instead.")
    return tuple(map(done, coordinates(truth(x))))


@implements(np.argwhere)
def argwhere(a: Any) -> Tensor:
    """Implement ``np.argwhere``: the indices of the elements that are not zero, as rows of one array."""
    x = node_of(a)
    if not x.type.ndim:
        refuse("np.argwhere of a number", "Compare it with zero.")
    return done(concatenate([expand_dims(index, (1,)) for index in coordinates(truth(x))], 1))


@implements(np.flatnonzero)
def flatnonzero(a: Any) -> Tensor:
    """Implement ``np.flatnonzero``."""
    return done(selection.places(truth(node_of(a))))


@implements(np.compress)
def compress(condition: Any, a: Any, axis: Any = None, out: Any = None) -> Tensor:
    """Implement ``np.compress``: the slices along an axis where a condition holds, which may be shorter than the axis."""
    if out is not None:
        refuse("np.compress with out=", "Assign the result instead.")
    mask, x = truth(as_indices(condition)), node_of(a)
    x = reshape(x, (1,)) if not x.type.ndim else x
    if mask.type.ndim != 1:
        raise ValueError("condition must be a 1-d array")
    return done(gather(x, selection.places(mask), None if axis is None else one_axis(axis, x.type.ndim)))


@implements(np.extract)
def extract(condition: Any, arr: Any) -> Tensor:
    """Implement ``np.extract``: the elements where a condition holds."""
    return done(gather(node_of(arr), selection.places(truth(node_of(condition)))))


def _unique_parts(x: Node, axis: int, *asked: bool) -> Any:
    """Implement ``np.unique`` along an axis: its distinct slices, in the order of their elements."""
    if x.type.dtype.kind == "c":
        refuse("np.unique of complex numbers along an axis", "Use the real and imaginary parts separately.")
    axis = normalise_axis(axis, x.type.ndim)
    front = (axis, *(k for k in range(x.type.ndim) if k != axis))
    parts = transpose(x, front)
    rows = reshape(parts, (parts.type.shape[0], product(parts.type.shape[1:])))
    order = row_order(rows)
    ordered = wrap(gather(rows, order, 0))
    differs: Any = ordered[1:] != ordered[:-1]
    new: Any = np.concatenate([np.ones(1, bool), differs.any(axis=1)])[: ordered.shape[0]]
    places = wrap(order)
    found: list[Any] = [done(transpose(gather(parts, places[new].node, 0), tuple(map(int, np.argsort(front)))))]
    if asked[0]:
        found.append(places[new])
    number = new.cumsum() - 1
    if asked[1]:
        found.append(number[places.argsort()])
    if asked[2]:
        found.append(np.bincount(number))
    return tuple(found) if len(found) > 1 else found[0]


@implements(np.unique)
def unique(
    ar: Any,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: Any = None,
    *,
    equal_nan: bool = True,
    sorted: bool = True,
) -> Any:
    """Implement ``np.unique``: the distinct values of an array, in order."""
    del sorted  # they always are
    x = node_of(ar)
    if axis is not None:
        normalise_axis(axis, x.type.ndim)  # this raises NumPy's errors
    if axis is not None and x.type.ndim != 1:
        return _unique_parts(x, axis, return_index, return_inverse, return_counts)
    flat = reshape(x, (x.type.size,))
    asked = (bool(return_index), bool(return_inverse), bool(return_counts))
    first, inverse, counts = selection.unique(flat, equal_nan=bool(equal_nan), asked=asked)
    found = [gather(flat, first, 0)]
    found += [first] if return_index else []
    found += [reshape(inverse, x.type.shape if x.type.ndim else (1,))] if return_inverse else []
    found += [counts] if return_counts else []
    results = [done(node) for node in found]
    return tuple(results) if len(results) > 1 else results[0]


hooks.methods["compress"] = lambda self, condition, axis=None, out=None: compress(condition, self, axis, out)
