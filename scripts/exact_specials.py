"""Exact rules at special values, bit for bit: a million pairs of an expression and an input, seeded.

    python scripts/exact_specials.py            # prints Markdown; a few minutes

`benchmarks/results/exact_specials.md` holds a run, with its date and versions.
"""

from __future__ import annotations

import platform
import sys
import warnings
from datetime import date
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from tensormagic.ir.graph import Graph  # noqa: E402
from tensormagic.ir.node import Node  # noqa: E402
from tensormagic.ir.type import array, symbol  # noqa: E402
from tensormagic.ops.leaf import constant, parameter  # noqa: E402
from tensormagic.ops.scalars import scalar  # noqa: E402
from tensormagic.transform.rewriting import rewrite  # noqa: E402
from tests.transform.oracle import values_of  # noqa: E402
from tests.transform.specials import other_bits, specials  # noqa: E402

PAIRS = 1_000_000
ONE = ("negative", "absolute", "square", "sqrt", "positive", "exp", "reciprocal", "conjugate")
TWO = ("add", "subtract", "multiply", "divide", "maximum", "minimum")
NUMBERS = (0.0, -0.0, 1.0, -1.0, 2.0, 0.5, 8.0, -3.0)


def expression(r: np.random.Generator, leaves: list[Node], depth: int) -> Node:
    """A random expression over leaves and small numbers, dense in what exact rules look for."""
    if not depth or r.random() < 0.1:
        return leaves[int(r.integers(len(leaves)))]
    first = expression(r, leaves, depth - 1)
    draw = r.random()
    if draw < 0.35:
        return getattr(scalar, ONE[int(r.integers(len(ONE)))])(first)
    if draw < 0.6:
        number = constant(first.type.dtype.type(NUMBERS[int(r.integers(len(NUMBERS)))]))
        operands = (first, number) if r.random() < 0.7 else (number, first)
    else:
        operands = (first, expression(r, leaves, depth - 1))
    if draw > 0.95:
        return scalar.where(scalar.less(*operands), *operands[::-1])
    return getattr(scalar, TWO[int(r.integers(len(TWO)))])(*operands)


def compared(seed: int) -> tuple[int, int, int, str] | None:
    """For the expression of a seed: pairs, firings, pairs that differ, and the first of these in words; None where ops do not fit."""
    r = np.random.default_rng(seed)
    dtype = (np.float64, np.float32, np.float16, np.int64, np.int8, np.uint8)[seed % 6]
    leaves = [parameter(k, array(dtype, symbol("n0"))) for k in range(2)]
    try:
        graph = Graph(tuple(leaves), (expression(r, leaves, int(r.integers(2, 6))),))
        result = rewrite(graph, "exact")
        pool = specials(dtype)
        values = [v.ravel() for v in np.meshgrid(pool, pool)]
        before, after = (values_of(g, values) for g in (graph, result.graph))
    except (TypeError, OverflowError, ValueError):
        return None
    other = other_bits(before, after)
    told = ""
    if other.any():
        k = int(np.argmax(other))
        names = [f.rule.name for f in result.notable]
        told = f"seed {seed}: {[v[k] for v in values]}: {before[k]!r} became {after[k]!r} by {names}"
    return len(before), len(result.notable), int(other.sum()), told


def main() -> int:
    """Compare, print, and give the number of pairs that differ."""
    warnings.simplefilter("ignore")
    seed = count = expressions = fired = wrong = 0
    failures: list[str] = []
    while count < PAIRS:
        found = compared(seed)
        seed += 1
        if found is None:
            continue
        expressions += 1
        count, fired, wrong = count + found[0], fired + found[1], wrong + found[2]
        failures += [found[3]] if found[3] else []
    print(f"# Exact rules at special values, {date.today()}\n")  # noqa: DTZ011 (the date of the machine that measures)
    print(f"CPython {platform.python_version()}, NumPy {np.__version__}, {platform.machine()}.\n")
    print(
        f"{count:,} pairs of {expressions:,} expressions and special inputs, {fired:,} firings of exact rules: {wrong} differ in a bit"
    )
    print("(a nan is like any other: NumPy's loops do not keep what it carries).")
    print("".join(f"\n- {f}" for f in failures[:20]), end="")
    return wrong


if __name__ == "__main__":
    sys.exit(bool(main()))
