"""DataFrames with columns of several kinds as arguments: numeric columns become lazy arrays, reading another one is refused.

pandas is not imported. What pandas does with such a table as a whole is not captured, and refused by name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from tensormagic.capture.errors.refusal import refuse, refuse_python
from tensormagic.capture.inputs.door import OPERATORS, RefusedError, is_table, numbers_of
from tensormagic.capture.names import find
from tensormagic.capture.tables.labelled import Labelled, structure_of, with_labels
from tensormagic.capture.values.value import Tensor

Build = Callable[[Iterator[Any]], Any]


def arrays_of(table: Any) -> dict[Any, np.ndarray[Any, Any]] | None:
    """Return the numeric columns by name; None unless it is a DataFrame with unique names and such a column."""
    if not is_table(table) or type(table).__name__ != "DataFrame" or not table.columns.is_unique:
        return None
    found = {k: numbers_of(column, f"table[{k!r}]") for k, column in table.items() if column.dtype != object}
    return {k: array for k, array in found.items() if array is not None} or None


def collect(table: Any, leaves: list[Any]) -> Build | None:
    """Append a DataFrame's numeric columns to ``leaves``; return a function that rebuilds it with others, or None."""
    arrays = arrays_of(table)
    if arrays is None:
        return None
    leaves += arrays.values()

    def build(rest: Iterator[Any]) -> Any:
        found = {k: next(rest) for k in arrays}
        if all(isinstance(v, Tensor) for v in found.values()):
            return Columns({k: with_labels(v, table[k]) for k, v in found.items()}, table)
        return table.assign(**found) if all(isinstance(k, str) for k in found) else found

    return build


def form_of(table: Any, arrays: dict[Any, np.ndarray[Any, Any]]) -> Any:
    """Return what a trace over such a DataFrame depends on beside its numbers."""
    return (structure_of(table), tuple(map(str, table.dtypes)), tuple(arrays))


class Columns:
    """Represents a DataFrame whose numeric columns are lazy arrays.

    Parameters
    ----------
    found
        These columns.
    table
        The original DataFrame, for its names and kinds of columns.
    wanted
        The columns present; by default all.
    """

    def __init__(self, found: dict[Any, Labelled], table: Any, wanted: list[Any] | None = None) -> None:
        self._found = found
        self._table = table
        self.columns = table.columns if wanted is None else table.columns[[table.columns.get_loc(c) for c in wanted]]

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, list):
            return self._several([self._known(c) for c in index])
        mask = isinstance(index, Tensor | np.ndarray) and index.dtype == np.bool_ and index.ndim == 1
        if isinstance(index, Tensor | np.ndarray) and not mask:
            refuse_python("reading a DataFrame by an array of labels", "Read its columns by their names.")
        if isinstance(index, slice) or mask:
            rows = {k: v[index] for k, v in self._found.items()}
            return Columns(rows, self._table, list(self.columns))
        return self._column(self._known(index))

    def _known(self, name: Any) -> Any:
        if name not in self.columns:
            raise KeyError(name)
        return name

    def _column(self, name: Any) -> Labelled:
        if name not in self._found:
            raise RefusedError(self._table[name], f"table[{name!r}]")
        return self._found[name]

    def _several(self, names: list[Any]) -> Any:
        kinds = {self._table.dtypes[n] for n in names}
        if len(kinds) > 1 or not all(n in self._found for n in names):
            return Columns({n: self._found[n] for n in names if n in self._found}, self._table, names)
        first = self._column(names[0])
        whole = self.to_numpy(names=names)
        return Labelled(whole, first.labels, self.columns[[self.columns.get_loc(n) for n in names]])

    def __getattr__(self, name: str) -> Any:
        if name in self.columns:
            return self._column(name)
        if not name.startswith("_") and (hasattr(type(self._table), name) or f"__{name}__" in OPERATORS):
            refuse(
                f"{name} of a DataFrame with columns of several kinds",
                "Use single columns, d['name'], or columns of one kind, d[['a', 'b']]; or convert it to an array of floats.",
            )
        raise AttributeError(f"'DataFrame' object has no attribute {name!r}")

    def __setitem__(self, index: Any, value: Any) -> None:
        refuse("storing into a DataFrame", "Keep the new column as a separate variable.")

    def __iter__(self) -> Iterator[Any]:
        return iter(self.columns)

    def __contains__(self, name: object) -> bool:
        return name in self.columns

    def __len__(self) -> int:
        return len(next(iter(self._found.values())))

    def __bool__(self) -> bool:
        raise ValueError(
            "The truth value of a DataFrame is ambiguous. Use a.empty, a.bool(), a.item(), a.any() or a.all()."
        )

    @property
    def shape(self) -> tuple[Any, int]:
        """Return the numbers of rows and columns."""
        return next(iter(self._found.values())).shape[0], len(self.columns)

    @property
    def index(self) -> Any:
        """Return the labels of the rows."""
        return next(iter(self._found.values())).index

    @property
    def values(self) -> Tensor:
        """Return the numbers, if all columns are numeric."""
        return self.to_numpy()

    def items(self) -> Iterator[tuple[Any, Labelled]]:
        """Return an iterator over the columns with their names."""
        return ((name, self._column(name)) for name in self.columns)

    def keys(self) -> Any:
        """Return the names of the columns."""
        return self.columns

    def to_numpy(self, dtype: Any = None, *, names: list[Any] | None = None) -> Tensor:
        """Return the numbers in an array of the dtype that pandas makes of the columns' dtypes."""
        parts = [self._column(name).to_numpy() for name in names or self.columns]
        kinds = {p.dtype.kind == "b" for p in parts}
        if len(kinds) > 1 and dtype is None:
            refuse("a DataFrame with truth values and numbers as one array", "Give the dtype: d.to_numpy(float).")
        stack: Any = find(np.stack)
        return stack(parts if dtype is None else [p.astype(dtype) for p in parts], 1)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return self.to_numpy().__array__(dtype, copy)


def _operator(name: str) -> Callable[..., Any]:
    def operate(self: Columns, *_others: Any) -> Any:
        return self.__getattr__(name)

    return operate


for _name in dir(np.ndarray):
    if _name in OPERATORS or _name in {"__eq__", "__ne__"}:
        setattr(Columns, _name, _operator(_name.strip("_")))
Columns.__hash__ = None  # type: ignore[assignment]
