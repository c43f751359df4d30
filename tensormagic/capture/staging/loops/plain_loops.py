"""Loops over numbers, and functions they call, that Python runs as written: they reach nothing lazy and make no arrays."""

from __future__ import annotations

import builtins
import math
import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from functools import lru_cache
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np

from tensormagic.capture.errors.refusal import values_are_there
from tensormagic.capture.inputs.namespace import Module, lending
from tensormagic.capture.python import builtin_facts
from tensormagic.capture.staging.syntax import source
from tensormagic.capture.staging.trials.world import World
from tensormagic.capture.values.value import Tensor

_BUILTIN = builtin_facts.called(builtin_facts.OF_NUMBERS)
_NUMPY = {np.round, np.around, np.clip, np.isclose}  # functions, beside ufuncs, that give a number for numbers
_DRAWS = {
    "random", "uniform", "triangular", "randint", "randrange", "getrandbits", "gauss", "normalvariate", "lognormvariate", "expovariate",
    "betavariate", "gammavariate", "paretovariate", "weibullvariate", "vonmisesvariate", "choice", "choices", "sample", "shuffle",
}  # fmt: skip
_MISSING = object()
PLAIN = {range, list, tuple, str, dict, set}  # iterables that Python iterates over natively


class PlainLoop:
    """Represents the rest of a loop that Python runs; meanwhile functions have the code that the user wrote.

    Parameters
    ----------
    items
        The iterable; for a ``while``, whether there is another iteration.
    """

    def __init__(self, items: Any) -> None:
        self.items = items
        self.functions: dict[FunctionType, CodeType] = {}
        self.lent: dict[
            Module, dict[str, Any]
        ] = {}  # for modules as captured code sees them: the modules' own functions that were read
        self._lending = ExitStack()

    def __enter__(self) -> Any:
        self._exchange()
        for module, asked in self.lent.items():
            self._lending.enter_context(lending(module, asked))
        return self.items

    def __exit__(self, *_: object) -> bool:
        self._exchange()
        self._lending.close()
        return False

    def _exchange(self) -> None:
        for function, code in self.functions.items():
            self.functions[function], function.__code__ = function.__code__, code

    def may_call(self, parts: Sequence[FunctionType], called: Sequence[str]) -> bool:
        """Return whether all calls in functions of one scope give numbers for numbers or are simple; note such functions of the user's."""
        return all(self._is_plain(*self._meant(parts, name)) for name in called)

    def _meant(self, parts: Sequence[FunctionType], dotted: str) -> tuple[Any, str]:
        """Return the object that a name means in functions of one scope, and the attribute that is read from it."""
        name, _, attribute = dotted.partition(".")
        for part in parts:
            if name in part.__code__.co_freevars:
                cell = (part.__closure__ or ())[part.__code__.co_freevars.index(name)]
                return next(_contents(cell), _MISSING), attribute
        return parts[0].__globals__.get(name, getattr(builtins, name, _MISSING)), attribute

    def _is_plain(self, value: Any, attribute: str) -> bool:
        if attribute:
            if value is random:  # in a function, random numbers are drawn anew at each call
                return attribute in _DRAWS and values_are_there()
            asked = self._asked(value, attribute, math) or self._asked(value, attribute, np)
            return isinstance(asked, float | BuiltinFunctionType) or is_of_numbers(asked)
        if type(value) is FunctionType:
            return value in self.functions or self._is_simple(value)
        return is_of_numbers(value) or (
            isinstance(value, BuiltinFunctionType | type)
            and (value in _BUILTIN or getattr(value, "__self__", None) is math)
        )

    def _asked(self, value: Any, attribute: str, module: ModuleType) -> Any:
        """Return an attribute of ``module``, and record that it is read; None if ``value`` is not that module."""
        if value is module:
            return getattr(module, attribute, None)
        if type(value) is not Module or value.__wrapped__ is not module:
            return None
        return self.lent.setdefault(value, {}).setdefault(attribute, getattr(module, attribute, None))

    def _is_simple(self, function: FunctionType) -> bool:
        written = source.code_as_written(function)
        called = _calls_of(written)
        if called is None or written.co_freevars != function.__code__.co_freevars:
            return False
        code = source.code_with_formulas(written)
        if code is None:
            return False
        self.functions[function] = code
        return self.may_call([function], called)


NOTHING = PlainLoop(())


def plainly(
    items: Any,
    parts: Sequence[Callable[..., Any]],
    called: tuple[str, ...] | None,
    also: Any = None,
    *,
    captured: bool = True,
) -> PlainLoop | None:
    """Return a loop for Python to run as written; None if it may reach lazy values, or call anything that makes them.

    Parameters
    ----------
    items
        What is returned, see :class:`PlainLoop`.
    parts
        The functions that the loop's parts have become.
    called
        What the loop calls; None if it is not simple.
    also
        Further objects reached.
    captured
        Whether NumPy arrays count as lazy: they may be captured where they are read.
    """
    own: list[FunctionType] = [getattr(p, "__wrapped__", p) for p in parts]
    if called is None or any(type(v) is Tensor for f in own for v in _named(f)):
        return None
    found = PlainLoop(items)
    if not found.may_call(own, called):
        return None
    world = World([*own, also])
    return found if world.has_no_tensors and not (world.has_arrays and captured) else None


def is_of_numbers(value: Any) -> bool:
    """Return whether it is one of NumPy's functions or types that give numbers for numbers, and allocate no array."""
    if isinstance(value, type):
        return issubclass(value, np.number | np.bool_)
    if isinstance(value, np.ufunc):
        return getattr(np, value.__name__, None) is value
    return type(value) is type(np.round) and value in _NUMPY


def _named(function: FunctionType) -> Iterator[Any]:
    """Yield the objects that the names in a function refer to, as far as they are bound."""
    for name in function.__code__.co_names:
        yield function.__globals__.get(name)
    for cell in function.__closure__ or ():
        yield from _contents(cell)


def _contents(cell: Any) -> Iterator[Any]:
    try:
        yield cell.cell_contents
    except ValueError:  # nothing is bound yet
        return


@lru_cache(maxsize=4096)
def _calls_of(code: CodeType) -> tuple[str, ...] | None:
    """Return the names that a function of the user's calls; None where it is not simple, or its source is not available."""
    return source.calls_of(code)
