"""Values of a cell that are not graphs: numbers and arrays get the usual line, other objects keep their own display with a line below."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any
from xml.sax.saxutils import escape

import numpy as np

from tensormagic.capture.tree import tensors_in

if TYPE_CHECKING:
    from tensormagic.notebook.cells.outcome import Outcome


LINE = (  # in the letters, and at the place, of the line above a graph
    '<div class="tm-line" style="white-space:pre-line;padding:2px 3px;background:var(--jp-layout-color1,transparent);'
    'overflow-wrap:anywhere;font:13px var(--jp-ui-font-family,system-ui,sans-serif);font-size:var(--jp-ui-font-size1,13px)">{}</div>'
)
_FACT = '<span style="display:inline-block;max-width:100%">'
_HELD = {"O": "objects", "M": "dates", "m": "times", "V": "records"}  # the elements of a non-numeric array
_MOST = 4  # names that are listed
_NUMBERS = (bool, int, float, complex)
_TEXTS = (str, bytes)


def is_numbers(value: Any) -> bool:
    """Return whether a value is a number or an array of plain Python or NumPy numbers, or a tuple of these, which one line describes."""
    if type(value) is tuple:
        return bool(value) and all(map(_is_number, value))
    return _is_number(value)


def _is_number(value: Any) -> bool:
    if type(value) is np.ndarray or isinstance(value, np.generic):
        return value.dtype.kind in "biufc"
    return type(value) in _NUMBERS


def plainly(value: Any, kind: str, others: Iterable[str]) -> str:
    """Describe numbers without a graph by their class; ``others`` names the variables that the displayed graph belongs to.

    ``int · a number of Python's own, no graph``
    """
    graph = f"; the graph is of {', '.join(others)}" if others else ", no graph"
    if type(value) is np.ndarray:
        return f"a plain array{graph}"
    if type(value) is tuple:
        return f"numbers of Python's own{graph}"
    return f"{kind} · a number of {'NumPy' if isinstance(value, np.generic) else 'Python'}'s own{graph}"


def told(outcome: Outcome) -> str:
    """Describe the object that a cell ends in, and the graph beside it; empty for text, lists and the like.

    ``an object, OdeResult of scipy; the graph is of rate``
    """
    value = outcome.result
    if value is None or isinstance(value, _TEXTS) or outcome.plain:
        return ""
    kind = type(value)
    package = (kind.__module__ or "").partition(".")[0]
    what = kind.__name__ if package in {"builtins", "__main__", ""} else f"{kind.__name__} of {package}"
    if package in {"builtins", "tensormagic", ""}:
        return ""
    if kind is np.ndarray:
        return f"an array of {_HELD.get(value.dtype.kind, 'texts')}, no graph: graphs are of numbers"
    lazy = [name for name, v in outcome.outputs.items() if tensors_in(v)]
    some = f"{', '.join(lazy[:_MOST])}{', …' if len(lazy) > _MOST else ''}"
    return f"an object, {what}{f'; the graph is of {some}' if lazy else ', no graph: graphs are of numbers and arrays'}"


def as_html(line: str) -> str:
    """Return the line as HTML; a narrow page breaks it between its facts first, then between words."""
    rows = (escape(row).replace(" \N{MIDDLE DOT} ", f" \N{MIDDLE DOT}</span> {_FACT}") for row in line.split("\n"))
    return LINE.format("\n".join(f"{_FACT}{row}</span>" for row in rows))


def beneath(made: Any, line: str) -> Any:
    """Return IPython's display data of a value with a line below it, or unchanged unless it is plain text, or text and HTML."""
    data, metadata = made
    if not line or not {"text/plain", "text/html"} >= {*data}:
        return made
    data = {**data, "text/plain": f"{data.get('text/plain', '')}\n\n{line}"}
    if "text/html" in data:
        data["text/html"] += as_html(line)
    return data, metadata
