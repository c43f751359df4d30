"""What a call of a captured function pays for the check that what it has read is as it was.

``python benchmarks/call_checks.py [FILE.md]``
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
from types import SimpleNamespace
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

import tensormagic as tm

CALLS, TIMES = 5_000, 9
ORDER, DEGREE, SHIFTED, MODE, SCALE = 2, 3, True, "wide", 4
RATE = 0.5
WHAT = SimpleNamespace(rate=0.5, order=2, layers=[1, 2, 3])


def made(power: int) -> Callable[..., Any]:
    """A function that reads five globals, NumPy and a closure."""

    def five(x: Any, y: Any) -> Any:
        z = x**ORDER + y**power
        if SHIFTED and MODE == "wide":
            z = z * SCALE
        return np.exp(-z) * DEGREE

    return five


def helper(x: Any) -> Any:
    """A function beside the others."""
    return np.sin(x) * DEGREE


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "nothing but NumPy": lambda x, y: np.exp(x) * y,
    "five globals and a closure": made(3),
    "a function beside it": lambda x, y: helper(x) + helper(y),
    "a float (an input)": lambda x, y: np.exp(x) * y * RATE,
    "attributes of an object, and a list in it": lambda x, y: x * WHAT.rate + y * WHAT.order * WHAT.layers[1],
}


def microseconds(function: tm.Function, *args: np.ndarray) -> float:
    """The best of several times many calls; of fewer, where every call traces the function again."""
    start = time.perf_counter()
    for _ in range(3):
        start = time.perf_counter()
        function(*args)
    calls = CALLS if time.perf_counter() - start < 0.001 else 20
    best = float("inf")
    for _ in range(TIMES):
        start = time.perf_counter()
        for _ in range(calls):
            function(*args)
        best = min(best, time.perf_counter() - start)
    return best / calls * 1e6


def main() -> None:
    """Measure and print."""
    tm.config.tier = "numba"
    x, y = np.ones(3), np.full(3, 2.0)
    rows = [f"| {name} | {microseconds(tm.tensor(function), x, y):.2f} |" for name, function in FUNCTIONS.items()]
    versions = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in ("numpy", "numba"))
    machine = f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}"
    page = "\n".join(
        [
            "# The check at a call",
            "",
            f"Made by `python benchmarks/call_checks.py`, {dt.datetime.now(dt.UTC).date()}; {machine}, {versions}.",
            "",
            f"Microseconds of a call with two arrays of three elements, the best of {TIMES} times {CALLS:,}.",
            "",
            "| the function reads | µs a call |",
            "|---|---:|",
            *rows,
            "",
        ]
    )
    print(page)
    if len(sys.argv) > 1:
        Path(sys.argv[1]).write_text(page)


if __name__ == "__main__":
    main()
