"""Twelve programs whose compiling is measured: what each computes, captured, and small values for it."""
# pyright: basic

from __future__ import annotations

import numpy as np
from scipy.special import logsumexp

import tensormagic as tm

rng = np.random.default_rng(0)


def chain(x, y):
    return np.tanh(x * y + 1.5) - np.exp(-x * x) * np.sqrt(np.abs(y) + 0.1)


def softmax(S):
    e = np.exp(S - S.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


def layer_norm(x, scale, shift):
    centred = x - x.mean(-1, keepdims=True)
    return centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-5) * scale + shift


def logistic(w, b, X, t):
    return np.mean(np.log(1 + np.exp(-t * (X @ w + b))))


def mixture(weights, means, spreads, x):
    parts = -0.5 * (((x[:, None, :] - means) / spreads) ** 2).sum(-1) - np.log(spreads).sum(-1)
    return np.sum(logsumexp(parts + weights - logsumexp(weights), axis=1))


def perceptron(W, a, V, b, X, t):
    hidden = np.tanh(X @ W + a)
    scores = hidden @ V + b
    return -np.mean((scores - logsumexp(scores, axis=1, keepdims=True))[np.arange(len(t)), t])


def stencil(u, n):
    for _ in range(n):
        v = u.copy()
        v[1:-1, 1:-1] = 0.25 * (u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:])
        u = v
    return u


def cholesky(A):
    n = A.shape[0]
    L = np.zeros((n, n))
    for j in range(n):
        s = A[j, j] - np.sum(L[j, :j] ** 2)
        L[j, j] = np.sqrt(s)
        for i in range(j + 1, n):
            L[i, j] = (A[i, j] - np.sum(L[i, :j] * L[j, :j])) / L[j, j]
    return L


def bodies(pos, vel, mass, steps):
    for _ in range(steps):
        apart = pos[None, :, :] - pos[:, None, :]
        distance = np.sqrt((apart**2).sum(-1) + 0.01)
        force = (apart * (mass[None, :, None] / distance[:, :, None] ** 3)).sum(1)
        vel = vel + 0.01 * force
        pos = pos + 0.01 * vel
    return pos, vel


def walks(start, steps, limit):
    x, n = start, 0
    seed = 12345
    while abs(x) < limit and n < steps:
        seed = (seed * 1103515245 + 12345) % 2147483648
        x = x + (seed / 2147483648.0 - 0.5)
        n = n + 1
    return x, n


def attention(Q, K, V):
    scores = Q @ K.T / np.sqrt(Q.shape[1])
    e = np.exp(scores - scores.max(1, keepdims=True))
    return (e / e.sum(1, keepdims=True)) @ V


def convolution(x, k):
    n, m = x.shape[0] - 2, x.shape[1] - 2
    out = np.zeros((n, m))
    for i in range(3):
        for j in range(3):
            out = out + x[i : i + n, j : j + m] * k[i, j]
    return np.maximum(out, 0)


def normal(*shape):
    return rng.normal(size=shape)


def programs():
    """For each program a function of tensormagic's and its arguments."""
    A = normal(8, 8)
    return {
        "elementwise chain": (tm.tensor(chain), (normal(1000), normal(1000))),
        "softmax": (tm.tensor(softmax), (normal(20, 30),)),
        "layer norm": (tm.tensor(layer_norm), (normal(20, 30), normal(30), normal(30))),
        "logistic loss, gradient": (
            tm.value_and_grad(logistic, (0, 1)),
            (normal(30), np.array(0.1), normal(50, 30), np.sign(normal(50))),
        ),
        "mixture, gradient": (
            tm.value_and_grad(mixture, (0, 1, 2)),
            (normal(4), normal(4, 3), np.exp(normal(4, 3)), normal(50, 3)),
        ),
        "perceptron, gradient": (
            tm.value_and_grad(perceptron, (0, 1, 2, 3)),
            (normal(8, 16), normal(16), normal(16, 5), normal(5), normal(20, 8), rng.integers(0, 5, 20)),
        ),
        "stencil": (tm.tensor(stencil), (normal(20, 20), 10)),
        "Cholesky by loops": (tm.tensor(cholesky), (A @ A.T + 8 * np.eye(8),)),
        "N bodies": (tm.tensor(bodies), (normal(10, 3), normal(10, 3), np.exp(normal(10)), 5)),
        "random walk with while": (tm.tensor(walks), (np.array(0.0), 100, 5.0)),
        "attention": (tm.tensor(attention), (normal(12, 8), normal(12, 8), normal(12, 8))),
        "convolution": (tm.tensor(convolution), (normal(20, 20), normal(3, 3))),
    }
