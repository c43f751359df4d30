"""Objects that replace Python's or NumPy's own during capture, and what the notebook gets back in their place."""

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
        """Return the class of the object that it stands for."""
        raise NotImplementedError

    def real(self) -> Any:
        """Return the object that it stands for."""
        raise NotImplementedError

    @property
    def identity(self) -> Any:
        """Return the object to compare by ``is``: the real one, or what the code has made."""
        return self

    def gone_over(self) -> Any:
        """Return the object that a loop over all of it iterates over instead."""
        return self


_ATOMS = {int, float, complex, bool, str, bytes, type(None), *np.sctypeDict.values()} - {
    np.object_,
    np.void,
}  # classes that stand for nothing


def real_of(value: Any) -> Any:
    """Return the real object of a stand-in; other values unchanged."""
    return value.real() if issubclass(type(value), StandIn) else value  # a lazy value claims to be of another class


_originals: WeakKeyDictionary[FunctionType, Any] = (
    WeakKeyDictionary()
)  # the originals of functions that captured code has seen replaced


def original_of(value: Any) -> Any:
    """Return the original of a function that captured code has replaced; other values unchanged."""
    return _originals.get(value, value) if isinstance(value, FunctionType) else value


def noted(seen: Any, value: Any) -> Any:
    """Register ``seen`` as the replacement of a function, so that the original is returned to the notebook; return ``seen``."""
    if seen is not value and isinstance(seen, FunctionType):
        _originals[seen] = value
    return seen


def own_of(value: Any) -> Any:
    """Return the real object of a stand-in, or the original of a replaced function; other values unchanged."""
    return original_of(real_of(value))


def gone_over(value: Any) -> Any:
    """Return the object that a loop over all of ``value`` iterates over."""
    return value.gone_over() if isinstance(value, StandIn) else value


def identity_of(value: Any) -> Any:
    """Return the object that `is` compares for a value."""
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
    """Replace the stand-ins in a result by the real objects, in lists and dictionaries too.

    Parameters
    ----------
    value
        The value that a name is bound to.
    real
        Returns the real object of a stand-in, and other values unchanged.
    seen
        The values visited so far: a stand-in at several places is replaced by one object.
    attributes
        Returns the attribute dictionaries of an object to look into.
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
    """Return only the entries of ``seen`` that were replaced, so that everything else is searched again."""
    return {k: (value, new) for k, (value, new) in seen.items() if new is not value}


def _tuple(value: tuple[Any, ...], parts: list[Any]) -> Any:
    """Return the tuple, or one of its kind with other items."""
    if all(a is b for a, b in zip(parts, value, strict=True)):
        return value
    if hasattr(value, "_make"):  # a named tuple
        return value._make(parts)  # type: ignore[attr-defined]
    return tuple(parts) if type(value) is tuple else value
