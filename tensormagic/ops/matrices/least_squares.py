"""Least squares by LAPACK, for any rank; derivatives are those at constant rank."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from tensormagic.ir.errors import GuardError, ShapeError
from tensormagic.ir.node import Node, make
from tensormagic.ir.operation import Guard
from tensormagic.ir.type import Type
from tensormagic.ops.contract import matmul
from tensormagic.ops.fold import reduce_sum
from tensormagic.ops.matrices.linalg import PINV
from tensormagic.ops.matrices.matrix import adjoint, common_dtype, matrix, real_dtype, real_part
from tensormagic.ops.move_kind import same, show
from tensormagic.ops.op import Tangent, Value
from tensormagic.ops.opaque import Opaque
from tensormagic.ops.pointwise import astype
from tensormagic.ops.scalars.scalar import conjugate
from tensormagic.ops.tangents import total


def _x_type(args: tuple[Node, ...], _params: Mapping[str, Any]) -> Type:
    lead, m, n = matrix(args[0])
    _, rows, k = matrix(args[1])
    if not same(m, rows):
        raise ShapeError(f"Incompatible dimensions: {show(args[0].type.shape)} and {show(args[1].type.shape)}")
    return Type(args[0].type.dtype, (*lead, n, k))


def _residuals_type(args: tuple[Node, ...], params: Mapping[str, Any]) -> Type:
    x = _x_type(args, params)
    return Type(real_dtype(x.dtype), (*x.shape[:-2], x.shape[-1]))


def _guards(node: Node) -> list[Guard]:
    pairs = zip(node.args[0].type.shape[:-1], node.args[1].type.shape[:-1], strict=True)
    return [(s, "==", t) for s, t in pairs if s != t]


def _one_by_one(function: Callable[..., Value], drop: int) -> Callable[..., Value]:
    """Return a function of two stacks of matrices, applied pair by pair; its result lacks ``drop`` axes of the pair."""

    def call(a: Value, b: Value, rcond: float | None, asked_by: str = "") -> Value:
        del asked_by
        if a.ndim == 2:
            return function(a, b, rcond)
        dtype = np.zeros(0, a.dtype).real.dtype if drop else a.dtype
        result = np.empty((*a.shape[:-2], *(() if drop else a.shape[-1:]), b.shape[-1]), dtype)
        for k in np.ndindex(a.shape[:-2]):
            result[k] = function(a[k], b[k], rcond)
        return result

    return call


def _residuals(a: Value, b: Value, rcond: float | None) -> Value:
    found = np.linalg.lstsq(a, b, rcond=rcond)
    if found[1].size != b.shape[1]:
        raise GuardError(
            f"the residuals of np.linalg.lstsq are empty, since the matrix has rank {found[2]} and not {a.shape[1]}: "
            "that depends on data, and the code was captured for full rank",
            "Compute them from the solution: ((b - a @ x) ** 2).sum(axis=0).",
        )
    return found[1]


def _x_tangent(node: Node, tangents: Sequence[Tangent]) -> Tangent:
    """Return the tangent of the pseudo-inverse times the right side."""
    a, b = node.args
    da, db = tangents
    rcond = node["rcond"]
    inverse = make(PINV, (a,), rcond="size" if rcond is None else rcond)
    terms = [matmul(inverse, db)] if db is not None else []
    if da is not None:
        back = adjoint(da)
        inside = matmul(back, matmul(adjoint(inverse), node))
        terms += [
            -matmul(inverse, matmul(da, node)),
            matmul(inverse, matmul(adjoint(inverse), matmul(back, b - matmul(a, node)))),
            inside - matmul(inverse, matmul(a, inside)),
        ]
    return total(terms)


_RANK = {
    "np.polyfit": "Polyfit may be poorly conditioned"
}  # NumPy's and SciPy's messages for a matrix without full rank, by the function that was called


def _warns(a: Value, b: Value, rcond: float | None, asked_by: str = "") -> tuple[str, type[Warning]] | None:
    if asked_by not in _RANK or a.ndim != 2 or np.linalg.lstsq(a, b, rcond=rcond)[2] == a.shape[1]:
        return None
    return _RANK[asked_by], np.exceptions.RankWarning


LSTSQ = Opaque(
    name="lstsq",
    cubed=600,
    raises=True,
    types=_x_type,
    numpy=_one_by_one(lambda a, b, rcond: np.linalg.lstsq(a, b, rcond=rcond)[0], 0),
    tangent=_x_tangent,
    check=_guards,
    warns=_warns,
    doc="The x of least norm with the least sum of squares of a @ x - b.",
)


def _residuals_tangent(node: Node, tangents: Sequence[Tangent]) -> Tangent:
    """Return the tangent of the residuals: their sum of squares is stationary, so that the solution's change does not matter."""
    a, b = node.args
    da, db = tangents
    x = make(LSTSQ, (a, b), **node.params)
    moved = None if da is None else -matmul(da, x)
    change = total([t for t in (db, moved) if t is not None])
    if change is None:
        return None
    left = b - matmul(a, x)
    left = conjugate(left) if left.type.dtype.kind == "c" else left
    return reduce_sum(real_part(left * change) * 2, (left.type.ndim - 2,))


RESIDUALS = Opaque(
    name="lstsq_residuals",
    types=_residuals_type,
    numpy=_one_by_one(_residuals, 1),
    tangent=_residuals_tangent,
    check=_guards,
    doc="The sums of squares of a @ x - b at the x of least squares, for a matrix of full column rank.",
)


def lstsq(a: Node, b: Node, rcond: float | None, **asked_by: Any) -> Node:
    """Return the solution of ``np.linalg.lstsq`` for matrices ``a`` and ``b``; ``asked_by`` names the library function."""
    return make(LSTSQ, [astype(v, common_dtype(a, b)) for v in (a, b)], rcond=rcond, **asked_by)


def residuals(a: Node, b: Node, rcond: float | None) -> Node:
    """Return the residuals of ``np.linalg.lstsq``, if there are any."""
    return make(RESIDUALS, [astype(v, common_dtype(a, b)) for v in (a, b)], rcond=rcond)
