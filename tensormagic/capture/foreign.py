"""Calls of other libraries from a cell: they get arrays and numbers for lazy values, and what they store into these is kept.

It knows which functions are meant, and not what they do; NumPy's and SciPy's come here where they are not captured, the user's are
run as they are.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from functools import lru_cache
from types import FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from tensormagic.capture import context
from tensormagic.capture.refusal import needs_value, values_are_there
from tensormagic.capture.value import Tensor
from tensormagic.ir.errors import CaptureError

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
        return _on_values(function, args, options)[0]

    return call


_Given = dict[int, tuple[Tensor, Any, Any]]


def _on_values(function: Callable[..., Any], args: tuple[Any, ...], options: dict[str, Any]) -> tuple[Any, _Given]:
    """What ``function`` gives for arrays and numbers, and what was given to it; its stores into these are kept."""
    given: _Given = {}
    capture = context.current()
    if capture is not None:
        capture.on_values.append(getattr(function, "__name__", type(function).__name__))
    found = function(*(_value(a, given) for a in args), **{n: _value(a, given) for n, a in options.items()})
    for lazy, array, before in given.values():
        if isinstance(array, np.ndarray) and not np.array_equal(array, before, equal_nan=array.dtype.kind in "fc"):
            lazy[...] = array
    return found, given


def librarys(function: Callable[..., Any], args: tuple[Any, ...], options: dict[str, Any], error: CaptureError) -> Any:
    """What a function of NumPy or SciPy that is not captured gives: in a cell it runs on values, elsewhere ``error`` is raised.

    So it is where the result may be a part of an array, which later stores into either would have to reach.
    """
    if not values_are_there():
        raise error
    called_back = [_called_back(a) for a in args]
    named = {name: _called_back(a) for name, a in options.items()}
    found, given = _on_values(function, tuple(called_back), named)
    results = found if isinstance(found, list | tuple) else [found]
    own = [array for _, array, _ in given.values() if isinstance(array, np.ndarray)]
    if any(isinstance(r, np.ndarray) and any(np.may_share_memory(r, a) for a in own) for r in results):
        raise error
    return found


def _called_back(function: Any) -> Any:
    """A function of the user's, which a library calls back: it gives arrays and numbers."""
    if not isinstance(function, FunctionType | MethodType):
        return function

    @functools.wraps(function)
    def call(*args: Any, **options: Any) -> Any:
        return _value(function(*args, **options), {})

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
