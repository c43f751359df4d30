"""Slots, where values are held: variables, and items of lists and dictionaries."""

from __future__ import annotations

from collections.abc import MutableMapping
from dataclasses import dataclass
from types import CellType
from typing import Any

INTERNAL = "__tensor_"


class Unbound:
    """The value of a name that is not bound."""

    def __repr__(self) -> str:
        return "unbound"


UNBOUND: Any = Unbound()


@dataclass(frozen=True, eq=False)
class Slot:
    """Represents a variable, or an item of a list or a dictionary.

    Parameters
    ----------
    holder, key
        A closure cell and None, or a container and the index of an item.
    name
        Of the variable.
    """

    holder: Any
    key: Any
    name: str

    @property
    def internal(self) -> bool:
        """Return whether it is our own variable: a return value, or a flag for a jump."""
        return self.name.startswith(INTERNAL)

    @property
    def said(self) -> str:
        """Return its name in messages; our own variables hold the result."""
        return "the result" if self.internal else self.name

    def get(self) -> Any:
        """Return the value held; UNBOUND if there is none."""
        if isinstance(self.holder, CellType):
            try:
                return self.holder.cell_contents
            except ValueError:
                return UNBOUND
        if isinstance(self.holder, MutableMapping):
            return self.holder.get(self.key, UNBOUND)
        if isinstance(self.holder, list) and self.key >= len(self.holder):
            return UNBOUND
        return self.holder[self.key]

    def set(self, value: Any) -> None:
        """Set the value; UNBOUND deletes the variable or item."""
        if isinstance(self.holder, CellType):
            if value is not UNBOUND:
                self.holder.cell_contents = value
            elif self.get() is not UNBOUND:
                del self.holder.cell_contents
        elif value is UNBOUND:
            self.holder.pop(self.key, None)
        elif isinstance(self.holder, list) and self.key == len(self.holder):
            self.holder.append(value)
        else:
            self.holder[self.key] = value
