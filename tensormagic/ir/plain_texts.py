"""Texts of values for our own use: as ``repr`` gives them, but without running the user's code."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Iterable
from types import FunctionType
from typing import Any

import numpy as np

from tensormagic.ir.modules import may_be_users

_ATOMS = {str, int, float, bool, bytes, complex, type(None)}
MOST_ITEMS = 40  # items of a container that are shown
DEEP = 6  # levels of nested containers that are shown


def _is_users(kind: type, name: str) -> bool:
    """Return whether a special method of a class is the user's code."""
    method: Any = getattr(kind, name, None)
    return isinstance(method, FunctionType) and may_be_users(method.__code__.co_filename)


def plain_text(value: Any, depth: int = DEEP) -> str:
    """Return ``repr`` of a value, but ``Name(…)`` for objects whose ``__repr__`` is the user's or may call the user's."""
    kind: type = type(value)
    if kind in _CONTAINERS:
        return _CONTAINERS[kind](value, depth - 1) if depth else "…"
    if _is_users(kind, "__repr__") or (kind.__repr__ is not object.__repr__ and holds_users(value, depth)):
        return f"{kind.__name__}(…)"
    return repr(value)


def key_text(key: Any) -> str:
    """Return a text for a key of a container; it differs for any two objects of the user's classes."""
    return repr(key) if type(key) in _ATOMS or not holds_users(key) else object.__repr__(key)


def holds_users(value: Any, depth: int = DEEP) -> bool:
    """Return whether the ``repr`` of a value would call a ``__repr__`` of the user's."""
    kind: type = type(value)
    if _is_users(kind, "__repr__") or not depth:
        return True
    if dataclasses.is_dataclass(kind):
        fields = [f.name for f in dataclasses.fields(kind) if f.repr]
        return any(holds_users(inspect.getattr_static(value, n, None), depth - 1) for n in fields)
    if isinstance(value, np.ndarray):
        return value.dtype.hasobject and any(holds_users(item, depth - 1) for item in value.ravel().tolist())
    if isinstance(value, dict):
        return any(holds_users(item, depth - 1) for pair in dict.items(value) for item in pair)
    iterate: Any = next((b.__iter__ for b in (list, tuple, set, frozenset) if isinstance(value, b)), None)
    return iterate is not None and any(holds_users(item, depth - 1) for item in iterate(value))


def _items(values: Iterable[Any], depth: int) -> list[str]:
    found: list[str] = []
    for value in values:
        if len(found) == MOST_ITEMS:
            return [*found, "…"]
        found.append(plain_text(value, depth))
    return found


def _tuple(value: tuple[Any, ...], depth: int) -> str:
    return f"({', '.join(_items(value, depth))}{',' * (len(value) == 1)})"


def _set(value: set[Any] | frozenset[Any], depth: int) -> str:
    text = f"{{{', '.join(_items(value, depth))}}}" if value else ""
    return text if value and type(value) is set else f"{type(value).__name__}({text})"


def _dict(value: dict[Any, Any], depth: int) -> str:
    pairs = zip(_items(value, depth), _items(value.values(), depth), strict=True)
    return f"{{{', '.join('…' if key == '…' else f'{key}: {item}' for key, item in pairs)}}}"


_CONTAINERS: dict[type, Callable[[Any, int], str]] = {
    list: lambda value, depth: f"[{', '.join(_items(value, depth))}]",
    tuple: _tuple,
    dict: _dict,
    set: _set,
    frozenset: _set,
}


def counted(count: int, one: str, many: str = "") -> str:
    """Return a count in words: ``1 argument``, ``2 arguments``.

    >>> counted(1, "entry", "entries"), counted(0, "argument")
    ('1 entry', '0 arguments')
    """
    return f"{count} {one if count == 1 else many or one + 's'}"
