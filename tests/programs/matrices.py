"""Products of matrices and vectors, whole and by rows."""

from __future__ import annotations

import numpy as np

from tests.programs.program import program


def gemm(alpha, beta, C, A, B):
    C[:] = alpha * A @ B + beta * C


def two_products(alpha, beta, A, B, C, D):
    D[:] = alpha * A @ B @ C + beta * D


def three_products(A, B, C, D):
    return A @ B @ C @ D


def atax(A, x):
    return (A @ x) @ A


def bicg(A, p, r):
    return r @ A, A @ p


def mvt(x1, x2, y1, y2, A):
    x1 += A @ y1
    x2 += y2 @ A


def gemver(alpha, beta, A, u1, v1, u2, v2, w, x, y, z):
    A += np.outer(u1, v1) + np.outer(u2, v2)
    x += beta * y @ A + z
    w += alpha * A @ x


def gesummv(alpha, beta, A, B, x):
    return alpha * A @ x + beta * B @ x


def doitgen(A, C4):
    for r in range(A.shape[0]):
        for q in range(A.shape[1]):
            A[r, q, :] = A[r, q, :] @ C4


def symm(alpha, beta, C, A, B):
    temp2 = np.empty((C.shape[1],), dtype=C.dtype)
    C *= beta
    for i in range(C.shape[0]):
        for j in range(C.shape[1]):
            C[:i, j] += alpha * B[i, j] * A[i, :i]
            temp2[j] = B[:i, j] @ A[i, :i]
        C[i, :] += alpha * B[i, :] * A[i, i] + alpha * temp2


def syrk(alpha, beta, C, A):
    for i in range(A.shape[0]):
        C[i, : i + 1] *= beta
        for k in range(A.shape[1]):
            C[i, : i + 1] += alpha * A[i, k] * A[: i + 1, k]


def syr2k(alpha, beta, C, A, B):
    for i in range(A.shape[0]):
        C[i, : i + 1] *= beta
        for k in range(A.shape[1]):
            C[i, : i + 1] += A[: i + 1, k] * alpha * B[i, k] + B[: i + 1, k] * alpha * A[i, k]


def trmm(alpha, A, B):
    for i in range(B.shape[0]):
        for j in range(B.shape[1]):
            B[i, j] += np.dot(A[i + 1 :, i], B[i + 1 :, j])
    B *= alpha


def covariance(data):
    mean = np.mean(data, axis=0)
    data -= mean
    n, m = data.shape
    cov = np.zeros((m, m), dtype=data.dtype)
    for i in range(m):
        cov[i:m, i] = cov[i, i:m] = data[:, i] @ data[:, i:m] / (n - 1.0)
    return cov


def correlation(data):
    n, m = data.shape
    stddev = np.std(data, axis=0)
    stddev[stddev <= 0.1] = 1.0
    data -= np.mean(data, axis=0)
    data /= np.sqrt(n) * stddev
    corr = np.eye(m, dtype=data.dtype)
    for i in range(m - 1):
        corr[i + 1 : m, i] = corr[i, i + 1 : m] = data[:, i] @ data[:, i + 1 : m]
    return corr


def spmv(rows, columns, values, x):
    y = np.empty(rows.size - 1, values.dtype)
    for i in range(rows.size - 1):
        cols = columns[rows[i] : rows[i + 1]]
        vals = values[rows[i] : rows[i + 1]]
        y[i] = vals @ x[cols]
    return y


def _sparse(n, rng):
    counts = rng.integers(1, 6, n)
    rows = np.concatenate([[0], np.cumsum(counts)])
    return rows, rng.integers(0, n, rows[-1]), rng.standard_normal(rows[-1]), rng.standard_normal(n)


def _normal(rng, *shapes):
    return tuple(rng.standard_normal(s) for s in shapes)


program(gemm, lambda n, r: (1.5, 1.2, *_normal(r, (n, n + 2), (n, n + 1), (n + 1, n + 2))), 5, 400)
program(
    two_products, lambda n, r: (1.5, 1.2, *_normal(r, (n, n + 1), (n + 1, n + 2), (n + 2, n + 3), (n, n + 3))), 4, 300
)
program(three_products, lambda n, r: _normal(r, (n, n + 1), (n + 1, n + 2), (n + 2, n + 3), (n + 3, n)), 4, 300, (0, 2))
program(atax, lambda n, r: _normal(r, (n, n + 1), n + 1), 5, 2000, (0, 1))
program(bicg, lambda n, r: _normal(r, (n, n + 1), n + 1, n), 5, 2000, (0,))
program(mvt, lambda n, r: _normal(r, n, n, n, n, (n, n)), 5, 2000)
program(gemver, lambda n, r: (1.5, 1.2, *_normal(r, (n, n), n, n, n, n, n, n, n, n)), 5, 1500)
program(gesummv, lambda n, r: (1.5, 1.2, *_normal(r, (n, n), (n, n), n)), 5, 1500, (2, 4))
program(doitgen, lambda n, r: _normal(r, (n, n + 1, n + 2), (n + 2, n + 2)), 3, 60)
program(symm, lambda n, r: (1.5, 1.2, *_normal(r, (n, n + 1), (n, n), (n, n + 1))), 4, 100)
program(syrk, lambda n, r: (1.5, 1.2, *_normal(r, (n, n), (n, n + 1))), 4, 150)
program(syr2k, lambda n, r: (1.5, 1.2, *_normal(r, (n, n), (n, n + 1), (n, n + 1))), 4, 120)
program(trmm, lambda n, r: (1.5, *_normal(r, (n, n), (n, n + 1))), 4, 120)
program(covariance, lambda n, r: _normal(r, (n + 3, n)), 5, 250, (0,))
program(correlation, lambda n, r: _normal(r, (n + 3, n)), 5, 250)
program(spmv, _sparse, 7, 20_000, (2, 3))
