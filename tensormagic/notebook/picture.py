"""A view laid out: boxes in rows, groups with pictures of their own inside, and the way of every link.

It turns vertices and edges into places; colours, markup and pages are not its business.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from tensormagic.notebook.grouping import CHUNK, Group, groups
from tensormagic.notebook.labels import clean, shorten, symbol
from tensormagic.notebook.layout import Link, layered
from tensormagic.notebook.shapes import Face, group_face, mark, vertex_face

if TYPE_CHECKING:
    from tensormagic.notebook.scene import Vertex, View

__all__ = ["COLLAPSE_ABOVE", "Box", "Inside", "Picture", "Route", "Span", "draw"]

COLLAPSE_ABOVE = 200  # a view of more vertices starts as groups
SEAL_ABOVE = 6_000  # a view of more vertices shows its groups closed for good: the page could not hold them
SIDE = 12.0  # between the border of an open group and its boxes
HEAD = 22.0  # for the title of an open group
_PORT = Face(0.0, 0.0, "", ())
# operands of these may trade places without changing what the picture says
_COMMUTES = frozenset(
    "add multiply + * maximum minimum fmax fmin logaddexp logaddexp2 hypot equal not_equal == != "
    "logical_and logical_or logical_xor bitwise_and bitwise_or bitwise_xor & | ^ gcd lcm".split()
)


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
    """One box: a vertex, a group, or (with neither) a port where a link enters or leaves a group. `x` is its middle."""

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
        return self.inside.width if self.is_open else self.face.width  # type: ignore[union-attr]

    @property
    def height(self) -> float:
        """The height as drawn at first."""
        return self.inside.height if self.is_open else self.face.height  # type: ignore[union-attr]

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

    `leaves` and `enters` are where it touches, from the middle of the box; of a group, from the middle of the open group.
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


@dataclass
class _Parts:
    """The boxes to be: vertices, with a copy of each scalar constant for each of its users, and who feeds whom."""

    keys: list[str]
    vertices: list[Vertex]
    operands: list[tuple[int, int, int]]  # source, target, port

    @cached_property
    def into(self) -> dict[int, list[tuple[int, int, int]]]:
        """The operands by their target."""
        found: dict[int, list[tuple[int, int, int]]] = defaultdict(list)
        for operand in self.operands:
            found[operand[1]].append(operand)
        return found


@dataclass
class _Draft:
    """A picture before it is laid out."""

    boxes: list[Box]
    operands: list[tuple[int, int, int, float, float, int, str]]  # source, target, port, leaves, enters, bus, carries


def draw(view: View) -> Picture:
    """Lay out a view.

    Vertices with a kernel stand in their kernel's outline. A view of more than `COLLAPSE_ABOVE` vertices starts with its
    kernels closed, and where it has none, as one closed group for each source line.
    """
    parts = _parts(view)
    named = {vertex.id for vertex in view.vertices if vertex.kind == "output"}
    results = frozenset(view.outputs) - {edge.source for edge in view.edges if edge.target in named}
    large = len(view.vertices) > COLLAPSE_ABOVE
    kernels = any(vertex.kernel is not None for vertex in view.vertices)
    if not kernels and not large:
        return _flat(parts, range(len(parts.keys)), results)
    keys = _group_keys(parts, by_kernel=kernels)
    pairs = [(source, target) for source, target, _ in parts.operands]
    found = [
        group
        for group in groups(keys, pairs, CHUNK if large else len(keys))
        if kernels or sum(parts.vertices[index].is_op for index in group.members) > 1
    ]
    seal = len(view.vertices) > SEAL_ABOVE
    return _grouped(parts, found, results, _Naming(view, by_kernel=kernels, is_open=not large, seal=seal))


def _parts(view: View) -> _Parts:
    index = {vertex.id: number for number, vertex in enumerate(view.vertices)}
    parts = _Parts([vertex.id for vertex in view.vertices], list(view.vertices), [])
    users: dict[tuple[int, int], int] = {}
    copies: Counter[int] = Counter()
    for edge in view.edges:
        if edge.source not in index or edge.target not in index:
            continue
        source, target = index[edge.source], index[edge.target]
        vertex = view.vertices[source]
        if vertex.kind == "constant" and "[" not in vertex.type:
            if (source, target) not in users:
                users[source, target] = source
                if copies[source]:
                    users[source, target] = len(parts.keys)
                    parts.keys.append(f"{vertex.id}~{copies[source]}")
                    parts.vertices.append(vertex)
                copies[source] += 1
            source = users[source, target]
        parts.operands.append((source, target, edge.port))
    return parts


def _group_keys(parts: _Parts, *, by_kernel: bool) -> list[Hashable | None]:
    keys: list[Hashable | None] = []
    for vertex in parts.vertices:
        if not vertex.is_op or (by_kernel and vertex.kernel is None):
            keys.append(None)
        elif by_kernel:
            keys.append(vertex.kernel)
        else:
            keys.append((vertex.cell, vertex.line or 0, vertex.role if mark(vertex) else ""))
    for source, target, _ in parts.operands:  # a scalar constant stands with its user
        if parts.vertices[source].kind == "constant" and "[" not in parts.vertices[source].type:
            keys[source] = keys[target]
    return keys


def _flat(parts: _Parts, members: range, results: frozenset[str]) -> Picture:
    draft = _Draft([], [])
    for index in members:
        draft.boxes.append(_vertex_box(parts, index, results))
    draft.operands = [(source, target, port, 0.0, 0.0, 0, "") for source, target, port in parts.operands]
    return _lay(draft, *_pins(draft))


def _vertex_box(parts: _Parts, index: int, results: frozenset[str]) -> Box:
    vertex = parts.vertices[index]
    return Box(parts.keys[index], 0, 0.0, vertex_face(vertex), vertex, None, vertex.id in results)


def _pins(draft: _Draft) -> tuple[frozenset[int], frozenset[int]]:
    def of(kind: str) -> frozenset[int]:
        return frozenset(i for i, box in enumerate(draft.boxes) if box.vertex is not None and box.vertex.kind == kind)

    return of("input"), of("output")


@dataclass(frozen=True)
class _Naming:
    view: View
    by_kernel: bool
    is_open: bool
    seal: bool

    def title(self, group: Group) -> str:
        """Say what the group is: ``kernel 2``, ``line 3``, ``line 3, gradient (2 of 4)``."""
        if self.by_kernel:
            title = ", ".join(f"kernel {key}" for key in group.keys[:3])
        else:
            lines = sorted({key[1] for key in group.keys if isinstance(key, tuple)})
            cells = {vertex.cell for vertex in self.view.vertices if vertex.is_op}
            told = sorted({str(key[0]) for key in group.keys if isinstance(key, tuple)})
            where = f"{' '.join(told[:2])} " if len(cells) > 1 else ""
            span = f"line {lines[0]}" if len(lines) == 1 else f"lines {lines[0]}–{lines[-1]}"
            title = f"{where}{span}" if lines[-1] else f"{where}no line"
            roles = {key[2] for key in group.keys if isinstance(key, tuple)}
            title += ", gradient" if roles == {"adjoint"} else ", tangent" if roles == {"tangent"} else ""
        return clean(f"{title} ({group.part + 1} of {group.parts})" if group.parts > 1 else title, 60)


def _grouped(parts: _Parts, found: list[Group], results: frozenset[str], naming: _Naming) -> Picture:
    """Lay out each group by itself, then the groups and what stands alone."""
    owner = {index: number for number, group in enumerate(found) for index in group.members}
    draft = _Draft([], [])
    ports: dict[tuple[str, int, int], float] = {}  # ("in" or "out", group, vertex): offset from the group's middle
    inward, outward = _crossing(parts, owner)
    taken: Counter[str] = Counter()
    for number, group in enumerate(found):
        title = naming.title(group)
        taken[title] += 1
        key = f"{title}#{taken[title]}" if taken[title] > 1 else title
        draft.boxes.append(_group_box(parts, group, number, (inward[number], outward[number]), results, naming, key, ports))
    alone: dict[int, int] = {}
    for index in range(len(parts.keys)):
        if index not in owner:
            alone[index] = len(draft.boxes)
            draft.boxes.append(_vertex_box(parts, index, results))
    seen: set[tuple[int, int]] = set()
    for source, target, port in parts.operands:
        start, end = owner.get(source), owner.get(target)
        if start is not None and start == end:
            continue
        if end is not None and (source, end) in seen:
            continue
        if end is not None:
            seen.add((source, end))
        draft.operands.append(
            (
                start if start is not None else alone[source],
                end if end is not None else alone[target],
                port,
                ports["out", start, source] if start is not None else 0.0,
                ports["in", end, source] if end is not None else 0.0,
                source,
                parts.keys[source] if start is not None else "",
            )
        )
    return _lay(draft, *_pins(draft))


def _crossing(parts: _Parts, owner: dict[int, int]) -> tuple[dict[int, list[int]], dict[int, list[int]]]:
    """Return for each group what feeds it from outside, and which members are used outside."""
    inward: dict[int, dict[int, None]] = defaultdict(dict)
    outward: dict[int, dict[int, None]] = defaultdict(dict)
    for source, target, _ in parts.operands:
        start, end = owner.get(source), owner.get(target)
        if start != end:
            if end is not None:
                inward[end][source] = None
            if start is not None:
                outward[start][source] = None
    return defaultdict(list, {k: list(v) for k, v in inward.items()}), defaultdict(
        list, {k: list(v) for k, v in outward.items()}
    )


def _group_box(
    parts: _Parts,
    group: Group,
    number: int,
    crossing: tuple[list[int], list[int]],
    results: frozenset[str],
    naming: _Naming,
    key: str,
    ports: dict[tuple[str, int, int], float],
) -> Box:
    entries, exits = crossing
    title = naming.title(group)
    names = Counter(symbol(clean(parts.vertices[i].label, 40)) for i in group.members if parts.vertices[i].is_op)
    ops = sum(names.values())
    note = f"{ops} op{'s' * (ops != 1)}"
    listed = ", ".join(name if count == 1 else f"{count} {name}" for name, count in names.most_common(4))
    face = group_face(title, note, shorten(listed, 130, 10) if len(names) <= 4 else shorten(f"{listed}, …", 130, 10))
    if naming.seal:
        for side, indices in (("in", entries), ("out", exits)):
            for place, index in enumerate(indices):
                ports[side, number, index] = face.width * (0.8 * (place + 1) / (len(indices) + 1) - 0.4)
        return Box(key, 0, 0.0, face, None, Inside(f"{title}: {note}", False, face.width, face.height, None))
    picture, first = _inner(parts, group, entries, exits, results)
    wide = max(picture.width + 2 * SIDE, 150.0)
    margin = (wide - picture.width) / 2
    tall = picture.height + HEAD + (0.0 if exits else SIDE)
    for place, index in enumerate(entries):
        ports["in", number, index] = picture.boxes[first + place].x + margin - wide / 2
    for place, index in enumerate(exits):
        ports["out", number, index] = picture.boxes[first + len(entries) + place].x + margin - wide / 2
    inside = Inside(f"{title}: {note}", naming.is_open, round(wide, 1), round(tall, 1), picture)
    return Box(key, 0, 0.0, face, None, inside)


def _inner(
    parts: _Parts, group: Group, entries: list[int], exits: list[int], results: frozenset[str]
) -> tuple[Picture, int]:
    """Lay out one group's members; return also the index of the first port. Entries are ports on top, exits below."""
    draft = _Draft([_vertex_box(parts, index, results) for index in group.members], [])
    local = {index: place for place, index in enumerate(group.members)}
    first = len(local)
    enters = {index: first + place for place, index in enumerate(entries)}
    leaves = {index: first + len(entries) + place for place, index in enumerate(exits)}
    draft.boxes += [Box(f"{parts.keys[i]}>", 0, 0.0, _PORT) for i in entries]
    draft.boxes += [Box(f"{parts.keys[i]}<", 0, 0.0, _PORT) for i in exits]
    for member in group.members:
        for source, target, port in parts.into.get(member, ()):
            start = local[source] if source in local else enters[source]
            draft.operands.append((start, local[target], port, 0.0, 0.0, 0, ""))
    draft.operands += [(local[index], leaves[index], 0, 0.0, 0.0, 0, "") for index in exits]
    return _lay(draft, frozenset(enters.values()), frozenset(leaves.values())), first


def _lay(draft: _Draft, top: frozenset[int], bottom: frozenset[int]) -> Picture:
    """Place the boxes of a draft and give every link its way."""
    boxes = draft.boxes
    counts: Counter[int] = Counter(operand[1] for operand in draft.operands)
    links: list[Link] = []
    enters: list[float] = []
    leaves = [operand[3] for operand in draft.operands]
    for source, target, port, out, into, bus, _ in draft.operands:
        if boxes[target].inside is None and boxes[target].vertex is not None:
            into = boxes[target].width * 0.7 * ((min(port, counts[target] - 1) + 1) / (counts[target] + 1) - 0.5)
        enters.append(into)
        start, end = boxes[source].is_closed, boxes[target].is_closed
        links.append(Link(source, target, 0.0 if start else out, 0.0 if end else into, 0 if start else bus))
    placement = layered([box.width for box in boxes], links, top, bottom)
    bends = placement.bends
    trade = _traded(boxes, links, placement.x, bends)
    routes = tuple(
        Route(link.source, link.target, leaves[number], trade.get(number, enters[number]), bends[number], carries)
        for number, (link, (*_, carries)) in enumerate(zip(links, draft.operands, strict=True))
    )
    placed = tuple(
        Box(box.key, row, x, box.face, box.vertex, box.inside, box.result)
        for box, row, x in zip(boxes, placement.rows, placement.x, strict=True)
    )
    return Picture(placed, routes, _gaps(placed, routes))


def _traded(
    boxes: list[Box], links: list[Link], x: tuple[float, ...], bends: tuple[tuple[float, ...], ...]
) -> dict[int, float]:
    """Let the operands of commuting ops enter in the order in which they arrive."""
    arriving: dict[int, list[int]] = defaultdict(list)
    for number, link in enumerate(links):
        vertex = boxes[link.target].vertex
        if vertex is not None and vertex.label in _COMMUTES:
            arriving[link.target].append(number)
    entering: dict[int, float] = {}
    for numbers in arriving.values():
        offsets = sorted(links[number].enters for number in numbers)
        numbers.sort(key=lambda n: (bends[n][-1] if bends[n] else x[links[n].source] + links[n].leaves, n))
        entering.update(zip(numbers, offsets, strict=True))
    return entering


def _gaps(boxes: tuple[Box, ...], routes: tuple[Route, ...]) -> tuple[float, ...]:
    """Return the height between rows: more where links go far sideways."""
    far = [0.0] * max((box.row for box in boxes), default=0)
    for route in routes:
        source, target = boxes[route.source], boxes[route.target]
        way = [source.x + route.leaves, *route.bends, target.x + route.enters]
        if target.row - source.row == len(way) - 1:
            for row, (left, right) in enumerate(pairwise(way), source.row):
                far[row] = max(far[row], abs(right - left))
    return tuple(round(26.0 + min(30.0, reach * 0.07), 1) for reach in far)
