"""Calls of other libraries from a cell: they get arrays and numbers for lazy values, and what they store into these is kept.

It knows which functions are meant, and not what they do; NumPy's and SciPy's are captured, the user's are run as they are.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from functools import lru_cache
from types import FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from tensormagic.capture.refusal import needs_value
from tensormagic.capture.value import Tensor

_ANY_VALUES = set(  # libraries that take what they are given for what it is
    "__main__ builtins tensormagic numpy scipy math operator _operator functools _functools itertools copy collections _collections "  # noqa: SIM905 (a table)
    "typing dataclasses abc enum contextlib types inspect weakref IPython ipykernel ipywidgets array_api_compat array_api_strict "
    "pytest _pytest unittest tests sys gc".split()
)


def is_foreign(function: Any) -> bool:
    """Whether a function, a class or a method is of a library that knows nothing of lazy values."""
    if isinstance(function, functools.partial | np.ufunc):
        return False
    function = function.__func__ if isinstance(function, MethodType) and _is_plain(function.__self__) else function
    if isinstance(function, FunctionType):
        return _is_foreign_module(function.__module__) and not _is_users(function.__code__.co_filename)
    owner = getattr(function, "__self__", None)
    if isinstance(owner, Tensor):
        return False
    kind = function if isinstance(function, type) else type(function if owner is None else owner)
    module = getattr(function, "__module__", None) if isinstance(owner, ModuleType | None) else kind.__module__
    return isinstance(module, str) and _is_foreign_module(module) and not _has_users_code(kind)


def _is_plain(owner: Any) -> bool:
    return not isinstance(owner, Tensor)


def _is_users(filename: str) -> bool:
    from tensormagic.capture.staging.source import is_users

    return is_users(filename)


def _has_users_code(kind: type) -> bool:
    """Whether a class has methods that the user wrote."""
    found = (f for c in kind.__mro__ for f in vars(c).values() if isinstance(f, FunctionType))
    first = next(found, None)
    return first is not None and _is_users(first.__code__.co_filename)


@lru_cache(maxsize=1024)
def _is_foreign_module(name: str | None) -> bool:
    return name is not None and name.partition(".")[0] not in _ANY_VALUES


def on_values(function: Callable[..., Any]) -> Callable[..., Any]:
    """``function``, called on arrays and numbers."""

    def call(*args: Any, **options: Any) -> Any:
        given: dict[int, tuple[Tensor, Any, Any]] = {}
        found = function(*(_value(a, given) for a in args), **{n: _value(a, given) for n, a in options.items()})
        for lazy, array, before in given.values():
            if isinstance(array, np.ndarray) and not np.array_equal(array, before, equal_nan=array.dtype.kind in "fc"):
                lazy[...] = array
        return found

    return call


def _value(value: Any, given: dict[int, tuple[Tensor, Any, Any]]) -> Any:
    """What a function gets for an argument: one array for each lazy value, in lists, tuples and dictionaries, too."""
    if isinstance(value, Tensor):
        if id(value) not in given:
            needs_value("a function that is not captured", node=value.node)
            as_table = getattr(type(value), "as_table", None)
            if as_table is not None:
                return as_table(value)
            found = value.numpy()
            given[id(value)] = (value, found.copy() if isinstance(found, np.ndarray) else found, found)
        return given[id(value)][1]
    if type(value) in {list, tuple}:
        items = [_value(v, given) for v in value]
        return value if all(a is b for a, b in zip(items, value, strict=True)) else type(value)(items)
    if type(value) is dict and any(isinstance(v, Tensor | list | tuple) for v in value.values()):
        return {k: _value(v, given) for k, v in value.items()}
    return value
