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
from tensormagic.backend.numpy_tier.reference import evaluate_graph  # noqa: E402
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

MORE = [  # of statistics, physics, finance, geometry and numerical analysis, written before any rule was made for them
    ("langevin", "1 / np.tanh(x) - 1 / x", [(1e-08, 1000.0)], ""),
    ("Brillouin", "(4 / 3) / np.tanh(4 * x / 3) - (1 / 3) / np.tanh(x / 3)", [(1e-08, 1000.0)], ""),
    ("planck", "x ** 3 / (np.exp(x) - 1)", [(1e-10, 900)], "x > 0"),
    ("Einstein's heat", "(x / 2) ** 2 / np.sinh(x / 2) ** 2", [(1e-200, 2000)], ""),
    ("Bernoulli's generator", "x / (np.exp(x) - 1) - 1 + x / 2", [(1e-06, 100)], ""),
    ("kinetic energy", "1 / np.sqrt(1 - x * x) - 1", [(1e-12, 0.999)], ""),
    ("sum of velocities", "(x + y) / (1 + x * y) - x", [(0.001, 0.999), (1e-18, 0.001)], ""),
    ("rapidity", "0.5 * np.log((x + y) / (x - y))", [(0.001, 1000000.0), (1e-12, 1000.0)], "(x > abs(y))"),
    ("sinc less 1", "1 - np.sin(x) / x", [(1e-10, 3)], ""),
    ("bessel j1 spherical", "np.sin(x) / (x * x) - np.cos(x) / x", [(1e-06, 10)], ""),
    ("sinc2 deriv", "(x * np.cos(x) - np.sin(x)) / (x * x)", [(1e-06, 10)], ""),
    ("versine ratio", "(1 - np.cos(x)) / (1 - np.cos(y))", [(1e-09, 1), (1e-09, 1)], ""),
    ("exp divided difference", "(np.exp(x) - np.exp(y)) / (x - y)", [(0.001, 50), (0.001, 50)], ""),
    ("log mean", "(x - y) / (np.log(x) - np.log(y))", [(0.001, 1000.0), (0.001, 1000.0)], "(x > 0) & (y > 0)"),
    ("identric", "(x * np.log(x) - y * np.log(y)) / (x - y) - 1", [(0.01, 100.0), (0.01, 100.0)], "(x > 0) & (y > 0)"),
    (
        "stolarsky",
        "((x ** 3 - y ** 3) / (3 * (x - y))) ** 0.5",
        [(0.001, 1000.0), (0.001, 1000.0)],
        "(x > 0) & (y > 0)",
    ),
    ("cubic resolvent", "np.sqrt(x * x + 1) - x", [(0.001, 1e200)], "x > 0"),
    ("root less", "np.sqrt(x * x - 1) / x", [(1, 1e300)], "x > 1"),
    ("area hyperbolic", "np.sqrt(x + 1) * np.sqrt(x - 1) - x", [(1, 1e150)], "x > 1"),
    (
        "heron",
        "np.sqrt(((x + y) + 1) * ((x + y) - 1) * (1 + (x - y)) * (1 - (x - y))) / 4",
        [(0.6, 10), (0.6, 10)],
        "(x > 0) & (y > 0) & (abs(x - y) < 1) & (x + y > 1)",
    ),
    (
        "haversine",
        "2 * np.arcsin(np.sqrt(np.sin((x - y) / 2) ** 2 + np.cos(x) * np.cos(y) * np.sin(z / 2) ** 2))",
        [(1e-08, 1.5), (1e-08, 1.5), (1e-08, 3)],
        "",
    ),
    ("chord", "2 * x * np.sin(np.arccos(1 - y / x))", [(0.001, 1000.0), (1e-12, 0.0001)], "(x > 0) & (y > 0)"),
    ("sagitta", "x - np.sqrt(x * x - y * y)", [(0.001, 1000000.0), (1e-12, 1000.0)], "(x > abs(y))"),
    ("spherical cap", "1 - np.cos(np.arctan(x))", [(1e-10, 1000.0)], ""),
    ("eccentric", "np.sqrt(1 - (y / x) ** 2)", [(0.001, 1000.0), (0.001, 1000.0)], "(x > y) & (y > 0)"),
    ("hypot3", "np.sqrt(x * x + y * y + z * z)", [(1e-200, 1e200), (1e-200, 1e200), (1e-200, 1e200)], ""),
    ("norm quotient", "x / np.sqrt(x * x + y * y)", [(1e-300, 1e300), (1e-300, 1e300)], ""),
    ("complex div", "(x * z + y) / (z * z + 1)", [(0.001, 1000.0), (0.001, 1000.0), (1e-200, 1e200)], ""),
    (
        "quadratic small",
        "2 * z / (-y - np.sqrt(y * y - 4 * x * z))",
        [(1e-05, 100000.0), (100.0, 10000000000.0), (1e-05, 100000.0)],
        "(y > 0)",
    ),
    ("quadratic scaled", "(-y + np.sqrt(y * y + 4 * x)) / 2", [(1e-05, 100000.0), (1e-05, 1e160)], "(x > 0)"),
    ("annuity", "(1 - (1 + x) ** -y) / x", [(1e-12, 1), (1, 600)], "(x > 0) & (y > 0)"),
    ("loan payment", "z * x / (1 - (1 + x) ** (-y))", [(1e-12, 1), (1, 600), (1, 1000000.0)], "(x > 0) & (y > 0)"),
    (
        "growing annuity",
        "(1 - ((1 + y) / (1 + x)) ** z) / (x - y)",
        [(0.0001, 1), (0.0001, 1), (1, 60)],
        "(x > 0) & (y > 0) & (z > 0)",
    ),
    ("log return", "np.log(1 + (y - x) / x)", [(0.01, 10000.0), (0.01, 10000.0)], "(x > 0) & (y > 0)"),
    ("cont. rate", "y * np.log(1 + x / y)", [(1e-10, 1), (1, 10000000000.0)], "(x > 0) & (y > 0)"),
    ("effective less nominal", "(1 + x / y) ** y - 1 - x", [(1e-08, 0.5), (2, 365)], "(x > 0) & (y > 0)"),
    ("forward rate", "(np.exp(x * z) / np.exp(y * z) - 1) / z", [(0.0001, 1), (0.0001, 1), (1e-06, 10)], "(z > 0)"),
    (
        "logit diff",
        "np.log(x / (1 - x)) - np.log(y / (1 - y))",
        [(1e-06, 0.999999), (1e-06, 0.999999)],
        "(x > 0) & (y > 0)",
    ),
    ("bernoulli entropy", "-x * np.log(x) - (1 - x) * np.log(1 - x)", [(1e-20, 0.999)], "x > 0"),
    ("entropy deficit", "np.log(2) + x * np.log(x) + (1 - x) * np.log(1 - x)", [(0.3, 0.7)], "x > 0"),
    (
        "bernoulli KL",
        "x * np.log(x / y) + (1 - x) * np.log((1 - x) / (1 - y))",
        [(0.001, 0.999), (0.001, 0.999)],
        "(x > 0) & (y > 0)",
    ),
    ("gauss KL", "np.log(y / x) + (x * x) / (2 * y * y) - 0.5", [(0.01, 100.0), (0.01, 100.0)], "(x > 0) & (y > 0)"),
    ("poisson deviance", "2 * (x * np.log(x / y) - (x - y))", [(0.01, 10000.0), (0.01, 10000.0)], "(x > 0) & (y > 0)"),
    ("gamma deviance", "2 * ((x - y) / y - np.log(x / y))", [(0.01, 10000.0), (0.01, 10000.0)], "(x > 0) & (y > 0)"),
    ("itakura", "x / y - np.log(x / y) - 1", [(0.01, 100.0), (0.01, 100.0)], "(x > 0) & (y > 0)"),
    ("student log", "-(y + 1) / 2 * np.log(1 + x * x / y)", [(1e-12, 1e200), (0.5, 1000.0)], "y > 0"),
    ("cauchy log", "-np.log(1 + x * x)", [(1e-12, 1e200)], ""),
    ("weibull sf", "1 - np.exp(-(x / y) ** 2)", [(1e-150, 1000.0), (0.001, 1000.0)], "(x > 0) & (y > 0)"),
    ("gumbel log cdf compl", "np.log(1 - np.exp(-np.exp(-x)))", [(0.001, 700)], ""),
    ("logistic log pdf", "-x - 2 * np.log(1 + np.exp(-x))", [(0.001, 800)], ""),
    (
        "laplace mix",
        "np.log(0.5 * np.exp(-np.abs(x)) + 0.5 * np.exp(-np.abs(x - y)))",
        [(0.001, 2000), (0.001, 100)],
        "",
    ),
    ("softmax margin", "np.exp(x) / (np.exp(x) + np.exp(y)) - 0.5", [(1e-08, 800), (1e-08, 800)], ""),
    ("softplus excess", "np.log(1 + np.exp(x)) - x", [(0.001, 800)], ""),
    ("log1mexp product", "np.log(1 - np.exp(x * y))", [(1e-08, 30), (1e-08, 30)], "x * y < 0"),
    ("tanh complement", "1 - np.tanh(x) ** 2", [(1e-10, 300)], ""),
    ("log sech", "-np.log(np.cosh(x))", [(1e-08, 10000.0)], ""),
    ("magnetization", "np.log(2 * np.cosh(x)) - x * np.tanh(x)", [(0.001, 300)], ""),
    ("bose - boltzmann", "1 / (np.exp(x) - 1) - np.exp(-x)", [(1e-08, 300)], "x > 0"),
    ("fermi - half", "1 / (np.exp(x) + 1) - 0.5", [(1e-12, 700)], ""),
    ("compton", "y / (1 + y * (1 - np.cos(x))) - y", [(1e-08, 3), (1e-05, 1000.0)], "y > 0"),
    ("doppler", "np.sqrt((1 + x) / (1 - x)) - 1", [(1e-15, 0.99)], ""),
    ("box-cox", "(x ** y - 1) / y", [(0.001, 1000.0), (1e-12, 3)], "x > 0"),
    ("power 2nd diff", "((1 + x) ** y - 1 - x * y) / (x * x)", [(1e-07, 0.5), (0.3, 5)], ""),
    ("var two", "(x * x + y * y) / 2 - ((x + y) / 2) ** 2", [(0.001, 1000.0), (0.001, 1000.0)], ""),
]


class Digits:
    """NumPy's names, to many digits; what is no real number is an error."""

    pi = mp.pi
    exp, sin, cos, tan, sinh, cosh, tanh = mp.exp, mp.sin, mp.cos, mp.tan, mp.sinh, mp.cosh, mp.tanh
    arctan, arcsin, arccos = mp.atan, mp.asin, mp.acos
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


def near_each_other(points: list[np.ndarray], size: tuple[float, float], draw: np.random.Generator) -> None:
    """A third of the second operands are near the first ones, where these are of the size that is asked for."""
    x, y = points[:2]
    beside = x * (1 + draw.choice([-1.0, 1.0], len(x)) * 10.0 ** draw.uniform(-15, -1, len(x)))
    fits = (np.abs(beside) >= size[0]) & (np.abs(beside) <= size[1])
    points[1] = np.where(fits & (draw.random(len(x)) < 1 / 3), beside, y)


def measured(
    text: str, sizes: list[tuple[float, float]], asked: str, draw: np.random.Generator, *, near: bool = False
) -> list[float]:
    """The mean error of the text, at stable and at real, and how often stable is worse by more than 2 units and by half of them."""
    names = "xyz"[: len(sizes)]
    function = eval(f"lambda {', '.join(names)}: {text}", {"np": np})  # noqa: S307 (the texts above)
    exactly = eval(f"lambda {', '.join(names)}: {text}", {"np": Digits})  # noqa: S307 (the texts above)
    points = [wide(draw, *size, 8 * COUNT) for size in sizes]
    if near and len(points) > 1:
        near_each_other(points, sizes[1], draw)
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


def table(cases: list[tuple[str, str, list[tuple[float, float]], str]], *, near: bool) -> None:
    """Print one table."""
    draw = np.random.default_rng(0)
    rows = [(name, text, *measured(text, sizes, asked, draw, near=near)) for name, text, sizes, asked in cases]
    for k, level in enumerate(("NumPy", "stable", "real")):
        good = sum(row[2 + k] < 3 for row in rows)
        print(
            f"- {level}: {good} of {len(rows)} lose less than 3 bits on average, all {np.mean([r[2 + k] for r in rows]):.1f} bits."
        )
    print(f"\nMean of the wrong bits (of 64) over {COUNT} inputs, against {mp.dps} digits.\n")
    print("| | expression | NumPy | stable | real | inputs where stable is 2 bits worse |\n|---|---|---|---|---|---|")
    for name, text, *errors, worse in rows:
        told = " | ".join(f"{e:.1f}" for e in errors)
        print(f"| {name} | `{text.replace('np.', '')}` | {told} | {100 * worse:.1f} % |")


def main() -> None:
    """Print the tables."""
    print(f"# Accuracy of textbook expressions, measured on {date.today():%Y-%m-%d}\n")  # noqa: DTZ011 (the date of the machine that measures)
    print(
        "Expressions and ranges after Hamming (1987), Herbie (<https://herbie.uwplse.org>) and FPBench (<https://fpbench.org>).\n"
    )
    table(CASES, near=False)
    print("\n## Expressions of other books\n\nA third of the second operands are near the first ones.\n")
    table(MORE, near=True)


if __name__ == "__main__":
    main()
