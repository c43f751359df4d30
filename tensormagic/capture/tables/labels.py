"""The labels of rows in pandas: those that a slice or a mask selects, and whether an index selects by position."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from tensormagic.capture.foreign.calls import on_values
from tensormagic.capture.values.value import Tensor
from tensormagic.ir.type import Size, hint


class Chosen:
    """Represents the labels of rows that a slice or a mask selects."""

    def __init__(self, labels: Any, index: Any) -> None:
        self.labels = labels
        self.index = index

    def equals(self, other: Any) -> bool:
        """Return whether other labels are surely the same."""
        return isinstance(other, Chosen) and self.labels.equals(other.labels) and _same(self.index, other.index)

    def __len__(self) -> int:
        return 0


def _same(first: Any, second: Any) -> bool:
    if isinstance(first, Tensor) and isinstance(second, Tensor):
        return first.node is second.node
    return first is second or (isinstance(first, slice) and isinstance(second, slice) and first == second)


def is_array(value: Any) -> bool:
    """Return whether an index is an array with axes."""
    return isinstance(value, Tensor | np.ndarray) and bool(value.ndim)


def is_place(value: Any) -> bool:
    """Return whether the bound of a slice is a row position."""
    whole = isinstance(value, int | np.integer) or (isinstance(value, Tensor) and value.dtype.kind in "iu")
    return value is None or (whole and not isinstance(value, bool))


def kind_of(labels: Any) -> str:
    """Return the dtype kind of an index of labels."""
    own = labels.labels if isinstance(labels, Chosen) else labels
    return kind_of(own) if isinstance(own, Chosen) else str(getattr(own.dtype, "kind", "O"))


def whole_of(labels: Any) -> Any:
    """Return the labels as one index, with selections by a slice or a mask applied."""
    if not isinstance(labels, Chosen):
        return labels
    index = labels.index if isinstance(labels.index, slice) else np.asarray(labels.index)
    return whole_of(labels.labels)[index]


def counts(labels: Any) -> bool:
    """Return whether labels are the row positions themselves."""
    return type(labels).__name__ == "RangeIndex" and labels.start == 0 and labels.step == 1


def check_length(mask: Any, rows: Size, *, table: bool) -> None:
    """Raise pandas' error for a mask whose length differs from the rows of a Series, or of a ``table``."""
    own, given = hint(rows), mask.shape[0] if isinstance(mask, np.ndarray) else hint(mask.type.shape[0])
    if own is not None and given is not None and own != given:
        if table:
            raise ValueError(f"Item wrong length {given} instead of {own}.")
        raise IndexError(f"Boolean index has wrong length: {given} instead of {own}")


class Accessor:
    """Represents ``loc``, ``iloc``, ``at`` or ``iat`` of a table."""

    def __init__(self, owner: Any, name: str) -> None:
        self._owner, self._name = owner, name

    def _of(self, table: Any) -> Any:
        return getattr(table, self._name)

    def __getitem__(self, index: Any) -> Any:
        return on_values(operator.getitem)(self._of(self._owner.as_table()), index)

    def __setitem__(self, index: Any, value: Any) -> None:
        self._owner.store(lambda table: on_values(operator.setitem)(self._of(table), index, value))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._of(self._owner.as_table()), name)
