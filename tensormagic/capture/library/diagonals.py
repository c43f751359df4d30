"""NumPy's diagonals and triangles, on lazy arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensormagic.capture import context
from tensormagic.capture.errors.deprecated import show_deprecations
from tensormagic.capture.errors.refusal import refuse
from tensormagic.capture.library.joining import stack
from tensormagic.capture.names import implements
from tensormagic.capture.values.arguments import array_alone, done, known, one_axis, tensor
from tensormagic.capture.values.operands import node_of
from tensormagic.capture.values.value import as_size
from tensormagic.ir.errors import ShapeError
from tensormagic.ir.node import Node
from tensormagic.ir.type import Size, apply
from tensormagic.ops.leaf import constant, iota, size_node
from tensormagic.ops.matrices.matrix import diagonal as diagonal_of
from tensormagic.ops.move import broadcast, concatenate, slice_
from tensormagic.ops.move_kind import same
from tensormagic.ops.pointwise import astype
from tensormagic.ops.scalars import scalar
from tensormagic.ops.update import zeros_like


@implements(np.diagonal, method="diagonal")
def diagonal(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Any:
    """Implement ``np.diagonal``."""
    x = tensor(a)
    if x.ndim < 2:
        raise ShapeError("diag requires an array of at least two dimensions")
    offset = int(known(offset, "the offset of a diagonal"))
    first, second = one_axis(axis1, x.ndim), one_axis(axis2, x.ndim)
    if first == second:
        raise ShapeError("axis1 and axis2 cannot be the same")
    order = [k for k in range(x.ndim) if k not in {first, second}]
    moved = x.transpose([*order, first, second])
    return moved.view_of(lambda n: _diagonal(n, offset), None, lambda v: np.diagonal(v, offset, -2, -1))


def _diagonal(moved: Node, offset: int) -> Node:
    """Return the diagonal of the last two axes."""
    *lead, rows, columns = moved.type.shape
    below: Size = rows + min(offset, 0)
    right: Size = columns - max(offset, 0)
    length = context.settle(apply("max", apply("min", below, right), 0))
    if length == 0:
        return broadcast(constant(moved.type.dtype.type(0)), (*lead, 0))
    whole = tuple((0, s, 1) for s in lead)
    top, left = apply("min", max(-offset, 0), rows), apply("min", max(offset, 0), columns)
    square = slice_(moved, (*whole, (top, length, 1), (left, length, 1)))
    return diagonal_of(square, len(lead), len(lead) + 1)


@implements(np.diag)
def diag(v: Any, k: int = 0) -> Any:
    """Implement ``np.diag``."""
    x = node_of(v)
    if x.type.ndim == 2:
        return diagonal(v, k)
    if x.type.ndim != 1:
        raise ShapeError("Input must be 1- or 2-d.")
    return done(_on_diagonal(x, int(known(k, "the offset of np.diag"))))


def _on_diagonal(x: Node, k: int) -> Node:
    """Return the square matrix with ``x`` on its ``k``-th diagonal: each row and column reads its own element."""
    n = x.type.shape[0]
    extent = n + abs(k)
    shape = (extent, extent)
    zero = broadcast(node_of(x.type.dtype.type(0)), (abs(k),)) if k else None
    row = x
    if zero is not None:
        row = concatenate([zero, x] if k > 0 else [x, zero], 0)  # at its column
    on = scalar.equal(iota(shape, 1), iota(shape, 0) + k if k else iota(shape, 0))
    return scalar.where(on, broadcast(row, shape), x.type.dtype.type(0))


@implements(np.diagflat)
def diagflat(v: Any, k: int = 0) -> Any:
    """Implement ``np.diagflat``."""
    return diag(tensor(v).ravel(), k)


def _triangle(keep: Any) -> Any:
    def triangle(m: Any, k: Any = 0) -> Any:
        x = node_of(m)
        if not x.type.ndim:
            raise ShapeError("np.tril and np.triu take arrays of at least one axis")
        x = broadcast(x, (x.type.shape[0], x.type.shape[0])) if x.type.ndim == 1 else x
        shape = x.type.shape
        rows, columns = iota(shape, len(shape) - 2), iota(shape, len(shape) - 1)
        return done(scalar.where(keep(columns, rows + size_node(as_size(_whole(k)))), x, zeros_like(x)))

    return triangle


def _whole(k: Any) -> Any:
    """Return the number of a diagonal as an int: NumPy accepts floats too, with its deprecation warning."""
    if not isinstance(k, float | np.floating):
        return k
    show_deprecations(np.tri, 1, 1, k)
    if not k.is_integer():
        refuse(f"a triangle from diagonal {k}", "Use a whole number, such as int(k).")
    return int(k)


implements(np.tril)(_triangle(scalar.less_equal))
implements(np.triu)(_triangle(scalar.greater_equal))


def _from_array(function: Any) -> Any:
    """Return ``np.tril_indices_from`` or the like: the indices for an array's extents, as numbers."""

    def indices(arr: Any, k: int = 0) -> Any:
        x = array_alone(arr)
        if x.ndim != 2:
            raise ShapeError("input array must be 2-d")
        return function(int(x.shape[0]), k, int(x.shape[1]))

    return indices


def _of_numbers(function: Any) -> Any:
    """Wrap a function of extents whose result size is no polynomial in them: the extents are specialised to numbers."""

    def indices(*args: Any, **options: Any) -> Any:
        numbers = [None if a is None else int(known(a, f"np.{function.__name__} of an extent")) for a in args]
        found = function(*numbers, **{k: int(known(v, k)) for k, v in options.items() if v is not None})
        return tuple(map(tensor, found))

    return indices


implements(np.tril_indices_from)(_from_array(np.tril_indices))
implements(np.triu_indices_from)(_from_array(np.triu_indices))
implements(np.tril_indices)(_of_numbers(np.tril_indices))
implements(np.triu_indices)(_of_numbers(np.triu_indices))
implements(np.diag_indices)(_of_numbers(np.diag_indices))


@implements(np.diag_indices_from)
def diag_indices_from(arr: Any) -> Any:
    """Implement ``np.diag_indices_from``."""
    x = tensor(arr)
    if x.ndim < 2:
        raise ShapeError("input array must be at least 2-d")
    if not all(same(x.type.shape[0], s) for s in x.type.shape[1:]):
        raise ShapeError("All dimensions of input must be of equal length")
    return (done(iota((x.type.shape[0],), 0)),) * x.ndim


@implements(np.vander)
def vander(x: Any, N: Any = None, increasing: bool = False) -> Any:
    """Implement ``np.vander``: each power is the one before times ``x``, as NumPy computes it."""
    value = node_of(x)
    if value.type.ndim != 1:
        raise ShapeError("x must be a one-dimensional array or sequence.")
    count = int(tensor(x).shape[0]) if N is None else int(known(N, "the number of columns of np.vander"))
    value = astype(value, np.promote_types(value.type.dtype, np.int64))
    columns = [broadcast(node_of(value.type.dtype.type(1)), value.type.shape)]
    while len(columns) < count:
        columns.append(columns[-1] * value)
    if not count:
        return done(broadcast(node_of(value.type.dtype.type(0)), (value.type.shape[0], 0)))
    return stack(columns if increasing else columns[::-1], 1)
