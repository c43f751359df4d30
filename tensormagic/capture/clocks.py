"""Clocks: everything written before a clock is computed before it is read, so that two readings measure the time between them."""

from __future__ import annotations

import datetime as dt
import inspect
import time
from collections.abc import Callable
from contextlib import suppress
from types import BuiltinFunctionType
from typing import Any

from tensormagic.capture import context
from tensormagic.capture.hooks import hooks
from tensormagic.capture.python import usercode
from tensormagic.capture.values import live_values
from tensormagic.capture.values.value import Tensor
from tensormagic.ir import site
from tensormagic.ir.node import Node

NAMES = frozenset(
    {
        f"{name}{unit}"
        for name in ("time", "perf_counter", "process_time", "monotonic", "thread_time")
        for unit in ("", "_ns")
    }
)
"""What the clocks of the module ``time`` are called."""

_CLOCKS = {getattr(time, name) for name in NAMES if hasattr(time, name)}
ADDED = frozenset(
    ("__import__", "read_clock")
)  # names that the code of plain cells has in addition to those of its text


def is_clock(function: Any) -> bool:
    """Return whether a function is a clock of the module ``time``."""
    return type(function) is BuiltinFunctionType and function in _CLOCKS


def is_date(function: Any) -> bool:
    """Return whether a function gives the time of day, by which code may measure time, too."""
    return type(function) is BuiltinFunctionType and function.__name__ == "now" and function.__self__ is dt.datetime


def read_clock(function: Callable[..., Any], *args: Any, **options: Any) -> Any:
    """Call ``function``; if it is a clock or gives the date, first compute lazy values."""
    if is_clock(function) or is_date(function):
        settle()
    return function(*args, **options)


def settle() -> None:
    """Compute the live lazy values of the running cell: in Python they would have been computed by now."""
    capture = context.current()
    if capture is not None and (capture.abstract or capture.inputs.standing):
        return
    groups: dict[Any, list[Tensor]] = {}
    for one in _made_here():
        groups.setdefault((one.level, one.place.buffer.placed), []).append(one)
    for tensors in groups.values():
        with tensors[0].leveled():
            compute(list(dict.fromkeys(t.node for t in tensors)))


def _made_here() -> list[Tensor]:
    """Return the live lazy values made by the running cell."""
    run = _run()
    held = [one for one in live_values.here() if isinstance(one, Tensor)] if run else []
    return [one for one in held if any(s.run == run for s in site.of(one.node))]


def _run() -> int:
    """Return the number of the current run of a cell; 0 outside a notebook."""
    if context.current() is not None:
        return usercode.newest_run()
    frame, run = inspect.currentframe(), 0
    while frame is not None:
        cell = usercode.cell_of(frame.f_code.co_filename)
        run = run if cell is None else cell.run  # the cell's own frame comes after those of the functions that it calls
        frame = frame.f_back
    return run


def compute(nodes: list[Node]) -> list[Node]:
    """Compute the nodes that are not computed yet, and return them; errors are raised where the value is needed."""
    pending = [n for n in nodes if not hooks.is_computed(n)]
    if not pending:
        return []
    try:
        hooks.compute(pending)
    except Exception:  # noqa: BLE001 (of one of them: the others have been computed in Python)
        for node in pending:
            with suppress(Exception):
                hooks.compute([node])
    return pending
