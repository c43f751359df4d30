"""The names that captured code sees: arrays and floats as lazy arrays, NumPy and math as modules whose functions are captured."""

from __future__ import annotations

import functools
import pkgutil
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from importlib import import_module
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from tensormagic.capture import context, library
from tensormagic.capture.errors.refusal import values_are_there
from tensormagic.capture.foreign import oracle
from tensormagic.capture.foreign.calls import call_library
from tensormagic.capture.hooks import hooks
from tensormagic.capture.inputs.door import read_by
from tensormagic.capture.inputs.snapshots import name_of_list
from tensormagic.capture.inputs.stand_ins import noted, real_of
from tensormagic.capture.library import applying, densities, kernel_density, mathematics
from tensormagic.capture.names import find, unknown
from tensormagic.capture.random import module as random_module
from tensormagic.capture.random.methods import Stateful
from tensormagic.capture.stores import attributes, storing, views
from tensormagic.capture.tables import table_functions
from tensormagic.capture.values import fancy_indexing, ufuncs
from tensormagic.capture.values.operands import has_lazy
from tensormagic.capture.values.value import owned
from tensormagic.ir.errors import CaptureError
from tensormagic.ir.modules import is_users, module_of

# What is captured is registered by being imported: all files of the library, and those beside it.
for _file in pkgutil.iter_modules(library.__path__, f"{library.__name__}."):
    import_module(_file.name)
BESIDE: tuple[ModuleType, ...] = fancy_indexing, ufuncs, storing, views, attributes
oracle.give_methods_numpys_errors()
table_functions.in_numpys_functions()
_CREATE = {
    "zeros",
    "ones",
    "empty",
    "full",
    "array",
    "asarray",
    "asanyarray",
    "ascontiguousarray",
    "arange",
    "linspace",
    "logspace",
    "eye",
    "identity",
    "tri",
    "zeros_like",
    "ones_like",
    "empty_like",
    "full_like",
    "copy",
}
_MODULES = {"numpy", "numpy.linalg", "numpy.fft", "scipy", "scipy.special", "scipy.linalg", "scipy.stats", "scipy.integrate",
            "scipy.ndimage", "scipy.signal", "scipy.spatial", "scipy.spatial.distance", "math", "numpy.random"}  # fmt: skip


class _Own:
    """An object whose own attributes win, whatever ``__dict__`` contains."""


_own: Callable[[Any], dict[str, Any]] = _Own.__dict__["__dict__"].__get__


class Module(_Own):
    """A module as captured code sees it; replacements are looked up when functions are called, where calls are staged.

    Code without source, whose calls cannot be staged, gets our functions for those that make arrays. The object poses
    as the module.
    """

    def __init__(self, module: ModuleType, *, staged: bool) -> None:
        _own(self).update(__wrapped__=module, _staged=staged)

    @property
    def __class__(self) -> Any:  # type: ignore[override]
        return type(self.__wrapped__)

    @property
    def __dict__(self) -> Any:  # type: ignore[override]
        return vars(self.__wrapped__)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self.__wrapped__, name, value)

    def __delattr__(self, name: str) -> None:
        delattr(self.__wrapped__, name)

    def __getattr__(self, name: str) -> Any:
        value = getattr(self.__wrapped__, name)
        if isinstance(value, ModuleType):
            return proxy(value, staged=self._staged)
        if self._staged and type(value) in _CALLED:
            return value
        if self.__wrapped__.__name__ == "math" and callable(value):
            return noted(mathematics.captured(value), value)
        return noted(captured(value), value)

    def __dir__(self) -> list[str]:
        return dir(self.__wrapped__)

    def __repr__(self) -> str:
        return repr(self.__wrapped__)


@contextmanager
def lending(module: Module, functions: Mapping[str, Any]) -> Generator[None]:
    """Let a module as captured code sees it provide other functions during the block; the module itself stays unchanged."""
    _own(module).update(functions)
    try:
        yield
    finally:
        for name in functions:
            _own(module).pop(name, None)


Module.__doc__ = property(lambda self: self.__wrapped__.__doc__)  # type: ignore[assignment]
_CALLED = {
    FunctionType,
    BuiltinFunctionType,
    type(np.mean),
}  # kinds of functions whose replacement is chosen at each call
_proxies: dict[tuple[str, bool], Module] = {}


def proxy(module: ModuleType, *, staged: bool = True) -> Any:
    """Return the module as captured code sees it, whose calls are ``staged`` or not."""
    if module.__name__ not in _MODULES:
        return module
    if module.__name__ == "numpy.random":
        return _RANDOM
    return _proxies.setdefault((module.__name__, staged), Module(module, staged=staged))


_RANDOM = random_module.Random()


def captured(value: Any) -> Any:
    """Return a function as captured code sees it: ours if NumPy's protocol would not reach it."""
    if densities.is_distribution(value):
        return densities.stand_in(value)
    numpys = (
        isinstance(value, np.ufunc) and getattr(np, value.__name__, None) is value
    )  # it calls our implementation, with its options
    own = None if numpys or value is np.ndarray else find(value)
    scipys = (getattr(value, "__module__", None) or "").startswith("scipy.")
    if own is not None:
        if own is kernel_density.gaussian_kde:
            return own
        name = getattr(value, "__name__", "")
        dispatched = scipys or (hasattr(value, "__wrapped__") and not isinstance(value, FunctionType))
        if name in _CREATE:
            return _making(own)
        return _dispatching(value, own) if dispatched else own
    if (
        isinstance(value, FunctionType)
        and (value.__module__ or "").startswith(("numpy", "scipy"))
        and (scipys or not hasattr(value, "__wrapped__"))
    ):
        return _refusing(value)
    return value


def of_library(function: Any) -> Any:
    """Return a function of NumPy or SciPy, or a method of one of its distributions or generators, as captured code sees it."""
    drawing = random_module.method_of(function)
    if drawing is not None:
        return drawing
    owner = getattr(function, "__self__", None)
    if owner is not None and densities.is_distribution(owner):
        return getattr(densities.stand_in(owner), function.__name__)
    return captured(function)


@functools.cache
def _dispatching(function: Callable[..., Any], own: Callable[..., Any]) -> Callable[..., Any]:
    """Return a NumPy function that calls ours on lazy values, also inside lists, which NumPy's protocol does not examine."""

    @functools.wraps(function)
    def call(*args: Any, **options: Any) -> Any:
        if context.current() is not None:
            args = tuple([read_by(function, v) for v in args])
        given = (*args, *options.values())
        if not any(has_lazy(v) or name_of_list(v) or isinstance(v, Stateful) for v in given):
            return function(*map(_handed_out, args), **options)
        try:
            return own(*args, **options)
        except CaptureError as error:
            if context.current() is None:
                raise
            return call_library(function, args, options, error)

    return call


@functools.cache
def _making(own: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function of ours that makes arrays: each result has a buffer of its own."""

    @functools.wraps(own)
    def call(*args: Any, **options: Any) -> Any:
        return owned(own(*args, **options))

    return call


@functools.cache
def _refusing(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return an unsupported function of NumPy or SciPy: it runs on values, and refuses lazy ones that have none."""

    @functools.wraps(function)
    def call(*args: Any, **options: Any) -> Any:
        given = (*args, *options.values())
        lazy = any(has_lazy(v) or isinstance(v, Stateful) for v in given)
        if lazy or (any(map(_is_users, given)) and values_are_there()):
            return call_library(function, args, options, unknown(function.__name__), parts=True)
        return function(*map(_handed_out, args), **options)

    return call


def _is_users(value: Any) -> bool:
    """Return whether a value is a function of the user's, which a library may call many times."""
    function = value.__func__ if isinstance(value, MethodType) else value
    return isinstance(function, FunctionType) and is_users(function.__code__.co_filename)


def _handed_out(value: Any) -> Any:
    """Return what NumPy gets for an object of ours that holds nothing lazy, or whose lazy values are not needed."""
    known = module_of(type(value)).startswith("tensormagic.")
    return hooks.handed_out(real_of(value), _as_it_is) if known else value


def _as_it_is(value: Any) -> Any:
    return value


def value_of(value: Any, *, staged: bool = True) -> Any:
    """Return a value of the notebook that is no input, as captured code sees it."""
    return noted(_seen(value, staged), value)


def _seen(value: Any, staged: bool) -> Any:
    if isinstance(value, ModuleType):
        return proxy(value, staged=staged)
    if (staged and type(value) in _CALLED) or isinstance(value, np.ufunc):
        return value
    if isinstance(value, np.vectorize):
        return applying.vectorized(value)
    as_called = callable(value) and not isinstance(value, type)
    own = not isinstance(value, str) and find(value) is not None  # np.r_, np.vectorize: objects and classes
    return captured(value) if as_called or own or densities.is_distribution(value) else value
