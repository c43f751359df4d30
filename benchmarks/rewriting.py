"""Rewriting: time per node on chains and gradients, and the accuracy of every rule on many nasty samples.

    python benchmarks/rewriting.py              # both, about five minutes
    python benchmarks/rewriting.py time
    python benchmarks/rewriting.py accuracy

Prints Markdown. `benchmarks/results/rewriting.md` holds a run, with its date and machine.
"""

from __future__ import annotations

import platform
import sys
import time
from datetime import date
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from tensormagic.ir.node import Node, topological  # noqa: E402
from tensormagic.ir.rewriting.rules import Rule  # noqa: E402
from tensormagic.ir.type import array, symbol  # noqa: E402
from tensormagic.ops.fold import reduce_sum  # noqa: E402
from tensormagic.ops.leaf import parameter  # noqa: E402
from tensormagic.ops.scalars.scalar import exp, log, tanh  # noqa: E402
from tensormagic.transform.grad import gradient  # noqa: E402
from tensormagic.transform.rewriting import LEVELS, rewrite_nodes, rules  # noqa: E402
from tests.transform import oracle  # noqa: E402

SAMPLES = 150


def chain(links: int) -> list[Node]:
    n = symbol("n0")
    x, w, b = (parameter(k, array(np.float64, n)) for k in range(3))
    h = x
    for _ in range(links):
        h = tanh(h * w + b)
    return [h]


def losses_and_gradients(links: int) -> list[Node]:
    n = symbol("n0")
    x, w = (parameter(k, array(np.float64, n)) for k in range(2))
    h = x
    for _ in range(links):
        h = log(1 + exp(h * w)) - h
    loss = reduce_sum(h, (0,))
    return [loss, *gradient(loss, [x, w])]


def seconds(results: list[Node], level: str) -> tuple[float, int]:
    best, fired = float("inf"), 0
    for _ in range(3):
        start = time.process_time()
        _, log_ = rewrite_nodes(results, level)
        best, fired = min(best, time.process_time() - start), len(log_.fired)
    return best, fired


def times() -> None:
    print("| graph | nodes | level | seconds | µs a node | rules fired |\n|---|---|---|---|---|---|")
    for name, build, sizes in (
        ("`tanh(x*w + b)` chained", chain, (33, 333, 3333, 33_333)),
        ("`log(1+exp(x*w)) - x` chained, summed, with gradients", losses_and_gradients, (100, 1000, 7700)),
    ):
        for size in sizes:
            results = build(size)
            count = len(topological(results))
            for level in LEVELS:
                spent, fired = seconds(results, level)
                print(f"| {name} | {count} | {level} | {spent:.3f} | {spent / count * 1e6:.0f} | {fired} |")


def worst(rule: Rule, dtype: type) -> tuple[int, float, float, int]:
    """Samples, the largest errors before and after in ulp among those where the naive form is finite, and losses."""
    count, before_worst, after_worst, lost = 0, 0.0, 0.0, 0
    for instance in oracle.instances(rule, dtype):
        parameters = instance.before.parameters
        columns = [oracle.samples(p.type.dtype, SAMPLES, len(parameters), 11)[k] for k, p in enumerate(parameters)]
        length = min(map(len, columns))
        values = [c[-length:] for c in columns]
        lost += len(oracle.losses(instance, values, dtype))
        before, after = oracle.run(instance, values)
        for k, point in enumerate(zip(*values, strict=True)):
            true = oracle.truth(instance.before, [oracle.mp.mpf(float(v)) for v in point])
            if true is not None:
                count += 1
                before_worst = max(before_worst, oracle.ulps(before[k], true, dtype))
                after_worst = max(after_worst, oracle.ulps(after[k], true, dtype))
    return count, before_worst, after_worst, lost


def accuracy() -> None:
    print("| rule | dtype | samples | worst error before (ulp) | after | samples at which it loses |")
    print("|---|---|---|---|---|---|")
    for rule in rules("stable"):
        if rule.pattern is None or rule.level != "stable":
            continue
        for dtype in (np.float64, np.float32):
            count, before, after, lost = worst(rule, dtype)
            print(f"| `{rule.name}` | {np.dtype(dtype)} | {count} | {before:.3g} | {after:.3g} | {lost} |")


def main() -> None:
    what = sys.argv[1] if len(sys.argv) > 1 else "both"
    print(f"# Rewriting, measured on {date.today()}\n")  # noqa: DTZ011 (the date of the machine that measures)
    print(f"CPython {platform.python_version()}, NumPy {np.__version__}, {platform.machine()}, one run at a time.\n")
    if what in {"both", "time"}:
        print("## Time\n\nProcessor time, the best of three.\n")
        times()
    if what in {"both", "accuracy"}:
        print("\n## Accuracy of the stable rules\n")
        print(
            "Against 700 digits, in units of the last place of the true value; `inf`: a finite value became inf or nan.\n"
        )
        accuracy()


if __name__ == "__main__":
    main()
