"""What gradients cost: five programs and their gradients here, by hand in NumPy, under jax.jit, in PyTorch and PyTensor, in one run.

``python benchmarks/derivatives.py [FILE.md]`` in an environment that has the peers; one that is missing is left out, and named.
The thresholds of malloc are fixed, one thread runs, and the programs take turns.
"""

from __future__ import annotations

import datetime as dt
import os
import signal
import statistics
import sys
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

THRESHOLD = str(256 << 20)
SETTINGS = {
    **dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"), "1"),
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1",
    "JAX_PLATFORMS": "cpu",
    "JAX_ENABLE_X64": "1",
    "MALLOC_MMAP_THRESHOLD_": THRESHOLD,
    "MALLOC_TRIM_THRESHOLD_": THRESHOLD,
}
if __name__ == "__main__" and any(os.environ.get(name) != value for name, value in SETTINGS.items()):
    os.execve(sys.executable, [sys.executable, *sys.argv], {**os.environ, **SETTINGS})  # noqa: S606 (itself again)

import numpy as np  # noqa: E402 (the settings come first)
from derivative_programs import BY_HAND, PEERS, Pair, Program, data, lap, tensormagic_function  # noqa: E402
from first_calls import rows as first_rows  # noqa: E402
from peer_runs import machine, seconds, taking_part  # noqa: E402

ROUNDS, SPAN = 9, 0.03
LIMIT = 120.0  # seconds for a first call

# measuring ---------------------------------------------------------------------------------------------------------------


def cpu(program: Program) -> list[float]:
    """CPU milliseconds of each call of a block; the first, which finds the caches full of another's data, is not counted."""
    program()
    times: list[float] = []
    end = time.perf_counter() + SPAN
    while len(times) < 3 or (time.perf_counter() < end and len(times) < 50):
        begin = time.process_time_ns()
        program()
        times.append((time.process_time_ns() - begin) / 1e6)
    return times


def numbers(values: Any) -> list[np.ndarray[Any, Any]]:
    """The value and the gradients as arrays."""
    value, gradients = values
    return [v.detach().numpy() if hasattr(v, "detach") else np.asarray(v) for v in (value, *gradients)]


def rows_of(name: str, pairs: dict[str, Pair]) -> list[str]:
    """The rows of one program, everyone held against NumPy first."""
    first: dict[tuple[str, int], float] = {}
    late: list[str] = []
    for peer, pair in list(pairs.items()):
        try:
            first |= {(peer, k): within(LIMIT, pair[k]) for k in range(2)}
        except TimeoutError:
            late.append(f"| {name} | {peer} | | | | over {LIMIT:.0f} | |")
            del pairs[peer]
            first = {key: value for key, value in first.items() if key[0] != peer}
    expected = numbers(pairs["NumPy, by hand"][1]())
    for _, both in pairs.values():
        for a, b in zip(numbers(both()), expected, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-7, atol=1e-9 * max(1.0, float(np.abs(b).max())))
    times: dict[tuple[str, int], list[float]] = {key: [] for key in first}
    for _ in range(ROUNDS):
        for peer, pair in pairs.items():
            for k in range(2):
                times[peer, k] += cpu(pair[k])
    median = {key: statistics.median(t) for key, t in times.items()}
    return [
        f"| {name} | {peer} | {median[peer, 0]:.3g} | {median[peer, 1]:.3g} | {median[peer, 1] / median[peer, 0]:.2f}"
        f" | {first[peer, 0]:.2f} | {first[peer, 1]:.2f} |"
        for peer in pairs
    ] + late


def within(limit: float, program: Program) -> float:
    """Wall seconds of one call, which a TimeoutError ends where it takes longer."""

    def end(*_: object) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, end)
    signal.setitimer(signal.ITIMER_REAL, limit)
    begin = time.perf_counter()
    try:
        return seconds(program)
    except Exception as error:
        if time.perf_counter() - begin < limit:
            raise
        raise TimeoutError from error  # what was interrupted may have made another error of it
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def peak(program: Program, forget: Callable[[], None]) -> float:
    """MB that a call holds at most beside what was there before; ``forget`` gives back memory that is kept for later."""
    program()
    forget()
    tracemalloc.start()
    program()
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return most / 1e6


def checkpointed() -> dict[str, Callable[..., Any]]:
    """The loops with a checkpoint around the iterations of each block, as a user would write them."""
    import tensormagic as tm

    def rnn(W, U, b, V, X, y):
        @tm.checkpoint
        def block(h, part, W, U, b):
            for t in range(20):
                h = np.tanh(part[t] @ W + h @ U + b)
            return h

        h = np.zeros((X.shape[1], U.shape[0]))
        for k in range(10):
            h = block(h, X[20 * k : 20 * k + 20], W, U, b)
        return np.mean((h @ V - y) ** 2)

    def waves(u, c, r):
        @tm.checkpoint
        def block(u, c, r):
            u = u.copy()
            for _ in range(25):
                m = u[1:-1, 1:-1]
                u[1:-1, 1:-1] = m + c * lap(u) + r * m * (1 - m)
            return u

        for _ in range(20):
            u = block(u, c, r)
        return np.mean(u**2)

    return {"recurrent": rnn, "stencil": waves}


def memory_rows() -> list[str]:
    """Peak memory and time of the gradients of loops, as they are and with checkpoints."""
    import tensormagic as tm
    from tensormagic.backend.running.buffers import pool
    from tensormagic.ops.reverse import spans

    rows: list[str] = []
    blocks = checkpointed()
    for name, (moving, fixed) in data().items():
        if name not in blocks:
            continue
        ways: dict[str, Program] = {}
        for way, (function, limit) in {
            "as it is": (tensormagic_function(name), spans.MOST_BYTES),
            "nothing computed again": (tensormagic_function(name), 1 << 60),
            "always in blocks": (tensormagic_function(name), 0),
            "tm.checkpoint": (blocks[name], 1 << 60),
        }.items():
            usual, spans.MOST_BYTES = spans.MOST_BYTES, limit
            both = tm.value_and_grad(function, tuple(range(len(moving))))
            both(*moving, *fixed)
            spans.MOST_BYTES = usual
            ways[way] = lambda f=both, v=(*moving, *fixed): f(*v)
        ways["NumPy, by hand"] = lambda f=BY_HAND[name], v=(*moving, *fixed): f(*v)
        for way, program in ways.items():
            most = peak(program, pool.clear)
            rows.append(f"| {name} | {way} | {most:.2f} | {statistics.median(cpu(program)):.3g} |")
    return rows


def scale_rows() -> list[str]:
    """CPU seconds of each step for chains of operations."""
    import tensormagic as tm
    from tensormagic.backend.planning.plan import plan_graph
    from tensormagic.transform.grad import value_and_gradient
    from tensormagic.transform.rewriting import rewrite

    rows: list[str] = []
    for links in (5_000, 50_000):

        def chain(x, links=links):
            for k in [*range(links // 4)]:
                x = np.sin(x) * 0.5 + x
                x = x * 1.0001 if k % 2 else x - 0.1
            return np.sum(x)

        made: list[Any] = [None]
        steps: list[Callable[[Any], Any]] = [
            lambda _, f=chain: tm.tensor(f).graph(np.ones(5)),
            lambda g: g.with_results(value_and_gradient(g.results[0], g.parameters)[1]),
            lambda g: rewrite(g).graph,
            plan_graph,
        ]
        times: list[str] = []
        for step in steps:
            begin = time.process_time()
            made.append(step(made[-1]))
            times.append(f"{time.process_time() - begin:.2f}")
        rows.append(f"| {links:,} | {len(made[2].nodes):,} | {' | '.join(times)} |")
    return rows


def main() -> None:
    """Measure and print."""
    found, versions, missing = taking_part(PEERS)
    rows = [
        row for name in data() for row in rows_of(name, {p: these[name] for p, these in found.items() if name in these})
    ]
    text = [
        "# What gradients cost",
        "",
        f"Made by `python benchmarks/derivatives.py`, {dt.datetime.now(dt.UTC).date()}; {machine()}, {', '.join(versions)}.",
        "One thread, malloc's thresholds at 256 MiB. CPU: median milliseconds of process time, in blocks, all in turn; the gradient",
        "with its value. First call: wall seconds, compiling included (here: waiting for the compiler, with its cache as it is).",
        "PyTensor: the programs without loops.",
        "",
        "- *logistic*: loss of 10^5 x 30",
        "- *perceptron*: 784-256-10, tanh, softmax and cross entropy, batch 128",
        "- *mixture*: log-likelihood of ADBench's Gaussian mixture, d = 10, K = 25, N = 1000",
        "- *recurrent*: 200 steps, 64 units, 32 inputs, batch 16, a `for` loop (scan in JAX)",
        "- *stencil*: Fisher's equation, 100 x 100, 500 steps with a store of a slice (scan in JAX, copies in PyTorch)",
        "",
        "| program | with | objective, ms | gradient, ms | ratio | first call, s | of the gradient |",
        "|---|---|---:|---:|---:|---:|---:|",
        *rows,
        *([f"\nNot installed: {', '.join(missing)}."] if missing else []),
        "",
        "The gradient's first call in a process of its own with an empty cache, wall seconds: until there is a result (here by NumPy, as",
        "a user has it), and until compiled code has given one. The processes have imported what they need, and the compiler has started.",
        "",
        "| program | with | first result, s | compiled code ready, s | a call after that, ms |",
        "|---|---|---:|---:|---:|",
        *first_rows(list(data()), list(found)),
        "",
        "Memory of the gradients of loops: the most that one call holds beside its arguments (tracemalloc).",
        "",
        "| program | how | MB | CPU, ms |",
        "|---|---|---:|---:|",
        *(memory_rows() if "tensormagic" in found else []),
        "",
        "Graphs of chains of operations: CPU seconds.",
        "",
        "| operations | nodes of the gradient | capture | gradient | rewriting | plan |",
        "|---:|---:|---:|---:|---:|---:|",
        *(scale_rows() if "tensormagic" in found else []),
    ]
    page = "\n".join(text) + "\n"
    print(page)
    if len(sys.argv) > 1:
        Path(sys.argv[1]).write_text(page)


if __name__ == "__main__":
    main()
