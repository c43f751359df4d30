"""Functions of one number and of two: the curve with its tangent, contours with the gradient's arrow, and descents on both."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from tensormagic.notebook.live.plots.frame import (
    RIGHT,
    TOP,
    WIDE,
    Framed,
    Reading,
    Shape,
    axes,
    coordinate,
    label,
    legend,
    near,
    number,
    range_of,
    text,
    ticks,
)
from tensormagic.notebook.live.ranges import Span
from tensormagic.notebook.live.sweep import Sweep

__all__ = ["Contour", "Curve", "contour", "curve"]

TALL, SQUARE = 260.0, 360.0
REACH = 60.0  # of the longest arrow
LEVELS = 10


@dataclass(frozen=True, eq=False)
class Curve(Framed):
    """The curve of a function of one number, with a dot and a tangent."""

    kind = "curve"

    def marks(self, reading: Reading) -> list[Shape]:
        """The descent's steps, the tangent and the dot."""
        k = self.along[0]
        x, value = reading.point[k], reading.chosen
        shapes = _trail([self.place(row[k], row[-1]) for row in reading.path])
        if not math.isfinite(value):
            return shapes
        if reading.gradient:
            slope = reading.gradient[k]
            (x1, y1), (x2, y2) = (self.place(end, value + slope * (end - x)) for end in self.x)
            way = f"M{_n(x1)} {_n(y1)}L{_n(x2)} {_n(y2)}"
            shapes.append({"tag": "path", "class": "tangent", "d": way, "inside": True})
        across, up = self.place(x, value)
        return [*shapes, {**_dot(across, near(up, TALL)), "inside": True}]


@dataclass(frozen=True, eq=False)
class Contour(Framed):
    """Lines along which a function of two numbers stays the same, with a dot and the gradient.

    Parameters
    ----------
    steepest
        The longest gradient, by how the value grows along the picture.
    """

    steepest: float

    kind = "contour"

    def marks(self, reading: Reading) -> list[Shape]:
        """The descent's steps, the arrow and the dot."""
        i, j = self.along
        x, y = self.place(reading.point[i], reading.point[j])
        shapes = _trail([self.place(row[i], row[j]) for row in reading.path])
        if reading.gradient:
            slopes = (reading.gradient[i], reading.gradient[j])
            shapes.append({"tag": "path", "class": "arrow", "d": self._arrow((x, y), slopes)})
        return [*shapes, _dot(x, y)]

    def places(self) -> dict[str, Any]:
        """What the page places marks by."""
        return {**super().places(), "steepest": self.steepest, "reach": REACH}

    def _arrow(self, place: tuple[float, float], slopes: Sequence[float]) -> str:
        """From the point in the direction in which the value grows fastest along the picture."""
        _, _, wide, tall = self.frame
        across = slopes[0] * (self.x[1] - self.x[0]) / wide
        up = slopes[1] * (self.y[1] - self.y[0]) / tall
        norm = math.hypot(across, up)
        if norm == 0:
            return ""
        long = 10 + (REACH - 10) * min(norm / self.steepest, 1.0)
        u, v = across / norm, -up / norm
        x, y = place[0] + u * long, place[1] + v * long
        barbs = "".join(f"M{_n(x)} {_n(y)}l{_n(-8 * u - s * 4 * v)} {_n(-8 * v + s * 4 * u)}" for s in (1, -1))
        return f"M{_n(place[0])} {_n(place[1])}L{_n(x)} {_n(y)}{barbs}"


def _dot(x: float, y: float) -> Shape:
    return {"tag": "circle", "class": "dot", "cx": _n(x), "cy": _n(y), "r": "6"}


def _trail(places: Sequence[tuple[float, float]]) -> list[Shape]:
    """The steps of a descent, joined."""
    ends = [f"{_n(x)} {_n(near(y, SQUARE))}" for x, y in places]
    ways = (("trail", "".join(f"{'L' if k else 'M'}{end}" for k, end in enumerate(ends))),
            ("trail steps", "".join(f"M{end}h0" for end in ends)))  # fmt: skip
    return [{"tag": "path", "class": style, "d": way, "inside": True} for style, way in ways if places]


def curve(name: str, span: Span, sweep: Sweep) -> Curve:
    """The picture of a function of one number, whose value is called ``name``."""
    made = Curve(TALL, (0,), (), (span.low, span.high), range_of(sweep.values))
    points = [(*made.place(x, y), math.isfinite(y)) for x, y in zip(sweep.axes[0], sweep.values, strict=True)]
    if span.whole:
        way = "".join(f"M{_n(x)} {_n(near(y, TALL))}h0" for x, y, there in points if there)
    else:
        way, drawing = "", False
        for x, y, there in points:
            way += f"{'L' if drawing else 'M'}{_n(x)} {_n(near(y, TALL))}" if there else ""
            drawing = there
    line = {"tag": "path", "class": "curve dots" if span.whole else "curve", "d": way, "inside": True}
    told = legend(made, f"slope in {label(span.label, 80)}") if sweep.slopes is not None else []
    return Curve(TALL, (0,), (*axes(made, span.label, name), *told, line), made.x, made.y)


# contours -------------------------------------------------------------------------------------------------------------


def contour(name: str, along: tuple[int, int], spans: Sequence[Span], sweep: Sweep) -> Contour:
    """The picture of a function in the plane of two numbers; its value is called ``name``."""
    low, high = range_of(sweep.values)
    x, y = ((s.low, s.high) for s in spans)
    made = Contour(SQUARE, along, (), x, y, 1.0)
    levels = [v for v in ticks(low, high) if low < v < high]
    levels = sorted({*levels, *((a + b) / 2 for a, b in pairwise(levels))})[: 2 * LEVELS]
    shapes = axes(made, spans[0].label, spans[1].label)
    paths = {level: path for level in levels if (path := _level(made, sweep, level))}
    levels = list(paths)
    for k, path in enumerate(paths.values()):
        strength = f"{0.25 + 0.75 * (k + 1) / len(levels):.2f}"
        shapes.insert(0, {"tag": "path", "class": "contour", "d": path, "stroke-opacity": strength, "inside": True})
    told = f"{label(name, 120)}: "
    told += f"lines from {number(levels[0])} (faint) to {number(levels[-1])}" if levels else "the same everywhere"
    shapes.append(text(told, WIDE - RIGHT, TOP + made.frame[3] + 35, "tick last"))
    return Contour(SQUARE, along, tuple(shapes), made.x, made.y, _steepest(made, sweep))


def _steepest(made: Contour, sweep: Sweep) -> float:
    if sweep.slopes is None:
        return 1.0
    _, _, wide, tall = made.frame
    across = sweep.slopes[0] * ((made.x[1] - made.x[0]) / wide)
    up = sweep.slopes[1] * ((made.y[1] - made.y[0]) / tall)
    lengths = np.hypot(across, up)
    found = lengths[np.isfinite(lengths)]
    return float(found.max()) if found.size and found.max() > 0 else 1.0


# which sides of a square a line crosses, by the corners that are above the level: 1, 2, 4, 8 from (0, 0) around
_CROSSED = {
    1: ((3, 0),),
    2: ((0, 1),),
    3: ((3, 1),),
    4: ((1, 2),),
    5: ((3, 2), (0, 1)),
    6: ((0, 2),),
    7: ((3, 2),),
    8: ((2, 3),),
    9: ((2, 0),),
    10: ((0, 3), (1, 2)),
    11: ((2, 1),),
    12: ((1, 3),),
    13: ((1, 0),),
    14: ((0, 3),),
}


def _level(made: Contour, sweep: Sweep, level: float) -> str:
    """The line along which the value is ``level``, square by square of the grid."""
    values = sweep.values - level
    above = (values > 0).astype(int)
    cases = above[:-1, :-1] + 2 * above[1:, :-1] + 4 * above[1:, 1:] + 8 * above[:-1, 1:]
    there = np.isfinite(values)
    there = there[:-1, :-1] & there[1:, :-1] & there[1:, 1:] & there[:-1, 1:]
    path: list[str] = []
    for i, j in np.argwhere(there & (cases > 0) & (cases < 15)):
        corners = ((i, j), (i + 1, j), (i + 1, j + 1), (i, j + 1))
        for a, b in _CROSSED[int(cases[i, j])]:
            (x1, y1), (x2, y2) = (
                made.place(*_crossing(sweep, values, corners[s], corners[(s + 1) % 4])) for s in (a, b)
            )
            path.append(f"M{_n(x1)} {_n(y1)}L{_n(x2)} {_n(y2)}")
    return "".join(path)


def _crossing(sweep: Sweep, values: np.ndarray, a: tuple[int, int], b: tuple[int, int]) -> tuple[float, float]:
    """Where the value is 0 between two corners, as if it were linear there."""
    share = float(values[a] / (values[a] - values[b]))
    x, y = sweep.axes
    return float(x[a[0]] + share * (x[b[0]] - x[a[0]])), float(y[a[1]] + share * (y[b[1]] - y[a[1]]))


_n = coordinate
