"""Sorting, and elements by their indices, on lazy arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensormagic.capture import context
from tensormagic.capture.names import implements
from tensormagic.capture.reductions import axis_of
from tensormagic.capture.value import Tensor, hooks, node_of, refuse, wrap
from tensormagic.ir.errors import ShapeError
from tensormagic.ir.node import Node
from tensormagic.ir.type import apply
from tensormagic.ops import fold as folds
from tensormagic.ops import gather, scalar, sorting
from tensormagic.ops.fold import axes_of, fold
from tensormagic.ops.leaf import size_node
from tensormagic.ops.move import expand_dims, reshape, slice_, transpose
from tensormagic.ops.pointwise import astype


def _done(node: Node) -> Tensor:
    return wrap(context.record(node))


def _no_order(name: str, order: Any) -> None:
    if order is not None:
        refuse(f"{name} with order=", "It is for structured arrays: leave it out.")


@implements(np.sort)
def sort(
    a: Any, axis: int | None = -1, kind: str | None = None, order: Any = None, *, stable: bool | None = None
) -> Any:
    """``np.sort``: a sorted copy."""
    _no_order("np.sort", order)
    return _done(sorting.sort(node_of(a), axis, kind, stable=stable))


@implements(np.argsort, method="argsort")
def argsort(
    a: Any, axis: int | None = -1, kind: str | None = None, order: Any = None, *, stable: bool | None = None
) -> Any:
    """``np.argsort``."""
    _no_order("np.argsort", order)
    return _done(sorting.argsort(node_of(a), axis, kind, stable=stable))


def _sort_in_place(
    self: Tensor, axis: int = -1, kind: str | None = None, order: Any = None, *, stable: bool | None = None
) -> None:
    _no_order("sort", order)
    self[...] = wrap(sorting.sort(self.node, axis, kind, stable=stable))


hooks.methods["sort"] = _sort_in_place


@implements(np.take, method="take")
def take(a: Any, indices: Any, axis: int | None = None, out: Any = None, mode: str = "raise") -> Any:
    """``np.take``; an index out of bounds is an IndexError, or with ``mode`` wraps around or is clipped."""
    if out is not None:
        refuse("np.take with out=", "Assign the result instead.")
    x, index = node_of(a), as_indices(indices)
    if mode != "raise":
        extent = size_node(x.type.size if axis is None else x.type.shape[axes_of(x, axis)[0]])
        if mode == "wrap":
            index = scalar.remainder(index, extent)
        elif mode == "clip":
            index = scalar.minimum(scalar.maximum(index, 0), extent - 1)
        else:
            raise ValueError(f"clipmode must be one of 'clip', 'raise', or 'wrap' (got '{mode}')")
    return _done(gather.gather(x, index, None if axis is None else int(axis)))


def as_indices(value: Any) -> Node:
    """An operand as an array of indices: an empty list holds integers."""
    if isinstance(value, list | tuple) and not len(value):
        return node_of(np.zeros(0, np.int64))
    node = node_of(value)
    return astype(node, np.int64) if node.type.form == "python" else node


@implements(np.take_along_axis)
def take_along_axis(arr: Any, indices: Any, axis: int | None = -1) -> Any:
    """``np.take_along_axis``."""
    index = node_of(indices)
    if index.type.dtype.kind not in "iu":
        raise IndexError("`indices` must be an integer array")
    if axis is None and index.type.ndim != 1:
        raise ShapeError("when axis=None, `indices` must have a single dimension.")
    return _done(gather.take_along_axis(node_of(arr), index, axis))


@implements(np.median)
def median(a: Any, axis: Any = None, out: Any = None, overwrite_input: bool = False, keepdims: bool = False) -> Any:
    """``np.median``: the mean of the one or two middle elements; nan where there is one."""
    if out is not None or overwrite_input:
        refuse("np.median with out= or overwrite_input=", "Assign the result instead.")
    x = node_of(a)
    x = x if x.type.inexact else astype(x, np.float64)
    if x.type.dtype.kind == "c":
        refuse("np.median of complex numbers", "Take the real part.")
    axes = axes_of(x, axis_of(axis))
    rest = tuple(k for k in range(x.type.ndim) if k not in axes)
    kept = tuple(x.type.shape[k] for k in rest)
    count = folds.count(x, axes)
    rows = sorting.sort(reshape(transpose(x, (*rest, *axes)), (*kept, count)))

    def at(position: Any) -> Node:
        return reshape(slice_(rows, (*((0, s, 1) for s in kept), (position, 1, 1))), kept)

    low, high = at(apply("floordiv", count - 1, 2)), at(apply("floordiv", count, 2))
    spoilt = fold(folds.ANY, scalar.isnan(rows), (len(kept),))
    middle = scalar.where(spoilt, np.nan, (low + high) / 2)
    return _done(expand_dims(middle, axes) if keepdims else middle)
