"""A view laid out: boxes in rows, groups with pictures of their own inside, and the path of every link.

It holds places only, no colours or markup, and does not compute the layout.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from tensormagic.notebook.pictures.labels import width
from tensormagic.notebook.pictures.returning import lanes_width
from tensormagic.notebook.pictures.shapes import Face, mark

if TYPE_CHECKING:
    from tensormagic.notebook.pictures.scene import Vertex


COLLAPSE_ABOVE = 200  # a view of more vertices starts as groups
HEAD = 22.0  # for the title of an open group
MOST_LINES = 500  # of one group that are told to a page


@dataclass(frozen=True)
class Opened:
    """An open group: its picture and size, and where links enter and leave it.

    `enters` and `leaves` give offsets from the middle, by the key of the vertex whose value is passed; other links
    touch the border at the same relative position as that of the closed group.
    """

    picture: Picture
    width: float
    height: float
    enters: Mapping[str, float]
    leaves: Mapping[str, float]


@dataclass(frozen=True)
class Inside:
    """The contents of a group.

    Parameters
    ----------
    title : str
        Its title when open.
    is_open : bool
        Whether it is open at first.
    later : callable
        Lays out the contents.
    holds : frozenset of str
        The keys of all vertices inside, in nested groups too.
    lines : tuple of int
        The source lines of the vertices inside.
    later_told : str
        The longest text that may follow the title after the run.
    """

    title: str
    is_open: bool
    later: Callable[[], Opened]
    holds: frozenset[str] = frozenset()
    lines: tuple[int, ...] = ()
    later_told: str = ""

    @cached_property
    def opened(self) -> Opened:
        """Return the group when it is open; laid out once, when that is asked for."""
        return self.later()

    @property
    def picture(self) -> Picture:
        """Return the picture inside the group."""
        return self.opened.picture


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
        """Return the width as drawn at first."""
        return self.open.width if self.open is not None else self.face.width

    @property
    def height(self) -> float:
        """Return the height as drawn at first."""
        return self.open.height if self.open is not None else self.face.height

    @property
    def open(self) -> Opened | None:
        """Return the contents of the box if it is a group drawn open, else None."""
        return self.inside.opened if self.inside is not None and self.inside.is_open else None

    @property
    def is_open(self) -> bool:
        """Return whether the box is a group drawn open."""
        return self.inside is not None and self.inside.is_open

    @property
    def is_closed(self) -> bool:
        """Return whether the box is a group drawn closed."""
        return self.inside is not None and not self.inside.is_open


@dataclass(frozen=True)
class Route:
    """The path of one link: from box to box by index, and the x of its bends row by row.

    `leaves` and `enters` are the offsets of its ends from the middle of the boxes as first drawn.
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
    returns: tuple[tuple[int, int], ...] = ()  # the ways back of a loop's values, from box to box by index

    @cached_property
    def width(self) -> float:
        """Return the width, from 0."""
        return self.edge + lanes_width(len(self.returns))

    @cached_property
    def edge(self) -> float:
        """Return the right edge of the boxes and links, beside which back edges are drawn."""
        ends = [box.x + box.width / 2 for box in self.boxes] + [x for route in self.routes for x in route.bends]
        return max(ends, default=0.0)

    @property
    def height(self) -> float:
        """Return the height, from 0."""
        return self.rows[-1].bottom if self.boxes else 0.0

    @cached_property
    def rows(self) -> list[Span]:
        """Return the rows from top to bottom, as high as their highest box."""
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
        """Return the routes, with those between two closed groups drawn as one."""
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

    def message(self, table: dict[Vertex, int], shapes: dict[str, int], *, deep: bool = False) -> dict[str, Any]:
        """Return the picture as JSON data.

        Parameters
        ----------
        table, shapes : dict
            Vertices and outlines are added here, and referred to by their numbers.
        deep : bool
            Whether to include the contents of closed groups, which are otherwise sent on demand.
        """
        return {
            "boxes": [_box_message(box, table, shapes, deep) for box in self.boxes],
            "routes": [
                [r.source, r.target, round(r.leaves, 1), round(r.enters, 1), list(r.bends), *filter(None, [r.carries])]
                for r in self.routes
            ],
            "gaps": list(self.gaps),
            **({"returns": [list(pair) for pair in self.returns]} if self.returns else {}),
        }


def way_to(picture: Picture, key: str) -> list[str]:
    """Return the keys of the groups around a vertex, the outermost first.

    Raises
    ------
    KeyError
        Where the picture does not hold it.
    """
    way: list[str] = []
    inner: Picture | None = picture
    while inner is not None:
        if any(box.key == key for box in inner.boxes):
            return way
        around = next((box for box in inner.boxes if box.inside is not None and key in box.inside.holds), None)
        if around is None:
            break
        way.append(around.key)
        inner = around.inside.picture if around.inside is not None else None
    raise KeyError(f"no vertex {key!r}")


def narrowest(title: str) -> float:
    """Return the minimal width of an open group, so that its title fits beside the button that closes it."""
    return max(150.0, round(width(f"\N{MINUS SIGN} {title}", 12, bold=True) + 20, 1))


def opened_message(opened: Opened, table: dict[Vertex, int], shapes: dict[str, int], *, deep: bool) -> dict[str, Any]:
    """Return the contents of an open group as JSON data."""
    return {
        "w": round(opened.width, 1),
        "h": round(opened.height, 1),
        "f": round(opened.height - opened.picture.height, 1),
        "picture": opened.picture.message(table, shapes, deep=deep),
    }


def _box_message(box: Box, table: dict[Vertex, int], shapes: dict[str, int], deep: bool) -> dict[str, Any]:
    message: dict[str, Any] = {"k": box.key, "r": box.row, "x": box.x, "w": box.face.width, "h": box.face.height}
    if box.face.path:
        message["s"] = shapes.setdefault(box.face.path, len(shapes))
        message["t"] = [[text.text, text.style, text.y] for text in box.face.texts]
    if box.vertex is not None:
        message["v"] = table.setdefault(box.vertex, len(table))
        message |= {"m": mark(box.vertex)} if mark(box.vertex) else {}
        message |= {"z": 1} if box.result else {}
    if box.inside is not None:
        title = box.inside.title
        group: dict[str, Any] = {
            "title": title,
            "open": box.is_open,
            "picture": None,
            "n": narrowest(title + box.inside.later_told),
        }
        group |= {"l": list(box.inside.lines[:MOST_LINES])} if box.inside.lines else {}
        if deep or box.is_open:
            group |= opened_message(box.inside.opened, table, shapes, deep=deep)
        else:
            group["ask"] = 1
        message["g"] = group
    return message
