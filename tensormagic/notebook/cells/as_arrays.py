"""Replace lazy values that code reads by NumPy's arrays and numbers while Python runs the code as it is written."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from types import CellType, FunctionType
from typing import Any

import numpy as np

from tensormagic.capture.inputs.notebook_names import Holder, Reach, content, is_lazy
from tensormagic.capture.stores.lent import lent
from tensormagic.capture.values.value import Tensor


class AsArrays:
    """Replaces lazy values by NumPy arrays and numbers: in variables, attributes, containers, defaults and closures.

    An array shares the memory of the lazy one, as ``np.asarray`` of it does in plain code, so stores into either show
    in both.

    Parameters
    ----------
    names
        The variables that the code reads.
    binds
        Those that it binds.
    space
        The notebook's variables.
    """

    def __init__(self, names: Iterable[str], binds: Collection[str], space: dict[str, Any]) -> None:
        self._space, self._binds = space, binds
        names = [n for n in names if n in space]
        reach = Reach([space[n] for n in names], space)
        lazy: list[tuple[Holder, Any, Any]] = [
            (space, n, v) for n, v in space.items() if n in reach.reads.union(names) and is_lazy(v)
        ]
        lazy += [(holder, k, v) for holder in reach.holders for k, v in _items(holder) if is_lazy(v)]
        self._arrays = dict[int, Any]()
        for _, _, value in lazy:
            self._array_of(value)
        self._given = [(*each, found) for each in lazy if (found := self._arrays[id(each[2])]) is not each[2]]
        self._looks = {id(array): _look(array) for *_, array in self._given}
        for holder, key, _, array in self._given:
            _put(holder, key, array)

    def put_back(self) -> None:
        """Restore the lazy values, except where the code has rebound the name or changed the array's shape."""
        for holder, key, value, array in self._given:
            rebound = holder is self._space and key in self._binds and not isinstance(array, np.ndarray)
            same = _look(array) == self._looks[id(array)]
            if same and not rebound and dict(_items(holder)).get(key) is array:
                _put(holder, key, value)

    def _array_of(self, value: Any) -> Any:
        """Return the NumPy counterpart of a value, or the value itself where that, or its memory, is not available."""
        if not is_lazy(value):
            return value
        if id(value) not in self._arrays:
            tuples = type(value) is tuple
            self._arrays[id(value)] = tuple(map(self._array_of, value)) if tuples else _of_lazy(value)
        return self._arrays[id(value)]


def _look(value: Any) -> Any:
    """Return the attributes of an array besides its memory."""
    return (value.shape, value.dtype, value.strides, value.flags.writeable) if isinstance(value, np.ndarray) else None


def _of_lazy(value: Tensor) -> Any:
    try:
        found = value.numpy()
    except Exception:  # noqa: BLE001 (of its computation: raised where it is read)
        return value
    if type(found) is not np.ndarray or value.type.form != "array":
        return found
    memory = lent(value.place, found)
    return memory if memory.flags.writeable or value.place.writeable is False else value


def _items(holder: Holder) -> list[tuple[Any, Any]]:
    """Return the contents of a container, a function's defaults or a closure's cell, each with its key."""
    if isinstance(holder, dict):
        return list(holder.items())
    if isinstance(holder, CellType):
        return [(0, content(holder))]
    return list(enumerate((holder.__defaults__ or ()) if isinstance(holder, FunctionType) else holder))


def _put(holder: Holder, key: Any, value: Any) -> None:
    if isinstance(holder, CellType):
        holder.cell_contents = value
    elif isinstance(holder, FunctionType):
        holder.__defaults__ = tuple(value if k == key else v for k, v in _items(holder))
    else:
        holder[key] = value
