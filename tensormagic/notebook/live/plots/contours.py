"""Functions of two numbers: bands and lines of equal value, with the value written on the lines, and the gradient as an arrow."""

from __future__ import annotations

import base64
import math
import struct
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from tensormagic.notebook.live.plots.curves import dot, trail
from tensormagic.notebook.live.plots.finer import finer
from tensormagic.notebook.live.plots.frame import (
    LEFT,
    RIGHT,
    TOP,
    WIDE,
    Framed,
    Reading,
    Shape,
    axes,
    coordinate,
    label,
    number,
    range_of,
    text,
    ticks,
)
from tensormagic.notebook.live.ranges import Span
from tensormagic.notebook.live.sweep import Sweep
from tensormagic.notebook.pictures.labels import width

SQUARE = 378.0
SHORTEST, REACH = 32.0, 70.0  # of the shortest arrow and of the longest
LEVELS = 10
# levels that are added, at most; the share of the picture that lies between two; into how many parts the whole range may fall
_MORE, _WIDEST, _FINEST = 8, 0.2, 1000
_LINES, _BANDS = 81, 161  # points along each side: of the grid that lines go through, and of the bands' picture
_DEEPEST = 150  # of 255: how much of the colour the highest band has
_APART, _NEARER, _FURTHER = (
    44.0,
    26.0,
    110.0,
)  # between two written values; where there is no room; on more lines of a level
_BETWEEN, _ROW = 10.0, 18.0  # pixels between two written values that stand beside each other, and from row to row
_SHORTEST = 60.0  # of a line that has its value written on it
_CROSS = 6.0  # half the size of the cross at the lowest place
_INSIDE = 60.0  # from the left side, where narrow pages have the numbers of the axis
_SPECK = 4.0  # the length of a line that is not drawn


@dataclass(frozen=True, eq=False)
class Contour(Framed):
    """The contour lines of a function of two numbers, with a dot at the point and the gradient there.

    Parameters
    ----------
    steepest
        The length of the longest gradient along the axes, as drawn.
    """

    steepest: float

    kind = "contour"

    def marks(self, reading: Reading) -> list[Shape]:
        """Return the descent's steps, the arrow and the dot."""
        i, j = self.along
        x, y = self.place(reading.point[i], reading.point[j])
        shapes = trail([self.place(row[i], row[j]) for row in reading.path])
        if reading.gradient:
            slopes = (reading.gradient[i], reading.gradient[j])
            shapes.append({"tag": "path", "class": "arrow", "d": self._arrow((x, y), slopes)})
        return [*shapes, dot(x, y)]

    def places(self) -> dict[str, Any]:
        """Return the data by which the page places marks."""
        return {**super().places(), "steepest": self.steepest, "least": SHORTEST, "reach": REACH}

    def _arrow(self, place: tuple[float, float], slopes: Sequence[float]) -> str:
        """Return the gradient from the point, in the units of the axes: a descent leaves on the other side of it."""
        _, _, wide, tall = self.frame
        across = slopes[0] * wide / (self.x[1] - self.x[0])
        up = slopes[1] * tall / (self.y[1] - self.y[0])
        norm = math.hypot(across, up)
        if norm == 0:
            return ""
        long = SHORTEST + (REACH - SHORTEST) * min(norm / self.steepest, 1.0)
        u, v = across / norm, -up / norm
        x, y = place[0] + u * long, place[1] + v * long
        barbs = "".join(f"M{_n(x)} {_n(y)}l{_n(-8 * u - s * 4 * v)} {_n(-8 * v + s * 4 * u)}" for s in (1, -1))
        return f"M{_n(place[0])} {_n(place[1])}L{_n(x)} {_n(y)}{barbs}"


def contour(name: str, along: tuple[int, int], spans: Sequence[Span], sweep: Sweep) -> Contour:
    """Return the picture of a function in the plane of two numbers; its value is called ``name``."""
    low, high = range_of(sweep.values)
    x, y = ((s.low, s.high) for s in spans)
    made = Contour(SQUARE, along, (), x, y, 1.0)
    there = sweep.values[np.isfinite(sweep.values)]  # the smooth picture between these may go below the least
    least, most = (float(there.min()), float(there.max())) if there.size else (low, high)
    levels = [v for v in ticks(low, high) if max(low, least) < v < min(high, most)]
    levels = _divided(sorted({*levels, *((a + b) / 2 for a, b in pairwise(levels))})[: 2 * LEVELS], there)
    fine = finer(sweep, _LINES)
    ways = {level: found for level in levels if (found := _ways(made, fine, level))}
    lowest, cross = _lowest(made, fine) if ways else ([], [])
    written = _written(made, ways, cross)
    ways = {
        level: found for level, found in ways.items() if written[level]
    }  # a line whose number is nowhere says nothing
    levels = [level for level in levels if level in ways]
    lines: list[Shape] = [
        {"tag": "path", "class": "contour", "d": "".join(map(_path, found)), "inside": True} for found in ways.values()
    ]
    lowest = lowest if ways else []
    told = "bluer: larger" if ways else f"{label(name, 160)}: the same everywhere"
    told += " \N{MIDDLE DOT} \N{MULTIPLICATION SIGN} lowest here" if lowest else ""
    legend, below = [text(told, WIDE - RIGHT, TOP - 9, "tick last")], TOP + made.frame[3] + 53
    if len(levels) > 2 and np.ptp(np.diff(levels)) > 1e-9 * (most - least):
        legend.append(text("lines at unequal steps of the value", LEFT, below, "tick first odd"))
    if ways and sweep.slopes is not None:
        legend.append(text("\N{RIGHTWARDS ARROW} uphill, opposite to descent", WIDE - RIGHT, below, "tick last"))
    bands = [_bands(made, finer(sweep, _BANDS).values, levels)] if ways else []
    numbers = [shape for level in levels for shape in written[level]]
    shapes = (*bands, *lines, *lowest, *axes(made, spans[0].label, spans[1].label), *legend, *numbers)
    return Contour(SQUARE, along, shapes, made.x, made.y, _steepest(made, sweep))


def _divided(levels: Sequence[float], values: np.ndarray) -> list[float]:
    """Return the levels, with more of them where much of the picture lies between two, as in a valley below steep walls."""
    if not values.size:
        return list(levels)
    least, most = float(values.min()), float(values.max())
    ends = [least, *levels, most]
    found, whole = list(levels), set[tuple[float, float]]()  # what has no round number where it could be divided
    while len(found) < len(levels) + _MORE:
        shares = {(a, b): ((values > a) & (values <= b)).mean() for a, b in pairwise(ends) if (a, b) not in whole}
        low, high = max(shares, key=shares.__getitem__, default=(0.0, 0.0))
        if not shares or shares[low, high] <= max(_WIDEST, 2 / (len(ends) - 1)):
            break
        inside, apart = values[(values > low) & (values <= high)], (most - least) / _FINEST
        most_of = [float(v) for v in np.quantile(inside, [0.3, 0.7])]
        near, far = (min(max(v, low + apart), high - apart) for v in most_of)
        level = _roundest(max(near - apart, low + apart), min(far + apart, high - apart))
        if level is None or most_of[0] == most_of[1]:
            whole.add((low, high))
            continue
        found.append(level)
        ends = [least, *sorted(found), most]
    return sorted(found)


def _roundest(low: float, high: float) -> float | None:
    """Return the number between two that is written with the fewest digits, near the middle."""
    if not high - low > 1e-9 * max(abs(low), abs(high)):
        return None
    if low < 0 < high:
        return 0.0
    step = 10.0 ** math.floor(math.log10(max(abs(low), abs(high))))
    while True:
        for factor in (1.0, 0.5, 0.2):
            first, last = math.ceil(low / (step * factor)), math.floor(high / (step * factor))
            if first <= last:
                return (first + last) // 2 * (step * factor)
        step /= 10


def _steepest(made: Contour, sweep: Sweep) -> float:
    if sweep.slopes is None:
        return 1.0
    _, _, wide, tall = made.frame
    across = sweep.slopes[0] * (wide / (made.x[1] - made.x[0]))
    up = sweep.slopes[1] * (tall / (made.y[1] - made.y[0]))
    lengths = np.hypot(across, up)
    found = lengths[np.isfinite(lengths)]
    return float(found.max()) if found.size and found.max() > 0 else 1.0


# bands ----------------------------------------------------------------------------------------------------------------


def _bands(made: Contour, values: np.ndarray, levels: Sequence[float]) -> Shape:
    """Return a picture with a depth for each band between two levels: of any colour, so that a page's theme chooses that."""
    band = np.searchsorted(np.asarray(levels), values).astype(np.uint8)
    band[~np.isfinite(values)] = len(levels) + 1
    left, top, wide, tall = made.frame
    place = {"x": _n(left), "y": _n(top), "width": _n(wide), "height": _n(tall), "preserveAspectRatio": "none"}
    depths = [round(_DEEPEST * k / len(levels)) for k in range(len(levels) + 1)]
    return {"tag": "image", "class": "bands", **place, "inside": True, "href": _png(band.T[::-1], [*depths, 0])}


def _png(rows: np.ndarray, depths: Sequence[int]) -> str:
    """Return a matrix of small integers as a PNG in one blue with the given opacities."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    tall, wide = rows.shape
    raw = b"".join(b"\0" + row.tobytes() for row in np.ascontiguousarray(rows))
    data = (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", struct.pack(">IIBBBBB", wide, tall, 8, 3, 0, 0, 0))
        + chunk(b"PLTE", bytes(_BLUE) * len(depths))
        + chunk(b"tRNS", bytes(depths))
        + chunk(b"IDAT", zlib.compress(raw, 9))
        + chunk(b"IEND", b"")
    )
    return f"data:image/png;base64,{base64.b64encode(data).decode()}"


_BLUE = (0x2B, 0x8C, 0xC4)  # between the palette's two, for both themes

# lines ----------------------------------------------------------------------------------------------------------------

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


_Way = list[tuple[float, float]]
_Edge = tuple[int, int, int]  # of the grid: a corner, and 0 for the side to the right of it, 1 for the one above


def _ways(made: Contour, sweep: Sweep, level: float) -> list[_Way]:
    """Return the lines along which the value is ``level``, each from end to end, as places in the picture."""
    values = sweep.values - level
    above = (values > 0).astype(int)
    cases = above[:-1, :-1] + 2 * above[1:, :-1] + 4 * above[1:, 1:] + 8 * above[:-1, 1:]
    there = np.isfinite(values)
    there = there[:-1, :-1] & there[1:, :-1] & there[1:, 1:] & there[:-1, 1:]
    joined: dict[_Edge, list[_Edge]] = {}
    for i, j in np.argwhere(there & (cases > 0) & (cases < 15)).tolist():
        sides: tuple[_Edge, ...] = ((i, j, 0), (i + 1, j, 1), (i, j + 1, 0), (i, j, 1))
        for a, b in _CROSSED[int(cases[i, j])]:
            joined.setdefault(sides[a], []).append(sides[b])
            joined.setdefault(sides[b], []).append(sides[a])
    found = [[made.place(*_crossing(sweep, values, edge)) for edge in chain] for chain in _chains(joined)]
    return [way for way in found if _length(way) > _SPECK]


def _chains(joined: dict[_Edge, list[_Edge]]) -> list[list[_Edge]]:
    """Join edges into chains: open ones from their ends first, then closed ones."""
    chains: list[list[_Edge]] = []
    for start in sorted(joined, key=lambda edge: len(joined[edge])):
        while joined[start]:
            chain = [start]
            while joined[chain[-1]]:
                following = joined[chain[-1]].pop()
                joined[following].remove(chain[-1])
                chain.append(following)
            chains.append(chain)
    return chains


def _crossing(sweep: Sweep, values: np.ndarray, edge: _Edge) -> tuple[float, float]:
    """Return where the value is 0 on a side of a square, as if it were linear there."""
    i, j, up = edge
    k, m = (i, j + 1) if up else (i + 1, j)
    share = float(values[i, j] / (values[i, j] - values[k, m]))
    x, y = sweep.axes
    return float(x[i] + share * (x[k] - x[i])), float(y[j] + share * (y[m] - y[j]))


def _path(way: _Way) -> str:
    """Return a line, each place by how far it is from the one before, in tenths."""
    tenths = [(round(10 * x), round(10 * y)) for x, y in way]
    steps = "".join(f"l{_tenth(c - a)} {_tenth(d - b)}" for (a, b), (c, d) in pairwise(tenths))
    return f"M{_tenth(tenths[0][0])} {_tenth(tenths[0][1])}{steps}"


def _tenth(value: int) -> str:
    return f"{value / 10:g}"


def _written(
    made: Contour, ways: dict[float, list[_Way]], taken: Sequence[tuple[float, float, float]]
) -> dict[float, list[Shape]]:
    """Return the labels of the contour lines: one for each level, then more for long lines, far from each other.

    ``taken`` has the centres of everything else that is drawn, with half of their widths.
    """
    left, top, wide, tall = made.frame
    places: list[tuple[float, float, float]] = [*taken]
    shapes: dict[float, list[Shape]] = {level: [] for level in ways}

    def write(level: float, way: _Way, apart: float) -> bool:
        inner = [(x, y) for x, y in way if left + 24 < x < left + wide - 24 and top + 24 < y < top + tall - 12]
        half = width(number(level), 12) / 2
        free = [(x, y) for x, y in inner if all(_is_free((x, y), half, q, apart) for q in places)]
        if _length(way) < _SHORTEST or not free:
            return False
        x, y = free[len(free) // 2]
        places.append((x, y, half))
        shapes[level].append(text(number(level), x, y + 4, "tick halo spare" if x < left + _INSIDE else "tick halo"))
        return True

    for level, found in ways.items():
        way = max(found, key=_length)
        _ = write(level, way, _APART) or write(level, way, _NEARER)
    for level, found in ways.items():
        longest = max(found, key=_length)
        for way in found:
            if shapes[level] and way is not longest and _length(way) > 2 * _FURTHER:
                write(level, way, _FURTHER)
    return shapes


def _is_free(place: tuple[float, float], half: float, other: tuple[float, float, float], apart: float) -> bool:
    """Return whether a number that is so wide stands free of another one: far away, and not over it."""
    x, y, wide = other
    across, down = abs(place[0] - x), abs(place[1] - y)
    return math.hypot(across, down) > apart and (across > half + wide + _BETWEEN or down > _ROW)


def _lowest(made: Contour, sweep: Sweep) -> tuple[list[Shape], list[tuple[float, float, float]]]:
    """Return a cross where the value is lowest, if that is one place inside the picture; and the room that it takes."""
    values = np.where(np.isfinite(sweep.values), sweep.values, np.inf)
    i, j = (int(k) for k in np.unravel_index(np.argmin(values), values.shape))
    inside = 0 < i < values.shape[0] - 1 and 0 < j < values.shape[1] - 1
    around = values[i - 1 : i + 2, j - 1 : j + 2] if inside else values[:0]
    if not inside or not np.isfinite(around).all() or (values == values[i, j]).sum() > 1:
        return [], []
    x, y = made.place(float(sweep.axes[0][i]), float(sweep.axes[1][j]))
    way = "".join(f"M{_n(x - _CROSS)} {_n(y - s * _CROSS)}L{_n(x + _CROSS)} {_n(y + s * _CROSS)}" for s in (1, -1))
    return [{"tag": "path", "class": "lowest", "d": way, "inside": True}], [(x, y, _CROSS)]


def _length(way: _Way) -> float:
    return sum(math.dist(a, b) for a, b in pairwise(way))


_n = coordinate
