"""NumPy's counts on lazy arrays: histogram, bincount, digitize and the like; counts are scattered sums into the bins."""

from __future__ import annotations

import builtins
import operator
from typing import Any

import numpy as np

from tensormagic.capture.library.creation import linspace
from tensormagic.capture.library.ordering import as_indices
from tensormagic.capture.library.reductions import folded
from tensormagic.capture.library.signal import diff
from tensormagic.capture.names import implements
from tensormagic.capture.values.arguments import at_capture, done, extent_number, known, pad_empty_axes, tensor
from tensormagic.capture.values.casts import cast_error, cast_to
from tensormagic.capture.values.operands import node_of
from tensormagic.capture.values.value import Tensor, as_size, wrap
from tensormagic.ir.errors import DTypeError, ShapeError
from tensormagic.ir.node import Node
from tensormagic.ir.type import Size
from tensormagic.ops import fold as folds
from tensormagic.ops.effects.checks import in_range, require
from tensormagic.ops.fold import fold
from tensormagic.ops.indices import sorting
from tensormagic.ops.indices.gather import gather
from tensormagic.ops.indices.scatter import scatter_add
from tensormagic.ops.leaf import constant, constant_value, size_node
from tensormagic.ops.move import broadcast, flip, reshape
from tensormagic.ops.move_kind import same
from tensormagic.ops.pointwise import astype
from tensormagic.ops.scalars import scalar


def _numbers(a: Any) -> Node:
    x = reshape(node_of(a), (-1,))
    return astype(x, np.uint8) if x.type.dtype.kind == "b" else x


def _zeros(size: Size, dtype: Any) -> Node:
    return broadcast(constant(np.dtype(dtype).type(0)), (size,))


def _outer_edges(x: Node, ends: Any) -> tuple[Node, Node]:
    """Return the first and the last edge: from ``range=``, or from the data; half a unit to both sides if these are equal."""
    if ends is not None:
        low, high = (node_of(v) for v in ends)
        if not any(isinstance(v, Tensor) for v in ends) and ends[0] > ends[1]:
            raise ValueError("max must be larger than min in range parameter.")
    elif x.type.size == 0:
        low, high = constant(0), constant(1)
    else:
        low, high = fold(folds.MIN, pad_empty_axes(x, (0,), 0), (0,)), fold(folds.MAX, pad_empty_axes(x, (0,), 1), (0,))
        finite = scalar.logical_and(scalar.isfinite(low), scalar.isfinite(high))
        low = require(low, finite, "autodetected range is not finite")
    equal = scalar.equal(low, high)
    return scalar.where(equal, low - 0.5, low), scalar.where(equal, high + 0.5, high)


def _increasing(edges: Node) -> Node:
    """Return given edges, checked to increase."""
    message = "`bins` must increase monotonically, when an array"
    values = constant_value(edges)
    if values is not None:
        if (values[:-1] > values[1:]).any():
            raise ValueError(message)
        return edges
    return require(edges, _ordered(edges, scalar.greater), message)


def _ordered(edges: Node, wrong: Any) -> Node:
    """Return, for each two neighbouring edges, whether their order is not ``wrong``."""
    whole = wrap(edges)
    return scalar.logical_not(wrong(whole[:-1].node, whole[1:].node))


def _bins(bins: Any, name: str) -> int | None:
    """Return the number of bins if it is given; None for edges."""
    if np.ndim(bins):
        if np.ndim(bins) > 1:
            raise ShapeError("`bins` must be 1d, when an array")
        return None
    try:
        count = operator.index(known(bins, f"the number of bins of {name}"))
    except TypeError:
        raise TypeError("`bins` must be an integer, a string, or an array") from None
    if count < 1:
        raise ValueError("`bins` must be positive, when an integer")
    return count


def _even_places(x: Node, edges: Node, ends: tuple[Node, Node], count: int) -> Node:
    """Return the bin of each element among ``count`` even ones, corrected by the edges as NumPy does; ``count`` if it is in none."""
    low, high = ends
    inside = scalar.logical_and(scalar.greater_equal(x, low), scalar.less_equal(x, high))
    value = astype(x, edges.type.dtype)
    share = (value - low) / (high - low) * count
    place = astype(scalar.where(inside, share, 0), np.int64)
    place = scalar.where(scalar.equal(place, count), count - 1, place)
    place = place - astype(scalar.less(value, gather(edges, place)), np.int64)
    above = scalar.greater_equal(value, gather(edges, place + 1))
    place = place + astype(scalar.logical_and(above, scalar.not_equal(place, count - 1)), np.int64)
    return scalar.where(inside, place, count)


def _places(x: Node, edges: Node) -> Node:
    """Return the bin of each element between any edges; the last bin includes its right edge; the number of bins if it is in none."""
    count = size_node(edges.type.shape[0] - 1)
    place = sorting.searchsorted(edges, x, "right") - 1
    last = gather(edges, count)
    place = scalar.where(scalar.equal(x, last), count - 1, place)
    outside = scalar.logical_or(scalar.less(place, 0), scalar.greater_equal(place, count))
    return scalar.where(scalar.logical_or(outside, scalar.isnan(x) if x.type.inexact else outside), count, place)


def _edges_of(x: Node, bins: Any, ends: Any, name: str) -> tuple[Node, tuple[tuple[Node, Node], int] | None]:
    """Return the edges; and for even bins the first edge, the last edge, and the number of bins; else None."""
    if isinstance(bins, str):  # the number of bins is data-dependent
        bins = at_capture(np.histogram_bin_edges, f"{name} with bins={bins!r}", wrap(x), bins, ends)
        bins = extent_number(bins.node, 0) - 1
    count = _bins(bins, name)
    if count is None:
        return _increasing(node_of(bins)), None
    low, high = _outer_edges(x, ends)
    dtype = np.result_type(*(v.type.dtype for v in (low, high) if v.type.form != "python"), x.type.dtype)
    dtype = dtype if dtype.kind in "fc" else np.result_type(dtype, float)
    return node_of(linspace(wrap(low), wrap(high), count + 1, dtype=dtype)), ((low, high), count)


@implements(np.histogram)
def histogram(a: Any, bins: Any = 10, range: Any = None, density: Any = None, weights: Any = None) -> Any:
    """Implement ``np.histogram``."""
    x = _numbers(a)
    w = None if weights is None else node_of(weights)
    if w is not None and not (w.type.ndim == np.ndim(a) and all(map(same, w.type.shape, node_of(a).type.shape))):
        raise ShapeError("weights should have the same shape as a.")
    edges, even = _edges_of(x, bins, range, "np.histogram")
    total: Size = edges.type.shape[0] - 1
    place = _places(x, edges) if even is None else _even_places(x, edges, *even)
    ones = constant(np.int64(1)) if w is None else reshape(w, (-1,))
    dtype = np.int64 if w is None else ones.type.dtype
    sums = scatter_add(_zeros(total + 1, dtype), place, ones)
    counts = wrap(sums)[:-1].copy()
    if density:
        widths = diff(wrap(edges)).astype(float)
        return done((counts / widths / counts.sum()).node), wrap(edges)
    return done(counts.node), wrap(edges)


@implements(np.histogram_bin_edges)
def histogram_bin_edges(a: Any, bins: Any = 10, range: Any = None, weights: Any = None) -> Any:
    """Implement ``np.histogram_bin_edges``."""
    if weights is not None and node_of(weights).type.ndim != node_of(a).type.ndim:
        raise ShapeError("weights should have the same shape as a.")
    return done(_edges_of(_numbers(a), bins, range, "np.histogram_bin_edges")[0])


@implements(np.histogramdd)
def histogramdd(sample: Any, bins: Any = 10, range: Any = None, density: Any = None, weights: Any = None) -> Any:
    """Implement ``np.histogramdd``."""
    columns = _columns(sample)
    rank = len(columns)
    each = list(bins) if isinstance(bins, list | tuple) or np.ndim(bins) else [bins] * rank
    if len(each) != rank:
        raise ValueError("The dimension of bins must be equal to the dimension of the sample x.")
    ends = [None] * rank if range is None else list(range)
    if len(ends) != rank:
        raise ValueError("range argument must have one entry per dimension")
    edges: list[Node] = []
    for x, b, r in zip(columns, each, ends, strict=True):
        count = _bins(b, "np.histogramdd")
        if count is None:
            edges.append(_increasing(node_of(b)))
        else:
            low, high = _outer_edges(x, r)
            edges.append(node_of(linspace(wrap(low), wrap(high), count + 1)))
    shape = [e.type.shape[0] for e in edges]  # one more than the bins: what is outside is counted there
    flat: Node = constant(0)
    for x, e, s in zip(columns, edges, shape, strict=True):
        flat = flat * size_node(s) + _places(x, e)
    total: Size = 1
    for s in shape:
        total = total * s
    ones = constant(1.0) if weights is None else _real_weights(weights)
    whole = wrap(reshape(scatter_add(_zeros(total, np.float64), flat, ones), tuple(shape)))
    counts: Any = whole[(slice(None, -1),) * rank].copy()
    if density:
        size = counts.sum()
        for k, e in enumerate(edges):
            counts = counts / diff(wrap(e)).reshape([-1 if j == k else 1 for j, _ in enumerate(edges)])
        counts = counts / size
    return done(counts.node), tuple(wrap(e) for e in edges)


def _columns(sample: Any) -> list[Node]:
    """Return the coordinates of a sample: a matrix with a row for each point, or a list with a row for each coordinate."""
    if isinstance(sample, list | tuple):
        nodes = [node_of(c) for c in sample]
        dtype = np.result_type(*(n.type.dtype for n in nodes))
        return [astype(n, dtype) for n in nodes]
    x = tensor(sample)
    if x.ndim != 2:
        x = x.reshape((1, -1)).T if x.ndim < 2 else x
    return [x[:, k].node for k in builtins.range(int(x.shape[1]))]


@implements(np.histogram2d)
def histogram2d(x: Any, y: Any, bins: Any = 10, range: Any = None, density: Any = None, weights: Any = None) -> Any:
    """Implement ``np.histogram2d``."""
    if not same(node_of(x).type.shape[0], node_of(y).type.shape[0]):
        raise ShapeError("x and y must have the same length.")
    several = isinstance(bins, list | tuple) and len(bins) in {1, 2}
    if not several and np.ndim(bins):
        bins = [bins, bins]
    counts, edges = histogramdd([x, y], bins, range, density, weights)
    return counts, edges[0], edges[1]


def _real_weights(weights: Any) -> Node:
    return cast_to(node_of(weights), np.float64)


@implements(np.bincount)
def bincount(x: Any, /, weights: Any = None, minlength: Any = 0) -> Any:
    """Implement ``np.bincount``, whose length depends on the largest element."""
    index = as_indices(x)
    if index.type.ndim != 1:
        raise ShapeError("object too deep for desired array" if index.type.ndim else "object of too small depth")
    if index.type.dtype.kind not in "biu":
        raise cast_error(np.float64, np.int64)
    if not isinstance(minlength, Tensor) and minlength < 0:
        raise ValueError("'minlength' must not be negative")
    values = constant(np.int64(1)) if weights is None else _real_weights(weights)
    if weights is not None and not same(values.type.shape[0], index.type.shape[0]):
        raise ShapeError("The weights and list don't have the same length.")
    index = in_range(
        astype(index, np.int64), 0, constant(np.int64(2**62)), "'list' argument must have no negative elements"
    )
    least = as_size(minlength)
    if index.type.size == 0:
        return done(_zeros(least, np.int64))
    length = folded(folds.MAX, index, 0, initial=-1) + 1
    length = scalar.maximum(length, size_node(least))
    return done(scatter_add(_zeros(as_size(wrap(length)), values.type.dtype), index, values))


@implements(np.digitize)
def digitize(x: Any, bins: Any, right: bool = False) -> Any:
    """Implement ``np.digitize``: among edges that increase or decrease."""
    value, edges = node_of(x), node_of(bins)
    if value.type.dtype.kind == "c":
        raise DTypeError("x may not be complex")
    side = "left" if right else "right"
    known_edges = constant_value(edges)
    if known_edges is not None:
        before, after = known_edges[:-1], known_edges[1:]
        falling = not (before < after).any() and bool((before > after).any())
        if not falling and (before > after).any():
            raise ValueError("bins must be monotonically increasing or decreasing")
        return done(_falling(edges, value, side) if falling else sorting.searchsorted(edges, value, side))
    up, down = (fold(folds.ALL, _ordered(edges, wrong), (0,)) for wrong in (scalar.greater, scalar.less))
    up = require(up, scalar.logical_or(up, down), "bins must be monotonically increasing or decreasing")
    return done(scalar.where(up, sorting.searchsorted(edges, value, side), _falling(edges, value, side)))


def _falling(edges: Node, value: Node, side: str) -> Node:
    """Return the places of values among edges that decrease."""
    return size_node(edges.type.shape[0]) - sorting.searchsorted(flip(edges, (0,)), value, side)
