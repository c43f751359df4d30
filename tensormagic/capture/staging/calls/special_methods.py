"""Special methods and properties of the user's classes, which Python calls by itself: staged while a function is captured.

A function that captured code calls is staged where it is called. An operator, a constructor or a property is reached
through a class, so there the class's own functions get staged code, and afterwards what the user wrote.
"""

from __future__ import annotations

import inspect
import threading
import weakref
from collections import Counter, deque
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cached_property, partial
from itertools import islice
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from tensormagic.capture import context
from tensormagic.capture.errors.refusal import zero_like
from tensormagic.capture.inputs.notebook_names import content
from tensormagic.capture.numbers.deferred import Deferred
from tensormagic.capture.python.bytecode import names_in
from tensormagic.capture.staging.syntax.source import staged_code
from tensormagic.capture.staging.trials.attributes import containers_of, is_users_class, is_users_module
from tensormagic.capture.values.value import Tensor
from tensormagic.ir.modules import is_users

_ATOMS = {*weakref.ProxyTypes, type(None), bool, int, float, complex, str, bytes, np.ndarray}
_SEQUENCES: tuple[Any, ...] = (list, tuple, set, frozenset, deque)
_MOST = 2000  # objects that are visited, at most
_ITEMS = 100  # items of one container, at most
_codes: dict[FunctionType, CodeType] = {}  # what the user wrote, for the functions that have staged code
_uses: Counter[FunctionType] = Counter()
_lock = threading.Lock()


def written(function: FunctionType) -> CodeType:
    """Return the code of a function as the user wrote it."""
    return _codes.get(function, function.__code__)


@contextmanager
def staged_in(values: Iterable[Any]) -> Generator[None]:
    """Stage special methods in the classes that functions, objects and containers lead to, for the block.

    Also in classes that captured code calls meanwhile, which may be known only then (:func:`stage_class`).
    """
    own: _Own = {}
    _begin(_classes(values), own)
    outer = _innermost.set(own)
    try:
        yield
    finally:
        _innermost.reset(outer)
        with _lock:
            for function in (f for functions in own.values() for f in functions):
                _uses[function] -= 1
                if not _uses[function]:
                    del _uses[function]
                    function.__code__ = _codes.pop(function, function.__code__)


def stage_class(kind: type) -> None:
    """Stage the special methods of a user's class that captured code is about to call."""
    own = _innermost.get()
    if own is not None and kind not in own:
        _begin(_classes([kind]), own)


_Own = dict[type, list[FunctionType]]  # functions staged in a block, by class
_innermost: ContextVar[_Own | None] = ContextVar("_innermost", default=None)


def _begin(kinds: Iterable[type], own: _Own) -> None:
    for kind in kinds:
        if kind in own:
            continue
        own[kind] = [f for f in _called_by_python(kind) if is_users(written(f).co_filename)]
        with _lock:
            for function in own[kind]:
                _uses[function] += 1
                _stage(function)


def method_of(value: Any, name: str) -> Callable[..., Any] | None:
    """Return a special method of a user's object, for code that needs its result before Python converts it; else None."""
    kind: Any = type(value)
    found = in_class(kind, name) if context.current() is not None and is_users_class(kind) else None
    return MethodType(found, value) if isinstance(found, FunctionType) else None


def in_class(kind: type, name: str) -> Any:
    """Return the attribute of a class or base class, unbound; a static method stays one."""
    return next((vars(c)[name] for c in kind.__mro__ if name in vars(c)), None)


def converted_result(own: Callable[..., Any], conversion: type) -> Any:
    """Return the result of a special method for one of Python's conversions; raise Python's TypeError if its class does not fit.

    Parameters
    ----------
    own
        The method of a user's object.
    conversion
        ``bool``, ``int``, ``float`` or ``complex``.
    """
    found = own()
    sample = zero_like(found.type) if isinstance(found, Tensor) else found
    if not isinstance(sample, conversion | Deferred):
        conversion(type(type(own.__self__).__name__, (), {f"__{conversion.__name__}__": lambda _: sample})())  # type: ignore[attr-defined]
    return found


def _stage(function: FunctionType) -> None:
    """Give a function staged code, where it has the same free variables."""
    code = staged_code(function.__code__) if function not in _codes else None
    if code is not None and code is not function.__code__ and code.co_freevars == function.__code__.co_freevars:
        _codes[function], function.__code__ = function.__code__, code


def _called_by_python(kind: type) -> Iterator[FunctionType]:
    """Yield the functions of a class that Python calls by itself."""
    for name, value in vars(kind).items():
        if isinstance(value, property):
            yield from (f for f in (value.fget, value.fset, value.fdel) if isinstance(f, FunctionType))
        elif isinstance(value, cached_property):
            if isinstance(value.func, FunctionType):
                yield value.func
        elif (
            isinstance(value, FunctionType)
            and name.startswith("__")
            and name.endswith("__")
            and name not in _NOT_STAGED
        ):
            yield value


_NOT_STAGED = {"__del__", "__array__"}  # NumPy takes no lazy array from it: captured code calls the method itself


def _classes(values: Iterable[Any]) -> list[type]:
    """Return the user's classes that values lead to."""
    found: dict[type, None] = {}
    pending, seen = list(values), dict[int, Any]()
    while pending and len(seen) < _MOST:
        value = pending.pop()
        if id(value) in seen or type(value) in _ATOMS:
            continue
        seen[id(value)] = value
        if isinstance(value, type):
            kinds = [kind for kind in value.__mro__ if is_users_class(kind)]
            found |= dict.fromkeys(kinds)
            pending += [part for kind in kinds for part in vars(kind).values()]
        else:
            pending += _parts(value)
    return list(found)


def _parts(value: Any) -> Iterable[Any]:
    """Return the objects that a function, an object or a container refers to."""
    if isinstance(value, FunctionType):
        return _read_by(value)
    if isinstance(value, MethodType):
        return value.__func__, value.__self__
    if isinstance(value, property):
        return value.fget, value.fset, value.fdel
    if isinstance(value, staticmethod | classmethod):
        return (value.__func__,)
    if is_users_module(value):
        return [part for part in vars(value).values() if isinstance(part, type)]
    if (follows := getattr(type(value), "follows", None)) is not None:  # a captured function
        return follows.fget(value) or ()
    if isinstance(value, partial):
        return value.func, value.args, value.keywords
    return [*_attributes(value), *islice(_items(value), _ITEMS)]


def _attributes(value: Any) -> Iterable[Any]:
    """Return the contents and class of a user's object; for another object, what it wraps."""
    if not is_users_class(type(value)):
        return (inspect.getattr_static(value, "__wrapped__", None),)
    return type(value), *(part for held in containers_of(value) for part in held.values())


def _items(value: Any) -> Iterator[Any]:
    """Iterate over the items of a container, without calling code of a user's subclass."""
    if isinstance(value, dict):
        return iter(dict.values(value))
    return next((kind.__iter__(value) for kind in _SEQUENCES if isinstance(value, kind)), iter(()))


def _read_by(function: FunctionType) -> Iterable[Any]:
    """Return the objects that a user's function reads by name or holds in its closure."""
    if not is_users(written(function).co_filename):
        return [getattr(function, "__wrapped__", None), *map(content, function.__closure__ or ())]
    space = function.__globals__
    names = names_in(written(function))
    read = [space[name] for name in names if name in space and not isinstance(space[name], ModuleType)]
    modules = [space[name] for name in names if name in space and is_users_module(space[name])]
    return [*read, *modules, *map(content, function.__closure__ or ()), *(function.__defaults__ or ())]
