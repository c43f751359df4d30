"""A sheet as a picture: nodes from top to bottom, on each way between two of them a card with the local derivative.

The same markup stands alone as an SVG, with its final numbers, and in a page, where a script writes other numbers in.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from itertools import pairwise
from xml.sax.saxutils import escape, quoteattr

from tensormagic.notebook.backprop.cells import extent, strip
from tensormagic.notebook.backprop.sheet import SQUARES, Sheet, Shown, Used
from tensormagic.notebook.pictures.labels import clean, shorten, width
from tensormagic.notebook.pictures.layout import Link, layered
from tensormagic.notebook.pictures.palette import LIGHT, in_themes, rules, scoped
from tensormagic.notebook.pictures.shapes import outline

MARGIN = 16.0
_GAP = 17.0  # between two rows
_ROW = 16.0  # a line of text
_WIDEST = 380.0  # of a heading
_FONT = "system-ui,-apple-system,'Segoe UI','DejaVu Sans',Arial,sans-serif"
_PADDING = {"input": 16.0, "fold": 22.0, "contract": 24.0, "opaque": 20.0, "region": 16.0}
# Okabe and Ito's vermilion, dark or light enough to be read, and their orange and blue
_OWN = {
    "light": {"back": "#b34700", "above": "#e69f00", "below": "#0072b2", "strength": "0.7"},
    "dark": {"back": "#ff9d5c", "above": "#e69f00", "below": "#56b4e9", "strength": "0.45"},
    "forced": {"back": "LinkText", "above": "CanvasText", "below": "LinkText", "strength": "0.5"},
}
_LEGEND = (
    "value: computed forward, from above. adjoint: the gradient of the result with respect to a box, passed up the orange heads.",
    "The adjoint of an input is its gradient. A dashed box: what the box below passes up, its adjoint times the local derivative.",
    "×: of numbers, or element by element, as * in NumPy; ·: what comes in by an arrow; J: a matrix of derivatives.",
)


@dataclass(frozen=True)
class _Box:
    """What is placed: a node or a card."""

    width: float
    height: float
    markup: str


@dataclass(frozen=True)
class Picture:
    """Markup with its size, and where the nodes are, for scrolling."""

    markup: str
    width: float
    height: float


def drawn(sheet: Sheet) -> Picture:
    """Lay out a sheet, with the numbers of both passes in it."""
    nodes = [_node(sheet, k, shown) for k, shown in enumerate(sheet.nodes)]
    boxes, links, ends = list(nodes), list[Link](), list[int]()
    counts = [sum(u.target == k for u in sheet.uses) for k in range(len(nodes))]
    seen = [0] * len(nodes)
    for k, use in sorted(enumerate(sheet.uses), key=lambda item: (item[1].target, item[1].port)):
        target = use.target
        share = (seen[target] + 1) / (counts[target] + 1) - 0.5
        seen[target] += 1
        enters = share * nodes[target].width * 0.8 if counts[target] > 1 else 0.0
        card = _card(sheet, k, use)
        if card is None:
            links.append(Link(use.source, target, 0.0, enters, k))
            ends.append(k)
            continue
        boxes.append(card)
        links += [Link(use.source, len(boxes) - 1, 0.0, 0.0, k), Link(len(boxes) - 1, target, 0.0, enters, k)]
        ends += [k, k]
    return _placed(boxes, links, ends, len(nodes), {k for k, use in enumerate(sheet.uses) if use.part is not None})


def _placed(
    boxes: Sequence[_Box], links: Sequence[Link], ends: Sequence[int], count: int, carrying: AbstractSet[int]
) -> Picture:
    # laid out from the result up, so that each card stands beside the node whose derivative it has
    flipped = [Link(link.target, link.source, link.enters, link.leaves, k) for k, link in enumerate(links)]
    upwards = layered([box.width for box in boxes], flipped)
    last = max(upwards.rows, default=0)
    rows = [last - row for row in upwards.rows]
    bends = [tuple(reversed(bend)) for bend in upwards.bends]
    heights = [0.0] * (last + 1)
    for box, row in zip(boxes, rows, strict=True):
        heights[row] = max(heights[row], box.height)
    tops = [sum(heights[:k]) + _GAP * k for k in range(len(heights))]
    middles = [top + height / 2 for top, height in zip(tops, heights, strict=True)]
    ways = [
        _way(link, bend, boxes, rows, upwards.x, list(zip(tops, heights, strict=True)), use, carries=use in carrying)
        for link, bend, use in zip(links, bends, ends, strict=True)
    ]
    drawn_ = [
        f'<g transform="translate({_n(x)} {_n(middles[row])})">{box.markup}</g>'
        for box, row, x in zip(boxes, rows, upwards.x, strict=True)
    ]
    reach = [x + box.width / 2 for box, x in zip(boxes, upwards.x, strict=True)]
    wide = max([*reach, *(x for bend in bends for x in bend)], default=0.0)
    return Picture("".join([*ways, *drawn_[count:], *drawn_[:count]]), wide, tops[-1] + heights[-1])


def _way(
    link: Link,
    bends: Sequence[float],
    boxes: Sequence[_Box],
    rows: Sequence[int],
    x: Sequence[float],
    spans: Sequence[tuple[float, float]],
    use: int,
    *,
    carries: bool,
) -> str:
    """Return a link as curves between rows, straight down through them: a head where it ends, and one where an adjoint goes back."""
    source, target = rows[link.source], rows[link.target]
    places = [x[link.source] + link.leaves, *bends, x[link.target] + link.enters]
    begin = sum(spans[source]) - spans[source][1] / 2 + boxes[link.source].height / 2
    end = spans[target][0] + spans[target][1] / 2 - boxes[link.target].height / 2
    path = [f"M{_n(places[0])} {_n(begin)}V{_n(sum(spans[source]))}"]
    for row, (left, right) in enumerate(pairwise(places), source):
        above, below = sum(spans[row]), spans[row + 1][0]
        middle = (above + below) / 2
        path.append(f"C{_n(left)} {_n(middle)} {_n(right)} {_n(middle)} {_n(right)} {_n(below)}")
        path.append(f"V{_n(sum(spans[row + 1]) if row + 1 < target else end)}")
    down = f'<path class="down" d="M{_n(places[-1] - 3)} {_n(end - 5)}l3 5l3 -5"/>'
    up = f'<path class="up" d="M{_n(places[0] - 3)} {_n(begin + 5)}l3 -5l3 5"/>' if carries else ""
    return f'<g class="way" data-u="{use}"><path d="{"".join(path)}"/>{down}{up}</g>'


def _node(sheet: Sheet, number: int, shown: Shown) -> _Box:
    """Draw a node: its label, its value, its adjoint, and the sum that the adjoint is."""
    heading = shorten(shown.heading, _WIDEST, 13, bold=True)
    value = shown.value
    rows = [("value", "value", value.text(sheet.frame), value.quantity.placeholder)]
    total = ""
    if shown.adjoint is not None:
        adjoint = shown.adjoint
        rows.append(("adjoint", "adjoint", adjoint.text(sheet.frame), adjoint.quantity.placeholder))
        total = sheet.sum_text(shown, sheet.frame)
    slots = {"value": value, "adjoint": shown.adjoint}
    strips = {name: (slot, extent(slot.quantity)) for name, slot in slots.items() if slot is not None}
    aside = 9.0 if shown.kind == "input" else 0.0  # where the outline is round
    below = {
        name: size[1] + 5 if size[1] else 0.0 for name, (_, size) in strips.items()
    }  # of the strip, under its number
    sum_room = width(_longest_sum(shown, total), 12) if total else 0.0
    inner = max(
        width(heading, 13, bold=True),
        *(60 + width(room, 12) for *_, room in rows),
        sum_room,
        *(size[0] + aside for _, size in strips.values()),
    )
    wide = inner + 2 * _PADDING.get(shown.kind, 12.0)
    tall = 22 + _ROW * len(rows) + (15 if total else 0) + sum(below.values()) + 5
    left, right, y = -inner / 2, inner / 2, -tall / 2 + 16
    texts = [f'<text class="heading" y="{_n(y)}">{escape(heading)}</text>']
    for label, name, text, _ in rows:
        y += _ROW
        texts.append(f'<text class="what" x="{_n(left)}" y="{_n(y)}">{label}</text>')
        texts.append(f'<text class="number {name}" data-p="{name}" x="{_n(right)}" y="{_n(y)}">{escape(text)}</text>')
        if below[name]:
            slot, size = strips[name]
            floats = sheet.frame[slot.at : slot.at + slot.quantity.size]
            texts.append(strip(slot.quantity, floats, right - aside - size[0], y + 6, name))
            y += below[name]
    if total:
        y += 14
        texts.append(f'<text class="sum adjoint" data-p="sum" x="{_n(right)}" y="{_n(y)}">{escape(total)}</text>')
    result = " result" if shown is sheet.result else ""
    told = ", ".join(part for part in (shown.heading, shown.type, shown.place) if part)
    return _Box(
        wide,
        tall,
        f'<g class="node {shown.kind}{result}" data-n="{number}"><title>{escape(clean(told, 300))}</title>'
        f'<path d="{outline(shown.kind if shown.kind != "output" else "input", wide, tall)}"/>{"".join(texts)}</g>',
    )


def _longest_sum(shown: Shown, total: str) -> str:
    """Return a text as long as the sum may become."""
    if not total.startswith("="):
        return total
    count = len(shown.uses)
    return "= " + " + ".join(["-0.0001234"] * min(count, 3)) + (" + … (99)" if count > 3 else "")


def _card(sheet: Sheet, number: int, use: Used) -> _Box | None:
    """Return the local derivative on a way, and what flows back there, or None where nothing does."""
    if use.part is None:
        return None
    local = sheet.card_text(use, sheet.frame)
    equals = "" if use.part.quantity.is_many else "= "  # an array is not its norm
    part = f"{equals}{use.part.text(sheet.frame)}"
    rooms = [local, f"{equals}{use.part.quantity.placeholder}"]
    if use.local is not None and use.kind != "matrix" and not use.in_words:
        room = f"adjoint × {use.local.quantity.placeholder}"
        rooms.append(f"sum({room})" if use.kind == "column" else room)
    wide = max(width(room, 12) for room in rooms) + 14
    told = f"from {sheet.nodes[use.target].heading} back to {sheet.nodes[use.source].heading}: {use.formula or local}"
    return _Box(
        wide,
        38.0,
        f'<g class="card" data-u="{number}"><title>{escape(clean(told, 300))}</title>'
        f'<rect x="{_n(-wide / 2)}" y="-19" width="{_n(wide)}" height="38" rx="9"/>'
        f'<text class="local" data-p="local" y="-4">{escape(local)}</text>'
        f'<text class="part adjoint" data-p="part" y="12">{escape(part)}</text></g>',
    )


# as an SVG ------------------------------------------------------------------------------------------------------------


def standalone(sheet: Sheet, picture: Picture) -> str:
    """Return the picture as an SVG that stands alone, light or dark as the reader prefers."""
    title = clean(sheet.title, 200)
    notes = [shorten(sheet.notes, 700, 12)] if sheet.notes else []
    squares = [SQUARES] if 'class="cells"' in picture.markup else []
    words = [*_LEGEND, *squares, *notes]
    wide = max(picture.width, width(title, 14, bold=True), *(width(w, 12) for w in words)) + 2 * MARGIN
    top = 34 + 17 * len(words)
    tall = top + picture.height + 2 * MARGIN
    lines = "".join(f'<text class="note" x="16" y="{46 + 17 * k}">{escape(words[k])}</text>' for k in range(len(words)))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_n(wide)}" height="{_n(tall)}" '
        f'viewBox="0 0 {_n(wide)} {_n(tall)}" role="img" class="tm-passes" style="max-width:100%;height:auto">\n'
        f"<title>{escape(title)}</title>\n<desc>{escape(sheet.table())}</desc>\n<style>{_alone()}</style>\n"
        f'<rect class="ground" width="100%" height="100%" rx="6" fill="#ffffff"/>\n'
        f'<text class="view" x="16" y="26">{escape(title)}</text>{lines}\n'
        f'<g transform="translate({_n((wide - picture.width) / 2)} {_n(top + MARGIN)})">{picture.markup}</g>\n</svg>\n'
    )


def in_page(sheet: Sheet, picture: Picture) -> str:
    """Return the picture for a page that has the style: no title of its own, a name for those who do not see it."""
    # in whole pixels: a browser rounds the width that it draws, and text must not become smaller by it
    wide, tall = math.ceil(picture.width + 2 * MARGIN), math.ceil(picture.height + 2 * MARGIN)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_n(wide)}" height="{_n(tall)}" '
        f'viewBox="{_n(-MARGIN)} {_n(-MARGIN)} {_n(wide)} {_n(tall)}" role="img" aria-label={quoteattr(clean(sheet.title, 200))}>'
        f"{picture.markup}</svg>"
    )


_PLAIN = f"""text{{font-family:{_FONT};text-anchor:middle;unicode-bidi:plaintext}}
.heading{{font-size:13px;font-weight:700}}
.what{{font-size:12px;text-anchor:start}}
.number{{font-size:12px;text-anchor:end;font-variant-numeric:tabular-nums}}
.sum{{font-size:12px;text-anchor:end}}
.local,.part{{font-size:12px;font-variant-numeric:tabular-nums}}
.number.adjoint,.part{{font-weight:600}}
.view{{font-size:14px;font-weight:700;text-anchor:start}}
.note{{font-size:12px;text-anchor:start}}
.node path{{stroke-width:1.4}}
.input path{{stroke-width:2.2}}
.result>path{{stroke-width:3}}
.card rect{{stroke-width:1;stroke-dasharray:3 2}}
.way{{fill:none;stroke-width:1.3;stroke-linecap:round;stroke-linejoin:round}}"""


def _coloured(colour: Callable[[str], str]) -> str:
    """Return the rules of the palette for outlines, and those of this picture."""
    own = f""".heading{{fill:{colour("ink")};stroke:none}}
.what,.note{{fill:{colour("soft")}}}
.adjoint{{fill:{colour("back")}}}
.above{{fill:{colour("above")}}}
.below{{fill:{colour("below")}}}
.card rect{{fill:{colour("ground")};stroke:{colour("edge")}}}
.way{{stroke:{colour("edge")}}}
.up{{stroke:{colour("back")};stroke-width:2.2}}"""
    return f"{rules(colour)}\n{own}"


def _alone() -> str:
    return scoped(f"{_PLAIN}\n{_coloured((LIGHT | _OWN['light']).__getitem__)}", ".tm-passes")


def style(scope: str) -> str:
    """Return the style of the picture inside ``scope`` of a page, whose variables have the colours."""
    body = f"{_PLAIN}\n{_coloured(lambda name: f'var(--tm-{name})')}"
    return f"{in_themes(scope, _OWN['light'], _OWN['dark'], _OWN['forced'])}{scoped(body, f'{scope} svg')}\n"


def _n(value: float) -> str:
    return f"{value:.1f}".rstrip("0").rstrip(".") if math.isfinite(value) else "0"
