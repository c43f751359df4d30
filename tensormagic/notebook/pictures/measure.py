"""Measure nodes when the graph is opened: bytes, NumPy's time, and statistics of the values."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from tensormagic.ir.graph import Graph
from tensormagic.ir.node import Node, topological
from tensormagic.notebook.pictures.inside import Inside
from tensormagic.notebook.pictures.scope import short
from tensormagic.notebook.pictures.views import computes, kind_of
from tensormagic.notebook.pictures.watching import Enough, is_region
from tensormagic.ops.effects.telling import silently

Measured = dict[Any, dict[str, Any]]  # by nodes; of nodes inside loops, branches and calls by their places

LONGEST = 1.5  # seconds of NumPy's time that may be spent
MOST_ELEMENTS = 1 << 20  # of a value that are looked at
MOST_HEAT = 1_024  # elements of an array that is shown as a heat map
WIDEST_HEAT = 64
BINS = 16
QUICK, AGAIN = 1e-3, 4  # what took less seconds is timed so often again; the least is told
_PURE = frozenset({"pointwise", "fold", "contract"})  # kinds of operations that do nothing but compute


def measure(
    graphs: Iterable[Graph], parameters: Mapping[Node, Any], number: Callable[[Any], int]
) -> tuple[Measured, str]:
    """Compute the graphs in NumPy, node by node, and record the time and value of each.

    Parameters
    ----------
    graphs
        Graphs over the same parameters.
    parameters
        The values of the parameters.
    number
        Evaluates a symbolic size.

    Returns
    -------
    tuple
        The measurements by node, inside regions by place, and a sentence on nodes that were not measured.
    """
    order = topological([result for graph in graphs for result in graph.results])
    uses = Counter(arg for node in order for arg in node.args)
    measuring = _Measuring({node: parameters[node] for node in order if node in parameters}, number)
    values = measuring.values
    note = ""
    with np.errstate(all="ignore"), silently():
        measuring.found |= {node: summary(value) for node, value in values.items()}
        for node in order:
            if node in values or any(arg not in values for arg in node.args):
                continue
            try:
                measuring.node(node)
            except Enough:
                note = (
                    f"The values further down were not computed: for this picture that takes more than {LONGEST:g} s."
                )
                break
            except Exception as error:  # noqa: BLE001 (a value that cannot be had is not shown; its cell says why)
                note = note or f"Some values could not be computed: {type(error).__name__}"
                continue
            for arg in node.args:
                uses[arg] -= 1
                if not uses[arg]:
                    values.pop(arg, None)
    return measuring.found, " ".join(filter(None, [note, measuring.inside.note]))


class _Measuring:
    """The values computed so far, and the notes on nodes."""

    def __init__(self, values: dict[Node, Any], number: Callable[[Any], int]) -> None:
        self.values = values
        self.number = number
        self.found: Measured = {}
        self.inside = Inside(number, summary)
        self.end = time.perf_counter() + LONGEST

    def node(self, node: Node) -> None:
        """Compute a node, and tell of it."""
        operands = [self.values[arg] for arg in node.args]
        begin = time.perf_counter()
        if begin > self.end:
            raise Enough
        if is_region(node):
            self._region(node, operands)
            return
        value = node.op.evaluate(node, operands, self.number)
        elapsed = time.perf_counter() - begin
        computed = computes(kind_of(node))
        for _ in range(
            AGAIN if elapsed < QUICK and kind_of(node) in _PURE else 0
        ):  # the first run is slower than others
            begin = time.perf_counter()
            node.op.evaluate(node, operands, self.number)
            elapsed = min(elapsed, time.perf_counter() - begin)
        self.found[node] = summary(value) | ({"seconds": float(f"{elapsed:.3g}")} if computed else {})
        self.values[node] = value

    def _region(self, node: Node, operands: Sequence[Any]) -> None:
        left = self.inside.left
        region = self.inside.region(node, operands, max(self.end, time.perf_counter() + LONGEST))
        self.end += left - self.inside.left  # what looking costs has a limit of its own
        self.found |= region.inside
        if not region.whole:
            self.found[node] = {"ran": region.told.get("ran", "")}
            raise Enough
        self.found[node] = summary(region.value) | region.told
        self.values[node] = region.value


def summary(value: Any) -> dict[str, Any]:
    """Tell of a value its bytes, extremes, how many are nan or infinite, a histogram, and of a small array each element.

    >>> told = summary(np.array([[1.0, np.nan], [3.0, 2.0]]))
    >>> told["bytes"], told["min"], told["max"], told["nan"], told["heat"]
    (32, '1', '3', 1, [2, 2, '00..ff80'])
    """
    if isinstance(value, tuple | list):
        return {"bytes": sum(np.asarray(part).nbytes for part in value)}
    array = np.asarray(value)
    told: dict[str, Any] = {"bytes": array.nbytes}
    if array.dtype.kind not in "biufc" or not array.size:
        return told
    if not array.ndim:
        return told | {"value": short(array)} | ({"nan": 1} if array.dtype.kind in "fc" and np.isnan(array) else {})
    step = -(-array.size // MOST_ELEMENTS)
    flat = array.reshape(-1) if step == 1 else array.flat[::step]  # a broadcast is not to be written out
    told |= {"value": short(array, 6), **({"of": int(flat.size)} if step > 1 else {})}
    plain = np.abs(flat) if array.dtype.kind == "c" else flat.astype(np.float64)
    finite = np.isfinite(plain)
    told |= {"nan": int(np.isnan(plain).sum()), "inf": int(np.isinf(plain).sum())}
    numbers = plain[finite]
    if not numbers.size:
        return told
    low, high = float(numbers.min()), float(numbers.max())
    told |= {"min": f"{low:.4g}", "max": f"{high:.4g}", "mean": f"{_mean(numbers):.4g}"}
    if (
        told["min"] == told["max"] and numbers.size == plain.size > 1
    ):  # a picture of these would be of rounding, or one grey
        return told | {"same": "all equal to" if low == high else "all equal to four digits,"}
    with np.errstate(all="ignore"):
        if numbers.size > 1 and high > low and np.isfinite((high - low) / BINS):
            told["bars"] = _bars(numbers, low, high)
        shape = array.shape if array.ndim == 2 else (1, array.size)
        if array.ndim <= 2 and array.size <= MOST_HEAT and max(shape) <= WIDEST_HEAT and array.size > 1:
            told["heat"] = [*shape, _heat(plain, finite, low, high)]
    return told


def _mean(numbers: np.ndarray[Any, Any]) -> float:
    with np.errstate(all="ignore"):
        return float(numbers.mean())


def _bars(numbers: np.ndarray[Any, Any], low: float, high: float) -> Sequence[int]:
    places = ((numbers - low) * (BINS / (high - low))).astype(np.int64)
    return [int(count) for count in np.bincount(np.minimum(places, BINS - 1), minlength=BINS)]


def _heat(plain: np.ndarray[Any, Any], finite: np.ndarray[Any, Any], low: float, high: float) -> str:
    """Return two hex digits for each element, from 00, the smallest, to ff, the largest, or two dots for non-finite ones."""
    span = high / 2 - low / 2  # halves do not overflow
    shares = (np.where(finite, plain, low) / 2 - low / 2) / span if span > 0 else np.full(plain.shape, 0.5)
    scaled = np.where(finite, shares * 255, 0.0)
    return "".join(f"{round(v):02x}" if f else ".." for v, f in zip(scaled.tolist(), finite.tolist(), strict=True))
