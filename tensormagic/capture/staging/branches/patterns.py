"""Tests that the patterns of ``match`` make of a value, which may be lazy: is it a sequence, a mapping, of a class; and its parts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tensormagic.capture.staging.numbers.kinds import is_instance
from tensormagic.capture.values.value import Tensor

_AS_SEQUENCE = 1 << 5  # the flag of a class by which Python knows whether sequence patterns match its objects
_WHOLE = (
    bool,
    bytearray,
    bytes,
    dict,
    float,
    frozenset,
    int,
    list,
    set,
    str,
    tuple,
)  # Python's classes that match themselves


def is_sequence(value: Any, count: int, open_ended: bool = False) -> bool:
    """Return whether a value matches a pattern of ``count`` values, or of more."""
    if not _is_taken_apart(value):
        return False
    return len(value) >= count if open_ended else len(value) == count


def _is_taken_apart(value: Any) -> bool:
    """Return whether sequence patterns match a value: arrays since NumPy 2.5, although ``isinstance`` calls them no sequences."""
    if isinstance(value, Tensor):
        return value.type.form == "array" and not value.has_labels and bool(np.ndarray.__flags__ & _AS_SEQUENCE)
    if isinstance(value, np.ndarray):
        return bool(type(value).__flags__ & _AS_SEQUENCE)
    return isinstance(value, Sequence) and not isinstance(value, str | bytes | bytearray)


def between(value: Sequence[Any], first: int, last: int) -> list[Any]:
    """Return the values that ``*name`` binds in a sequence pattern: all but the first and the last ones."""
    return [value[k] for k in range(first, len(value) - last)]


def is_mapping(value: Any, keys: tuple[Any, ...]) -> bool:
    """Return whether a value is a mapping that has some keys."""
    if not isinstance(value, Mapping):
        return False
    missing = object()
    return all(value.get(k, missing) is not missing for k in keys)


def beside(value: Mapping[Any, Any], keys: tuple[Any, ...]) -> dict[Any, Any]:
    """Return the items that ``**name`` binds in a mapping pattern: all but those of some keys."""
    return {k: v for k, v in value.items() if k not in keys}


def is_of_class(value: Any, kind: Any, count: int, names: tuple[str, ...]) -> bool:
    """Return whether a value is of a class, and has the attributes that a pattern reads: ``count`` by position, others by name."""
    if not isinstance(kind, type):
        raise TypeError("called match pattern must be a class")
    if not is_instance(value, kind):
        return False
    read = names if count == 0 else (*_placed(kind, count), *names)
    if len(set(read)) < len(read):
        twice = next(n for k, n in enumerate(read) if n in read[:k])
        raise TypeError(f"{kind.__name__}() got multiple sub-patterns for attribute {twice!r}")
    return all(hasattr(value, n) for n in read if n)


def member(value: Any, kind: type, place: int) -> Any:
    """Return the part of a value that a class pattern reads by its position."""
    name = _placed(kind, place + 1)[place]
    return getattr(value, name) if name else value


def _placed(kind: type, count: int) -> tuple[str, ...]:
    """Return the names of the first ``count`` positional parts; an empty one for the value itself."""
    given = getattr(kind, "__match_args__", None)
    if given is None:
        allowed: tuple[str, ...] = ("",) if issubclass(kind, _WHOLE) else ()
    elif isinstance(given, tuple):
        allowed = given
    else:
        raise TypeError(f"{kind.__name__}.__match_args__ must be a tuple (got {type(given).__name__})")
    if count > len(allowed):
        several = "" if len(allowed) == 1 else "s"
        raise TypeError(f"{kind.__name__}() accepts {len(allowed)} positional sub-pattern{several} ({count} given)")
    return allowed[:count]
