"""What threads are good for: ``python benchmarks/threads.py [FILE.md] [--peers PYTHON]``.

Programs over large arrays, those of ``peer_programs.py`` among them, on one thread and on two, here and by NumExpr, jax and PyTorch,
as far as ``PYTHON`` has these. Each library and each number of threads is a process of its own, which may use as many processors. All
are asked in turn, program by program and round by round, for the fastest of a few runs in wall time, and its CPU time; the table has
the medians of the rounds.
"""
# pyright: basic

from __future__ import annotations

import argparse
import datetime as dt
import json
import os
import platform
import statistics
import subprocess
import sys
import time
from importlib.metadata import version
from pathlib import Path

import numpy as np
from peer_programs import chain, columns, options, softmax, total

COUNTS = (1, 2)
RUNS = 5
EXPLAINED = """\
Milliseconds of wall time, and of CPU time in brackets: medians of {rounds} rounds, in each of which every party is asked in turn for
the fastest of {runs} runs. Where the load is above the number of processors, the second thread finds a processor only now and then:
CPU time then says what threads cost, and wall time does not say what they are good for."""
LIBRARIES = ("tensormagic", "numexpr", "jax", "torch")


def entropy(ns, x, t):
    return ns.mean(ns.log1p(ns.exp(-ns.abs(x))) + ns.maximum(x, 0 * x) - x * t)


def layer_norm(ns, x):
    d = x - ns.mean(x, axis=1, keepdims=True)
    return d / ns.sqrt(ns.mean(d * d, axis=1, keepdims=True) + 1e-5)


def logistic(ns, w, X, t):
    z = X @ w
    return ns.mean(ns.log1p(ns.exp(-ns.abs(z))) + ns.maximum(z, 0 * z) - z * t)


def blurred(ns, u):
    return 0.2 * (u[1:-1, 1:-1] + u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2])


EXPRESSIONS = {
    "chain": "sqrt(x * x + y * y) * 2 - x / (y + 3) + 1",
    "total": "sum(x * y)",
    "entropy": "sum(log1p(exp(-abs(x))) + where(x > 0, x, 0) - x * t)",
}
"""The same for NumExpr, which has neither rows nor slices."""


def programs():
    """For each program the function, its arguments by name, and whether its gradient in the first one is wanted."""
    rng = np.random.default_rng(0)
    flat = {"x": rng.standard_normal(4_000_000), "y": rng.random(4_000_000)}
    rows = {"x": rng.standard_normal((2000, 1000))}
    market = {
        "s": rng.uniform(50, 150, 1_000_000),
        "k": rng.uniform(50, 150, 1_000_000),
        "t": rng.uniform(0.1, 2, 1_000_000),
    }
    labels = rng.integers(0, 2, 200_000).astype(float)
    return {
        "chain": (chain, flat, False),
        "total": (total, flat, False),
        "entropy": (entropy, {"x": flat["x"], "t": (flat["y"] > 0.5).astype(float)}, False),
        "softmax": (softmax, rows, False),
        "layer norm": (layer_norm, rows, False),
        "options": (options, market, False),
        "columns": (columns, {"x": rng.standard_normal((100_000, 30))}, False),
        "logistic, gradient": (logistic, {"w": rng.standard_normal(30), "X": rng.standard_normal((200_000, 30)), "t": labels}, True),
        "stencil": (blurred, {"u": rng.standard_normal((1500, 1500))}, False),
    }  # fmt: skip


def of_tensormagic(count):
    """A function that gives a call for a program."""
    import tensormagic as tm

    tm.config.tier, tm.config.threads = "numba", count

    def prepared(name, function, given, grad):
        def f(*args):
            return function(np, *args)

        ours = tm.value_and_grad(f) if grad else tm.tensor(f)
        return lambda: [np.asarray(r) for r in (ours(*given.values()) if grad else [ours(*given.values())])]

    return prepared


def of_numexpr(count):
    """The same by NumExpr."""
    import numexpr

    numexpr.set_num_threads(count)
    return lambda name, function, given, grad: (
        (lambda: numexpr.evaluate(EXPRESSIONS[name], given)) if name in EXPRESSIONS else None
    )


def of_jax(count):
    """The same by jax, whose threads are as many as there are processors."""
    import jax

    jax.config.update("jax_enable_x64", True)
    jax.config.update("jax_platforms", "cpu")

    def prepared(name, function, given, grad):
        def f(*args):
            return function(jax.numpy, *args)

        run, own = jax.jit(jax.value_and_grad(f) if grad else f), [jax.numpy.asarray(v) for v in given.values()]
        return lambda: jax.block_until_ready(run(*own))

    return prepared


def of_torch(count):
    """The same by PyTorch, operation by operation."""
    import torch

    torch.set_num_threads(count)

    def prepared(name, function, given, grad):
        own = [torch.from_numpy(v) for v in given.values()]
        if not grad:
            return lambda: function(torch, *own)

        def run():
            w = own[0].clone().requires_grad_()
            function(torch, w, *own[1:]).backward()
            return w.grad

        return run

    return prepared


def serve(library, count):
    """Answer questions for the times of programs."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:count])
    prepared = {"tensormagic": of_tensormagic, "numexpr": of_numexpr, "jax": of_jax, "torch": of_torch}[library](count)
    calls = {name: prepared(name, *item) for name, item in programs().items()}
    for call in filter(None, calls.values()):
        call()
    print(json.dumps({"version": version(library) if library != "tensormagic" else ""}), flush=True)
    for line in sys.stdin:
        call = calls[line.strip()]
        if call is None:
            print("null", flush=True)
            continue
        times = []
        for _ in range(RUNS):
            wall, cpu = time.perf_counter(), time.process_time()
            call()
            times.append((time.perf_counter() - wall, time.process_time() - cpu))
        print(json.dumps(min(times)), flush=True)


class Party:
    """A library with a number of threads, in a process of its own."""

    def __init__(self, python, library, count):
        self.library, self.count = library, count
        self.process = subprocess.Popen(
            [python, __file__, "--serve", library, str(count)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        line = self.process.stdout.readline()
        self.version = json.loads(line)["version"] if line else None

    def ask(self, name):
        """The wall and CPU time of a run; None for what it does not do."""
        self.process.stdin.write(name + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())


def measured(parties, rounds):
    """The times of every party for every program."""
    found = {}
    for _ in range(rounds):
        for name in programs():
            for party in parties:
                time_of = party.ask(name)
                if time_of is not None:
                    found.setdefault((name, party.library, party.count), []).append(time_of)
    return found


def cell(times):
    """Milliseconds: the median of the wall times, and of the CPU times."""
    if not times:
        return "–"
    wall, cpu = (1e3 * statistics.median(t[k] for t in times) for k in (0, 1))
    return f"{wall:.3g} ({cpu:.3g})"


def table(found, libraries):
    """The table as Markdown."""
    heads = [
        "program",
        *(f"{library}, {c} thread{'s' * (c > 1)}" for library in libraries for c in COUNTS),
        "2 threads / 1",
    ]
    lines = ["| " + " | ".join(heads) + " |", "|---|" + "---:|" * (len(heads) - 1)]
    for name in programs():
        cells = [cell(found.get((name, library, c), [])) for library in libraries for c in COUNTS]
        one, two = (statistics.median(t[0] for t in found[name, "tensormagic", c]) for c in COUNTS)
        lines.append(f"| {name} | " + " | ".join(cells) + f" | {two / one:.2f} |")
    return lines


def processor():
    """The processor's name."""
    names = [s.partition(":")[2].strip() for s in Path("/proc/cpuinfo").read_text().splitlines() if "model name" in s]
    return names[0] if names else platform.processor()


def main():
    """Measure, and print or write the page."""
    parser = argparse.ArgumentParser()
    parser.add_argument("file", nargs="?")
    parser.add_argument("--peers", default=sys.executable)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--serve", nargs=2)
    given = parser.parse_args()
    if given.serve:
        serve(given.serve[0], int(given.serve[1]))
        return
    parties = [
        Party(sys.executable if lib == "tensormagic" else given.peers, lib, c) for lib in LIBRARIES for c in COUNTS
    ]
    parties = [p for p in parties if p.version is not None]
    load = os.getloadavg()
    found = measured(parties, given.rounds)
    libraries = list(dict.fromkeys(p.library for p in parties))
    versions = ", ".join(f"{lib} {next(p.version for p in parties if p.library == lib)}".strip() for lib in libraries)
    today = dt.datetime.now(tz=dt.UTC).date()
    where = f"{processor()}, {len(os.sched_getaffinity(0))} processors, load before and after {load[0]:.1f} and {os.getloadavg()[0]:.1f}"
    page = [
        "# Threads",
        "",
        f"{today}, `python benchmarks/threads.py`: {where}; CPython {platform.python_version()}, NumPy {np.__version__}, {versions}.",
        "",
        EXPLAINED.format(rounds=given.rounds, runs=RUNS),
        "",
        *table(found, libraries),
        "",
    ]
    text = "\n".join(page)
    print(text)
    if given.file:
        Path(given.file).write_text(text, encoding="utf-8")
    for party in parties:
        party.process.stdin.close()


if __name__ == "__main__":
    main()
