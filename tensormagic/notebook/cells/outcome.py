"""A cell as the user wrote it, and the outcome of a run."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tensormagic.capture.cell import Code
from tensormagic.capture.python import usercode
from tensormagic.capture.tree import tensors_in
from tensormagic.capture.values.value import Tensor
from tensormagic.ir.node import Node
from tensormagic.ir.site import Site
from tensormagic.notebook.cells.kept_state import Kept
from tensormagic.notebook.display.result_names import names_in, rows_of
from tensormagic.notebook.options import Options


@dataclass(frozen=True)
class Source:
    """A cell as the user wrote it: its text below the magic's line, its label, how often a cell has run, the magic's line and its own text.

    The text of a ``%tensor`` line stands in that line itself.
    """

    text: str
    label: str
    count: int
    line: int = 0
    magic: str = ""


@dataclass
class Outcome:
    """The outcome of a run of a cell.

    Parameters
    ----------
    code
        The cell, compiled.
    result
        The last expression's value, or that of the final assignment.
    given
        The object that ``Out`` holds for it if it differs: arrays of the notebook, and views of them.
    name
        The name of the result, if it has one.
    shown
        Whether the result is displayed with its value.
    gradients, moving
        The gradients of the target, and the nodes of the variables that they are with respect to, by name.
    inputs
        The lazy array of each input.
    stored
        Names of notebook arrays that the cell has stored into.
    target
        The value that is differentiated.
    notebook
        The notebook's variables that the cell has read, as they were then.
    kept
        A snapshot of everything that the cell could reach and change.
    wholes
        Containers of gradients, by the name of the container that they are with respect to.
    on_values
        The functions that were not captured and ran on values.
    formed
        The levels of the rules that formulas of plain numbers were computed by.
    chosen
        For each place with conditions decided during capture, how often these were false, and true.
    plain
        Whether Python ran the cell without capturing it.
    seconds
        The time from the cell's text to its results.
    later
        The future of a cell that is computed in the background.
    unused
        Nodes that are computed only because they may raise errors.
    """

    code: Code
    options: Options
    result: Any
    name: str
    shown: bool
    gradients: dict[str, Tensor] = field(default_factory=dict[str, Tensor])
    moving: dict[str, Node] = field(default_factory=dict[str, Node])
    inputs: dict[str, Tensor] = field(default_factory=dict[str, Tensor])
    stored: tuple[str, ...] = ()
    on_values: tuple[str, ...] = ()
    formed: frozenset[str] = frozenset()
    chosen: Mapping[Site, Sequence[int]] = field(default_factory=dict[Site, Sequence[int]])
    plain: bool = False
    target: Any = None
    outputs: dict[str, Any] = field(default_factory=dict[str, Any])
    notebook: Mapping[str, Any] = field(default_factory=dict[str, Any])
    kept: Kept | None = None
    wholes: dict[str, Any] = field(default_factory=dict[str, Any])
    seconds: float = 0.0
    later: Any = None
    given: Any = None
    unused: list[Node] = field(default_factory=list[Node])

    @property
    def _written(self) -> str:
        """Return the name that the cell ends in, where it ends in one."""
        last = self.code.parsed.last
        return last.body.id if last is not None and isinstance(last.body, ast.Name) else ""

    @property
    def rows(self) -> tuple[str, ...]:
        """Return the source of the items of the tuple or list in the cell's last line; empty strings for constants and long ones."""
        return rows_of(self.code.parsed.last, self.source)

    @property
    def source(self) -> str:
        """Return the cell's text, as it was written."""
        return usercode.cells.get(self.code.filename, self.code.cell).source

    def release(self) -> None:
        """Release what only comparisons need, so that the displayed result keeps no variable of the notebook alive."""
        self.notebook, self.inputs, self.kept = {}, {}, None
        self.outputs = {} if tensors_in(self.result) else self.outputs

    @property
    def results(self) -> dict[str, Tensor]:
        """Return the lazy arrays that the cell is about: those in its value, else those it binds; and what gradients are of."""
        found = tensors_in(self.result)
        if isinstance(self.result, Tensor):
            named = {self.name or self._written or "value": self.result}
        elif found:
            named = dict(zip(names_in(self.result, self.rows), found, strict=True))
        else:
            named = {n: v for n, v in self.outputs.items() if isinstance(v, Tensor)}
        if isinstance(self.target, Tensor) and all(self.target.node is not t.node for t in named.values()):
            named[self.options.of] = self.target
        return named
