"""Warnings of a notebook's cells: they name their line as all else does, ``In[3] line 2``, and say that they are no errors."""

from __future__ import annotations

import re
import warnings
from typing import Any

__all__ = ["Warned"]

_CELL = re.compile(r"In\[\d+\]")


class Warned:
    """How Python writes a warning down, while a notebook is open: those of its cells otherwise than those of files."""

    def __init__(self) -> None:
        self._before: Any = warnings.formatwarning

    def begin(self) -> None:
        """Write them so from now on."""
        self._before, warnings.formatwarning = warnings.formatwarning, self.text

    def end(self) -> None:
        """Write them as before, unless somebody else has come in between."""
        if warnings.formatwarning == self.text:
            warnings.formatwarning = self._before

    def text(
        self, message: Warning | str, category: type[Warning], filename: str, lineno: int, line: str | None = None
    ) -> str:
        r"""A warning as text.

        >>> Warned().text("grad_w is old", UserWarning, "In[3]", 2)
        'In[3] line 2: UserWarning (no error): grad_w is old\\n'
        """
        if not _CELL.fullmatch(filename):
            return str(self._before(message, category, filename, lineno, line))
        return f"{filename} line {lineno}: {category.__name__} (no error): {message}\n"
