"""Series and DataFrames as lazy arrays that keep their labels: what pandas and NumPy do alike is captured, the rest is not.

A column with gaps or non-numbers stays what it is: pandas computes with it, as in any cell. pandas is not imported.
"""

from __future__ import annotations

import functools
import hashlib
import operator
from collections.abc import Callable, Iterator
from types import FunctionType, MethodType
from typing import Any

import numpy as np

from tensormagic.capture import context
from tensormagic.capture.errors.refusal import AS_TEXT, abstract, refuse, refuse_python, values_are_there
from tensormagic.capture.foreign.calls import on_values
from tensormagic.capture.inputs import snapshots
from tensormagic.capture.inputs.door import check_dtype, is_table, numbers_of
from tensormagic.capture.names import FUNCTIONS
from tensormagic.capture.stores.place import Buffer, Place
from tensormagic.capture.tables.as_pandas import AsPandas, alike, as_pythons, of_the_table, values_are_to_be_had
from tensormagic.capture.tables.labels import (
    Accessor,
    Chosen,
    check_length,
    counts,
    is_array,
    is_place,
    kind_of,
    whole_of,
)
from tensormagic.capture.values.value import Tensor
from tensormagic.ops.leaf import INPUT


def labelled(value: Any, name: str) -> Labelled | None:
    """Return the lazy array of a Series or a DataFrame; None for other values, and for tables that are not captured."""
    array = numbers_of(value, name) if is_table(value) else None
    if array is None:
        return None
    check_dtype(array.dtype, name)
    return with_labels(Tensor(Place(Buffer(snapshots.of_content(array, name), None, name))), value)


def with_labels(tensor: Tensor, table: Any) -> Labelled:
    """Return a lazy array with the labels of a Series or a DataFrame of its shape."""
    return Labelled(tensor, table.index, None if type(table).__name__ == "Series" else table.columns, table)


class Labelled(AsPandas):
    """Represents a lazy array with the labels of a Series or a DataFrame.

    Parameters
    ----------
    tensor
        The values.
    labels, columns
        The index of the rows, and that of the columns; None for a Series.
    table
        The Series or the DataFrame itself, if it holds these values: pandas handles what is not captured.
    name
        The name of a Series.
    """

    __slots__ = ("called", "detached", "labels", "owned", "table")

    has_labels = True

    def __init__(self, tensor: Tensor, labels: Any, columns: Any, table: Any = None, name: Any = None) -> None:
        self.columns = columns  # first: each attribute that is read needs it
        super().__init__(tensor.place)
        self.place.buffer.writeable = False
        self.labels = labels
        self.table = table
        self.called = getattr(table, "name", name) if columns is None else None
        self.detached = False
        self.owned = table is None  # nothing else refers to the table: pandas' changes to it are changes to this

    def column_at(self, text: str) -> Any:
        """Return the column that an attribute names; None if pandas has such an attribute, or there is no such column.

        Attributes of lazy arrays that pandas lacks (``level``, ``type``) name columns if the table has these.
        """
        name = text.rpartition(".")[2]
        known = self.columns is not None and name in self.columns and not hasattr(self._class_of_pandas, name)
        return self[name] if known else None

    def __str__(self) -> str:
        abstract(AS_TEXT)
        return str(self.as_table())

    def __format__(self, spec: str) -> str:
        abstract(AS_TEXT)
        return format(self.as_table(), spec)

    def __getattr__(self, name: str) -> Any:
        if name in {"values", "array"}:
            return Tensor(self.place)
        if name == "index":
            return self._index()
        if self.columns is None and name == "name":
            return self.called
        if self.columns is not None and name in self.columns:
            return self[name]
        return self._of_pandas(name)

    def _index(self) -> Any:
        capture = context.current()
        if capture is not None and capture.abstract and counts(self.labels):
            refuse("the index of a Series or a DataFrame in a function", "Use row numbers: np.arange(len(s)).")
        there = isinstance(self.labels, Chosen) and (capture is None or values_are_there())
        return self.as_table().index if there else self.labels

    def _of_pandas(self, name: str) -> Any:
        """Return a pandas attribute: NumPy's if it is equivalent, else the table's if its values are available."""
        kind, capture = self._class_of_pandas, context.current()
        alike = name in (_ALIKE if self.columns is None else _ALIKE_IN_TABLES) or not hasattr(kind, name)
        if alike:
            found = super().__getattr__(name)
            return self._labelling(found) if name in _ALIKE and name != "searchsorted" else found  # it returns places
        if capture is None or values_are_there():
            self.detached = True  # what pandas computes is a constant of the graph
            if name in _ACCESSORS:
                return Accessor(self, name)
            table, said = self.own_table(), f"{self.place.buffer.name or 'table'}.{name}"
            found = _lifting(getattr(table, name), said, made=name not in _THE_USERS)
            return self._changing(found, table) if self.owned and isinstance(found, FunctionType) else found
        if not hasattr(np.ndarray, name):
            refuse(f"{kind.__name__}.{name}", "Call it outside, or write it with NumPy: s.to_numpy().")
        return super().__getattr__(name)

    @property
    def array_class(self) -> type[Any]:
        """Return the class of pandas that it stands for."""
        return self._class_of_pandas

    @property
    def _class_of_pandas(self) -> Any:
        import pandas as pd  # importable, since it has made the labels

        return pd.Series if self.columns is None else pd.DataFrame

    @property
    def T(self) -> Any:
        """Return the transpose, with labels and columns exchanged."""
        plain = Tensor(self.place).T
        return self if self.columns is None else Labelled(plain, self.columns, self.labels)

    def astype(self, dtype: Any, **options: Any) -> Any:
        """Return the table with its values cast to a dtype."""
        return self._again(Tensor(self.place).astype(dtype, **options))

    def __contains__(self, label: Any) -> bool:
        return label in (whole_of(self.labels) if self.columns is None else self.columns)

    def __round__(self, ndigits: int | None = None) -> Any:
        return self.round(ndigits or 0)

    def as_table(self) -> Any:
        """Return the Series or the DataFrame that this stands for."""
        if self.table is not None:
            return self.table
        import pandas as pd  # importable, since it has made the labels

        values, labels = np.array(self.numpy()), whole_of(self.labels)
        if self.columns is None:
            return pd.Series(values, labels, name=self.called)
        return pd.DataFrame(values, labels, self.columns)

    def own_table(self) -> Any:
        """Return the Series or DataFrame that this stands for; always the same object."""
        self.table = self.as_table()
        return self.table

    def _changing(self, method: Callable[..., Any], table: Any) -> Callable[..., Any]:
        """Return a method of pandas; a call that changes the table updates this object."""

        def call(*args: Any, **options: Any) -> Any:
            before = table.copy(deep=False)
            found = method(*args, **options)
            if not (table.equals(before) and table.index.equals(before.index)):
                self.become(table)
            return found

        return call

    def become(self, table: Any) -> None:
        """Take over what pandas has made of the table."""
        array = numbers_of(table, self.place.buffer.name or "table")
        if array is None:
            refuse("a store that leaves a table with gaps or with columns of several kinds", _PLAINLY)
        self.place = with_labels(
            Tensor(Place(Buffer(snapshots.of_content(array, self.place.buffer.name), None))), table
        ).place
        self.table, self.labels = table, table.index
        self.columns = None if self.columns is None else table.columns
        self.detached = True

    def store(self, put: Callable[[Any], None]) -> None:
        """Let pandas store into the table, unless it is shared."""
        if not (context.current() is None or values_are_there()):
            refuse_python("a store into a Series or a DataFrame", "Make a new one.")
        if not self.owned:
            refuse("a store into a Series or a DataFrame", _PLAINLY)
        table = self.own_table()
        put(table)
        self.become(table)

    def _labelling(self, method: Callable[..., Any]) -> Callable[..., Any]:
        return lambda *args, **options: self._again(method(*args, **options))

    def copy(self, *_deep: Any, **_options: Any) -> Labelled:
        """Return the same values in a table of their own."""
        found = Labelled(Tensor(self.place), self.labels, self.columns, name=self.called)
        found.detached = self.detached
        return found

    def to_numpy(self, dtype: Any = None) -> Tensor:
        """Return the values without their labels."""
        plain = Tensor(self.place)
        return plain if dtype is None else plain.astype(dtype)

    def __getitem__(self, index: Any) -> Any:
        if self._by_place(index):
            return self._rows(index)
        if self.columns is not None and not isinstance(index, slice | Tensor | np.ndarray):
            return self._columns(index)
        return self._by_labels(index)

    def _by_place(self, index: Any) -> bool:
        """Return whether an index selects rows by position: a mask without other labels, or a slice of integers."""
        if isinstance(index, slice):
            whole = all(is_place(v) for v in (index.start, index.stop, index.step))
            plain = all(v is None for v in (index.start, index.stop, index.step))
            return plain or (whole and kind_of(self.labels) in "iu")
        if is_array(index) and index.dtype == np.bool_ and index.ndim == 1:
            if not isinstance(index, Labelled):
                check_length(index, self.type.shape[0], table=self.columns is not None)
                return True
            return bool(index.labels.equals(self.labels))
        known: bool = self.columns is None and counts(self.labels)
        place = isinstance(index, int | np.integer) and not isinstance(index, bool)
        return known and place and bool(0 <= index < len(self.labels))

    def _by_labels(self, index: Any) -> Any:
        """Return a selection by labels: pandas determines the rows, which are then taken from the values."""
        if not (context.current() is None or values_are_there()):
            refuse_python("reading a Series or a DataFrame by labels", "Select rows by position: s.to_numpy()[k].")
        if self.columns is not None:
            self.detached = True
            return _lifting(on_values(operator.getitem)(self.as_table(), index), self.place.buffer.name or "table")
        import pandas as pd  # importable, since it has made the labels

        labels = whole_of(self.labels)
        index = index.as_table() if isinstance(index, Labelled) else index
        found = on_values(operator.getitem)(pd.Series(np.arange(len(labels)), labels, name=self.called), index)
        plain = Tensor(self.place)
        if not is_table(found):
            return plain[int(found)]
        return Labelled(plain[found.to_numpy()], found.index, None, name=self.called)

    def _rows(self, index: Any) -> Any:
        """Return rows selected by a slice or a mask, with their labels."""
        found = Tensor(self.place)[index.values if isinstance(index, Labelled) else index]
        if found.ndim != self.ndim:
            return found
        return Labelled(found, Chosen(self.labels, index), self.columns, name=self.called)

    def _columns(self, index: Any) -> Any:
        wanted = index if isinstance(index, list) else [index]
        places = [self.columns.get_loc(c) for c in wanted]  # raises KeyError as pandas does
        own = None if self.table is None else self.table[index]
        if not isinstance(index, list):
            found = Labelled(Tensor(self.place)[:, places[0]], self.labels, None, own, index)
        else:
            found = Labelled(Tensor(self.place)[:, places], self.labels, self.columns[places], own)
        found.owned = True  # pandas makes a new one, too
        return found

    def __setitem__(self, index: Any, value: Any) -> None:
        self.store(lambda table: on_values(operator.setitem)(table, index, value))

    @property
    def gone_over(self) -> Tensor | None:
        """Return the numbers of a column; None for a table, whose iteration gives the names of its columns."""
        return Tensor(self.place) if self.columns is None else None

    def __iter__(self) -> Iterator[Any]:
        rows = self.gone_over
        return iter(self.columns) if rows is None else map(as_pythons, rows)  # Python's numbers, as in pandas

    def __array_ufunc__(self, ufunc: Any, method: str, *operands: Any, **options: Any) -> Any:
        if method == "__call__" and not all(self._is_like(o) for o in operands) and values_are_to_be_had():
            return self._by_pandas(functools.partial(ufunc, **options), operands)
        self._agrees(operands)
        found = super().__array_ufunc__(ufunc, method, *operands, **options)
        return self._again(found, operands) if method == "__call__" else found

    def __array_function__(self, function: Any, types: Any, args: tuple[Any, ...], options: dict[str, Any]) -> Any:
        self._agrees(args)
        return super().__array_function__(function, types, args, options)

    def _agrees(self, others: Any) -> None:
        """Raise for operands that pandas would align by labels."""
        if not all(map(self._is_like, others)):
            refuse(
                "an operation on a Series or DataFrames with different labels, which pandas would align,",
                "Use the values alone: s.to_numpy().",
            )

    def _is_like(self, other: Any) -> bool:
        """Return whether an operand has the same labels, or none."""
        return other is self or not isinstance(other, Labelled) or alike(self, other)

    def _by_pandas(self, function: Callable[..., Any], operands: Any) -> Any:
        """Return the result of pandas' alignment by labels, computed on values: a constant of the graph."""
        given = [o.as_table() if isinstance(o, Labelled) else o for o in operands]
        found = _lifting(on_values(function)(*given), self.place.buffer.name or "table")
        if isinstance(found, Labelled):
            found.detached = True
        return found

    def _again(self, found: Any, others: Any = ()) -> Any:
        """Return a result with the labels, if it has the same axes; its name is that of all operands, if they share one."""
        if not isinstance(found, Tensor) or isinstance(found, Labelled) or found.ndim != self.ndim:
            return found
        alike = all(o.called == self.called for o in others if isinstance(o, Labelled))
        return Labelled(found, self.labels, self.columns, name=self.called if alike else None)

    def may_have_gaps(self) -> bool:
        """Return whether some elements may be NaN, which pandas skips; a table given as an input has none."""
        return self.node.op is not INPUT and self.dtype.kind in "fc"

    def _over(self, name: str, axis: Any, options: dict[str, Any]) -> Any:
        """Return a reduction with pandas' defaults: over rows, and with n - 1 in variances."""
        if name in {"std", "var"}:
            options = {"ddof": 1, **options}
        options.pop("numeric_only", None)  # all of the columns are numeric
        skipping = options.pop("skipna", True) and self.may_have_gaps()
        reduce = _skipping_gaps(name) if skipping else _of_array(name)
        if self.columns is None:
            return reduce(Tensor(self.place), axis=axis, **options)
        axis = _number_of(axis)
        found = reduce(Tensor(self.place), axis=axis, **options)
        if axis not in {0, 1}:
            return found
        return Labelled(found, self.columns if axis == 0 else self.labels, None)


_ABSENT = object()
_AXES = {_ABSENT: 0, "index": 0, "columns": 1}
REDUCTIONS = ("sum", "prod", "mean", "std", "var", "min", "max", "any", "all")
RUNNING = {"cumsum", "cumprod"}
_ALIKE_IN_TABLES = {"dot", "round", "clip"} | RUNNING  # methods that mean the same in NumPy
_ALIKE = _ALIKE_IN_TABLES | {"argmax", "argmin", "argsort", "searchsorted", "conj"}


def _of_array(name: str) -> Callable[..., Any]:
    return lambda array, **options: getattr(array, name)(**options)


def _skipping_gaps(name: str) -> Callable[..., Any]:
    """Return a reduction that skips NaN."""
    if name == "all":  # NaN is true
        return _of_array(name)
    if name == "any":
        return lambda array, **options: ((array != 0) & ~np.isnan(array)).any(**options)
    return FUNCTIONS[getattr(np, f"nan{name}")]


def _number_of(axis: Any) -> Any:
    """Return an axis as NumPy numbers it."""
    return _AXES.get(axis, axis)


def _running(name: str) -> Callable[..., Any]:
    """Return a method for cumulative totals down the rows, with pandas' defaults."""

    def total(self: Labelled, axis: Any = _ABSENT, **options: Any) -> Any:
        axis = None if self.columns is None else _number_of(_ABSENT if axis is None else axis)
        array, skipping = Tensor(self.place), options.pop("skipna", True) and self.may_have_gaps()
        found = getattr(array, name)(axis=axis, **options)
        if skipping:  # these stay where they are
            found = np.where(np.isnan(array), array, FUNCTIONS[getattr(np, f"nan{name}")](array, axis=axis, **options))
        return self._again(found)  # pyright: ignore[reportPrivateUsage] (as above)

    return total


def _reduction(name: str) -> Callable[..., Any]:
    def reduce(self: Labelled, axis: Any = _ABSENT, **options: Any) -> Any:
        if self.columns is None and (axis is _ABSENT or axis == "index"):
            axis = None
        return self._over(name, axis, options)  # pyright: ignore[reportPrivateUsage] (a method of the class)

    return reduce


def _operator(name: str) -> Callable[..., Any]:
    def operate(self: Labelled, *others: Any) -> Any:
        if not all(map(self._is_like, others)) and values_are_to_be_had():  # pyright: ignore[reportPrivateUsage] (as above)
            return self._by_pandas(lambda own, *rest: getattr(own, name)(*rest), (self, *others))  # pyright: ignore[reportPrivateUsage]
        self._agrees(others)  # pyright: ignore[reportPrivateUsage]
        found = getattr(Tensor, name)(self, *others)
        if "matmul" not in name:
            return self._again(found, others)  # pyright: ignore[reportPrivateUsage] (as above)
        if self.columns is None or not isinstance(found, Tensor) or found.ndim != 1:
            return found
        return Labelled(found, self.columns if name == "__rmatmul__" else self.labels, None)

    return operate


def _in_place(name: str) -> Callable[..., Any]:
    """Return an in-place operator, as in ``df["a"] += v``.

    A column taken from a table is a Series of its own, which is put back; a variable would have other names.
    """

    def change(self: Labelled, other: Any) -> Any:
        source = self.node["source"] if self.node.op is INPUT else None
        if self.columns is not None or (source is not None and source.name.isidentifier()):
            refuse("a store into a Series or a DataFrame", "Bind a new one: s = s + 1 in place of s += 1.")
        found = getattr(self, name)(other)
        if not isinstance(found, Labelled):
            return found
        self.place, self.table = found.place, None
        return self

    return change


for _name in REDUCTIONS:
    setattr(Labelled, _name, _reduction(_name))
for _name in RUNNING:
    setattr(Labelled, _name, _running(_name))
_BINARY = ["add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "and", "or", "xor"]
_NAMES = [f"{side}{name}" for name in _BINARY for side in ("", "r")] + [
    "eq",
    "ne",
    "lt",
    "le",
    "gt",
    "ge",
    "neg",
    "pos",
    "abs",
    "invert",
]
for _name in [*_NAMES, "matmul", "rmatmul"]:
    setattr(Labelled, f"__{_name}__", _operator(f"__{_name}__"))
for _name in _BINARY:
    setattr(Labelled, f"__i{_name}__", _in_place(f"__{_name}__"))
Labelled.__getitem__ = of_the_table("getitem", Labelled.__getitem__)
Labelled.__hash__ = None  # type: ignore[assignment]


_ACCESSORS = {"loc", "iloc", "at", "iat"}
_PLAINLY = "Store in a separate cell without %%tensor, or into s.to_numpy().copy()."


_THE_USERS = {"pipe", "attrs"}  # methods that return what the user's code has given it


def _lifting(value: Any, name: str, *, made: bool = True) -> Any:
    """Return pandas' result with tables as lazy ones; if ``made`` here, they share no memory with others."""
    if is_table(value):
        found = labelled(value, name)
        if found is not None:
            found.owned = made and _shares_no_changes()
        return value if found is None else found
    if isinstance(value, FunctionType | MethodType):  # not an accessor such as ``s.plot``, which has parts
        return lambda *args, **options: _lifting(on_values(value)(*args, **options), f"{name}()", made=made)
    return value


@functools.cache
def _shares_no_changes() -> bool:
    """Return whether pandas' tables behave as copies of one another when one is changed, as from its version 3 on."""
    import pandas as pd  # importable, since it has made a table

    return int(pd.__version__.partition(".")[0]) >= 3


def structure_of(table: Any) -> Any:
    """Return what a trace over a Series or a DataFrame depends on besides its values."""
    columns = tuple(table.columns) if type(table).__name__ == "DataFrame" else None
    labels = table.index
    if counts(labels):
        return (type(table).__name__, columns)
    held = labels.to_numpy()
    content = tuple(held) if held.dtype == object else hashlib.blake2b(held.tobytes(), digest_size=16).digest()
    return (type(table).__name__, columns, type(labels).__name__, str(held.dtype), content)
