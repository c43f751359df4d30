"""Time of every vecmath function against NumPy's (SciPy's where NumPy has none), in one run on one core.

    python benchmarks/vecmath_speed.py [--size 4096]

The arrays fit the caches, so arithmetic is compared and not memory. Both sides write into a given array. The loops are
compiled as kernels are.
"""

from __future__ import annotations

import argparse
import datetime as dt
import platform
import struct
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from statistics import median
from typing import Any

import llvmlite  # noqa: TID251 - for its version
import numba as nb  # noqa: TID251 - for its version
import numpy as np
import scipy
from llvmlite.binding import get_host_cpu_name  # noqa: TID251 - what was measured on
from scipy import special

from tensormagic.backend.cpu.code import compile_source
from tensormagic.backend.cpu.loader import load
from tensormagic.backend.vecmath import functions

ROOM = np.zeros(8, np.int64)  # for what a kernel leaves and nobody reads
PAIRS = ("arctan2", "hypot", "logaddexp", "power")  # of x and x reversed
RANGES = {"arcsin": (-0.99, 0.99), "arccos": (-0.99, 0.99), "arctanh": (-0.99, 0.99), "arccosh": (1.01, 5.0)}


def of_pairs(name: str) -> Callable[..., Any]:
    """NumPy's function of x and x reversed."""
    return lambda x, out: getattr(np, name)(x, x[::-1], out=out)


NUMPY: dict[str, Callable[..., Any]] = {
    **{name: getattr(np, name) for name in functions.FUNCTIONS if hasattr(np, name)},
    **{name: of_pairs(name) for name in PAIRS},
    "erf": special.erf,
    "erfc": special.erfc,
    "sigmoid": special.expit,
    "softplus": lambda x, out: np.logaddexp(x, x.dtype.type(0), out=out),
}


def kernel_source(name: str, dtype: str, size: int) -> str:
    """A kernel that applies the function to all elements."""
    reversed_too = f", a[{size - 1} - i]" if name in PAIRS else ""
    return f"""
def kernel(table):
    a = array(table, 1, "{dtype}", 0)
    b = array(table, 2, "{dtype}", 1)
    for i in range({size}):
        b[i] = {name}(a[i]{reversed_too})
"""


def compiled(name: str, x: np.ndarray, out: np.ndarray) -> tuple[Callable[[], None], float]:
    """A call of the function as a loop over arrays, and the seconds it took to compile."""
    code = compile_source(kernel_source(name, x.dtype.name, x.size))
    kernel = load(code)
    table = struct.pack("3q", ROOM.ctypes.data, id(x), id(out))
    return partial(kernel, ROOM.ctypes.data, ROOM.ctypes.data, table), code.seconds


def seconds(runs: Sequence[Callable[[], None]], rounds: int = 15, repeats: int = 40) -> list[float]:
    """The median time of a call of each, measured in turns."""
    times: list[list[float]] = [[] for _ in runs]
    for _ in range(rounds):
        for own, run in zip(times, runs, strict=True):
            start = time.process_time_ns()
            for _ in range(repeats):
                run()
            own.append((time.process_time_ns() - start) / repeats / 1e9)
    return [median(own) for own in times]


def main() -> None:
    """Print one row a function and dtype."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", type=int, default=4096, help="elements of the arrays")
    size = parser.parse_args().size
    cpu = get_host_cpu_name()
    write = sys.stdout.write
    write(f"{dt.datetime.now(tz=dt.UTC).date()}, CPython {platform.python_version()}, {cpu}, ")
    write(", ".join(f"{module.__name__} {module.__version__}" for module in (nb, llvmlite, np, scipy)))
    write(f", {size} elements\n\n| function | dtype | vecmath, ns an element | NumPy | ratio | compile, ms |\n")
    write("|---|---|---:|---:|---:|---:|\n")
    compile_source(kernel_source("exp", "float64", 8))  # the first one of a process starts Numba
    for name in sorted(NUMPY):
        for dtype in (np.float64, np.float32):
            x = np.random.default_rng(0).uniform(*RANGES.get(name, (0.1, 5.0)), size).astype(dtype)
            out = np.empty_like(x)
            run, compile_time = compiled(name, x, out)
            own, other = seconds([run, partial(NUMPY[name], x, out=np.empty_like(x))])
            row = (name, np.dtype(dtype).name, own / size * 1e9, other / size * 1e9, other / own, compile_time * 1e3)
            write("| {} | {} | {:.2f} | {:.2f} | {:.1f} | {:.0f} |\n".format(*row))


if __name__ == "__main__":
    main()
