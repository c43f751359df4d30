"""The programs of ``derivatives.py``: in plain NumPy, as JAX and PyTorch want them, and with their gradients by hand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

Program = Callable[[], Any]
STEPS = {"recurrent": 200, "stencil": 500}

# the programs, over the namespace ``xp`` of each library -----------------------------------------------------------------


def logistic(xp, w, b, X, y):
    return xp.mean(xp.log(1 + xp.exp(-y * (X @ w + b))))


def perceptron(xp, W1, b1, W2, b2, X, Y):
    h = xp.tanh(X @ W1 + b1)
    z = h @ W2 + b2
    m = xp.amax(z, 1, keepdims=True)
    return xp.mean(xp.log(xp.sum(xp.exp(z - m), 1)) + m[:, 0] - xp.sum(z * Y, 1))


def mixture(xp, alphas, means, logs, lower, X, place):
    """ADBench's mixture: inverse square roots of covariances by the logarithms of their diagonals and by their lower triangles."""
    n, d = X.shape
    K = alphas.shape[0]
    Q = (lower @ place).reshape((K, d, d)) + xp.exp(logs)[:, :, None] * xp.eye(d)
    z = (X @ Q.reshape((K * d, d)).T).reshape((n, K, d)) - (Q @ means[:, :, None])[:, :, 0]
    inner = alphas + xp.sum(logs, 1) - 0.5 * xp.sum(z**2, 2)
    m = xp.amax(inner, 1, keepdims=True)
    likelihood = xp.sum(xp.log(xp.sum(xp.exp(inner - m), 1)) + m[:, 0])
    total = xp.amax(alphas, 0)
    normal = n * (xp.log(xp.sum(xp.exp(alphas - total))) + total)
    prior = 0.5 * (xp.sum(xp.exp(logs) ** 2) + xp.sum(lower**2)) - xp.sum(logs)
    return likelihood - normal - prior


def recurrent(xp, W, U, b, V, X, y):
    h = xp.zeros((X.shape[1], U.shape[0]))
    for t in range(200):
        h = xp.tanh(X[t] @ W + h @ U + b)
    return xp.mean((h @ V - y) ** 2)


def lap(u):
    return u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:] - 4 * u[1:-1, 1:-1]


def stencil(u, c, r):
    u = u.copy()
    for _ in range(500):
        m = u[1:-1, 1:-1]
        lap = u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:] - 4 * m
        u[1:-1, 1:-1] = m + c * lap + r * m * (1 - m)
    return np.mean(u**2)


# their gradients by hand -------------------------------------------------------------------------------------------------


def logistic_by_hand(w, b, X, y):
    e = np.exp(-y * (X @ w + b))
    g = -(y * (e / (1 + e))) / len(y)
    return np.mean(np.log1p(e)), (X.T @ g, g.sum())


def perceptron_by_hand(W1, b1, W2, b2, X, Y):
    h = np.tanh(X @ W1 + b1)
    z = h @ W2 + b2
    m = z.max(1, keepdims=True)
    e = np.exp(z - m)
    s = e.sum(1, keepdims=True)
    value = np.mean(np.log(s[:, 0]) + m[:, 0] - np.sum(z * Y, 1))
    dz = (e / s - Y) / len(X)
    dh = (dz @ W2.T) * (1 - h * h)
    return value, (X.T @ dh, dh.sum(0), h.T @ dz, dz.sum(0))


def mixture_by_hand(alphas, means, logs, lower, X, place):
    n, d = X.shape
    K = len(alphas)
    q = np.exp(logs)
    Q = (lower @ place).reshape(K, d, d) + q[:, :, None] * np.eye(d)
    z = (X @ Q.reshape(K * d, d).T).reshape(n, K, d)
    z -= (Q @ means[:, :, None])[:, :, 0]
    inner = np.einsum("nki,nki->nk", z, z)
    inner *= -0.5
    inner += alphas + logs.sum(1)
    m = inner.max(1, keepdims=True)
    e = np.exp(inner - m)
    s = e.sum(1, keepdims=True)
    a = np.exp(alphas - alphas.max())
    value = np.sum(np.log(s) + m) - n * (np.log(a.sum()) + alphas.max())
    value -= 0.5 * (np.sum(q * q) + np.sum(lower**2)) - logs.sum()
    e /= s
    by_class = e.sum(0)
    z *= e[:, :, None]
    pulled = z.sum(0)
    dQ = pulled[:, :, None] * means[:, None, :] - (z.reshape(n, K * d).T @ X).reshape(K, d, d)
    dmeans = (pulled[:, None, :] @ Q)[:, 0]
    dlogs = by_class[:, None] + np.diagonal(dQ, axis1=1, axis2=2) * q - q * q + 1
    return value, (by_class - n * a / a.sum(), dmeans, dlogs, dQ.reshape(K, d * d) @ place.T - lower)


def recurrent_by_hand(W, U, b, V, X, y):
    steps, batch, inputs = X.shape
    A = (X.reshape(-1, inputs) @ W + b).reshape(steps, batch, -1)
    H = np.zeros((steps + 1, batch, U.shape[0]))
    for t in range(steps):
        np.tanh(A[t] + H[t] @ U, out=H[t + 1])
    error = H[-1] @ V - y
    de = 2 * error / error.size
    D = A
    dh = de @ V.T
    for t in reversed(range(steps)):
        D[t] = dh * (1 - H[t + 1] ** 2)
        dh = D[t] @ U.T
    flat = D.reshape(-1, D.shape[2])
    return np.mean(error**2), (
        X.reshape(-1, inputs).T @ flat, H[:-1].reshape(flat.shape).T @ flat, flat.sum(0), H[-1].T @ de,
    )  # fmt: skip


def stencil_by_hand(u, c, r):
    steps = STEPS["stencil"]
    kept = np.empty((steps + 1, *u.shape))
    kept[0] = u
    for t in range(steps):
        v, w = kept[t], kept[t + 1]
        w[:] = v
        m = v[1:-1, 1:-1]
        w[1:-1, 1:-1] += c * lap(v) + r * m * (1 - m)
    value = np.mean(kept[-1] ** 2)
    g, dc, dr = 2 * kept[-1] / u.size, 0.0, 0.0
    for t in reversed(range(steps)):
        v = kept[t]
        m = v[1:-1, 1:-1]
        i = g[1:-1, 1:-1].copy()
        dc += np.vdot(i, lap(v))
        dr += np.vdot(i, m * (1 - m))
        g[1:-1, 1:-1] = i * (1 - 4 * c + r * (1 - 2 * m))
        i *= c
        g[:-2, 1:-1] += i
        g[2:, 1:-1] += i
        g[1:-1, :-2] += i
        g[1:-1, 2:] += i
    return value, (g, dc, dr)


# arguments: those that are differentiated, and the others ----------------------------------------------------------------


def data() -> dict[str, tuple[tuple[Any, ...], tuple[Any, ...]]]:
    rng = np.random.default_rng(0)
    normal = rng.normal
    d, K, n = 10, 25, 1000
    place = np.zeros((d * (d - 1) // 2, d * d))
    place[np.arange(len(place)), np.flatnonzero(np.tril(np.ones((d, d)), -1))] = 1
    u = rng.random((100, 100))
    return {
        "logistic": ((normal(size=30) * 0.1, np.array(0.1)), (normal(size=(10**5, 30)), np.sign(normal(size=10**5)))),
        "perceptron": (
            (normal(size=(784, 256)) / 28, np.zeros(256), normal(size=(256, 10)) / 16, np.zeros(10)),
            (rng.random((128, 784)), np.eye(10)[rng.integers(10, size=128)]),
        ),
        "mixture": (
            (normal(size=K), normal(size=(K, d)), normal(size=(K, d)) * 0.3, normal(size=(K, len(place))) * 0.3),
            (normal(size=(n, d)), place),
        ),
        "recurrent": (
            (normal(size=(32, 64)) / 8, normal(size=(64, 64)) / 8, np.zeros(64), normal(size=(64, 8)) / 8),
            (normal(size=(STEPS["recurrent"], 16, 32)), normal(size=(16, 8))),
        ),
        "stencil": ((u, np.array(0.1), np.array(0.01)), ()),
    }


PROGRAMS = {"logistic": logistic, "perceptron": perceptron, "mixture": mixture, "recurrent": recurrent}
BY_HAND = {
    "logistic": logistic_by_hand,
    "perceptron": perceptron_by_hand,
    "mixture": mixture_by_hand,
    "recurrent": recurrent_by_hand,
    "stencil": stencil_by_hand,
}
Pair = tuple[Program, Program]


def over(xp: Any, name: str) -> Callable[..., Any]:
    """A program over a namespace."""
    program = PROGRAMS[name]
    return lambda *values: program(xp, *values)


def numpy_programs() -> dict[str, Pair]:
    """NumPy, and gradients by hand."""
    found: dict[str, Pair] = {}
    for name, (moving, fixed) in data().items():
        program = stencil if name == "stencil" else over(np, name)
        found[name] = (
            lambda f=program, v=(*moving, *fixed): f(*v),
            lambda f=BY_HAND[name], v=(*moving, *fixed): f(*v),
        )
    return found


def tensormagic_function(name: str) -> Callable[..., Any]:
    """A program as a function of arrays alone, in NumPy."""
    if name == "stencil":
        return stencil
    if name == "logistic":
        return lambda w, b, X, y: np.mean(np.log(1 + np.exp(-y * (X @ w + b))))
    if name == "recurrent":

        def rnn(W, U, b, V, X, y):
            h = np.zeros((X.shape[1], U.shape[0]))
            for t in range(200):
                h = np.tanh(X[t] @ W + h @ U + b)
            return np.mean((h @ V - y) ** 2)

        return rnn
    return over(np, name)


def tensormagic_programs() -> dict[str, Pair]:
    """tensormagic, compiled."""
    import tensormagic as tm

    tm.config.tier = "numba"
    found: dict[str, Pair] = {}
    for name, (moving, fixed) in data().items():
        program = tensormagic_function(name)
        value, both = tm.tensor(program), tm.value_and_grad(program, tuple(range(len(moving))))
        found[name] = (
            lambda f=value, v=(*moving, *fixed): f(*v),
            lambda f=both, v=(*moving, *fixed): f(*v),
        )
    return found


def jax_programs() -> dict[str, Pair]:
    """jax.jit, loops as scans."""
    import jax
    import jax.numpy as jnp

    def recurrent_scan(W, U, b, V, X, y):
        start = jnp.zeros((X.shape[1], U.shape[0]))
        h = jax.lax.scan(lambda h, x: (jnp.tanh(x @ W + h @ U + b), None), start, X)[0]
        return jnp.mean((h @ V - y) ** 2)

    def stencil_scan(u, c, r):
        def iteration(u, _):
            m = u[1:-1, 1:-1]
            return u.at[1:-1, 1:-1].set(m + c * lap(u) + r * m * (1 - m)), None

        return jnp.mean(jax.lax.scan(iteration, u, None, STEPS["stencil"])[0] ** 2)

    scans = {"recurrent": recurrent_scan, "stencil": stencil_scan}
    found: dict[str, Pair] = {}
    for name, (moving, fixed) in data().items():
        program = scans.get(name) or over(jnp, name)
        values = [jnp.asarray(v) for v in (*moving, *fixed)]
        value, both = jax.jit(program), jax.jit(jax.value_and_grad(program, tuple(range(len(moving)))))
        found[name] = (
            lambda f=value, v=values: jax.block_until_ready(f(*v)),
            lambda f=both, v=values: jax.block_until_ready(f(*v)),
        )
    return found


def torch_programs() -> dict[str, Pair]:
    """PyTorch, as it runs without torch.compile."""
    import torch

    torch.set_num_threads(1)
    torch.set_default_dtype(torch.float64)

    def stencil_of_copies(u, c, r):
        for _ in range(STEPS["stencil"]):
            m = u[1:-1, 1:-1]
            new = u.clone()
            new[1:-1, 1:-1] = m + c * lap(u) + r * m * (1 - m)
            u = new
        return torch.mean(u**2)

    def differentiated(f, moving, fixed):
        value = f(*moving, *fixed)
        return value, torch.autograd.grad(value, moving)

    found: dict[str, Pair] = {}
    for name, (moving, fixed) in data().items():
        program = stencil_of_copies if name == "stencil" else over(torch, name)
        first, rest = [torch.tensor(v) for v in moving], [torch.tensor(v) for v in fixed]
        leaves = [v.clone().requires_grad_() for v in first]
        found[name] = (
            lambda f=program, v=(*first, *rest): f(*v),
            lambda f=program, m=leaves, v=rest: differentiated(f, m, v),
        )
    return found


def pytensor_programs() -> dict[str, Pair]:
    """PyTensor, as it compiles by itself: the programs without loops, made when they are called first."""
    import pytensor
    import pytensor.tensor as pt

    class Names:
        """What the programs call, by PyTensor's names."""

        exp, log, tanh, mean, sum, eye = pt.exp, pt.log, pt.tanh, pt.mean, pt.sum, pt.eye
        amax = staticmethod(pt.max)

    def lazily(program, moving, fixed, *, both):
        made: list[Callable[..., Any]] = []

        def call():
            if not made:
                inputs = [pt.as_tensor(v).type() for v in (*moving, *fixed)]
                value = program(Names, *inputs)
                outputs = [value, *(pytensor.grad(value, inputs[: len(moving)]) if both else ())]
                made.append(pytensor.function(inputs, outputs, on_unused_input="ignore"))
            value, *slopes = made[0](*moving, *fixed)
            return (value, slopes) if both else value

        return call

    return {
        name: tuple(lazily(PROGRAMS[name], moving, fixed, both=both) for both in (False, True))
        for name, (moving, fixed) in data().items()
        if name in {"logistic", "perceptron", "mixture"}
    }  # type: ignore[return-value]


PEERS = {
    "NumPy, by hand": ("numpy", numpy_programs),
    "tensormagic": ("numba", tensormagic_programs),
    "jax.jit": ("jax", jax_programs),
    "PyTorch": ("torch", torch_programs),
    "PyTensor": ("pytensor", pytensor_programs),
}
