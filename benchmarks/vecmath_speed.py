"""Time of every vecmath function against NumPy's (SciPy's where NumPy has none), in one run on one core.

    python benchmarks/vecmath_speed.py [--size 4096]

The arrays fit the first-level cache, so arithmetic is compared and not memory. Both sides write into a given array.
"""

from __future__ import annotations

import argparse
import datetime as dt
import platform
import sys
import time
from collections.abc import Callable
from statistics import median
from typing import Any

import llvmlite  # noqa: TID251 - for its version
import numba as nb  # noqa: TID251 - what is measured here runs in compiled loops
import numpy as np
import scipy
from scipy import special

from tensormagic.backend import vecmath

PAIRS = ("arctan2", "hypot", "logaddexp", "power")  # of x and x reversed
RANGES = {"arcsin": (-0.99, 0.99), "arccos": (-0.99, 0.99), "arctanh": (-0.99, 0.99), "arccosh": (1.01, 5.0)}


def of_pairs(name: str) -> Callable[..., Any]:
    """NumPy's function of x and x reversed."""
    return lambda x, out: getattr(np, name)(x, x[::-1], out=out)


NUMPY: dict[str, Callable[..., Any]] = {
    **{name: getattr(np, name) for name in vecmath.FUNCTIONS if hasattr(np, name)},
    **{name: of_pairs(name) for name in PAIRS},
    "erf": special.erf,
    "erfc": special.erfc,
    "sigmoid": special.expit,
    "softplus": lambda x, out: np.logaddexp(x, x.dtype.type(0), out=out),
}


def compiled(name: str, dtype: type) -> tuple[Callable[[np.ndarray, np.ndarray], None], float]:
    """The function as a loop over arrays, and the seconds it took to compile."""
    function = vecmath.FUNCTIONS[name]
    vector = nb.types.Array(nb.from_dtype(np.dtype(dtype)), 1, "C")

    def loop(x: Any, out: Any) -> None:
        for i in range(x.shape[0]):
            out[i] = function(x[i])

    def loop_over_pairs(x: Any, out: Any) -> None:
        for i in range(x.shape[0]):
            out[i] = function(x[i], x[x.shape[0] - 1 - i])

    start = time.perf_counter()
    run = nb.njit((vector, vector), error_model="numpy")(loop_over_pairs if name in PAIRS else loop)
    return run, time.perf_counter() - start


def seconds(run: Callable[..., Any], x: np.ndarray, out: np.ndarray, repeats: int = 400) -> float:
    """The median time of a call."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        run(x, out)
        times.append(time.perf_counter() - start)
    return median(times)


def main() -> None:
    """Print one row a function and dtype."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", type=int, default=4096, help="elements of the arrays")
    size = parser.parse_args().size
    cpu = nb.core.registry.cpu_target.target_context.codegen().magic_tuple()[1]
    write = sys.stdout.write
    write(f"{dt.datetime.now(tz=dt.UTC).date()}, CPython {platform.python_version()}, {cpu}, ")
    write(", ".join(f"{module.__name__} {module.__version__}" for module in (nb, llvmlite, np, scipy)))
    write(f", {size} elements\n\n| function | dtype | vecmath, ns an element | NumPy | ratio | compile, ms |\n")
    write("|---|---|---:|---:|---:|---:|\n")
    compiled("exp", np.float64)  # the first compile of a process starts Numba
    for name in sorted(NUMPY):
        for dtype in (np.float64, np.float32):
            x = np.random.default_rng(0).uniform(*RANGES.get(name, (0.1, 5.0)), size).astype(dtype)
            out = np.empty_like(x)
            run, compile_time = compiled(name, dtype)
            own, other = seconds(run, x, out), seconds(NUMPY[name], x, out)
            row = (name, np.dtype(dtype).name, own / size * 1e9, other / size * 1e9, other / own, compile_time * 1e3)
            write("| {} | {} | {:.2f} | {:.2f} | {:.1f} | {:.0f} |\n".format(*row))


if __name__ == "__main__":
    main()
