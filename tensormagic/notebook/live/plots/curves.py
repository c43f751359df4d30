"""Functions of one number: the curve with its tangent; the dot and the steps of a descent, which contours have too."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from tensormagic.notebook.live.plots.frame import (
    Framed,
    Reading,
    Shape,
    axes,
    coordinate,
    height,
    label,
    legend,
    near,
    range_of,
)
from tensormagic.notebook.live.ranges import Span
from tensormagic.notebook.live.sweep import Sweep

TALL = 278.0


@dataclass(frozen=True, eq=False)
class Curve(Framed):
    """The curve of a function of one number, with a dot and a tangent."""

    kind = "curve"

    def marks(self, reading: Reading) -> list[Shape]:
        """Return the descent's steps, the tangent and the dot."""
        k = self.along[0]
        x, value = reading.point[k], reading.chosen
        shapes = trail([self.place(row[k], row[-1]) for row in reading.path])
        if not math.isfinite(value):
            return shapes
        if reading.gradient:
            slope = reading.gradient[k]
            (x1, y1), (x2, y2) = (self.place(end, value + slope * (end - x)) for end in self.x)
            way = f"M{_n(x1)} {_n(y1)}L{_n(x2)} {_n(y2)}"
            shapes.append({"tag": "path", "class": "tangent", "d": way, "inside": True})
        across, up = self.place(x, value)
        return [*shapes, {**dot(across, near(up, TALL)), "inside": True}]


def dot(x: float, y: float) -> Shape:
    """Return where one is."""
    return {"tag": "circle", "class": "dot", "cx": _n(x), "cy": _n(y), "r": "6"}


def trail(places: Sequence[tuple[float, float]]) -> list[Shape]:
    """Return the steps of a descent, joined."""
    ends = [f"{_n(x)} {_n(near(y, TALL))}" for x, y in places]
    ways = (("trail", "".join(f"{'L' if k else 'M'}{end}" for k, end in enumerate(ends))),
            ("trail steps", "".join(f"M{end}h0" for end in ends)))  # fmt: skip
    return [{"tag": "path", "class": style, "d": way, "inside": True} for style, way in ways if places]


def curve(name: str, span: Span, sweep: Sweep) -> Curve:
    """Return the picture of a function of one number, whose value is called ``name``."""
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
    told = legend(made, f"tangent: slope in {label(span.label, 80)}") if sweep.slopes is not None else []
    return Curve(TALL, (0,), (*axes(made, span.label, height(name)), *told, line), made.x, made.y)


_n = coordinate
