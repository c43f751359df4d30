"""Equations whose solution is a tensor, and least squares, as in ``np.linalg``."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensormagic.capture import context
from tensormagic.capture.errors.refusal import refuse
from tensormagic.capture.library.linear_algebra import max_extent
from tensormagic.capture.names import implements
from tensormagic.capture.values.operands import node_of
from tensormagic.capture.values.value import Tensor, done
from tensormagic.ir.errors import ShapeError
from tensormagic.ir.node import Node
from tensormagic.ir.type import Size, hint, product
from tensormagic.ops import fold as folds
from tensormagic.ops.fold import fold, reduce_sum
from tensormagic.ops.form import to_form
from tensormagic.ops.leaf import constant
from tensormagic.ops.matrices import least_squares, linalg
from tensormagic.ops.move import broadcast, expand_dims, reshape, transpose
from tensormagic.ops.move_kind import same
from tensormagic.ops.pointwise import astype
from tensormagic.ops.scalars import scalar


@implements(np.linalg.tensorsolve)
def tensorsolve(a: Any, b: Any, axes: Any = None) -> Any:
    """Implement ``np.linalg.tensorsolve``."""
    x, right = node_of(a), node_of(b)
    rank = x.type.ndim
    if axes is not None:
        order = [k for k in range(rank) if k not in {int(v) for v in axes}]
        x = transpose(x, (*order, *(int(k) for k in axes)))
    shape = x.type.shape[right.type.ndim - rank :]
    n = product(shape)
    if not same(x.type.size, n * n):
        raise np.linalg.LinAlgError("a is not a square system: prod(a.shape[b.ndim:]) is not prod(a.shape[:b.ndim])")
    flat = reshape(right, (n,))
    return done(to_form(reshape(linalg.solve(reshape(x, (n, n)), flat), shape), "array"))


@implements(np.linalg.tensorinv)
def tensorinv(a: Any, ind: int = 2) -> Any:
    """Implement ``np.linalg.tensorinv``."""
    if ind <= 0:
        raise ValueError("Invalid ind argument.")
    x = node_of(a)
    shape = x.type.shape
    if not shape:
        raise TypeError("np.linalg.tensorinv takes an array with axes")
    n = product(shape[ind:])
    return done(reshape(linalg.inv(reshape(x, (n, -1))), (*shape[ind:], *shape[:ind])))


@implements(np.linalg.lstsq)
def lstsq(a: Any, b: Any, rcond: Any = None) -> Any:
    """Implement ``np.linalg.lstsq``; residuals, if there are any, are those of a matrix of full rank, and an error otherwise."""
    x, right = node_of(a), node_of(b)
    if rcond is not None and not isinstance(rcond, int | float):
        refuse("np.linalg.lstsq with a bound that is captured", "Write rcond as a number.")
    bound = None if rcond is None else float(rcond)
    single = right.type.ndim == 1
    if x.type.ndim != 2 or right.type.ndim not in {1, 2}:
        raise ShapeError(f"lstsq takes a matrix, and a vector or a matrix: not {x.type} and {right.type}")
    columns = expand_dims(right, (1,)) if single else right
    found = least_squares.lstsq(x, columns, bound)
    values = astype(linalg.svdvals(x), found.type.dtype.type(0).real.dtype)
    return (
        done(reshape(found, found.type.shape[:1]) if single else found),
        residuals(x, columns, bound, values.type.dtype),
        done(_rank(x, values, bound)),
        done(values),
    )


def residuals(x: Node, columns: Node, bound: float | None, dtype: Any) -> Tensor:
    """Return sums of squared residuals; empty unless there are more equations than unknowns."""
    if taller(*x.type.shape):
        return done(least_squares.residuals(x, columns, bound))
    return done(constant(np.zeros(0, dtype)))


def taller(rows: Size, columns: Size) -> bool:
    """Return whether there are more rows than columns; the graph is guarded by the answer."""
    if isinstance(rows, int) and isinstance(columns, int):
        return rows > columns
    seen = hint(rows), hint(columns)
    if seen[0] is None or seen[1] is None:
        refuse(
            "least squares of a matrix whose shape is not known",
            "Compute the matrix in an earlier cell; or, for many rows, np.linalg.solve(x.T @ x, x.T @ y).",
        )
    capture = context.current()
    more = seen[0] > seen[1]
    if capture is not None:
        capture.guards.append((rows, ">=", columns + 1) if more else (columns, ">=", rows))
    return more


def _rank(x: Node, values: Node, bound: float | None) -> Node:
    size = max_extent(x) * float(np.finfo(linalg.common_dtype(x)).eps)
    limit = size if bound is None else constant(bound)
    largest = fold(folds.MAX, values, (0,), keepdims=True)
    counted = scalar.greater(values, astype(limit, values.type.dtype) * broadcast(largest, values.type.shape))
    return astype(reduce_sum(astype(counted, np.int64), (0,)), np.int32)
