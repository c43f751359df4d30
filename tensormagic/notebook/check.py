"""Gradients held against finite differences, and the value against NumPy; where they differ, higher precision says who is right."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from tensormagic.notebook.panels import Panel, table
from tensormagic.notebook.run import Outcome
from tensormagic.notebook.speed import difference, in_numpy

__all__ = ["check"]

_MOST = 32  # elements of a variable that are moved one by one
_TOLERANCE = 1e-6
_Scalar = Callable[[np.ndarray[Any, Any]], float]


def check(outcome: Outcome) -> Panel:
    """The panel: a row for the value, and one for each gradient."""
    rows = [_value_row(outcome)]
    rows += [_gradient_row(outcome, name) for name in outcome.gradients]
    return table("check", ("what", "largest difference", "verdict"), rows, [row[2].startswith("differs") for row in rows])


def _value_row(outcome: Outcome) -> list[str]:
    of = outcome.options.of
    expected = in_numpy(outcome.code, outcome.notebook, of)
    apart = difference(outcome.result, expected)
    if apart <= 1e-12:
        return ["value against NumPy", f"{apart:.1e}", "agrees"]
    better = in_numpy(outcome.code, {n: _longer(v) for n, v in outcome.notebook.items()}, of)
    ours, theirs = difference(outcome.result, better), difference(expected, better)
    if np.isnan(ours) or np.isnan(theirs) or ours == theirs:
        right = "the captured value" if np.isnan(theirs) and not np.isnan(ours) else "undecided"
    else:
        right = "the captured value" if ours < theirs else "NumPy"
    verdict = "agrees to rounding" if apart <= 1e-9 else f"differs; nearer to {np.dtype(np.longdouble).itemsize * 8}-bit arithmetic: {right}"
    return ["value against NumPy", f"{apart:.1e}", verdict]


def _longer(value: Any) -> Any:
    if isinstance(value, np.ndarray | np.floating) and value.dtype.kind == "f":
        return value.astype(np.longdouble)
    return np.longdouble(value) if type(value) is float else value


def _gradient_row(outcome: Outcome, name: str) -> list[str]:
    gradient = np.asarray(outcome.gradients[name].numpy(), np.float64)
    if name not in outcome.notebook or name not in outcome.code.parsed.reads:
        return [f"grad_{name}", "–", "not checked: the cell binds it itself"]
    start = np.asarray(outcome.notebook[name], np.float64)
    moved = _function(outcome, name, start)
    scale = max(float(np.abs(gradient).max(initial=0.0)), 1e-30)
    chosen = np.random.default_rng(0).permutation(start.size)[:_MOST] if start.size > _MOST else np.arange(start.size)
    worst = 0.0
    for index in [np.unravel_index(k, start.shape) for k in chosen]:
        worst = max(worst, abs(_slope(moved, start, index) - gradient[index]) / scale)
    part = "" if start.size <= _MOST else f" ({_MOST} of {start.size} elements)"
    return [f"grad_{name} against differences{part}", f"{worst:.1e}", "agrees" if worst <= _TOLERANCE else "differs"]


def _function(outcome: Outcome, name: str, start: np.ndarray[Any, Any]) -> _Scalar:
    notebook: Mapping[str, Any] = {n: _double(v) for n, v in outcome.notebook.items()}

    def value(at: np.ndarray[Any, Any]) -> float:
        return float(in_numpy(outcome.code, {**notebook, name: at if start.shape else at.item()}, outcome.options.of))

    return value


def _double(value: Any) -> Any:
    return value.astype(np.float64) if isinstance(value, np.ndarray | np.floating) and value.dtype.kind == "f" else value


def _slope(function: _Scalar, start: np.ndarray[Any, Any], index: tuple[Any, ...]) -> float:
    """The derivative along one element: central differences of four steps, extrapolated (Richardson)."""
    step = 1e-2 * max(1.0, abs(float(start[index])))
    rows = [_central(function, start, index, step / 2**k) for k in range(4)]
    for order in range(1, len(rows)):
        rows = [(4**order * b - a) / (4**order - 1) for a, b in zip(rows, rows[1:], strict=False)]
    return rows[0]


def _central(function: _Scalar, start: np.ndarray[Any, Any], index: tuple[Any, ...], step: float) -> float:
    up, down = start.copy(), start.copy()
    up[index] += step
    down[index] -= step
    return (function(up) - function(down)) / (2 * step)
