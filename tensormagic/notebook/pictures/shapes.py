"""Shape the box of a vertex: its outline, its lines of text and their size.

It knows single vertices, nothing of edges or places.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from tensormagic.notebook.pictures.labels import SYMBOLS, clean, placeholders, shorten, width, wrapped

if TYPE_CHECKING:
    from tensormagic.notebook.pictures.scene import Vertex


WIDEST = 190.0
WIDEST_NAME = 260.0  # of a name with its formula, and of a sentence on traffic
OUTLINES = {  # what outlines and colours mean, by kind
    "input": "input",
    "constant": "constant",
    "pointwise": "element by element",
    "fold": "along an axis",
    "move": "moves elements",
    "update": "stores into a copy",
    "contract": "products summed",
    "opaque": "library call",
    "region": "inner graph",
    "output": "result",
    "sent": "what moves, and how many bytes in this call",
}
# style: (font size in pixels, height of the line, bold)
STYLES = {
    "name": (14.0, 18.0, True),
    "op": (14.0, 18.0, False),
    "symbol": (20.0, 21.0, False),
    "value": (12.0, 15.0, False),
    "type": (12.0, 15.0, False),
    "tag": (12.0, 15.0, False),
}
# kind: (space at both sides, and above and below the text)
_PADDING = {
    "input": (14, 5),
    "constant": (7, 3),
    "fold": (20, 5),
    "contract": (20, 5),
    "opaque": (16, 5),
    "region": (14, 8),
    "output": (16, 7),
    "sent": (10, 7),
}
_SYMBOLS = frozenset(SYMBOLS.values())


@dataclass(frozen=True)
class Text:
    """One line of text, centred; `y` is its baseline from the middle of the box."""

    text: str
    style: str
    y: float


@dataclass(frozen=True)
class Face:
    """What a box looks like: its size, an SVG path around its middle, and its lines of text."""

    width: float
    height: float
    path: str
    texts: tuple[Text, ...]


def vertex_face(vertex: Vertex, note: str = "") -> Face:
    """Return the face of a vertex, with a `note` below its own lines."""
    label = vertex.title
    if vertex.kind in {"input", "output", "sent"}:
        lines = [(label, "name"), (vertex.type, "type")]
    elif vertex.kind == "constant":
        lines = [(label, "value"), (vertex.type if "[" in vertex.type else "", "type")]
    else:
        lines = [
            (label, "symbol" if label in _SYMBOLS else "name" if vertex.name else "op"),
            (vertex.type, "type"),
            (_tag(vertex), "tag"),
            (note, "tag"),
        ]
    return _face(vertex.kind, tuple(lines))


def group_face(title: str, note: str, listed: str) -> Face:
    """Return the face of a closed group."""
    return _face("group", ((title, "name"), (note, "type"), (listed, "tag")))


def mark(vertex: Vertex) -> str:
    """Return the sign of a vertex that belongs to a derivative: ∂ for an adjoint, d for a tangent."""
    return {"adjoint": "∂", "tangent": "d"}.get("adjoint" if vertex.derived else vertex.role, "")


def describe(vertex: Vertex) -> str:
    """Return a vertex described in one line: label, type, role, source line, kernel."""
    told = [vertex.title, "" if vertex.label in vertex.title else vertex.label, vertex.type]
    told.append(vertex.role if vertex.role != "value" else "")
    told.append(f"{vertex.cell} line {vertex.line}".strip() if vertex.line is not None else "")
    told.append(f"kernel {vertex.kernel}" if vertex.kernel is not None else "")
    told.append("runs in NumPy" if vertex.yellow else "")
    told += [vertex.place, vertex.meaning]
    return ", ".join(clean(part, 120) for part in told if part)


def _tag(vertex: Vertex) -> str:
    rule = vertex.role.removeprefix("rewritten by ")
    letters = placeholders(rule, "for any {}").replace(" ", "\N{NO-BREAK SPACE}")
    told = [", ".join(filter(None, [f"rule {rule}", letters]))] if rule != vertex.role else []
    return " · ".join([*told, *(["NumPy"] if vertex.yellow else [])])


def _rows(text: str, style: str) -> list[tuple[str, str]]:
    """Return a text as lines: what a rule is called may need two or three."""
    rows = wrapped(clean(text), WIDEST, STYLES[style][0]) if style == "tag" else [text]
    return [(row, style) for row in (rows if len(rows) < 3 else [*rows[:2], " ".join(rows[2:])])]


@lru_cache(maxsize=1024)  # the views of a cell show the same boxes
def _face(kind: str, lines: tuple[tuple[str, str], ...]) -> Face:
    aside, above = _PADDING.get(kind, (11, 5))
    texts: list[tuple[str, str]] = []
    wide = tall = 0.0
    for text, style in (row for one in lines for row in _rows(*one)):
        size, line, bold = STYLES[style]
        is_name = kind == "sent" or style in {"name", "op", "symbol"}
        shown = shorten(text, WIDEST_NAME if is_name else WIDEST, size, bold=bold)
        if shown:
            texts.append((shown, style))
            wide = max(wide, width(shown, size, bold=bold))
            tall += line
    across = max(44.0 if kind != "constant" else 24.0, 4.0 * math.ceil((wide + 2 * aside) / 4))
    height = tall + 2 * above
    y = -tall / 2
    placed: list[Text] = []
    for text, style in texts:
        line = STYLES[style][1]
        placed.append(Text(text, style, round(y + line * 0.76, 1)))
        y += line
    return Face(across, height, outline(kind, across, height), tuple(placed))


_ROUND = 30.0  # at most, so that text stays inside a high shape


def outline(kind: str, wide: float, tall: float) -> str:
    """Return the SVG path of a kind's outline, of that size, around the origin."""
    x, y = wide / 2, tall / 2
    if kind == "input":
        return _rounded(x, y, min(y, _ROUND))
    if kind == "output":
        return _rounded(x, y, min(y, _ROUND)) + _rounded(x - 3, y - 3, min(y - 3, _ROUND))
    if kind == "fold":  # wide above, narrow below: many become few
        return _polygon((-x, -y), (x, -y), (x - 11, y), (-x + 11, y))
    if kind == "sent":  # points to where it goes
        return _polygon((-x, -y), (x, -y), (x, y - 7), (0, y), (-x, y - 7))
    if kind == "contract":
        return _polygon((-x, 0), (-x + 11, -y), (x - 11, -y), (x, 0), (x - 11, y), (-x + 11, y))
    if kind == "update":  # a sheet with a corner cut
        return _polygon((-x, -y), (x - 9, -y), (x, -y + 9), (x, y), (-x, y))
    if kind == "opaque":  # bars at the sides
        return (
            _polygon((-x, -y), (x, -y), (x, y), (-x, y))
            + f"M{_n(-x + 6)} {_n(-y)}V{_n(y)}M{_n(x - 6)} {_n(-y)}V{_n(y)}"
        )
    if kind == "region":
        return _rounded(x, y, 3) + _rounded(x - 3.5, y - 3.5, 2)
    if kind == "group":  # sheets behind the first
        edge = f"M{_n(-x + 6)} {_n(y)}v3h{_n(2 * x - 3)}V{_n(-y + 6)}h-3V{_n(y - 4)}l-4 4Z"
        return _rounded(x, y, 5) + edge
    return _rounded(x, y, {"constant": 2, "move": 7}.get(kind, 7))


def _n(value: float) -> str:
    return f"{value:.1f}".rstrip("0").rstrip(".")


def _polygon(*points: tuple[float, float]) -> str:
    return "M" + "L".join(f"{_n(x)} {_n(y)}" for x, y in points) + "Z"


def _rounded(x: float, y: float, r: float) -> str:
    r = min(r, x, y)
    arc = f"a{_n(r)} {_n(r)} 0 0 1"
    wide, tall = _n(2 * (x - r)), _n(2 * (y - r))
    return (
        f"M{_n(-x + r)} {_n(-y)}h{wide}{arc} {_n(r)} {_n(r)}v{tall}{arc} {_n(-r)} {_n(r)}"
        f"h-{wide}{arc} {_n(-r)} {_n(-r)}v-{tall}{arc} {_n(r)} {_n(-r)}Z"
    )
