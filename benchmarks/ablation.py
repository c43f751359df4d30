"""What each theme of rewriting, and fusion, is good for: twelve programs with each switched off.

    OPENBLAS_NUM_THREADS=1 python benchmarks/ablation.py

Kernels, bytes that these move, milliseconds (the least processor time of several runs by turns, compiled), and
wrong bits of 64 against the same program in extended precision. Prints Markdown; `benchmarks/results/ablation.md` holds a run.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from datetime import date
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

import tensormagic as tm  # noqa: E402
from benchmarks.theme_examples import EXAMPLES, Array, Example  # noqa: E402
from tensormagic.config import THEMES, leveled  # noqa: E402
from tensormagic.functions.accuracy import Measure  # noqa: E402
from tensormagic.transform.rewriting import rewrite  # noqa: E402

WITHOUT = (*(t for t in THEMES if t != "assumed"), "rules,loops,fusion")
ROUNDS = 30

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


Row = tuple[int, int, float, float]


def rows(name: str) -> list[Row]:
    """Kernels, moved bytes, milliseconds and wrong bits of a program: with all themes, and without each."""
    function, values = PROGRAMS[name]
    made = [tm.compile(function, *values, without=without) for without in ("", *WITHOUT)]
    true = truth(name, function, values)
    wrong = [bits(f(*values), true) for f in made]
    spent = milliseconds([partial(f, *values) for f in made])
    return [
        (len(f.kernels), int(f.cost(*values).moved), time, lost)
        for f, time, lost in zip(made, spent, wrong, strict=True)
    ]


def milliseconds(calls: Sequence[Callable[[], Any]], rounds: int = ROUNDS) -> list[float]:
    """The least processor time of each call, by turns: so a busy machine is as busy for all."""
    best = [float("inf")] * len(calls)
    for _ in range(rounds):
        for k, call in enumerate(calls):
            begin = time.process_time()
            call()
            best[k] = min(best[k], 1e3 * (time.process_time() - begin))
    return best


def examples() -> None:
    """Print the table of the themes' own examples."""
    print("\n## Each theme on its own example\n")
    print("The examples of the pages of the themes (`benchmarks/theme_examples.py`), with the theme and without it:")
    print("kernels, megabytes that they move, millions of operations, milliseconds of processor time; and the worst")
    print("error in units of the last place over the span that the page draws.\n")
    print("| theme | kernels | MB | operations | ms | worst error |")
    print("|---|---|---|---|---|---|")
    for name, example in EXAMPLES.items():
        values = tuple(example.given.values())
        made = [tm.compile(example.function, *values, math=example.level, without=w) for w in ("", name)]
        work = [f.cost(*values) for f in made]
        spent = milliseconds([partial(f, *values) for f in made])
        columns = (
            [str(len(f.kernels)) for f in made],
            [f"{int(w.moved) / 1e6:.2f}" for w in work],
            [f"{int(w.operations) / 1e6:.2f}" for w in work],
            [f"{t:.3f}" for t in spent],
            [f"{max(found):.2g}" for found in zip(*curves(example, name), strict=True)] if example.along else ["–"] * 2,
        )
        print(f"| {name} | {' | '.join(' / '.join(c) for c in columns)} |", flush=True)


def curves(example: Example, theme: str, count: int = 60) -> list[tuple[float, float]]:
    """The errors with a theme and without it, in units of the last place, at points of the example's span."""
    assert example.along is not None
    given = example.along(float(example.span[1]))
    graph = tm.trace(example.function, *given)
    forms = [rewrite(graph, leveled(example.level, w)).graph for w in ("", theme)]
    found: list[tuple[float, float]] = []
    for t in points(example, count):
        at = Measure(graph, example.along(t), 60)
        after, before = (at.errors(graph.results[0], f.results[0], whole=True).after for f in forms)
        found.append((after, before))
    return found


def points(example: Example, count: int) -> Array:
    """Points of the example's span, in logarithmic steps."""
    return 10.0 ** np.linspace(*np.log10(example.span), count)


def main() -> None:
    """Print the tables."""
    print(f"# What themes of rewriting and fusion are good for, measured on {date.today():%Y-%m-%d}\n")  # noqa: DTZ011 (the date of the machine that measures)
    tm.config.threads = 1
    print("Each cell: kernels / MB that they move / milliseconds of processor time / wrong bits of 64.")
    print("Where nothing changes, a dash; times within a fifth count as the same.\n")
    names = list(WITHOUT[:-1])
    print(f"| program | all | {' | '.join(f'no {n}' for n in names)} | no rules, no fusion |")
    print("|---" * (len(names) + 3) + "|")
    for program in PROGRAMS:
        whole, *others = rows(program)
        cells = [shown(whole), *("–" if alike(found, whole) else shown(found) for found in others)]
        print(f"| {program} | {' | '.join(cells)} |", flush=True)
    examples()


def alike(found: Row, whole: Row) -> bool:
    """Whether leaving a theme out changed nothing."""
    return found[:2] == whole[:2] and abs(found[3] - whole[3]) < 0.5 and 0.8 < found[2] / whole[2] < 1.25


def shown(found: Row) -> str:
    """A cell of the table."""
    kernels, moved, milliseconds, wrong = found
    return f"{kernels} / {moved / 1e6:.1f} / {milliseconds:.2f} / {wrong:.1f}"


if __name__ == "__main__":
    main()
