"""Expressions of textbooks, before and after rewriting: errors in bits, against many digits.

    python benchmarks/accuracy.py

The expressions are those of Herbie's and FPBench's suites, as mathematics: Hamming, *Numerical Methods for Scientists and Engineers*
(1987), chapter 3, and the shorter ones of their other suites (Kahan, Sarnoff, hyperbolic functions, libraries). Inputs are drawn in
the ranges that the suites ask for. Prints Markdown; `benchmarks/results/accuracy.md` holds a run.
"""

from __future__ import annotations

import sys
from datetime import date
from pathlib import Path

import mpmath
import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

import tensormagic as tm  # noqa: E402
from tensormagic.backend.reference import evaluate_graph  # noqa: E402
from tensormagic.transform.rewriting import rewrite  # noqa: E402

mp = mpmath.mp.clone()
mp.dps = 1000
COUNT = 100


def wide(r: np.random.Generator, low: float, high: float, count: int) -> np.ndarray:
    """Numbers of both signs, of all sizes from ``low`` to ``high``."""
    return r.choice([-1.0, 1.0], count) * 10.0 ** r.uniform(np.log10(low), np.log10(high), count)


ANY = (1e-300, 1e300)
CASES = [  # name, text, sizes of each variable, what is asked of them
    ("Hamming 3.1", "np.sqrt(x + 1) - np.sqrt(x)", [(1, 1e300)], "x > 1"),
    ("Hamming 3.3", "np.sin(x + y) - np.sin(x)", [(1e-8, 1e4), (1e-20, 1e4)], "(1e-16 * abs(x) < y) & (y < abs(x))"),
    ("Hamming 3.4", "(1 - np.cos(x)) / np.sin(x)", [(1e-150, 1e4)], ""),
    ("Hamming 3.5", "np.arctan(x + 1) - np.arctan(x)", [(1, 1e100)], "x > 1"),
    ("Hamming 3.6", "1 / np.sqrt(x) - 1 / np.sqrt(x + 1)", [(1, 1e200)], "x > 1"),
    ("Hamming 3.7", "np.exp(x) - 1", [(1e-300, 1)], ""),
    ("Hamming 3.8", "((x + 1) * np.log(x + 1) - x * np.log(x)) - 1", [(6.8e15, 1e300)], "x > 6.8e15"),
    ("Hamming 3.9", "1 / x - 1 / np.tan(x)", [(1e-100, 0.026)], ""),
    ("Hamming 3.10", "np.log(1 - x) / np.log(1 + x)", [(1e-300, 1)], ""),
    ("Hamming 3.11", "np.exp(x) / (np.exp(x) - 1)", [(1e-300, 700)], ""),
    ("Hamming 3.2.1+", "(-y + np.sqrt(y * y - x * z)) / x", [(1e-20, 1e20)] * 3, ""),
    ("Hamming 3.2.1-", "(-y - np.sqrt(y * y - x * z)) / x", [(1e-20, 1e20)] * 3, ""),
    ("Hamming p42+", "(-y + np.sqrt(y * y - 4 * (x * z))) / (2 * x)", [(1e-20, 1e20)] * 3, ""),
    ("Hamming p42-", "(-y - np.sqrt(y * y - 4 * (x * z))) / (2 * x)", [(1e-20, 1e20)] * 3, ""),
    ("Hamming 3.3.1", "1 / (x + 1) - 1 / x", [(1e-100, 1e100)], ""),
    ("Hamming 3.3.2", "np.tan(x + y) - np.tan(x)", [(1e-8, 1e4), (1e-20, 1e4)], "(1e-16 * abs(x) < y) & (y < abs(x))"),
    ("Hamming 3.3.3", "1 / (x + 1) - 2 / x + 1 / (x - 1)", [(1, 1e100)], ""),
    ("Hamming 3.3.4", "np.cbrt(x + 1) - np.cbrt(x)", [(1, 1e300)], "x > 1"),
    ("Hamming 3.3.5", "np.cos(x + y) - np.cos(x)", [(1e-8, 1e4), (1e-20, 1e4)], "(1e-16 * abs(x) < y) & (y < abs(x))"),
    ("Hamming 3.3.6", "np.log(x + 1) - np.log(x)", [(1, 1e40)], "x > 1"),
    ("Hamming 3.3.7", "np.exp(x) - 2 + np.exp(-x)", [(1e-150, 700)], ""),
    ("Hamming 3.4.1", "(1 - np.cos(x)) / (x * x)", [(1e-150, 1e4)], ""),
    (
        "Hamming 3.4.2",
        "z * (np.exp((x + y) * z) - 1) / ((np.exp(x * z) - 1) * (np.exp(y * z) - 1))",
        [(1e-3, 700), (1e-3, 700), (1e-27, 1e-3)],
        "",
    ),
    ("Hamming 3.4.3", "np.log((1 - x) / (1 + x))", [(1e-300, 1)], ""),
    ("Hamming 3.4.4", "np.sqrt((np.exp(2 * x) - 1) / (np.exp(x) - 1))", [(1e-300, 300)], ""),
    ("Hamming 3.4.5", "(x - np.sin(x)) / (x - np.tan(x))", [(1e-100, 0.4)], ""),
    ("Hamming 3.4.6", "(x + 1) ** (1 / y) - x ** (1 / y)", [(1e-10, 1e100), (1e-1, 1e10)], "x > 0"),
    ("Hamming 3.5 exp(ax)", "np.exp(x * y) - 1", [(1e-100, 10), (1e-100, 10)], ""),
    ("Hamming 6.1 B", "np.pi / 2 * (1 / (y * y - x * x)) * (1 / x - 1 / y)", [(1e-50, 1e50)] * 2, ""),
    ("Kahan exp quotient", "(np.exp(x) - 1) / x", [(1e-300, 700)], ""),
    ("Kahan p9", "((x - y) * (x + y)) / (x * x + y * y)", [(1e-150, 1), (1e-150, 1)], ""),
    ("difference of squares", "x * x - y * y", [(1e-100, 1e100)] * 2, ""),
    ("ln(1 + x)", "np.log(1 + x)", [ANY], ""),
    ("compound interest", "100 * (((1 + x / y) ** y - 1) / (x / y))", [(1e-10, 1), (1, 1e10)], "y > 0"),
    ("x / (x^2 + 1)", "x / (x * x + 1)", [ANY], ""),
    ("arccos", "2 * np.arctan(np.sqrt((1 - x) / (1 + x)))", [(1e-300, 1)], ""),
    ("fourth powers", "x**4 - y**4", [(1e-50, 1e50)] * 2, ""),
    ("arctanh", "np.log((1 + x) / (1 - x))", [(1e-300, 1)], ""),
    ("hyperbolic sine", "(np.exp(x) - np.exp(-x)) / 2", [(1e-300, 700)], ""),
    ("hyperbolic tangent", "(np.exp(x) - np.exp(-x)) / (np.exp(x) + np.exp(-x))", [(1e-300, 1e4)], ""),
    ("hyperbolic secant", "2 / (np.exp(x) + np.exp(-x))", [(1e-300, 700)], ""),
    ("hyperbolic arcsine", "np.log(x + np.sqrt(x * x + 1))", [ANY], ""),
    ("hyperbolic arccosine", "np.log(x + np.sqrt(x * x - 1))", [(1, 1e300)], "x > 1"),
    ("hyperbolic arcsecant", "np.log(1 / x + np.sqrt(1 - x * x) / x)", [(1e-300, 1)], "x > 0"),
    ("logistic regression", "np.log(1 + np.exp(x)) - x * y", [(1e-3, 1e3)] * 2, ""),
    ("logistic, Garg", "2 / (1 + np.exp(-2 * x)) - 1", [ANY], ""),
    ("Excel", "x / (1 - y) - x", [(1e-3, 1e3), (1e-10, 0.5)], ""),
    ("log of sum of exp", "np.log(np.exp(x) + np.exp(y))", [(1e-3, 1e4)] * 2, ""),
    ("quotient of sums", "np.exp(x) / (np.exp(x) + np.exp(y))", [(1e-3, 1e4)] * 2, ""),
    ("exp of logs", "np.exp(np.log(x) + np.log(y))", [(1e-100, 1e100)] * 2, "(x > 0) & (y > 0)"),
    ("complex modulus", "np.sqrt(x * x + y * y)", [ANY, ANY], ""),
    ("complex root, imaginary", "0.5 * np.sqrt(2.0 * (np.sqrt(x * x + y * y) - x))", [(1e-100, 1e100)] * 2, "y > 0"),
    ("complex cosine, imaginary", "0.5 * np.sin(x) * (np.exp(-y) - np.exp(y))", [(1e-3, 10), (1e-300, 700)], ""),
    ("Sarnoff asymptote A", "1 / (x + 1) - 1 / (x - 1)", [(1e-100, 1e100)], ""),
    ("Sarnoff asymptote C", "x / (x + 1) - (x + 1) / (x - 1)", [(1e-100, 1e100)], ""),
    ("Sarnoff eccentricity", "np.sqrt(np.abs((x * x - y * y) / (x * x)))", [(1e-10, 1)] * 2, "(x > y) & (y > 0)"),
    ("Sarnoff trigonometry B", "(1 - np.tan(x) * np.tan(x)) / (1 + np.tan(x) * np.tan(x))", [(1e-100, 1e4)], ""),
]


class Digits:
    """NumPy's names, to many digits; what is no real number is an error."""

    pi = mp.pi
    exp, sin, cos, tan, arctan = mp.exp, mp.sin, mp.cos, mp.tan, mp.atan
    abs = staticmethod(abs)

    @staticmethod
    def cbrt(x: object) -> object:
        """The real root."""
        return mp.sign(x) * mp.cbrt(abs(x))

    @staticmethod
    def sqrt(x: object) -> object:
        """The root of what is not negative."""
        if x < 0:
            raise ValueError
        return mp.sqrt(x)

    @staticmethod
    def log(x: object) -> object:
        """The logarithm of what is positive."""
        if x <= 0:
            raise ValueError
        return mp.log(x)


def bits(value: float, true: object) -> float:
    """The bits that are wrong, of 64, as Herbie counts: the logarithm of the units of the last place."""
    target = float(true)
    if np.isnan(value):
        return 64.0
    if np.isinf(target) or np.isinf(value):
        return 0.0 if value == target else 64.0
    apart = abs(mp.mpf(value) - true) / mp.mpf(float(np.spacing(abs(target))))
    return float(min(mp.log(1 + apart, 2), 64))


def measured(text: str, sizes: list[tuple[float, float]], asked: str, draw: np.random.Generator) -> list[float]:
    """The mean error of the text, at stable and at real, and how often stable is worse by more than 2 units and by half of them."""
    names = "xyz"[: len(sizes)]
    function = eval(f"lambda {', '.join(names)}: {text}", {"np": np})  # noqa: S307 (the texts above)
    exactly = eval(f"lambda {', '.join(names)}: {text}", {"np": Digits})  # noqa: S307 (the texts above)
    points = [wide(draw, *size, 8 * COUNT) for size in sizes]
    if asked:
        kept = eval(asked, {"abs": np.abs}, dict(zip(names, points, strict=True)))  # noqa: S307 (the texts above)
        points = [p[kept] for p in points]
    points = [p[:COUNT] for p in points]
    graph = tm.trace(function, *points)
    graphs = [graph, rewrite(graph, "stable").graph, rewrite(graph, "real").graph]
    with np.errstate(all="ignore"):
        values = [np.broadcast_to(evaluate_graph(g, points)[0], points[0].shape) for g in graphs]
    found: list[list[float]] = []
    for k, point in enumerate(zip(*points, strict=True)):
        try:
            true = exactly(*(mp.mpf(float(v)) for v in point))
        except (ValueError, ZeroDivisionError):
            continue
        if mp.isfinite(true) and not isinstance(true, mp.mpc):
            found.append([bits(float(v[k]), true) for v in values])
    errors = np.array(found)
    worse = (errors[:, 1] > errors[:, 0] + 2).mean()
    return [*errors.mean(axis=0), worse]


def main() -> None:
    """Print the table."""
    draw = np.random.default_rng(0)
    rows = [(name, text, *measured(text, sizes, asked, draw)) for name, text, sizes, asked in CASES]
    print(f"# Accuracy of textbook expressions, measured on {date.today():%Y-%m-%d}\n")  # noqa: DTZ011 (the date of the machine that measures)
    for k, level in enumerate(("NumPy", "stable", "real")):
        good = sum(row[2 + k] < 3 for row in rows)
        print(
            f"- {level}: {good} of {len(rows)} lose less than 3 bits on average, all {np.mean([r[2 + k] for r in rows]):.1f} bits."
        )
    print(
        f"\nMean of the wrong bits (of 64) over {COUNT} inputs, against {mp.dps} digits. Expressions and ranges after"
    )
    print("Hamming (1987), Herbie (<https://herbie.uwplse.org>) and FPBench (<https://fpbench.org>).\n")
    print("| | expression | NumPy | stable | real | inputs where stable is 2 bits worse |\n|---|---|---|---|---|---|")
    for name, text, *errors, worse in rows:
        told = " | ".join(f"{e:.1f}" for e in errors)
        print(f"| {name} | `{text.replace('np.', '')}` | {told} | {100 * worse:.1f} % |")


if __name__ == "__main__":
    main()
