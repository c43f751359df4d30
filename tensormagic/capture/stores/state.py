"""Snapshots of arrays, to tell whether one has changed, and to restore it where a cell fails."""

from __future__ import annotations

from typing import Any

import numpy as np


class State:
    """A snapshot of an array: its elements, bit for bit, and the attributes of a subclass.

    Parameters
    ----------
    array
        The array; references to objects in it are copied as such.
    """

    def __init__(self, array: np.ndarray[Any, Any]) -> None:
        self.array = array
        self._elements = np.array(np.asarray(array), copy=True, order="K")
        self._attributes = dict(getattr(array, "__dict__", {}))

    @property
    def changed(self) -> bool:
        """Return whether the content has changed."""
        now, before = getattr(self.array, "__dict__", {}), self._attributes
        if now.keys() != before.keys() or any(now[k] is not v for k, v in before.items()):
            return True
        elements = np.asarray(self.array)
        same = elements.shape == self._elements.shape and elements.dtype == self._elements.dtype
        return not same or elements.tobytes() != self._elements.tobytes()

    def restore(self) -> None:
        """Write the elements back, if the shape is unchanged."""
        elements = np.asarray(self.array)
        if elements.shape == self._elements.shape and elements.flags.writeable:
            elements[...] = self._elements
        if hasattr(self.array, "__dict__"):
            vars(self.array).clear()
            vars(self.array).update(self._attributes)
