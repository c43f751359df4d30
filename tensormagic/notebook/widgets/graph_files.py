"""The script and the style sheet of the graph's widget, each as one text."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from tensormagic.notebook.pictures.palette import themed
from tensormagic.notebook.widgets.controls import edges


def joined(folder: Path, names: Sequence[str]) -> str:
    """Return modules as one, without indentation and comments: every widget's state holds it once."""
    lines = (line for name in names for line in (folder / f"{name}.js").read_text("utf-8").splitlines())
    bare = (re.sub(r"(^|\s+)// [^\"'`]*$", "", line).strip() for line in lines)
    return "\n".join(_tight(line) for line in bare if line and not line.startswith("//"))


def _tight(line: str) -> str:
    """Return a line of JavaScript without optional spaces; string literals and nested templates are unchanged."""
    whole = re.split(r"""("(?:[^"\\]|\\.)*"|`[^`]*`)""", line)
    pieces = _pieces(line) if re.search(r"\$\{[^}`]*`", line) else ((piece, not k % 2) for k, piece in enumerate(whole))
    return "".join(
        re.sub(r" ?(=>|[-+]=|[=,:?{}();<>|&*]+) ?", r"\1", piece) if is_code else piece for piece, is_code in pieces
    )


def _pieces(line: str) -> Iterator[tuple[str, bool]]:
    """The code of a line and its texts, in turn: ``a ? `${b ? `, ${c} d` : ""}` : e`` has three texts, and code between."""
    inside = [True]  # whether code or a text is open, the outermost first
    start = k = 0
    while k < len(line):
        here, end = inside[-1], k + 1
        if here and line[k] == '"':
            yield line[start:k], True
            closed = re.compile(r'"(?:[^"\\]|\\.)*"?').match(line, k)
            start = k = closed.end() if closed else end
            yield line[end - 1 : k], False
            continue
        if line[k] == "`":
            cut = k if here else end
            yield line[start:cut], here
            start = cut
            inside[-1:] = [here, False] if here else []
        elif here and line[k] in "{}":
            inside[-1:] = [True, True] if line[k] == "{" else [] if len(inside) > 1 else [True]
            if not inside[-1]:  # a text goes on
                yield line[start:k], True
                start = k
        elif not here and line.startswith("${", k):
            end = k + 2
            yield line[start:end], False
            start = end
            inside.append(True)
        k = end
    yield line[start:], inside[-1]


_here = Path(__file__).parent
_MODULES = (
    *("page", "places", "parts", "drawing", "canvas", "selection", "camera", "values", "views", "steps"),
    *("outline", "keys", "pointer", "text", "files", "asking", "widget"),
)
# a page takes one module and the network is not asked for others, so they are joined; the last one exports the widget
SCRIPT = joined(_here, _MODULES)
STYLE = themed(".tm-graph") + edges(".tm-graph") + (_here / "graph.css").read_text(encoding="utf-8")
