"""Boxes of mathematics: glyphs, fractions, fences and the like, each with its extent about a baseline, drawn as SVG.

Widths are those of Times and of what is drawn like it; text is fitted to them, so that it never overlaps in whatever
face the reader has. Signs that grow with what stands beside them are paths.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape

from tensormagic.notebook.pictures.labels import clean
from tensormagic.notebook.pictures.palette import LIGHT, scoped

_FACES = "'STIX Two Text','STIX Two Math',STIXGeneral,Cambria,'Times New Roman','Liberation Serif','DejaVu Serif',serif"
_UPRIGHT = {  # in thousandths of an em, characters of that width
    250: " ,.\N{NO-BREAK SPACE}",
    278: "/:;\\ijlt",
    333: "!()-I[]`frJ",
    389: "s",
    444: "?acez",
    500: "#$*_0123456789bdghknopquvxy\"'~",
    556: "FPS",
    611: "ELTZ<>=+^−",
    667: "BCR",
    722: "ADGHKNOQUVXYw",
    778: "&m%",
    944: "MW@←",
    480: "{}",
    200: "|",
    290: "′·",
    540: "∂",
    700: "ΓΔΘΛΞΠΣΥΦΨ≤≥≠∧∨⊕⊙⊤¬∞∼…",
}
_SLANTED = {
    278: "fijlt",
    389: "rsz",
    444: "Icekvxy",
    520: "abdghnopquSJ",
    611: "ABEFLPRTXYZ",
    700: "CDGHKNOQUVmwM",
    833: "W",
}
_WIDE = {
    slanted: {c: k / 1000 for k, characters in table.items() for c in characters}
    for slanted, table in ((False, _UPRIGHT), (True, _UPRIGHT | _SLANTED))
}
_MARGIN = 6.0


@dataclass(frozen=True)
class _Mark:
    """Something that is drawn at a place: an element of SVG without its place."""

    x: float
    y: float
    element: str
    attributes: str
    text: str = ""

    def svg(self) -> str:
        place = f'x="{self.x:.1f}" y="{self.y:.1f}"'
        if self.element == "path":
            place = f'transform="translate({self.x:.1f} {self.y:.1f})"'
        return f"<{self.element} {place} {self.attributes}>{escape(self.text)}</{self.element}>"


@dataclass(frozen=True)
class Box:
    """What is drawn, from the left end of a baseline: how far it goes to the right, above and below that."""

    width: float
    ascent: float
    descent: float
    marks: tuple[_Mark, ...] = ()

    def at(self, x: float, y: float) -> tuple[_Mark, ...]:
        """Return the marks, moved to the right and down."""
        return tuple(_Mark(m.x + x, m.y + y, m.element, m.attributes, m.text) for m in self.marks)


EMPTY = Box(0.0, 0.0, 0.0)


def _em(character: str, *, slanted: bool) -> float:
    known = _WIDE[slanted].get(character)
    if known is not None:
        return known
    if unicodedata.combining(character):
        return 0.0
    return 0.6 if character < "\u0600" or "\u1e00" <= character < "\u2100" else 1.0


def glyphs(text: str, size: float, *, slanted: bool = False) -> Box:
    """Return text as a box in one line."""
    text = clean(text)
    width = size * sum(_em(c, slanted=slanted) for c in text)
    if not text.strip():
        return Box(width, 0.0, 0.0)
    fitted = f'font-size="{size:g}" textLength="{width:.1f}" lengthAdjust="spacingAndGlyphs"'
    kind = ' class="slanted"' if slanted else ""
    return Box(width, 0.72 * size, 0.22 * size, (_Mark(0, 0, "text", fitted + kind, text),))


def _path(d: str, *, stroke: float = 0.0) -> _Mark:
    kind = f'class="line" stroke-width="{stroke:.2f}"' if stroke else ""
    return _Mark(0, 0, "path", f'd="{d}" {kind}')


def _rule(width: float, size: float) -> Box:
    return Box(width, 0.0, 0.0, (_path(f"M0 0H{width:.1f}", stroke=_thickness(size)),))


def _thickness(size: float) -> float:
    return max(0.055 * size, 0.7)


def _axis(size: float) -> float:
    """Return how far above the baseline the middle of signs is."""
    return 0.26 * size


def beside(boxes: Sequence[Box]) -> Box:
    """Return boxes side by side on one baseline."""
    x, marks = 0.0, list[_Mark]()
    for box in boxes:
        marks += box.at(x, 0)
        x += box.width
    return Box(
        x, max((b.ascent for b in boxes), default=0.0), max((b.descent for b in boxes), default=0.0), tuple(marks)
    )


def fraction(top: Box, bottom: Box, size: float) -> Box:
    """Return one box over another, with a rule between them."""
    width, gap, axis = max(top.width, bottom.width) + 0.2 * size, 0.14 * size, _axis(size)
    up = axis + gap + top.descent
    down = gap + bottom.ascent - axis
    marks = (
        *top.at((width - top.width) / 2, -up),
        *bottom.at((width - bottom.width) / 2, down),
        *_rule(width, size).at(0, -axis),
    )
    pad = 0.08 * size
    moved = Box(width, 0, 0, marks).at(pad, 0)
    return Box(width + 2 * pad, up + top.ascent, down + bottom.descent, moved)


def scripts(base: Box, above: Box | None, below: Box | None, size: float) -> Box:
    """Return a box with an exponent, an index, or both."""
    marks, width, ascent, descent = list(base.marks), 0.0, base.ascent, base.descent
    up = max(0.36 * size, base.ascent - 0.32 * size)
    down = max(0.16 * size, base.descent - 0.02 * size)
    if above is not None and below is not None:
        down = max(down, 0.12 * size + below.ascent + above.descent - up)
    if above is not None:
        up = max(up, above.descent + 0.22 * size)
        marks += above.at(base.width + 0.05 * size, -up)
        width, ascent = above.width, max(ascent, up + above.ascent)
    if below is not None:
        down = max(down, below.ascent - 0.4 * size)
        marks += below.at(base.width, down)
        width, descent = max(width, below.width), max(descent, down + below.descent)
    return Box(base.width + width + 0.07 * size, ascent, descent, tuple(marks))


def under(base: Box, below: Box, size: float) -> Box:
    """Return a box with another below it, in the middle."""
    width = max(base.width, below.width)
    down = base.descent + 0.12 * size + below.ascent
    marks = (*base.at((width - base.width) / 2, 0), *below.at((width - below.width) / 2, down))
    return Box(width, base.ascent, down + below.descent, marks)


# signs that grow ------------------------------------------------------------------------------------------------------


def _crescent(width: float, tall: float, thick: float) -> _Mark:
    """Return a bracket that is thick in the middle: it opens to the right, or to the left where its width is negative."""
    way = 1 if width > 0 else -1
    outer, inner = -width, -width + 2 * thick * way
    return _path(
        f"M{width:.2f} 0Q{outer:.2f} {tall / 2:.2f} {width:.2f} {tall:.2f}Q{inner:.2f} {tall / 2:.2f} {width:.2f} 0Z"
    )


def _brace(width: float, tall: float) -> str:
    half, middle = width / 2, tall / 2
    turn = min(half * 1.4, tall / 4)
    return (
        f"M{width:.2f} 0Q{half:.2f} 0 {half:.2f} {turn:.2f}V{middle - turn:.2f}Q{half:.2f} {middle:.2f} 0 {middle:.2f}"
        f"Q{half:.2f} {middle:.2f} {half:.2f} {middle + turn:.2f}V{tall - turn:.2f}Q{half:.2f} {tall:.2f} {width:.2f} {tall:.2f}"
    )


def _fence(sign: str, tall: float, size: float) -> tuple[float, _Mark | None]:
    """Return the width of a fence, and the fence, from its upper left corner."""
    width = {"": 0.0, "|": 0.26, "{": 0.55}.get(sign, 0.34) * size
    pad, across, line = 0.07 * size, width - 0.14 * size, _thickness(size)
    if sign in {"(", ")"}:
        way = 1 if sign == "(" else -1
        mark = _crescent(across * way, tall, line * 1.35)
        return width, _Mark(pad if way > 0 else pad + across, 0, "path", mark.attributes)
    left, right, top, bottom = pad, pad + across, 0.0, tall
    shapes = {
        "|": f"M{width / 2:.2f} 0V{tall:.2f}",
        "[": f"M{right:.2f} {top}H{left:.2f}V{bottom:.2f}H{right:.2f}",
        "]": f"M{left:.2f} {top}H{right:.2f}V{bottom:.2f}H{left:.2f}",
        "⌊": f"M{left:.2f} {top}V{bottom:.2f}H{right:.2f}",
        "⌋": f"M{right:.2f} {top}V{bottom:.2f}H{left:.2f}",
        "⌈": f"M{left:.2f} {bottom:.2f}V{top}H{right:.2f}",
        "⌉": f"M{right:.2f} {bottom:.2f}V{top}H{left:.2f}",
        "{": _brace(width * 0.75, tall),
    }
    return width, _path(shapes[sign], stroke=line) if sign else None


def between(left: str, body: Box, right: str, size: float) -> Box:
    """Return a box between fences as tall as itself: ``( ) [ ] ⌊ ⌋ ⌈ ⌉ | {``, or nothing."""
    axis = _axis(size)
    half = max(body.ascent - axis, body.descent + axis, 0.5 * size)
    (before, opening), (after, closing) = (_fence(sign, 2 * half, size) for sign in (left, right))
    ends = [(opening, 0.0), (closing, before + body.width)]
    marks = [m for mark, x in ends if mark is not None for m in Box(0, 0, 0, (mark,)).at(x, -axis - half)]
    marks += body.at(before, 0)
    width = before + body.width + after
    return Box(width, max(half + axis, body.ascent), max(half - axis, body.descent), tuple(marks))


def root(body: Box, size: float) -> Box:
    """Return a square root."""
    tall = body.ascent + body.descent + 0.16 * size
    hook, line = 0.62 * size, _thickness(size)
    d = (
        f"M{0.06 * size:.2f} {tall * 0.62:.2f}L{0.2 * size:.2f} {tall * 0.55:.2f}L{0.38 * size:.2f} {tall:.2f}"
        f"L{hook - 0.06 * size:.2f} 0H{hook + body.width + 0.08 * size:.2f}"
    )
    ascent = body.ascent + 0.14 * size
    sign = Box(0, 0, 0, (_path(d, stroke=line),)).at(0, -ascent)
    return Box(hook + body.width + 0.12 * size, ascent + line, body.descent, (*sign, *body.at(hook, 0)))


def overlined(body: Box, size: float) -> Box:
    """Return a box under a rule."""
    up = body.ascent + 0.1 * size
    return Box(body.width, up + _thickness(size), body.descent, (*body.marks, *_rule(body.width, size).at(0, -up)))


_BIG = {  # in a square of one by one
    "∑": (
        "0 0 .93 0 .98 .22 .93 .22 Q .9 .07 .72 .07 L .26 .07 .62 .47 .21 .9 .74 .9 Q .9 .9 .96 .75 L 1 .75 .93 1 0 1 "
        "0 .95 .45 .51 0 .05"
    ),
    "∏": "0 0 1 0 1 .05 .89 .08 .89 .92 1 .95 1 1 .62 1 .62 .95 .73 .92 .73 .08 .27 .08 .27 .92 .38 .95 .38 1 0 1 0 .95 "
    ".11 .92 .11 .08 0 .05",
    "⋁": "0 0 .12 0 .5 .82 .88 0 1 0 .56 1 .44 1",
    "⋀": "0 1 .12 1 .5 .18 .88 1 1 1 .56 0 .44 0",
}


def big(sign: str, size: float, *, tall: bool) -> Box:
    """Return one of ``∑ ∏ ⋁ ⋀``, large if it stands alone, smaller beside text."""
    high = (1.35 if tall else 0.95) * size
    wide = 0.78 * high
    axis, pad = _axis(size), 0.06 * size
    mark = Box(0, 0, 0, (_path(f"M{' '.join(_scaled(_BIG[sign], wide, high))}Z"),)).at(pad, -axis - high / 2)
    return Box(wide + 2 * pad, high / 2 + axis, high / 2 - axis, mark)


def _scaled(path: str, wide: float, high: float) -> list[str]:
    """Return the letters and pairs of a path, each pair made as large as the sign is."""
    parts, found = path.split(), list[str]()
    while parts:
        if parts[0].isalpha():
            found.append(parts.pop(0))
        else:
            x, y = float(parts.pop(0)) * wide, float(parts.pop(0)) * high
            found.append(f"{x:.2f} {y:.2f}")
    return found


# tables and the whole -------------------------------------------------------------------------------------------------


def grid(rows: Sequence[Sequence[Box]], right: Sequence[bool], *, across: float, down: float, size: float) -> Box:
    """Return boxes in rows and columns, each aligned left or right in its column."""
    columns = [max((row[k].width for row in rows if k < len(row)), default=0.0) for k in range(len(right))]
    starts = [sum(columns[:k]) + across * k for k in range(len(right))]
    marks: list[_Mark] = []
    y = 0.0
    for row in rows:
        y += max([0.7 * size, *(b.ascent for b in row)])
        for k, box in enumerate(row):
            marks += box.at(starts[k] + (columns[k] - box.width) * right[k], y)
        y += max([0.25 * size, *(b.descent for b in row)]) + down
    tall = y - down
    half = tall / 2
    width = starts[-1] + columns[-1]
    return Box(width, half + _axis(size), half - _axis(size), Box(0, 0, 0, tuple(marks)).at(0, -half - _axis(size)))


def drawing(box: Box, title: str) -> str:
    """Return a box as a standalone SVG with a title."""
    wide, tall = box.width + 2 * _MARGIN, box.ascent + box.descent + 2 * _MARGIN
    ink = LIGHT["ink"]
    colours = f".ground{{fill:{LIGHT['ground']}}}\ntext,path{{fill:{ink}}}\n.line{{fill:none;stroke:{ink}}}"
    faces = f"text{{font-family:{_FACES};white-space:pre}}\n.slanted{{font-style:italic}}"
    style = scoped(f"{faces}\n{colours}", ".tm-formula")
    size = f'width="{wide:.0f}" height="{tall:.0f}" viewBox="0 0 {wide:.1f} {tall:.1f}"'
    marks = "".join(m.svg() for m in box.at(_MARGIN, _MARGIN + box.ascent))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" class="tm-formula"><title>{escape(clean(title, 2_000))}</title>'
        f'<style>{style}</style><rect class="ground" width="100%" height="100%" rx="4"/>{marks}</svg>\n'
    )
