"""Cases of contractions and of the linear algebra that NumPy has."""

import numpy as np
import scipy

from tensormagic.ops import contract
from tensormagic.ops.matrices import determinants, gram, linalg, matrix
from tests.ops.cases import ALL, case

# contractions ----------------------------------------------------------------------------------------------------------


def _matmul(x, y):
    return np.matmul(x, y)


for _shapes in [
    ((3,), (3,)),
    ((2, 3), (3,)),
    ((3,), (3, 4)),
    ((2, 3), (3, 4)),
    ((2, 0), (0, 3)),
    ((0, 2), (2, 3)),
    ((5, 2, 3), (3, 4)),
    ((2, 3), (5, 3, 4)),
    ((5, 2, 3), (5, 3, 4)),
    ((1, 2, 3), (5, 3, 4)),
]:
    _merged = _shapes == ((5, 2, 3), (3, 4))  # one product of larger matrices, where NumPy does five
    case("contract", contract.matmul, _matmul, *_shapes, tags=frozenset({"rounds"} if _merged else ()))
for _text, _shapes in {
    "i,i->": ((3,), (3,)),
    "i,j->ij": ((3,), (4,)),
    "ij,kj->ik": ((2, 3), (4, 3)),
    "bij,bjk->bik": ((2, 3, 4), (2, 4, 2)),
    "ij,ij->i": ((3, 4), (3, 4)),
    "ijk,jl->kil": ((2, 3, 4), (3, 2)),
    "ij,jk,kl->il": ((2, 3), (3, 4), (4, 2)),
}.items():
    case(
        "contract",
        lambda *xs, t=_text: contract.einsum(t, *xs),
        lambda *xs, t=_text: np.einsum(t, *xs),
        *_shapes,
        label=_text,
        tags=frozenset({"rounds"}),
    )

# linear algebra --------------------------------------------------------------------------------------------------------


def _regular(*values):
    """Square matrices, made regular by their diagonals."""
    first = values[0]
    return (
        first + 20 * np.eye(first.shape[-1]).astype(first.dtype)
        if first.dtype.kind != "b"
        else np.eye(first.shape[-1], dtype=bool) | np.tril(first),
        *values[1:],
    )


def _definite(a):
    """Hermitian positive definite, in any dtype."""
    if a.dtype.kind == "b":
        return (np.broadcast_to(np.eye(a.shape[-1], dtype=bool), a.shape).copy(),)
    if a.dtype.kind in "iu":
        return ((np.minimum(abs(a), 2) * 0 + 1 + 5 * np.eye(a.shape[-1]).astype(a.dtype)).astype(a.dtype),)
    return ((a @ np.conj(np.swapaxes(a, -1, -2)) + np.eye(a.shape[-1])).astype(a.dtype),)


def _definite_nodes(a):
    return (contract.matmul(a, matrix.adjoint(a)),)


def _solve_triangular(a, b, lower=False, unit=False):
    dtype = np.linalg.solve(np.eye(1, dtype=a.dtype), np.ones(1, b.dtype)).dtype
    a, b = a.astype(dtype), b.astype(dtype)
    batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2]) if b.ndim > 1 else a.shape[:-2]
    column = b.ndim == 1
    b = b[:, None] if column else b
    a, b = np.broadcast_to(a, (*batch, *a.shape[-2:])), np.broadcast_to(b, (*batch, *b.shape[-2:]))
    result = np.empty(b.shape, dtype)
    for k in np.ndindex(*batch):
        result[k] = scipy.linalg.solve_triangular(a[k], b[k], lower=lower, unit_diagonal=unit)
    return result[..., 0] if column else result


for _shapes in [
    ((3, 3), (3,)),
    ((3, 3), (3, 2)),
    ((2, 3, 3), (3,)),
    ((2, 3, 3), (2, 3, 4)),
    ((2, 3, 3), (3, 4)),
    ((3, 3), (2, 3, 1)),
    ((1, 1), (1,)),
    ((0, 0), (0, 2)),
    ((0, 3, 3), (3, 2)),
    ((2, 3), (3,)),
    ((3, 3), (2,)),
    ((3,), (3,)),
]:
    _fine = (
        _shapes[0][-1] == 3
        and len(_shapes[0]) > 1
        and _shapes[0][-2] == 3
        and _shapes[1][0] != 2
        and 0 not in _shapes[0]
    )
    case(
        "solve",
        linalg.solve,
        np.linalg.solve,
        *_shapes,
        prepare=_regular if _fine else (lambda *v: v),
        derivative=_fine,
    )
for _lower, _unit in [(False, False), (True, False), (True, True)]:
    for _shapes in [((3, 3), (3,)), ((2, 3, 3), (3, 4)), ((3, 3), (2, 3, 1))]:
        case(
            "solve_triangular",
            lambda a, b, lower=_lower, unit=_unit: linalg.solve_triangular(a, b, lower=lower, unit_diagonal=unit),
            lambda a, b, lower=_lower, unit=_unit: _solve_triangular(a, b, lower, unit),
            *_shapes,
            label=f"{_shapes}-{_lower}-{_unit}",
            prepare=_regular,
        )


def _adjugate(a):
    """Cofactors, one minor at a time."""
    n = a.shape[-1]
    if a.ndim < 2 or a.shape[-2] != n:
        np.linalg.det(a)
    result = np.empty(a.shape, a.dtype)
    for i, j in np.ndindex(n, n):
        result[..., j, i] = (-1) ** (i + j) * np.linalg.det(np.delete(np.delete(a, i, axis=-2), j, axis=-1))
    return result


def _adjugate_change(a, t):
    """The difference of cofactors, which is the derivative where these are of the second degree at most."""
    return (_adjugate(a + t) - _adjugate(a - t)) / 2


for _shape in [(3, 2), (2, 3), (1, 4), (0, 2), (2, 0), (2, 3, 4)]:
    case("gram", gram.gram, lambda a: np.matmul(np.swapaxes(a, -1, -2), a), _shape)

SQUARES = [(3, 3), (1, 1), (2, 3, 3), (0, 0), (0, 2, 2), (2, 3), (3,)]
for _shape in SQUARES:
    _fine = _shape[-1] == 3 and _shape[-2:] == (3, 3)
    _square = {"derivative": _fine, "prepare": _regular if _fine else (lambda *v: v)}
    case("inv", linalg.inv, np.linalg.inv, _shape, **_square)
    case("det", determinants.det, np.linalg.det, _shape, **_square)
    case("slogdet", determinants.slogdet, np.linalg.slogdet, _shape, **_square)
    case(
        "adjugate",
        lambda a: linalg.make(determinants.ADJUGATE, (matrix.prepared(a),)),
        _adjugate,
        _shape,
        dtypes="dD",
        **_square,
        tags=frozenset({"rounds"}),
    )
    case(
        "adjugate",
        lambda a, t: linalg.make(determinants.ADJUGATE, (matrix.prepared(a), matrix.prepared(t))),
        _adjugate_change,
        *(_shape, _shape) if _fine else ((1, 1), (1, 1)),
        dtypes="dD",
        derivative=_fine,
        prepare=(lambda a, t: (*_regular(a), t)) if _fine else (lambda *v: v),
        tags=frozenset({"rounds"}),
    )
    _factored = {"prepare": _definite if _fine else (lambda *v: v), "smooth": _definite_nodes, "derivative": _fine}
    case("cholesky", linalg.cholesky, np.linalg.cholesky, _shape, **_factored)
    case(
        "cholesky",
        lambda a: linalg.cholesky(a, upper=True),
        lambda a: np.linalg.cholesky(a, upper=True),
        _shape,
        label=f"{_shape}-upper",
        **_factored,
    )
    for _uplo in "LU":
        _fields = {"derivative": _fine, "label": f"{_shape}-{_uplo}"}
        case(
            "eigvalsh",
            lambda a, u=_uplo: linalg.eigvalsh(a, u),
            lambda a, u=_uplo: np.linalg.eigvalsh(a, u),
            _shape,
            **_fields,
        )
        case(
            "eigh",
            lambda a, u=_uplo: linalg.eigh(a, u),
            lambda a, u=_uplo: tuple(np.linalg.eigh(a, u)),
            _shape,
            settle=lambda wv: (
                wv[0],
                contract.matmul(matrix.scaled(wv[1], matrix.as_row(wv[0])), matrix.adjoint(wv[1])),
            ),
            **_fields,
        )


def _projected(usv):
    """What a decomposition says whatever the phases of its vectors."""
    u, s, vh = usv
    k = s.type.shape[-1]
    left, right = matrix.leading(u, k), matrix.leading(matrix.adjoint(vh), k)
    weights = matrix.as_row(s)
    return (
        contract.matmul(matrix.scaled(left, weights * weights), matrix.adjoint(left)),
        s,
        contract.matmul(matrix.scaled(right, weights * weights), matrix.adjoint(right)),
        contract.matmul(matrix.scaled(left, weights * weights), matrix.adjoint(right)),
    )


for _shape in [(3, 3), (4, 2), (2, 4), (2, 3, 2), (0, 3), (3,)]:
    _fine = len(_shape) > 1 and 0 not in _shape
    case("svdvals", linalg.svdvals, lambda a: np.linalg.svd(a, compute_uv=False), _shape, derivative=_fine)
    case("pinv", linalg.pinv, np.linalg.pinv, _shape, derivative=_fine, dtypes=ALL if _fine else "fdFD")
    for _full in (False, True):
        case(
            "svd",
            lambda a, full=_full: linalg.svd(a, full_matrices=full),
            lambda a, full=_full: tuple(np.linalg.svd(a, full_matrices=full)),
            _shape,
            label=f"{_shape}-{_full}",
            settle=_projected,
            derivative=_fine,
        )
    case("qr", linalg.qr, lambda a: tuple(np.linalg.qr(a)), _shape, derivative=_fine)
    case(
        "qr", lambda a: linalg.qr(a, "r"), lambda a: np.linalg.qr(a, "r"), _shape, label=f"{_shape}-r", derivative=_fine
    )
    case(
        "qr",
        lambda a: linalg.qr(a, "complete"),
        lambda a: tuple(np.linalg.qr(a, "complete")),
        _shape,
        label=f"{_shape}-complete",
        derivative=_fine and _shape[-2] <= _shape[-1],
    )
