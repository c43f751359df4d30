"""``scipy.linalg`` on lazy arrays: pivoted factors, polar and Schur form, Sylvester's equation, band matrices."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensormagic.capture.errors.refusal import refuse
from tensormagic.capture.library.finite import finite
from tensormagic.capture.names import implements
from tensormagic.capture.values.arguments import agreeing, done
from tensormagic.capture.values.operands import node_of
from tensormagic.ir.errors import ShapeError
from tensormagic.ir.node import Node
from tensormagic.ir.size import apply
from tensormagic.ops.contract import matmul
from tensormagic.ops.fold import reduce_sum
from tensormagic.ops.indices.gather import gather
from tensormagic.ops.leaf import iota
from tensormagic.ops.matrices import linalg, matrix, spectral, systems
from tensormagic.ops.move import broadcast, concatenate, expand_dims, reshape
from tensormagic.ops.pointwise import astype
from tensormagic.ops.scalars import scalar


def _two_axes(node: Node, name: str) -> Node:
    if node.type.ndim != 2:
        if node.type.ndim < 2:
            raise ValueError(f"The input array must be at least two-dimensional, and has {node.type.ndim} axes")
        refuse(f"scipy.linalg.{name} of a stack of matrices", "Call it for each matrix, or use tm.vmap.")
    return node


@implements("scipy.linalg.lu_factor")
@finite("a")
def lu_factor(a: Any, overwrite_a: bool = False, check_finite: bool = True) -> Any:
    """Implement ``scipy.linalg.lu_factor``: both triangular factors in one matrix, and LAPACK's pivots."""
    rows, low, up = spectral.lu(_two_axes(node_of(a), "lu_factor"))
    m, n = low.type.shape[0], up.type.shape[1]
    k = apply("min", m, n)
    strict = scalar.where(matrix.mask(low, scalar.greater), low, 0)
    # one of the two is square: it is padded with zeros to the other's shape
    wide = _padded(strict, (m, n)), _padded(up, (m, n))
    return done(wide[0] + wide[1]), done(systems.pivots(rows, k))


def _padded(x: Node, shape: tuple[Any, Any]) -> Node:
    """Return a matrix padded with zero rows and columns at the end."""
    for axis in (0, 1):
        missing = shape[axis] - x.type.shape[axis]
        if missing != 0:
            extra = [missing, x.type.shape[1]] if axis == 0 else [x.type.shape[0], missing]
            x = concatenate([x, broadcast(scalar.typed(0, x), tuple(extra))], axis)
    return x


@implements("scipy.linalg.lu_solve")
@finite("b")
def lu_solve(lu_and_piv: Any, b: Any, trans: int = 0, overwrite_b: bool = False, check_finite: bool = True) -> Any:
    """Implement ``scipy.linalg.lu_solve``."""
    lu, piv = map(node_of, lu_and_piv)
    lu = _two_axes(lu, "lu_solve")
    right = node_of(b)
    if trans not in {0, 1, 2}:
        raise ValueError("trans must be 0, 1 or 2")
    n = lu.type.shape[0]
    message = f"Shapes of lu and b are incompatible: {lu.type.shape} and {right.type.shape}"
    columns = expand_dims(right, (1,)) if right.type.ndim == 1 else right
    columns = agreeing(columns, n, columns.type.shape[0], message)
    order = systems.pivoted(piv, n)
    if trans == 0:
        half = linalg.solve_triangular(lu, gather(columns, order, 0), lower=True, unit_diagonal=True)
        found = linalg.solve_triangular(lu, half, lower=False)
    else:
        turned = linalg.swap(lu) if trans == 1 else linalg.adjoint(lu)
        half = linalg.solve_triangular(turned, columns, lower=True)
        half = linalg.solve_triangular(turned, half, lower=False, unit_diagonal=True)
        found = gather(half, _inverse(order), 0)
    return done(reshape(found, (n,)) if right.type.ndim == 1 else found)


def _inverse(order: Node) -> Node:
    n = order.type.shape[0]
    at = scalar.equal(broadcast(expand_dims(order, (0,)), (n, n)), iota((n, n), 0))
    return reduce_sum(astype(at, np.int64) * iota((n, n), 1), (1,))


@implements("scipy.linalg.polar")
@finite("a")
def polar(a: Any, side: str = "right") -> Any:
    """Implement ``scipy.linalg.polar``: by singular values, as SciPy does."""
    if side not in {"right", "left"}:
        raise ValueError("`side` must be either 'right' or 'left'")
    x = node_of(a)
    if x.type.ndim != 2:
        raise ShapeError("`a` must be a 2-D array.")
    w, s, vh = linalg.svd(x, full_matrices=False)
    v = linalg.adjoint(vh)
    row = linalg.as_row(s)
    positive = (
        matmul(linalg.scaled(v, row), vh) if side == "right" else matmul(linalg.scaled(w, row), linalg.adjoint(w))
    )
    return done(matmul(w, vh)), done(positive)


@implements("scipy.linalg.schur")
@finite("a")
def schur(
    a: Any,
    output: str = "real",
    lwork: Any = None,
    overwrite_a: bool = False,
    sort: Any = None,
    check_finite: bool = True,
) -> Any:
    """Implement ``scipy.linalg.schur`` without sorting; it has no derivative here."""
    if output not in {"real", "complex", "r", "c"}:
        raise ValueError("argument must be 'real', or 'complex'")
    if sort is not None:
        refuse("scipy.linalg.schur with sort", "Leave sort out.")
    x = linalg.prepared(_two_axes(node_of(a), "schur"))
    linalg.square(x)
    if output in {"complex", "c"} and x.type.dtype.kind != "c":
        x = astype(x, np.complex64 if x.type.dtype == np.float32 else np.complex128)
    return tuple(map(done, systems.schur(x)))


@implements("scipy.linalg.solve_sylvester")
def solve_sylvester(a: Any, b: Any, q: Any) -> Any:
    """Implement ``scipy.linalg.solve_sylvester``, in the dtype of all three.

    If a real ``a`` or ``b`` has complex eigenvalues and another operand is complex, SciPy passes a real
    quasi-triangular form to LAPACK's complex routine, and its result is wrong (residuals of 1 to 10^4 for matrices of 3
    rows); this one is correct.
    """
    return done(systems.solve_sylvester(*(_two_axes(node_of(v), "solve_sylvester") for v in (a, b, q))))


@implements("scipy.linalg.solve_banded")
@finite("ab", "b")
def solve_banded(
    l_and_u: Any, ab: Any, b: Any, overwrite_ab: bool = False, overwrite_b: bool = False, check_finite: bool = True
) -> Any:
    """Implement ``scipy.linalg.solve_banded``: a right side with one axis is a vector."""
    lower, upper = (int(v) for v in l_and_u)
    right = node_of(b)
    columns = expand_dims(right, (1,)) if right.type.ndim == 1 else right
    found = systems.solve_banded(_two_axes(node_of(ab), "solve_banded"), columns, lower, upper)
    return done(reshape(found, (found.type.shape[0],)) if right.type.ndim == 1 else found)
