"""Lazy Series and DataFrames in pandas' own code, where values are known: pandas sees the computed table.

pandas recognises its tables by class, aligns them by their labels, and reads their parts. A lazy array in their place
would be taken by position, or refused.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from tensormagic.capture import context
from tensormagic.capture.errors.refusal import is_called_by, is_called_by_the_user, values_are_there, zero_like
from tensormagic.capture.values.lazy import SEE_LAZY
from tensormagic.capture.values.value import Tensor, wrap
from tensormagic.ops.form import to_form
from tensormagic.ops.pointwise import astype

_PANDAS = "pandas."
_OURS = {
    "__pandas_priority__",
    "__array_ufunc__",
    "__array_priority__",
}  # the priority by which pandas leaves operators to lazy values


class AsPandas(Tensor):
    """Represents a lazy array that is a Series or a DataFrame to pandas."""

    __slots__ = ("columns",)
    columns: Any

    def own_table(self) -> Any:
        """Return the Series or DataFrame that this stands for; always the same object."""
        raise NotImplementedError

    def __getattribute__(self, name: str) -> Any:
        if name not in _OURS and is_called_by(_PANDAS) and values_are_to_be_had():
            return getattr(self.own_table(), name)
        if name == "__class__":  # the property would take this frame for the caller
            return self.array_class if is_called_by_the_user() and not is_called_by(SEE_LAZY) else type(self)
        columns = object.__getattribute__(self, "columns")
        if columns is None:
            if name == "columns" and is_called_by_the_user():  # a Series does not have it
                raise AttributeError("'Series' object has no attribute 'columns'", name=name, obj=self)
        elif name in columns and is_called_by_the_user() and not hasattr(self.array_class, name):
            return self[name]  # a column, even if lazy arrays have such an attribute
        return super().__getattribute__(name)


def of_the_table(name: str, own: Callable[..., Any]) -> Callable[..., Any]:
    """Return a special method: ``own``, or the table's if pandas calls it."""
    pythons = getattr(operator, name)

    def method(self: AsPandas, *args: Any) -> Any:
        if is_called_by(_PANDAS) and values_are_to_be_had():
            return pythons(self.own_table(), *args)
        return own(self, *args)

    return method


def as_pythons(number: Tensor) -> Tensor:
    """Return a NumPy number as Python's number of the same value, like ``item`` but within the graph."""
    return wrap(to_form(astype(number.node, type(zero_like(number.type).item())), "python"))


def alike(one: Any, other: Any) -> bool:
    """Return whether two tables have the same labels; a Series beside a DataFrame is compared with the columns."""
    whole, part = (other, one) if one.columns is None else (one, other)
    if whole.columns is None or part.columns is None:
        return bool(part.labels.equals(whole.labels if whole.columns is None else whole.columns))
    return bool(part.columns.equals(whole.columns) and part.labels.equals(whole.labels))


def values_are_to_be_had() -> bool:
    """Return whether pandas can compute with tables: in a plain cell, and in a captured one outside of its branches and loops."""
    return context.current() is None or values_are_there()
