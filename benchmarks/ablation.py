"""What each theme of rewriting, and fusion, is good for: twelve programs with each switched off.

    OPENBLAS_NUM_THREADS=1 python benchmarks/ablation.py

Kernels, bytes that these move, milliseconds (best of several runs, compiled), and wrong bits of
64 against the same program in extended precision. Prints Markdown; `benchmarks/results/ablation.md` holds a run.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

import tensormagic as tm  # noqa: E402
from tensormagic.config import THEMES  # noqa: E402

draw = np.random.default_rng(0)
N = 200_000
A, B = draw.random((256, 256)), draw.random((256, 256))
SMALL = 10.0 ** draw.uniform(-12, 0, N)
V = draw.normal(size=N)
ROWS = draw.normal(size=(500, 400)) * 10


def looped(x: Any) -> Any:
    """A loop whose iterations need no other one."""
    s = 0.0
    for k in range(20):
        s = s + np.sin(x * k)
    return s


PROGRAMS: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "chain of functions": (lambda x: np.exp(-x * x) * np.tanh(x) + 0.5 * x, (V,)),
    "logistic loss": (lambda x, y: np.mean(np.log(1 + np.exp(-y * x))), (V * 20, np.sign(V))),
    "softmax": (lambda x: np.exp(x) / np.sum(np.exp(x), axis=1, keepdims=True), (ROWS,)),
    "differences of roots": (lambda x: np.sqrt(1 + x) - 1, (SMALL,)),
    "quotient of powers": (lambda x: ((1 + x) ** 2.5 - 1) / x, (SMALL,)),
    "x less sin(x)": (lambda x: x - np.sin(x), (SMALL,)),
    "variance": (lambda x: np.mean(x**2) - np.mean(x) ** 2, (1e5 + V,)),
    "norms": (lambda x, y: np.sqrt(x**2 + y**2) / 4 + np.abs(-x), (V, SMALL)),
    "part of a product": (lambda a, b: (a @ b)[:4], (A, B)),
    "trace of a product": (lambda a, b: np.trace(a @ b), (A, B)),
    "gradient of a loss": (lambda w: tm.grad(lambda w: np.sum(np.log(np.cosh(w)) + w * w))(w), (V,)),
    "loop": (looped, (V[:20_000],)),
}


def bits(found: Any, true: Any) -> float:
    """The mean of the wrong bits: the logarithm of the units of the last place."""
    found, true = np.asarray(found, np.longdouble), np.asarray(true, np.longdouble)
    place = np.spacing(np.abs(true.astype(float)))
    return float(np.mean(np.log2(1 + np.abs(found - true) / place)))


def truth(name: str, function: Callable[..., Any], values: tuple[Any, ...]) -> Any:
    """The program in extended precision, where it is accurate there: by another formula where it is not."""
    wide = [np.asarray(v, np.longdouble) for v in values]
    other: dict[str, Callable[..., Any]] = {
        "logistic loss": lambda x, y: np.mean(np.logaddexp(0, -y * x)),
        "differences of roots": lambda x: x / (np.sqrt(1 + x) + 1),
        "quotient of powers": lambda x: np.expm1(2.5 * np.log1p(x)) / x,
        "x less sin(x)": lambda x: np.where(
            x < 0.1, x**3 / 6 - x**5 / 120 + x**7 / 5040 - x**9 / 362880, x - np.sin(x)
        ),
        "variance": lambda x: np.mean((x - np.mean(x)) ** 2),
        "gradient of a loss": lambda w: np.tanh(w) + 2 * w,
    }
    return other.get(name, function)(*wide)


def row(name: str, without: str) -> tuple[int, int, float, float]:
    """Kernels, moved bytes, milliseconds and wrong bits."""
    function, values = PROGRAMS[name]
    made = tm.compile(function, *values, without=without)
    found = made(*values)
    times = []
    for _ in range(40):
        begin = time.perf_counter()
        made(*values)
        times.append(time.perf_counter() - begin)
    return (
        len(made.kernels),
        int(made.cost(*values).moved),
        1e3 * min(times),
        bits(found, truth(name, function, values)),
    )


def main() -> None:
    """Print the tables."""
    print(f"# What themes of rewriting and fusion are good for, measured on {date.today():%Y-%m-%d}\n")  # noqa: DTZ011 (the date of the machine that measures)
    print("Each cell: kernels / MB that they move / milliseconds / wrong bits of 64. Where nothing changes, a dash;")
    print("times within a fifth count as the same.\n")
    names = [t for t in THEMES if t != "assumed"]
    print(f"| program | all | {' | '.join(f'no {n}' for n in names)} | no rules, no fusion |")
    print("|---" * (len(names) + 3) + "|")
    for program in PROGRAMS:
        whole = row(program, "")
        cells = [shown(whole)]
        for without in (*names, "rules,loops,fusion"):
            found = row(program, without)
            same = found[:2] == whole[:2] and abs(found[3] - whole[3]) < 0.5 and 0.8 < found[2] / whole[2] < 1.25
            cells.append("–" if same else shown(found))
        print(f"| {program} | {' | '.join(cells)} |")


def shown(found: tuple[int, int, float, float]) -> str:
    """A cell of the table."""
    kernels, moved, milliseconds, wrong = found
    return f"{kernels} / {moved / 1e6:.1f} / {milliseconds:.2f} / {wrong:.1f}"


if __name__ == "__main__":
    main()
