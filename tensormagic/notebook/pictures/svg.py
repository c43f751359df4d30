"""A scene as an SVG that stands alone: own colours and size, a title and a description, no script, no reference."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING
from xml.sax.saxutils import escape

from tensormagic.notebook.pictures.draw import draw
from tensormagic.notebook.pictures.labels import DID_NOT, STAGES, clean, shorten, width
from tensormagic.notebook.pictures.palette import standalone
from tensormagic.notebook.pictures.picture import HEAD
from tensormagic.notebook.pictures.returning import lane, way
from tensormagic.notebook.pictures.shapes import OUTLINES, describe, mark, outline

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tensormagic.notebook.pictures.picture import Box, Picture, Route
    from tensormagic.notebook.pictures.scene import Scene, Vertex, View


NARROW = 296.0  # pixels beside the margins: what a phone shows without scrolling
MARGIN = 16.0
TALLEST = 1500.0  # pixels: what is taller is drawn by lines of the cell
BESIDE = 1100.0  # views stand side by side up to this width
NOTHING: Mapping[str, str] = {}
Went = Mapping[int, Mapping[str, str]]  # what the run was, by vertices and the names of frames


@dataclass(frozen=True)
class _Panel:
    """A drawn part with its size."""

    markup: str
    width: float
    height: float


def render(scene: Scene, views: Sequence[str] | None = None) -> str:
    """Draw views of a scene as one SVG.

    Parameters
    ----------
    scene : Scene
        What to draw.
    views : sequence of str, optional
        Names of views, drawn side by side where they fit, else one below the other. Default: the first view.

    Returns
    -------
    str
        The SVG, well-formed XML for all names and values.

    Raises
    ------
    KeyError
        If the scene has no view of a name.
    """
    chosen = [scene.view(name) for name in views] if views is not None else list(scene.views[:1])
    panels = [_panel(view, scene.went(view.name)) for view in chosen]
    across = sum(panel.width for panel in panels) + 2 * MARGIN * max(len(panels) - 1, 0)
    beside = across <= BESIDE
    room = max(across if beside else max(panel.width for panel in panels), 220.0)
    legend = _legend([vertex for view in chosen for vertex in _shown(view.picture)], max(room, NARROW))
    wide = max(room, legend.width) + 2 * MARGIN
    markup: list[str] = []
    x = y = MARGIN
    for panel in panels:
        markup.append(f'<g transform="translate({_n(x)} {_n(y)})">{panel.markup}</g>')
        x, y = (x + panel.width + 2 * MARGIN, y) if beside else (x, y + panel.height + 2 * MARGIN)
    below = (MARGIN + max((panel.height for panel in panels), default=0.0) + MARGIN) if beside else y - MARGIN
    markup.append(f'<g transform="translate({_n(MARGIN)} {_n(below)})">{legend.markup}</g>')
    tall = below + legend.height + MARGIN
    title = clean(f"{scene.title}: {scene.summary}" if scene.title else scene.summary, 200)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_n(wide)}" height="{_n(tall)}" '
        f'viewBox="0 0 {_n(wide)} {_n(tall)}" role="img" class="tm-still" style="max-width:100%;height:auto">\n'
        f"<title>{escape(title)}</title>\n<desc>{escape(scene.text())}</desc>\n"
        f"<style>{standalone()}</style>\n"
        f'<rect class="ground" width="100%" height="100%" rx="6" fill="#ffffff"/>\n' + "\n".join(markup) + "\n</svg>\n"
    )


def _panel(view: View, went: Went) -> _Panel:
    name = shorten(STAGES.get(view.name, view.name), 200, 14, bold=True)
    count = view.counted
    start = width(name, 14, bold=True) + 12
    heading = f'<text class="view" y="12">{escape(name)}</text><text class="note" x="{_n(start)}" y="12">{count}</text>'
    picture = view.picture
    if picture.height > TALLEST and "line" in view.groupings:
        picture = draw(view.drawn, "line", closed=True)
    body = f'<g transform="translate(0 30)">{_picture(picture, went)}</g>'
    return _Panel(heading + body, max(picture.width, start + width(count, 12)), picture.height + 34)


def _picture(picture: Picture, went: Went, around: Mapping[str, str] = NOTHING) -> str:
    """Draw a picture; ``around`` holds the notes of the enclosing region on its frames, by their names."""
    rows = picture.rows
    tops = [(rows[box.row].top + rows[box.row].bottom - box.height) / 2 for box in picture.boxes]
    own = [went.get(box.vertex.number, NOTHING) if box.vertex is not None else NOTHING for box in picture.boxes]
    said = [
        around.get(box.key.rpartition("/")[2], "") if box.vertex is None else told.get("", "")
        for box, told in zip(picture.boxes, own, strict=True)
    ]
    frames = [_frame(box, top, told) for box, top, told in zip(picture.boxes, tops, said, strict=True) if box.is_open]
    routes = [_route(picture, route, tops) for route in picture.drawn()]
    boxes = [
        _open(box, top, told, _picture(box.open.picture, went, inner)) if box.open is not None else _box(box, top)
        for box, top, told, inner in zip(picture.boxes, tops, said, own, strict=True)
        if box.face.path
    ]
    routes += [_way_back(picture, number, tops) for number in range(len(picture.returns))]
    return "".join([*frames, *routes, *boxes])


def _frame(box: Box, top: float, said: str) -> str:
    kind = "" if box.vertex is not None or not said else " idle" if said == DID_NOT else " ran"
    return (
        f'<rect class="frame{kind}" x="{_n(box.x - box.width / 2)}" y="{_n(top)}" width="{_n(box.width)}" '
        f'height="{_n(box.height)}" rx="10"/>'
    )


def _open(box: Box, top: float, said: str, held: str) -> str:
    """Draw an open group: its contents, and its title with the note on the run."""
    left = box.x - box.width / 2
    opened, title = box.open, box.inside.title if box.inside is not None else ""
    margin = (box.width - opened.picture.width) / 2 if opened is not None else 0.0
    heading = f"{title} \N{MIDDLE DOT} {said}" if said else title
    return (
        f'<g transform="translate({_n(left + margin)} {_n(top + HEAD)})">{held}</g>'
        f'<text class="heading" x="{_n(left + 10)}" y="{_n(top + 15)}">{escape(heading)}</text>'
    )


def _box(box: Box, top: float) -> str:
    inside, vertex = box.inside, box.vertex
    kind = "group" if vertex is None else vertex.kind
    extra = " yellow" * (vertex is not None and vertex.yellow) + " result" * box.result
    told = describe(vertex) if vertex is not None else inside.title if inside is not None else ""
    texts = "".join(
        f'<text class="{line.style}" y="{_n(line.y)}">{escape(line.text)}</text>' for line in box.face.texts
    )
    sign = mark(vertex) if vertex is not None else ""
    if sign:
        spot = f"{_n(box.width / 2 - 9)} {_n(-box.height / 2)}"
        texts += f'<g class="mark" transform="translate({spot})"><circle r="7.5"/><text y="4">{sign}</text></g>'
    return (
        f'<g class="box {kind}{extra}" transform="translate({_n(box.x)} {_n(top + box.height / 2)})">'
        f'<title>{escape(told)}</title><path d="{box.face.path}"/>{texts}</g>'
    )


def _route(picture: Picture, route: Route, tops: list[float]) -> str:
    """Draw a link: curves between rows, straight down through them, and an arrow's head."""
    source, target = picture.boxes[route.source], picture.boxes[route.target]
    x, y = source.x + route.leaves, tops[route.source] + source.height
    goes_in = target.is_open and target.vertex is None  # a region's graph takes its operands at its border
    end_x, end_y = target.x + route.enters, tops[route.target] + HEAD * goes_in
    head = "" if goes_in or not target.face.path else "m-3.5 -5.5l3.5 5.5l3.5 -5.5"
    if target.row - source.row != len(route.bends) + 1:
        middle = (y + end_y) / 2
        curve = f"C{_n(x)} {_n(middle)} {_n(end_x)} {_n(middle)} {_n(end_x)} {_n(end_y)}"
        return f'<path class="edge far" d="M{_n(x)} {_n(y)}{curve}{head}"/>'
    rows = picture.rows
    path = [f"M{_n(x)} {_n(y)}V{_n(rows[source.row].bottom)}"]
    for row, (left, right) in enumerate(pairwise([x, *route.bends, end_x]), source.row):
        above, below = rows[row].bottom, rows[row + 1].top
        middle = (above + below) / 2
        path.append(f"C{_n(left)} {_n(middle)} {_n(right)} {_n(middle)} {_n(right)} {_n(below)}")
        path.append(f"V{_n(rows[row + 1].bottom if row + 1 < target.row else end_y)}")
    return f'<path class="edge{" many" * route.many}" d="{"".join(path)}{head}"/>'


def _way_back(picture: Picture, number: int, tops: list[float]) -> str:
    """Draw the way of a loop's value into the next iteration."""
    source, target = picture.returns[number]
    one, other = picture.boxes[source], picture.boxes[target]
    start, end = (one.x, tops[source] + one.height), (other.x, tops[target])
    below, above = picture.rows[one.row].bottom, picture.rows[other.row].top
    return f'<path class="edge back" d="{way(start, below, lane(picture.edge, number), above, end)}"/>'


def _legend(vertices: list[Vertex], room: float) -> _Panel:
    """Return a legend of the outlines and signs that occur, in rows about as wide as ``room``."""
    x = y = wide = 0.0
    markup: list[str] = []
    kinds = {vertex.kind for vertex in vertices}
    entries = [(kind, "", told) for kind, told in OUTLINES.items() if kind in kinds]
    entries += [("", sign, told) for sign, told in (("∂", "adjoint"), ("d", "tangent")) if sign in map(mark, vertices)]
    for kind, sign, told in entries:
        long = 34 + width(told, 12) + 14
        if x + long > room and x:
            x, y = 0.0, y + 20
        sample = f'<g class="mark"><circle r="7.5"/><text y="4">{sign}</text></g>' if sign else _sample(kind)
        markup.append(
            f'<g transform="translate({_n(x + 13)} {_n(y + 8)})">{sample}'
            f'<text class="note" x="19" y="4">{told}</text></g>'
        )
        x += long
        wide = max(wide, x)
    return _Panel("".join(markup), wide, y + 18 if entries else 0.0)


def _shown(picture: Picture) -> list[Vertex]:
    """Return the vertices drawn, without those in closed groups."""
    shown: list[Vertex] = []
    for box in picture.boxes:
        if box.vertex is not None:
            shown.append(box.vertex)
        if box.open is not None:
            shown += _shown(box.open.picture)
    return shown


def _sample(kind: str) -> str:
    return f'<g class="box {kind}"><path d="{outline(kind, 26, 14)}"/></g>'


def _n(value: float) -> str:
    return f"{value:.1f}".rstrip("0").rstrip(".")
