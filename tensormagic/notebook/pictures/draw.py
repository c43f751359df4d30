"""Turn a view into its picture: its boxes, the contents of groups, and the points where links enter and leave boxes."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING

from tensormagic.notebook.pictures.grouping import CHUNK, Group, groups
from tensormagic.notebook.pictures.labels import clean, counted, operation, whole_items
from tensormagic.notebook.pictures.layout import Link, layered
from tensormagic.notebook.pictures.picture import COLLAPSE_ABOVE, HEAD, Box, Inside, Opened, Picture, Route, narrowest
from tensormagic.notebook.pictures.returning import ways_back
from tensormagic.notebook.pictures.shapes import Face, group_face, mark, vertex_face
from tensormagic.ops.op import registry
from tensormagic.ops.regions.control import WHILE
from tensormagic.ops.scalars.scalar import fmax, fmin, gcd, hypot, lcm, maximum, minimum

if TYPE_CHECKING:
    from tensormagic.notebook.pictures.scene import Vertex, View


MOST_LINES = 120  # groups of one line each, beside each other; more of them stand in groups of several lines
OPEN_REGIONS_BELOW = 80  # vertices of a view and of a region in it, together, up to which the region starts open
TOLD = " \N{MIDDLE DOT} ran 1000 times"  # the longest that the frames of a branch say of a run
TURNED = " \N{MIDDLE DOT} 1000 iterations"  # and that of a ``while``
SIDE = 12.0  # between the border of an open group and its boxes
_PORT = Face(0.0, 0.0, "", ())
# operands of these may trade places without changing what the picture says
_COMMUTE = [*(op for op in registry.values() if op.commutative), maximum, minimum, fmax, fmin, hypot, gcd, lcm]
_COMMUTES = frozenset(label for op in _COMMUTE for label in (op.name, op.infix))


@dataclass(frozen=True)
class _Key:
    """What a group's members have in common: the place, the kernel, the function, or the line and the part in a derivative."""

    kernel: int | None = None
    cell: str = ""
    line: int = 0
    role: str = ""
    function: str = ""
    last: int = 0  # of several lines
    place: str = ""
    ruled: bool = False  # made by rules, and closed at first


@dataclass
class _Parts:
    """The boxes to be: vertices, with a copy of each scalar constant for each of its users, and who feeds whom."""

    keys: list[str]
    vertices: list[Vertex]
    results: frozenset[str]
    inner: Mapping[str, tuple[View, ...]]
    operands: list[tuple[int, int, int]] = field(default_factory=list[tuple[int, int, int]])  # source, target, port

    @cached_property
    def into(self) -> dict[int, list[tuple[int, int, int]]]:
        """Return the operands by their target."""
        found: dict[int, list[tuple[int, int, int]]] = defaultdict(list)
        for operand in self.operands:
            found[operand[1]].append(operand)
        return found

    def box(self, index: int) -> Box:
        """Return the box of a vertex, not placed yet."""
        vertex = self.vertices[index]
        if vertex.id in self.inner:
            return _region_box(self, index, self.inner[vertex.id])
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


def draw(view: View, grouping: str = "", *, closed: bool = False) -> Picture:
    """Lay out a view.

    Parameters
    ----------
    view : View
        What to lay out.
    grouping : str
        One of the view's groupings. Default: by kernel where there are kernels, else by line where there are more
        than `COLLAPSE_ABOVE` vertices, else none. So large a view starts with its groups closed.
    closed : bool
        Whether a small one does so, too.
    """
    parts = _parts(view)
    large = closed or len(view.vertices) > COLLAPSE_ABOVE
    grouping = grouping or view.groupings[0]
    paths = _paths(parts, grouping, large=large)
    if grouping == "none" and view.name != "step" and view.made_by_rules:
        paths = [(_Key(ruled=True),) if vertex.derived else () for vertex in parts.vertices]
    return _with_ways_back(_Composer(parts, paths, is_large=large).picture(), view.returns)


def _parts(view: View) -> _Parts:
    index = {vertex.id: number for number, vertex in enumerate(view.vertices)}
    named = {vertex.id for vertex in view.vertices if vertex.kind == "output"}
    results = frozenset(view.outputs) - {edge.source for edge in view.edges if edge.target in named}
    parts = _Parts([vertex.id for vertex in view.vertices], list(view.vertices), results, view.inner)
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


def _paths(parts: _Parts, grouping: str, *, large: bool) -> list[tuple[_Key, ...]]:
    """Return for each vertex the groups that it is in, the outermost first."""
    ranges = _ranges(parts.vertices) if large else {}
    paths = [
        _path(vertex, grouping, ranges, large=large) if vertex.is_op or vertex.place else ()
        for vertex in parts.vertices
    ]
    for source, target, _ in parts.operands:  # a scalar constant stands with its user
        if _is_scalar(parts.vertices[source]):
            paths[source] = paths[target]
    return paths


def _path(
    vertex: Vertex, grouping: str, ranges: dict[tuple[str, int], tuple[int, int]], *, large: bool
) -> tuple[_Key, ...]:
    role = ("adjoint" if vertex.derived else vertex.role) if mark(vertex) else ""
    lines: tuple[_Key, ...] = (_Key(None, vertex.cell, vertex.line or 0, role),)
    around = ranges.get((vertex.cell, vertex.line or 0))
    if around is not None:
        lines = (_Key(None, vertex.cell, around[0], role, "", around[1]), *lines)
    if grouping == "kernel":
        return (_Key(vertex.kernel),) if vertex.kernel is not None else ()
    if grouping == "line":
        return lines
    if grouping == "place":
        where = (_Key(place=vertex.place),) if vertex.place else ()
        return (*where, *lines) if large and vertex.is_op else where
    if grouping == "function":
        own = (_Key(None, vertex.cell, function=vertex.function),) if vertex.function else ()
        return (*own, *lines) if large else own
    return ()


def _ranges(vertices: list[Vertex]) -> dict[tuple[str, int], tuple[int, int]]:
    """Return for each line the first and last line of its group, where there are many lines."""
    found = sorted({(vertex.cell, vertex.line or 0) for vertex in vertices if vertex.is_op})
    if len(found) <= MOST_LINES:
        return {}
    width = -(-len(found) // (MOST_LINES // 2))
    ranges: dict[tuple[str, int], tuple[int, int]] = {}
    for start in range(0, len(found), width):
        piece = found[start : start + width]
        for cell in {cell for cell, _ in piece}:
            lines = [line for own, line in piece if own == cell]
            ranges |= {(cell, line): (lines[0], lines[-1]) for line in lines}
    return ranges


def _pins(boxes: list[Box]) -> tuple[frozenset[int], frozenset[int]]:
    kinds = [box.vertex.kind if box.vertex is not None else "" for box in boxes]
    inputs = frozenset(index for index, kind in enumerate(kinds) if kind == "input")
    return inputs, frozenset(index for index, kind in enumerate(kinds) if kind == "output")


class _Composer:
    """Lays out each group by itself, then the groups and single boxes together; groups may be nested."""

    def __init__(self, parts: _Parts, paths: list[tuple[_Key, ...]], *, is_large: bool) -> None:
        self.parts = parts
        self.paths = paths
        self.is_large = is_large
        self.chunk = CHUNK if is_large else max(1, len(parts.keys))
        self.cells = {vertex.cell for vertex in parts.vertices if vertex.is_op and vertex.line}

    def picture(self) -> Picture:
        """Return the whole picture."""
        return self._compose(list(range(len(self.parts.keys))), 0, "", [], [])

    def _groups(self, members: list[int], depth: int) -> list[Group[_Key]]:
        """Return the groups of one level among `members`, which they name by their places in that list."""
        keys = [self.paths[index][depth] if len(self.paths[index]) > depth else None for index in members]
        if not any(keys):
            return []
        place = {index: number for number, index in enumerate(members)}
        pairs = [
            (place[source], place[target])
            for member in members
            for source, target, _ in self.parts.into.get(member, ())
            if source in place
        ]
        return [
            group
            for group in groups(keys, pairs, self.chunk)
            if group.keys[0].kernel is not None
            or group.keys[0].place
            or sum(self.parts.vertices[members[number]].is_op for number in group.members) > 1
        ]

    def _compose(self, members: list[int], depth: int, outer: str, entries: list[int], exits: list[int]) -> Picture:
        """Lay out `members`, with ports above for the values that enter and below for those that leave."""
        found = self._groups(members, depth)
        owner = {members[number]: k for k, group in enumerate(found) for number in group.members}
        inward, outward = self._crossing(members, owner, exits)
        boxes: list[Box] = []
        entering: dict[tuple[int, int], float] = {}
        leaving: dict[tuple[int, int], float] = {}
        taken: Counter[str] = Counter()
        for k, group in enumerate(found):
            title = self._title(group)
            taken[title] += 1
            key = outer + (f"{title}#{taken[title]}" if taken[title] > 1 else title)
            crossing = (list(inward[k]), list(outward[k]))
            box = self._group_box(title, key, sorted(members[n] for n in group.members), depth, crossing)
            boxes.append(box)
            for offsets, indices, is_entry in ((entering, crossing[0], True), (leaving, crossing[1], False)):
                offsets |= {(k, i): x for i, x in zip(indices, self._touches(box, indices, is_entry), strict=True)}
        place = dict(owner)
        for index in members:
            if index not in owner:
                place[index] = len(boxes)
                boxes.append(self.parts.box(index))
        ports = {index: len(boxes) + k for k, index in enumerate(entries)}
        boxes += [Box(f"{self.parts.keys[index]}>", 0, 0.0, _PORT) for index in entries]
        below = {index: len(boxes) + k for k, index in enumerate(exits)}
        boxes += [Box(f"{self.parts.keys[index]}<", 0, 0.0, _PORT) for index in exits]
        operands = self._operands(members, owner, {**ports, **place}, (entering, leaving))
        operands += [
            _Operand(
                place[index], below[index], 0, leaving.get((owner.get(index, -1), index), 0.0), 0.0, index, carries
            )
            for index in exits
            for carries in [self.parts.keys[index] if index in owner else ""]
        ]
        top, bottom = _pins(boxes)
        return _lay(boxes, operands, top | frozenset(ports.values()), bottom | frozenset(below.values()))

    def _crossing(
        self, members: list[int], owner: dict[int, int], exits: list[int]
    ) -> tuple[dict[int, dict[int, None]], dict[int, dict[int, None]]]:
        """Return for each group the values that enter it, and those that leave it."""
        inward: dict[int, dict[int, None]] = defaultdict(dict)
        outward: dict[int, dict[int, None]] = defaultdict(dict)
        for member in members:
            end = owner.get(member)
            for source, _, _ in self.parts.into.get(member, ()):
                start = owner.get(source)
                if start != end and end is not None:
                    inward[end][source] = None
                if start != end and start is not None:
                    outward[start][source] = None
        for index in exits:
            if index in owner:
                outward[owner[index]][index] = None
        return inward, outward

    def _operands(
        self,
        members: list[int],
        owner: dict[int, int],
        place: dict[int, int],
        touches: tuple[dict[tuple[int, int], float], dict[tuple[int, int], float]],
    ) -> list[_Operand]:
        """Return the links of one level."""
        entering, leaving = touches
        operands: list[_Operand] = []
        seen: set[tuple[int, int]] = set()
        for source, target, port in (o for member in members for o in self.parts.into.get(member, ())):
            start, end = owner.get(source), owner.get(target)
            if (start is not None and start == end) or (end is not None and (source, end) in seen):
                continue
            leaves = leaving[start, source] if start is not None else 0.0
            enters = 0.0
            if end is not None:  # a value enters a group once, however many members use it
                seen.add((source, end))
                enters = entering[end, source]
            carries = self.parts.keys[source] if start is not None else ""
            operands.append(_Operand(place[source], place[target], port, leaves, enters, source, carries))
        return operands

    def _touches(self, box: Box, indices: list[int], is_entry: bool) -> list[float]:
        """Return where values cross a group's border, from its middle: spread evenly where the group is closed."""
        if box.open is None:
            return [box.face.width * (0.8 * (k + 1) / (len(indices) + 1) - 0.4) for k in range(len(indices))]
        known = box.open.enters if is_entry else box.open.leaves
        return [known[self.parts.keys[index]] for index in indices]

    def _title(self, group: Group[_Key]) -> str:
        """Return the title of a group: ``kernel 2``, ``line 3``, ``line 3, gradient (2 of 4)``."""
        lines = sorted({line for key in group.keys for line in (key.line, key.last or key.line)})
        functions = sorted({key.function for key in group.keys} - {""})
        if group.keys[0].ruled:
            title = "made by rules"
        elif group.keys[0].kernel is not None:
            title = ", ".join(f"kernel {key.kernel}" for key in group.keys[:3])
        elif group.keys[0].place:
            title = ", ".join(dict.fromkeys(key.place for key in group.keys))
        elif functions:
            title = ", ".join(f"function {name}" for name in functions[:3])
        elif not lines[-1]:  # of other cells
            title = ", ".join(sorted({key.cell for key in group.keys} - {""})[:3]) or "no line"
        else:
            title = f"line {lines[0]}" if len(lines) == 1 else f"lines {lines[0]}–{lines[-1]}"
            cells = sorted({key.cell for key in group.keys})
            title = f"{' '.join(cells[:2])} {title}" if len(self.cells) > 1 else title
        roles = {key.role for key in group.keys}
        title += ", gradient" if roles == {"adjoint"} else ", tangent" if roles == {"tangent"} else ""
        return clean(f"{title} ({group.part + 1} of {group.parts})" if group.parts > 1 else title, 80)

    def _group_box(
        self, title: str, key: str, members: list[int], depth: int, crossing: tuple[list[int], list[int]]
    ) -> Box:
        vertices = [self.parts.vertices[index] for index in members]
        names = Counter(operation(clean(vertex.label, 40)) for vertex in vertices if vertex.is_op)
        inner = [body for vertex in vertices for body in self.parts.inner.get(vertex.id, ())]
        ops = sum(names.values()) + sum(body.ops for body in inner)
        note = f"{ops} op{'s' * (ops != 1)}"
        common = [item.replace(" ", "\N{NO-BREAK SPACE}") for item in counted(dict(names.most_common(4)))]
        face = group_face(title, note, whole_items(common, 300, 12, more=len(names) > len(common)))
        entries, exits = crossing
        heading = title if vertices[0].place and title.startswith(vertices[0].place) else f"{title}: {note}"

        def opened() -> Opened:
            held = self._compose(members, depth + 1, f"{key}/", entries, exits)
            held = held if entries else _lowered(held)
            ports = held.boxes[len(held.boxes) - len(entries) - len(exits) :]
            middle = held.width / 2
            at = [port.x - middle for port in ports]
            return Opened(
                held,
                _wide(held, heading),
                round(held.height + HEAD + (0.0 if exits else SIDE), 1),
                {self.parts.keys[index]: x for index, x in zip(entries, at, strict=False)},
                {self.parts.keys[index]: x for index, x in zip(exits, at[len(entries) :], strict=True)},
            )

        keys = [self.parts.keys[index] for index in members]
        lines = sorted({vertex.line for vertex in vertices if vertex.line})
        holds = frozenset([*keys, *(v.id for body in inner for v in body.everything())])
        is_open = not self.is_large and not any(one.ruled for index in members for one in self.paths[index])
        inside = Inside(heading, is_open, opened, holds, tuple(lines))
        return Box(key, 0, 0.0, face, None, inside)


def _lowered(held: Picture) -> Picture:
    """Return a picture with room above: signs at the corners of its first boxes would stand in a title."""
    boxes = tuple(replace(box, row=box.row + 1) for box in held.boxes)
    return Picture(boxes, held.routes, (SIDE, *held.gaps))


def _with_ways_back(held: Picture, returns: Sequence[tuple[str, str]]) -> Picture:
    """Return a loop's body with the ways of its values into the next iteration, and room for them."""
    ways = ways_back(returns, {box.key: k for k, box in enumerate(held.boxes)})
    return replace(_lowered(held), returns=ways) if ways else held


def _wide(held: Picture, title: str) -> float:
    """Return the width of an open group: it holds its picture, and its title fits."""
    return round(max(held.width + 2 * SIDE, narrowest(title)), 1)


def _region_box(parts: _Parts, index: int, bodies: tuple[View, ...]) -> Box:
    """Return the box of a vertex with graphs of its own: a group that holds them."""
    vertex = parts.vertices[index]
    ops = sum(body.ops for body in bodies)
    note = f"{ops} op{'s' * (ops != 1)} inside"
    told = TURNED * (vertex.label == WHILE.name)

    def opened() -> Opened:
        inner = draw(bodies[0]) if len(bodies) == 1 else _beside(parts.keys[index], bodies)
        tall = round(inner.height + HEAD + SIDE, 1)
        return Opened(inner, _wide(inner, f"{vertex.title}: {note}{told}"), tall, {}, {})

    small = len(parts.keys) + sum(len(body.vertices) for body in bodies) <= OPEN_REGIONS_BELOW
    members = [v for body in bodies for v in body.everything()]
    holds, lines = frozenset(v.id for v in members), sorted({v.line for v in members if v.line})
    inside = Inside(f"{vertex.title}: {note}", small, opened, holds, tuple(lines), told)
    return Box(parts.keys[index], 0, 0.0, vertex_face(vertex, note), vertex, inside, vertex.id in parts.results)


def _beside(key: str, bodies: tuple[View, ...]) -> Picture:
    """Lay out the graphs of one region beside each other, each as a group with its name."""
    boxes: list[Box] = []
    for body in bodies:
        picture = draw(body)
        note = f"{body.ops} op{'s' * (body.ops != 1)}"
        title, told = f"{body.name}: {note}", TOLD * (body.name in {"then", "else"})
        opened = Opened(picture, _wide(picture, title + told), round(picture.height + HEAD + SIDE, 1), {}, {})
        holds = frozenset(v.id for v in body.everything())
        inside = Inside(title, True, lambda opened=opened: opened, holds, later_told=told)
        boxes.append(Box(f"{key}/{body.name}", 0, 0.0, group_face(body.name, note, ""), None, inside))
    return _lay(boxes, [], frozenset(), frozenset())


def _lay(boxes: list[Box], operands: list[_Operand], top: frozenset[int], bottom: frozenset[int]) -> Picture:
    """Place the boxes and give every link its way."""
    counts = Counter(operand.target for operand in operands)
    enters: list[float] = []
    links: list[Link] = []
    for operand in operands:
        source, target = boxes[operand.source], boxes[operand.target]
        enter = operand.enters
        if target.vertex is not None:
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
    """Order the operands of commutative ops by the direction that their links come from."""
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
