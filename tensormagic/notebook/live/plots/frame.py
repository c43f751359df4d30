"""What every part of a live view's picture is made of: a frame with axes, shapes that stay, marks that follow the point.

The page draws the shapes as they are, and the marks itself while one drags; in a static picture Python draws the marks once.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tensormagic.notebook.pictures.labels import clean, shorten

WIDE = 480.0
LEFT, TOP, RIGHT, BOTTOM = 60.0, 26.0, 16.0, 58.0
_HIGH, _LOW = 24.0, 6.0  # from the sides of a frame on a narrow page, where a number would be cut, or stand on others
_FARTHEST = 1e307  # differences of drawn values have to be finite
_NAME = 170.0  # pixels of a name above a side
_LISTED = 6  # numbers of an array in one line of text
Shape = dict[str, Any]


@dataclass(frozen=True, eq=False)
class Reading:
    """The value and its slopes at the sliders' positions.

    Parameters
    ----------
    point
        One number for each slider.
    value
        The value, a number or an array.
    slopes
        The slope of each of its elements along each slider; None if there is no derivative.
    element
        The selected element of the value, by its flat index.
    history
        The values seen so far, this one included.
    path
        The points of the last descent, one in each row, followed by the value there.
    focus
        The slider that was moved last.
    """

    point: tuple[float, ...]
    value: np.ndarray
    slopes: np.ndarray | None
    element: int = 0
    history: tuple[float, ...] = ()
    path: np.ndarray = field(default_factory=lambda: np.zeros((0, 0)))
    focus: int = 0

    @property
    def chosen(self) -> float:
        """Return the element that is looked at."""
        return float(self.value.ravel()[self.element])

    @property
    def fallen(self) -> tuple[float, ...]:
        """Return the values along the descent that ended at this point; empty if the point was moved since."""
        ends_here = len(self.path) and tuple(self.path[-1, :-1].tolist()) == self.point
        return tuple(self.path[:, -1].tolist()) if ends_here else ()

    @property
    def gradient(self) -> list[float]:
        """Return the slopes of that element; empty if one of them is not finite."""
        if self.slopes is None:
            return []
        found = self.slopes.reshape(len(self.point), -1)[:, self.element].tolist()
        return found if all(map(math.isfinite, found)) else []


@dataclass(frozen=True, eq=False)
class Panel:
    """One part of the picture.

    Parameters
    ----------
    tall
        Its height; the width is always the same.
    along
        Which sliders it shows.
    shapes
        What stays.
    """

    tall: float
    along: tuple[int, ...]
    shapes: tuple[Shape, ...]

    kind = ""

    def marks(self, reading: Reading) -> list[Shape]:
        """Return the marks that follow the point."""
        del reading
        return []

    def places(self) -> dict[str, Any]:
        """Return the data by which the page places marks."""
        return {}

    def message(self) -> dict[str, Any]:
        """Return the message for the page."""
        told = {"kind": self.kind, "wide": WIDE, "tall": self.tall, "along": list(self.along)}
        return {**told, **self.places(), "shapes": list(self.shapes)}


@dataclass(frozen=True, eq=False)
class Framed(Panel):
    """A part with a frame, and numbers along its sides."""

    x: tuple[float, float]
    y: tuple[float, float]

    @property
    def frame(self) -> tuple[float, float, float, float]:
        """Return left, top, width and height of the frame in the picture."""
        return LEFT, TOP, WIDE - LEFT - RIGHT, self.tall - TOP - BOTTOM

    def place(self, x: float, y: float) -> tuple[float, float]:
        """Return where a pair of numbers is in the picture."""
        left, top, wide, tall = self.frame
        across = (x - self.x[0]) / (self.x[1] - self.x[0])
        up = (y - self.y[0]) / (self.y[1] - self.y[0])
        return left + wide * across, top + tall * (1 - up)

    def places(self) -> dict[str, Any]:
        """Return the data by which the page places marks."""
        return {"frame": list(self.frame), "x": list(self.x), "y": list(self.y)}


def number(value: float) -> str:
    """Return a number for people: six digits, and a minus that Python reads, as everywhere."""
    return f"{value or 0.0:.6g}"  # zero has no sign


def listed(value: np.ndarray) -> str:
    """Return a number, or the first few of an array."""
    if not value.ndim:
        return number(float(value))
    found = value.ravel().tolist()
    shape = f" of shape {value.shape}" if value.ndim > 1 else ""
    return f"[{', '.join(map(number, found[:_LISTED]))}{', …' * (len(found) > _LISTED)}]{shape}"


def indexed(name: str) -> str:
    """Return a name or an expression, as it stands before an index."""
    try:
        whole = isinstance(ast.parse(name, mode="eval").body, ast.Name | ast.Attribute | ast.Subscript | ast.Call)
    except SyntaxError:  # one that is cut, or made of words
        whole = name.replace("_", "").isalnum()
    return name if whole else f"({name})"


def coordinate(value: float) -> str:
    """Return a place in the picture."""
    return f"{value:.1f}".removesuffix(".0")


def near(y: float, tall: float) -> float:
    """Return a place that is at most a little outside the picture."""
    return min(max(y, -2 * tall), 3 * tall)


def label(words: str, wide: float, *, bold: bool = False) -> str:
    """Return a name of the user's, as short as there is room."""
    return shorten(clean(words, 60), wide, 12, bold=bold)


def text(words: str, x: float, y: float, style: str) -> Shape:
    """Return words at a place."""
    return {"tag": "text", "class": style, "x": coordinate(x), "y": coordinate(y), "text": words}


def range_of(values: np.ndarray) -> tuple[float, float]:
    """Return the range of a frame: all values, or nearly all where a few are far from the others."""
    found = values[np.isfinite(values)].clip(-_FARTHEST, _FARTHEST)
    if not found.size:
        return 0.0, 1.0
    low, high = float(found.min()), float(found.max())
    inner_low, inner_high = (float(v) for v in np.quantile(found, [0.05, 0.95]))
    inner = inner_high - inner_low
    low, high = max(low, inner_low - 3 * inner), min(high, inner_high + 3 * inner)
    room = (high - low) * 0.06
    if not room > abs(high) * 1e-12:  # the same everywhere, as far as can be seen
        room = abs(high) * 0.5 or 1.0
    return low - room, high + room


def axes(made: Framed, across: str, up: str) -> list[Shape]:
    """Return the axes of a frame, with ticks at round numbers and labels."""
    left, top, wide, tall = made.frame
    n = coordinate
    shapes: list[Shape] = [{"tag": "path", "class": "axis", "d": f"M{n(left)} {n(top)}v{n(tall)}h{n(wide)}"}]
    for k, x in enumerate(ticks(*made.x)):
        at = made.place(x, made.y[0])
        shapes.append({"tag": "path", "class": "axis", "d": f"M{n(at[0])} {n(at[1])}v4"})
        shapes.append(
            text(number(x), at[0], at[1] + 17, "tick odd" if k % 2 else "tick")
        )  # narrow pages leave the odd ones out
    for y in ticks(*made.y):
        at = made.place(made.x[0], y)
        shapes.append({"tag": "path", "class": "grid", "d": f"M{n(at[0])} {n(at[1])}h{n(wide)}"})
        cut = at[1] < top + _HIGH or at[1] > top + tall - _LOW
        shapes.append(
            text(number(y), left - 6, at[1] + 4, "tick last up odd halo" if cut else "tick last up halo")
        )  # and have these inside
    shapes.append(text(label(across, 300, bold=True), left + wide / 2, top + tall + 35, "name"))
    shapes.append(text(label(up, _NAME, bold=True), left, top - 9, "name first"))
    return shapes


def height(name: str) -> str:
    """Return the label of the vertical axis: the value's name, or "value" for an expression that is too long."""
    return name if name.isidentifier() or label(name, _NAME, bold=True) == name else "value"


def legend(made: Framed, words: str) -> list[Shape]:
    """What the dashed line in a frame means, below the frame at the right: the words before the sample, so that they have room to grow."""
    left, top, wide, tall = made.frame
    y = top + tall + 49
    sample = {"tag": "path", "class": "key", "d": f"M{coordinate(left + wide - 24)} {coordinate(y)}h24"}
    return [sample, text(words, left + wide - 32, y + 4, "tick last ahead")]


def ticks(low: float, high: float) -> list[float]:
    """Return four to eight round numbers."""
    step = 10.0 ** math.floor(math.log10(high - low))
    step *= next(f for f in (0.2, 0.5, 1.0, 2.0) if (high - low) / (step * f) <= 7)
    first = math.ceil(low / step - 1e-9)
    return [k * step + 0.0 for k in range(first, first + 10) if k * step <= high + 1e-9 * step]


def squares(places: Sequence[tuple[float, float]], side: float) -> str:
    """Return a path of squares with these corners."""
    n = coordinate
    return "".join(f"M{n(x)} {n(y)}h{n(side)}v{n(side)}h{n(-side)}z" for x, y in places)
