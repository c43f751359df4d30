"""What it is good for that steps of one graph run at the same time: ``python benchmarks/overlap.py [FILE.md]``.

Programs with independent steps that take long, compiled, with ``tm.config.threads`` of 1 and 2, asked in turn in one process: a process
for BLAS with one thread, and one for BLAS with its own. Milliseconds of wall time, of CPU time of the thread that calls, and of all
threads. On a machine with other work, wall time says little: the time of the calling thread says what is left for it to do itself.
"""
# pyright: basic

from __future__ import annotations

import argparse
import datetime as dt
import json
import os
import platform
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import version
from pathlib import Path

import numpy as np

ROUNDS = 8
VARIABLES = ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


def products(a, b):
    return a @ b, b @ a


def decompositions(a, b):
    return np.linalg.svd(a)[1].sum() + np.linalg.svd(b)[1].sum()


def likelihood(scale, x, y):
    k = np.exp(-0.5 * ((x[:, None] - x[None, :]) / scale) ** 2) + 0.1 * np.eye(len(x))
    return 0.5 * y @ np.linalg.solve(k, y) + np.log(np.diag(np.linalg.cholesky(k))).sum()


def attention(x, wq, wk, wv):
    heads = []
    for q, k, v in zip(wq, wk, wv, strict=True):
        s = (x @ q) @ (x @ k).T / np.sqrt(q.shape[1])
        e = np.exp(s - s.max(axis=1, keepdims=True))
        heads.append((e / e.sum(axis=1, keepdims=True)) @ (x @ v))
    return np.concatenate(heads, axis=1)


def ensemble(x, a1, a2, b1, b2):
    return np.tanh(np.tanh(x @ a1) @ a2) + np.tanh(np.tanh(x @ b1) @ b2)


def perceptron(w1, b1, w2, b2, w3, b3, x, y):
    h = np.tanh(x @ w1 + b1)
    return np.mean((np.tanh(h @ w2 + b2) @ w3 + b3 - y) ** 2)


def spectra(a, b):
    return np.abs(np.fft.fft2(a)).sum() + np.abs(np.fft.fft2(b)).sum()


def sorted_apart(a, b):
    return np.sort(a)[::1000], np.sort(b)[::1000]


def recurrences(x, y):
    u, v = np.zeros_like(x[0]), np.zeros_like(y[0])
    for k in range(x.shape[0]):
        u = np.tanh(u * 0.9 + x[k])
    for k in range(y.shape[0]):
        v = np.cos(v) * 0.5 + y[k]
    return u, v


def small(a, b):
    return np.linalg.svd(a)[1].sum() + np.linalg.svd(b)[1].sum(), a @ b


def programs():
    import tensormagic as tm

    rng = np.random.default_rng(0)

    def normal(*shape, scale=1.0):
        return rng.standard_normal(shape) * scale

    layers = [
        normal(512, 1024, scale=0.03),
        normal(1024),
        normal(1024, 1024, scale=0.03),
        normal(1024),
        normal(1024, 10),
        normal(10),
    ]
    return {
        "two products, 1500×1500": (tm.tensor(products), (normal(1500, 1500), normal(1500, 1500))),
        "two SVDs, 400×400": (tm.tensor(decompositions), (normal(400, 400), normal(400, 400))),
        "Gaussian process, 800 points, with gradient": (tm.value_and_grad(likelihood), (0.3, np.linspace(0, 9, 800), normal(800))),
        "attention, 4 heads, 1000×256": (tm.tensor(attention), (normal(1000, 256), *(normal(4, 256, 64, scale=0.06) for _ in range(3)))),
        "ensemble of two, 2000×1000": (tm.tensor(ensemble), (normal(2000, 1000), *(normal(1000, 1000, scale=0.03) for _ in range(4)))),
        "perceptron, 2000×512, with gradient": (
            tm.value_and_grad(perceptron, argnums=(0, 1, 2, 3, 4, 5)),
            (*layers, normal(2000, 512), normal(2000, 10)),
        ),
        "two spectra, 1024×1024": (tm.tensor(spectra), (normal(1024, 1024), normal(1024, 1024))),
        "two sorts of 10⁶": (tm.tensor(sorted_apart), (normal(1_000_000), normal(1_000_000))),
        "two recurrences, 3000 of 2000": (tm.tensor(recurrences), (normal(3000, 2000), normal(3000, 2000))),
        "small: SVDs and a product, 12×12": (tm.tensor(small), (normal(12, 12), normal(12, 12))),
    }  # fmt: skip


def once(call):
    """Wall time, that of the calling thread and of all threads, in milliseconds."""
    start = time.perf_counter(), time.thread_time(), time.process_time()
    call()
    now = time.perf_counter(), time.thread_time(), time.process_time()
    return [1e3 * (b - a) for a, b in zip(start, now, strict=True)]


def measured(names):
    """For each program and number of threads the least of each time."""
    import tensormagic as tm

    tm.config.tier = "numba"
    found = {}
    for name, (function, arguments) in programs().items():
        if names and not any(n in name for n in names):
            continue
        times = {1: [], 2: []}
        number = 200 if name.startswith("small") else 1

        def call(function=function, arguments=arguments, number=number):
            for _ in range(number):
                function(*arguments)

        for round_ in range(ROUNDS + 1):
            for threads, kept in times.items():
                tm.config.threads = threads
                call() if not round_ else kept.append([t / number for t in once(call)])
        found[name] = {count: [min(column) for column in zip(*kept, strict=True)] for count, kept in times.items()}
    return found


def report(found):
    """The table."""
    load, numpy = os.getloadavg()[0], version("numpy")
    machine = f"{platform.machine()}, {os.cpu_count()} cores, load {load:.1f}, Python {platform.python_version()}, numpy {numpy}"
    lines = [
        "# Steps at the same time",
        "",
        f"Made by `python benchmarks/overlap.py`, {dt.datetime.now(tz=dt.UTC):%Y-%m-%d}; {machine}.",
        "",
        f"Milliseconds, the least of {ROUNDS}: wall time / CPU time of the calling thread / CPU time of all threads.",
    ]
    for blas, table in found.items():
        lines += ["", f"BLAS with {blas}", "", "| program | one thread | two threads | wall |", "|---|---:|---:|---:|"]
        for name, times in table.items():
            one, two = times["1"], times["2"]
            cells = [" / ".join(f"{t:.3g}" for t in kept) for kept in (one, two)]
            lines.append(f"| {name} | {cells[0]} | {cells[1]} | {two[0] / one[0]:.2f} |")
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", nargs="?", type=Path)
    parser.add_argument("--only", nargs="*", default=[], help="parts of names of programs")
    parser.add_argument("--measure", action="store_true", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if (
        asked.measure
    ):  # on a thread of its own, which does itself what the main thread has done beside it, to be interruptible
        with ThreadPoolExecutor(1) as pool:
            print(json.dumps(pool.submit(measured, asked.only).result()))
        return
    found = {}
    for label, setting in (("one thread", "1"), ("its own threads", None)):
        environment = {k: v for k, v in os.environ.items() if k not in VARIABLES}
        environment |= dict.fromkeys(VARIABLES, setting) if setting else {}
        command = [sys.executable, __file__, "--measure", *(["--only", *asked.only] if asked.only else [])]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        found[label] = json.loads(done.stdout)
    text = report(found)
    print(text)
    if asked.file:
        asked.file.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
