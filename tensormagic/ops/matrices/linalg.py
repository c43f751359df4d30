"""Linear algebra by LAPACK: solve, inverse and factorisations, each with its derivative in the same ops.

Derivatives are batched, complex and of any order. Those of ``cholesky``, ``eigh`` and ``eigvalsh`` are with respect
to the triangle that is read; the other one has the derivative 0. Where eigenvalues or singular values are equal (or
singular values are zero), their vectors have no derivative: code that asks for it gets an error when the graph runs.
The values themselves have the derivative that the vectors of LAPACK give, which is right for functions that are
symmetric in equal values, and a subgradient of the largest and the smallest one.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from tensormagic.ir.errors import DifferentiationError, ShapeError
from tensormagic.ir.node import Node, make
from tensormagic.ir.operation import Guard
from tensormagic.ir.type import Size, Type, apply, hint
from tensormagic.ops.contract import matmul
from tensormagic.ops.leaf import size_node
from tensormagic.ops.matrices.gaps import (
    EIGENVECTORS,
    NULL_VECTORS,
    SINGULAR_VECTORS,
    gaps_between,
    over,
    regular,
    resolved,
    turned,
)
from tensormagic.ops.matrices.matrix import (
    adjoint,
    as_column,
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
    square_type,
    swap,
    triu,
)
from tensormagic.ops.move import broadcast, concatenate, reshape, slice_
from tensormagic.ops.move_kind import broadcast_shapes, same, show
from tensormagic.ops.op import Tangent, Value
from tensormagic.ops.opaque import Opaque, in_stack, items
from tensormagic.ops.pointwise import astype
from tensormagic.ops.scalars.scalar import absolute, equal, greater, greater_equal, imag, less, less_equal, where
from tensormagic.ops.tangents import total

# systems --------------------------------------------------------------------------------------------------------------


def _solve_type(args: tuple[Node, ...], _params: Mapping[str, Any]) -> Type:
    _, n = square(args[0])
    _, rows, _ = matrix(args[1])
    if not same(n, rows):
        raise ShapeError(
            f"solve: a matrix of shape {show(args[0].type.shape)} and a right side of shape {show(args[1].type.shape)} "
            f"do not fit: {hint(rows)} rows are not {hint(n)}"
        )
    return args[1].type


def _solve_guards(node: Node) -> list[Guard]:
    a, b = node.args
    pairs = zip((*a.type.shape[:-1], a.type.shape[-2]), (*b.type.shape[:-1], a.type.shape[-1]), strict=True)
    return [(s, "==", t) for s, t in pairs if s != t]


def _solve_tangent(node: Node, tangents: Sequence[Tangent]) -> Tangent:
    a, _ = node.args
    moved = None if tangents[0] is None else -matmul(tangents[0], node)
    rest = total([t for t in (tangents[1], moved) if t is not None])
    return None if rest is None else make(SOLVE, (a, rest))


def _solve_numpy(a: Value, b: Value, asked_by: str = "") -> Value:
    del asked_by
    return np.linalg.solve(a, b)


def _inv_numpy(a: Value, asked_by: str = "") -> Value:
    del asked_by
    return np.linalg.inv(a)


def _ill_conditioned(a: Value, *b: Value, asked_by: str = "") -> tuple[str, type[Warning]] | None:
    """Return SciPy's warning for a matrix whose estimated reciprocal condition number is below the precision, or None."""
    if not asked_by.startswith("scipy.") or a.ndim != 2 or not a.size or not np.isfinite(a).all():
        return None
    import scipy.linalg

    factor, estimate = scipy.linalg.get_lapack_funcs(("getrf", "gecon"), (a,))
    factors, _, singular = factor(a)
    if singular or estimate(factors, np.linalg.norm(a, 1))[0] >= np.finfo(a.dtype).eps:
        return None
    with warnings.catch_warnings(record=True) as found:  # to get the message in the words of the installed version
        warnings.simplefilter("always")
        getattr(scipy.linalg, asked_by.rpartition(".")[2])(a, *b)
    return next(((str(w.message), w.category) for w in found), None)


SOLVE = Opaque(
    name="solve",
    in_numpy="np.linalg.solve",
    weight=150,
    cubed=30,
    split_rows=in_stack,
    types=_solve_type,
    numpy=_solve_numpy,
    warns=_ill_conditioned,
    tangent=_solve_tangent,
    back=lambda node, ct, _linear: (None, make(SOLVE, (swap(node.args[0]), ct))),
    check=_solve_guards,
    fails="Singular matrix",
    doc="The x with a @ x = b.",
)


def solve(a: Node, b: Node, **asked_by: Any) -> Node:
    """Return ``np.linalg.solve``: ``b`` is a vector if it has one axis, else matrices; leading axes broadcast."""
    return _batched_solve(a, b, lambda x, y: make(SOLVE, (x, y), **asked_by))


def _batched_solve(a: Node, b: Node, build: Callable[[Node, Node], Node]) -> Node:
    """Return the solution by ``build`` of operands brought to one dtype and one batch."""
    dtype = common_dtype(a, b)
    lead, _ = square(a)
    a, b = astype(a, dtype), astype(b, dtype)
    if b.type.ndim == 0:
        raise ShapeError("solve: the right side needs at least one axis")
    if b.type.ndim == 1:
        column = _batched_solve(a, as_column(b), build)
        return reshape(column, column.type.shape[:-1])
    batch = broadcast_shapes([lead, b.type.shape[:-2]])
    return build(broadcast(a, (*batch, *a.type.shape[-2:])), broadcast(b, (*batch, *b.type.shape[-2:])))


def _triangular_numpy(a: Value, b: Value, lower: bool, unit_diagonal: bool) -> Value:
    from scipy.linalg import solve_triangular as solve_one

    result = np.empty(b.shape, b.dtype)
    for index in np.ndindex(b.shape[:-2]) if b.size else ():
        result[index] = solve_one(a[index], b[index], lower=lower, unit_diagonal=unit_diagonal, check_finite=False)
    return result


def _triangular_tangent(node: Node, tangents: Sequence[Tangent]) -> Tangent:
    a, _ = node.args
    moved = None
    if tangents[0] is not None:
        strict = (
            (greater if node["lower"] else less)
            if node["unit_diagonal"]
            else (greater_equal if node["lower"] else less_equal)
        )
        moved = -matmul(where(mask(a, strict), tangents[0], 0), node)
    rest = total([t for t in (tangents[1], moved) if t is not None])
    return None if rest is None else make(SOLVE_TRIANGULAR, (a, rest), **node.params)


def _triangular_back(node: Node, cotangent: Node, _linear: Sequence[bool]) -> Sequence[Tangent]:
    a = swap(node.args[0])
    return None, make(SOLVE_TRIANGULAR, (a, cotangent), lower=not node["lower"], unit_diagonal=node["unit_diagonal"])


SOLVE_TRIANGULAR = Opaque(
    name="solve_triangular",
    weight=50,
    cubed=30,
    split_rows=in_stack,
    types=_solve_type,
    numpy=_triangular_numpy,
    tangent=_triangular_tangent,
    back=_triangular_back,
    check=_solve_guards,
    doc="The x with a @ x = b, reading one triangle of a.",
)


def solve_triangular(a: Node, b: Node, *, lower: bool = False, unit_diagonal: bool = False) -> Node:
    """Return ``scipy.linalg.solve_triangular``: reads one triangle of ``a``; leading axes broadcast."""
    return _batched_solve(a, b, lambda x, y: make(SOLVE_TRIANGULAR, (x, y), lower=lower, unit_diagonal=unit_diagonal))


def _inv_tangent(node: Node, tangents: Sequence[Tangent]) -> Tangent:
    _, t = one(node, tangents)
    return -matmul(matmul(node, t), node)


INV = Opaque(
    name="inv",
    in_numpy="np.linalg.inv",
    cubed=60,
    split_rows=in_stack,
    types=square_type,
    numpy=_inv_numpy,
    warns=_ill_conditioned,
    tangent=_inv_tangent,
    check=square_guards,
    fails="Singular matrix",
    doc="The inverse.",
)


def inv(a: Node, **asked_by: Any) -> Node:
    """Return ``np.linalg.inv``."""
    return make(INV, (prepared(a),), **asked_by)


def _pinv_type(args: tuple[Node, ...], _params: Mapping[str, Any]) -> Type:
    lead, m, n = matrix(args[0])
    return Type(args[0].type.dtype, (*lead, n, m))


def _pinv_tangent(node: Node, tangents: Sequence[Tangent]) -> Tangent:
    """Return the tangent of the pseudo-inverse: Golub and Pereyra, SIAM J. Numer. Anal. 10 (1973), at constant rank."""
    a, t = one(node, tangents)
    p, back = node, adjoint(t)
    left = matmul(matmul(p, adjoint(p)), back)  # in the row space of a
    right = matmul(back, matmul(adjoint(p), p))
    return (left - matmul(matmul(left, a), p)) + (right - matmul(p, matmul(a, right))) - matmul(matmul(p, t), p)


def _pinv_numpy(a: Value, rcond: float | str | None) -> Value:
    return np.linalg.pinv(a, np.finfo(a.dtype).eps * max(a.shape[-2:]) if isinstance(rcond, str) else rcond)


PINV = Opaque(
    name="pinv",
    in_numpy="np.linalg.pinv",
    cubed=350,
    split_rows=in_stack,
    types=_pinv_type,
    numpy=_pinv_numpy,
    tangent=_pinv_tangent,
    doc="The Moore-Penrose inverse.",
)


def pinv(a: Node, rcond: float | str | None = None) -> Node:
    """Return ``np.linalg.pinv``; ``rcond="size"`` means epsilon times the larger extent. Its derivative is that at constant rank."""
    return make(PINV, (prepared(a),), rcond=rcond)


# factorisations -------------------------------------------------------------------------------------------------------


def _cholesky_tangent(node: Node, tangents: Sequence[Tangent]) -> Tangent:
    """Return the tangent of the factor: Murray, "Differentiation of the Cholesky decomposition" (2016), section 3.1."""
    _, t = one(node, tangents)
    factor = adjoint(node) if node["upper"] else node
    half = solve_triangular(factor, mirrored(t, lower=not node["upper"]), lower=True)
    inner = adjoint(solve_triangular(factor, adjoint(half), lower=True))
    low = where(mask(inner, greater), inner, where(mask(inner, equal), inner / 2, 0))
    change = matmul(factor, low)
    return adjoint(change) if node["upper"] else change


CHOLESKY = Opaque(
    name="cholesky",
    in_numpy="np.linalg.cholesky",
    cubed=10,
    split_rows=in_stack,
    types=square_type,
    numpy=np.linalg.cholesky,
    tangent=_cholesky_tangent,
    check=square_guards,
    fails="Matrix is not positive definite",
    doc="The triangular L with L @ L^H = a, from one triangle of a.",
)


def cholesky(a: Node, *, upper: bool = False) -> Node:
    """Return ``np.linalg.cholesky``: reads the lower triangle, or the upper one for ``upper``."""
    return make(CHOLESKY, (prepared(a),), upper=upper)


def _eigh_types(args: tuple[Node, ...], _params: Mapping[str, Any]) -> tuple[Type, ...]:
    lead, n = square(args[0])
    return Type(real_dtype(args[0].type.dtype), (*lead, n)), args[0].type


def _eigh_tangent(node: Node, tangents: Sequence[Tangent]) -> tuple[Tangent, ...]:
    _, t = one(node, tangents)
    values, vectors = items(node)
    inner = matmul(matmul(adjoint(vectors), mirrored(t, lower=node["UPLO"] == "L")), vectors)
    return real_part(diagonals(inner)), matmul(vectors, turned(inner, gaps_between(values), EIGENVECTORS))


EIGH = Opaque(
    name="eigh",
    in_numpy="np.linalg.eigh",
    cubed=200,
    split_rows=in_stack,
    types=_eigh_types,
    numpy=np.linalg.eigh,
    tangent=_eigh_tangent,
    check=square_guards,
    fails="Eigenvalues did not converge",
    doc="Eigenvalues, ascending, and eigenvectors of a symmetric or Hermitian matrix, from one triangle of it.",
)


def _uplo(letter: str) -> str:
    if letter.upper() not in {"L", "U"}:
        message = "UPLO argument must be 'L' or 'U'"
        raise ValueError(message)
    return letter.upper()


def eigh(a: Node, UPLO: str = "L") -> tuple[Node, ...]:
    """Return ``np.linalg.eigh``: eigenvalues and eigenvectors."""
    return items(make(EIGH, (prepared(a),), UPLO=_uplo(UPLO)))


def _eigvalsh_tangent(node: Node, tangents: Sequence[Tangent]) -> Tangent:
    a, t = one(node, tangents)
    return _eigh_tangent(make(EIGH, (a,), **node.params), (t,))[0]


EIGVALSH = Opaque(
    name="eigvalsh",
    in_numpy="np.linalg.eigvalsh",
    cubed=80,
    split_rows=in_stack,
    types=lambda args, params: _eigh_types(args, params)[0],
    numpy=np.linalg.eigvalsh,
    tangent=_eigvalsh_tangent,
    check=square_guards,
    fails="Eigenvalues did not converge",
    doc="Eigenvalues, ascending, of a symmetric or Hermitian matrix, from one triangle of it.",
)


def eigvalsh(a: Node, UPLO: str = "L") -> Node:
    """Return ``np.linalg.eigvalsh``."""
    return make(EIGVALSH, (prepared(a),), UPLO=_uplo(UPLO))


def _svd_types(args: tuple[Node, ...], params: Mapping[str, Any]) -> tuple[Type, ...]:
    lead, m, n = matrix(args[0])
    dtype, k = args[0].type.dtype, apply("min", m, n)
    rows, columns = (m, n) if params["full_matrices"] else (k, k)
    return Type(dtype, (*lead, m, rows)), Type(real_dtype(dtype), (*lead, k)), Type(dtype, (*lead, columns, n))


def _svd_tangent(node: Node, tangents: Sequence[Tangent]) -> tuple[Tangent, ...]:
    """Return the tangents of U, S and V.

    They follow from dA = dU S V^H + U dS V^H + U S dV^H, with dU = U X, dV = V Y, X and Y skew, and the part outside
    the spans of U and V.
    """
    a, t = one(node, tangents)
    _, m, n = matrix(a)
    whole_u, s, whole_vh = items(node)
    k = s.type.shape[-1]
    whole_v = adjoint(whole_vh)
    u, v = leading(whole_u, k), leading(whole_v, k)
    right = matmul(t, v)
    inner = matmul(adjoint(u), right)
    gaps = where(mask(inner, equal), 1, gaps_between(s) * resolved(as_row(s) + as_column(s), s))
    rows, columns, sizes = as_row(s), as_column(s), resolved(s, s)
    turn_u = turned(scaled(inner, rows) + scaled(adjoint(inner), columns), gaps, SINGULAR_VECTORS)
    turn_v = turned(scaled(inner, columns) + scaled(adjoint(inner), rows), gaps, SINGULAR_VECTORS)
    if inner.type.dtype.kind == "c":  # the phases, attributed to u alone
        phase = astype(over(imag(diagonals(inner)), sizes, NULL_VECTORS), inner.type.dtype) * 1j
        turn_u = turn_u + where(mask(inner, equal), broadcast(as_row(phase), inner.type.shape), 0)
    change_u = matmul(u, turn_u) + _outside(right - matmul(u, inner), m, sizes)
    change_v = matmul(v, turn_v) + _outside(matmul(adjoint(t), u) - matmul(v, adjoint(inner)), n, sizes)
    return (
        _completed(whole_u, u, change_u, m),
        real_part(diagonals(inner)),
        adjoint(_completed(whole_v, v, change_v, n)),
    )


def _outside(change: Node, order: Size, sizes: Node) -> Node:
    """Return the change of vectors out of the space they span; zero if they span all of it."""
    k = sizes.type.shape[-1]
    more = greater(size_node(order), size_node(k))
    return over(where(broadcast(more, change.type.shape), change, 0), as_row(sizes), NULL_VECTORS)


def _completed(whole: Node, vectors: Node, change: Node, order: Size) -> Node:
    """Return the change of a full set of vectors: the additional ones rotate only as far as orthogonality needs."""
    k = vectors.type.shape[-1]
    if same(whole.type.shape[-1], k):
        return change
    head = tuple((0, s, 1) for s in whole.type.shape[:-1])
    others = slice_(whole, (*head, (k, order - k, 1)))
    lean = -matmul(vectors, matmul(adjoint(change), others))
    return concatenate([change, lean], whole.type.ndim - 1)


SVD = Opaque(
    name="svd",
    in_numpy="np.linalg.svd",
    cubed=300,
    split_rows=in_stack,
    types=_svd_types,
    numpy=np.linalg.svd,
    tangent=_svd_tangent,
    fails="SVD did not converge",
    doc="u, s and v^H with (u * s) @ v^H = a; singular values descend.",
)


def svd(a: Node, *, full_matrices: bool = True) -> tuple[Node, ...]:
    """Return ``np.linalg.svd``: u, s and v^H."""
    return items(make(SVD, (prepared(a),), full_matrices=full_matrices))


def _svdvals_tangent(node: Node, tangents: Sequence[Tangent]) -> Tangent:
    a, t = one(node, tangents)
    return _svd_tangent(make(SVD, (a,), full_matrices=False), (t,))[1]


SVDVALS = Opaque(
    name="svdvals",
    in_numpy="np.linalg.svdvals",
    cubed=150,
    split_rows=in_stack,
    types=lambda args, _params: _svd_types(args, {"full_matrices": False})[1],
    numpy=lambda a: np.linalg.svd(a, compute_uv=False),
    tangent=_svdvals_tangent,
    fails="SVD did not converge",
    doc="The singular values, descending.",
)


def svdvals(a: Node) -> Node:
    """Return ``np.linalg.svd(a, compute_uv=False)``."""
    return make(SVDVALS, (prepared(a),))


def _qr_types(args: tuple[Node, ...], params: Mapping[str, Any]) -> tuple[Type, ...]:
    lead, m, n = matrix(args[0])
    k = m if params["mode"] == "complete" else apply("min", m, n)
    dtype = args[0].type.dtype
    return Type(dtype, (*lead, m, k)), Type(dtype, (*lead, k, n))


def _qr_tangent(node: Node, tangents: Sequence[Tangent]) -> tuple[Tangent, ...]:
    """Return the tangents of q and r: of the first k columns, which must be independent; the other columns follow from r = q^H a."""
    a, t = one(node, tangents)
    _, m, n = matrix(a)
    q, r = items(node)
    k = apply("min", m, n)
    if not same(q.type.shape[-1], k):
        raise DifferentiationError(
            "qr in mode 'complete' has no derivative for more rows than columns", "Use mode='reduced'."
        )
    first, change = leading(r, k), leading(t, k)
    first = regular(first, absolute(diagonals(first)), "qr has no derivative at a matrix whose columns are dependent")
    scaled = adjoint(solve_triangular(adjoint(first), adjoint(change), lower=True))
    inner = matmul(adjoint(q), scaled)
    low = where(mask(inner, greater), inner, 0)
    turn = low - adjoint(low)
    if inner.type.dtype.kind == "c":
        turn = turn + where(mask(inner, equal), astype(imag(inner), inner.type.dtype) * 1j, 0)
    change_q = matmul(q, turn - inner) + scaled
    if same(n, k):
        return change_q, matmul(inner - turn, first)
    return change_q, triu(matmul(adjoint(q), t) + matmul(adjoint(change_q), a))


QR = Opaque(
    name="qr",
    in_numpy="np.linalg.qr",
    cubed=100,
    split_rows=in_stack,
    types=_qr_types,
    numpy=np.linalg.qr,
    tangent=_qr_tangent,
    doc="Orthonormal q and upper triangular r with q @ r = a.",
)


def qr(a: Node, mode: str = "reduced") -> tuple[Node, ...]:
    """Return ``np.linalg.qr`` in mode ``"reduced"`` or ``"complete"``: q and r; in mode ``"r"``: (r,)."""
    if mode not in {"reduced", "complete", "r"}:
        message = f"Unrecognized mode '{mode}'"
        raise ValueError(message)
    q, r = items(make(QR, (prepared(a),), mode="reduced" if mode == "r" else mode))
    return (r,) if mode == "r" else (q, r)
