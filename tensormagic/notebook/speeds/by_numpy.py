"""Run the cell in plain NumPy on copies, to compare it with the captured run, and measure how far results differ."""

from __future__ import annotations

import copy
from collections.abc import Generator, Mapping
from contextlib import contextmanager, redirect_stdout
from io import StringIO
from typing import Any

import numpy as np

from tensormagic.capture.cell import Code
from tensormagic.capture.tree import flatten
from tensormagic.capture.values.value import Tensor
from tensormagic.notebook.cells.outcome import Outcome
from tensormagic.notebook.cells.run import plain


@contextmanager
def beside(outcome: Outcome) -> Generator[None]:
    """Run code as the cell was run: over what its names led to then, and with the same random draws; nothing stays of it."""
    with redirect_stdout(StringIO()), np.errstate(all="ignore"):
        if outcome.kept is None:
            yield
        else:
            with outcome.kept.rewound():
                yield


def copies(code: Code, notebook: Mapping[str, Any]) -> dict[str, Any]:
    """Return the variables as plain NumPy sees them: lazy values computed, arrays that the cell reads copied."""
    space = dict(notebook)
    memo: dict[int, Any] = {}
    for name in code.parsed.reads:
        value = space.get(name)
        if isinstance(value, Tensor):
            value = value.numpy()
        if isinstance(value, np.ndarray):
            value = memo.setdefault(id(value), value.copy())
        elif isinstance(value, list | dict | set):
            value = memo.setdefault(id(value), copy.deepcopy(value))
        if name in space:
            space[name] = value
    return space


def in_numpy(outcome: Outcome, notebook: Mapping[str, Any] | None = None) -> tuple[list[Any], Any]:
    """Compute the captured results, and the value that the gradients are of, by plain NumPy on copies.

    Parameters
    ----------
    outcome
        The captured run.
    notebook
        Variables to use instead of those that the cell has read.
    """
    notebook = outcome.notebook if notebook is None else notebook
    with beside(outcome):
        space = copies(outcome.code, notebook)
        result = plain(outcome.code, space)
    target = space[outcome.options.of] if outcome.options.of else result
    return wanted(outcome, result, space), target


def wanted(outcome: Outcome, result: Any, space: Mapping[str, Any]) -> list[Any]:
    """Return the values in another run of the cell that correspond to the outcome's results."""
    captured = flatten(outcome.result)[0]
    if any(isinstance(leaf, Tensor) for leaf in captured):
        pairs = zip(captured, flatten(result)[0], strict=True)
        found = [right for left, right in pairs if isinstance(left, Tensor)]
    else:
        found = [space[n] for n, v in outcome.outputs.items() if isinstance(v, Tensor)]
    target = space[outcome.options.of] if outcome.options.of else result
    return [*found, *[target] * (len(outcome.results) - len(found))]


def longer(value: Any) -> Any:
    """Return a floating value with more digits."""
    if isinstance(value, np.ndarray | np.floating) and value.dtype.kind == "f":
        return value.astype(np.longdouble)
    return np.longdouble(value) if type(value) is float else value


def difference(captured: list[Any], expected: list[Any]) -> float:
    """Return the largest difference of corresponding numbers, relative to the largest of them; nan where one alone is nan."""
    worst = 0.0
    for left, right in zip(captured, expected, strict=True):
        x, y = np.asarray(left), np.asarray(right)
        worst = float(np.maximum(worst, _apart(x, y) if x.size else 0.0))
    return worst


def _apart(x: np.ndarray[Any, Any], y: np.ndarray[Any, Any]) -> float:
    kind = np.result_type(x, y, np.float64)
    x, y = x.astype(kind), y.astype(kind)
    same = (x == y) | (np.isnan(x) & np.isnan(y))
    scale = np.abs(y[np.isfinite(y)]).max(initial=0.0)
    with np.errstate(all="ignore"):
        found = np.abs(np.where(same, 0, x - y)).max()
    return float(found / scale if scale else found)
