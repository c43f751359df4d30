"""From a view to its picture: which boxes there are, what stands in groups, and where links enter and leave them."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING

from tensormagic.notebook.pictures.grouping import CHUNK, Group, groups
from tensormagic.notebook.pictures.labels import clean, shorten, symbol
from tensormagic.notebook.pictures.layout import Link, layered
from tensormagic.notebook.pictures.picture import HEAD, Box, Inside, Picture, Route
from tensormagic.notebook.pictures.shapes import Face, group_face, mark, vertex_face

if TYPE_CHECKING:
    from tensormagic.notebook.pictures.scene import Vertex, View

__all__ = ["COLLAPSE_ABOVE", "SEAL_ABOVE", "draw"]

COLLAPSE_ABOVE = 200  # a view of more vertices starts as groups
SEAL_ABOVE = 6_000  # a view of more vertices shows its groups closed for good: the page could not hold them
SIDE = 12.0  # between the border of an open group and its boxes
NARROWEST = 150.0  # an open group, so that its title fits
_PORT = Face(0.0, 0.0, "", ())
# operands of these may trade places without changing what the picture says
_COMMUTES = frozenset(
    (
        *("add", "multiply", "+", "*", "maximum", "minimum", "fmax", "fmin", "logaddexp", "logaddexp2", "hypot"),
        *("equal", "not_equal", "==", "!=", "logical_and", "logical_or", "logical_xor"),
        *("bitwise_and", "bitwise_or", "bitwise_xor", "&", "|", "^", "gcd", "lcm"),
    )
)


@dataclass(frozen=True)
class _Key:
    """What the members of a group have in common: the kernel, or the source line and the part in a derivative."""

    kernel: int | None = None
    cell: str = ""
    line: int = 0
    role: str = ""


@dataclass
class _Parts:
    """The boxes to be: vertices, with a copy of each scalar constant for each of its users, and who feeds whom."""

    keys: list[str]
    vertices: list[Vertex]
    results: frozenset[str]
    operands: list[tuple[int, int, int]] = field(default_factory=list[tuple[int, int, int]])  # source, target, port

    @cached_property
    def into(self) -> dict[int, list[tuple[int, int, int]]]:
        """The operands by their target."""
        found: dict[int, list[tuple[int, int, int]]] = defaultdict(list)
        for operand in self.operands:
            found[operand[1]].append(operand)
        return found

    def box(self, index: int) -> Box:
        """Return the box of a vertex, not placed yet."""
        vertex = self.vertices[index]
        return Box(self.keys[index], 0, 0.0, vertex_face(vertex), vertex, None, vertex.id in self.results)


@dataclass(frozen=True)
class _Operand:
    """A link of a draft, between boxes by index. Links of one source and `bus` share their way."""

    source: int
    target: int
    port: int
    leaves: float = 0.0
    enters: float = 0.0
    bus: int = 0
    carries: str = ""


def draw(view: View) -> Picture:
    """Lay out a view.

    Vertices with a kernel stand in their kernel's outline. A view of more than `COLLAPSE_ABOVE` vertices starts with
    its kernels closed, and where it has none, as one closed group for each source line.
    """
    parts = _parts(view)
    large = len(view.vertices) > COLLAPSE_ABOVE
    by_kernel = any(vertex.kernel is not None for vertex in view.vertices)
    if not by_kernel and not large:
        boxes = [parts.box(index) for index in range(len(parts.keys))]
        return _lay(boxes, [_Operand(*operand) for operand in parts.operands], *_pins(boxes))
    pairs = [(source, target) for source, target, _ in parts.operands]
    found = [
        group
        for group in groups(_group_keys(parts, by_kernel=by_kernel), pairs, CHUNK if large else len(parts.keys))
        if by_kernel or sum(parts.vertices[index].is_op for index in group.members) > 1
    ]
    return _Composer(parts, found, is_open=not large, is_sealed=len(view.vertices) > SEAL_ABOVE).picture()


def _parts(view: View) -> _Parts:
    index = {vertex.id: number for number, vertex in enumerate(view.vertices)}
    named = {vertex.id for vertex in view.vertices if vertex.kind == "output"}
    results = frozenset(view.outputs) - {edge.source for edge in view.edges if edge.target in named}
    parts = _Parts([vertex.id for vertex in view.vertices], list(view.vertices), results)
    users: dict[tuple[int, int], int] = {}
    copies: Counter[int] = Counter()
    for edge in view.edges:
        if edge.source not in index or edge.target not in index:
            continue
        source, target = index[edge.source], index[edge.target]
        vertex = view.vertices[source]
        if _is_scalar(vertex):
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


def _is_scalar(vertex: Vertex) -> bool:
    return vertex.kind == "constant" and "[" not in vertex.type


def _group_keys(parts: _Parts, *, by_kernel: bool) -> list[_Key | None]:
    keys: list[_Key | None] = []
    for vertex in parts.vertices:
        if not vertex.is_op or (by_kernel and vertex.kernel is None):
            keys.append(None)
        elif by_kernel:
            keys.append(_Key(vertex.kernel))
        else:
            keys.append(_Key(None, vertex.cell, vertex.line or 0, vertex.role if mark(vertex) else ""))
    for source, target, _ in parts.operands:  # a scalar constant stands with its user
        if _is_scalar(parts.vertices[source]):
            keys[source] = keys[target]
    return keys


def _pins(boxes: list[Box]) -> tuple[frozenset[int], frozenset[int]]:
    kinds = [box.vertex.kind if box.vertex is not None else "" for box in boxes]
    inputs = frozenset(index for index, kind in enumerate(kinds) if kind == "input")
    return inputs, frozenset(index for index, kind in enumerate(kinds) if kind == "output")


class _Composer:
    """Lays out each group by itself, then the groups and what stands alone."""

    def __init__(self, parts: _Parts, found: list[Group[_Key]], *, is_open: bool, is_sealed: bool) -> None:
        self.parts = parts
        self.found = found
        self.is_open = is_open
        self.is_sealed = is_sealed
        self.cells = {vertex.cell for vertex in parts.vertices if vertex.is_op}
        self.owner = {index: number for number, group in enumerate(found) for index in group.members}
        # by group and vertex: where its value enters and leaves, from the middle of the group
        self.entering: dict[tuple[int, int], float] = {}
        self.leaving: dict[tuple[int, int], float] = {}

    def picture(self) -> Picture:
        """Return the whole picture."""
        parts, owner = self.parts, self.owner
        boxes = self._group_boxes()
        place: dict[int, int] = {}
        for index in range(len(parts.keys)):
            place[index] = owner.get(index, len(boxes))
            if index not in owner:
                boxes.append(parts.box(index))
        operands: list[_Operand] = []
        seen: set[tuple[int, int]] = set()
        for source, target, port in parts.operands:
            start, end = owner.get(source), owner.get(target)
            if (start is not None and start == end) or (end is not None and (source, end) in seen):
                continue
            leaves = self.leaving[start, source] if start is not None else 0.0
            enters = 0.0
            if end is not None:  # a value enters a group once, however many members use it
                seen.add((source, end))
                enters = self.entering[end, source]
            carries = parts.keys[source] if start is not None else ""
            operands.append(_Operand(place[source], place[target], port, leaves, enters, source, carries))
        return _lay(boxes, operands, *_pins(boxes))

    def _group_boxes(self) -> list[Box]:
        inward: dict[int, dict[int, None]] = defaultdict(dict)
        outward: dict[int, dict[int, None]] = defaultdict(dict)
        for source, target, _ in self.parts.operands:
            start, end = self.owner.get(source), self.owner.get(target)
            if start != end and end is not None:
                inward[end][source] = None
            if start != end and start is not None:
                outward[start][source] = None
        boxes: list[Box] = []
        taken: Counter[str] = Counter()
        for number, group in enumerate(self.found):
            title = self._title(group)
            taken[title] += 1
            key = f"{title}#{taken[title]}" if taken[title] > 1 else title
            boxes.append(self._group_box(number, title, key, (list(inward[number]), list(outward[number]))))
        return boxes

    def _title(self, group: Group[_Key]) -> str:
        """Say what the group is: ``kernel 2``, ``line 3``, ``line 3, gradient (2 of 4)``."""
        lines = sorted({key.line for key in group.keys})
        if group.keys[0].kernel is not None:
            title = ", ".join(f"kernel {key.kernel}" for key in group.keys[:3])
        elif not lines[-1]:
            title = "no line"
        else:
            title = f"line {lines[0]}" if len(lines) == 1 else f"lines {lines[0]}–{lines[-1]}"
            cells = sorted({key.cell for key in group.keys})
            title = f"{' '.join(cells[:2])} {title}" if len(self.cells) > 1 else title
        roles = {key.role for key in group.keys}
        title += ", gradient" if roles == {"adjoint"} else ", tangent" if roles == {"tangent"} else ""
        return clean(f"{title} ({group.part + 1} of {group.parts})" if group.parts > 1 else title, 60)

    def _group_box(self, number: int, title: str, key: str, crossing: tuple[list[int], list[int]]) -> Box:
        entries, exits = crossing
        members = [self.parts.vertices[index] for index in self.found[number].members]
        names = Counter(symbol(clean(vertex.label, 40)) for vertex in members if vertex.is_op)
        ops = sum(names.values())
        note = f"{ops} op{'s' * (ops != 1)}"
        common = [name if count == 1 else f"{count} {name}" for name, count in names.most_common(4)]
        face = group_face(title, note, shorten(", ".join(common) + ", …" * (len(names) > len(common)), 130, 10))
        title = f"{title}: {note}"
        if self.is_sealed:
            for offsets, indices in ((self.entering, entries), (self.leaving, exits)):
                for place, index in enumerate(indices):
                    offsets[number, index] = face.width * (0.8 * (place + 1) / (len(indices) + 1) - 0.4)
            return Box(key, 0, 0.0, face, None, Inside(title, False, face.width, face.height, None))
        picture = self._inner(number, entries, exits)
        wide = max(picture.width + 2 * SIDE, NARROWEST)
        tall = picture.height + HEAD + (0.0 if exits else SIDE)
        ports = picture.boxes[len(members) :]
        for place, index in enumerate(entries):
            self.entering[number, index] = ports[place].x - picture.width / 2
        for place, index in enumerate(exits):
            self.leaving[number, index] = ports[len(entries) + place].x - picture.width / 2
        return Box(key, 0, 0.0, face, None, Inside(title, self.is_open, round(wide, 1), round(tall, 1), picture))

    def _inner(self, number: int, entries: list[int], exits: list[int]) -> Picture:
        """Lay out a group's members and its ports: above for the values that enter, below for those that leave."""
        parts, members = self.parts, self.found[number].members
        boxes = [parts.box(index) for index in members]
        local = {index: place for place, index in enumerate(members)}
        enters = {index: len(boxes) + place for place, index in enumerate(entries)}
        leaves = {index: len(boxes) + len(entries) + place for place, index in enumerate(exits)}
        boxes += [Box(f"{parts.keys[index]}>", 0, 0.0, _PORT) for index in entries]
        boxes += [Box(f"{parts.keys[index]}<", 0, 0.0, _PORT) for index in exits]
        operands = [
            _Operand(local[source] if source in local else enters[source], local[target], port)
            for member in members
            for source, target, port in parts.into.get(member, ())
        ]
        operands += [_Operand(local[index], leaves[index], 0) for index in exits]
        return _lay(boxes, operands, frozenset(enters.values()), frozenset(leaves.values()))


def _lay(boxes: list[Box], operands: list[_Operand], top: frozenset[int], bottom: frozenset[int]) -> Picture:
    """Place the boxes and give every link its way."""
    counts = Counter(operand.target for operand in operands)
    enters: list[float] = []
    links: list[Link] = []
    for operand in operands:
        source, target = boxes[operand.source], boxes[operand.target]
        enter = operand.enters
        if target.inside is None and target.vertex is not None:
            count = counts[operand.target]
            enter = target.width * 0.7 * ((min(operand.port, count - 1) + 1) / (count + 1) - 0.5)
        enters.append(enter)
        links.append(
            Link(
                operand.source,
                operand.target,
                0.0 if source.is_closed else operand.leaves,
                0.0 if target.is_closed else enter,
                0 if source.is_closed else operand.bus,
            )
        )
    placement = layered([box.width for box in boxes], links, top, bottom)
    traded = _traded(boxes, links, placement.x, placement.bends)
    routes = tuple(
        Route(operand.source, operand.target, operand.leaves, traded.get(number, enter), bends, operand.carries)
        for number, (operand, enter, bends) in enumerate(zip(operands, enters, placement.bends, strict=True))
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
