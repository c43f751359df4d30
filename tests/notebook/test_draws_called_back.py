"""Draws of functions that other code calls back, drawn: each generator is afterwards where it would be without the magic."""

from __future__ import annotations

import random

import pytest

from tests.notebook.conftest import Notebook
from tests.notebook.test_sessions import differences

START = """
import numpy as np
from scipy import integrate, optimize, stats
np.random.seed(0)
rng = np.random.default_rng(7)
old = np.random.RandomState(3)
x = np.linspace(0.0, 1.0, 5)
A = np.arange(6.0).reshape(2, 3)
"""
DRAWS = [
    "np.random.rand()",
    "np.random.choice([0, 1], p=[0.5, 0.5])",
    "rng.normal()",
    "rng.integers(5)",
    "old.uniform()",
    "stats.norm.rvs()",
    "(np.random.rand() if t < 0.4 else rng.random())",
    "(np.random.rand() if t < 0.4 else 0.5)",
    "np.random.normal(t, 1.0)",
]
CALLERS = [
    "np.vectorize(f)(x)",
    "np.vectorize(f, otypes=[float])(x)",
    "np.array([f(t) for t in x])",
    "list(map(f, x))",
    "np.apply_along_axis(lambda r: r * f(0.5), 1, A)",
    "optimize.brentq(lambda t: t - 0.5 + 1e-12 * f(t), -1, 2, xtol=1e-3) > 0",
    "integrate.quad(lambda t: t + 0 * f(t), 0, 1)[0]",
    "sorted(x.tolist(), key=lambda t: f(t))",
    "np.fromiter((f(t) for t in x), float)",
    "np.frompyfunc(lambda t: f(t), 1, 1)(x).astype(float)",
    "optimize.minimize(lambda p: (p[0] - 1) ** 2 + 0 * f(0.5), [0.0], method='Nelder-Mead', options={'maxiter': 5}).nit",
]
BESIDE = [
    "a = np.random.rand()",
    "b = rng.random(2)",
    "c = stats.uniform.rvs(size=2)",
    "x = x + 0.25",
    "np.random.shuffle(x)",
    "rng.shuffle(x)",
]


def program(seed: int) -> list[tuple[str | None, str]]:
    draw = random.Random(seed)
    cells: list[tuple[str | None, str]] = [(None, START)]
    for _ in range(draw.randint(2, 4)):
        lines = [draw.choice(BESIDE)] if draw.random() < 0.5 else []
        for _ in range(draw.randint(1, 2)):
            lines.append(f"def f(t): return {draw.choice(DRAWS)}")
            lines.append(f"y = {draw.choice(CALLERS)}")
        lines += [draw.choice(BESIDE)] if draw.random() < 0.5 else []
        cells.append((draw.choice(["", "", " --math exact"]), "\n".join(lines)))
        cells.append((None, "np.random.rand(), rng.random(), old.rand()"))
    return cells


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("seed", range(50))
def test_draws(notebook: Notebook, seed: int) -> None:
    pytest.importorskip("scipy")
    assert differences(notebook, program(seed)) == []
