"""tensormagic beside NumPy, numexpr, JAX, PyTorch and PyTensor: first call and median CPU time, one thread, one run.

``python benchmarks/peers.py [FILE.md]`` in an environment that has the peers; one that is missing is left out, and named.
"""

from __future__ import annotations

import datetime as dt
import os
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ.setdefault(_name, "1")
os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1")
os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("JAX_ENABLE_X64", "1")

import numpy as np  # noqa: E402 (the threads are set first)
from peer_runs import machine, seconds, taking_part  # noqa: E402

ROUNDS, BLOCK = 9, 5
Program = Callable[[], object]
rng = np.random.default_rng(0)
X1, Y1 = rng.normal(size=10**6), rng.normal(size=10**6)
S = rng.normal(size=(1000, 1000))
X, W, B = rng.normal(size=(10**5, 30)), rng.normal(size=30) * 0.1, 0.1
Y = np.sign(rng.normal(size=10**5))


def numpy_programs() -> dict[str, Program]:
    def loss():
        return np.mean(np.log(1 + np.exp(-abs(X1))) + np.maximum(X1, 0) - X1 * Y1)

    def softmax():
        e = np.exp(S - S.max(1, keepdims=True))
        return e / e.sum(1, keepdims=True)

    def logistic():
        margin = -Y * (X @ W + B)
        e = np.exp(margin)
        pull = -(Y * (e / (1 + e))) / len(Y)
        return np.mean(np.log1p(e)), X.T @ pull, pull.sum()

    return {"loss": loss, "softmax": softmax, "logistic": logistic}


def tensormagic_programs() -> dict[str, Program]:
    import tensormagic as tm

    tm.config.tier = "numba"
    loss = tm.tensor(lambda x, y: np.mean(np.log(1 + np.exp(-abs(x))) + np.maximum(x, 0) - x * y))
    softmax = tm.tensor(
        lambda s: np.exp(s - s.max(1, keepdims=True)) / np.exp(s - s.max(1, keepdims=True)).sum(1, keepdims=True)
    )
    logistic = tm.value_and_grad(lambda w, b, x, y: np.mean(np.log(1 + np.exp(-y * (x @ w + b)))), (0, 1))
    b = np.array(B)
    return {"loss": lambda: loss(X1, Y1), "softmax": lambda: softmax(S), "logistic": lambda: logistic(W, b, X, Y)}


def numexpr_programs() -> dict[str, Program]:
    import numexpr

    numexpr.set_num_threads(1)
    names = {"x": X1, "y": Y1}
    text = "sum(log(1 + exp(-abs(x))) + where(x > 0, x, 0) - x * y)"
    return {"loss": lambda: numexpr.evaluate(text, names) / len(X1)}


def jax_programs() -> dict[str, Program]:
    import jax
    import jax.numpy as jnp

    x1, y1, s, x, y, w = (jnp.asarray(v) for v in (X1, Y1, S, X, Y, W))
    loss = jax.jit(lambda x, y: jnp.mean(jnp.log(1 + jnp.exp(-abs(x))) + jnp.maximum(x, 0) - x * y))
    softmax = jax.jit(
        lambda s: jnp.exp(s - s.max(1, keepdims=True)) / jnp.exp(s - s.max(1, keepdims=True)).sum(1, keepdims=True)
    )
    logistic = jax.jit(jax.value_and_grad(lambda w, b, x, y: jnp.mean(jnp.log(1 + jnp.exp(-y * (x @ w + b)))), (0, 1)))
    return {
        "loss": lambda: loss(x1, y1).block_until_ready(),
        "softmax": lambda: softmax(s).block_until_ready(),
        "logistic": lambda: jax.block_until_ready(logistic(w, B, x, y)),
    }


def torch_programs() -> dict[str, Program]:
    import torch

    torch.set_num_threads(1)
    x1, y1, s, x, y = (torch.from_numpy(v) for v in (X1, Y1, S, X, Y))
    w, b = torch.tensor(W, requires_grad=True), torch.tensor(B, requires_grad=True)

    def logistic():
        value = torch.mean(torch.log(1 + torch.exp(-y * (x @ w + b))))
        return value, torch.autograd.grad(value, (w, b))

    return {
        "loss": lambda: torch.mean(torch.log(1 + torch.exp(-abs(x1))) + torch.clamp(x1, min=0) - x1 * y1),
        "softmax": lambda: torch.softmax(s, 1),
        "logistic": logistic,
    }


def pytensor_programs() -> dict[str, Program]:
    import pytensor
    import pytensor.tensor as pt

    a, c, m = pt.dvector("a"), pt.dvector("c"), pt.dmatrix("m")
    w, b, x, y = pt.dvector("w"), pt.dscalar("b"), pt.dmatrix("x"), pt.dvector("y")
    value = pt.mean(pt.log(1 + pt.exp(-y * (x @ w + b))))

    def lazily(inputs, outputs, values):
        made = []

        def call():
            if not made:
                made.append(pytensor.function(inputs, outputs, on_unused_input="ignore"))
            return made[0](*values)

        return call

    return {
        "loss": lazily([a, c], pt.mean(pt.log(1 + pt.exp(-abs(a))) + pt.maximum(a, 0) - a * c), (X1, Y1)),
        "softmax": lazily(
            [m], pt.exp(m - m.max(1, keepdims=True)) / pt.exp(m - m.max(1, keepdims=True)).sum(1, keepdims=True), (S,)
        ),
        "logistic": lazily([w, b, x, y], [value, *pytensor.grad(value, [w, b])], (W, B, X, Y)),
    }


PEERS = {
    "NumPy": ("numpy", numpy_programs),
    "tensormagic": ("numba", tensormagic_programs),
    "numexpr": ("numexpr", numexpr_programs),
    "JAX (jit)": ("jax", jax_programs),
    "PyTorch (eager)": ("torch", torch_programs),
    "PyTensor": ("pytensor", pytensor_programs),
}


def cpu(program: Program) -> list[float]:
    """CPU milliseconds of each call of a block; the first, which finds the caches full of another's data, is not counted."""
    program()
    times = []
    for _ in range(BLOCK):
        begin = time.process_time_ns()
        program()
        times.append((time.process_time_ns() - begin) / 1e6)
    return times


def table(found: dict[str, dict[str, Program]]) -> list[str]:
    """Rows: in turn, a block of calls of each peer, so that a machine whose speed drifts treats all alike."""
    rows = []
    for name in ("loss", "softmax", "logistic"):
        programs = {peer: these[name] for peer, these in found.items() if name in these}
        first = {peer: seconds(program) for peer, program in programs.items()}
        times: dict[str, list[float]] = {peer: [] for peer in programs}
        for _ in range(ROUNDS):
            for peer, program in programs.items():
                times[peer] += cpu(program)
        median = {peer: statistics.median(t) for peer, t in times.items()}
        rows += [
            f"| {name} | {peer} | {first[peer]:.2f} | {median[peer]:.2f} | {median['NumPy'] / median[peer]:.1f} |"
            for peer in programs
        ]
    return rows


def main() -> None:
    """Measure and print."""
    found, versions, missing = taking_part(PEERS)
    rows = table(found)
    when = dt.datetime.now(dt.UTC).date()
    text = [
        "# Beside the peers",
        "",
        f"Made by `python benchmarks/peers.py`, {when}; {machine()}, {', '.join(versions)}; one thread, malloc as it comes.",
        "First call: wall seconds, compiling included (tensormagic: waiting for the compiler, with its cache as it is).",
        f"CPU: median milliseconds of process time of {ROUNDS * BLOCK} calls, in blocks of {BLOCK}, the peers in turn.",
        "Ratio: NumPy's over it; above 1 is faster than NumPy.",
        "",
        "- *loss*: `mean(log(1+exp(-abs(x))) + maximum(x,0) - x*y)`, 10^6 elements",
        "- *softmax*: rows of 1000 x 1000",
        "- *logistic*: loss and gradient, 10^5 x 30",
        "",
        "| program | with | first call, s | CPU, ms | ratio |",
        "|---|---|---:|---:|---:|",
        *rows,
        *([f"\nNot installed: {', '.join(missing)}."] if missing else []),
    ]
    page = "\n".join(text) + "\n"
    print(page)
    if len(sys.argv) > 1:
        Path(sys.argv[1]).write_text(page)


if __name__ == "__main__":
    main()
