"""The profile: the time that each line of a cell takes in one run, by NumPy or on the GPU, as a strip of lines."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from tensormagic.ir.graph import Graph
from tensormagic.ir.node import Node
from tensormagic.notebook.display.forms import Drawn, seconds_text
from tensormagic.notebook.pictures.adaptor import Portrait
from tensormagic.notebook.pictures.views import places
from tensormagic.notebook.pictures.watching import Looking, watched
from tensormagic.notebook.speeds import strip
from tensormagic.notebook.speeds.device_lines import device_lines
from tensormagic.notebook.speeds.profiled import Profile
from tensormagic.notebook.speeds.sheet import MARGIN, SCOPE, WIDE, Sheet, nothing, style


def profile(shown: Portrait, source: str) -> Drawn:
    """Return the time that each line takes in NumPy, or on the GPU where the cell is computed there, after rewriting, gradients and all."""
    there = shown.device == "gpu"
    lines = device_lines(shown) if there else _line_seconds(shown, shown.executable.graph)
    if not lines:
        return nothing(
            f"no line of {shown.cell or 'the cell'} computes it; ask in the cell that does, by %%tensor --show profile"
        )
    title = f"profile: {seconds_text(sum(lines.values()))} {'on the GPU' if there else 'in NumPy'}, one run"
    parts = strip.parts(title, Profile(lines), source)
    sheet = Sheet(WIDE)
    strip.draw(sheet, parts, MARGIN + 12)
    text = "\n".join(strip.words(parts))
    page = f'<div class="{SCOPE}"><style>{style(page=True)}</style>{strip.page(parts)}</div>'
    return Drawn(page, text, sheet.picture(title, text))


class _Lines(Looking):
    """A clock that charges time to one line at a time: that of the innermost node being computed."""

    def __init__(self, shown: Portrait) -> None:
        super().__init__()
        self.seconds: dict[int, float] = {}
        self._shown = shown
        self._spans = places(shown.lens, shown.cell)
        self._at: list[int | None] = []
        self._known: dict[Node, int | None] = {}
        self._since = 0.0

    def begins(self, node: Node, given: Sequence[Any]) -> None:
        self._charge()
        super().begins(node, given)
        if node not in self._known:
            here = (s.line for s in self._spans(node) if s.cell == self._shown.cell)
            self._known[node] = min(here, default=self._shown.line_within(node))
        line = self._known[node]
        self._at.append(line if line is not None or not self._at else self._at[-1])
        self._since = time.perf_counter()

    def ends(self, node: Node, value: Any) -> None:
        self._charge()
        super().ends(node, value)
        self._at.pop()
        self._since = time.perf_counter()

    def _charge(self) -> None:
        line = self._at[-1] if self._at else None
        if line is not None:
            self.seconds[line] = self.seconds.get(line, 0.0) + time.perf_counter() - self._since


def _line_seconds(shown: Portrait, graph: Graph) -> dict[int, float]:
    """Return seconds by line of the cell in one run by NumPy, profiled node by node, also inside loops and branches."""
    values = dict(zip(graph.parameters, shown.values, strict=True))
    lines = _Lines(shown)
    with np.errstate(all="ignore"):
        for node in graph.nodes:
            if node not in values:
                values[node] = watched(node, [values[a] for a in node.args], shown.number, lines)
    return lines.seconds
