"""The largest error of every vecmath function, in units in the last place: every float32, and many float64 samples.

    python benchmarks/vecmath_accuracy.py [--samples 20_000_000] [--stride 1] [NAME ...]

writes `benchmarks/results/vecmath.md`; with names, only their rows of it. float32 is held against NumPy's and SciPy's
float64 functions, float64 against NumPy's long double (64 bits of mantissa; x86 Linux) and, for erf and erfc, against
mpmath. Functions of two operands are tried on samples in both formats.
"""

from __future__ import annotations

import argparse
import datetime as dt
import platform
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import llvmlite  # noqa: TID251 - for its version
import mpmath
import numba as nb  # noqa: TID251 - what is measured here runs in compiled loops
import numpy as np
import scipy
from scipy import special

from tensormagic.backend.vecmath import functions

RESULT = Path(__file__).parent / "results" / "vecmath.md"
CHUNK = 1 << 20
MPMATH_SAMPLES = 200_000


def compiled(name: str, dtype: type) -> Callable[[np.ndarray, np.ndarray], None]:
    """The function as a loop over arrays."""
    function = functions.FUNCTIONS[name]
    vector = nb.types.Array(nb.from_dtype(np.dtype(dtype)), 1, "C")

    def loop(x: Any, out: Any) -> None:
        for i in range(x.shape[0]):
            out[i] = function(x[i])

    return nb.njit((vector, vector), error_model="numpy")(loop)


def sigmoid(x: np.ndarray) -> np.ndarray:
    """The logistic function, in the precision of x."""
    small = np.exp(-np.abs(x))
    return np.where(x < 0, small, x.dtype.type(1)) / (1 + small)


def softplus(x: np.ndarray) -> np.ndarray:
    """log(1 + e**x), in the precision of x."""
    return np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))


PAIRS: dict[str, Callable[[Any, Any], Any]] = {
    name: getattr(np, name) for name in ("arctan2", "hypot", "logaddexp", "power")
}
REFERENCES: dict[str, Callable[[Any], Any]] = {
    **{name: getattr(np, name) for name in functions.FUNCTIONS if hasattr(np, name) and name not in PAIRS},
    "sigmoid": sigmoid,
    "softplus": softplus,
    "erf": special.erf,
    "erfc": special.erfc,
}


@dataclass
class Worst:
    """The largest error so far, where it is, and how many special values were wrong."""

    name: str
    dtype: str
    reference: str
    error: float = 0.0
    at: float = 0.0
    count: int = 0
    wrong: int = 0

    def add(self, x: np.ndarray, errors: np.ndarray, wrong: int) -> None:
        """Take in the errors of a chunk."""
        worst = int(np.argmax(errors))
        if errors[worst] > self.error:
            self.error, self.at = float(errors[worst]), float(x[worst])
        self.count += len(x)
        self.wrong += wrong


def compare(x: np.ndarray, out: np.ndarray, exact: np.ndarray) -> tuple[np.ndarray, int]:
    """Errors in ulps of the rounded exact value, and the number of infinities and nans that differ."""
    rounded = exact.astype(out.dtype)
    finite = np.isfinite(rounded)
    same = np.where(np.isnan(rounded), np.isnan(out), rounded == out)
    difference = np.abs(out.astype(exact.dtype) - exact) / np.spacing(np.abs(rounded)).astype(exact.dtype)
    both = finite & np.isfinite(out)
    return np.where(both, difference, 0).astype(np.float64), int(np.count_nonzero(~same & ~both))


@nb.njit(nogil=True)
def scan32(x: Any, out: Any, exact: Any) -> tuple[float, int, int]:
    """The same for float32 against float64, in one pass: largest error, its index, and the number of wrong specials."""
    worst, at, wrong = 0.0, 0, 0
    largest = np.float64(np.finfo(np.float32).max)
    for i in range(x.shape[0]):
        a, b = np.float64(out[i]), exact[i]
        if np.isnan(b):
            wrong += not np.isnan(a)
        elif abs(np.float32(b)) > largest or abs(a) > largest:
            wrong += a != np.float64(np.float32(b))
        else:
            exponent = max((np.float64(np.float32(b)).view(np.int64) >> 52 & 2047) - 1023, -126)
            error = abs(a - b) * np.int64((1023 + 23 - exponent) << 52).view(np.float64)
            if error > worst:
                worst, at = error, i
    return worst, at, wrong


def every_float32(name: str, stride: int) -> Worst:
    """The function on every float32, or on one in `stride`."""
    run = compiled(name, np.float32)
    result = Worst(name, "float32", "float64")
    total, step = 1 << 32, CHUNK * stride
    for start in range(0, total, step):
        x = np.arange(start, min(start + step, total), stride, dtype=np.uint32).view(np.float32)
        out = np.empty_like(x)
        run(x, out)
        worst, at, wrong = scan32(x, out, REFERENCES[name](x.astype(np.float64)))
        result.add(x[at : at + 1], np.array([worst]), wrong)
        result.count += len(x) - 1
    return result


UNIT = (-1.0, 1.0)
RANGES = {
    "arcsin": UNIT,
    "arccos": UNIT,
    "arctanh": UNIT,
    "arccosh": (1.0, 30.0),
    "log": (0.0, 30.0),
    "log2": (0.0, 30.0),
    "log10": (0.0, 30.0),
    "log1p": (-1.0, 30.0),
}
EDGES = {"exp": 746.0, "expm1": 710.0, "exp2": 1075.0, "sigmoid": 746.0, "softplus": 746.0}
EDGES |= {"sin": 2e9, "cos": 2e9, "tan": 2e9, "erf": 7.0, "erfc": 27.0, "sinh": 711.0, "cosh": 711.0}
EDGES |= {"arcsin": 1.0, "arccos": 1.0, "arctanh": 1.0}


def samples64(name: str, count: int, generator: np.random.Generator) -> Iterator[np.ndarray]:
    """Chunks of float64: a quarter each over the usual range, near 0 or 1, over the domain, over all exponents."""
    lower, upper = RANGES.get(name, (-10.0, 10.0))
    edge, positive = EDGES.get(name, 40.0), lower == 0.0
    for start in range(0, count, CHUNK):
        n = min(CHUNK, count - start) // 4
        everywhere = generator.integers(0, 0x7FEFFFFFFFFFFFFF, n, dtype=np.int64).view(np.float64)
        everywhere *= generator.choice([1.0, 1.0 if positive else -1.0], n)
        near = generator.uniform(0.5, 2.0, n) if positive else generator.uniform(-1.0, 1.0, n)
        domain = generator.uniform(0.0 if positive else -edge, edge, n)
        yield np.concatenate([generator.uniform(lower, upper, n), near, domain, everywhere])


def many_pairs(name: str, dtype: type, count: int, generator: np.random.Generator) -> Worst:
    """A function of two operands on that many samples; logaddexp in ulps of the largest of result and operands."""
    function = functions.FUNCTIONS[name]
    wider = np.longdouble if dtype is np.float64 else np.float64

    def loop(x: Any, y: Any, out: Any) -> None:
        for i in range(x.shape[0]):
            out[i] = function(x[i], y[i])

    run = nb.njit(loop)
    result = Worst(name, np.dtype(dtype).name, "long double" if dtype is np.float64 else "float64")
    for start in range(0, count, CHUNK):
        n = min(CHUNK, count - start) // 4
        powers, near_one = 10.0 ** generator.uniform(-30, 30, n), generator.uniform(0.9, 1.1, 2 * n)
        x = np.concatenate([generator.uniform(0, 10, n), powers, near_one]).astype(dtype)
        spreads = [generator.uniform(-edge, edge, n) for edge in (5, 11, 7000, 40)]
        y = np.concatenate(spreads).astype(dtype)
        if name in ("arctan2", "hypot"):  # of numbers of any sign, near each other and far apart
            x[::2] *= -1
            y[n : 2 * n] = x[n : 2 * n] * generator.uniform(-3, 3, n)
            y[3 * n :] *= (10.0 ** generator.uniform(-30, 30, n)).astype(dtype)
        out = np.empty_like(x)
        run(x, y, out)
        exact = PAIRS[name](x.astype(wider), y.astype(wider))
        errors, wrong = compare(x, out, exact)
        if name == "logaddexp":
            rounded = np.abs(exact.astype(dtype))
            errors *= np.spacing(rounded) / np.spacing(np.maximum(np.maximum(np.abs(x), np.abs(y)), rounded))
        result.add(x, errors, wrong)
    return result


def many_float64(name: str, count: int, generator: np.random.Generator) -> Worst:
    """The function on that many float64 samples."""
    run = compiled(name, np.float64)
    precise = name in ("erf", "erfc")
    result = Worst(name, "float64", "mpmath" if precise else "long double")
    for x in samples64(name, min(count, MPMATH_SAMPLES) if precise else count, generator):
        out = np.empty_like(x)
        run(x, out)
        exact = high_precision(name, x) if precise else REFERENCES[name](x.astype(np.longdouble))
        result.add(x, *compare(x, out, exact))
    return result


def high_precision(name: str, x: np.ndarray) -> np.ndarray:
    """The function by mpmath in 40 digits, rounded to long double in two parts."""
    mpmath.mp.dps = 40
    function = getattr(mpmath, name)
    values = [function(mpmath.mpf(v)) if abs(v) < 30 else mpmath.mpf(limit(name, v)) for v in x.tolist()]
    high = [float(v) for v in values]
    # Scaled, the low parts of numbers near 1e-308 are not lost.
    low = [float((v - mpmath.mpf(h)) * 2**600) for v, h in zip(values, high, strict=True)]
    return np.array(high, np.longdouble) + np.array(low, np.longdouble) * np.longdouble(2.0) ** -600


def limit(name: str, x: float) -> float:
    """What erf and erfc round to far out."""
    return float(np.sign(x)) if name == "erf" else 1.0 - float(np.sign(x))


def write(rows: list[Worst]) -> None:
    """The table, with date and versions; rows of other functions that the file holds stay."""
    modules = (nb, llvmlite, np, scipy, mpmath)
    versions = ", ".join(f"{module.__name__} {module.__version__}" for module in modules)
    cpu = nb.core.registry.cpu_target.target_context.codegen().magic_tuple()[1]
    old = RESULT.read_text().splitlines() if RESULT.exists() else []
    table = {tuple(line.split(" | ")[:2]): line for line in old if re.match(r"\| \w+ \| float", line)}
    for r in rows:
        line = f"| {r.name} | {r.dtype} | {r.error:.3f} | {r.at!r} | {r.count:,} | {r.wrong} | {r.reference} |"
        table[tuple(line.split(" | ")[:2])] = line
    lines = [
        "# Accuracy of vecmath",
        "",
        f"{dt.datetime.now(tz=dt.UTC).date()}, CPython {platform.python_version()}, {cpu}, {versions}.",
        "By `python benchmarks/vecmath_accuracy.py`.",
        "",
        "Largest error in units in the last place of the exact value, 0.5 being a perfect rounding; for logaddexp,",
        "whose terms may cancel, in those of the largest of result and operands. *wrong* counts infinities and nans",
        "that differ from the reference. 4,294,967,296 inputs of one float32 are all that there are; fewer of them are",
        "every so many of these.",
        "",
        "| function | dtype | largest error | at | inputs | wrong | reference |",
        "|---|---|---:|---:|---:|---:|---|",
        *(table[key] for key in sorted(table)),
        "",
    ]
    RESULT.parent.mkdir(exist_ok=True)
    RESULT.write_text("\n".join(lines))


def measured(name: str, samples: int, stride: int) -> Iterator[Worst]:
    """The rows of a function."""
    generator = np.random.default_rng(20261121)
    if name in PAIRS:
        yield many_pairs(name, np.float32, samples, generator)
        yield many_pairs(name, np.float64, samples, generator)
    else:
        yield every_float32(name, stride)
        yield many_float64(name, samples, generator)


def main() -> None:
    """Measure the functions named on the command line, or all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", default=sorted(functions.FUNCTIONS))
    parser.add_argument("--samples", type=int, default=20_000_000, help="float64 samples a function")
    parser.add_argument("--stride", type=int, default=1, help="take one float32 in so many")
    options = parser.parse_args()
    rows: list[Worst] = []
    with np.errstate(all="ignore"):
        for name in options.names:
            for row in measured(name, options.samples, options.stride):
                rows.append(row)
                sys.stdout.write(f"{row.name:9} {row.dtype} {row.error:.3f} at {row.at!r} of {row.count:,}, ")
                sys.stdout.write(f"wrong {row.wrong}\n")
                sys.stdout.flush()
    write(rows)


if __name__ == "__main__":
    main()
