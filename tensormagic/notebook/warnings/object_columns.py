"""Tables of pandas that hold lazy numbers for objects: pandas knows numbers by their class, in C, and says nothing."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Any

from tensormagic.capture.inputs.door import is_table
from tensormagic.capture.values.value import Tensor

_LOOKED_AT = 50  # rows from either end


class Objects:
    """The columns that were told."""

    def __init__(self) -> None:
        self._told: set[str] = set()

    def tell(self, space: Mapping[str, Any]) -> None:
        """Warn of the columns of a notebook's tables that hold lazy numbers for objects, once for each."""
        found = {
            text: instead
            for name, value in [*space.items()]
            if is_table(value)
            for text, instead in _columns(name, value)
        }
        for text in found.keys() - self._told:
            warnings.warn(
                f"{text} holds lazy numbers, which pandas takes for objects: describe(), corr(), plots and sums by group leave them out "
                f"or fail. Write {text} = {found[text]}, or give pandas z.item().",
                stacklevel=2,
            )
        self._told = set(found)


def _columns(name: str, table: Any) -> Iterator[tuple[str, str]]:
    """Yield the object columns that hold lazy numbers, as code writes them, and what to write instead."""
    if type(table).__name__ == "Series":
        if table.dtype.kind == "O" and _is_lazy(table):
            yield name, f"{name}.astype(float)"
        return
    for k, dtype in enumerate(table.dtypes):
        if dtype.kind == "O" and _is_lazy(table.iloc[:, k]):
            text = f"{name}[{table.columns[k]!r}]"
            yield text, f"{text}.astype(float)"


def _is_lazy(column: Any) -> bool:
    ends = chain(column.array[:_LOOKED_AT], column.array[-_LOOKED_AT:])
    return any(isinstance(v, Tensor) for v in ends)
