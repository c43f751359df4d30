"""Norms of vectors and matrices, condition numbers and ranks, as in ``np.linalg``."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from tensormagic.capture.library.linear_algebra import max_extent
from tensormagic.capture.library.reductions import axis_of
from tensormagic.capture.names import implements
from tensormagic.capture.values.arguments import pad_empty_axes
from tensormagic.capture.values.operands import node_of
from tensormagic.capture.values.value import done, wrap
from tensormagic.ir.errors import ShapeError
from tensormagic.ir.node import Node
from tensormagic.ops import fold as folds
from tensormagic.ops.contract import einsum
from tensormagic.ops.fold import axes_of, fold, reduce_sum
from tensormagic.ops.form import to_form
from tensormagic.ops.leaf import iota
from tensormagic.ops.matrices import determinants, linalg
from tensormagic.ops.move import broadcast, expand_dims, reshape, transpose
from tensormagic.ops.pointwise import astype
from tensormagic.ops.reverse.squares import is_sum_of_squares
from tensormagic.ops.scalars import scalar


def _root(total: Node) -> Node:
    """Return the square root with derivative 0 at 0; for a sum of squares, the op has that derivative itself."""
    if is_sum_of_squares(total):
        return scalar.sqrt(total)
    zero = scalar.equal(total, 0)
    return scalar.where(zero, 0, scalar.sqrt(scalar.where(zero, 1, total)))


def _floating(x: Node) -> Node:
    return x if x.type.inexact else astype(x, np.float64)


def _square_sum(x: Node) -> Node:
    """Return the sum of the squared absolute values of all elements, by BLAS as NumPy's norm does."""
    flat = reshape(x, (-1,)) if x.type.ndim != 1 else x
    if x.type.dtype.kind != "c":
        return einsum("a,a->", flat, flat)
    parts = (scalar.real(flat), scalar.imag(flat))
    return einsum("a,a->", parts[0], parts[0]) + einsum("a,a->", parts[1], parts[1])


def _squares(x: Node) -> Node:
    return scalar.real(scalar.conjugate(x) * x) if x.type.dtype.kind == "c" else x * x


@implements(np.linalg.norm)
def norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Any:
    """Implement ``np.linalg.norm`` of every order; where the 2-norm is 0, its gradient is 0."""
    node = _floating(node_of(x))
    rank = node.type.ndim
    if axis is None and (ord is None or (ord in ("f", "fro") and rank == 2) or (ord == 2 and rank == 1)):
        whole = _root(_square_sum(node))
        return done(expand_dims(whole, tuple(range(rank))) if keepdims else whole)
    axes = tuple(range(rank)) if axis is None else _as_axes(axis)
    if len(axes) == 1:
        return done(_vector_norm(node, ord, axes_of(node, axes), keepdims))
    if len(axes) == 2:
        return done(_matrix_norm(node, ord, axes, keepdims))
    raise ShapeError("Improper number of dimensions to norm.")


def _as_axes(axis: Any) -> tuple[int, ...]:
    found = axis_of(axis)
    return found if isinstance(found, tuple) else (found,)


def _vector_norm(x: Node, order: Any, axes: tuple[int, ...], keepdims: bool) -> Node:
    def reduced(op: folds.Fold, of: Node) -> Node:
        return fold(op, of, axes, keepdims=keepdims)

    if isinstance(order, str):
        raise ValueError(f"Invalid norm order '{order}' for vectors")  # noqa: TRY004 (NumPy's)
    if order is None or order == 2:
        return _root(reduced(folds.SUM, _squares(x)))
    size = scalar.absolute(x)
    if order in {np.inf, -np.inf}:
        return _largest(size, axes, keepdims=keepdims) if order > 0 else reduced(folds.MIN, size)
    if order == 0:
        return astype(reduced(folds.SUM, astype(scalar.not_equal(x, 0), size.type.dtype)), size.type.dtype)
    if order == 1:
        return reduced(folds.SUM, size)
    if order < 1:  # where an element is 0, it is the smallest: the derivative by it is 0, as that of the absolute value
        size = scalar.where(scalar.equal(x, 0), 0, size)
    total = reduced(folds.SUM, scalar.power(size, order))
    zero = scalar.equal(total, 0)
    exponent = float(np.reciprocal(np.float64(order)))
    return scalar.where(
        zero, 0.0**exponent if order > 0 else np.inf, scalar.power(scalar.where(zero, 1, total), exponent)
    )


def _largest(sizes: Node, axes: tuple[int, ...], *, keepdims: bool = False) -> Node:
    """Return the maximum of non-negative numbers; 0 for empty axes if this NumPy defines it so."""
    return fold(folds.MAX, pad_empty_axes(sizes, axes, 0) if _has_of_nothing() else sizes, axes, keepdims=keepdims)


@cache
def _has_of_nothing() -> bool:
    """Return whether norms of an empty array that are a maximum are 0, as from NumPy 2.3 on, and no error."""
    try:
        return not np.linalg.norm(np.ones((0, 0)), 1)
    except ValueError:
        return False


def _matrix_norm(x: Node, order: Any, axes: tuple[int, ...], keepdims: bool) -> Node:
    rows, columns = (a % x.type.ndim if -x.type.ndim <= a < x.type.ndim else axes_of(x, a)[0] for a in axes)
    if rows == columns:
        raise ShapeError("Duplicate axes given.")
    both = tuple(sorted((rows, columns)))
    if order in (None, "fro", "f"):
        result = _root(reduce_sum(_squares(x), both))
    elif order in {2, -2, "nuc"}:
        result = _singular_norm(x, order, rows, columns)
    elif order in {1, -1, np.inf, -np.inf}:
        inner, outside = (rows, columns) if abs(order) == 1 else (columns, rows)
        sums = reduce_sum(scalar.absolute(x), (inner,))
        last = (outside - (outside > inner),)
        result = _largest(sums, last) if order > 0 else fold(folds.MIN, sums, last)
    else:
        raise ValueError("Invalid norm order for matrices.")
    return expand_dims(result, both) if keepdims else result


def _singular_norm(x: Node, order: Any, rows: int, columns: int) -> Node:
    others = [k for k in range(x.type.ndim) if k not in {rows, columns}]
    values = linalg.svdvals(transpose(x, (*others, rows, columns)))
    last = (values.type.ndim - 1,)
    if order == 2:
        return _largest(values, last)
    return fold(folds.SUM if order == "nuc" else folds.MIN, values, last)


@implements(np.linalg.vector_norm)
def vector_norm(x: Any, /, *, axis: Any = None, keepdims: bool = False, ord: Any = 2) -> Any:
    """Implement ``np.linalg.vector_norm``: over all axes, or those given, taken together."""
    node = _floating(node_of(x))
    axes = axes_of(node, axis_of(axis))
    return done(_vector_norm(node, ord, axes, keepdims))


@implements(np.linalg.matrix_norm)
def matrix_norm(x: Any, /, *, keepdims: bool = False, ord: Any = "fro") -> Any:
    """Implement ``np.linalg.matrix_norm`` of the last two axes."""
    return done(_matrix_norm(_floating(node_of(x)), ord, (-2, -1), keepdims))


# how near to singular --------------------------------------------------------------------------------------------------


@implements(np.linalg.cond)
def cond(x: Any, p: Any = None) -> Any:
    """Implement ``np.linalg.cond``: by singular values, or by the norms of the matrix and its inverse."""
    node = _floating(node_of(x))
    if any(s == 0 for s in node.type.shape[-2:]):
        raise np.linalg.LinAlgError("cond is not defined on empty arrays")
    result = _by_singular_values(node, p) if p in {None, 2, -2} else _by_inverse(node, p)
    unknown = fold(folds.ANY, scalar.isnan(node), (node.type.ndim - 2, node.type.ndim - 1))
    infinite = scalar.logical_and(scalar.isnan(result), scalar.logical_not(unknown))
    return done(scalar.where(infinite, result.type.dtype.type(np.inf).item(), result))


def _by_singular_values(node: Node, p: Any) -> Node:
    values = wrap(linalg.svdvals(node))
    first, last = (values[..., 0], values[..., -1]) if p != -2 else (values[..., -1], values[..., 0])
    zero = scalar.equal(last.node, 0)  # NumPy divides without a warning
    quotient = first.node / scalar.where(zero, 1, last.node)
    return scalar.where(zero, last.dtype.type(np.inf).item(), quotient)


def _by_inverse(node: Node, p: Any) -> Node:
    """Return the condition number by the norm of the inverse; infinite for singular matrices."""
    sign, _ = determinants.slogdet(node)
    singular = scalar.equal(sign, 0)
    shape = node.type.shape
    square = broadcast(expand_dims(singular, (len(shape) - 2, len(shape) - 1)), shape)
    unit = astype(scalar.equal(iota(shape, len(shape) - 2), iota(shape, len(shape) - 1)), node.type.dtype)
    inverse = linalg.inv(scalar.where(square, unit, node))
    norms = [_matrix_norm(v, p, (-2, -1), keepdims=False) for v in (node, inverse)]
    return scalar.where(singular, norms[0].type.dtype.type(np.inf).item(), norms[0] * norms[1])


@implements(np.linalg.matrix_rank)
def matrix_rank(A: Any, tol: Any = None, hermitian: bool = False, *, rtol: Any = None) -> Any:
    """Implement ``np.linalg.matrix_rank``: the number of singular values above a bound."""
    if tol is not None and rtol is not None:
        raise ValueError("`tol` and `rtol` can't be both set.")
    x = node_of(A)
    if x.type.ndim < 2:
        found = fold(folds.ANY, scalar.not_equal(x, 0), tuple(range(x.type.ndim)))
        return done(to_form(astype(found, np.int64), "python"))
    values = scalar.absolute(linalg.eigvalsh(x)) if hermitian else linalg.svdvals(x)
    last = values.type.ndim - 1
    if tol is None:
        bound = max_extent(x) * float(np.finfo(values.type.dtype).eps) if rtol is None else _column(rtol)
        bound = _largest(values, (last,), keepdims=True) * bound
    else:
        bound = _column(tol)
    return done(reduce_sum(astype(scalar.greater(values, bound), np.int64), (last,)))


def _column(bound: Any) -> Node:
    """Return a bound for every matrix of a stack."""
    node = node_of(bound)
    return expand_dims(node, (node.type.ndim,)) if node.type.ndim else node
