"""What is moved, and its gradient: slopes of numbers as bars, vectors as columns that are dragged, matrices as cells."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tensormagic.notebook.live.plots.frame import Panel, Reading, Shape, coordinate, label, number, text
from tensormagic.notebook.live.ranges import Parameter, Span

ROW = 26.0  # of a bar
MIDDLE, HALF = 250.0, 120.0  # of bars
LEFT, ACROSS = 60.0, 404.0  # of columns
VALUES, SLOPES = (26.0, 120.0), (172.0, 64.0)  # top and height of the columns
GRID = (30.0, 210.0, 255.0)  # left edges of both grids of cells, and how wide and tall they may be
LARGEST, SMALLEST = 52.0, 4.0  # of a cell


@dataclass(frozen=True, eq=False)
class Bars(Panel):
    """The slope along each of some sliders, as a bar.

    Parameters
    ----------
    scale
        The largest slope along each.
    """

    scale: tuple[float, ...]

    kind = "bars"

    def marks(self, reading: Reading) -> list[Shape]:
        """Return a bar and a number for each."""
        return [s for row, k in enumerate(self.along) if reading.gradient for s in self._bar(row, reading.gradient[k])]

    def places(self) -> dict[str, Any]:
        """Return the data by which the page places marks."""
        return {"scale": list(self.scale), "row": ROW, "middle": MIDDLE, "half": HALF}

    def _bar(self, row: int, slope: float) -> list[Shape]:
        long = HALF * max(min(slope / self.scale[row], 1.0), -1.0)
        left = MIDDLE + min(long, 0.0)
        place: Shape = {"x": _n(left), "y": _n(32 + ROW * row), "width": _n(abs(long)), "height": _n(ROW - 8)}
        told = text(number(slope), MIDDLE + HALF + 10, 45 + ROW * row, "tick first far")
        return [{"tag": "rect", "class": "bar", **place}, told]


def bars(name: str, along: Sequence[int], spans: Sequence[Span], scale: Sequence[float]) -> Bars:
    """Bars for the slopes of ``name`` along some sliders."""
    tall = ROW * len(along) + 34
    shapes = [text(f"slope of {label(name, 200)} with respect to", 8, 16, "tick first top")]
    shapes += [text(label(spans[k].label, 100), 112, 45 + ROW * row, "tick last") for row, k in enumerate(along)]
    shapes.append({"tag": "path", "class": "axis", "d": f"M{_n(MIDDLE)} 26V{_n(tall - 6)}"})
    return Bars(tall, tuple(along), tuple(shapes), tuple(scale[k] for k in along))


@dataclass(frozen=True, eq=False)
class Columns(Panel):
    """A vector: a column for each of its numbers, and below it the slope along that.

    Parameters
    ----------
    y
        The range of the columns.
    scale
        The largest slope, or 0 where there are none.
    """

    y: tuple[float, float]
    scale: float

    kind = "columns"

    def marks(self, reading: Reading) -> list[Shape]:
        """Return each number, and each slope."""
        shapes: list[Shape] = []
        step = ACROSS / len(self.along)
        zero = self.up(min(max(0.0, self.y[0]), self.y[1]))
        for column, k in enumerate(self.along):
            left, wide = LEFT + step * (column + 0.15), step * 0.7
            up = self.up(reading.point[k])
            place = {"x": _n(left), "width": _n(wide)}
            shapes.append(
                {"tag": "rect", "class": "value", **place, "y": _n(min(up, zero)), "height": _n(abs(up - zero))}
            )
            shapes.append({"tag": "path", "class": "handle", "d": f"M{_n(left)} {_n(up)}h{_n(wide)}"})
            if reading.gradient and self.scale:
                long = SLOPES[1] / 2 * max(min(reading.gradient[k] / self.scale, 1.0), -1.0)
                top = SLOPES[0] + SLOPES[1] / 2 - max(long, 0.0)
                shapes.append({"tag": "rect", "class": "bar", **place, "y": _n(top), "height": _n(abs(long))})
        return shapes

    def places(self) -> dict[str, Any]:
        """Return the data by which the page places marks."""
        frame = [LEFT, ACROSS, *VALUES, *SLOPES]
        return {"frame": frame, "y": list(self.y), "scale": self.scale}

    def up(self, value: float) -> float:
        """Return how far from the top a number is."""
        return VALUES[0] + VALUES[1] * (1 - (value - self.y[0]) / (self.y[1] - self.y[0]))


def columns(
    name: str, parameter: Parameter, along: Sequence[int], spans: Sequence[Span], scale: Sequence[float]
) -> Columns:
    """Return a vector that is dragged, and the slopes of ``name`` along its numbers."""
    low, high = min(spans[k].low for k in along), max(spans[k].high for k in along)
    steepest = max((scale[k] for k in along), default=0.0) if scale else 0.0
    made = Columns(SLOPES[0] + SLOPES[1] + 26 if steepest else SLOPES[0] - 6, tuple(along), (), (low, high), steepest)
    step = ACROSS / len(along)
    up = made.up
    shapes = [text(label(parameter.name, 200, bold=True), LEFT, 14, "name first top")]
    for column, k in enumerate(along):
        top, bottom = up(spans[k].high), up(spans[k].low)
        place = {"x": _n(LEFT + step * (column + 0.15)), "y": _n(top)}
        shapes.append({"tag": "rect", "class": "track", **place, "width": _n(step * 0.7), "height": _n(bottom - top)})
    shapes += [text(number(v), LEFT - 8, up(v) + 4, "tick last") for v in dict.fromkeys((low, high))]
    if low < 0 < high:
        shapes.append(text("0", LEFT - 8, up(0.0) + 4, "tick last"))
        shapes.append({"tag": "path", "class": "axis", "d": f"M{_n(LEFT)} {_n(up(0.0))}h{_n(ACROSS)}"})
    every = max(len(along) // 16, 1)
    for column in range(0, len(along), every):
        shapes.append(text(str(column), LEFT + step * (column + 0.5), VALUES[0] + VALUES[1] + 15, "tick"))
    if steepest:
        middle = SLOPES[0] + SLOPES[1] / 2
        shapes.append({"tag": "path", "class": "axis", "d": f"M{_n(LEFT)} {_n(middle)}h{_n(ACROSS)}"})
        shapes.append(text("slope", LEFT - 8, middle + 4, "tick last spare"))
        told = f"slopes · a full bar is {number(float(f'{steepest:.3g}'))}"
        shapes.append(text(told, LEFT, SLOPES[0] + SLOPES[1] + 18, "tick first"))
    return Columns(made.tall, made.along, tuple(shapes), made.y, made.scale)


@dataclass(frozen=True, eq=False)
class Cells(Panel):
    """A matrix: its numbers on the left, the slopes along them on the right, deeper where they are larger.

    Parameters
    ----------
    grid
        How many rows and columns it has.
    most
        The largest number, without its sign, that its range allows.
    scale
        The largest slope, or 0 where there are none.
    """

    grid: tuple[int, int]
    most: float
    scale: float

    kind = "cells"

    @property
    def side(self) -> float:
        """Return the side of a cell."""
        return max(min(GRID[1] / self.grid[1], GRID[1] / self.grid[0], LARGEST), SMALLEST)

    def marks(self, reading: Reading) -> list[Shape]:
        """Return each number, and each slope."""
        numbers = [reading.point[k] for k in self.along]
        shapes = self._filled(GRID[0], numbers, self.most)
        if reading.gradient and self.scale:
            shapes += self._filled(GRID[2], [reading.gradient[k] for k in self.along], self.scale)
        return shapes

    def _filled(self, left: float, numbers: Sequence[float], most: float) -> list[Shape]:
        shapes: list[Shape] = []
        side, wide = self.side, self.grid[1]
        for k, value in enumerate(numbers):
            x, y = left + side * (k % wide), _TOP + side * (k // wide)
            share = min(abs(value) / most, 1.0)
            style = "minus" if value < 0 else "plus"
            gap = side * 0.08 if value < 0 else 0.0  # a smaller square says that it is negative
            place = {"x": _n(x + gap), "y": _n(y + gap), "width": _n(side - 2 * gap), "height": _n(side - 2 * gap)}
            shapes.append({"tag": "rect", "class": style, **place, "fill-opacity": f"{0.85 * share:.2f}"})
            if side >= _WORDS:
                shapes.append(text(short(value), x + side / 2, y + side / 2 + 4, "cell halo"))
        return shapes

    def places(self) -> dict[str, Any]:
        """Return the data by which the page places marks."""
        told = {"grid": list(self.grid), "most": self.most, "scale": self.scale, "side": self.side}
        return {**told, "lefts": [GRID[0], GRID[2]], "top": _TOP, "words": _WORDS}


_TOP = 26.0
_WORDS = 38.0  # the smallest cell that holds its number


def short(value: float) -> str:
    """Return a number of two digits."""
    return number(float(f"{value:.2g}"))


def cells(
    name: str, parameter: Parameter, along: Sequence[int], spans: Sequence[Span], scale: Sequence[float]
) -> Cells:
    """Return a matrix that is dragged, and the slopes of ``name`` along its numbers."""
    most = max(max(abs(spans[k].low), abs(spans[k].high)) for k in along)
    steepest = max((scale[k] for k in along), default=0.0) if scale else 0.0
    rows, wide = parameter.shape
    made = Cells(0.0, tuple(along), (), (rows, wide), most, steepest)
    tall = _TOP + made.side * rows + 26
    shapes = [text(label(parameter.name, 180, bold=True), GRID[0], 14, "name first top")]
    if steepest:
        shapes.append(text(f"slope of {label(name, 130)}", GRID[2], 14, "tick first top"))
    for left in GRID[0], *([GRID[2]] if steepest else []):
        place = {"x": _n(left), "y": _n(_TOP), "width": _n(made.side * wide), "height": _n(made.side * rows)}
        shapes.append({"tag": "rect", "class": "track", **place})
    return Cells(tall, made.along, tuple(shapes), made.grid, most, steepest)


_n = coordinate
