"""Gaps between eigenvalues or singular values, and quotients by them: an error where equal values leave the vectors undetermined."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tensormagic.ir.errors import DifferentiationError
from tensormagic.ir.node import Node, make
from tensormagic.ops.effects.checks import require
from tensormagic.ops.matrices.matrix import as_column, as_row, mask
from tensormagic.ops.move import broadcast
from tensormagic.ops.op import Tangent, Value
from tensormagic.ops.opaque import Opaque
from tensormagic.ops.pointwise import astype
from tensormagic.ops.scalars.scalar import equal, negative, not_equal, where
from tensormagic.ops.tangents import multiply_by, total


def _resolved_numpy(differences: Value, values: Value) -> Value:
    """Return differences of values, set to zero if they are within a rounding error of the largest value."""
    size = np.abs(values).max(axis=-1, initial=0) * (values.shape[-1] * np.finfo(values.dtype).eps)
    size = np.reshape(size, (*size.shape, *(1,) * (differences.ndim - size.ndim)))
    return np.where(np.abs(differences) <= size, differences.dtype.type(0), differences)


RESOLVED = Opaque(
    name="resolved",
    types=lambda args, _params: args[0].type,
    numpy=_resolved_numpy,
    tangent=lambda _node, tangents: tangents[0],
    doc="Differences of values, those that rounding errors of the values hide set to zero.",
)


def resolved(differences: Node, values: Node) -> Node:
    """Return ``differences`` of values of a factorisation, 0 where they are within the rounding error of ``values``."""
    return make(RESOLVED, (differences, values))


def _over_numpy(x: Value, gaps: Value, what: str) -> Value:
    zero = gaps == 0
    if np.any(zero & (x != 0)):
        raise DifferentiationError(
            f"the derivative of {what}, and they have none here",
            "Perturb the matrix so that they differ, or use a function without vectors: eigvalsh, cholesky, solve, scipy.linalg.sqrtm.",
        )
    return np.where(zero, x.dtype.type(0), x / np.where(zero, gaps.dtype.type(1), gaps))


def _over_tangent(node: Node, tangents: Sequence[Tangent]) -> Tangent:
    gaps = node.args[1]
    direct = None if tangents[0] is None else make(OVER, (tangents[0], gaps), **node.params)
    moved = None if tangents[1] is None else make(OVER, (negative(multiply_by(node, tangents[1])), gaps), **node.params)
    return total([t for t in (direct, moved) if t is not None])


OVER = Opaque(
    name="over_gaps",
    types=lambda args, _params: args[0].type,
    numpy=_over_numpy,
    tangent=_over_tangent,
    back=lambda node, ct, _linear: (make(OVER, (ct, node.args[1]), **node.params), None),
    doc="A quotient by gaps: 0 where both are zero, an error where the gap alone is.",
)


def over(x: Node, gaps: Node, what: str) -> Node:
    """Return ``x / gaps``, which raises an error that names ``what`` if a gap is zero and ``x`` is not.

    The quotient is how vectors rotate into each other; for equal eigenvalues it exists only if ``x`` is zero.
    """
    return make(OVER, (x, broadcast(astype(gaps, x.type.dtype), x.type.shape)), what=what)


def gaps_between(values: Node) -> Node:
    """Return ``values[j] - values[i]``: 0 if they are equal up to rounding, and 1 on the diagonal."""
    differences = resolved(as_row(values) - as_column(values), values)
    return where(mask(differences, equal), 1, differences)


def turned(inner: Node, gaps: Node, what: str) -> Node:
    """Return ``inner / gaps`` off the diagonal, and 0 on it."""
    return over(where(mask(inner, equal), 0, inner), gaps, what)


def regular(x: Node, sizes: Node, message: str) -> Node:
    """Return ``x``, checked when the graph runs: a DifferentiationError unless every one of ``sizes`` differs from zero."""
    return require(x, not_equal(resolved(sizes, sizes), 0), message, "derivative")


EIGENVECTORS = "eigenvectors of equal eigenvalues is asked for"
SINGULAR_VECTORS = "singular vectors of equal singular values is asked for"
NULL_VECTORS = "singular vectors of singular values that are zero is asked for"
