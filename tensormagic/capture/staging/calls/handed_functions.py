"""Functions that captured code passes to Python, NumPy and SciPy, which call them: ``map(f, x)``, ``np.vectorize(self.f)(x)``.

A function that captured code calls is staged where it is called. One that it passes on is called by code that cannot
be staged: so it is staged where it is passed on, wherever it came from: a name, a default, an attribute, an item of a
dictionary.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from functools import partial
from types import BuiltinFunctionType, FunctionType, MethodType
from typing import Any

import numpy as np

from tensormagic.capture import context, names
from tensormagic.capture.hooks import run_time
from tensormagic.capture.inputs.stand_ins import noted, original_of
from tensormagic.capture.library.applying import Vectorized
from tensormagic.capture.staging.calls.special_methods import in_class
from tensormagic.capture.staging.syntax import source
from tensormagic.capture.staging.syntax.missing_source import as_caught

_NUMPYS = (np.apply_along_axis, np.apply_over_axes, np.fromfunction, np.piecewise, np.vectorize, np.mask_indices)
_PYTHONS: frozenset[Any] = frozenset(
    {
        *(map, filter, sorted, min, max, functools.reduce),
        *(itertools.accumulate, itertools.dropwhile, itertools.filterfalse, itertools.groupby, itertools.starmap),
        itertools.takewhile,
    }
)
_TAKERS = _PYTHONS.union(_NUMPYS, map(names.find, _NUMPYS))


_CONVERTING = (float, int, bool, complex)


def staged(function: Any) -> Any:
    """Return a user's function, method or callable object staged; anything else unchanged."""
    kind = type(function)
    if kind is FunctionType:
        capture = context.current()
        if capture is not None and function in capture.running.beside:
            return capture.running.beside[function].body
        own = source.staged(function)
        return as_caught(function) if own is function else noted(own, function)
    if kind is MethodType:
        own = staged(function.__func__)
        return function if own is function.__func__ else MethodType(own, function.__self__)
    call = in_class(kind, "__call__")
    bound = type(call) is not staticmethod
    call = call if bound else call.__func__
    if type(call) is FunctionType and source.is_stageable(call.__code__):
        return MethodType(staged(call), function) if bound else staged(call)
    return function


run_time.staged = staged


def takes_functions(function: Any) -> bool:
    """Return whether a function of a library calls functions that it is given."""
    function = original_of(function)
    if isinstance(function, BuiltinFunctionType | type | FunctionType):
        owner = getattr(function, "__self__", None)
        if isinstance(owner, list):
            return function.__name__ == "sort"
        module = function.__module__ or ""
        return module.startswith("scipy.") or function in _TAKERS
    return function in _TAKERS if type(function) is _DISPATCHED else False


_DISPATCHED = type(np.apply_along_axis)


def with_staged_arguments(function: Callable[..., Any], given: Any, called: Callable[[Any], Any]) -> Callable[..., Any]:
    """Return ``function`` to be called for ``given``, with user functions passed on staged, and Python's as ``called`` makes them."""
    pythons = given in _PYTHONS or isinstance(getattr(given, "__self__", None), list)

    def handed(value: Any) -> Any:
        if type(value) is partial:
            return partial(handed(value.func), *value.args, **value.keywords)
        if pythons and (type(value) is BuiltinFunctionType or any(value is c for c in _CONVERTING)):
            return called(value)
        kept = not callable(value) or (
            hasattr(value, "__iter__") and not isinstance(value, type)
        )  # an iterable, not a function
        return value if kept else calling_staged(staged(value))

    def call(*args: Any, **options: Any) -> Any:
        return function(*map(handed, args), **{name: handed(v) for name, v in options.items()})

    return call


def calling_staged(value: Any) -> Any:
    """Return an object that holds a function with that function staged: ``np.vectorize(f)`` calls ``f``."""
    return value.calling(staged(value.pyfunc)) if isinstance(value, Vectorized) else value
