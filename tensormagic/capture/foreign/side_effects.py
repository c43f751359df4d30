"""Counts calls with side effects that cannot be undone, so that a capture knows whether there was one."""

from __future__ import annotations

import datetime as dt
import decimal
import hashlib
import io
import queue
import random
import threading
from collections.abc import Callable
from functools import lru_cache, partial
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from tensormagic.capture import context
from tensormagic.capture.python import builtin_facts
from tensormagic.capture.values.value import Tensor
from tensormagic.ir.errors import TensorError
from tensormagic.ir.modules import CHANGES_NOTHING, PURE_OF_VALUES, is_pure, is_users, module_of

_LOUD = builtin_facts.ELSEWHERE | {"print", "next"}
_OWNERS = (
    list, dict, set, frozenset, tuple, str, bytes, int, float, complex, np.ndarray, np.generic, np.ufunc, Tensor,
)  # fmt: skip
_HARMLESS = PURE_OF_VALUES | CHANGES_NOTHING
_MAKERS: set[Any] = {  # functions that only make an object, which others change
    io.StringIO, io.BytesIO, queue.Queue, queue.LifoQueue, queue.PriorityQueue, queue.SimpleQueue, random.Random,
    threading.Lock, threading.RLock, threading.Event,
    *(getattr(hashlib, name) for name in hashlib.algorithms_guaranteed if hasattr(hashlib, name)),
}  # fmt: skip
DATES = dt.date | dt.time | dt.timedelta | dt.tzinfo | decimal.Decimal  # classes whose methods change nothing


class _Count(threading.local):
    """Counts such calls, on one thread."""

    made = 0
    elsewhere = 0


_count = _Count()


def made() -> int:
    """Return the number of such calls that captured code has made."""
    return _count.made


def count_outside_classes() -> int:
    """Return the number of these that were not calls of classes: creating an object rarely has side effects."""
    return _count.elsewhere


def count_call(function: Any = None) -> None:
    """Count a call of ``function``."""
    _count.made += 1
    _count.elsewhere += not isinstance(function, type)


def noted(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return ``function`` with its calls counted; a refused call of a class has made nothing."""

    def call(*args: Any, **options: Any) -> Any:
        try:
            found = function(*args, **options)
        except TensorError:
            if not isinstance(function, type):
                count_call(function)
            raise
        except BaseException:
            count_call(function)
            raise
        count_call(function)
        return found

    return call


def is_quiet(function: Any) -> bool:
    """Return whether a call changes nothing but lists, dictionaries and objects, which can be restored."""
    if isinstance(function, partial):
        return is_quiet(function.func)
    if isinstance(function, MethodType):
        return is_quiet(function.__func__)
    if isinstance(function, FunctionType):
        return is_users(function.__code__.co_filename) or is_quiet_module(function.__module__)
    owner = getattr(function, "__self__", None)
    if isinstance(owner, type) and not issubclass(owner, _OWNERS):
        return is_quiet_module(owner.__module__)
    if owner is not None and not isinstance(owner, ModuleType):
        return isinstance(owner, (*_OWNERS, type)) or module_of(type(owner)).startswith("collections")
    if isinstance(function, BuiltinFunctionType):
        return is_quiet_module(function.__module__) and function.__name__ not in _LOUD
    if isinstance(function, type):
        return True
    return is_quiet_class(type(function)) or isinstance(function, np.ufunc)


def makes(function: Any) -> bool:
    """Return whether a call only makes an object, which code that is not captured may change."""
    try:
        return function in _MAKERS
    except TypeError:  # not hashable
        return False


def making(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return ``function`` with its results registered as objects made by the captured code."""

    def call(*args: Any, **options: Any) -> Any:
        found = function(*args, **options)
        capture = context.current()
        if capture is not None:
            capture.outside.made.append(found)
        return found

    return call


def _is_made(value: Any) -> bool:
    capture = context.current()
    return capture is not None and any(value is one for one in capture.outside.made)


def can_be_taken_back(function: Any) -> bool:
    """Return whether a call changes only what is restored when a capture is refused, such as the state of generators."""
    owner = getattr(function, "__self__", None)
    if isinstance(owner, random.Random | io.StringIO | io.BytesIO | DATES) or _is_made(owner):
        return True
    if isinstance(function, type):
        return is_quiet_class(function) or is_users_class(function) or is_pure(module_of(function), _HARMLESS)
    return is_quiet(function) or is_pure(str(getattr(function, "__module__", None)), _HARMLESS)


def is_users_class(kind: type) -> bool:
    """Return whether the constructor of a class is the user's, or the default."""
    made = kind.__init__ if kind.__init__ is not object.__init__ else kind.__new__
    return made is object.__new__ or (isinstance(made, FunctionType) and is_users(made.__code__.co_filename))


def is_quiet_class(kind: type) -> bool:
    """Return whether methods of a class have no side effects: the user's own classes, and those of numerical libraries."""
    return module_of(kind) == "__main__" or is_quiet_module(module_of(kind))


@lru_cache(maxsize=1024)
def is_quiet_module(name: str | None) -> bool:
    """Return whether a module's functions change nothing."""
    return name is None or is_pure(name)
