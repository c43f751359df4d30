"""Matrices in the last two axes: transposes, triangles and diagonals; and the dtypes and shapes of linear algebra."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from tensormagic.ir.errors import DTypeError, ShapeError
from tensormagic.ir.node import Node
from tensormagic.ir.operation import Guard
from tensormagic.ir.type import Size, Type
from tensormagic.ops.fold import reduce_sum
from tensormagic.ops.indices.gather import gather
from tensormagic.ops.leaf import iota, size_node
from tensormagic.ops.move import broadcast, expand_dims, reshape, slice_, transpose
from tensormagic.ops.move_kind import same, show
from tensormagic.ops.op import Tangent
from tensormagic.ops.pointwise import astype
from tensormagic.ops.scalars.scalar import conjugate, equal, greater, greater_equal, less, less_equal, real, where

# matrices in the last two axes ----------------------------------------------------------------------------------------


def swap(x: Node) -> Node:
    """Return the transposes of the matrices in the last two axes."""
    rank = x.type.ndim
    return transpose(x, (*range(rank - 2), rank - 1, rank - 2))


def adjoint(x: Node) -> Node:
    """Return the conjugate transposes of the matrices in the last two axes."""
    return conjugate(swap(x)) if x.type.dtype.kind == "c" else swap(x)


def mask(x: Node, relation: Callable[..., Node]) -> Node:
    """Return ``relation(row, column)`` for every element of matrices."""
    shape, rank = x.type.shape[-2:], x.type.ndim
    return (
        broadcast(relation(iota(shape, 0), iota(shape, 1)), x.type.shape)
        if rank > 2
        else relation(iota(shape, 0), iota(shape, 1))
    )


def tril(x: Node) -> Node:
    """Return the lower triangles, diagonals included."""
    return where(mask(x, greater_equal), x, 0)


def triu(x: Node) -> Node:
    """Return the upper triangles, diagonals included."""
    return where(mask(x, less_equal), x, 0)


def diagonals(x: Node) -> Node:
    """Return the diagonals of square matrices."""
    return reduce_sum(where(mask(x, equal), x, 0), (x.type.ndim - 1,))


def diagonal(x: Node, first: int, second: int) -> Node:
    """Return the elements whose indices along two axes are equal, along a new last axis."""
    rest = tuple(k for k in range(x.type.ndim) if k not in {first, second})
    rows, columns = x.type.shape[first], x.type.shape[second]
    flat = reshape(transpose(x, (*rest, first, second)), (*(x.type.shape[k] for k in rest), rows * columns))
    return gather(flat, diagonal_places(rows, columns), len(rest))


def diagonal_places(rows: Size, columns: Size) -> Node:
    """Return the flat indices of the diagonal among the elements of a matrix in C order."""
    return iota((rows,), 0) * size_node(columns + 1)


def mirrored(x: Node, *, lower: bool, hermitian: bool = True) -> Node:
    """Return the symmetric (Hermitian) matrices given by one triangle, as LAPACK reads them."""
    kept = where(mask(x, greater if lower else less), x, adjoint(x) if hermitian else swap(x))
    own = astype(real(x), x.type.dtype) if hermitian and x.type.dtype.kind == "c" else x
    return where(mask(x, equal), own, kept)


def as_row(x: Node) -> Node:
    """Return a vector as the one row of a matrix."""
    return expand_dims(x, (x.type.ndim - 1,))


def as_column(x: Node) -> Node:
    """Return a vector as the one column of a matrix."""
    return expand_dims(x, (x.type.ndim,))


def scaled(x: Node, factors: Node) -> Node:
    """Return ``x`` times real factors."""
    return x * astype(factors, x.type.dtype)


def trace_of_product(x: Node, y: Node) -> Node:
    """Return ``trace(x @ y)``."""
    rank = y.type.ndim
    return reduce_sum(x * swap(y), (rank - 2, rank - 1))


def real_part(x: Node) -> Node:
    """Return the real part; real numbers are returned unchanged."""
    return real(x) if x.type.dtype.kind == "c" else x


def leading(x: Node, k: Size) -> Node:
    """Return the first ``k`` columns."""
    whole = tuple((0, s, 1) for s in x.type.shape[:-1])
    return x if same(x.type.shape[-1], k) else slice_(x, (*whole, (0, k, 1)))


# types ----------------------------------------------------------------------------------------------------------------


def common_dtype(*nodes: Node) -> np.dtype[Any]:
    """Return the dtype that ``numpy.linalg`` computes in."""
    for n in nodes:
        if n.type.dtype.kind not in "biufc" or n.type.dtype == np.float16:
            raise DTypeError(f"array type {n.type.dtype} is unsupported in linalg")
    dtypes = [n.type.dtype for n in nodes]
    single = all(d in {np.dtype(np.float32), np.dtype(np.complex64)} for d in dtypes)
    if any(d.kind == "c" for d in dtypes):
        return np.dtype(np.complex64 if single else np.complex128)
    return np.dtype(np.float32 if single else np.float64)


def real_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return the dtype of real parts."""
    return np.dtype({"F": "f", "D": "d"}.get(dtype.char, dtype.char))


def typed(dtype: np.dtype[Any], shape: tuple[Size, ...]) -> Type:
    """Return the type of an array, or of a NumPy scalar."""
    return Type(dtype, shape, "array" if shape else "scalar")


def matrix(x: Node) -> tuple[tuple[Size, ...], Size, Size]:
    """Return leading axes, rows and columns; raise ShapeError for fewer than two axes."""
    if x.type.ndim < 2:
        raise ShapeError(f"{x.type.ndim}-dimensional array given. Array must be at least two-dimensional")
    *lead, m, n = x.type.shape
    return tuple(lead), m, n


def square(x: Node) -> tuple[tuple[Size, ...], Size]:
    """Return leading axes and order of square matrices; raise ShapeError for others."""
    lead, m, n = matrix(x)
    if not same(m, n):
        raise ShapeError(f"Last 2 dimensions of the array must be square, and its shape is {show(x.type.shape)}")
    return lead, n


def square_guards(node: Node) -> list[Guard]:
    """Return the guards that the matrices of the first operand are square."""
    _, m, n = matrix(node.args[0])
    return [] if m == n else [(m, "==", n)]


def prepared(a: Node) -> Node:
    """Return an operand in the dtype that ``numpy.linalg`` computes in."""
    return astype(a, common_dtype(a))


def square_type(args: tuple[Node, ...], _params: Mapping[str, Any]) -> Type:
    """Return the type of a result with the shape of the square matrices."""
    square(args[0])
    return args[0].type


def one(node: Node, tangents: Sequence[Tangent]) -> tuple[Node, Node]:
    """Return the only operand of a call, and its tangent."""
    (t,) = tangents
    if t is None:
        raise AssertionError(node.op.name)
    return node.args[0], t
