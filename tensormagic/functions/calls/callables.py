"""Captured functions for any callable."""

from __future__ import annotations

import functools
import types
from typing import Any

from tensormagic.capture import context
from tensormagic.functions.calls.function import Function
from tensormagic.functions.calls.quick_key import ByPosition
from tensormagic.functions.reads.reading import called_body, captured_body, parameters_of, reads_of
from tensormagic.ir.errors import CaptureError


def _of_function(function: types.FunctionType, lasting: bool) -> Function:
    body = captured_body(function, lasting=lasting)
    reads = reads_of(function) if lasting else ()
    made = Function(
        body, function.__name__, parameters_of(function), ByPosition(function), reads, roots=(function,), plain=function
    )
    functools.update_wrapper(made, function, updated=())
    return made


def of_callable(function: Any) -> Function:
    """Return the captured function of any callable."""
    if isinstance(function, Function):
        return function
    if isinstance(function, types.FunctionType):
        capture = context.current()
        beside = None if capture is None else capture.running.beside.get(function)
        return _of_function(function, capture is None if beside is None else beside.lasting)
    if callable(function):
        label = getattr(function, "__name__", type(function).__name__)
        return Function(called_body(function), label, roots=(function,), plain=function)
    raise CaptureError(
        f"{type(function).__name__} is not a function",
        "Give the function, and behind it what it is called with: tm.grad(f)(x). Of a value, y.grad(x) is the gradient.",
    )
