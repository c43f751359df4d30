"""Show the time of a run by line: a strip beside each line, the longer and the darker the more. As text, picture and page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from tensormagic.notebook.display.forms import seconds_text
from tensormagic.notebook.pictures.labels import clean
from tensormagic.notebook.speeds.profiled import Profile
from tensormagic.notebook.speeds.sheet import MARGIN, Sheet

_MOST_LINES = 24


@dataclass(frozen=True)
class Row:
    """A line: its number, its text, its seconds, and its share of the whole."""

    number: int
    text: str
    seconds: float
    share: float


@dataclass(frozen=True)
class Part:
    """The lines of the cell, or of a function that it calls, under a title; and how many that take less are left out."""

    title: str
    rows: tuple[Row, ...]
    hidden: int = 0


def parts(title: str, found: Profile, source: str) -> list[Part]:
    """Return the parts of the strip, the cell first."""
    whole = found.seconds or 1.0
    own = {
        k: (
            text,
            0.0 if text.strip().isidentifier() else found.lines.get(k, 0.0),
        )  # a name alone is no work: following it is
        for k, text in enumerate(source.splitlines(), 1)
        if k in found.lines or (text.strip() and not (k == 1 and text.startswith("%%")))
    }
    helpers = [_part(f"{h.name}, {h.cell}", h.lines, whole) for h in found.helpers]
    return [_part(title, own, whole), *helpers]


def _part(title: str, lines: dict[int, tuple[str, float]], whole: float) -> Part:
    rows = [Row(k, text, seconds, seconds / whole) for k, (text, seconds) in lines.items()]
    kept = {row.number for row in sorted(rows, key=lambda row: -row.seconds)[:_MOST_LINES]}
    return Part(title, tuple(row for row in rows if row.number in kept), max(len(rows) - _MOST_LINES, 0))


def _left_out(part: Part) -> str:
    return f"({part.hidden} lines that take less are left out)" if part.hidden else ""


def words(shown: Sequence[Part]) -> list[str]:
    """Return the strip as lines of text."""
    told: list[str] = []
    for k, part in enumerate(shown):
        told.append(f"{'  ' * bool(k)}{part.title} {_left_out(part)}".rstrip())
        for row in part.rows:
            bar = f"{'█' * round(20 * row.share) or '▏':20} {100 * row.share:3.0f} % {seconds_text(row.seconds):>8}"
            told.append(f"  {bar if row.seconds else ' ' * 34}  {row.number:3} {row.text}".rstrip())
    return told


def draw(sheet: Sheet, shown: Sequence[Part], y: float) -> float:
    """Draw the strip as a part of a picture from ``y`` on, and return where the next part may begin."""
    for part in shown:
        sheet.text(MARGIN, y, f"{part.title} {_left_out(part)}".rstrip(), "ink bold")
        for row in part.rows:
            y += 19
            sheet.bar(MARGIN, y - 11, 150, 14, "track", round_by=1)
            if row.seconds:
                shade = f'heat" fill-opacity="{0.35 + 0.65 * row.share:.2f}'
                sheet.bar(MARGIN, y - 11, max(150 * row.share, 1.5), 14, shade, round_by=1)
                sheet.text(MARGIN + 196, y, f"{100 * row.share:.0f} %", "ink small", anchor="end")
                sheet.text(MARGIN + 260, y, seconds_text(row.seconds), "soft small", anchor="end")
            sheet.text(MARGIN + 312, y, f"line {row.number}", "soft small", anchor="end")
            sheet.text(MARGIN + 322, y, row.text, "ink mono", room=468, size=12)
        y += 26
    return y


def page(shown: Sequence[Part]) -> str:
    """Return the strip as rows of a page, which wrap on a narrow one."""
    return "".join(
        f'<p class="bold">{escape(clean(part.title))} {_left_out(part)}</p>{"".join(map(_line, part.rows))}'
        for part in shown
    )


def _line(row: Row) -> str:
    told = f"<i>{100 * row.share:.0f} %</i><i>{seconds_text(row.seconds)}</i>" if row.seconds else "<i></i><i></i>"
    strip = (
        f'<span class="strip"><b style="width:{100 * row.share:.1f}%;opacity:{0.35 + 0.65 * row.share:.2f}"></b></span>'
    )
    return f'<div class="line">{strip}{told}<i>line {row.number}</i><code>{escape(clean(row.text, 400))}</code></div>'
