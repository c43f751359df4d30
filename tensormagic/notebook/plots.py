"""Pictures of a sweep: the curve with its tangent, contours with the gradient's arrow, or bars. It knows numbers, and no widgets.

A picture is a list of shapes, which the page draws as they are, and marks, which follow the point: the page draws these itself
while it is dragged, and :func:`svg` draws them once.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any
from xml.sax.saxutils import escape, quoteattr

import numpy as np

from tensormagic.notebook.pictures.labels import clean, shorten
from tensormagic.notebook.pictures.palette import DARK, FONT, LIGHT
from tensormagic.notebook.sweep import Span, Sweep

__all__ = ["Plot", "number", "plot", "styled", "svg"]

WIDE, TALL, SQUARE = 480.0, 260.0, 360.0
LEFT, TOP, RIGHT, BOTTOM = 60.0, 12.0, 16.0, 40.0
ROW = 26.0  # of a bar
REACH = 60.0  # of the longest arrow
LEVELS = 10
_FARTHEST = 1e307  # differences of what is drawn have to be finite
Shape = dict[str, Any]


@dataclass(frozen=True)
class Plot:
    """What is drawn of a sweep.

    Parameters
    ----------
    kind
        ``curve`` of one number, ``contour`` of two, ``bars`` of more.
    tall
        The height; the width is always the same.
    x, y
        The ranges that the frame shows.
    scale
        The longest gradient, as it is drawn; for bars the largest slope in each direction.
    shapes
        What stays.
    """

    kind: str
    tall: float
    x: tuple[float, float]
    y: tuple[float, float]
    scale: tuple[float, ...]
    shapes: tuple[Shape, ...]

    @property
    def frame(self) -> tuple[float, float, float, float]:
        """Left, top, width and height of the frame in the picture."""
        return LEFT, TOP, WIDE - LEFT - RIGHT, self.tall - TOP - BOTTOM

    def place(self, x: float, y: float) -> tuple[float, float]:
        """Where a pair of numbers is in the picture."""
        left, top, wide, tall = self.frame
        across = (x - self.x[0]) / (self.x[1] - self.x[0])
        up = (y - self.y[0]) / (self.y[1] - self.y[0])
        return left + wide * across, top + tall * (1 - up)

    def message(self) -> dict[str, Any]:
        """What the page is told."""
        return {
            "kind": self.kind,
            "wide": WIDE,
            "tall": self.tall,
            "frame": list(self.frame),
            "x": list(self.x),
            "y": list(self.y),
            "scale": list(self.scale),
            "reach": REACH,
            "row": ROW,
            "shapes": list(self.shapes),
        }


def number(value: float) -> str:
    """A number for people: six digits."""
    return f"{value:.6g}".replace("-", "\N{MINUS SIGN}", 1) if value < 0 else f"{value:.6g}"


def plot(name: str, spans: Sequence[Span], sweep: Sweep) -> Plot:
    """The picture of a sweep over these spans; ``name`` is what the value is called."""
    if len(spans) == 1:
        return _curve(name, spans[0], sweep)
    if len(spans) == 2:
        return _contour(name, spans, sweep)
    scale = tuple(_largest(s) for s in sweep.slopes) if sweep.slopes is not None else ()
    tall = ROW * len(spans) + 34 if scale else 4.0
    shapes = (
        [_text(f"slope of {shorten(clean(name, 60), 200, 12)} with respect to", 8, 16, "tick first")] if scale else []
    )
    for k, span in enumerate(spans if scale else ()):
        shapes.append(_text(shorten(clean(span.label, 60), 100, 12), 112, 45 + ROW * k, "tick last"))
    if scale:
        shapes.append({"tag": "path", "class": "axis", "d": f"M{_n(_MIDDLE)} 26V{_n(tall - 6)}"})
    return Plot("bars", tall, (0.0, 1.0), (0.0, 1.0), scale, tuple(shapes))


_MIDDLE, _HALF = 250.0, 120.0  # of bars


def _largest(values: np.ndarray) -> float:
    found = np.abs(values[np.isfinite(values)])
    return float(found.max()) if found.size and found.max() > 0 else 1.0


# curves ---------------------------------------------------------------------------------------------------------------


def _curve(name: str, span: Span, sweep: Sweep) -> Plot:
    low, high = _range(sweep.values)
    made = Plot("curve", TALL, (span.low, span.high), (low, high), (), ())
    points = [(*made.place(x, y), math.isfinite(y)) for x, y in zip(sweep.axes[0], sweep.values, strict=True)]
    if span.whole:
        markup = "".join(f"M{_n(x)} {_n(_near(y))}h0" for x, y, there in points if there)
    else:
        markup, drawing = "", False
        for x, y, there in points:
            markup += f"{'L' if drawing else 'M'}{_n(x)} {_n(_near(y))}" if there else ""
            drawing = there
    curve = {"tag": "path", "class": "curve dots" if span.whole else "curve", "d": markup, "inside": True}
    shapes = (*_axes(made, span.label, name), curve)
    return Plot("curve", TALL, made.x, made.y, (), shapes)


def _near(y: float) -> float:
    """A place that is at most a little outside the picture."""
    return min(max(y, -2 * TALL), 3 * TALL)


def _range(values: np.ndarray) -> tuple[float, float]:
    """What the frame shows: all values, or nearly all where a few are far from the others."""
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


def _axes(made: Plot, across: str, up: str) -> list[Shape]:
    left, top, wide, tall = made.frame
    shapes: list[Shape] = [{"tag": "path", "class": "axis", "d": f"M{_n(left)} {_n(top)}v{_n(tall)}h{_n(wide)}"}]
    for x in _ticks(*made.x):
        at = made.place(x, made.y[0])
        shapes.append({"tag": "path", "class": "axis", "d": f"M{_n(at[0])} {_n(at[1])}v4"})
        shapes.append(_text(number(x), at[0], at[1] + 17, "tick"))
    for y in _ticks(*made.y):
        at = made.place(made.x[0], y)
        shapes.append({"tag": "path", "class": "grid", "d": f"M{_n(at[0])} {_n(at[1])}h{_n(wide)}"})
        shapes.append(_text(number(y), left - 6, at[1] + 4, "tick last"))
    shapes.append(_text(shorten(clean(across, 60), 130, 12, bold=True), left, top + tall + 35, "name first"))
    shapes.append(_text(shorten(clean(up, 60), 300, 12, bold=True), left + 6, top + 10, "name first halo"))
    return shapes


def _ticks(low: float, high: float) -> list[float]:
    """Round numbers, four to eight of them."""
    step = 10.0 ** math.floor(math.log10(high - low))
    step *= next(f for f in (0.2, 0.5, 1.0, 2.0) if (high - low) / (step * f) <= 7)
    first = math.ceil(low / step - 1e-9)
    return [k * step + 0.0 for k in range(first, first + 10) if k * step <= high + 1e-9 * step]


# contours -------------------------------------------------------------------------------------------------------------


def _contour(name: str, spans: Sequence[Span], sweep: Sweep) -> Plot:
    low, high = _range(sweep.values)
    x, y = ((s.low, s.high) for s in spans)
    made = Plot("contour", SQUARE, x, y, (), ())
    levels = [v for v in _ticks(low, high) if low < v < high]
    levels = sorted({*levels, *((a + b) / 2 for a, b in pairwise(levels))})[: 2 * LEVELS]
    shapes = _axes(made, spans[0].label, spans[1].label)
    paths = {level: path for level in levels if (path := _level(made, sweep, level))}
    levels = list(paths)
    for k, path in enumerate(paths.values()):
        strength = 0.25 + 0.75 * (k + 1) / len(levels)
        shapes.insert(
            0, {"tag": "path", "class": "contour", "d": path, "stroke-opacity": f"{strength:.2f}", "inside": True}
        )
    told = f"{shorten(clean(name, 60), 120, 11)}: "
    told += f"lines from {number(levels[0])} (faint) to {number(levels[-1])}" if levels else "the same everywhere"
    shapes.append(_text(told, WIDE - RIGHT, TOP + made.frame[3] + 35, "tick last"))
    return Plot("contour", SQUARE, made.x, made.y, (_steepest(made, sweep),), tuple(shapes))


def _steepest(made: Plot, sweep: Sweep) -> float:
    """The longest gradient, by how the value grows along the picture."""
    if sweep.slopes is None:
        return 1.0
    _, _, wide, tall = made.frame
    across = sweep.slopes[0] * ((made.x[1] - made.x[0]) / wide)
    up = sweep.slopes[1] * ((made.y[1] - made.y[0]) / tall)
    return _largest(np.hypot(across, up))


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


def _level(made: Plot, sweep: Sweep, level: float) -> str:
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


# marks ----------------------------------------------------------------------------------------------------------------


def _marks(made: Plot, point: Sequence[float], value: float, gradient: Sequence[float] | None) -> list[Shape]:
    """What follows the point: its place, with the tangent or the arrow; or bars."""
    slopes = [] if gradient is None or not all(map(math.isfinite, gradient)) else list(gradient)
    if made.kind == "bars":
        return [s for k, g in enumerate(slopes) for s in _bar(k, g, made.scale[k])]
    at = (point[0], value) if made.kind == "curve" else (point[0], point[1])
    if not all(map(math.isfinite, at)):
        return []
    x, y = made.place(*at)
    y = _near(y)
    shapes: list[Shape] = []
    if slopes and made.kind == "curve":
        (x1, y1), (x2, y2) = (made.place(end, value + slopes[0] * (end - point[0])) for end in made.x)
        shapes.append({"tag": "path", "class": "tangent", "d": f"M{_n(x1)} {_n(y1)}L{_n(x2)} {_n(y2)}", "inside": True})
    if slopes and made.kind == "contour":
        shapes.append({"tag": "path", "class": "arrow", "d": _arrow(made, (x, y), slopes)})
    dot: Shape = {"tag": "circle", "class": "dot", "cx": _n(x), "cy": _n(y), "r": "6"}
    return [*shapes, {**dot, "inside": True} if made.kind == "curve" else dot]


def _arrow(made: Plot, place: tuple[float, float], slopes: Sequence[float]) -> str:
    """From the point in the direction in which the value grows fastest along the picture."""
    _, _, wide, tall = made.frame
    across = slopes[0] * (made.x[1] - made.x[0]) / wide
    up = slopes[1] * (made.y[1] - made.y[0]) / tall
    norm = math.hypot(across, up)
    if norm == 0:
        return ""
    long = 10 + (REACH - 10) * min(norm / made.scale[0], 1.0)
    u, v = across / norm, -up / norm
    x, y = place[0] + u * long, place[1] + v * long
    barbs = "".join(f"M{_n(x)} {_n(y)}l{_n(-8 * u - s * 4 * v)} {_n(-8 * v + s * 4 * u)}" for s in (1, -1))
    return f"M{_n(place[0])} {_n(place[1])}L{_n(x)} {_n(y)}{barbs}"


def _bar(row: int, slope: float, scale: float) -> list[Shape]:
    long = _HALF * max(min(slope / scale, 1.0), -1.0)
    left = _MIDDLE + min(long, 0.0)
    place: Shape = {"x": _n(left), "y": _n(32 + ROW * row), "width": _n(abs(long)), "height": _n(ROW - 8)}
    told = _text(number(slope), _MIDDLE + _HALF + 10, 45 + ROW * row, "tick first")
    return [{"tag": "rect", "class": "bar", **place}, told]


# drawing --------------------------------------------------------------------------------------------------------------


def svg(made: Plot, title: str, point: Sequence[float], value: float, gradient: Sequence[float] | None) -> str:
    """The picture at one point, as an SVG that stands alone."""
    shapes = [*made.shapes, *_marks(made, point, value, gradient)]
    left, top, wide, tall = (_n(v) for v in made.frame)
    inner = "".join(_drawn(s) for s in shapes if s.get("inside"))
    outer = "".join(_drawn(s) for s in shapes if not s.get("inside"))
    clipped = (
        f'<svg x="{left}" y="{top}" width="{wide}" height="{tall}" viewBox="{left} {top} {wide} {tall}">{inner}</svg>'
    )
    head = 24.0
    size = (
        f'width="{_n(WIDE)}" height="{_n(made.tall + head)}" viewBox="0 {_n(-head)} {_n(WIDE)} {_n(made.tall + head)}"'
    )
    style = (
        f"{_PLAIN}\n{_rules(LIGHT.__getitem__)}\n@media (prefers-color-scheme:dark){{\n{_rules(DARK.__getitem__)}\n}}"
    )
    heading = (
        f'<text class="name first" x="8" y="-6">{escape(shorten(clean(title, 300), WIDE - 16, 13, bold=True))}</text>'
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" style="max-width:100%;height:auto">\n'
        f"<title>{escape(clean(title, 300))}</title>\n<style>{style}</style>\n"
        f'<rect class="ground" y="{_n(-head)}" width="100%" height="100%" rx="6" fill="#ffffff"/>\n'
        f"{heading}{outer}{clipped if inner else ''}\n</svg>\n"
    )


def _rules(colour: Callable[[str], str]) -> str:
    """The rules that use colours; ``colour`` writes the colour of a name."""
    return "\n".join(
        (
            f".ground{{fill:{colour('ground')}}}",
            f"text{{fill:{colour('ink')}}}",
            f".tick{{fill:{colour('soft')}}}",
            f".halo{{stroke:{colour('ground')}}}",
            f".axis{{stroke:{colour('edge')}}}",
            f".grid{{stroke:{colour('edge')}}}",
            f".curve,.contour{{stroke:{colour('strong')}}}",
            f".tangent,.arrow{{stroke:{colour('update-line')}}}",
            f".dot{{fill:{colour('update-line')};stroke:{colour('ground')}}}",
            f".bar{{fill:{colour('update-line')}}}",
        )
    )


_PLAIN = f"""text{{font-family:{FONT};font-size:12px;text-anchor:middle;unicode-bidi:plaintext}}
.name{{font-weight:700}}
.first{{text-anchor:start}}
.last{{text-anchor:end}}
.halo{{stroke-width:4px;paint-order:stroke;stroke-linejoin:round}}
.axis,.grid,.curve,.contour,.tangent,.arrow{{fill:none}}
.grid{{stroke-opacity:.25}}
.curve{{stroke-width:2.2;stroke-linejoin:round}}
.dots{{stroke-width:7;stroke-linecap:round}}
.contour{{stroke-width:1.5;stroke-linecap:round}}
.tangent{{stroke-width:2;stroke-dasharray:7 4}}
.arrow{{stroke-width:2.6;stroke-linecap:round}}
.dot{{stroke-width:1.5}}"""


def styled(scope: str) -> str:
    """The style sheet of such pictures inside ``scope`` of a page."""
    text = f"{_PLAIN}\n{_rules(lambda name: f'var(--tm-{name})')}"
    lines = (line.split("{", 1) for line in text.splitlines())
    return "\n".join(",".join(f"{scope} {part}" for part in places.split(",")) + "{" + body for places, body in lines)


def _text(text: str, x: float, y: float, style: str) -> Shape:
    return {"tag": "text", "class": style, "x": _n(x), "y": _n(y), "text": text}


def _drawn(shape: Shape) -> str:
    given = {k: v for k, v in shape.items() if k not in {"tag", "text", "inside"}}
    attributes = "".join(f" {k}={quoteattr(str(v))}" for k, v in given.items())
    return f"<{shape['tag']}{attributes}>{escape(shape.get('text', ''))}</{shape['tag']}>"


def _n(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")
