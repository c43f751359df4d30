"""NumPy's grids and index tricks in captured code: meshgrid, mgrid, ogrid, r_, c_, ix_, indices and the like."""

from __future__ import annotations

import builtins
import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from tensormagic.capture.errors.refusal import needs_value, refuse
from tensormagic.capture.inputs.stand_ins import StandIn
from tensormagic.capture.library.creation import arange, linspace
from tensormagic.capture.library.joining import concatenate_, stack
from tensormagic.capture.library.ordering import as_indices
from tensormagic.capture.names import FUNCTIONS, implements
from tensormagic.capture.values.arguments import done, extent_number, shape_of, tensor
from tensormagic.capture.values.operands import has_lazy, node_of
from tensormagic.capture.values.value import Tensor, as_size
from tensormagic.ir.errors import DTypeError, ShapeError
from tensormagic.ir.node import Node
from tensormagic.ir.type import Size
from tensormagic.ops.effects.checks import in_range
from tensormagic.ops.leaf import constant, constant_value, iota, size_node
from tensormagic.ops.move import reshape
from tensormagic.ops.pointwise import astype
from tensormagic.ops.scalars import scalar


@implements(np.meshgrid)
def meshgrid(*xi: Any, copy: bool = True, sparse: bool = False, indexing: str = "xy") -> Any:
    """Implement ``np.meshgrid``."""
    if indexing not in {"xy", "ij"}:
        raise ValueError("Valid values for `indexing` are 'xy' and 'ij'.")
    rows = [tensor(x).reshape(-1) for x in xi]
    order = list(range(len(rows)))
    if indexing == "xy" and len(rows) > 1:
        order[0], order[1] = 1, 0
    wide = [x.reshape(*(-1 if k == order[j] else 1 for k in range(len(rows)))) for j, x in enumerate(rows)]
    if not sparse:
        wide = FUNCTIONS[np.broadcast_arrays](*wide)
    return tuple(x.copy() for x in wide) if copy else tuple(wide)


@implements(np.indices)
def indices(dimensions: Any, dtype: Any = int, sparse: bool = False) -> Any:
    """Implement ``np.indices``."""
    dimensions = tuple(dimensions) if isinstance(dimensions, Iterator) else dimensions
    if not isinstance(dimensions, tuple | list) and not np.ndim(dimensions):
        raise TypeError("np.indices takes a sequence of extents")
    shape = shape_of(dimensions)
    ramps = [astype(iota(shape, k), dtype) for k in range(len(shape))]
    if not sparse:
        return stack([done(r) for r in ramps]) if ramps else done(constant(np.zeros((0,), dtype)))
    alone = [tuple(s if j == k else 1 for j, s in enumerate(shape)) for k in range(len(shape))]
    return tuple(done(astype(iota(a, k), dtype)) for k, a in enumerate(alone))


@implements(np.fromfunction)
def fromfunction(function: Any, shape: Any, *, dtype: Any = float, like: Any = None, **options: Any) -> Any:
    """Implement ``np.fromfunction``: the function is called with the indices along each axis."""
    if like is not None:
        refuse("np.fromfunction with like=", "Leave the option out.")
    sizes = shape_of(shape)
    return function(*(done(astype(iota(sizes, k), dtype)) for k in range(len(sizes))), **options)


@implements(np.ix_)
def ix_(*args: Any) -> Any:
    """Implement ``np.ix_``."""
    found = []
    for k, arg in enumerate(args):
        x = as_indices(arg)
        if x.type.ndim != 1:
            raise ShapeError("Cross index must be 1 dimensional")
        if x.type.dtype.kind == "b":
            mask = constant_value(x)
            if mask is None:
                refuse(
                    "np.ix_ of a mask that depends on data", "Use np.flatnonzero(mask), or run the cell with --plain."
                )
            x = constant(np.flatnonzero(mask))
        found.append(done(reshape(x, tuple(x.type.shape[0] if j == k else 1 for j in range(len(args))))))
    return tuple(found)


# flat indices ---------------------------------------------------------------------------------------------------------


def _flat_order(shape: tuple[Size, ...], order: str) -> list[int]:
    """Return the axes, starting with the one that changes fastest."""
    if order not in {"C", "F"}:
        raise ValueError(f"order must be one of 'C' or 'F' (got {order!r})")
    axes = list(range(len(shape)))
    return axes if order == "F" else axes[::-1]


@implements(np.unravel_index)
def unravel_index(indices: Any, shape: Any, order: str = "C") -> Any:
    """Implement ``np.unravel_index``; an index out of bounds is a ValueError when the graph runs."""
    sizes = shape_of(shape)
    node = as_indices(indices)
    if node.type.dtype.kind not in "iu":
        raise DTypeError("only int indices permitted")
    total: Size = 1
    for s in sizes:
        total = total * s
    node = in_range(astype(node, np.int64), 0, total, f"index is out of bounds for array with size {total}")
    found: dict[int, Node] = {}
    for axis in _flat_order(sizes, order):
        extent = size_node(sizes[axis])
        found[axis] = scalar.remainder(node, extent)
        node = scalar.floor_divide(node, extent)
    return tuple(done(found[k]) for k in range(len(sizes)))


@implements(np.ravel_multi_index)
def ravel_multi_index(multi_index: Any, dims: Any, mode: Any = "raise", order: str = "C") -> Any:
    """Implement ``np.ravel_multi_index``; an index out of bounds is a ValueError when the graph runs, or wraps, or is clipped."""
    sizes = shape_of(dims)
    rows = multi_index
    if isinstance(rows, Tensor | np.ndarray):
        whole = tensor(rows)
        rows = [whole[k] for k in range(extent_number(whole.node, 0))]
    if len(rows) != len(sizes):
        raise ValueError(f"parameter multi_index must be a sequence of length {len(sizes)}")
    modes = mode if isinstance(mode, tuple) else (mode,) * len(sizes)
    places = [_within(as_indices(r), s, m) for r, s, m in zip(rows, sizes, modes, strict=True)]
    flat: Node = constant(0)
    factor: Size = 1
    for axis in _flat_order(sizes, order):
        flat = flat + places[axis] * size_node(factor)
        factor = factor * sizes[axis]
    return done(flat)


def _within(index: Node, extent: Size, mode: str) -> Node:
    if index.type.dtype.kind not in "biu":
        raise DTypeError("only int indices permitted")
    index = astype(index, np.int64) if index.type.dtype.kind == "b" else index
    index = astype(index, np.int64)
    if mode == "raise":
        return in_range(index, 0, extent, "invalid entry in coordinates array")
    if mode == "wrap":
        return scalar.remainder(index, size_node(extent))
    if mode == "clip":
        return scalar.maximum(scalar.minimum(index, size_node(extent - 1)), 0)
    raise ValueError(f"clipmode must be one of 'clip', 'raise', or 'wrap' (got {mode!r})")


# index tricks ---------------------------------------------------------------------------------------------------------


def _span(item: slice) -> Any:
    """Return the values of a slice in brackets: a range, or for an imaginary step so many values with both ends."""
    start = 0 if item.start is None else item.start
    step = 1 if item.step is None else item.step
    if isinstance(step, complex):
        return linspace(start, item.stop, int(abs(step)))
    return arange(start, item.stop, step)


class _Of(StandIn):
    """Represents an object of NumPy's, by its name there."""

    __name__: str

    def real(self) -> Any:
        """Return NumPy's own object."""
        return getattr(np, self.__name__)

    @property
    def own_class(self) -> type:
        """Return NumPy's class of the object."""
        return type(self.real())

    @property
    def identity(self) -> Any:
        """Return NumPy's own object."""
        return self.real()

    def __repr__(self) -> str:
        return repr(self.real())


class Joined(_Of):
    """Represents ``np.r_`` or ``np.c_``: slices as ranges, joined along an axis."""

    def __init__(self, name: str, axis: int, ndmin: int, trans1d: int) -> None:
        self.__name__ = name
        self.directions = (axis, ndmin, trans1d)

    def __getitem__(self, key: Any) -> Any:
        items = list(key) if isinstance(key, tuple) else [key]
        axis, ndmin, trans1d = self.directions
        if items and isinstance(items[0], str):
            axis, ndmin, trans1d = self._directive(items.pop(0))
        weak: list[Any] = []
        parts: list[Node] = []
        for item in items:
            if isinstance(item, str):
                raise ValueError("special directives must be the first entry.")  # noqa: TRY004 (as NumPy)
            node = node_of(_span(item) if isinstance(item, slice) else item)
            number = node.type.form == "python" and not isinstance(item, slice)
            weak.append({"b": False, "i": 0, "f": 0.0, "c": 0j}[node.type.dtype.kind] if number else node.type.dtype)
            parts.append(node if number else _placed(node, ndmin, trans1d))
        dtype = np.result_type(*weak)
        wide = [reshape(p, (1,) * max(ndmin, 1)) if not p.type.ndim else p for p in parts]
        return concatenate_([astype(p, dtype) for p in wide], axis)

    def _directive(self, text: str) -> tuple[int, int, int]:
        if text in {"r", "c"}:
            refuse(f"np.{self.__name__} with {text!r}, which makes an np.matrix", "Use np.stack or np.concatenate.")
        try:
            numbers = [int(v) for v in text.split(",")]
        except ValueError:
            raise ValueError(f"unknown special directive {text!r}") from None
        axis, ndmin, trans1d = self.directions
        return (*numbers, *(axis, ndmin, trans1d)[len(numbers) :])[:3]  # type: ignore[return-value]


def _placed(x: Node, ndmin: int, trans1d: int) -> Node:
    """Return ``x`` with at least ``ndmin`` axes, its own ones placed where ``trans1d`` says."""
    missing = ndmin - x.type.ndim
    if missing <= 0:
        return x
    if trans1d == -1:
        return reshape(x, (*[1] * missing, *x.type.shape))
    first = trans1d if trans1d >= 0 else trans1d + missing + 1
    return reshape(x, (*[1] * first, *x.type.shape, *[1] * (missing - first)))


class Grid(_Of):
    """Represents ``np.mgrid`` or ``np.ogrid``: a grid of the ranges in brackets, full or open."""

    def __init__(self, name: str, *, sparse: bool) -> None:
        self.__name__ = name
        self.sparse = sparse

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, slice):
            return _grid_span(key)
        rows = [_grid_span(k) for k in key]
        dtype = np.result_type(*(r.dtype for r in rows), np.int64)
        rows = [r.astype(dtype) for r in rows]
        found = meshgrid(*rows, sparse=self.sparse, indexing="ij")
        return found if self.sparse else stack(list(found))


def _grid_span(item: slice) -> Any:
    """Return the values of one axis, computed as the grids compute them: ramp times step, plus start."""
    start = 0 if item.start is None else item.start
    step = 1 if item.step is None else item.step
    if isinstance(step, complex):
        count = int(abs(step))
        step = (item.stop - start) / float(count - 1) if count != 1 else step.imag
        return tensor(arange(count).astype(np.float64) * step + start)
    if any(map(has_lazy, (start, item.stop, step))):
        if all(_is_size(v) for v in (start, item.stop, step)):
            return tensor(arange(start, item.stop, step))
        why = "a grid whose ends depend on data"
        start, stop, step = (_known(v, why) for v in (start, item.stop, step))
        item = slice(start, stop, step)
    count = builtins.max(0, math.ceil((item.stop - start) / step))
    return tensor(arange(count).astype(np.result_type(0, start, item.stop, step)) * step + start)


def _known(value: Any, why: str) -> Any:
    """Return a number of a grid, computed if it is lazy."""
    if not isinstance(value, Tensor):
        return value
    needs_value(why, "Give the number of points instead: np.mgrid[a:b:10j].", value.node)
    return value.numpy()


def _is_size(value: Any) -> bool:
    if not isinstance(value, Tensor):
        return isinstance(value, int)
    try:
        as_size(value)
    except TypeError:
        return False
    return True


implements(np.r_)(Joined("r_", 0, 1, -1))  # type: ignore[arg-type]
implements(np.c_)(Joined("c_", -1, 2, 0))  # type: ignore[arg-type]
implements(np.mgrid)(Grid("mgrid", sparse=False))  # type: ignore[arg-type]
implements(np.ogrid)(Grid("ogrid", sparse=True))  # type: ignore[arg-type]
