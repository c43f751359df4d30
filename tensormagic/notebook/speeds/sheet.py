"""A sheet on which charts and tables are drawn: SVG that stands alone, light or dark, or that follows the theme of a page.

It places marks and escapes text, and knows nothing of what is drawn.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from xml.sax.saxutils import escape, quoteattr

from tensormagic.notebook.display.forms import Drawn
from tensormagic.notebook.pictures.labels import clean, shorten
from tensormagic.notebook.pictures.palette import FONT, LIGHT, variables
from tensormagic.notebook.widgets.controls import MESSAGES

SCOPE = "tm-panel"
MARGIN = 14.0  # of the drawing
WIDE = 820.0
MONO = "ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace"
_FILLS = {  # a class, and the colour of the palette that it has
    "ink": "ink",
    "soft": "soft",
    "ground": "ground",
    "own": "strong",
    "numpy": "edge",
    "other": "pointwise-line",
    "heat": "fold-line",
    "warn": "update-line",
    "warn-ground": "update",
    "track": "opaque",
    "yellow": "yellow",
}
_STROKES = {"axis": "edge", "grid": "opaque", "roof": "ink", "own-line": "strong", "warn-line": "update-line"}


def _rules(colour: Callable[[str], str]) -> list[str]:
    rules = [f".{SCOPE} .{name}{{fill:{colour(of)}}}" for name, of in _FILLS.items()]
    return [*rules, *(f".{SCOPE} .{name}{{stroke:{colour(of)};fill:none}}" for name, of in _STROKES.items())]


_PLAIN = [
    f".{SCOPE} svg text,svg.{SCOPE} text{{font-family:{FONT};font-size:13px;unicode-bidi:plaintext}}",
    f".{SCOPE} .small{{font-size:12px!important}}",
    f".{SCOPE} .bold{{font-weight:700}}",
    f".{SCOPE} .mono{{font-family:{MONO}!important;font-size:12px!important;white-space:pre}}",
    f".{SCOPE} .mono{{unicode-bidi:normal!important}}",  # code runs from left to right
    f".{SCOPE} .thick{{stroke-width:2}}",
    f".{SCOPE} .dashed{{stroke-dasharray:5 4}}",
]
_NARROW = 240.0  # what a phone shows
_ROWS = (Path(__file__).parent / "rows.css").read_text(encoding="utf-8")


def style(*, page: bool) -> str:
    """Return the style sheet: of a page's panel, whose colours follow its theme, or of a picture alone."""
    if page:
        return f"{MESSAGES}{variables(f'.{SCOPE}')}" + "\n".join(
            [*_PLAIN, *_rules(lambda name: f"var(--tm-{name})"), _ROWS]
        )
    return "\n".join([*_PLAIN, *_rules(LIGHT.__getitem__)])


@dataclass
class Sheet:
    """An SVG under construction.

    Parameters
    ----------
    width
        In pixels.
    height
        Grows with each drawing.
    """

    width: float
    height: float = 0.0
    parts: list[str] = field(default_factory=list[str])

    def text(
        self, x: float, y: float, text: str, kind: str = "ink", *, anchor: str = "", room: float = 0, size: float = 13
    ) -> None:
        """Draw a line of text with its baseline at ``y``; with ``room``, shortened to that many pixels."""
        shown = shorten(text, room, size) if room else clean(text)
        at = f' text-anchor="{anchor}"' if anchor else ""
        self.parts.append(f'<text x="{x:g}" y="{y:g}" class="{kind}"{at}>{escape(shown)}</text>')
        self.height = max(self.height, y + 6)

    def bar(self, x: float, y: float, width: float, height: float, kind: str, *, round_by: float = 2) -> None:
        """Draw a bar."""
        shape = f'x="{x:g}" y="{y:g}" width="{max(width, 0):.1f}" height="{height:g}"'
        self.parts.append(f'<rect {shape} rx="{round_by:g}" class="{kind}"/>')
        self.height = max(self.height, y + height)

    def path(self, d: str, kind: str) -> None:
        """Draw a path."""
        self.parts.append(f'<path d="{d}" class="{kind}"/>')

    def picture(self, title: str, told: str) -> str:
        """Return the picture, standing alone."""
        return (
            f"{self._head()}><title>{escape(clean(title))}</title>"
            f"<desc>{escape(told)}</desc><style>{escape(style(page=False))}</style>"
            f'<rect class="ground" width="100%" height="100%" rx="6" fill="#ffffff"/>{"".join(self.parts)}</svg>\n'
        )

    def inline(self, title: str) -> str:
        """Return the picture for a page that has the style sheet."""
        reached = ' tabindex="0"' if self.width > _NARROW else ""  # by keys, where it may have to be scrolled
        head = self._head(f"min-width:{self.width:g}px;")  # letters that shrink are too small to read
        return (
            f'<div style="overflow-x:auto"{reached}>{head} aria-label={quoteattr(clean(title))}>'
            f"{''.join(self.parts)}</svg></div>"
        )

    def _head(self, least: str = "") -> str:
        wide, tall = self.width, self.height + 10
        size = f'width="{wide:g}" height="{tall:g}" viewBox="0 0 {wide:g} {tall:g}"'
        plain = f'role="img" style="{least}max-width:100%;height:auto"'
        return f'<svg xmlns="http://www.w3.org/2000/svg" class="{SCOPE}" {size} {plain}'


def nothing(why: str) -> Drawn:
    """Return a panel that says why there is nothing to measure."""
    sheet = Sheet(WIDE)
    text = f"nothing to measure: {why}"
    sheet.text(MARGIN, MARGIN + 12, text)
    page = f'<div class="{SCOPE}"><style>{style(page=True)}</style>{sheet.inline(text)}</div>'
    return Drawn(page, text, sheet.picture(text, text))
