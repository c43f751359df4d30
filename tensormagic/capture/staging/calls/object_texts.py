"""The texts of the user's objects, which may hold lazy values: captured code calls the methods that Python would call."""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Callable
from types import FunctionType
from typing import Any

from tensormagic.capture import context
from tensormagic.capture.numbers.deferred import Deferred
from tensormagic.capture.staging.calls import special_methods
from tensormagic.capture.staging.trials.attributes import is_users_class

_NAMES = {"": ("__format__", "__str__", "__repr__"), "s": ("__str__", "__repr__"), "r": ("__repr__",)}
_PASSING: tuple[Any, ...] = (
    object.__format__,
    object.__str__,
    enum.Enum.__format__,
)  # methods that call another one for the text


def has_own_text(value: Any) -> bool:
    """Return whether an object's text comes from a method of the user's, or one made for its class."""
    if context.current() is None or isinstance(value, Deferred):
        return False
    kind: Any = type(value)
    if _is_named_tuple(kind) or isinstance(value, BaseException):
        return True
    return is_users_class(kind) and any(_method(value, conversion) for conversion in ("", "r"))


def _method(value: Any, conversion: str) -> Callable[..., Any] | None:
    """Return the user's method that gives a text; None where Python calls one of its own, as for an ``IntEnum``."""
    for name in _NAMES[conversion]:
        found = getattr(type(value), name)
        if isinstance(found, FunctionType) and found.__module__ != "enum":
            return special_methods.method_of(value, name)
        if found not in _PASSING:
            return None
    return None


def own_text(value: Any, conversion: str, form: str) -> list[Any] | None:
    """Return the pieces of the text of an object; None where Python itself can make it."""
    if not has_own_text(value) or (form and (conversion or not special_methods.method_of(value, "__format__"))):
        return None
    kind: Any = type(value)
    if _is_named_tuple(kind):
        return _of_fields(kind.__name__, [(n, getattr(value, n)) for n in kind._fields])
    own = _method(value, conversion)
    if own is None:
        return _of_error(value, conversion) if isinstance(value, BaseException) else None
    if own.__name__ == "__repr__" and _is_made(kind.__repr__):
        shown = [(f.name, getattr(value, f.name)) for f in dataclasses.fields(value) if f.repr]
        return _of_fields(kind.__qualname__, shown)
    found = own(form) if own.__name__ == "__format__" else own()
    if not isinstance(found, str | Deferred):
        raise TypeError(f"{own.__name__} returned non-string (type {type(found).__name__})")
    return [found if isinstance(found, str) else (found, "", "")]


def _of_error(error: BaseException, conversion: str) -> list[Any] | None:
    """Return the pieces of the text of an exception, as Python builds it from the arguments."""
    kind: Any = type(error)
    if conversion == "r" and kind.__repr__ is BaseException.__repr__:
        pieces = [(a, "r", "") for a in error.args]
        return [f"{kind.__name__}(", *(q for k, p in enumerate(pieces) for q in ([", ", p] if k else [p])), ")"]
    if conversion == "r" or kind.__str__ not in {BaseException.__str__, KeyError.__str__}:
        return None
    if len(error.args) != 1:
        return [(error.args, "s", "")] if error.args else [""]
    return [(error.args[0], "r" if kind.__str__ is KeyError.__str__ else "s", "")]


def _is_named_tuple(kind: Any) -> bool:
    own = getattr(kind, "__repr__", None)
    return issubclass(kind, tuple) and isinstance(own, FunctionType) and own.__module__ == "collections"


def _is_made(function: Any) -> bool:
    """Return whether a ``__repr__`` is the one that ``dataclass`` has made."""
    code = getattr(getattr(function, "__wrapped__", None), "__code__", None)
    return code is not None and code.co_filename == "<string>"


def _of_fields(name: str, fields: list[tuple[str, Any]]) -> list[Any]:
    """Return the pieces of a text like ``Point(x=1.0, y=2.0)``."""
    pieces: list[Any] = [f"{name}("]
    for k, (field, value) in enumerate(fields):
        pieces += [f"{', ' if k else ''}{field}=", (value, "r", "")]
    return [*pieces, ")"]
