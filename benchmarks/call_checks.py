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
import timeit
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

import tensormagic as tm
from tensormagic.functions.calls.quick_key import known_by
from tensormagic.transform.rewriting import choices

CALLS, TIMES = 500, 60
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
    calls = CALLS if time.perf_counter() - start < 0.001 else 2
    best = float("inf")
    for _ in range(TIMES):
        start = time.perf_counter()
        for _ in range(calls):
            function(*args)
        best = min(best, time.perf_counter() - start)
    return best / calls * 1e6


def finding(function: tm.Function, *args: np.ndarray) -> str:
    """The best of many times of finding the program of a call, and of the check in it; nothing where there is no short way."""
    known = next(iter(function.quick.values()), None)
    if known is None:
        return "| |"

    def found() -> Any:
        return function.quick[known_by(choices(function.math), args, {})[0]].holds()

    times = [min(timeit.repeat(part, number=CALLS, repeat=3 * TIMES)) / CALLS * 1e6 for part in (found, known.holds)]
    return f"{times[0]:.2f} | {times[1]:.2f} |"


def main() -> None:
    """Measure and print."""
    tm.config.tier = "numba"
    x, y = np.ones(3), np.full(3, 2.0)
    rows: list[str] = []
    for name, function in FUNCTIONS.items():
        captured = tm.tensor(function)
        rows.append(f"| {name} | {microseconds(captured, x, y):.2f} | {finding(captured, x, y)}")
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
            "| the function reads | µs a call | of that, to find its program | of that, the check |",
            "|---|---:|---:|---:|",
            *rows,
            "",
        ]
    )
    print(page)
    if len(sys.argv) > 1:
        Path(sys.argv[1]).write_text(page)


if __name__ == "__main__":
    main()
