"""Functions that give arrays: a vector as a line, a matrix as a heat map; and the values that were seen."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tensormagic.notebook.live.plots.frame import (
    LEFT,
    RIGHT,
    WIDE,
    Framed,
    Panel,
    Reading,
    Shape,
    axes,
    coordinate,
    height,
    label,
    legend,
    near,
    number,
    range_of,
    squares,
    text,
)
from tensormagic.notebook.live.ranges import Span
from tensormagic.notebook.live.sweep import largest

TALL = 278.0
AHEAD = 0.05  # of a range: how far the dashed line is ahead of a vector
DOTS = 40  # the longest vector whose elements are dots
LEVELS = 12  # of depth, of positive and of negative numbers
SIDE = 205.0  # of a heat map
LEFTS, HEAD = (30.0, 255.0), 26.0  # of both heat maps
STRIP = 84.0  # the history's height


@dataclass(frozen=True, eq=False)
class Line(Framed):
    """The elements of a vector, one after another, and where they go.

    Parameters
    ----------
    ahead
        How far along each slider the dashed line looks.
    at
        Where each element stands along the axis, if that does not count them.
    labels
        What the sliders are called.
    """

    ahead: tuple[float, ...]
    at: tuple[float, ...] = ()
    labels: tuple[str, ...] = ()

    kind = "line"

    def marks(self, reading: Reading) -> list[Shape]:
        """Return the line, the dashed line that a move along the first slider leads to, and the element that is looked at."""
        values = reading.value
        shapes: list[Shape] = []
        if reading.slopes is not None:
            there = values + reading.slopes[reading.focus] * self.ahead[reading.focus]
            shapes.append({"tag": "path", "class": "ghost", "d": self._way(there), "inside": True})
        shapes.append({"tag": "path", "class": "curve", "d": self._way(values), "inside": True})
        if values.size <= DOTS:
            shapes.append({"tag": "path", "class": "curve dots", "d": self._way(values, dots=True), "inside": True})
        if math.isfinite(reading.chosen):
            x, y = self.place(self.across(reading.element), reading.chosen)
            shapes.append(
                {"tag": "circle", "class": "dot", "cx": _n(x), "cy": _n(near(y, TALL)), "r": "6", "inside": True}
            )
        return shapes

    def across(self, element: int) -> float:
        """Return the position of an element along the axis."""
        return self.at[element] if self.at else float(element)

    def _way(self, values: np.ndarray, *, dots: bool = False) -> str:
        way, drawing = "", False
        for k, value in enumerate(values.tolist()):
            there = math.isfinite(value)
            if there:
                x, y = self.place(self.across(k), value)
                way += f"{'L' if drawing and not dots else 'M'}{_n(x)} {_n(near(y, TALL))}{'h0' if dots else ''}"
            drawing = there
        return way

    def places(self) -> dict[str, Any]:
        """Return the data by which the page places marks."""
        return {
            **super().places(),
            "ahead": list(self.ahead),
            "dots": DOTS,
            "at": list(self.at),
            "labels": list(self.labels),
        }


def line(
    name: str,
    spans: Sequence[Span],
    values: np.ndarray,
    count: int,
    axis: tuple[str, Sequence[float]] = ("", ()),
    *,
    slopes: bool = True,
) -> Line:
    """Return the picture of a vector of ``count`` elements, in the range of ``values``; over the numbers of an ``axis`` with a name."""
    ahead = tuple((s.high - s.low) * AHEAD for s in spans)
    along = tuple(range(len(spans)))
    across, at = axis
    x = (-0.5, count - 0.5) if count <= DOTS else (0.0, count - 1.0)
    if len(at) == count and min(at) < max(at):
        x = (min(at), max(at))
    else:
        across, at = "element", ()
    made = Line(TALL, along, (), x, range_of(values), ahead, tuple(at))
    labels = tuple(label(span.label, 80) for span in spans)
    told = legend(made, f"with a larger {labels[0]}") if slopes else []
    return Line(TALL, along, (*axes(made, across, height(name)), *told), made.x, made.y, ahead, made.at, labels)


@dataclass(frozen=True, eq=False)
class Heat(Panel):
    """A heat map of a matrix and of its slopes along a slider, darker for larger numbers.

    Parameters
    ----------
    grid
        The numbers of rows and columns.
    scales
        The largest absolute element, and the largest absolute slope along each slider.
    labels
        The names of the sliders.
    """

    grid: tuple[int, int]
    scales: tuple[float, ...]
    labels: tuple[str, ...]

    kind = "heat"

    @property
    def side(self) -> float:
        """Return the side of a cell."""
        return SIDE / max(self.grid)

    def marks(self, reading: Reading) -> list[Shape]:
        """Return both maps, and the mark of the element in focus."""
        shapes = self._map(LEFTS[0], reading.value, self.scales[0])
        if reading.slopes is not None:
            k = reading.focus
            shapes += self._map(LEFTS[1], reading.slopes[k], self.scales[k + 1])
            told = f"slope in {self.labels[k]}, to {rounded(self.scales[k + 1])}"
            shapes.append(text(told, LEFTS[1], 16, "tick first top"))
        row, column = divmod(reading.element, self.grid[1])
        for left in LEFTS if reading.slopes is not None else LEFTS[:1]:
            place = {"x": _n(left + self.side * column), "y": _n(HEAD + self.side * row)}
            shapes.append({"tag": "rect", "class": "chosen", **place, "width": _n(self.side), "height": _n(self.side)})
        return shapes

    def _map(self, left: float, values: np.ndarray, most: float) -> list[Shape]:
        """Return one path for each colour; negative elements are drawn as smaller squares."""
        found: dict[int, list[tuple[float, float]]] = {}
        for (row, column), value in np.ndenumerate(values):
            if math.isfinite(value):
                depth = math.ceil(min(abs(value) / most, 1.0) * LEVELS)
                place = (left + self.side * column, HEAD + self.side * row)
                found.setdefault(depth if value >= 0 else -depth, []).append(place)
        gap = self.side * 0.15
        return [
            {
                "tag": "path",
                "class": "minus" if depth < 0 else "plus",
                "d": squares([(x + gap, y + gap) for x, y in places], self.side - 2 * gap)
                if depth < 0
                else squares(places, self.side),
                "fill-opacity": f"{0.9 * abs(depth) / LEVELS:.2f}",
            }
            for depth, places in sorted(found.items())
            if depth
        ]

    def places(self) -> dict[str, Any]:
        """Return the data by which the page places marks."""
        told = {
            "grid": list(self.grid),
            "scales": list(self.scales),
            "side": self.side,
            "levels": LEVELS,
            "labels": list(self.labels),
        }
        return {**told, "lefts": list(LEFTS), "head": HEAD}


def heat(
    name: str, spans: Sequence[Span], values: np.ndarray, grid: tuple[int, int], slopes: np.ndarray | None
) -> Heat:
    """Return the picture of a matrix, in the range of ``values``; ``slopes`` are those at the start."""
    most = largest(values)
    along = tuple(range(len(spans)))
    scales = (most, *([] if slopes is None else [largest(s) for s in slopes]))
    labels = tuple(label(s.label, 90) for s in spans)
    made = Heat(0.0, along, (), grid, scales, labels)
    tall = HEAD + made.side * grid[0] + 26
    shapes = [text(label(name, 200, bold=True), LEFTS[0], 16, "name first top")]
    shapes.append(text(f"small squares: negative; up to {rounded(most)}", LEFTS[0], tall - 8, "tick first"))
    for left in LEFTS if slopes is not None else LEFTS[:1]:
        place = {"x": _n(left), "y": _n(HEAD), "width": _n(made.side * grid[1]), "height": _n(made.side * grid[0])}
        shapes.append({"tag": "rect", "class": "track", **place})
    return Heat(tall, along, tuple(shapes), grid, scales, labels)


def rounded(value: float) -> str:
    """Return a number of three digits."""
    return number(float(f"{value:.3g}"))


@dataclass(frozen=True, eq=False)
class History(Panel):
    """The values seen so far; during a descent only its own, until something else is moved."""

    kind = "history"

    def marks(self, reading: Reading) -> list[Shape]:
        """Return the values as a line, how many they are, and the least and the greatest at its side."""
        seen = reading.fallen or reading.history
        there = [v for v in seen if math.isfinite(v)]
        if len(there) < 2:
            return []
        low, high = min(there), max(there)
        left, top, wide, tall = _STRIP
        way, drawing = "", False
        for k, value in enumerate(seen):
            x = left + wide * k / (len(seen) - 1)
            if math.isfinite(value):
                y = top + tall * (1 - ((value - low) / (high - low) if high > low else 0.5))
                way += f"{'L' if drawing else 'M'}{_n(x)} {_n(y)}"
            drawing = math.isfinite(value)
        told = f"descent: {len(seen) - 1} steps" if reading.fallen else f"{len(seen)} values so far"
        ends = [(high, top), (low, top + tall)] if high > low else [(low, top + tall / 2)]
        return [
            {"tag": "path", "class": "seen", "d": way},
            *(text(rounded(v), left - 6, y + 4, "tick last up halo") for v, y in ends),
            text(f"{told}, from left to right", left + wide / 2, STRIP - 6, "tick"),
        ]

    def places(self) -> dict[str, Any]:
        """Return the data by which the page places marks."""
        return {"frame": list(_STRIP)}


_STRIP = (LEFT, 24.0, WIDE - LEFT - RIGHT, 36.0)


def history() -> History:
    """Return the strip of values."""
    left, top, wide, tall = _STRIP
    shapes: list[Shape] = [
        {"tag": "path", "class": "axis", "d": f"M{_n(left)} {_n(top)}v{_n(tall)}h{_n(wide)}"},
        text("the value so far", left, 14, "name first"),
    ]
    return History(STRIP, (), tuple(shapes))


_n = coordinate
