"""Factorisations and solutions of linear systems, by loops over rows and elements."""

from __future__ import annotations

import numpy as np

from tests.programs.program import definite, program


def cholesky(A):
    A[0, 0] = np.sqrt(A[0, 0])
    for i in range(1, A.shape[0]):
        for j in range(i):
            A[i, j] -= np.dot(A[i, :j], A[j, :j])
            A[i, j] /= A[j, j]
        A[i, i] -= np.dot(A[i, :i], A[i, :i])
        A[i, i] = np.sqrt(A[i, i])


def lu(A):
    for i in range(A.shape[0]):
        for j in range(i):
            A[i, j] -= A[i, :j] @ A[:j, j]
            A[i, j] /= A[j, j]
        for j in range(i, A.shape[0]):
            A[i, j] -= A[i, :i] @ A[:i, j]


def ludcmp(A, b):
    x = np.zeros_like(b)
    y = np.zeros_like(b)
    for i in range(A.shape[0]):
        for j in range(i):
            A[i, j] -= A[i, :j] @ A[:j, j]
            A[i, j] /= A[j, j]
        for j in range(i, A.shape[0]):
            A[i, j] -= A[i, :i] @ A[:i, j]
    for i in range(A.shape[0]):
        y[i] = b[i] - A[i, :i] @ y[:i]
    for i in range(A.shape[0] - 1, -1, -1):
        x[i] = (y[i] - A[i, i + 1 :] @ x[i + 1 :]) / A[i, i]
    return x, y


def trisolv(L, b):
    x = np.zeros_like(b)
    for i in range(x.shape[0]):
        x[i] = (b[i] - L[i, :i] @ x[:i]) / L[i, i]
    return x


def gramschmidt(A):
    Q = np.zeros_like(A)
    R = np.zeros((A.shape[1], A.shape[1]), dtype=A.dtype)
    for k in range(A.shape[1]):
        nrm = np.dot(A[:, k], A[:, k])
        R[k, k] = np.sqrt(nrm)
        Q[:, k] = A[:, k] / R[k, k]
        for j in range(k + 1, A.shape[1]):
            R[k, j] = np.dot(Q[:, k], A[:, j])
            A[:, j] -= Q[:, k] * R[k, j]
    return Q, R


def durbin(r):
    y = np.empty_like(r)
    alpha = -r[0]
    beta = 1.0
    y[0] = -r[0]
    for k in range(1, r.shape[0]):
        beta *= 1.0 - alpha * alpha
        alpha = -(r[k] + np.dot(np.flip(r[:k]), y[:k])) / beta
        y[:k] += alpha * np.flip(y[:k])
        y[k] = alpha
    return y


def thomas(a, b, c, d):
    n = d.shape[0]
    cp = np.empty_like(d)
    dp = np.empty_like(d)
    cp[0] = c[0] / b[0]
    dp[0] = d[0] / b[0]
    for i in range(1, n):
        m = b[i] - a[i] * cp[i - 1]
        cp[i] = c[i] / m
        dp[i] = (d[i] - a[i] * dp[i - 1]) / m
    x = np.zeros_like(d)
    x[-1] = dp[-1]
    for i in range(n - 2, -1, -1):
        x[i] = dp[i] - cp[i] * x[i + 1]
    return x


def power_iteration(A, x):
    value = 0.0
    change = 1.0
    while change > 1e-10:
        y = A @ x
        new = np.sqrt(y @ y)
        x = y / new
        change = abs(new - value)
        value = new
    return value


def conjugate_gradient(A, b):
    x = np.zeros_like(b)
    r = b - A @ x
    p = r.copy()
    rr = r @ r
    for _ in range(b.shape[0]):
        if rr < 1e-20:
            break
        Ap = A @ p
        step = rr / (p @ Ap)
        x += step * p
        r -= step * Ap
        new = r @ r
        p = r + (new / rr) * p
        rr = new
    return x


def _system(n, rng):
    return definite(rng, n), rng.standard_normal(n)


program(cholesky, lambda n, r: (definite(r, n),), 5, 120)
program(lu, lambda n, r: (definite(r, n),), 5, 120)
program(ludcmp, _system, 5, 120, (1,))
program(trisolv, lambda n, r: (np.tril(definite(r, n)), r.standard_normal(n)), 6, 1000, (0, 1))
program(gramschmidt, lambda n, r: (r.standard_normal((n + 2, n)),), 4, 100)
program(durbin, lambda n, r: (r.uniform(-0.1, 0.1, n),), 7, 1000, (0,))
program(thomas, lambda n, r: (r.random(n), 4 + r.random(n), r.random(n), r.standard_normal(n)), 8, 20_000, (0, 1, 2, 3))
program(power_iteration, _system, 5, 300)  # where it stops jumps, so finite differences say little
program(conjugate_gradient, _system, 6, 400, (1,))
