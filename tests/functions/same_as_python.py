"""Programs as Python runs them and as they are captured: values, classes, which objects are one, stores into arguments, what is printed."""

from __future__ import annotations

import contextlib
import io
import warnings
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np

import tensormagic as tm
from tensormagic.functions.calls import first_call


def described(root: Any) -> Any:
    """A value, with the classes of what is in it, and which arrays and containers in it are one."""
    numbers: dict[Any, int] = {}
    kept: list[Any] = []

    def number(key: Any) -> int:
        return numbers.setdefault(key, len(numbers))

    def of(value: Any) -> Any:
        kept.append(value)
        if isinstance(value, np.ndarray):
            whole = value
            while isinstance(whole.base, np.ndarray):
                whole = whole.base
            kept.append(whole)
            offset = value.__array_interface__["data"][0] - whole.__array_interface__["data"][0] if value.size else 0
            memory = number(id(whole)), number(("array", id(value))), offset, value.strides, value.flags.writeable
            return "array", memory, str(value.dtype), value.tolist()
        if isinstance(value, dict | list | tuple | SimpleNamespace) or hasattr(value, "__dataclass_fields__"):
            known = id(value) in numbers
            own = () if isinstance(value, tuple) else number(id(value))
            if known and own != ():
                return "again", own
            inside = vars(value) if not isinstance(value, dict | list | tuple) else value
            parts = [(k, of(v)) for k, v in inside.items()] if isinstance(inside, dict) else [*map(of, inside)]
            return type(value).__name__, own, parts
        if isinstance(value, BaseException):
            return type(value).__name__, str(value)
        return type(value).__name__, repr(value)

    return of(root)


def outcome(function: Callable[..., Any], args: Sequence[Any]) -> Any:
    """What a call gives or raises, what its arguments are then, and what it prints."""
    told = io.StringIO()
    with contextlib.redirect_stdout(told), warnings.catch_warnings(action="ignore"):
        try:
            found = "gives", function(*args)
        except Exception as error:  # noqa: BLE001 (errors are what is compared)
            found = "raises", error
    return described([found, list(args)]), told.getvalue()


def same(
    function: Callable[..., Any], *calls: Callable[[], Sequence[Any]], looks: Sequence[bool] = (True, False)
) -> None:
    """Hold the first three calls of a captured function against Python; ``calls`` make the arguments of each.

    ``looks`` says whether Python may run the first call as it is written.
    """
    before = first_call.enabled
    for look in looks:
        first_call.enabled = look
        try:
            captured = tm.tensor(function)
            for k in range(3):
                make = calls[k % len(calls)]
                expected, found = outcome(function, make()), outcome(captured, make())
                assert found == expected, f"call {k + 1}, first look {look}"
        finally:
            first_call.enabled = before


def captures(function: Callable[..., Any], *args: Any) -> None:
    """Hold that a function has a graph, and that Python does not run its calls."""
    before, first_call.enabled = first_call.enabled, False
    try:
        with warnings.catch_warnings(action="error", category=tm.PlainRunWarning):
            tm.tensor(function)(*args)
    finally:
        first_call.enabled = before
