"""The standard's extension for linear algebra; its first functions are in the main namespace too."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tensormagic.capture.values.value import Tensor
from tensormagic.numpy.calling import call, ufunc

__all__ = [
    "cholesky",
    "cross",
    "det",
    "diagonal",
    "eigh",
    "eigvalsh",
    "inv",
    "matmul",
    "matrix_norm",
    "matrix_power",
    "matrix_rank",
    "matrix_transpose",
    "outer",
    "pinv",
    "qr",
    "slogdet",
    "solve",
    "svd",
    "svdvals",
    "tensordot",
    "trace",
    "vecdot",
    "vector_norm",
]


class Eigh(NamedTuple):
    """Eigenvalues in ascending order, and the eigenvectors, as columns."""

    eigenvalues: Tensor
    eigenvectors: Tensor


class QR(NamedTuple):
    """A matrix with orthonormal columns, and an upper triangular one."""

    Q: Tensor
    R: Tensor


class Slogdet(NamedTuple):
    """The sign of a determinant, and the logarithm of its size."""

    sign: Tensor
    logabsdet: Tensor


class SVD(NamedTuple):
    """Left singular vectors, singular values in descending order, and right singular vectors, as rows."""

    U: Tensor
    S: Tensor
    Vh: Tensor


def matmul(x1: Any, x2: Any, /) -> Tensor:
    """Return the matrix product."""
    return ufunc(np.matmul, x1, x2)


def matrix_transpose(x: Any, /) -> Tensor:
    """Return matrices with rows and columns exchanged."""
    return call(np.matrix_transpose, x)


def tensordot(x1: Any, x2: Any, /, *, axes: Any = 2) -> Tensor:
    """Return the sum of products over some axes of each."""
    return call(np.tensordot, x1, x2, axes)


def vecdot(x1: Any, x2: Any, /, *, axis: int = -1) -> Tensor:
    """Return the dot product of vectors along an axis, the first conjugated."""
    return call(np.vecdot, x1, x2, axis=axis)


def cholesky(x: Any, /, *, upper: bool = False) -> Tensor:
    """Return the triangular factor of a positive definite matrix."""
    return call(np.linalg.cholesky, x, upper=upper)


def cross(x1: Any, x2: Any, /, *, axis: int = -1) -> Tensor:
    """Return the cross product of vectors of three elements."""
    return call(np.linalg.cross, x1, x2, axis=axis)


def det(x: Any, /) -> Tensor:
    """Return the determinant."""
    return call(np.linalg.det, x)


def diagonal(x: Any, /, *, offset: int = 0) -> Tensor:
    """Return the diagonal of matrices."""
    return call(np.linalg.diagonal, x, offset=offset)


def eigh(x: Any, /) -> Eigh:
    """Return eigenvalues and eigenvectors of a symmetric or Hermitian matrix."""
    return Eigh(*call(np.linalg.eigh, x))


def eigvalsh(x: Any, /) -> Tensor:
    """Return eigenvalues of a symmetric or Hermitian matrix."""
    return call(np.linalg.eigvalsh, x)


def inv(x: Any, /) -> Tensor:
    """Return the inverse."""
    return call(np.linalg.inv, x)


def matrix_norm(x: Any, /, *, keepdims: bool = False, ord: Any = "fro") -> Tensor:
    """Return a norm of matrices."""
    return call(np.linalg.matrix_norm, x, keepdims=keepdims, ord=ord)


def matrix_power(x: Any, n: int, /) -> Tensor:
    """Return a matrix times itself, ``n`` factors."""
    return call(np.linalg.matrix_power, x, n)


def matrix_rank(x: Any, /, *, rtol: Any = None) -> Tensor:
    """Return how many singular values are not negligible."""
    return call(np.linalg.matrix_rank, x, rtol=rtol)


def outer(x1: Any, x2: Any, /) -> Tensor:
    """Return all products of elements of two vectors."""
    return call(np.linalg.outer, x1, x2)


def pinv(x: Any, /, *, rtol: Any = None) -> Tensor:
    """Return the pseudo-inverse."""
    if rtol is None:
        info = np.finfo(x.dtype)
        rtol = max(x.shape[-2:]) * float(info.eps)
    return call(np.linalg.pinv, x, rtol=rtol)


def qr(x: Any, /, *, mode: str = "reduced") -> QR:
    """Return an orthonormal and an upper triangular factor."""
    if mode not in {"reduced", "complete"}:
        raise ValueError(f"the mode of qr is 'reduced' or 'complete', not {mode!r}")
    return QR(*call(np.linalg.qr, x, mode))


def slogdet(x: Any, /) -> Slogdet:
    """Return the sign of the determinant, and the logarithm of its size."""
    return Slogdet(*call(np.linalg.slogdet, x))


def solve(x1: Any, x2: Any, /) -> Tensor:
    """Return the solution of linear equations."""
    return call(np.linalg.solve, x1, x2)


def svd(x: Any, /, *, full_matrices: bool = True) -> SVD:
    """Return the singular value decomposition."""
    return SVD(*call(np.linalg.svd, x, full_matrices))


def svdvals(x: Any, /) -> Tensor:
    """Return the singular values."""
    return call(np.linalg.svdvals, x)


def trace(x: Any, /, *, offset: int = 0, dtype: Any = None) -> Tensor:
    """Return the sum of the diagonal."""
    return call(np.linalg.trace, x, offset=offset, dtype=dtype)


def vector_norm(x: Any, /, *, axis: Any = None, keepdims: bool = False, ord: Any = 2) -> Tensor:
    """Return a norm of vectors."""
    return call(np.linalg.vector_norm, x, axis=axis, keepdims=keepdims, ord=ord)
