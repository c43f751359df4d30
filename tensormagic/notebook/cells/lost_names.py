"""Names that a notebook lacks because the cell that would have bound them ended in an error.

It only stores names and cells, and is told which names a cell would bind.
"""

from __future__ import annotations

from collections.abc import Iterable


class Lost:
    """The names that are missing, and of each the cell."""

    def __init__(self) -> None:
        self._cells: dict[str, tuple[str, str]] = {}  # what the cell is called, and what it is known by

    def clear(self) -> None:
        """Forget all missing names."""
        self._cells.clear()

    def begin(self, cell: str) -> None:
        """Forget the names that a cell failed to bind, now that it runs again."""
        self._cells = {name: found for name, found in self._cells.items() if found[1] != cell}

    def bound(self, names: Iterable[str]) -> None:
        """Forget names that have been bound since."""
        for name in names:
            self._cells.pop(name, None)

    def missing(self, names: Iterable[str], label: str, cell: str) -> None:
        """Record that a cell ended in an error and has not bound these names."""
        self._cells |= dict.fromkeys(names, (label, cell))

    def hint(self, name: str) -> str:
        """Return the hint for a missing name, or "" where no failed cell would have bound it."""
        if name not in self._cells:
            return ""
        label = self._cells[name][0]
        return f"Cell {label} would have set {name}, but it ended in an error: fix that cell and run it first."


lost = Lost()
