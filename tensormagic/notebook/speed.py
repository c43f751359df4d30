"""Speed and accuracy: the cell in plain NumPy, on copies, against what was captured. The notebook stays as it is."""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass
from io import StringIO
from statistics import median
from typing import Any

import numpy as np

from tensormagic.capture.cell import Code
from tensormagic.capture.tree import flatten
from tensormagic.capture.value import Tensor
from tensormagic.config import config
from tensormagic.notebook.panels import Panel, seconds_text, table
from tensormagic.notebook.pictures.adaptor import Portrait
from tensormagic.notebook.run import Outcome, plain

__all__ = ["difference", "in_numpy", "speed"]

_SECONDS = 0.3  # spent on each side, about
_RUNS = 200


@dataclass(frozen=True)
class Speed:
    """Seconds of a run in NumPy, and captured, on a tier; of compiling; the largest difference of the results."""

    numpy: float
    captured: float
    tier: str
    compiling: float
    apart: float

    @property
    def pays_after(self) -> int | None:
        """After how many calls compiling has paid; None for never."""
        return int(self.compiling / (self.numpy - self.captured)) + 1 if self.captured < self.numpy else None


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
    """The variables as plain NumPy sees them: lazy values computed, arrays that the cell reads copied."""
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
    """By plain NumPy on copies what was captured: the outcome's results, and what its gradients are of.

    Parameters
    ----------
    outcome
        The captured run.
    notebook
        Other variables than those that the cell has read.
    """
    notebook = outcome.notebook if notebook is None else notebook
    with beside(outcome):
        space = copies(outcome.code, notebook)
        result = plain(outcome.code, space)
    captured = flatten(outcome.result)[0]
    if any(isinstance(leaf, Tensor) for leaf in captured):
        pairs = zip(captured, flatten(result)[0], strict=True)
        found = [right for left, right in pairs if isinstance(left, Tensor)]
    else:
        found = [space[n] for n, v in outcome.outputs.items() if isinstance(v, Tensor)]
    target = space[outcome.options.of] if outcome.options.of else result
    return [*found, *[target] * (len(outcome.results) - len(found))], target


def median_time(action: Callable[[Any], Any], prepare: Callable[[], Any]) -> float:
    """The median of the times of an action, ``prepare`` not counted; it runs at least twice."""
    times: list[float] = []
    while len(times) < 2 or (sum(times) < _SECONDS and len(times) < _RUNS):
        given = prepare()
        begin = time.perf_counter()
        action(given)
        times.append(time.perf_counter() - begin)
    return median(times)


def measure(outcome: Outcome, shown: Portrait) -> Speed:
    """Time both."""
    code, notebook, kept = outcome.code, outcome.notebook, outcome.kept

    def prepared() -> dict[str, Any]:
        if kept is not None:
            kept.restore()
        return copies(code, notebook)

    with beside(outcome):
        numpy = median_time(lambda space: plain(code, space), prepared)
    program = shown.primal_executable
    compiling = 0.0
    if config.tier != "numpy":
        begin = time.perf_counter()
        program.compile().wait()
        compiling = time.perf_counter() - begin
    values, sizes = shown.values, shown.sizes
    with np.errstate(all="ignore"):
        captured = median_time(lambda _: program.run(sizes, *values), lambda: None)
        apart = difference(program.run(sizes, *values), in_numpy(outcome)[0])
    return Speed(numpy, captured, program.tier, compiling, apart)


def difference(captured: list[Any], expected: list[Any]) -> float:
    """The largest difference of corresponding numbers, relative to the largest of them; nan where one alone is nan."""
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


def speed(outcome: Outcome, shown: Portrait) -> Panel:
    """The panel."""
    found = measure(outcome, shown)
    rows = [
        ["plain NumPy", seconds_text(found.numpy), ""],
        [
            f"captured ({found.tier})",
            seconds_text(found.captured),
            f"{found.numpy / found.captured:.2f} times NumPy's speed",
        ],
    ]
    if found.tier == "numba":
        pays = f"pays after {found.pays_after} calls" if found.pays_after is not None else "does not pay"
        rows.append(["compiling", seconds_text(found.compiling), pays])
    rows.append(["largest difference", f"{found.apart:.2g}", "relative to the largest value"])
    return table("speed of the cell's value, without gradients", ("", "", ""), rows)
