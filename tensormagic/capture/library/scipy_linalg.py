"""``scipy.linalg`` on lazy arrays, by the functions' names: systems, factorisations, functions of matrices.

Options that only say how a result is found (``overwrite_a``, ``lapack_driver``) change nothing here.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from tensormagic.capture.errors.refusal import refuse
from tensormagic.capture.library.complex_numbers import taken_for_real
from tensormagic.capture.library.equations import residuals, taller
from tensormagic.capture.library.finite import finite
from tensormagic.capture.library.norms import norm as numpy_norm
from tensormagic.capture.names import implements
from tensormagic.capture.values.operands import node_of
from tensormagic.capture.values.value import Tensor, as_size, done, wrap
from tensormagic.ir.errors import ShapeError
from tensormagic.ir.node import Node
from tensormagic.ir.size import apply
from tensormagic.ir.type import Form, product
from tensormagic.ops import fold as folds
from tensormagic.ops.contract import matmul
from tensormagic.ops.fold import fold, reduce_sum
from tensormagic.ops.form import to_form
from tensormagic.ops.indices.gather import gather
from tensormagic.ops.leaf import constant, iota, size_node
from tensormagic.ops.matrices import determinants, least_squares, linalg, matrix, matrix_function, spectral
from tensormagic.ops.move import broadcast, concatenate, expand_dims, reshape, slice_
from tensormagic.ops.move_kind import broadcast_shapes
from tensormagic.ops.pointwise import astype
from tensormagic.ops.scalars import scalar
from tensormagic.ops.update import set_at, zeros_like

_HARMLESS = {"check_finite", "overwrite_a", "overwrite_b", "lapack_driver", "lwork", "driver"}


def _only(name: str, options: dict[str, Any], **defaults: Any) -> None:
    """Refuse options that change the result, unless they have their default."""
    others = sorted(k for k, v in options.items() if k not in _HARMLESS and not (k in defaults and v is defaults[k]))
    if others:
        refuse(f"scipy.linalg.{name} with {', '.join(others)}", "Leave the option out.")


# systems --------------------------------------------------------------------------------------------------------------

_TRIANGLE = {"pos", "positive definite", "sym", "symmetric", "her", "hermitian"}
_WHOLE = {None, "gen", "general"}


def _structured(a: Node, kind: Any, lower: bool) -> Node:
    """Return the matrix that SciPy reads if it is told a structure."""
    if kind in _WHOLE:
        return a
    if kind in _TRIANGLE:
        return matrix.mirrored(a, lower=lower, hermitian=not kind.startswith("sym"))
    relations = {
        "upper triangular": scalar.less_equal,
        "lower triangular": scalar.greater_equal,
        "diagonal": scalar.equal,
    }
    if kind not in relations:
        refuse(f"scipy.linalg with assume_a={kind!r}", "Leave assume_a out.")
    return scalar.where(matrix.mask(a, relations[kind]), a, 0)


@implements("scipy.linalg.solve")
@finite("a", "b")
def solve(
    a: Any,
    b: Any,
    lower: bool = False,
    overwrite_a: bool = False,
    overwrite_b: bool = False,
    check_finite: bool = True,
    assume_a: Any = None,
    transposed: bool = False,
) -> Any:
    """Implement ``scipy.linalg.solve``: a right side with one axis is a vector."""
    x = _structured(node_of(a), assume_a, lower)
    return done(linalg.solve(linalg.swap(x) if transposed else x, node_of(b), asked_by="scipy.linalg.solve"))


@implements("scipy.linalg.inv")
@finite("a")
def inv(
    a: Any, overwrite_a: bool = False, check_finite: bool = True, *, assume_a: Any = None, lower: bool = False
) -> Any:
    """Implement ``scipy.linalg.inv``."""
    return done(linalg.inv(_structured(node_of(a), assume_a, lower), asked_by="scipy.linalg.inv"))


@implements("scipy.linalg.det")
@finite("a")
def det(a: Any, overwrite_a: bool = False, check_finite: bool = True) -> Any:
    """Implement ``scipy.linalg.det``."""
    return done(determinants.det(node_of(a)))


def _turned(x: Node, trans: Any, lower: bool) -> tuple[Node, bool]:
    if trans in {1, "T"}:
        return linalg.swap(x), not lower
    if trans in {2, "C"}:
        return linalg.adjoint(x), not lower
    if trans not in {0, "N"}:
        raise ValueError(f"trans must be one of 0, 1, 2, 'N', 'T', 'C', not {trans!r}")
    return x, lower


@implements("scipy.linalg.solve_triangular")
@finite("a", "b")
def solve_triangular(
    a: Any, b: Any, trans: Any = 0, lower: bool = False, unit_diagonal: bool = False, **options: Any
) -> Any:
    """Implement ``scipy.linalg.solve_triangular``."""
    _only("solve_triangular", options)
    x, low = _turned(node_of(a), trans, lower)
    return done(linalg.solve_triangular(x, node_of(b), lower=low, unit_diagonal=unit_diagonal))


@implements("scipy.linalg.cholesky")
@finite("a")
def cholesky(a: Any, lower: bool = False, overwrite_a: bool = False, check_finite: bool = True) -> Any:
    """Implement ``scipy.linalg.cholesky``: the upper factor, unless ``lower``."""
    return done(linalg.cholesky(node_of(a), upper=not lower))


@implements("scipy.linalg.cho_factor")
@finite("a")
def cho_factor(a: Any, lower: bool = False, overwrite_a: bool = False, check_finite: bool = True) -> Any:
    """Implement ``scipy.linalg.cho_factor``: the other triangle holds the matrix, or zeros, as in the installed SciPy."""
    x = linalg.prepared(node_of(a))
    factor = linalg.cholesky(x, upper=not lower)
    kept = scalar.greater_equal if lower else scalar.less_equal
    other, said = _other_triangle()
    return done(scalar.where(matrix.mask(x, kept), factor, x if other else zeros_like(x))), said(lower)


@cache
def _other_triangle() -> tuple[float, Callable[[Any], Any]]:
    """Return the number that SciPy leaves in the unused triangle of a Cholesky factor, and the type of its flag."""
    import scipy.linalg

    found: Any = scipy.linalg.cho_factor(np.ones((2, 2)) + np.eye(2), lower=True)
    factor, lower = found
    return float(factor[0, 1]), np.asarray if isinstance(lower, np.ndarray) else bool


@implements("scipy.linalg.cho_solve")
@finite("c_and_lower", "b")
def cho_solve(c_and_lower: Any, b: Any, overwrite_b: bool = False, check_finite: bool = True) -> Any:
    """Implement ``scipy.linalg.cho_solve``."""
    c, lower = c_and_lower
    x = node_of(c)
    first, second = (x, linalg.adjoint(x)) if lower else (linalg.adjoint(x), x)
    half = linalg.solve_triangular(first, node_of(b), lower=True)
    return done(linalg.solve_triangular(second, half, lower=False))


@implements("scipy.linalg.lstsq")
@finite("a", "b")
def lstsq(a: Any, b: Any, cond: Any = None, **options: Any) -> Any:
    """Implement ``scipy.linalg.lstsq``; residuals, if there are any, are those of a matrix of full rank, and an error otherwise."""
    _only("lstsq", options)
    x, right = node_of(a), node_of(b)
    if cond is not None and not isinstance(cond, int | float):
        refuse("scipy.linalg.lstsq with a bound that is captured", "Write cond as a number.")
    if x.type.ndim != 2:
        raise ShapeError("Input array a should be 2D")
    bound = float(np.finfo(linalg.common_dtype(x, right)).eps) if cond is None else float(cond)
    single = right.type.ndim == 1
    columns = expand_dims(right, (1,)) if single else right
    found = least_squares.lstsq(x, columns, bound)
    values = linalg.svdvals(x)
    sums = residuals(x, columns, bound, found.type.dtype)
    if single and taller(*x.type.shape):
        sums = wrap(to_form(sums[0].node, _forms_of_lstsq()[0]))
    large = scalar.greater(values, bound * fold(folds.MAX, values, (0,), keepdims=True))
    rank = to_form(reduce_sum(astype(large, np.int64), (0,)), _forms_of_lstsq()[1])
    return done(reshape(found, found.type.shape[:1]) if single else found), sums, done(rank), done(values)


@cache
def _forms_of_lstsq() -> tuple[Form, Form]:
    """Return the forms of the sum of squares and of the rank, which differ between SciPy's versions."""
    import scipy.linalg

    found: Any = scipy.linalg.lstsq(np.ones((2, 1)), np.ones(2))
    _, sums, rank, _ = found
    return "array" if isinstance(sums, np.ndarray) else "scalar", "scalar" if isinstance(rank, np.generic) else "python"


@implements("scipy.linalg.pinv")
@finite("a")
def pinv(a: Any, *, atol: Any = None, rtol: Any = None, return_rank: bool = False, check_finite: bool = True) -> Any:
    """Implement ``scipy.linalg.pinv``."""
    if return_rank or atol is not None or not isinstance(rtol, int | float | None):
        refuse("scipy.linalg.pinv with atol, return_rank, or a bound that is captured", "Write rtol as a number.")
    return done(linalg.pinv(node_of(a), "size" if rtol is None else float(rtol)))


# factorisations -------------------------------------------------------------------------------------------------------


@implements("scipy.linalg.svd")
@finite("a")
def svd(a: Any, full_matrices: bool = True, compute_uv: bool = True, **options: Any) -> Any:
    """Implement ``scipy.linalg.svd``: a tuple."""
    _only("svd", options)
    if not compute_uv:
        return done(linalg.svdvals(node_of(a)))
    return tuple(map(done, linalg.svd(node_of(a), full_matrices=full_matrices)))


@implements("scipy.linalg.svdvals")
@finite("a")
def svdvals(a: Any, overwrite_a: bool = False, check_finite: bool = True) -> Any:
    """Implement ``scipy.linalg.svdvals``."""
    return done(linalg.svdvals(node_of(a)))


@implements("scipy.linalg.qr")
@finite("a")
def qr(
    a: Any,
    overwrite_a: bool = False,
    lwork: Any = None,
    mode: str = "full",
    pivoting: bool = False,
    check_finite: bool = True,
) -> Any:
    """Implement ``scipy.linalg.qr`` in modes "full", "economic" and "r"."""
    if pivoting or mode == "raw":
        refuse("scipy.linalg.qr with pivoting or mode='raw'", "Leave the option out.")
    x = node_of(a)
    if mode == "economic":
        return linalg.qr(x, "reduced")
    if mode == "full":
        return linalg.qr(x, "complete")
    if mode != "r":
        raise ValueError("Mode argument should be one of ['full', 'r', 'economic', 'raw']")
    (r,) = linalg.qr(x, "r")
    m, n = x.type.shape[-2:]
    if not taller(m, n):
        return (r,)
    lead = r.type.shape[:-2]
    below = broadcast(zeros_like(slice_(r, tuple((0, 1, 1) for _ in r.type.shape))), (*lead, m - n, n))
    return (concatenate([r, below], len(lead)),)


@implements("scipy.linalg.lu")
@finite("a")
def lu(
    a: Any, permute_l: bool = False, overwrite_a: bool = False, check_finite: bool = True, p_indices: bool = False
) -> Any:
    """Implement ``scipy.linalg.lu``; its derivative assumes that the order of rows does not change."""
    rows, low, up = spectral.lu(node_of(a))
    if p_indices and not permute_l:
        return rows, low, up
    swap = spectral.permutation(rows, linalg.real_dtype(low.type.dtype))
    if permute_l:
        return matmul(astype(swap, low.type.dtype), low), up
    return swap, low, up


_SUBSETS: dict[str, Any] = {"subset_by_index": None, "subset_by_value": None, "type": 1}


@implements("scipy.linalg.eigh")
@finite("a", "b")
def eigh(a: Any, b: Any = None, *, lower: bool = True, eigvals_only: bool = False, **options: Any) -> Any:
    """Implement ``scipy.linalg.eigh``, of one matrix or two."""
    _only("eigh", options, **_SUBSETS)
    values, vectors = spectral.scipy_eigh(node_of(a), None if b is None else node_of(b), lower=lower)
    return values if eigvals_only else (values, vectors)


@implements("scipy.linalg.eigvalsh")
def eigvalsh(a: Any, b: Any = None, *, lower: bool = True, **options: Any) -> Any:
    """Implement ``scipy.linalg.eigvalsh``, of one matrix or two."""
    return eigh(a, b, lower=lower, eigvals_only=True, **options)


@implements("scipy.linalg.norm")
@finite("a")
def norm(a: Any, ord: Any = None, axis: Any = None, keepdims: bool = False, check_finite: bool = True) -> Any:
    """Implement ``scipy.linalg.norm``: what BLAS and LAPACK compute is a Python number."""
    result = numpy_norm(a, ord, axis, keepdims)
    x = node_of(a).type
    direct = (None, 2) if x.ndim == 1 else (1, np.inf) if x.ndim == 2 else ()
    if axis is None and not keepdims and x.inexact and ord in direct:
        return wrap(to_form(astype(result.node, np.float64), "python"))
    return result


# functions of matrices ------------------------------------------------------------------------------------------------


def _function(name: str, dtype: Any, *, principal: bool = False) -> Any:
    """Return a function of matrices; ``principal`` marks one that may be complex for a real matrix."""

    def call(a: Any) -> Tensor:
        x = node_of(a)
        linalg.square(x)
        common = linalg.common_dtype(x)
        if dtype is not None and common.itemsize < np.dtype(dtype).itemsize:
            common = np.dtype(np.complex128 if common.kind == "c" else dtype)
        site = -1
        if principal and common.kind != "c":
            whole, site = taken_for_real(x, lambda v: matrix_function.apply(name, v))
            common = common if whole else np.result_type(common, np.complex64)
            site = matrix_function.OF_REAL if site < 0 and not whole else site
        return done(matrix_function.matrix_function(name, x, common, site))

    return call


for _name in ("expm", "sinm", "cosm", "tanm", "sinhm", "coshm", "tanhm"):
    implements(f"scipy.linalg.{_name}")(_function(_name, None))
implements("scipy.linalg.sqrtm")(_function("sqrtm", None, principal=True))
implements("scipy.linalg.logm")(_function("logm", np.float64, principal=True))

# matrices of a pattern ------------------------------------------------------------------------------------------------


def _vector(value: Any) -> Node:
    node = node_of(value)
    return reshape(node, (1,)) if not node.type.ndim else node


def _taken(values: Node, index: Node) -> Node:
    return gather(values, index, values.type.ndim - 1)


@implements("scipy.linalg.toeplitz")
def toeplitz(c: Any, r: Any = None) -> Any:
    """Implement ``scipy.linalg.toeplitz``."""
    first = _vector(c)
    row = scalar.conjugate(first) if r is None else _vector(r)
    m, n = first.type.shape[-1], row.type.shape[-1]
    values = _joined(_reversed(first), row)
    return _taken(values, iota((m, n), 1) - iota((m, n), 0) + size_node(m - 1))


@implements("scipy.linalg.hankel")
def hankel(c: Any, r: Any = None) -> Any:
    """Implement ``scipy.linalg.hankel``."""
    first = reshape(_vector(c), (-1,))
    row = zeros_like(first) if r is None else reshape(_vector(r), (-1,))
    m, n = first.type.shape[-1], row.type.shape[-1]
    return _taken(_joined(first, row), iota((m, n), 0) + iota((m, n), 1))


@implements("scipy.linalg.circulant")
def circulant(c: Any) -> Any:
    """Implement ``scipy.linalg.circulant``."""
    x = _vector(c)
    n = x.type.shape[-1]
    return _taken(x, scalar.remainder(iota((n, n), 0) - iota((n, n), 1), size_node(n)))


def _reversed(x: Node) -> Node:
    n = x.type.shape[-1]
    return slice_(x, (*((0, s, 1) for s in x.type.shape[:-1]), (n - 1, n, -1)))


def _joined(left: Node, right: Node) -> Node:
    """Return one row of values: the left one, and the right one without its first value."""
    dtype = np.result_type(left.type.dtype, right.type.dtype)
    length = right.type.shape[-1]
    part = (apply("min", 1, length), apply("max", length - 1, 0), 1)
    rest = slice_(right, (*((0, s, 1) for s in right.type.shape[:-1]), part))
    return concatenate([astype(left, dtype), astype(rest, dtype)], left.type.ndim - 1)


@implements("scipy.linalg.block_diag")
def block_diag(*arrs: Any) -> Any:
    """Implement ``scipy.linalg.block_diag``."""
    nodes = [node_of(v) for v in arrs] or [constant(np.zeros((1, 0)))]
    blocks = [reshape(n, (1,) * (2 - n.type.ndim) + n.type.shape) if n.type.ndim < 2 else n for n in nodes]
    lead = broadcast_shapes([n.type.shape[:-2] for n in blocks])
    dtype = np.result_type(*(n.type.dtype for n in blocks))
    rows, columns = (sum((as_size(n.type.shape[k]) for n in blocks), 0) for k in (-2, -1))
    result = broadcast(constant(np.zeros((), dtype)[()]), (*lead, rows, columns))
    row = column = 0
    for block in blocks:
        m, n = block.type.shape[-2:]
        if product((m, n)) != 0:
            part = astype(broadcast(block, (*lead, m, n)), dtype)
            result = set_at(result, part, (*((0, s, 1) for s in lead), (row, m, 1), (column, n, 1)))
        row, column = row + m, column + n
    return result
