"""A view laid out: boxes in rows, groups with pictures of their own inside, and the way of every link.

Places only: colours, markup and pages are not its business, nor how the places were found.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from tensormagic.notebook.pictures.shapes import Face, mark

if TYPE_CHECKING:
    from tensormagic.notebook.pictures.scene import Vertex

__all__ = ["HEAD", "Box", "Inside", "Picture", "Route", "Span"]

HEAD = 22.0  # for the title of an open group


@dataclass(frozen=True)
class Inside:
    """What a group holds: its size when open, its title when open, and its picture (None where it is too large)."""

    title: str
    is_open: bool
    width: float
    height: float
    picture: Picture | None


@dataclass(frozen=True)
class Box:
    """One box: a vertex, a group, or (with neither) a port where a link enters or leaves a group; `x` is its middle."""

    key: str
    row: int
    x: float
    face: Face
    vertex: Vertex | None = None
    inside: Inside | None = None
    result: bool = False

    @property
    def width(self) -> float:
        """The width as drawn at first."""
        return self.inside.width if self.inside is not None and self.inside.is_open else self.face.width

    @property
    def height(self) -> float:
        """The height as drawn at first."""
        return self.inside.height if self.inside is not None and self.inside.is_open else self.face.height

    @property
    def is_open(self) -> bool:
        """Whether the box is a group drawn open."""
        return self.inside is not None and self.inside.is_open

    @property
    def is_closed(self) -> bool:
        """Whether the box is a group drawn closed."""
        return self.inside is not None and not self.inside.is_open

    def touch(self, offset: float) -> float:
        """Return where a link touches: a closed group is narrower than the open one."""
        return offset * 0.9 * self.face.width / self.inside.width if self.inside and self.is_closed else offset


@dataclass(frozen=True)
class Route:
    """The way of one link: from box to box by index, and the x of its bends row by row.

    `leaves` and `enters` are where it touches, from the middle of the box (of a group: of the open group).
    """

    source: int
    target: int
    leaves: float
    enters: float
    bends: tuple[float, ...]
    carries: str = ""  # the key of the vertex whose value it carries, where the source is a group
    many: bool = False  # stands for all the links of two closed groups


@dataclass(frozen=True)
class Span:
    """The top and the bottom of a row."""

    top: float
    bottom: float


@dataclass(frozen=True)
class Picture:
    """Boxes and routes, with the free height below each row."""

    boxes: tuple[Box, ...]
    routes: tuple[Route, ...]
    gaps: tuple[float, ...]

    @cached_property
    def width(self) -> float:
        """The width, from 0."""
        ends = [box.x + box.width / 2 for box in self.boxes] + [x for route in self.routes for x in route.bends]
        return max(ends, default=0.0)

    @property
    def height(self) -> float:
        """The height, from 0."""
        return self.rows[-1].bottom if self.boxes else 0.0

    @cached_property
    def rows(self) -> list[Span]:
        """The rows from top to bottom, as high as their highest box."""
        heights = [0.0] * (len(self.gaps) + 1)
        for box in self.boxes:
            heights[box.row] = max(heights[box.row], box.height)
        spans: list[Span] = []
        top = 0.0
        for height, gap in zip(heights, (*self.gaps, 0.0), strict=True):
            spans.append(Span(top, top + height))
            top += height + gap
        return spans

    def drawn(self) -> list[Route]:
        """The routes, with those between two closed groups drawn as one."""
        closed = [box.is_closed for box in self.boxes]
        count = Counter((route.source, route.target) for route in self.routes)
        kept: list[Route] = []
        seen: set[tuple[int, int]] = set()
        for route in self.routes:
            pair = (route.source, route.target)
            if not (closed[route.source] and closed[route.target]) or count[pair] == 1:
                kept.append(route)
            elif pair not in seen:
                seen.add(pair)
                kept.append(Route(*pair, 0.0, 0.0, route.bends, route.carries, many=True))
        return kept

    def message(self, table: dict[Vertex, int], shapes: dict[str, int]) -> dict[str, Any]:
        """Return the picture as JSON data; vertices and outlines are entered into the tables and named by number."""
        return {
            "boxes": [_box_message(box, table, shapes) for box in self.boxes],
            "routes": [
                [r.source, r.target, round(r.leaves, 1), round(r.enters, 1), list(r.bends), *filter(None, [r.carries])]
                for r in self.routes
            ],
            "gaps": list(self.gaps),
        }


def _box_message(box: Box, table: dict[Vertex, int], shapes: dict[str, int]) -> dict[str, Any]:
    message: dict[str, Any] = {"k": box.key, "r": box.row, "x": box.x, "w": box.face.width, "h": box.face.height}
    if box.face.path:
        message["s"] = shapes.setdefault(box.face.path, len(shapes))
        message["t"] = [[text.text, text.style, text.y] for text in box.face.texts]
    if box.vertex is not None:
        message["v"] = table.setdefault(box.vertex, len(table))
        message |= {"m": mark(box.vertex)} if mark(box.vertex) else {}
        message |= {"z": 1} if box.result else {}
    if box.inside is not None:
        inside = box.inside
        message["g"] = {
            "title": inside.title,
            "open": inside.is_open,
            "w": inside.width,
            "h": inside.height,
            "picture": inside.picture.message(table, shapes) if inside.picture else None,
        }
    return message
