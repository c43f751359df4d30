"""Warnings of a notebook's cells: they name their line as errors do, ``In[3] line 2``, and say that they are no errors."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

from tensormagic.capture.python import usercode

_CELL = re.compile(r"In\[[\d.]+\]")


class Warned:
    """Formats warnings while a notebook is open: those of its cells unlike those of files."""

    def __init__(self) -> None:
        self._before: Any = warnings.formatwarning
        self._own: Any = None

    def begin(self) -> None:
        """Install our formatter. Called before each cell, since a cell may replace Python's function.

        If another formatter calls the one that it has found (ours), a new one of ours wraps it, so that they do not
        recurse forever.
        """
        if self._own is None or warnings.formatwarning is not self._own:
            self._before = warnings.formatwarning
            self._own = warnings.formatwarning = partial(text, self._before)

    def end(self) -> None:
        """Write them as before, unless somebody else has come in between."""
        if warnings.formatwarning is self._own:
            warnings.formatwarning = self._before


def text(
    before: Callable[..., str],
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    line: str | None = None,
) -> str:
    r"""Return a warning as text; ``before`` writes those of files.

    >>> text(warnings.formatwarning, "grad_w is old", UserWarning, "In[3]", 2)
    'In[3] line 2: UserWarning (no error): grad_w is old\n'
    """
    cell = usercode.cells.get(filename)
    filename = cell.label if cell is not None else filename
    if not _CELL.fullmatch(filename):
        return str(before(message, category, filename, lineno, line))
    return f"{filename} line {lineno}: {category.__name__} (no error): {message}\n"
