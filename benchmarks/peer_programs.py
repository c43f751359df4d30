"""The programs of ``peers.py``: each once, over the namespace ``xp`` of a library; loops for JAX as JAX wants them.

A function takes the namespace and the arrays. Where libraries write a thing differently, ``peers.py`` hands over a namespace that has it:
``xp.loop(steps, body, state)`` runs ``state = body(i, state)``, ``xp.inner(u, new)`` gives ``u`` with another interior, ``xp.stack``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

__all__ = ["PROGRAMS", "Program"]


@dataclass(frozen=True)
class Program:
    """A function of a namespace and arrays; with ``grad``, its value and its gradients in the first ``grad`` arrays are wanted."""

    about: str
    function: Callable[..., Any]
    arrays: Callable[[], tuple[np.ndarray, ...]]
    grad: int = 0
    without: tuple[str, ...] = ()
    """Peers that cannot run this text: loops over ``xp.loop`` for PyTensor, mostly."""


def entropy(xp, x, t):
    return xp.mean(xp.log(1 + xp.exp(-xp.abs(x))) + xp.where(x > 0, x, 0.0) - x * t)


def chain(xp, x, y):
    return xp.sqrt(x * x + y * y) * 2 - x / (y + 3) + 1


def small_chain(xp, x, y):
    return xp.sum(xp.tanh(x * y + 1) * xp.exp(-x * x) - y)


def total(xp, x, y):
    return xp.sum(x * y)


def statistics_of_rows(xp, x):
    m = xp.mean(x, 1)
    d = x - m[:, None]
    v = xp.mean(d * d, 1)
    return m, v, xp.mean(d * d * d, 1) / v**1.5


def columns(xp, x):
    return xp.mean(xp.exp(x), 0)


def softmax(xp, s):
    e = xp.exp(s - xp.amax(s, 1)[:, None])
    return e / xp.sum(e, 1)[:, None]


def logsumexp(xp, s):
    m = xp.amax(s, 1)
    return m + xp.log(xp.sum(xp.exp(s - m[:, None]), 1))


def layer_norm(xp, x, g, b):
    d = x - xp.mean(x, 1)[:, None]
    return d / xp.sqrt(xp.mean(d * d, 1) + 1e-5)[:, None] * g + b


def layer_norm_loss(xp, x, g, b):
    return xp.mean(layer_norm(xp, x, g, b) ** 2)


def logistic(xp, w, b, X, y):
    return xp.mean(xp.log(1 + xp.exp(-y * (X @ w + b))))


def perceptron(xp, W1, b1, W2, b2, X, Y):
    h = xp.tanh(X @ W1 + b1)
    z = h @ W2 + b2
    m = xp.amax(z, 1)
    return xp.mean(xp.log(xp.sum(xp.exp(z - m[:, None]), 1)) + m - xp.sum(z * Y, 1))


def gaussian_process(xp, noise, X, y):
    q = xp.sum(X * X, 1)
    d = q[:, None] + q[None, :] - 2 * (X @ X.T)
    K = xp.exp(-0.5 * d) + (noise * noise + 1e-6) * xp.eye(500)
    L = xp.linalg.cholesky(K)
    a = xp.linalg.solve(K, y)
    return 0.5 * xp.sum(y * a) + xp.sum(xp.log(xp.linalg.diagonal(L)))


def mixture(xp, alphas, means, logs, X):
    z = (X[:, None, :] - means[None, :, :]) * xp.exp(logs)[None, :, :]
    inner = alphas + xp.sum(logs, 1) - 0.5 * xp.sum(z * z, 2)
    m = xp.amax(inner, 1)
    top = xp.amax(alphas, 0)
    whole = xp.sum(xp.log(xp.sum(xp.exp(inner - m[:, None]), 1)) + m)
    return whole - 2000 * (xp.log(xp.sum(xp.exp(alphas - top))) + top)


def convolution(xp, k, b, image):
    """One channel by nine taps, relu, a mean."""
    n = 256
    out = b * xp.ones_like(image[1:-1, 1:-1])
    for i in range(3):
        for j in range(3):
            out = out + k[i, j] * image[i : n - 2 + i, j : n - 2 + j]
    return xp.mean(xp.where(out > 0, out, 0.0))


def attention(xp, x, Wq, Wk, Wv):
    q, k, v = x @ Wq, x @ Wk, x @ Wv
    s = q @ k.T / 8.0
    e = xp.exp(s - xp.amax(s, 1)[:, None])
    return xp.mean((e / xp.sum(e, 1)[:, None]) @ v)


def recurrent(xp, W, U, b, X):
    def step(t, h):
        return xp.tanh(X[t] @ W + h @ U + b)

    return xp.mean(xp.loop(100, step, xp.zeros((32, 64))) ** 2)


def bodies(xp, p, v, m):
    def step(_, state):
        p, v = state
        d = p[None, :, :] - p[:, None, :]
        r = xp.sum(d * d, 2) + 0.01
        v = v + 0.001 * xp.sum(d * (m[None, :] / (r * xp.sqrt(r)))[:, :, None], 1)
        return p + 0.001 * v, v

    return xp.loop(20, step, (p, v))


def kernel_matrix(xp, X, Y):
    d = X[:, None, :] - Y[None, :, :]
    return xp.exp(-0.5 * xp.sum(d * d, 2))


def options(xp, s, k, t):
    """Black and Scholes, with the distribution by tanh."""
    v = 0.2 * xp.sqrt(t)
    d = (xp.log(s / k) + 0.03 * t) / v + 0.5 * v
    e = d - v
    n1 = 0.5 * (1 + xp.tanh(0.79788456 * (d + 0.044715 * d * d * d)))
    n2 = 0.5 * (1 + xp.tanh(0.79788456 * (e + 0.044715 * e * e * e)))
    return s * n1 - k * xp.exp(-0.03 * t) * n2


def mandelbrot(xp, cr, ci):
    def step(_, state):
        x, y, count = state
        inside = x * x + y * y < 4.0
        return (
            xp.where(inside, x * x - y * y + cr, x),
            xp.where(inside, 2 * x * y + ci, y),
            count + xp.where(inside, 1.0, 0.0),
        )

    return xp.loop(50, step, (0 * cr, 0 * ci, 0 * cr))[2]


def heat(xp, u):
    def step(_, u):
        m = u[1:-1, 1:-1]
        return xp.inner(u, m + 0.2 * (u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2] - 4 * m))

    return xp.loop(100, step, u)


def heat_loss(xp, u):
    return xp.mean(heat(xp, u) ** 2)


def shortest_paths(xp, d):
    return xp.loop(200, lambda k, d: xp.minimum(d, d[:, k][:, None] + d[k][None, :]), d)


def monte_carlo(xp, z):
    path = 100 * xp.exp(xp.cumsum(0.02 * z - 0.0002, 1))
    gain = xp.mean(path, 1) - 100
    return xp.mean(xp.where(gain > 0, gain, 0.0))


def lorenz(xp, x, y, z):
    """A thousand steps of Euler's method of 1,000 starts."""

    def step(_, state):
        x, y, z = state
        return x + 0.001 * (10 * (y - x)), y + 0.001 * (x * (28 - z) - y), z + 0.001 * (x * y - 2.6666 * z)

    return xp.loop(1000, step, (x, y, z))


def polynomial(xp, x):
    """Thirteen terms by Horner's rule."""
    p = 0 * x + 0.1
    for k in range(12):
        p = p * x + 1.0 / (k + 1)
    return p


def ridge(xp, X, y):
    return xp.linalg.solve(X.T @ X + 0.1 * xp.eye(60), X.T @ y)


def rng() -> np.random.Generator:
    return np.random.default_rng(0)


def normal(*shape: int, scale: float = 1.0) -> np.ndarray:
    return rng().normal(size=shape) * scale


def signs(n: int) -> np.ndarray:
    return np.where(rng().random(n) > 0.5, 1.0, -1.0)


def plane() -> tuple[np.ndarray, np.ndarray]:
    r, i = np.meshgrid(np.linspace(-2, 0.6, 400), np.linspace(-1.2, 1.2, 400))
    return r, i


def market() -> tuple[np.ndarray, ...]:
    g = rng()
    return g.uniform(50, 150, 10**6), g.uniform(50, 150, 10**6), g.uniform(0.1, 2, 10**6)


PROGRAMS: dict[str, Program] = {
    "cross entropy": Program("10^6 elements, a mean", entropy, lambda: (normal(10**6), (signs(10**6) + 1) / 2)),
    "chain": Program("2·10^6 elements", chain, lambda: (normal(2 * 10**6), rng().random(2 * 10**6))),
    "small chain": Program("1,000 elements, a sum", small_chain, lambda: (normal(1000), rng().random(1000))),
    "polynomial": Program("Horner's rule, 10^6 elements", polynomial, lambda: (normal(10**6),)),
    "inner product": Program("4·10^6 elements", total, lambda: (normal(4 * 10**6), rng().random(4 * 10**6))),
    "moments of rows": Program("2,000 x 500: mean, variance, skewness", statistics_of_rows, lambda: (normal(2000, 500),)),
    "columns": Program("mean of exp by columns, 50,000 x 30", columns, lambda: (normal(50_000, 30),)),
    "softmax": Program("rows of 1,000 x 1,000", softmax, lambda: (normal(1000, 1000),)),
    "logsumexp": Program("rows of 1,000 x 1,000", logsumexp, lambda: (normal(1000, 1000),)),
    "layer norm": Program("rows of 1,000 x 1,000", layer_norm, lambda: (normal(1000, 1000), normal(1000), normal(1000))),
    "layer norm, gradient": Program(
        "rows of 1,000 x 500", layer_norm_loss, lambda: (normal(1000, 500), normal(500), normal(500)), 3
    ),
    "logistic, gradient": Program(
        "10^5 x 30", logistic, lambda: (normal(30, scale=0.1), np.array(0.1), normal(10**5, 30), signs(10**5)), 2
    ),
    "perceptron, gradient": Program(
        "64-64-10, a batch of 100",
        perceptron,
        lambda: (
            normal(64, 64, scale=0.1),
            np.zeros(64),
            normal(64, 10, scale=0.1),
            np.zeros(10),
            normal(100, 64),
            np.eye(10)[rng().integers(0, 10, 100)],
        ),
        4,
    ),
    "Gaussian process, gradient": Program(
        "likelihood of 500 points", gaussian_process, lambda: (np.array(0.3), normal(500, 4), normal(500)), 1
    ),
    "mixture, gradient": Program(
        "2,000 points, 10 dimensions, 10 classes",
        mixture,
        lambda: (normal(10), normal(10, 10), normal(10, 10, scale=0.1), normal(2000, 10)),
        3,
    ),
    "convolution, gradient": Program(
        "3 x 3 on 256 x 256, relu", convolution, lambda: (normal(3, 3), np.array(0.1), normal(256, 256)), 2
    ),
    "attention, gradient": Program(
        "256 x 64",
        attention,
        lambda: (normal(256, 64), normal(64, 64, scale=0.1), normal(64, 64, scale=0.1), normal(64, 64, scale=0.1)),
        4,
    ),
    "recurrent net, gradient": Program(
        "100 steps, 64 units, a batch of 32",
        recurrent,
        lambda: (normal(32, 64, scale=0.1), normal(64, 64, scale=0.1), np.zeros(64), normal(100, 32, 32)),
        3,
        ("PyTensor",),
    ),
    "N bodies": Program(
        "200 bodies, 20 steps", bodies, lambda: (normal(200, 3), normal(200, 3, scale=0.1), rng().random(200)), 0, ("PyTensor",)
    ),
    "kernel matrix": Program("500 x 500 points of 10 dimensions", kernel_matrix, lambda: (normal(500, 10), normal(500, 10) + 1)),
    "options": Program("Black and Scholes, 10^6", options, market),
    "Mandelbrot": Program("400 x 400, 50 iterations", mandelbrot, plane, 0, ("PyTensor",)),
    "heat": Program("300 x 300, 100 steps", heat, lambda: (normal(300, 300),), 0, ("PyTensor",)),
    "heat, gradient": Program("100 x 100, 100 steps", heat_loss, lambda: (normal(100, 100),), 1, ("PyTensor",)),
    "shortest paths": Program("Floyd and Warshall, 200", shortest_paths, lambda: (rng().random((200, 200)),), 0, ("PyTensor",)),
    "Monte Carlo": Program("Asian option, 10,000 paths of 100 steps", monte_carlo, lambda: (normal(10_000, 100),)),
    "Lorenz": Program(
        "1,000 starts, 1,000 steps of Euler's method",
        lorenz,
        lambda: (normal(1000), normal(1000), normal(1000) + 20),
        0,
        ("PyTensor",),
    ),
    "ridge": Program("2,000 x 60", ridge, lambda: (normal(2000, 60), normal(2000))),
}  # fmt: skip
