"""Further factorisations: eigenvalues of general matrices and of generalised symmetric problems, LU; and roots of polynomials."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tensormagic.ir.errors import GuardError, KindError, ShapeError
from tensormagic.ir.node import Node, make
from tensormagic.ir.operation import Guard
from tensormagic.ir.type import Size, Type, apply
from tensormagic.ops.contract import matmul
from tensormagic.ops.fold import MAX, fold, reduce_sum
from tensormagic.ops.leaf import iota, size_node
from tensormagic.ops.matrices.gaps import EIGENVECTORS, gaps_between, regular, turned
from tensormagic.ops.matrices.linalg import solve, solve_triangular, svdvals
from tensormagic.ops.matrices.matrix import (
    adjoint,
    as_row,
    common_dtype,
    diagonals,
    leading,
    mask,
    matrix,
    mirrored,
    one,
    prepared,
    real_dtype,
    real_part,
    scaled,
    square,
    square_guards,
    swap,
    triu,
)
from tensormagic.ops.move import broadcast, expand_dims, slice_
from tensormagic.ops.move_kind import broadcast_shapes, same
from tensormagic.ops.op import Tangent, Value
from tensormagic.ops.opaque import Opaque, items
from tensormagic.ops.pointwise import astype
from tensormagic.ops.scalars.comparison import equal, greater, less_equal, where
from tensormagic.ops.scalars.scalar import absolute, conjugate, imag, real
from tensormagic.ops.scalars.scalar import power as scalar_power
from tensormagic.ops.tangents import total

# general matrices -----------------------------------------------------------------------------------------------------


def _complex_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    return np.dtype(np.complex64 if dtype.itemsize * (1 + (dtype.kind != "c")) == 8 else np.complex128)


def _eig_types(args: tuple[Node, ...], params: Mapping[str, Any]) -> tuple[Type, ...]:
    lead, n = square(args[0])
    dtype = args[0].type.dtype
    dtype = dtype if params["real"] else _complex_dtype(dtype)
    return Type(dtype, (*lead, n)), Type(dtype, (*lead, n, n))


def of_kind(found: Value, dtype: np.dtype[Any], real: bool, site: int) -> Value:
    """Return eigenvalues or eigenvectors in the declared dtype; raise KindError if a ``site`` assumed the other kind."""
    if np.iscomplexobj(found) == real and (real or site >= 0):
        which = ("complex", "real") if real else ("real", "complex")
        error = KindError(
            "the result is {}, and was {} when the code was captured: NumPy's dtype depends on the values".format(
                *which
            ),
            "Convert the matrix to complex numbers first: a.astype(complex).",
        )
        error.site = site
        raise error
    return found.astype(dtype if real else _complex_dtype(dtype), copy=False)


def _eig_numpy(a: Value, real: bool, site: int = -1) -> tuple[Value, ...]:
    return tuple(of_kind(found, a.dtype, real, site) for found in np.linalg.eig(a))


def _eig_tangent(node: Node, tangents: Sequence[Tangent]) -> tuple[Tangent, ...]:
    """Return the tangents of distinct eigenvalues and their vectors.

    Vectors keep norm 1 and LAPACK's phase: the largest component is real.
    """
    a, t = one(node, tangents)
    del a
    values, vectors = items(node)
    known = regular(vectors, svdvals(vectors), "eigenvalues have no derivative at a matrix with too few eigenvectors")
    inner = solve(known, matmul(astype(t, vectors.type.dtype), vectors))
    raw = matmul(vectors, turned(inner, gaps_between(values), EIGENVECTORS))
    shift = real_part(
        reduce_sum(conjugate(vectors) * raw if _is_complex(node) else vectors * raw, (raw.type.ndim - 2,))
    )
    change = raw - scaled(vectors, as_row(shift))
    if _is_complex(node):
        change = change - vectors * as_row(_phase(vectors, change))
    return diagonals(inner), change


def _is_complex(node: Node) -> bool:
    return node.types[0].dtype.kind == "c"


def _phase(vectors: Node, change: Node) -> Node:
    """Return the imaginary factor that keeps the largest component of each vector real."""
    axis = vectors.type.ndim - 2
    size = absolute(vectors)
    largest = equal(size, expand_dims(fold(MAX, size, (axis,)), (axis,)))
    ratio = where(largest, imag(change) / where(largest, real(vectors), 1), 0)
    count = reduce_sum(astype(largest, ratio.type.dtype), (axis,))
    return astype(reduce_sum(ratio, (axis,)) / count, vectors.type.dtype) * 1j


EIG = Opaque(
    name="eig",
    cubed=1000,
    raises=True,
    types=_eig_types,
    numpy=_eig_numpy,
    tangent=_eig_tangent,
    check=square_guards,
    doc="Eigenvalues and right eigenvectors of a matrix, real only where that was promised.",
)


def eig(a: Node, *, real: bool, site: int = -1) -> tuple[Node, ...]:
    """Return ``np.linalg.eig``; ``real`` says whether the eigenvalues are real, on which NumPy's dtype depends.

    With a ``site`` this is an assumption, and a `KindError` if it is wrong.
    """
    return items(make(EIG, (prepared(a),), real=real, **_sited(site)))


def _sited(site: int) -> dict[str, Any]:
    return {"site": site} if site >= 0 else {}


def _eigvals_tangent(node: Node, tangents: Sequence[Tangent]) -> Tangent:
    a, t = one(node, tangents)
    return _eig_tangent(make(EIG, (a,), **node.params), (t,))[0]


EIGVALS = Opaque(
    name="eigvals",
    cubed=500,
    raises=True,
    types=lambda args, params: _eig_types(args, params)[0],
    numpy=lambda a, real, site=-1: of_kind(np.linalg.eigvals(a), a.dtype, real, site),
    tangent=_eigvals_tangent,
    check=square_guards,
    doc="Eigenvalues of a matrix, real only where that was promised.",
)


def eigvals(a: Node, *, real: bool, site: int = -1) -> Node:
    """Return ``np.linalg.eigvals``; ``real`` and ``site`` as for :func:`eig`."""
    return make(EIGVALS, (prepared(a),), real=real, **_sited(site))


# numbers that are nearly real -----------------------------------------------------------------------------------------


def _close_numpy(x: Value, limit: float, real: bool, site: int) -> Value:
    return of_kind(np.asarray(np.real_if_close(x, limit)), real_dtype(x.dtype), real, site)


CLOSE_TO_REAL = Opaque(
    name="close_to_real",
    types=lambda args, params: Type(
        real_dtype(args[0].type.dtype) if params["real"] else args[0].type.dtype, args[0].type.shape
    ),
    numpy=_close_numpy,
    tangent=lambda node, tangents: real(one(node, tangents)[1]) if node["real"] else tangents[0],
    doc="Complex numbers, real where all of them were taken for close to it.",
)


def close_to_real(x: Node, *, real: bool, limit: float, site: int) -> Node:
    """Return ``np.real_if_close`` of complex numbers; ``real`` and ``site`` as for :func:`eig`."""
    return make(CLOSE_TO_REAL, (x,), limit=limit, real=real, site=site)


# roots of polynomials -------------------------------------------------------------------------------------------------


def _roots_types(args: tuple[Node, ...], params: Mapping[str, Any]) -> Type:
    dtype, (*lead, n) = args[0].type.dtype, args[0].type.shape
    return Type(dtype if params["real"] else _complex_dtype(dtype), (*lead, n - 1))


def _roots_numpy(p: Value, real: bool, site: int) -> Value:
    found = [np.roots(p[k]) for k in np.ndindex(p.shape[:-1])]
    if any(len(f) != p.shape[-1] - 1 for f in found):
        raise GuardError(
            "np.roots of a polynomial whose leading coefficient is 0: how many roots there are depends on data",
            "Leave leading zeros out.",
        )
    whole = np.reshape(found, (*p.shape[:-1], p.shape[-1] - 1)).astype(np.result_type(p.dtype, *found), copy=False)
    return (
        of_kind(whole, p.dtype, real, site)
        if whole.size
        else whole.astype(p.dtype if real else _complex_dtype(p.dtype))
    )


def _powers(z: Node, count: Size) -> Node:
    """Return the powers of each number along a new last axis, the highest first."""
    shape = (*z.type.shape, count)
    exponents = size_node(count) - 1 - iota(shape, len(shape) - 1)
    return scalar_power(broadcast(expand_dims(z, (z.type.ndim,)), shape), astype(exponents, z.type.dtype))


def _valued(p: Node, z: Node) -> Node:
    """Return the values of polynomials at the numbers ``z``."""
    powers = _powers(z, p.type.shape[-1])
    return reduce_sum(powers * expand_dims(p, (p.type.ndim - 1,)), (powers.type.ndim - 1,))


def _roots_tangent(node: Node, tangents: Sequence[Tangent]) -> Tangent:
    """Return the tangents of roots by the implicit function theorem: slope times change of the root is minus the change of the value."""
    p, t = one(node, tangents)
    *lead, n = p.type.shape
    dtype = node.type.dtype
    shape = (*lead, n - 1)
    powers = astype(size_node(n) - 1 - iota(shape, len(lead)), dtype)
    slopes = slice_(astype(p, dtype), tuple((0, s, 1) for s in shape)) * powers
    return -_valued(astype(t, dtype), node) / _valued(slopes, node)


ROOTS = Opaque(
    name="roots",
    raises=True,
    types=_roots_types,
    numpy=_roots_numpy,
    tangent=_roots_tangent,
    doc="The roots of a polynomial, the highest coefficient first and not 0; real only where that was taken for so.",
)


def roots(p: Node, *, real: bool, site: int) -> Node:
    """Return ``np.roots`` of floats; ``real`` and ``site`` as for :func:`eig`."""
    return make(ROOTS, (p,), real=real, site=site)


# two symmetric matrices -----------------------------------------------------------------------------------------------


def _pencil_types(args: tuple[Node, ...], _params: Mapping[str, Any]) -> tuple[Type, ...]:
    _, n = square(args[0])
    for other in args[1:]:
        square(other)
        if not same(other.type.shape[-1], n):
            raise ShapeError("eigh takes two matrices of one shape")
    return Type(real_dtype(args[0].type.dtype), args[0].type.shape[:-1]), args[0].type


def _pencil_numpy(a: Value, *b: Value, lower: bool) -> tuple[Value, ...]:
    import scipy.linalg

    values = np.empty(a.shape[:-1], np.zeros(0, a.dtype).real.dtype)
    vectors = np.empty_like(a)
    for k in np.ndindex(a.shape[:-2]):
        values[k], vectors[k] = scipy.linalg.eigh(a[k], *(v[k] for v in b), lower=lower, check_finite=False)
    return values, vectors


def _pencil_tangent(node: Node, tangents: Sequence[Tangent]) -> tuple[Tangent, ...]:
    values, vectors = items(node)
    whole = [None if t is None else mirrored(t, lower=node["lower"]) for t in tangents]
    parts = [None if t is None else matmul(matmul(adjoint(vectors), t), vectors) for t in whole]
    first, second = (*parts, None)[:2]
    moved = None if second is None else -scaled(second, as_row(values))
    inner = total([p for p in (first, moved) if p is not None])
    if inner is None:
        return None, None
    turn = turned(inner, gaps_between(values), EIGENVECTORS)
    if second is not None:  # the vectors stay orthonormal with respect to the second matrix
        turn = turn - where(mask(second, equal), second / 2, 0)
    return real_part(diagonals(inner)), matmul(vectors, turn)


def _pencil_guards(node: Node) -> list[Guard]:
    pairs = [(s, t) for b in node.args[1:] for s, t in zip(node.args[0].type.shape, b.type.shape, strict=True)]
    return [*square_guards(node), *((s, "==", t) for s, t in pairs if s != t)]


PENCIL = Opaque(
    name="scipy_eigh",
    raises=True,
    types=_pencil_types,
    numpy=_pencil_numpy,
    tangent=_pencil_tangent,
    check=_pencil_guards,
    doc="Eigenvalues and eigenvectors of one symmetric matrix, or of one relative to another, as SciPy finds them.",
)


def scipy_eigh(a: Node, b: Node | None, *, lower: bool) -> tuple[Node, ...]:
    """Return ``scipy.linalg.eigh``: eigenvalues and eigenvectors, of ``a v = w b v`` where ``b`` is given."""
    given = [a] if b is None else [a, b]
    dtype = common_dtype(*given)
    batch = broadcast_shapes([square(v)[0] for v in given])
    nodes = [broadcast(astype(v, dtype), (*batch, *v.type.shape[-2:])) for v in given]
    return items(make(PENCIL, nodes, lower=lower))


# triangular factors ---------------------------------------------------------------------------------------------------


def _lu_types(args: tuple[Node, ...], _params: Mapping[str, Any]) -> tuple[Type, ...]:
    lead, m, n = matrix(args[0])
    k = apply("min", m, n)
    dtype = args[0].type.dtype
    return Type(np.dtype(np.int32), (*lead, m)), Type(dtype, (*lead, m, k)), Type(dtype, (*lead, k, n))


def _lu_numpy(a: Value) -> tuple[Value, ...]:
    import scipy.linalg

    found: Any = scipy.linalg.lu(a, p_indices=True, check_finite=False)
    rows, low, up = found
    return np.asarray(rows, np.int32), low, up


def permutation(rows: Node, dtype: np.dtype[Any]) -> Node:
    """Return the matrices with a 1 in each row, in the column given by ``rows``."""
    shape = (*rows.type.shape, rows.type.shape[-1])
    columns = iota(shape, len(shape) - 1)
    return astype(equal(broadcast(expand_dims(rows, (rows.type.ndim,)), shape), columns), dtype)


def _lu_tangent(node: Node, tangents: Sequence[Tangent]) -> tuple[Tangent, ...]:
    """Return the tangents of both factors, at the row order of the values."""
    _, t = one(node, tangents)
    rows, low, up = items(node)
    k = low.type.shape[-1]
    moved = matmul(swap(permutation(rows, t.type.dtype)), t)
    head = (*((0, s, 1) for s in moved.type.shape[:-2]), (0, k, 1))
    first_low = slice_(low, (*head, (0, k, 1)))
    first_up = leading(up, k)

    def over_up(x: Node) -> Node:
        return swap(solve_triangular(swap(first_up), swap(x), lower=True))

    upper = solve_triangular(
        first_low, slice_(moved, (*head, (0, moved.type.shape[-1], 1))), lower=True, unit_diagonal=True
    )
    inner = over_up(leading(upper, k))
    change_low = over_up(leading(moved, k) - matmul(low, matmul(triu(inner), first_up)))
    change_up = upper - matmul(where(mask(inner, greater), inner, 0), up)
    return None, where(mask(change_low, greater), change_low, 0), where(mask(change_up, less_equal), change_up, 0)


LU = Opaque(
    name="lu",
    cubed=20,
    raises=True,
    types=_lu_types,
    numpy=_lu_numpy,
    tangent=_lu_tangent,
    doc="Rows, unit lower and upper triangular factor with (l @ u)[rows] = a, by Gauss's elimination with pivots.",
)


def lu(a: Node) -> tuple[Node, ...]:
    """Return ``scipy.linalg.lu``: row numbers, lower and upper factor."""
    return items(make(LU, (prepared(a),)))
