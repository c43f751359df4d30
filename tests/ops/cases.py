"""How each op that is not pointwise is tried: operands, what builds its node, and what NumPy (or SciPy) says.

Every op of the registry is here or in the rules by kind (pointwise ops, leaves): ``test_registry.py`` holds that.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.linalg
import scipy.special

from tensormagic.ops import contract, fft, fold, form, gather, linalg, matrix, move, scatter, sorting, update
from tensormagic.ops.op import registry
from tests.ops.harness import sample

ALL = "?bhilBHILfdFD"


@dataclass(frozen=True)
class Case:
    """One op on operands of some shapes.

    ``shapes`` holds, for each operand, the shape of a random array of the dtype under test, or a fixed array.
    ``prepare`` makes the operands fit what the op asks for (in NumPy); ``smooth`` is what stands before the op in tests
    of derivatives, in nodes, where the op reads only a part of its operand, and ``settle`` what stands behind it, where
    results are fixed only up to a phase. The tag ``rounds`` is for what is computed in another order than the oracle.
    """

    op: str
    build: Callable[..., Any]
    oracle: Callable[..., Any]
    shapes: tuple[Any, ...]
    label: str = ""
    prepare: Callable[..., tuple[Any, ...]] = lambda *values: values
    smooth: Callable[..., tuple[Any, ...]] = lambda *nodes: nodes
    settle: Callable[[Any], Any] = lambda result: result
    derivative: bool = True
    dtypes: str = ALL
    tags: frozenset[str] = field(default_factory=frozenset)

    def __str__(self) -> str:
        shapes = "x".join(str(np.shape(s) if isinstance(s, np.ndarray) else s) for s in self.shapes)
        return f"{self.op}-{self.label or shapes}".replace(" ", "")

    def operands(self, rng: np.random.Generator, dtype: Any) -> list[Any]:
        drawn = [s if isinstance(s, np.ndarray) else sample(rng, dtype, s) for s in self.shapes]
        return list(self.prepare(*drawn))


CASES: list[Case] = []


def case(op: str, build: Callable[..., Any], oracle: Callable[..., Any], *shapes: Any, **fields: Any) -> None:
    CASES.append(Case(op, build, oracle, shapes, **fields))


# folds ----------------------------------------------------------------------------------------------------------------

FOLDS = {
    "sum": (fold.SUM, np.sum),
    "prod": (fold.PROD, np.prod),
    "max": (fold.MAX, np.max),
    "min": (fold.MIN, np.min),
    "any": (fold.ANY, np.any),
    "all": (fold.ALL, np.all),
}
REDUCTIONS = [
    ((), ()),
    ((5,), (0,)),
    ((1,), (0,)),
    ((0,), (0,)),
    ((3, 4), (0,)),
    ((3, 4), (1,)),
    ((3, 4), (0, 1)),
    ((2, 0, 3), (1,)),
    ((2, 0, 3), (0,)),
    ((2, 3, 4), (0, 2)),
]
for _name, (_op, _numpy) in FOLDS.items():
    for _shape, _axes in REDUCTIONS:
        case(
            _name,
            lambda x, op=_op, axes=_axes: fold.fold(op, x, axes),
            lambda x, numpy=_numpy, axes=_axes: numpy(x, axis=axes),
            _shape,
            label=f"{_shape}-{_axes}",
            derivative=_name in {"sum", "prod"} or (_name in {"max", "min"} and all(_shape[k] for k in _axes)),
        )
        case(
            _name,
            lambda x, op=_op, axes=_axes: fold.fold(op, x, axes, keepdims=True),
            lambda x, numpy=_numpy, axes=_axes: numpy(x, axis=axes, keepdims=True),
            _shape,
            label=f"{_shape}-{_axes}-keepdims",
            derivative=False,
        )
for _name, _numpy in {"argmax": np.argmax, "argmin": np.argmin}.items():
    for _shape, _axis in [((5,), 0), ((0,), 0), ((3, 4), 0), ((3, 4), 1), ((2, 3, 4), 1), ((3, 4), None)]:
        case(
            _name,
            lambda x, name=_name, axis=_axis: fold.fold(
                {"argmax": fold.ARGMAX, "argmin": fold.ARGMIN}[name], x, fold.axes_of(x, axis)
            ),
            lambda x, numpy=_numpy, axis=_axis: numpy(x, axis=axis),
            _shape,
            label=f"{_shape}-{_axis}",
            derivative=False,
        )


def _logsumexp(x, axis):
    top = np.max(x, axis=axis, keepdims=True)
    return (np.log(np.sum(np.exp(x - top), axis=axis, keepdims=True)) + top).sum(axis=axis, dtype=x.dtype)


def _softmax(x, axis):
    e = np.exp(x - np.max(x, axis=axis, keepdims=True))
    return e / np.sum(e, axis=axis, keepdims=True)


def _log_softmax(x, axis):
    shifted = x - np.max(x, axis=axis, keepdims=True)
    return shifted - np.log(np.sum(np.exp(shifted), axis=axis, keepdims=True))


def _others(x, axis):
    """The product of all others, one element at a time."""
    moved = np.moveaxis(x, axis, -1)
    result = np.stack(
        [np.multiply.reduce(np.delete(moved, k, axis=-1), axis=-1, dtype=x.dtype) for k in range(moved.shape[-1])],
        axis=-1,
    )
    return np.moveaxis(result, -1, axis)


for _shape, _axis in [((5,), 0), ((3, 4), 0), ((3, 4), 1), ((2, 3, 4), 1)]:
    for _name, (_op, _numpy, _dtypes) in {
        "logsumexp": (fold.LOGSUMEXP, _logsumexp, "fd"),
        "softmax": (fold.SOFTMAX, _softmax, "fd"),
        "log_softmax": (fold.LOG_SOFTMAX, _log_softmax, "fd"),
        "cumsum": (fold.CUMSUM, np.cumsum, ALL),
        "cumprod": (fold.CUMPROD, np.cumprod, ALL),
    }.items():
        case(
            _name,
            lambda x, op=_op, axis=_axis: fold.fold(op, x, (axis,)),
            lambda x, numpy=_numpy, axis=_axis: numpy(x, axis),
            _shape,
            label=f"{_shape}-{_axis}",
            dtypes=_dtypes,
        )
case("prod_others", lambda x: fold.prod_others(x, (0,)), lambda x: _others(x, 0), (4,), dtypes="bhilBHIL")
case(
    "prod_others",
    lambda x: fold.prod_others(x, (1,)),
    lambda x: _others(x, 1),
    (2, 5),
    tags=frozenset({"rounds"}),
    dtypes="bhilBHILfdFD",
)
case("cumsum", lambda x: fold.row(fold.CUMSUM, x, (1,)), lambda x: np.cumsum(x, 1), (3, 0), derivative=False)
case("cumprod", lambda x: fold.row(fold.CUMPROD, x, (1,)), lambda x: np.cumprod(x, 1), (3, 0), derivative=False)

# moves and updates ----------------------------------------------------------------------------------------------------

for _shape, _target in [
    ((), (2, 3)),
    ((3,), (2, 3)),
    ((3, 1), (3, 4)),
    ((1, 4), (2, 3, 4)),
    ((1,), (0,)),
    ((0, 1), (0, 4)),
]:
    case(
        "broadcast",
        lambda x, t=_target: move.broadcast(x, t),
        lambda x, t=_target: np.broadcast_to(x, t),
        _shape,
        label=f"{_shape}-{_target}",
    )
for _shape, _axes in [((3, 4), (1, 0)), ((2, 3, 4), (2, 0, 1)), ((2, 0, 4), (1, 2, 0)), ((2, 3, 4), (-1, -3, -2))]:
    case(
        "transpose",
        lambda x, a=_axes: move.transpose(x, a),
        lambda x, a=_axes: np.transpose(x, a),
        _shape,
        label=f"{_shape}-{_axes}",
    )
for _shape, _target in [
    ((6,), (2, 3)),
    ((2, 3), (6,)),
    ((2, 3, 4), (4, 6)),
    ((2, 3, 4), (3, -1)),
    ((1,), ()),
    ((), (1, 1)),
    ((0, 3), (3, 0)),
    ((2, 3), (3, 1, 2)),
]:
    case(
        "reshape",
        lambda x, t=_target: move.reshape(x, t),
        lambda x, t=_target: np.reshape(x, t)[()],
        _shape,
        label=f"{_shape}-{_target}",
    )
for _shape, _slices, _index in [
    ((7,), ((1, 3, 2),), np.s_[1:7:2]),
    ((7,), ((6, 7, -1),), np.s_[::-1]),
    ((7,), ((5, 3, -2),), np.s_[5:0:-2]),
    ((7,), ((0, 0, 1),), np.s_[0:0]),
    ((4, 5), ((0, 4, 1), (4, 2, -3)), np.s_[:, ::-3]),
    ((4, 5), ((3, 1, 1), (0, 5, 1)), np.s_[3:4]),
]:
    case("slice", lambda x, s=_slices: move.slice_(x, s), lambda x, i=_index: x[i], _shape, label=f"{_shape}-{_slices}")
    _part = np.zeros(_shape)[_index].shape

    def _store(x, v, index=_index):
        result = x.copy()
        result[index] = v
        return result

    def _add(x, v, index=_index):
        result = x.copy()
        result[index] += v
        return result

    case("set", lambda x, v, s=_slices: update.set_at(x, v, s), _store, _shape, _part, label=f"{_shape}-{_slices}")
    case("add_at", lambda x, v, s=_slices: update.add_at(x, v, s), _add, _shape, _part, label=f"{_shape}-{_slices}")
for _shapes, _axis in [
    (((2,), (3,)), 0),
    (((2, 3), (2, 1), (2, 0)), 1),
    (((2, 3), (2, 3)), 0),
    (((2, 3, 1), (2, 3, 4)), 2),
]:
    case(
        "concatenate",
        lambda *xs, a=_axis: move.concatenate(xs, a),
        lambda *xs, a=_axis: np.concatenate(xs, axis=a),
        *_shapes,
    )

for _form, _dtypes in {"scalar": ALL, "python": "?ldD"}.items():
    case(
        "form",
        lambda x, f=_form: form.to_form(x, f),
        lambda x, f=_form: x[()] if f == "scalar" else x.item(),
        (),
        label=_form,
        dtypes=_dtypes,
    )

# contractions ---------------------------------------------------------------------------------------------------------


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

# linear algebra -------------------------------------------------------------------------------------------------------


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


def _hermitian(a):
    return (matrix.symmetric(a),)


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


SQUARES = [(3, 3), (1, 1), (2, 3, 3), (0, 0), (0, 2, 2), (2, 3), (3,)]
for _shape in SQUARES:
    _fine = _shape[-1] == 3 and _shape[-2:] == (3, 3)
    _square = {"derivative": _fine, "prepare": _regular if _fine else (lambda *v: v)}
    case("inv", linalg.inv, np.linalg.inv, _shape, **_square)
    case("det", linalg.det, np.linalg.det, _shape, **_square)
    case("slogdet", linalg.slogdet, np.linalg.slogdet, _shape, **_square)
    case(
        "adjugate",
        lambda a: linalg.make(linalg.ADJUGATE, (matrix.prepared(a),)),
        _adjugate,
        _shape,
        dtypes="dD",
        **_square,
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
        _fields = {"derivative": _fine, "smooth": _hermitian, "label": f"{_shape}-{_uplo}"}
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

# Fourier transforms ---------------------------------------------------------------------------------------------------

for _name in ("fft", "ifft", "rfft", "irfft"):
    for _shape, _n, _axis, _norm in [
        ((5,), None, -1, None),
        ((4,), None, -1, "ortho"),
        ((4, 3), None, 0, "forward"),
        ((4, 3), 5, 0, None),
        ((4, 5), 3, 1, "ortho"),
        ((4, 6), 4, -1, "backward"),
        ((1,), 3, 0, None),
        ((3, 0), None, 1, None),
        ((), None, -1, None),
    ]:
        case(
            _name,
            lambda x, name=_name, n=_n, axis=_axis, norm=_norm: getattr(fft, name)(x, n, axis, norm),
            lambda x, name=_name, n=_n, axis=_axis, norm=_norm: getattr(np.fft, name)(x, n, axis, norm),
            _shape,
            label=f"{_shape}-{_n}-{_axis}-{_norm}",
            derivative=0 not in _shape and _shape != () and not (_name == "irfft" and _shape == (1,)),
        )
for _name in ("fft2", "ifft2", "rfft2", "irfft2", "fftn", "ifftn", "rfftn", "irfftn"):
    for _s, _norm in [(None, None), ((4, 5), "ortho")]:
        case(
            _name.removesuffix("2").removesuffix("n"),
            lambda x, name=_name, s=_s, norm=_norm: getattr(fft, name)(x, s, (-2, -1), norm),
            lambda x, name=_name, s=_s, norm=_norm: getattr(np.fft, name)(x, s, (-2, -1), norm),
            (2, 4, 4),
            label=f"{_name}-{_s}",
            derivative=False,
        )
for _name in ("hfft", "ihfft", "fftshift", "ifftshift"):
    case(
        {"hfft": "irfft", "ihfft": "rfft"}.get(_name, "concatenate"),
        lambda x, name=_name: getattr(fft, name)(x),
        lambda x, name=_name: getattr(np.fft, name)(x),
        (5,),
        label=_name,
        derivative=False,
    )

# sorting and gathering ------------------------------------------------------------------------------------------------

for _shape, _axis, _kind in [
    ((6,), -1, None),
    ((3, 4), 0, "stable"),
    ((3, 4), 1, "heapsort"),
    ((3, 4), None, None),
    ((0,), 0, None),
    ((), -1, None),
]:
    for _name in ("sort", "argsort"):
        case(
            _name,
            lambda x, name=_name, axis=_axis, kind=_kind: getattr(sorting, name)(x, axis, kind),
            lambda x, name=_name, axis=_axis, kind=_kind: getattr(np, name)(x, axis, kind),
            _shape,
            label=f"{_shape}-{_axis}-{_kind}",
            derivative=_name == "sort" and 0 not in _shape and _shape != (),
        )
INDICES = [
    np.array([0, -1, 2, 2]),
    np.array([[1, 0], [-3, 2]]),
    np.array(1),
    np.array([], np.int64),
    np.array([5]),
    np.array([-4]),
    np.array([1, 2], np.int8),
    np.array([1], np.uint64),
    np.array([1.0]),
    np.array([True, False]),
]
for _indices in INDICES:
    for _shape, _axis in [((3,), 0), ((3, 2), 0), ((2, 3), -1), ((2, 3), None)]:
        _label = f"{_shape}-{_axis}-{_indices.dtype}{_indices.tolist()}"
        _fine = _indices.dtype.kind == "i" and _indices.size > 0 and abs(_indices).max() < 4
        _inside = _fine and _indices.min() >= -3
        case(
            "gather",
            lambda x, i, axis=_axis: gather.gather(x, i, axis),
            lambda x, i, axis=_axis: np.take(x, i, axis),
            _shape,
            _indices,
            label=_label,
            derivative=_inside,
        )
case(
    "gather",
    lambda x, i: gather.gather(x, i, 0),
    lambda x, i: np.take(x, i, 0),
    (0, 2),
    np.array([0]),
    derivative=False,
)
for _name, _ufunc in {
    "scatter_set": None,
    "scatter_add": np.add,
    "scatter_multiply": np.multiply,
    "scatter_maximum": np.maximum,
    "scatter_minimum": np.minimum,
}.items():
    for _indices, _shape, _axis in [
        (np.array([0, -1, 2, 2]), (3,), 0),
        (np.array([2, 0]), (3,), 0),
        (np.array([[1, 0], [-3, 2]]), (2, 3), 1),
        (np.array(1), (3, 2), 0),
        (np.array([5]), (3,), 0),
        (np.array([], np.int64), (3,), 0),
        (np.array([0, 0]), (2, 2, 2), 1),
    ]:

        def _scattered(x, i, v, axis=_axis, ufunc=_ufunc):
            result = x.copy()
            place = (*(slice(None),) * axis, i)
            if ufunc is None:
                result[place] = v
            else:
                ufunc.at(result, place, v)
            return result

        case(
            _name,
            lambda x, i, v, axis=_axis, name=_name: scatter.scatter(registry[name], x, i, v, axis),
            _scattered,
            _shape,
            _indices,
            (*_shape[:_axis], *_indices.shape, *_shape[_axis + 1 :]),
            label=f"{_shape}-{_indices.tolist()}",
            derivative=_indices.size > 0 and _indices.max() < 5,
        )
for _indices, _shape, _axis in [
    (np.array([0, -1, 2, 2]), (3,), 0),
    (np.array([[1, 0], [-3, 2]]), (2, 3), 1),
    (np.array([[1, 0, 1]]), (2, 3), 0),
    (np.array([[2], [1]]), (1, 3), 1),
    (np.array([[5, 0, 1]]), (2, 3), 0),
    (np.array([1]), (2, 3), 0),
]:
    _fine = _indices.max() < 3 and _indices.ndim == len(_shape)
    case(
        "take_along_axis",
        lambda x, i, axis=_axis: gather.take_along_axis(x, i, axis),
        lambda x, i, axis=_axis: np.take_along_axis(x, i, axis),
        _shape,
        _indices,
        label=f"{_shape}-{_indices.tolist()}",
        derivative=_fine,
    )

    def _along(x, i, v, axis=_axis):
        result = x.copy()
        for place in np.ndindex(*i.shape):
            target = list(place)
            target[axis] = i[place]
            result[tuple(target)] += v[place]
        return result

    if (_fine and _shape[0] > 1) or _shape == (3,):
        case(
            "add_along_axis",
            lambda x, i, v, axis=_axis: gather.make(gather.ADD_ALONG_AXIS, (x, i, v), axis=axis),
            _along,
            _shape,
            _indices,
            _indices.shape,
            label=f"{_shape}-{_indices.tolist()}",
        )

import tests.ops.cases_matrices  # noqa: E402 (they add to CASES)
import tests.ops.cases_selection  # noqa: E402 (the same)
import tests.ops.cases_sequences  # noqa: E402 (the same)
import tests.ops.cases_tapes  # noqa: E402, F401 (the same)
