"""A read of a global: the name, and the mapping that holds it."""

from __future__ import annotations

import types
from collections.abc import Iterator, Mapping
from typing import Any

Read = tuple[str, Mapping[str, Any]]  # a name, and the dictionary that holds it


def place_of(read: Read) -> tuple[str, int]:
    """Return the identity of a read while its dictionary lives."""
    name, space = read
    return name, id(space.cell if isinstance(space, CellSpace) else getattr(space, "holder", space))


class CellSpace(Mapping[str, Any]):
    """A closure cell as the dictionary that holds its name."""

    def __init__(self, name: str, cell: types.CellType) -> None:
        self.name = name
        self.cell = cell

    def __getitem__(self, name: str) -> Any:
        try:
            return self.cell.cell_contents
        except ValueError:  # the cell is still empty
            raise KeyError(name) from None

    def __iter__(self) -> Iterator[str]:
        return iter((self.name,))

    def __len__(self) -> int:
        return 1
