"""Check gradients against finite differences and the value against NumPy; where they differ, more digits decide."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Any

import numpy as np

from tensormagic.backend.numpy_tier.reference import evaluate_graph
from tensormagic.capture.inputs.door import is_table
from tensormagic.capture.values.operands import node_of
from tensormagic.capture.values.value import Tensor
from tensormagic.functions.gradients.disagreement import disagreement_of
from tensormagic.ir.closing import close
from tensormagic.ir.node import Node
from tensormagic.notebook.cells.outcome import Outcome
from tensormagic.notebook.display.forms import Panel, table
from tensormagic.notebook.speeds.by_numpy import difference, in_numpy, longer
from tensormagic.ops.leaf import INPUT, parameter
from tensormagic.transform.grad import depends

_MOST = 32  # elements of a variable that are moved one by one
_TOLERANCE = 1e-6
_ROUNDING = 1e-12
_UNITS = 8  # units in the last place that a value, and where it is taken, may be off
_DIGITS = [np.finfo(kind).precision for kind in (np.float64, np.longdouble)]
_Scalar = Callable[[np.ndarray[Any, Any]], float]


def check(outcome: Outcome) -> Panel:
    """Return the panel: a row for the value, and one for each gradient."""
    rows = [_value_row(outcome)]
    rows += [_gradient_row(outcome, name) for name in outcome.gradients]
    return table(
        "check", ("what", "largest difference", "verdict"), rows, [row[2].startswith("differs") for row in rows]
    )


def _value_row(outcome: Outcome) -> list[str]:
    ours, theirs = [t.numpy() for t in outcome.results.values()], in_numpy(outcome)[0]
    apart = difference(ours, theirs)
    if apart <= _ROUNDING:
        return ["value against NumPy", _told(apart), "agrees"]
    better = in_numpy(outcome, {n: longer(v) for n, v in outcome.notebook.items()})[0]
    errors = [difference(values, better) for values in (ours, theirs)]
    right = _nearer(*errors)
    return [
        "value against NumPy",
        _told(apart),
        f"differs; computed with {_DIGITS[1]} digits in place of {_DIGITS[0]}, {right} is right",
    ]


def _nearer(ours: float, theirs: float) -> str:
    if np.isnan(ours) == np.isnan(theirs) and not ours < theirs and not theirs < ours:
        return "neither"
    return "the captured value" if np.isnan(theirs) or ours < theirs else "NumPy"


def _gradient_row(outcome: Outcome, name: str) -> list[str]:
    gradient = np.asarray(outcome.gradients[name].numpy(), np.float64)
    if not name.isidentifier():
        return [f"grad_{name}", "–", "not checked: a part of a container"]
    if name not in outcome.notebook or name not in outcome.code.parsed.reads:
        return [f"grad_{name}", "–", "not checked: the cell assigns it itself"]
    start = np.asarray(outcome.notebook[name], np.float64)
    later = _computed_from(outcome, name)
    moved = _function(outcome, name, later)
    if moved is None:
        return [f"grad_{name}", "–", f"not checked: an earlier cell computed {', '.join(later)} from {name}"]
    scale = max(float(np.abs(gradient).max(initial=0.0)), 1e-30)
    chosen = np.random.default_rng(0).permutation(start.size)[:_MOST] if start.size > _MOST else np.arange(start.size)
    worst = 0.0
    for index in [np.unravel_index(k, start.shape) for k in chosen]:
        slope, rounding = _slope(moved, start, index)
        worst = max(worst, abs(slope - gradient[index]) / max(scale, rounding / _TOLERANCE))
    part = "" if start.size <= _MOST else f" ({_MOST} of {start.size} elements)"
    verdict = "agrees" if worst <= _TOLERANCE else f"differs{_culprit(outcome, name)}"
    verdict += f"; through {', '.join(later)}, too, which an earlier cell computed from {name}" if later else ""
    return [f"grad_{name} against finite differences{part}", _told(worst), verdict]


def _culprit(outcome: Outcome, name: str) -> str:
    """Return the operation whose own derivative disagrees, and its line."""
    found = disagreement_of(node_of(outcome.target), outcome.moving[name])
    return f": {found}" if found else ""


def _computed_from(outcome: Outcome, name: str) -> dict[str, Node]:
    """Return the other variables read by the cell that an earlier cell has computed from this one: gradients pass through them, too."""
    found = {n: v.node for n, v in outcome.notebook.items() if isinstance(v, Tensor) and n in outcome.code.parsed.reads}
    return {n: node for n, node in found.items() if n != name and depends([node], outcome.moving[name])}


def _function(outcome: Outcome, name: str, later: Mapping[str, Node]) -> _Scalar | None:
    """Return the cell's value as a function of one variable, or None if other values derived from the variable cannot be recomputed."""
    notebook: Mapping[str, Any] = {n: _double(v) for n, v in outcome.notebook.items()}
    closed = close(later.values(), lambda n: n.op is INPUT, parameter, leaves=[outcome.moving[name]])
    others = [n["source"].value if n.op is INPUT else None for n in closed.leaves[1:]]
    if any(v is None for v in others):
        return None

    def value(at: np.ndarray[Any, Any]) -> float:
        moved = dict(zip(later, evaluate_graph(closed.graph, [at, *others]), strict=True)) if later else {}
        return float(in_numpy(outcome, {**notebook, **moved, name: like(outcome.notebook[name], at)})[1])

    return value


def like(value: Any, numbers: np.ndarray[Any, Any]) -> Any:
    """Return other numbers in the form of a variable: an array, a float, a list or a tuple, a Series or a DataFrame."""
    if is_table(value):
        labels = {"index": value.index} | ({"columns": value.columns} if numbers.ndim == 2 else {"name": value.name})
        return type(value)(numbers, **labels)
    if isinstance(value, list | tuple):
        return type(value)(numbers.tolist())
    return numbers if numbers.shape else numbers.item()


def _double(value: Any) -> Any:
    return (
        value.astype(np.float64) if isinstance(value, np.ndarray | np.floating) and value.dtype.kind == "f" else value
    )


def _slope(function: _Scalar, start: np.ndarray[Any, Any], index: tuple[Any, ...]) -> tuple[float, float]:
    """Return the derivative along one element, and what rounding may have made of it: a slope of 0 is seldom found as 0.

    Central differences of four steps, extrapolated (Richardson).
    """
    place = max(1.0, abs(float(start[index])))
    steps = [1e-2 * place / 2**k for k in range(4)]
    ends = [[_moved(function, start, index, by) for by in (step, -step)] for step in steps]
    rows = [(up - down) / (2 * step) for (up, down), step in zip(ends, steps, strict=True)]
    for order in range(1, len(rows)):
        rows = [(4**order * b - a) / (4**order - 1) for a, b in pairwise(rows)]
    values, steepness = np.abs(ends[-1]).sum(), np.abs(np.subtract(ends[-1], ends[-2])).sum() / steps[-1]
    return rows[0], _UNITS * np.finfo(np.float64).eps * float(values + place * steepness) / steps[-1]


def _moved(function: _Scalar, start: np.ndarray[Any, Any], index: tuple[Any, ...], by: float) -> float:
    moved = start.copy()
    moved[index] += by
    return function(moved)


def _told(difference: float) -> str:
    """Return a difference in two digits."""
    return f"{difference:.1e}" if difference else "0"
