"""``np.linalg``, and what ``scipy.linalg`` has of the same, on lazy arrays; the ops know LAPACK and derivatives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from tensormagic.capture import context
from tensormagic.capture.names import implements
from tensormagic.capture.products import outer, trace
from tensormagic.capture.reductions import axis_of
from tensormagic.capture.shaping import moveaxis, stack
from tensormagic.capture.value import Tensor, node_of, refuse, wrap
from tensormagic.ir.errors import ShapeError
from tensormagic.ir.node import Node
from tensormagic.ops import fold as folds
from tensormagic.ops import linalg, scalar
from tensormagic.ops.contract import LETTERS, einsum, matmul
from tensormagic.ops.fold import axes_of, fold, reduce_sum
from tensormagic.ops.leaf import iota
from tensormagic.ops.move import broadcast, expand_dims, reshape, same, show, transpose
from tensormagic.ops.pointwise import astype


class EighResult(NamedTuple):
    """Eigenvalues and eigenvectors."""

    eigenvalues: Tensor
    eigenvectors: Tensor


class SVDResult(NamedTuple):
    """Left singular vectors, singular values, right singular vectors."""

    U: Tensor
    S: Tensor
    Vh: Tensor


class QRResult(NamedTuple):
    """Orthonormal and triangular factor."""

    Q: Tensor
    R: Tensor


class SlogdetResult(NamedTuple):
    """Sign and logarithm of the absolute value of a determinant."""

    sign: Tensor
    logabsdet: Tensor


def _done(node: Node) -> Tensor:
    return wrap(context.record(node))


implements(np.linalg.inv)(lambda a: _done(linalg.inv(node_of(a))))
implements(np.linalg.solve)(lambda a, b: _done(linalg.solve(node_of(a), node_of(b))))
implements(np.linalg.det)(lambda a: _done(linalg.det(node_of(a))))
implements(np.linalg.slogdet)(lambda a: SlogdetResult(*map(_done, linalg.slogdet(node_of(a)))))
implements(np.linalg.cholesky)(lambda a, /, *, upper=False: _done(linalg.cholesky(node_of(a), upper=upper)))
implements(np.linalg.eigh)(lambda a, UPLO="L": EighResult(*map(_done, linalg.eigh(node_of(a), UPLO))))
implements(np.linalg.eigvalsh)(lambda a, UPLO="L": _done(linalg.eigvalsh(node_of(a), UPLO)))
implements(np.linalg.svdvals)(lambda x, /: _done(linalg.svdvals(node_of(x))))
implements(np.linalg.matmul)(lambda x1, x2, /: _done(matmul(node_of(x1), node_of(x2))))
implements(np.linalg.outer)(lambda x1, x2, /: outer(x1, x2))
implements(np.linalg.trace)(lambda x, /, *, offset=0, dtype=None: trace(x, offset, -2, -1, dtype))
implements("scipy.linalg.inv")(lambda a, **options: _plain("inv", options, lambda: _done(linalg.inv(node_of(a)))))
implements("scipy.linalg.det")(lambda a, **options: _plain("det", options, lambda: _done(linalg.det(node_of(a)))))


def _plain(name: str, options: dict[str, Any], result: Callable[[], Any]) -> Any:
    """A SciPy function whose options say only how it works, not what it gives."""
    harmless = {"check_finite", "overwrite_a", "overwrite_b"}
    others = sorted(set(options) - harmless)
    if others:
        refuse(f"scipy.linalg.{name} with {', '.join(others)}", "Leave the option out.")
    return result()


@implements("scipy.linalg.solve")
def scipy_solve(a: Any, b: Any, **options: Any) -> Any:
    """``scipy.linalg.solve``: a right side with one axis is a vector."""
    return _plain("solve", options, lambda: _done(linalg.solve(node_of(a), node_of(b))))


@implements("scipy.linalg.cholesky")
def scipy_cholesky(a: Any, lower: bool = False, **options: Any) -> Any:
    """``scipy.linalg.cholesky``: the upper factor, unless ``lower``."""
    return _plain("cholesky", options, lambda: _done(linalg.cholesky(node_of(a), upper=not lower)))


@implements("scipy.linalg.solve_triangular")
def scipy_solve_triangular(
    a: Any, b: Any, trans: Any = 0, lower: bool = False, unit_diagonal: bool = False, **options: Any
) -> Any:
    """``scipy.linalg.solve_triangular``."""
    x = node_of(a)
    if trans in {1, "T"}:
        x, lower = linalg.swap(x), not lower
    elif trans in {2, "C"}:
        x, lower = linalg.adjoint(x), not lower
    elif trans not in {0, "N"}:
        raise ValueError(f"trans is one of 0, 1, 2, 'N', 'T', 'C'; not {trans!r}")
    build = linalg.solve_triangular
    return _plain(
        "solve_triangular", options, lambda: _done(build(x, node_of(b), lower=lower, unit_diagonal=unit_diagonal))
    )


# factorisations -------------------------------------------------------------------------------------------------------


@implements(np.linalg.svd)
def svd(a: Any, full_matrices: bool = True, compute_uv: bool = True, hermitian: bool = False) -> Any:
    """``np.linalg.svd``."""
    if hermitian:
        refuse("np.linalg.svd with hermitian=True", "Leave the option out, or use np.linalg.eigh.")
    if not compute_uv:
        return _done(linalg.svdvals(node_of(a)))
    return SVDResult(*map(_done, linalg.svd(node_of(a), full_matrices=full_matrices)))


@implements(np.linalg.qr)
def qr(a: Any, mode: str = "reduced") -> Any:
    """``np.linalg.qr`` in modes "reduced", "complete" and "r"."""
    if mode == "raw":
        refuse("np.linalg.qr with mode='raw'", "Use mode='reduced'.")
    found = tuple(_done(n) for n in linalg.qr(node_of(a), mode))
    return found[0] if mode == "r" else QRResult(*found)


@implements(np.linalg.pinv)
def pinv(a: Any, rcond: Any = None, hermitian: bool = False, *, rtol: Any = None) -> Any:
    """``np.linalg.pinv``."""
    if hermitian or (rtol is not None and not isinstance(rtol, float | int)) or isinstance(rcond, Tensor):
        refuse(
            "np.linalg.pinv with hermitian, or a bound that is captured",
            "Leave the option out, or write the bound as a number.",
        )
    return _done(linalg.pinv(node_of(a), rcond if rtol is None else rtol))


@implements(np.linalg.matrix_power)
def matrix_power(a: Any, n: int) -> Any:
    """``np.linalg.matrix_power``, multiplied in NumPy's order."""
    x = node_of(a)
    if x.type.ndim < 2 or not same(*x.type.shape[-2:]):
        raise ShapeError(f"Last 2 dimensions of the array must be square, and its shape is {show(x.type.shape)}")
    power = n.__index__()
    if power == 0:
        shape = x.type.shape[-2:]
        unit = astype(scalar.equal(iota(shape, 0), iota(shape, 1)), x.type.dtype)
        return _done(broadcast(unit, x.type.shape))
    if power < 0:
        x, power = linalg.inv(x), -power
    if power <= 3:
        return _done([x, matmul(x, x) if power > 1 else x, matmul(matmul(x, x), x) if power == 3 else x][power - 1])
    square: Node | None = None
    result: Node | None = None
    while power:
        square = x if square is None else matmul(square, square)
        power, bit = divmod(power, 2)
        if bit:
            result = square if result is None else matmul(result, square)
    return _done(result if result is not None else x)


@implements(np.linalg.multi_dot)
def multi_dot(arrays: Any, *, out: Any = None) -> Any:
    """``np.linalg.multi_dot``: one contraction, along the cheapest path."""
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
    return _done(einsum(f"{','.join(terms)}->{ends}", *nodes))


# norms ----------------------------------------------------------------------------------------------------------------


def _root(total: Node) -> Node:
    """The square root, whose derivative at 0 is taken for 0."""
    zero = scalar.equal(total, 0)
    return scalar.where(zero, 0, scalar.sqrt(scalar.where(zero, 1, total)))


def _floating(x: Node) -> Node:
    return x if x.type.inexact else astype(x, np.float64)


def _square_sum(x: Node) -> Node:
    """The sum of the squared absolute values of all elements, by BLAS as NumPy's norm does."""
    flat = reshape(x, (-1,)) if x.type.ndim != 1 else x
    if x.type.dtype.kind != "c":
        return einsum("a,a->", flat, flat)
    parts = (scalar.real(flat), scalar.imag(flat))
    return einsum("a,a->", parts[0], parts[0]) + einsum("a,a->", parts[1], parts[1])


def _squares(x: Node) -> Node:
    return scalar.real(scalar.conjugate(x) * x) if x.type.dtype.kind == "c" else x * x


@implements(np.linalg.norm)
def norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Any:
    """``np.linalg.norm`` of every order; where the 2-norm is 0, its gradient is 0."""
    node = _floating(node_of(x))
    rank = node.type.ndim
    if axis is None and (ord is None or (ord in ("f", "fro") and rank == 2) or (ord == 2 and rank == 1)):
        whole = _root(_square_sum(node))
        return _done(expand_dims(whole, tuple(range(rank))) if keepdims else whole)
    axes = tuple(range(rank)) if axis is None else _as_axes(axis)
    if len(axes) == 1:
        return _done(_vector_norm(node, ord, axes_of(node, axes), keepdims))
    if len(axes) == 2:
        return _done(_matrix_norm(node, ord, axes, keepdims))
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
        return reduced(folds.MAX if order > 0 else folds.MIN, size)
    if order == 0:
        return astype(reduced(folds.SUM, astype(scalar.not_equal(x, 0), size.type.dtype)), size.type.dtype)
    if order == 1:
        return reduced(folds.SUM, size)
    total = reduced(folds.SUM, scalar.power(size, order))
    zero = scalar.equal(total, 0)
    exponent = float(np.reciprocal(np.float64(order)))
    return scalar.where(zero, 0.0**exponent if order > 0 else 0.0, scalar.power(scalar.where(zero, 1, total), exponent))


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
        result = fold(folds.MAX if order > 0 else folds.MIN, sums, (outside - (outside > inner),))
    else:
        raise ValueError("Invalid norm order for matrices.")
    return expand_dims(result, both) if keepdims else result


def _singular_norm(x: Node, order: Any, rows: int, columns: int) -> Node:
    others = [k for k in range(x.type.ndim) if k not in {rows, columns}]
    values = linalg.svdvals(transpose(x, (*others, rows, columns)))
    op = folds.SUM if order == "nuc" else folds.MAX if order == 2 else folds.MIN
    return fold(op, values, (values.type.ndim - 1,))


@implements(np.linalg.vector_norm)
def vector_norm(x: Any, /, *, axis: Any = None, keepdims: bool = False, ord: Any = 2) -> Any:
    """``np.linalg.vector_norm``: over all axes, or those given, taken together."""
    node = _floating(node_of(x))
    axes = axes_of(node, axis_of(axis))
    return _done(_vector_norm(node, ord, axes, keepdims))


@implements(np.linalg.matrix_norm)
def matrix_norm(x: Any, /, *, keepdims: bool = False, ord: Any = "fro") -> Any:
    """``np.linalg.matrix_norm`` of the last two axes."""
    return _done(_matrix_norm(_floating(node_of(x)), ord, (-2, -1), keepdims))


@implements(np.linalg.cond)
def cond(x: Any, p: Any = None) -> Any:
    """``np.linalg.cond``: by singular values, or by the norms of the matrix and its inverse."""
    node = _floating(node_of(x))
    if p in {None, 2, -2}:
        values = wrap(linalg.svdvals(node))
        first, last = (values[..., 0], values[..., -1]) if p != -2 else (values[..., -1], values[..., 0])
        return _done(first.node / last.node)
    norms = [_matrix_norm(v, p, (-2, -1), keepdims=False) for v in (node, linalg.inv(node))]
    return _done(norms[0] * norms[1])


@implements(np.linalg.vecdot, np.vecdot)
def vecdot(x1: Any, x2: Any, /, *, axis: int = -1) -> Any:
    """``np.vecdot``: the product of vectors along an axis, the first conjugated."""
    x, y = node_of(x1), node_of(x2)
    if not x.type.ndim or not y.type.ndim:
        raise ShapeError("vecdot takes arrays of at least one axis")
    if axis != -1:
        (k,), (m,) = axes_of(x, axis), axes_of(y, axis)
        x, y = (wrap(v) for v in (x, y))
        x, y = (v.swapaxes(p, -1).node for v, p in ((x, k), (y, m)))
    x = scalar.conjugate(x) if x.type.dtype.kind == "c" else x
    rows = matmul(expand_dims(x, (x.type.ndim - 1,)), expand_dims(y, (y.type.ndim,)))
    return _done(reshape(rows, rows.type.shape[:-2]))


@implements(np.cross, np.linalg.cross)
def cross(a: Any, b: Any, axisa: int = -1, axisb: int = -1, axisc: int = -1, axis: int | None = None) -> Any:
    """``np.cross`` of vectors of three components."""
    if axis is not None:
        axisa = axisb = axisc = axis
    x, y = (_last(v, k) for v, k in ((a, axisa), (b, axisb)))
    if x.shape[-1] != 3 or y.shape[-1] != 3:
        raise ShapeError("incompatible dimensions for cross product\n(dimension must be 2 or 3)")
    first, second = ([v[..., k].node for k in (0, 1, 2, 0, 1)] for v in (x, y))
    parts = [first[k + 1] * second[k + 2] - first[k + 2] * second[k + 1] for k in range(3)]
    return stack(parts, axis=axisc)


def _last(value: Any, axis: int) -> Tensor:
    return moveaxis(wrap(node_of(value)), axis, -1)


@implements(np.kron)
def kron(a: Any, b: Any) -> Any:
    """``np.kron``."""
    x, y = node_of(a), node_of(b)
    rank = max(x.type.ndim, y.type.ndim)
    x, y = (reshape(v, (*(1 for _ in range(rank - v.type.ndim)), *v.type.shape)) for v in (x, y))
    left = expand_dims(x, tuple(range(1, 2 * rank, 2)))
    right = expand_dims(y, tuple(range(0, 2 * rank, 2)))
    shape = tuple(m * n for m, n in zip(x.type.shape, y.type.shape, strict=True))
    return _done(reshape(scalar.multiply(left, right), shape))


def _no_types_that_depend_on_values(name: str) -> Callable[..., Any]:
    def call(*args: Any, **options: Any) -> Any:
        refuse(
            f"np.linalg.{name}",
            "Whether its result is complex depends on the values: call it in a cell of its own, on arrays.",
        )

    return call


for _name in ("eig", "eigvals"):
    implements(getattr(np.linalg, _name))(_no_types_that_depend_on_values(_name))
