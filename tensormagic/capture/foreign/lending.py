"""Values lent to functions that know nothing of lazy arrays, and what these functions do to them.

A lazy array is lent as an array of its own, the same one wherever it stands among the arguments, in lists and
dictionaries too. What a function stores into an array is stored into the lazy one; what it does to a list is done to
the list; and a view of the array that it returns becomes that view of the lazy one.
"""

from __future__ import annotations

import operator
import sys
from collections import deque
from collections.abc import Callable, Iterator
from types import GeneratorType
from typing import Any

import numpy as np

from tensormagic.capture.errors.refusal import needs_value, refuse
from tensormagic.capture.foreign import rebuilt_containers
from tensormagic.capture.hooks import hooks
from tensormagic.capture.inputs.stand_ins import real_of
from tensormagic.capture.random.methods import Stateful
from tensormagic.capture.stores.windows import window
from tensormagic.capture.values.list_elements import Outgrown
from tensormagic.capture.values.value import Tensor
from tensormagic.ir.errors import SharedError
from tensormagic.ir.modules import module_of
from tensormagic.ir.type import hint
from tensormagic.ops.draws.state import bits_of

_ADVICE = "Call it outside of captured code, with arrays; or write it as NumPy code."
_ROWS = {list, tuple, deque, set, frozenset}
_ITERATORS = {map, filter, GeneratorType}
_OWN = __name__.partition(".")[0] + "."


def _always(_value: Any) -> bool:
    return True


class Loan:
    """Represents the values lent to one call.

    Parameters
    ----------
    what
        Who needs values, for the refusal if there are none.
    parts
        Whether a part of an array's memory that a function returns is surely that in NumPy, too.
    memory
        Gives the arrays themselves, for a function that gives their memory another form.
    """

    def __init__(self, what: str, *, parts: bool = True, memory: Callable[[Tensor], Any] | None = None) -> None:
        self._what = what
        self._parts = parts
        self._memory = memory
        self._values: dict[int, tuple[Tensor, Any, Any]] = {}  # the lazy value, what is lent for it, and what that was
        self._generators: dict[int, tuple[Any, Any]] = {}  # the lazy generator, and what is lent for it
        self._containers: list[tuple[Any, Any, list[Any]]] = []  # the user's, what is lent for it, and what was in that

    @property
    def lends(self) -> bool:
        """Return whether there was anything to lend."""
        return bool(self._values)

    @property
    def tensors(self) -> list[Tensor]:
        """Return the lazy arrays that are lent."""
        return [lazy for lazy, _, _ in self._values.values()]

    def is_in(self, table: Any) -> bool:
        """Return whether a Series or DataFrame shares memory with lent values."""
        arrays = [array for _, array, _ in self._values.values() if isinstance(array, np.ndarray)]
        return bool(arrays) and any(np.may_share_memory(table.to_numpy(), array) for array in arrays)

    def lent(self, value: Any) -> Any:
        """Return what a function gets for an argument."""
        if isinstance(value, Tensor):
            return self._lent_array(value)
        if isinstance(value, Stateful):
            return self._lent_generator(value)
        kind = type(value)
        if (module := module_of(kind)).startswith(_OWN):
            return self._iterated(hooks.handed_out(real_of(value), self.lent))
        if kind in _ITERATORS or module == "itertools":
            return self._iterated(value)
        if kind is slice:
            return slice(self.lent(value.start), self.lent(value.stop), self.lent(value.step))
        if kind is dict:
            keys, items = [self.lent(k) for k in value], [self.lent(v) for v in value.values()]
            if all(map(operator.is_, (*keys, *items), (*value, *value.values()))):
                return value
            return self._lent_container(value, dict(zip(keys, items, strict=True)))
        if kind not in _ROWS or isinstance(value, Outgrown):
            return value
        items = [self.lent(v) for v in value]
        if all(a is b for a, b in zip(items, value, strict=True)):
            return value
        return self._lent_container(value, deque(items, value.maxlen) if kind is deque else kind(items))

    def _lent_generator(self, value: Stateful) -> Any:
        if id(value) not in self._generators:
            self._generators[id(value)] = (value, value.handed())
        return self._generators[id(value)][1]

    def _iterated(self, value: Any) -> Any:
        """Return an iterator whose values are lent one by one."""
        if type(value) is GeneratorType:
            return (self.lent(v) for v in value)
        if type(value) is filter:
            return filter(_always, map(self.lent, value))
        return map(self.lent, value) if type(value) is map or module_of(type(value)) == "itertools" else value

    def _lent_container(self, value: Any, given: Any) -> Any:
        self._containers.append((value, given, list(_parts(given))))
        return given

    def _lent_array(self, value: Tensor) -> Any:
        known = self._values.get(id(value))
        if known is not None:
            return known[1]
        needs_value(self._what, _ADVICE, value.node)
        as_table = getattr(type(value), "as_table", None)
        if as_table is not None:
            return as_table(value)
        found = value.numpy()
        given = as_numpy_lies(found, value) if isinstance(found, np.ndarray) else found
        given = self._memory(value) if self._memory is not None and isinstance(given, np.ndarray) else given
        self._values[id(value)] = (value, given, found)
        return given

    def holders(self) -> list[int]:
        """Return how many references there are to each generator that is lent, and to what it is made over."""
        return [sys.getrefcount(g) + sys.getrefcount(bits_of(g)) for _, g in self._generators.values()]

    def returned(self, found: Any, holders: list[int]) -> Any:
        """Return the result of a call; apply changes it made to lent values to the originals."""
        for lazy, array, before in self._values.values():
            if isinstance(array, np.ndarray) and array.tobytes() != before.tobytes():
                if lazy.place.writeable is False:  # some of NumPy's functions do not check this
                    refuse("a store into a read-only array", "Store into a copy.")
                lazy[...] = array
        for (lazy, generator), earlier, now in zip(self._generators.values(), holders, self.holders(), strict=False):
            lazy.continue_from(generator)
            if now > earlier:
                lazy.keep(generator)
        for own, given, before in self._containers:
            now = list(_parts(given))
            if len(now) != len(before) or any(a is not b for a, b in zip(now, before, strict=True)):
                _refill(own, given, [self._taken_back(v) for v in now])
        return self._result(found)

    def _result(self, found: Any) -> Any:
        if type(found) not in {list, tuple}:
            return self._taken_back(found)
        own = self._taken_back(found)
        parts = [self._taken_back(v) for v in found] if own is found else []
        return own if all(a is b for a, b in zip(parts, found, strict=False)) else type(found)(parts)

    def _taken_back(self, value: Any) -> Any:
        """Return the original lazy array or container for a lent value, or for a part of one; any other value unchanged."""
        for own, given, _ in self._containers:
            if given is value:
                return own
        if not isinstance(value, np.ndarray | float | complex | np.inexact):
            return value
        for lazy, given, _ in self._values.values():
            if given is value:
                return lazy
        return self._part(value) if isinstance(value, np.ndarray) else value

    def _part(self, value: np.ndarray[Any, Any]) -> Any:
        """Return a view of a lent array as that view of the lazy one: stores into either reach the other."""
        for lazy, array, _ in self._values.values():
            if isinstance(array, np.ndarray) and np.may_share_memory(value, array):
                if self._memory is not None:
                    return value
                advice = "Pass a copy, x.copy()."
                if type(value) is not np.ndarray or value.dtype != array.dtype:
                    raise SharedError(
                        "a function that returns an array's memory as another object is not captured", advice
                    )
                if not self._parts:
                    refuse("a function that returns a part of an array's memory", advice)
                return window(lazy, array, value.strides, value.shape, _address(value) - _address(array))
        return value


def as_numpy_lies(found: np.ndarray[Any, Any], lazy: Tensor) -> np.ndarray[Any, Any]:
    """Return an array of the same values with the memory layout of NumPy's own, including gaps and reversed axes."""
    known = lazy.place.layout() if all(hint(s) is not None for s in lazy.type.shape) else None
    steps = [s // found.itemsize for s in found.strides] if known is None else known.strides
    ends = [(n - 1) * s for n, s in zip(found.shape, steps, strict=True)]
    before, behind = -sum(e for e in ends if e < 0), sum(e for e in ends if e > 0)
    room = np.zeros(before + behind + 1 if found.size else 0, found.dtype)
    made = np.lib.stride_tricks.as_strided(room[before:], found.shape, [s * found.itemsize for s in steps])
    made[...] = found
    if lazy.place.writeable is False:
        made.flags.writeable = False
    return made


def _address(array: np.ndarray[Any, Any]) -> int:
    return int(array.__array_interface__["data"][0])


def _parts(container: Any) -> Iterator[Any]:
    if isinstance(container, dict):
        for key, value in container.items():
            yield key
            yield value
    else:
        yield from container


def _refill(own: Any, given: Any, parts: list[Any]) -> None:
    """Fill a container with ``parts``; for a dictionary, keys and values alternate."""
    rebuilt_containers.refill(
        own, dict(zip(parts[::2], parts[1::2], strict=True)) if isinstance(given, dict) else parts
    )
