"""How long the first result of a new cell takes beside plain NumPy's, and what a call of a compiled function costs.

``python benchmarks/latency.py [FILE.md]``
"""

from __future__ import annotations

import datetime as dt
import importlib.metadata
import os
import platform
import statistics
import sys
import time
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from IPython.core.interactiveshell import InteractiveShell  # noqa: TID251 (cells are what is measured)
from IPython.utils.capture import capture_output  # noqa: TID251

import tensormagic as tm

CELLS = {
    "logistic loss, 569 x 30": "np.mean(np.log(1 + np.exp(-y * (X @ w + {k}))))",
    "softmax, 1000 x 1000": "np.exp(S - S.max(1, keepdims=True) + {k}) / np.exp(S - S.max(1, keepdims=True)).sum(1, keepdims=True)",
    "cross entropy, 10^6": "np.mean(np.log(1 + np.exp(-abs(u))) + np.maximum(u, 0) - u * t + {k})",
    "least squares, 500 x 40": "np.linalg.norm(np.linalg.solve(A.T @ A + {k} * np.eye(40), A.T @ a) - np.ones(40))",
}
GRADIENT = "%%tensor --grad w\nnp.mean(np.log(1 + np.exp(-y * (X @ w + {k}))))"
RUNS = 7


def notebook() -> InteractiveShell:
    """A shell with data and the extension."""
    shell = InteractiveShell.instance()
    rng = np.random.default_rng(0)
    shell.push(
        {
            "np": np,
            "X": rng.normal(size=(569, 30)),
            "w": rng.normal(size=30),
            "y": np.sign(rng.normal(size=569)),
            "S": rng.normal(size=(1000, 1000)),
            "u": rng.normal(size=10**6),
            "t": rng.normal(size=10**6),
            "A": rng.normal(size=(500, 40)),
            "a": rng.normal(size=500),
        }
    )
    shell.run_line_magic("load_ext", "tensormagic")
    return shell


def seconds(shell: InteractiveShell, text: str) -> float:
    """The time that a cell takes, with its display."""
    with capture_output():
        start = time.perf_counter()
        shell.run_cell(text, store_history=True).raise_error()
        return time.perf_counter() - start


def first_results(shell: InteractiveShell) -> list[str]:
    """Rows: each run is a cell that was never seen, since its constant is new."""
    seconds(shell, "%%tensor\nw * 2.0")  # the display's own imports, as the notebook's first cell pays them
    rows = []
    cells = {name: (text, f"%%tensor\n{text}") for name, text in CELLS.items()}
    cells["logistic loss with gradient (beside the loss alone)"] = (CELLS["logistic loss, 569 x 30"], GRADIENT)
    for name, (plain, captured) in cells.items():
        ours, theirs = [], []
        for k in range(RUNS):
            theirs.append(seconds(shell, plain.format(k=k + 1.5)))
            ours.append(seconds(shell, captured.format(k=k + 1.5)))
        a, b = statistics.median(theirs) * 1e3, statistics.median(ours) * 1e3
        rows.append(f"| {name} | {a:.1f} | {b:.1f} | {b - a:.1f} | {max(ours) * 1e3 - a:.1f} |")
    return rows


def call_cost() -> float:
    """Microseconds of a call with three arrays of three elements, the best of five times ten thousand."""
    tm.config.tier = "numba"
    function = tm.tensor(lambda x, y, z: np.exp(x) * y + z)
    x, y, z = np.ones(3), np.full(3, 2.0), np.zeros(3)
    function(x, y, z)
    best = min(_timed(function, x, y, z) for _ in range(5))
    tm.config.tier = "auto"
    return best


def _timed(function: tm.Function, *args: np.ndarray) -> float:
    start = time.perf_counter()
    for _ in range(10_000):
        function(*args)
    return (time.perf_counter() - start) * 100


def main() -> None:
    """Measure and print."""
    versions = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in ("numpy", "numba", "ipython"))
    machine = f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}"
    page = "\n".join(
        [
            "# First results, and calls",
            "",
            f"Made by `python benchmarks/latency.py`, {dt.datetime.now(dt.UTC).date()}; {machine}, {versions}.",
            "",
            f"Wall milliseconds of a cell with its display, median of {RUNS}; each run is a cell that was never seen before.",
            "",
            "| cell | NumPy | `%%tensor` | more | more, at worst |",
            "|---|---:|---:|---:|---:|",
            *first_results(notebook()),
            "",
            f"A call of a compiled function with three small arrays: {call_cost():.1f} µs.",
            "",
        ]
    )
    print(page)
    if len(sys.argv) > 1:
        Path(sys.argv[1]).write_text(page)


if __name__ == "__main__":
    main()
