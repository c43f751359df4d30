"""What callables of the standard library read, whose code is C's or unknown: getters, caches, dispatchers, abstract classes."""

from __future__ import annotations

import abc
import array
import functools
import operator
import types
from typing import Any

import numpy as np

from tensormagic.functions.reads import value_kinds
from tensormagic.functions.reads.notes import Notes
from tensormagic.functions.reads.record import Check

_OF_FUNCTIONS = frozenset(
    {"__name__", "__qualname__", "__doc__", "__module__", "__annotations__"}
)  # attributes that are in no dictionary


class Wrappers(Notes):
    """Examines such callables in the search for what code may read."""

    def getter(self, value: Any, _told: str, _lifted: bool) -> None:
        """Add the attributes that ``operator.attrgetter`` and ``methodcaller`` read, which no code names."""
        self.names.update(part for text in value.__reduce__()[1] if isinstance(text, str) for part in text.split("."))

    def cached(self, value: functools.cached_property[Any], told: str, _lifted: bool) -> None:
        """Follow the function of a cached property."""
        self.unstaged = True
        self.push(value.func, told)

    def remembering(self, value: Any, told: str, _lifted: bool) -> None:
        """Record a function that caches its results (`functools.lru_cache`) by its number of calls, and follow it."""
        self.check("cache", value, None, tuple(value.cache_info()), f"the cache of {told}")
        self.push(value.__wrapped__, told)

    def memory(self, value: Any, told: str, _lifted: bool) -> None:
        """Record a Python array or mutable bytes: the content is restored, and not compared at each call."""
        if not self.fixed:
            self.by_call(f"{told} ({type(value).__name__})")
        self.check("memory", value, None, bytes(value), told)

    def vectorized(self, value: Any, told: str, _lifted: bool) -> None:
        """Follow the function that `np.vectorize` calls."""
        for name in ("pyfunc", "otypes", "excluded", "signature", "cache"):
            self.entry(vars(value), name, f"{told}.{name}", lifted=False)

    def abstract(self, kind: Any, told: str) -> None:
        """Record a class with registered subclasses: Python counts registrations."""
        if isinstance(kind, abc.ABCMeta):
            check = Check("holds value", (lambda _: abc.get_cache_token(), kind, abc.get_cache_token()), told)
            self.checks["registered", id(kind)] = check

    def abstracts(self, module: types.ModuleType, told: str) -> None:
        """Record Python's abstract classes in a module that code may use, such as those of ``collections.abc``."""
        space = vars(module)
        for name in sorted(self.names & space.keys()):
            self.abstract(space[name], f"{told}.{name}")
            if isinstance(space[name], types.ModuleType) and value_kinds.is_quiet(space[name].__name__):
                self.pending.append((space[name], f"{told}.{name}", False))

    def beside(self, function: types.FunctionType, told: str) -> set[str]:
        """Record attributes of a function that are in no dictionary; return attributes that matter even if no code names them."""
        for name in sorted(self.names & _OF_FUNCTIONS):
            self.slot(function, operator.attrgetter(name), f"{told}.{name}", name)
        return {"registry"} & function.__dict__.keys() if hasattr(function, "dispatch") else set()

    def is_whole(self, kind: type) -> bool:
        """Return whether code reads all that objects of a class hold, by no name: texts and comparisons of a `SimpleNamespace` do."""
        return issubclass(kind, types.SimpleNamespace) and not value_kinds.WHOLE.isdisjoint(self.builtins | self.names)


WRAPPERS: dict[type, Any] = {
    array.array: Wrappers.memory,
    bytearray: Wrappers.memory,
    functools.cached_property: Wrappers.cached,
    np.vectorize: Wrappers.vectorized,
    type(functools.cache(len)): Wrappers.remembering,
    operator.attrgetter: Wrappers.getter,
    operator.methodcaller: Wrappers.getter,
}
