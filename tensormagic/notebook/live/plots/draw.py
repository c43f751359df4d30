"""The parts of a picture as an SVG that stands alone, and their style sheet."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from xml.sax.saxutils import escape, quoteattr

from tensormagic.notebook.live.plots.frame import WIDE, Framed, Panel, Reading, Shape, coordinate
from tensormagic.notebook.pictures.labels import clean, shorten, wrapped
from tensormagic.notebook.pictures.palette import FONT, LIGHT, scoped

_ROW = 18.0  # of the heading
_DESCRIPTIONS = {
    "curve": "The curve of {}, with its tangent at the point",
    "contour": "Contours of {}, and its gradient as an arrow from the point",
    "bars": "slopes as bars",
    "columns": "a vector as columns, with the slope along each of its numbers below",
    "cells": "a matrix as cells, with the slope along each of its numbers beside them",
    "line": "The elements of {} as a line, and dashed where they go",
    "heat": "The elements of {} as a heat map, with their slopes beside it",
    "history": "every value that you moved to",
}


def described(parts: Sequence[Panel], name: str) -> str:
    """Return a description of a picture in words."""
    words = "; ".join(_DESCRIPTIONS[part.kind].replace("{}", name) for part in parts)
    return f"{words[:1].upper()}{words[1:]}."


def svg(parts: Sequence[Panel], title: str, description: str, reading: Reading) -> str:
    """Return the picture at one point, as an SVG that stands alone."""
    top, drawn = 0.0, ""
    for part in parts:
        drawn += f'<g transform="translate(0 {_n(top)})">{_panel(part, part.marks(reading))}</g>'
        top += part.tall
    style = scoped(f"{_PLAIN}\n{_rules(LIGHT.__getitem__)}", ".tm-moved")
    rows = [shorten(row, WIDE - 16, 12, bold=True) for row in wrapped(clean(title, 300), WIDE - 16, 12)]
    head = _ROW * len(rows) + 6
    heading = "".join(
        f'<text class="name first" x="8" y="{_n(_ROW * (k + 1) - head)}">{escape(row)}</text>'
        for k, row in enumerate(rows)
    )
    size = f'width="{_n(WIDE)}" height="{_n(top + head)}" viewBox="0 {_n(-head)} {_n(WIDE)} {_n(top + head)}"'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" class="tm-moved" style="max-width:100%;height:auto">\n'
        f"<title>{escape(clean(title, 300))}</title>\n<desc>{escape(clean(description, 600))}</desc>\n"
        f"<style>{style}</style>\n"
        f'<rect class="ground" y="{_n(-head)}" width="100%" height="100%" rx="6" fill="#ffffff"/>\n'
        f"{heading}{drawn}\n</svg>\n"
    )


def _panel(part: Panel, marks: Sequence[Shape]) -> str:
    """Return a panel's shapes clipped to the frame, with the marks and the names inside the frame on top."""
    names = [s for s in part.shapes if "halo" in s["class"]]
    below = "".join(_drawn(s) for s in part.shapes if not s.get("inside") and s not in names)
    inner = "".join(_drawn(s) for s in (*part.shapes, *marks) if s.get("inside"))
    above = "".join(_drawn(s) for s in (*(m for m in marks if not m.get("inside")), *names))
    if not inner or not isinstance(part, Framed):
        return below + above
    left, top, wide, tall = (_n(v) for v in part.frame)
    box = f'x="{left}" y="{top}" width="{wide}" height="{tall}" viewBox="{left} {top} {wide} {tall}"'
    return f"{below}<svg {box}>{inner}</svg>{above}"


def _drawn(shape: Shape) -> str:
    given = {k: v for k, v in shape.items() if k not in {"tag", "text", "inside"}}
    attributes = "".join(f" {k}={quoteattr(str(v))}" for k, v in given.items())
    return f"<{shape['tag']}{attributes}>{escape(shape.get('text', ''))}</{shape['tag']}>"


def _rules(colour: Callable[[str], str]) -> str:
    """Return the rules that use colours; ``colour`` writes the colour of a name."""
    return "\n".join(
        (
            f".ground{{fill:{colour('ground')}}}",
            f"text{{fill:{colour('ink')}}}",
            f".tick{{fill:{colour('soft')}}}",
            f".halo{{stroke:{colour('ground')}}}",
            f".axis,.grid,.track{{stroke:{colour('edge')}}}",
            f".curve,.contour,.handle{{stroke:{colour('strong')}}}",
            f".value,.plus{{fill:{colour('strong')}}}",
            f".tangent,.arrow,.ghost,.seen,.key{{stroke:{colour('update-line')}}}",
            f".trail{{stroke:{colour('ink')}}}",
            f".dot{{fill:{colour('update-line')};stroke:{colour('ground')}}}",
            f".bar,.minus{{fill:{colour('update-line')}}}",
            f".chosen,.lowest{{stroke:{colour('ink')}}}",
        )
    )


_PLAIN = f"""text{{font-family:{FONT};font-size:12px;text-anchor:middle;unicode-bidi:plaintext}}
.name{{font-weight:700}}
.first{{text-anchor:start}}
.last{{text-anchor:end}}
.halo{{stroke-width:6px;paint-order:stroke;stroke-linejoin:round}}
.axis,.grid,.curve,.contour,.tangent,.arrow,.ghost,.seen,.key,.trail,.track,.handle,.chosen,.lowest{{fill:none}}
.grid,.track{{stroke-opacity:.25}}
.value{{fill-opacity:.35}}
.handle{{stroke-width:4;stroke-linecap:round}}
.curve{{stroke-width:2.2;stroke-linejoin:round}}
.dots{{stroke-width:7;stroke-linecap:round}}
.contour{{stroke-width:1.3;stroke-linecap:round;stroke-linejoin:round}}
.tangent,.ghost,.key{{stroke-width:2;stroke-dasharray:7 4}}
.arrow{{stroke-width:2.6;stroke-linecap:round}}
.seen{{stroke-width:1.6;stroke-linejoin:round}}
.trail{{stroke-width:1.2;stroke-linejoin:round}}
.steps{{stroke-width:4;stroke-linecap:round}}
.dot{{stroke-width:1.5}}
.chosen,.lowest{{stroke-width:2;stroke-linecap:round}}"""


def styled(scope: str) -> str:
    """Return the style sheet of such pictures inside ``scope`` of a page."""
    return scoped(f"{_PLAIN}\n{_rules(lambda name: f'var(--tm-{name})')}", scope)


_n = coordinate
