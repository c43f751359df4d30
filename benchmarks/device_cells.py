"""What the same program takes on the CPU and on a card, with its arrays there already, and with copies.

Run on a machine with a card::

    python benchmarks/device_cells.py [--write FILE]
    python benchmarks/device_cells.py --compile         # compiles what that needs, and stops: no card is needed

Medians of 7 after a warm-up, by the host's clock, with the device waited for. Kernels are compiled before (``config.tier = "numba"``);
``library`` is the same without kernels of our own.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

import tensormagic as tm
from tensormagic import session
from tensormagic.backend.cuda.compiling.compiler import Codes
from tensormagic.backend.cuda.device import current
from tensormagic.backend.cuda.loops.loop_plan import planned_loop
from tensormagic.backend.cuda.loops.small_loops import alone
from tensormagic.backend.cuda.planned import planned
from tensormagic.ir.graph import Graph
from tensormagic.ops.regions.loops import LOOP, WHILE
from tensormagic.residence import Resident


def cross_entropy(z: Any, y: Any) -> Any:
    return np.mean(np.log(1 + np.exp(-y * z)))


def loss(w: Any, X: Any, y: Any) -> Any:
    return np.mean(np.log(1 + np.exp(-y * (X @ w))))


def trained(w: Any, X: Any, y: Any) -> Any:
    for _ in range(100):
        w = w - 0.5 * tm.grad(loss)(w, X, y)
    return w


def softmax(x: Any) -> Any:
    e = np.exp(x - x.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


def elementwise(x: Any, y: Any) -> Any:
    return np.exp(-x * x) * y + x


def perceptron(w1: Any, w2: Any, x: Any) -> Any:
    z = np.tanh(x @ w1) @ w2
    z = z - z.max(1, keepdims=True)
    return -np.mean((z - np.log(np.exp(z).sum(1, keepdims=True)))[:, 3])


def stencil(u: Any) -> Any:
    u = u.copy()
    for _ in range(20):
        c = u[1:-1, 1:-1]
        u[1:-1, 1:-1] = c + 0.1 * (u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2] - 4 * c) + 0.01 * c * (1 - c)
    return u


def classified(w: Any, x: Any, labels: Any) -> Any:
    z = x @ w
    z = z - z.max(1, keepdims=True)
    return -(z - np.log(np.exp(z).sum(1, keepdims=True)))[np.arange(len(labels)), labels].mean()


def epochs(w: Any, x: Any, labels: Any) -> Any:
    for _ in range(5):
        for k in range(20):
            w = w - 0.1 * tm.grad(classified)(w, x[512 * k : 512 * k + 512], labels[512 * k : 512 * k + 512])
    return w


def arrays(*shapes: tuple[int, ...], dtype: str = "float32") -> list[np.ndarray[Any, Any]]:
    rng = np.random.default_rng(0)
    return [rng.standard_normal(shape, np.float32).astype(dtype) for shape in shapes]


def distance(a: Any, b: Any) -> Any:
    """Of Levenshtein: each step needs three others."""
    d = np.zeros((len(a) + 1, len(b) + 1), np.int64)
    d[:, 0] = np.arange(len(a) + 1)
    d[0, :] = np.arange(len(b) + 1)
    for i in range(1, len(a) + 1):
        for j in range(1, len(b) + 1):
            d[i, j] = min(d[i - 1, j] + 1, d[i, j - 1] + 1, d[i - 1, j - 1] + (a[i - 1] != b[j - 1]))
    return d[-1, -1]


CASES: dict[
    str, tuple[Callable[..., Any], Callable[[], list[np.ndarray[Any, Any]]]]
] = {  # a function, and what makes its arguments
    "four elements": (elementwise, lambda: arrays((4,), (4,))),
    "exp(-x*x)*y + x, 2**24": (elementwise, lambda: arrays((1 << 24,), (1 << 24,))),
    "mean of a cross entropy, 2**24": (cross_entropy, lambda: arrays((1 << 24,), (1 << 24,))),
    "softmax 8,192 x 2,048": (softmax, lambda: arrays((8192, 2048))),
    "gradient of a logistic loss, 10**6 x 30": (tm.grad(loss), lambda: arrays((30,), (10**6, 30), (10**6,))),
    "100 steps of gradient descent, 10**5 x 30": (trained, lambda: arrays((30,), (10**5, 30), (10**5,))),
    "gradient of a perceptron, 4,096 x 784 x 1,024 x 10": (
        tm.grad(perceptron, argnums=(0, 1)),
        lambda: arrays((784, 1024), (1024, 10), (4096, 784)),
    ),
    "20 steps of a 4,096 x 4,096 stencil": (stencil, lambda: arrays((4096, 4096))),
    "5 epochs of 20 batches of 512 x 784 x 10": (
        epochs,
        lambda: [*arrays((784, 10), (10240, 784)), np.random.default_rng(0).integers(0, 10, 10240)],
    ),
    "edit distance of two texts of 200 letters": (
        distance,
        lambda: [np.random.default_rng(k).integers(0, 4, 200) for k in range(2)],
    ),
    "cumsum 2**24": (np.cumsum, lambda: arrays((1 << 24,))),
    "argmax 8,192 x 2,048": (lambda x: np.argmax(x, axis=1), lambda: arrays((8192, 2048))),
    "matmul 2,048": (np.matmul, lambda: arrays((2048, 2048), (2048, 2048))),
}


def median(run: Callable[[], object], repeat: int = 7) -> float:
    run()
    seconds: list[float] = []
    for _ in range(repeat):
        start = time.perf_counter()
        run()
        seconds.append(time.perf_counter() - start)
    return statistics.median(seconds)


def timed(function: Callable[..., Any], args: list[np.ndarray[Any, Any]]) -> list[float]:
    device = current()
    compiled = tm.compile(function, *args)
    found = [median(lambda: compiled.run(*args), 3)]
    for tier in ("numpy", "numba"):
        tm.config.tier = tier
        there = tm.compile(function, *args, device="gpu")
        given = [Resident(device_array=device.put(a)) for a in args]

        def run(there: tm.Compiled = there, given: list[Resident] = given) -> None:
            there.executable.resident(given)
            device.synchronize()

        for _ in range(3):
            run()
        found.append(median(run))
    there = tm.compile(function, *args, device="gpu")
    return [*found, median(lambda: there.run(*args), 3)]


def codes_of(graph: Graph) -> list[Codes]:
    """All the kernels that a run of a graph may ask for, its loops' too."""
    found = [p.codes for p in [planned(graph)] if p is not None]
    for node in graph.nodes:
        loop = planned_loop(node) if node.op in (LOOP, WHILE) else None
        one = alone(node) if node.op in (LOOP, WHILE) else None
        found += [loop.codes] if loop is not None else []
        found += [one.planned.codes] if one is not None else []
        for inner in node.params.values():
            found += codes_of(inner) if isinstance(inner, Graph) else []
    return found


def compile_ahead(cc: tuple[int, int]) -> int:
    """Have the kernels of all programs compiled; how many are refused."""
    codes = [c for f, made in CASES.values() for c in codes_of(session.executable(tm.trace(f, *made())).graph)]
    for one in codes:
        one.start(cc)
    refused = 0
    for one in codes:
        one.wait()
        refused += len(one.errors)
    print(f"{len(codes)} plans: {sum(c.compiled for c in codes)} compiled, {refused} refused")
    return refused


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", type=Path)
    parser.add_argument("--compile", action="store_true")
    options = parser.parse_args()
    if options.compile:
        sys.exit(int(compile_ahead((9, 0)) > 0))
    path = options.write
    warnings.simplefilter("ignore", tm.HiddenTransferWarning)
    lines = [
        "| program, float32 | CPU, ms | card by the library, ms | card, ms | card with copies, ms |",
        "|---|---|---|---|---|",
    ]
    for name, (function, make) in CASES.items():
        tm.config.tier = "numba"
        times = timed(function, make())
        lines.append(f"| {name} | " + " | ".join(f"{1e3 * t:.3f}" for t in times) + " |")
        print(lines[-1], flush=True)
    if path is not None:
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
