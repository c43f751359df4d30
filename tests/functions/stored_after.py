"""Programs as Python runs them and as they are captured, where the caller stores into what a call gives: who sees the store."""

from __future__ import annotations

import contextlib
import io
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

import tensormagic as tm
from tensormagic.functions.calls import first_call


def walk(value: Any) -> Iterator[Any]:
    """A value, and all that it holds."""
    yield value
    if isinstance(value, dict):
        inside: Sequence[Any] = [*value.values()]
    elif isinstance(value, list | tuple):
        inside = value
    else:
        inside = [*vars(value).values()] if hasattr(value, "__dict__") and not isinstance(value, np.ndarray) else []
    for part in inside:
        yield from walk(part)


def store_into(value: Any) -> None:
    """Store into all arrays and lists of a result, each something of its own."""
    met: set[int] = set()
    for k, part in enumerate([*walk(value)], 1):
        if isinstance(part, np.ndarray) and part.flags.writeable:
            np.add(part, np.asarray(k, part.dtype), out=part)
        if isinstance(part, list) and id(part) not in met:
            met.add(id(part))
            part.append(f"new {k}")


def told(roots: Any) -> list[Any]:
    """All that there is: values, classes, which objects are one, and which arrays can be stored into."""
    numbers: dict[int, int] = {}
    found: list[Any] = []
    for part in [*walk(roots)]:
        if isinstance(part, np.ndarray):
            known = numbers.setdefault(id(part), len(numbers))
            found.append(("array", known, str(part.dtype), part.tolist(), part.flags.writeable))
        elif isinstance(part, list | dict | tuple) or hasattr(part, "__dict__"):
            known = 0 if isinstance(part, tuple) else numbers.setdefault(id(part), len(numbers))
            found.append((type(part).__name__, known, len(part) if isinstance(part, list | dict | tuple) else 0))
        else:
            found.append((type(part).__name__, repr(part)))
    return found


def outcome(function: Callable[..., Any], args: Sequence[Any]) -> Any:
    """What there is after a call, and after the caller has stored into the result; or the error."""
    with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings(action="ignore"):
        try:
            result = function(*args)
        except Exception as error:  # noqa: BLE001 (errors are what is compared)
            kind = next(c for c in type(error).__mro__ if c.__module__ == "builtins")
            return kind.__name__, str(error), told(args)
    before = told([result, args])
    store_into(result)
    return before, told([result, args])


def same_after_stores(function: Callable[..., Any], *calls: Callable[[], Sequence[Any]], times: int = 3) -> None:
    """Hold calls of a captured function against Python: no call's first is run by Python as a look."""
    before, first_call.enabled = first_call.enabled, False
    try:
        captured = tm.tensor(function)
        for k in range(max(times, len(calls))):
            make = calls[k % len(calls)]
            expected, found = outcome(function, make()), outcome(captured, make())
            assert found == expected, f"call {k + 1}"
    finally:
        first_call.enabled = before


def runs_in_python(function: Callable[..., Any], args: Sequence[Any]) -> bool:
    """Whether a captured function says that Python runs a call."""
    before, first_call.enabled = first_call.enabled, False
    try:
        with warnings.catch_warnings(record=True) as met:
            warnings.simplefilter("always")
            tm.tensor(function)(*args)
        return any(issubclass(w.category, tm.PlainRunWarning) for w in met)
    finally:
        first_call.enabled = before
