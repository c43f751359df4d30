"""Objects that stand for Python's or NumPy's own while code is captured, and what is handed back to the notebook in their place."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, MutableMapping
from types import FunctionType
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np


class StandIn:
    """An object that has no meaning outside captured code."""

    __slots__ = ()

    @property
    def own_class(self) -> type:
        """The class of the object that it stands for."""
        raise NotImplementedError

    def real(self) -> Any:
        """The object that it stands for."""
        raise NotImplementedError

    @property
    def identity(self) -> Any:
        """What is one for all that stand for one object: that object, or what the code has made."""
        return self

    def gone_over(self) -> Any:
        """What a loop that takes all of it goes over in its place."""
        return self


_ATOMS = {int, float, complex, bool, str, bytes, type(None), *np.sctypeDict.values()} - {
    np.object_,
    np.void,
}  # stand for nothing


def real_of(value: Any) -> Any:
    """The object for what stands for it; anything else as it is."""
    return value.real() if issubclass(type(value), StandIn) else value  # a lazy value says that it is of another class


_originals: WeakKeyDictionary[FunctionType, Any] = (
    WeakKeyDictionary()
)  # what functions that captured code has seen are there for


def original_of(value: Any) -> Any:
    """What captured code has seen ``value`` for; itself, where it is nothing of ours."""
    return _originals.get(value, value) if isinstance(value, FunctionType) else value


def noted(seen: Any, value: Any) -> Any:
    """What is ``seen`` for a function: handed back as what it is."""
    if seen is not value and isinstance(seen, FunctionType):
        _originals[seen] = value
    return seen


def own_of(value: Any) -> Any:
    """The object, or the function, for what stands for it; anything else as it is."""
    return original_of(real_of(value))


def gone_over(value: Any) -> Any:
    """What a loop that takes all of it goes over."""
    return value.gone_over() if isinstance(value, StandIn) else value


def identity_of(value: Any) -> Any:
    """What `is` compares."""
    return value.identity if isinstance(value, StandIn) else value


def _nothing(_value: Any) -> Iterable[MutableMapping[str, Any]]:
    return ()


Seen = dict[int, tuple[Any, Any]]
"""By the id of what was looked at: that, which is held so that the id stays its own, and what is handed back for it."""


def handed_back(
    value: Any,
    real: Callable[[Any], Any] = own_of,
    seen: Seen | None = None,
    attributes: Callable[[Any], Iterable[MutableMapping[str, Any]]] = _nothing,
) -> Any:
    """What a cell hands back: the objects themselves for what stands for them, in lists and dictionaries too.

    Parameters
    ----------
    value
        What a name is bound to.
    real
        The object for what stands for it; anything else is given as it is.
    seen
        What has been looked at: what stands at several places is handed back as one object.
    attributes
        What holds the attributes of an object that is looked into, too.
    """
    seen = {} if seen is None else seen
    if id(value) in seen:
        return seen[id(value)][1]
    new = real(value)
    if new is not value:
        seen[id(value)] = value, new
        return new
    kind = type(value)
    if issubclass(kind, tuple):
        seen[id(value)] = value, value
        new = _tuple(value, [handed_back(v, real, seen, attributes) for v in value])
        seen[id(value)] = value, new
        return new
    holders: Iterable[Any] = [value] if issubclass(kind, list | dict | deque) else attributes(value)
    for items in holders:
        seen[id(value)] = value, value
        for key, item in enumerate([*items]) if isinstance(items, list | deque) else [*items.items()]:
            if type(item) in _ATOMS or (new := handed_back(item, real, seen, attributes)) is item:
                continue
            items[key] = new
    return value


def replaced_in(seen: Seen) -> Seen:
    """What was replaced, for another look at everything else."""
    return {k: (value, new) for k, (value, new) in seen.items() if new is not value}


def _tuple(value: tuple[Any, ...], parts: list[Any]) -> Any:
    """The tuple, or one of its kind with other items."""
    if all(a is b for a, b in zip(parts, value, strict=True)):
        return value
    if hasattr(value, "_make"):  # with names
        return value._make(parts)  # type: ignore[attr-defined]
    return tuple(parts) if type(value) is tuple else value
