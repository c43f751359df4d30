"""What is rewritten before a derivative is taken: slopes of sums whose terms depend on different inputs, and of quotients of forms."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mpmath
import numpy as np
import pytest

import tensormagic as tm
from tensormagic.config import config
from tensormagic.transform.rewriting import rules

FAR = np.array([1e-9, 3e-4, 0.7, 41.0])
NEAR = np.array([2e5, 1.5, 0.7000001, 3e7])
CASES: list[tuple[Callable[..., Any], list[np.ndarray]]] = [
    (lambda x, y: np.sum(x * x - y * y), [FAR, NEAR]),
    (lambda x, y: np.sum(x**4 - y**4), [FAR, NEAR]),
    (lambda x, y: np.sum(np.square(x) - np.square(y) + 1.0), [FAR, NEAR]),
    (lambda x, y: np.sum(np.exp(x) - np.exp(y)), [FAR, FAR[::-1] / 3]),
    (lambda x, y: np.sum(1 / (1 + x) - 1 / (1 + y)), [FAR, NEAR]),
    (lambda x, y: np.sum(np.sqrt(x) - np.sqrt(y)), [FAR, NEAR]),
    (lambda x, y: np.sum(3.0 * np.sqrt(y * y - x * x)), [FAR, NEAR + FAR]),
    (lambda x, y: np.sum(np.log(x) - np.log(y)), [FAR, NEAR]),
]
SMALL = np.array([1e-9, 1e-5, 1e-3, -1e-4, 0.05, 0.4])
RATES = np.array([2.0, 0.5, 3.0, 2.0, 1.5, 1.0])
QUOTIENTS: dict[str, tuple[Callable[..., Any], list[np.ndarray]]] = {
    "root": (lambda x: np.sum((np.sqrt(1 + x) - 1) / x), [SMALL]),
    "root beside": (lambda x, y: np.sum((np.sqrt(y * y + x) - y) / x), [SMALL, RATES]),
    "cube root": (lambda x: np.sum((np.cbrt(1 + x) - 1) / x), [SMALL]),
    "tanh": (lambda x: np.sum((1 - np.exp(-x)) / (1 + np.exp(-x)) / x), [SMALL]),
    "tanh of a multiple": (lambda x: np.sum(np.tanh(x * -0.5) / x), [SMALL]),
    "angle less sine": (lambda x, y: np.sum((x * y - np.sin(x * y)) / (x * x * x)), [SMALL, RATES]),
    "path with drag": (lambda x, y: np.sum((np.exp(-y * x) - 1 + y * x) / (x * x)), [SMALL, RATES]),
    "sinh less angle": (lambda x, y: np.sum((np.sinh(x * y) - x * y) / x**3), [SMALL, RATES]),
    "yield curve": (lambda x, y: np.sum((1 - np.exp(-x * y)) / (x * y) - np.exp(-x * y)), [SMALL, RATES]),
}


def _slope(f: Callable[..., Any], point: list[float], k: int) -> Any:
    step = abs(point[k]) * mpmath.mpf(10) ** -40
    ends = [f(*(mpmath.mpf(v) + s * step if j == k else mpmath.mpf(v) for j, v in enumerate(point))) for s in (1, -1)]
    return (ends[0] - ends[1]) / (2 * step)


def _held(f: Callable[..., Any], given: list[np.ndarray], most: float, monkeypatch: pytest.MonkeyPatch) -> None:
    found = tm.grad(f, argnums=tuple(range(len(given))))(*given)
    for name in ("exp", "sqrt", "log", "cbrt", "tanh", "sin", "sinh"):
        monkeypatch.setattr(np, name, getattr(mpmath, name))
    monkeypatch.setattr(np, "sum", lambda v: v)
    monkeypatch.setattr(np, "square", lambda v: v * v)
    with mpmath.workdps(120):
        for i, point in enumerate(zip(*(map(float, g) for g in given), strict=True)):
            for k in range(len(given)):
                true = _slope(f, list(point), k)
                assert abs((mpmath.mpf(float(found[k][i])) - true) / true) < most, (point, k)


@pytest.mark.parametrize("number", range(len(CASES)))
@pytest.mark.parametrize("level", ["stable", "real"])
def test_both_slopes(number: int, level: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with config.using(math=level):
        _held(*CASES[number], 1e-14, monkeypatch)


@pytest.mark.parametrize("name", QUOTIENTS)
@pytest.mark.parametrize("level", ["stable", "real"])
def test_slopes_of_quotients(name: str, level: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with config.using(math=level):
        _held(*QUOTIENTS[name], 1e-14, monkeypatch)


def test_nothing_becomes_a_number() -> None:
    """Where the text divides 0 by 0, its slope is nan as well."""
    x = np.array([0.0, 0.5])
    with np.errstate(all="ignore"):
        for f in (lambda x: np.sum((np.sqrt(1 + x) - 1) / x), lambda x: np.sum((x - np.sin(x)) / x**3)):
            value, slope = tm.value_and_grad(f)(x)
            assert np.isnan(value)
            assert np.isnan(slope[0])
            assert np.isfinite(slope[1])


def test_the_value_has_the_accurate_form() -> None:
    x, y = np.array([1e8 + 1.0]), np.array([1e8])
    value, (by_x, by_y) = tm.value_and_grad(lambda x, y: np.sum(x * x - y * y), argnums=(0, 1))(x, y)
    assert value == 200000001.0  # NumPy: 200000000.0
    assert by_x[0] == 2 * x[0]
    assert by_y[0] == -2 * y[0]


def test_sums_of_one_input_are_rewritten_before() -> None:
    """Where both sides change together their slopes cancel, too."""
    x = np.array([1e9])
    slope = tm.grad(lambda x: np.sum(np.log(x + np.sqrt(x * x + 1))))(x)
    assert abs(slope[0] * 1e9 - 1) < 1e-15


def test_rules_that_it_is_about() -> None:
    assert any(r.cancels and r.name.startswith("x * x - y * y") for r in rules("stable"))
