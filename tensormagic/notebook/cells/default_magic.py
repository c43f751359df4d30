"""The magic ``%tensor_default``: capture cells without a magic, too. The notebook's metadata remembers it.

It decides which cells are captured, not how.
"""

from __future__ import annotations

import ast
import json
import os
import re
from functools import partial
from pathlib import Path
from typing import Any

from IPython.core.display_functions import publish_display_data
from IPython.core.error import UsageError
from IPython.core.interactiveshell import InteractiveShell
from IPython.core.magic import Magics, line_magic, magics_class, no_var_expand

from tensormagic.notebook.cells.await_cells import awaits, waits
from tensormagic.notebook.display.shown import Page, Views
from tensormagic.notebook.options import arguments, describe
from tensormagic.notebook.widgets.strips import Banner

ON = (
    "Cells without a magic are captured from here on, as if each began with %%tensor. "
    "Begin a cell with %%tensor --plain to leave it out; %tensor_default off ends this."
)
RESTORED = "This notebook has %tensor_default on. " + ON.replace("from here on, ", "")
OFF = "Cells run as they are written; those that begin with %%tensor are captured."
LARGEST = 100 * 2**20  # bytes of a notebook that is read for its metadata
_OTHER = re.compile(r"^\s*[%!?]|\?\s*$", re.MULTILINE)


@magics_class
class TensorDefault(Magics):
    """The magic, its state, and the transformation of cells that it controls."""

    shell: Any  # an InteractiveShell; the base class allows None, too

    def __init__(self, shell: InteractiveShell, views: Views) -> None:
        super().__init__(shell)
        self.on = False
        self.running = False  # whether a cell of the user runs
        self._unmarked: str | None = None  # the text of the cell that was given its first line here
        self._views = views
        self._untold = False
        self.transformer = partial(self.transform)
        self.transformer.has_side_effects = True  # type: ignore[attr-defined]  # not called to see whether a cell is complete

    @no_var_expand
    @line_magic
    @describe(
        ("STATE", None, "on or off; without it, the current state is shown"),
        usage="%tensor_default [on | off]",
        example="%tensor_default on",
    )
    def tensor_default(self, line: str) -> Any:
        """Capture cells that begin with no magic as well, as if their first line was `%%tensor`.

        Cells with a magic, a `!` line or a `?` stay as they are, and so do those with `await` outside functions. The
        notebook's metadata remembers it where JupyterLab or Notebook shows it: opened again, it is on.
        """
        state = arguments(self.tensor_default, line).STATE
        if state not in {"", "on", "off"}:
            raise UsageError(f"%tensor_default takes on or off, not {state!r}")
        self.on = state == "on" if state else self.on
        self._untold = False
        return self._banner(ON if self.on else OFF)

    def transform(self, lines: list[str]) -> list[str]:
        """Return the lines of a cell, with `%%tensor` before them where that is meant."""
        text = "".join(lines)
        if self.running:  # a magic asks for what it runs
            return lines
        self._unmarked = None
        if not self.on or not _is_meant(text):
            return lines
        self._unmarked = text.rstrip()
        return ["%%tensor\n", *lines]

    def captures(self, text: str) -> bool:
        """Return whether a cell of this text is captured."""
        first = text.partition("\n")[0]
        if not first.startswith("%%tensor"):
            return self.on and _is_meant(text)
        return "--plain" not in first.split() and not waits(text)

    def marked(self, cell: str) -> bool:
        """Return whether the first line of a captured cell of this text is the user's own."""
        return cell.rstrip() != self._unmarked

    def restore(self) -> None:
        """Switch capturing on if the notebook's metadata says so; the first cell that runs then shows it."""
        self.on = self._untold = _remembered(os.environ.get("JPY_SESSION_NAME", ""))

    def tell(self) -> None:
        """Show what was restored, once."""
        if self._untold:
            self._untold = False
            data, metadata = self._banner(RESTORED)._repr_mimebundle_()  # pyright: ignore[reportPrivateUsage] (IPython's name)
            publish_display_data(data, metadata)

    def _banner(self, words: str) -> Page:
        def made() -> tuple[dict[str, Any], dict[str, Any]]:
            banner = Banner(words, on=self.on, end=self._end)
            self._views.add(banner)
            return {**banner.live(), "text/plain": words}, {}

        return Page(made)

    def _end(self) -> str:
        """Return the banner's own button was pressed."""
        self.on = False
        return OFF


def _is_meant(text: str) -> bool:
    """Return whether a cell is code without a magic, which can be captured at all."""
    if _OTHER.search(text):
        return False
    try:
        tree = ast.parse(text)
    except SyntaxError:  # shown as Python shows it
        return False
    return bool(tree.body) and not awaits(tree)


def _remembered(path: str) -> bool:
    """Return whether the notebook at ``path``, if it is one, has in its metadata that cells are captured by default."""
    file = Path(path)
    try:
        if file.suffix != ".ipynb" or file.stat().st_size > LARGEST:
            return False
        found: Any = json.loads(file.read_text(encoding="utf-8"))
        return found["metadata"]["tensormagic"]["default"] is True
    except (OSError, ValueError, KeyError, TypeError):
        return False
