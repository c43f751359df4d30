"""Products, inverses and factorisations of ``np.linalg`` on lazy arrays; the ops know LAPACK and derivatives."""

from __future__ import annotations

import operator
import warnings
from functools import cache
from typing import Any

import numpy as np

from tensormagic.capture.errors.refusal import refuse
from tensormagic.capture.library.complex_numbers import taken_for_real
from tensormagic.capture.library.diagonals import diagonal
from tensormagic.capture.library.joining import stack
from tensormagic.capture.library.products import outer, tensordot, trace
from tensormagic.capture.library.shaping import moveaxis
from tensormagic.capture.names import implements
from tensormagic.capture.values.arguments import strong, tensor
from tensormagic.capture.values.operands import build, node_of
from tensormagic.capture.values.value import Tensor, done, wrap
from tensormagic.ir.errors import ShapeError
from tensormagic.ir.node import Node
from tensormagic.ir.type import apply
from tensormagic.ops import fold as folds
from tensormagic.ops.contract import LETTERS, einsum, matmul
from tensormagic.ops.fold import axes_of, fold
from tensormagic.ops.form import to_form
from tensormagic.ops.indices import sorting
from tensormagic.ops.indices.gather import take_along_axis
from tensormagic.ops.leaf import iota, size_node
from tensormagic.ops.matrices import determinants, linalg, spectral
from tensormagic.ops.move import broadcast, expand_dims, flip, reshape
from tensormagic.ops.move_kind import same, show
from tensormagic.ops.pointwise import astype
from tensormagic.ops.scalars import scalar

_MISSING = np._NoValue  # type: ignore[attr-defined] # noqa: SLF001 (NumPy's own mark for an option that is not given)


_numpys: Any = np.linalg._linalg  # type: ignore[attr-defined] # noqa: SLF001 (the classes of its results have no public name)
EigResult, EighResult, SVDResult = _numpys.EigResult, _numpys.EighResult, _numpys.SVDResult
QRResult, SlogdetResult = _numpys.QRResult, _numpys.SlogdetResult


implements(np.linalg.inv)(lambda a: done(linalg.inv(node_of(a))))
implements(np.linalg.solve)(lambda a, b: done(linalg.solve(node_of(a), node_of(b))))
implements(np.linalg.det)(lambda a: done(determinants.det(node_of(a))))
implements(np.linalg.slogdet)(lambda a: SlogdetResult(*map(done, determinants.slogdet(node_of(a)))))
implements(np.linalg.cholesky)(lambda a, /, *, upper=False: done(linalg.cholesky(node_of(a), upper=upper)))
implements(np.linalg.eigh)(lambda a, UPLO="L": EighResult(*map(done, linalg.eigh(node_of(a), UPLO))))
implements(np.linalg.eigvalsh)(lambda a, UPLO="L": done(linalg.eigvalsh(node_of(a), UPLO)))
implements(np.linalg.svdvals)(lambda x, /: done(linalg.svdvals(node_of(x))))
implements(np.linalg.matmul)(lambda x1, x2, /: done(matmul(node_of(x1), node_of(x2))))
implements(np.linalg.tensordot)(lambda x1, x2, /, *, axes=2: tensordot(x1, x2, axes))
implements(np.linalg.trace)(lambda x, /, *, offset=0, dtype=None: trace(x, offset, -2, -1, dtype))
implements(np.linalg.diagonal)(lambda x, /, *, offset=0: diagonal(x, offset, -2, -1))
implements(np.linalg.matrix_transpose)(lambda x, /: tensor(x).mT)


@implements(np.linalg.outer)
def outer_(x1: Any, x2: Any, /) -> Any:
    """Implement ``np.linalg.outer`` of two vectors."""
    ranks = [node_of(v).type.ndim for v in (x1, x2)]
    if ranks != [1, 1]:
        raise ShapeError(f"Input arrays must be one-dimensional, but they have {ranks[0]} and {ranks[1]} axes.")
    return outer(x1, x2)


# factorisations -------------------------------------------------------------------------------------------------------


@implements(np.linalg.svd)
def svd(a: Any, full_matrices: bool = True, compute_uv: bool = True, hermitian: bool = False) -> Any:
    """Implement ``np.linalg.svd``."""
    if hermitian:
        return _svd_of_hermitian(a, compute_uv)
    if not compute_uv:
        return done(linalg.svdvals(node_of(a)))
    return SVDResult(*map(done, linalg.svd(node_of(a), full_matrices=full_matrices)))


def _svd_of_hermitian(a: Any, compute_uv: bool) -> Any:
    """Return the singular value decomposition of a Hermitian matrix, from its eigenvalues.

    Singular values are the absolute values of eigenvalues, descending; their signs go to the right vectors.
    """
    if not compute_uv:
        sizes = sorting.sort(scalar.absolute(linalg.eigvalsh(node_of(a))))
        return done(flip(sizes, (sizes.type.ndim - 1,)))
    values, vectors = linalg.eigh(node_of(a))
    last = values.type.ndim - 1
    order = flip(sorting.argsort(scalar.absolute(values)), (last,))
    sign = take_along_axis(scalar.copysign(1.0, values), order, last)
    left = take_along_axis(vectors, expand_dims(order, (last,)), last + 1)
    right = linalg.adjoint(linalg.scaled(left, linalg.as_row(sign)))
    return SVDResult(*map(done, (left, take_along_axis(scalar.absolute(values), order, last), right)))


@implements(np.linalg.qr)
def qr(a: Any, mode: str = "reduced") -> Any:
    """Implement ``np.linalg.qr`` in modes "reduced", "complete" and "r"."""
    if mode == "raw":
        refuse("np.linalg.qr with mode='raw'", "Use mode='reduced'.")
    mode = {"full": "reduced", "f": "reduced"}.get(mode, mode)  # NumPy's former names
    found = tuple(done(n) for n in linalg.qr(node_of(a), mode))
    return found[0] if mode == "r" else QRResult(*found)


@implements(np.linalg.pinv)
def pinv(a: Any, rcond: Any = None, hermitian: bool = False, *, rtol: Any = _MISSING) -> Any:
    """Implement ``np.linalg.pinv``."""
    if rcond is not None and rtol is not _MISSING:
        raise ValueError("`rtol` and `rcond` can't be both set.")
    matrix = node_of(a)
    if matrix.type.size == 0:
        *outer, rows, columns = matrix.type.shape
        return done(reshape(matrix, (*outer, columns, rows)))
    bound = rtol if rcond is None else rcond
    bound = 1e-15 if bound is _MISSING else "size" if bound is None else bound
    if not hermitian and isinstance(bound, float | int | str):
        return done(linalg.pinv(matrix, bound))
    x = linalg.prepared(matrix)
    size = max_extent(x) * float(np.finfo(x.type.dtype).eps)
    return _pinv_by_vectors(x, size if isinstance(bound, str) else node_of(bound), hermitian)


def _pinv_by_vectors(x: Node, bound: Node, hermitian: bool) -> Tensor:
    """Return the pseudo-inverse from singular vectors, leaving out those whose value is not above ``bound`` times the largest."""
    u, s, vh = (t.node for t in svd(wrap(x), full_matrices=False, hermitian=hermitian))
    last = s.type.ndim - 1
    bound = expand_dims(bound, (bound.type.ndim,)) if bound.type.ndim else bound
    large = scalar.greater(s, bound * fold(folds.MAX, s, (last,), keepdims=True))
    inverse = scalar.where(large, 1 / scalar.where(large, s, 1), 0)
    return done(matmul(linalg.scaled(linalg.adjoint(vh), linalg.as_row(inverse)), linalg.adjoint(u)))


def max_extent(x: Node) -> Node:
    """Return the larger extent of matrices, as a number."""
    return astype(size_node(apply("max", *x.type.shape[-2:])), np.float64)


# eigenvalues of general matrices --------------------------------------------------------------------------------------


def _kind(node: Node) -> dict[str, Any]:
    """Return whether the eigenvalues are real, as parameters of the op: for a real matrix, the values decide."""
    linalg.square(node)
    if node.type.dtype.kind == "c" or not _may_be_real():
        return {"real": False}
    real, site = taken_for_real(node, np.linalg.eigvals)
    return {"real": real, "site": site}


@cache
def _may_be_real() -> bool:
    """Return whether NumPy has real eigenvalues at all: from 2.5 on they are complex numbers."""
    return not np.iscomplexobj(np.linalg.eigvals(np.eye(1)))


@implements(np.linalg.eig)
def eig(a: Any) -> Any:
    """Implement ``np.linalg.eig``: of a real matrix, real where the values are."""
    x = node_of(a)
    return EigResult(*map(done, spectral.eig(x, **_kind(x))))


@implements(np.linalg.eigvals)
def eigvals(a: Any) -> Any:
    """Implement ``np.linalg.eigvals``: of a real matrix, real where the values are."""
    x = node_of(a)
    return done(spectral.eigvals(x, **_kind(x)))


# powers ---------------------------------------------------------------------------------------------------------------


@implements(np.linalg.matrix_power)
def matrix_power(a: Any, n: int) -> Any:
    """Implement ``np.linalg.matrix_power``, multiplied in NumPy's order."""
    x = node_of(a)
    if x.type.ndim < 2 or not same(*x.type.shape[-2:]):
        raise ShapeError(f"Last 2 dimensions of the array must be square, and its shape is {show(x.type.shape)}")
    try:
        power = operator.index(n)
    except TypeError as error:
        raise TypeError("exponent must be an integer") from error
    if power == 0:
        shape = x.type.shape[-2:]
        unit = astype(scalar.equal(iota(shape, 0), iota(shape, 1)), x.type.dtype)
        return done(broadcast(unit, x.type.shape))
    if power < 0:
        x, power = linalg.inv(x), -power
    if power <= 3:
        return done([x, matmul(x, x) if power > 1 else x, matmul(matmul(x, x), x) if power == 3 else x][power - 1])
    square: Node | None = None
    result: Node | None = None
    while power:
        square = x if square is None else matmul(square, square)
        power, bit = divmod(power, 2)
        if bit:
            result = square if result is None else matmul(result, square)
    return done(result if result is not None else x)


@implements(np.linalg.multi_dot)
def multi_dot(arrays: Any, *, out: Any = None) -> Any:
    """Implement ``np.linalg.multi_dot``: one contraction, along the cheapest path."""
    nodes = [node_of(v) for v in arrays]
    if out is not None:
        refuse("np.linalg.multi_dot with out=", "Assign the result instead.")
    if len(nodes) < 2:
        raise ValueError("Expecting at least two arrays.")
    terms = [LETTERS[k : k + 2] for k in range(len(nodes))]
    terms[0] = terms[0][-nodes[0].type.ndim :]
    terms[-1] = terms[-1][: nodes[-1].type.ndim]
    if any(len(t) != n.type.ndim for t, n in zip(terms, nodes, strict=True)):
        raise ShapeError("multi_dot takes matrices, with vectors allowed at the two ends")
    ends = (terms[0][0] if nodes[0].type.ndim == 2 else "") + (terms[-1][-1] if nodes[-1].type.ndim == 2 else "")
    return done(einsum(f"{','.join(terms)}->{ends}", *nodes))


# products -------------------------------------------------------------------------------------------------------------


@implements(np.linalg.vecdot, np.vecdot)
def vecdot(x1: Any, x2: Any, /, *, axis: int = -1) -> Any:
    """Implement ``np.vecdot``: the product of vectors along an axis, the first conjugated."""
    x, y = node_of(x1), node_of(x2)
    if not x.type.ndim or not y.type.ndim:
        raise ShapeError("vecdot takes arrays of at least one axis")
    if axis != -1:
        (k,), (m,) = axes_of(x, axis), axes_of(y, axis)
        orders = ([*(j for j in range(v.type.ndim) if j != p), p] for v, p in ((x, k), (y, m)))
        x, y = (wrap(v).transpose(order).node for v, order in zip((x, y), orders, strict=True))
    x = scalar.conjugate(x) if x.type.dtype.kind == "c" else x
    rows = matmul(expand_dims(x, (x.type.ndim - 1,)), expand_dims(y, (y.type.ndim,)))
    return done(reshape(rows, rows.type.shape[:-2]))


@implements(np.cross)
def cross(a: Any, b: Any, axisa: int = -1, axisb: int = -1, axisc: int = -1, axis: int | None = None) -> Any:
    """Implement ``np.cross`` of vectors of three components, or of two, whose third is 0."""
    if axis is not None:
        axisa = axisb = axisc = axis
    x, y = (_components(v, k) for v, k in ((a, axisa), (b, axisb)))
    if not _takes_planes() and not len(x) == len(y) == 3:
        raise ShapeError(
            "Both input arrays must be (arrays of) 3-dimensional vectors, "
            f"but they are {len(x)} and {len(y)} dimensional instead."
        )
    if len(x) == len(y) == 2:
        return done(to_form(x[0] * y[1] - x[1] * y[0], "array"))
    parts = [_minor(x, y, k, m) for k, m in ((1, 2), (2, 0), (0, 1))]
    return stack([wrap(part) for part in parts], axis=axisc)


@cache
def _takes_planes() -> bool:
    """Return whether this NumPy's function takes vectors of two components, which later versions do not."""
    with warnings.catch_warnings(action="ignore"):
        try:
            np.cross([1, 0], [0, 1])
        except ValueError:
            return False
    return True


@implements(np.linalg.cross)
def cross_(x1: Any, x2: Any, /, *, axis: int = -1) -> Any:
    """Implement ``np.linalg.cross`` of vectors of three components."""
    if any(len(_components(v, axis)) != 3 for v in (x1, x2)):
        raise ShapeError("Both input arrays must be (arrays of) 3-dimensional vectors")
    return cross(x1, x2, axis=axis)


def _components(value: Any, axis: int) -> list[Node]:
    """Return the components of vectors along an axis."""
    x = moveaxis(wrap(node_of(value)), axis, -1)
    for count in (2, 3):
        if x.shape[-1] == count:
            return [x[..., k].node for k in range(count)]
    raise ShapeError("incompatible dimensions for cross product\n(dimension must be 2 or 3)")


def _minor(x: list[Node], y: list[Node], k: int, m: int) -> Node:
    """Return ``x[k] * y[m] - x[m] * y[k]``, without the term of a missing component."""
    if k >= len(x) or m >= len(y):
        return -(x[m] * y[k])
    if m >= len(x) or k >= len(y):
        return x[k] * y[m]
    return x[k] * y[m] - x[m] * y[k]


@implements(np.kron)
def kron(a: Any, b: Any) -> Any:
    """Implement ``np.kron``."""
    x, y = node_of(a), node_of(b)
    rank = max(x.type.ndim, y.type.ndim)
    if not rank:
        return build(scalar.multiply, strong(a), strong(b))
    x, y = (reshape(v, (*(1 for _ in range(rank - v.type.ndim)), *v.type.shape)) for v in (x, y))
    left = expand_dims(x, tuple(range(1, 2 * rank, 2)))
    right = expand_dims(y, tuple(range(0, 2 * rank, 2)))
    shape = tuple(m * n for m, n in zip(x.type.shape, y.type.shape, strict=True))
    return done(reshape(scalar.multiply(left, right), shape))
