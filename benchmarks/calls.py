"""What a call of a compiled function costs, and a step of training a small perceptron: ``python benchmarks/calls.py [FILE.md]``.

CPU time of the process, by machine code that is there. Each number is the least of many short runs, so that other processes disturb it
little. The perceptron is scikit-learn's digits in batches of 100, two layers (64-64-10) in a list of four arrays, and a step is the value,
the gradient, and the update that Python does; beside it the same step with derivatives by hand in NumPy.
"""

from __future__ import annotations

import datetime as dt
import importlib.metadata
import os
import platform
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

import tensormagic as tm

RATE, BATCH = 0.5, 100


def cost(call: Callable[[], Any], number: int, times: int = 150) -> float:
    """CPU microseconds of a call: the least of ``times`` means over ``number``."""
    best = float("inf")
    for _ in range(times):
        start = time.process_time()
        for _ in range(number):
            call()
        best = min(best, (time.process_time() - start) / number)
    return best * 1e6


def arrays(x: Any, y: Any, z: Any) -> Any:
    """Three arrays."""
    return np.exp(x) * y + z


def listed(p: Any) -> Any:
    """The same in a list."""
    return np.exp(p[0]) * p[1] + p[2]


def mapped(p: Any) -> Any:
    """The same in a dictionary."""
    return np.exp(p["x"]) * p["y"] + p["z"]


def scaled(x: Any, rate: Any) -> Any:
    """An array and a number."""
    return np.exp(x) * rate


def one(x: Any, y: Any) -> Any:
    """A single operation."""
    return x + y


def scalar(w: Any) -> Any:
    """A scalar loss."""
    return np.sum(np.tanh(w) * w)


def loss(p: Any, x: Any, t: Any) -> Any:
    """The cross entropy of a perceptron with one hidden layer."""
    w1, b1, w2, b2 = p
    z = np.tanh(x @ w1 + b1) @ w2 + b2
    m = z.max(axis=1, keepdims=True)
    return np.mean(m[:, 0] + np.log(np.exp(z - m).sum(axis=1)) - (z * t).sum(axis=1))


def by_hand(p: Any, x: Any, t: Any) -> Any:
    """The loss and its gradient in NumPy."""
    w1, b1, w2, b2 = p
    h = np.tanh(x @ w1 + b1)
    z = h @ w2 + b2
    m = z.max(axis=1, keepdims=True)
    e = np.exp(z - m)
    s = e.sum(axis=1, keepdims=True)
    value = np.mean(m[:, 0] + np.log(s[:, 0]) - (z * t).sum(axis=1))
    dz = (e / s - t) / len(x)
    dh = (dz @ w2.T) * (1 - h * h)
    return value, [x.T @ dh, dh.sum(0), h.T @ dz, dz.sum(0)]


def stepping(both: Callable[..., Any]) -> Callable[[], Any]:
    """One step after the other, over batches in turn."""
    from sklearn.datasets import load_digits

    images, digits = load_digits(return_X_y=True)
    images, targets = images / 16, np.eye(10)[digits]
    rng = np.random.default_rng(0)
    p = [rng.normal(size=(64, 64)) / 10, np.zeros(64), rng.normal(size=(64, 10)) / 10, np.zeros(10)]
    state: list[Any] = [p, 0]

    def step() -> Any:
        p, k = state
        value, gradient = both(p, images[k : k + BATCH], targets[k : k + BATCH])
        state[:] = [a - RATE * b for a, b in zip(p, gradient, strict=True)], (k + BATCH) % 1700
        return value

    return step


def rows() -> list[str]:
    """What is measured."""
    tm.config.tier = "numba"
    x, y, z = np.ones(4), np.full(4, 2.0), np.zeros(4)
    p, q, b = tm.tensor(arrays), tm.tensor(listed), tm.tensor(mapped)
    s, g, o = tm.tensor(scaled), tm.value_and_grad(scalar), tm.tensor(one)
    calls: dict[str, Callable[[], Any]] = {
        "three arrays of 4 elements": lambda: p(x, y, z),
        "the same, by name": lambda: p(x, z=z, y=y),
        "the same, in a list": lambda: q([x, y, z]),
        "the same, in a dictionary": lambda: b({"x": x, "y": y, "z": z}),
        "an array and a number of Python": lambda: s(x, 2.0),
        "a scalar loss of 4 elements with its gradient": lambda: g(x),
        "one sum of two arrays of 4 elements": lambda: o(x, y),
        "the same by NumPy": lambda: one(x, y),
        "three arrays of 4 elements by NumPy": lambda: arrays(x, y, z),
        "the value alone of the scalar loss by NumPy": lambda: scalar(x),
    }
    found = [f"| {name} | {cost(call, 300):.1f} |" for name, call in calls.items() if call() is not None]
    ours, hand = stepping(tm.value_and_grad(loss)), stepping(by_hand)
    ours()
    pairs = [(cost(ours, 10, 20), cost(hand, 10, 20)) for _ in range(5)]  # in turn
    best = [min(times) for times in zip(*pairs, strict=True)]
    return [*found, f"| a step of the perceptron | {best[0]:.0f} |", f"| the same by hand in NumPy | {best[1]:.0f} |"]


def main() -> None:
    """Measure and print."""
    versions = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in ("numpy", "llvmlite"))
    machine = f"{platform.machine()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}, Python {platform.python_version()}"
    page = "\n".join(
        [
            "# Calls",
            "",
            f"Made by `python benchmarks/calls.py`, {dt.datetime.now(dt.UTC).date()}; {machine}, {versions}. BLAS with one thread.",
            "",
            "CPU time of a call of a function that is compiled: the least of many short runs.",
            "",
            "| call | µs |",
            "|---|---:|",
            *rows(),
            "",
        ]
    )
    print(page)
    if len(sys.argv) > 1:
        Path(sys.argv[1]).write_text(page)


if __name__ == "__main__":
    main()
