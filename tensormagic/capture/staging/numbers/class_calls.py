"""Library calls and conversions of numbers whose class is data-dependent: ``np.clip(s, 0, 1)``, ``float(s)``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from types import BuiltinFunctionType, FunctionType, MethodType
from typing import Any

import numpy as np

from tensormagic.capture import context
from tensormagic.capture.numbers.by_class import asked_classes, joined
from tensormagic.capture.numbers.classes import of_one_class
from tensormagic.capture.staging.numbers.conversions import CONVERSIONS
from tensormagic.capture.values.operands import node_of
from tensormagic.capture.values.value import Tensor, wrap
from tensormagic.ir.node import Node


def classed(function: Any, found: Any, called: Callable[[Any], Any]) -> Any:
    """Return what is called for ``function``, found as ``found``: a function of numbers is called once for each possible class.

    ``called`` finds the method of a lazy number.
    """
    capture = context.current()
    if capture is None or not capture.classes.of:
        return found
    if isinstance(function, MethodType) and isinstance(owner := function.__self__, Tensor):
        if asked_classes(owner.node) is None:
            return found
        return partial(of_call, partial(_method, called), owner, function.__name__)
    return partial(of_call, found, lists=_is_pythons(function)) if _is_of_numbers(function) else found


def _is_of_numbers(function: Any) -> bool:
    """Return whether a function may be called once for each class: a conversion, or a pure function of NumPy's or of ``math``."""
    if isinstance(function, type):
        return function in CONVERSIONS or issubclass(function, np.generic)
    if isinstance(function, FunctionType | BuiltinFunctionType | type(np.mean)):
        module = str(getattr(function, "__module__", None))
        return function in CONVERSIONS or module in {"math", "numpy"} or module.startswith("numpy.lib")
    return False


def _is_pythons(function: Any) -> bool:
    """Return whether a function treats lists as Python does; NumPy makes an array of one."""
    return function in CONVERSIONS or getattr(function, "__module__", None) == "math"


def _method(called: Callable[[Any], Any], owner: Any, name: str, /, *args: Any, **options: Any) -> Any:
    return called(getattr(owner, name))(*args, **options)


def of_call(function: Callable[..., Any], /, *args: Any, lists: bool = True, **options: Any) -> Any:
    """Return the result of a function of numbers, called once for each class that these may have; those in ``lists`` count, too."""
    given = list(_leaves((*args, *options.values()), lists))
    below = {v.node: c for v in given if (c := asked_classes(v.node)) is not None}
    if not below or any(v.ndim for v in given):
        return function(*args, **options)

    def compute(numbers: Mapping[Node, Node]) -> Node:
        own = {n: wrap(of_one_class(numbers.get(n, n))) for n in below}
        found = function(*(_with(v, own) for v in args), **{k: _with(v, own) for k, v in options.items()})
        if not isinstance(found, Tensor | bool | int | float | complex | np.generic):
            raise _NotANumberError
        return node_of(found)

    try:
        return wrap(joined(compute, below))
    except _NotANumberError:
        return function(*args, **options)


def _leaves(values: Iterable[Any], lists: bool) -> Iterator[Tensor]:
    for value in values:
        if isinstance(value, Tensor):
            yield value
        elif lists and type(value) in {list, tuple}:
            yield from _leaves(value, lists)


def _with(value: Any, own: Mapping[Node, Tensor]) -> Any:
    if type(value) in {list, tuple}:
        return type(value)(_with(v, own) for v in value)
    return own.get(value.node, value) if isinstance(value, Tensor) else value


class _NotANumberError(Exception):
    """Raised if a function returns anything but a number."""
