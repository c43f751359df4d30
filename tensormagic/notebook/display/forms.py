"""The forms of panels: tables and listings as HTML and as text, pictures that stand alone, numbers with their units."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Self
from xml.sax.saxutils import escape, quoteattr

Panel = tuple[str, str]


class Drawn(tuple[str, str]):  # noqa: SLOT001 (a tuple has no slots for the picture)
    """A panel, as a page and as text, that is also a stand-alone picture."""

    picture: str

    def __new__(cls, page: str, text: str, picture: str) -> Self:
        """Return the two, with the picture as SVG."""
        made = super().__new__(cls, (page, text))
        made.picture = picture
        return made


_BESIDE = 3  # columns that a narrow page has room for; with more, the cells of a row stand one below the other there
_WHOLE = 24  # letters of a cell beside the first that stays in one line
_STACKED = (
    ".tm-table{container-type:inline-size}@container (max-width:640px){.tm-table thead{display:none}"
    ".tm-table table,.tm-table tbody,.tm-table tr,.tm-table td{display:block}.tm-table tr{padding:6px 0}"
    ".tm-table td{padding:1px 0}.tm-table td+td:not(:empty)::before{content:attr(data-head)': ';font-weight:600}}"
)
_ARROW = '<span style="white-space:nowrap">-&gt;</span>'  # no line ends within the arrow of a rule
_YELLOW = "background:#f5e27a;color:#111"
_PRE = "margin:2px 0;white-space:pre;overflow-x:auto;font-family:var(--jp-code-font-family,monospace)"


def forms_of(panel: Panel) -> dict[str, str]:
    """Return a panel in every form that a page may ask for."""
    page, text = panel
    picture = {"image/svg+xml": panel.picture} if isinstance(panel, Drawn) else {}
    return {"text/plain": text, "text/html": page, **picture}


def table(
    title: str,
    head: Sequence[str],
    rows: Sequence[Sequence[str]],
    marked: Sequence[bool] = (),
    *,
    meant: Mapping[str, str] = MappingProxyType({}),
    notes: Sequence[str] = (),
) -> Panel:
    """Return a table as HTML and as text; the first column is code, marked rows are yellow (and have a sign in the text).

    ``meant`` says more of columns, where a pointer rests on their heads; ``notes`` stand below.
    """
    marks = [*marked, *[False] * (len(rows) - len(marked))]
    cells = [[str(cell) for cell in row] for row in rows]
    wide = [max(len(row[k]) for row in [list(head), *cells]) for k in range(len(head))]
    sign = any(marks)

    def line(row: Sequence[str], mark: bool) -> str:
        text = "  ".join(cell.ljust(n) for cell, n in zip(row, wide, strict=True)).rstrip()
        return f"{'*' if mark else ' '} {text}".rstrip() if sign else text

    text = "\n".join(
        [
            title,
            *([line(head, mark=False)] if any(head) else []),
            *(line(row, mark) for row, mark in zip(cells, marks, strict=True)),
            *notes,
        ]
    )
    told = {name: f" title={quoteattr(text)}" for name, text in meant.items()}
    top = "".join(f'<th style="text-align:left"{told.get(name, "")}>{escape(name)}</th>' for name in head)
    word = max((len(word) for row in cells for word in row[0].split()), default=0) if head else 0
    body = "".join(_row(row, mark, head, min(word, 12)) for row, mark in zip(cells, marks, strict=True))
    inside = f"<table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table>" if cells or top else ""
    below = "".join(f'<div style="margin:2px 0;text-align:left;font-size:13px">{escape(note)}</div>' for note in notes)
    stacked = (f"<style>{_STACKED}</style>", ' class="tm-table"') if len(head) > _BESIDE else ("", "")
    return (
        f'{stacked[0]}<div{stacked[1]} style="overflow-x:auto"><strong>{escape(title)}</strong>{inside}{below}</div>',
        text,
    )


def _row(cells: Sequence[str], mark: bool, head: Sequence[str], wide: int) -> str:
    code = f"text-align:left;font-family:monospace;white-space:pre-wrap;overflow-wrap:anywhere;min-width:{wide}ch"
    short = [f"text-align:left{';white-space:nowrap' * (len(cell) <= _WHOLE)}" for cell in cells[1:]]
    styles = [code, *short]
    inside = "".join(
        f'<td style="{style}" data-head={quoteattr(name)}>{_ARROW.join(escape(cell).split("-&gt;"))}</td>'
        for style, cell, name in zip(styles, cells, head or [""] * len(cells), strict=True)
    )
    return f'<tr style="{_YELLOW}">{inside}</tr>' if mark else f"<tr>{inside}</tr>"


def listing(title: str, text: str) -> Panel:
    """Return program text as a panel under a title, which can be closed."""
    head = f'<summary style="display:list-item">{escape(title)}</summary>'
    page = f'<details open="">{head}<pre style="{_PRE}" tabindex="0">{escape(text)}</pre></details>'
    return page, f"{title}\n{text}"


def seconds_text(seconds: float) -> str:
    """Return a time with three digits and its unit."""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds * 1e9:.3g} ns"


def count_text(number: int) -> str:
    """Return a number of things with three digits: ``12``, ``48.4 k``."""
    for unit, size in ((" T", 10**12), (" G", 10**9), (" M", 10**6), (" k", 10**3)):
        if number >= size:
            return f"{number / size:.3g}{unit}"
    return str(number)


def bytes_text(count: int) -> str:
    """Return a number of bytes with three digits and its unit."""
    for unit, size in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if count >= size:
            return f"{count / size:.3g} {unit}"
    return f"{count} B"
