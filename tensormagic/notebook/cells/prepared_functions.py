"""Analyses the functions that a cell has defined, between cells, so that a cell that calls them first need not wait for it."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Mapping
from types import FunctionType
from typing import Any
from weakref import WeakSet

from tensormagic.capture import context
from tensormagic.functions.calls import first_call
from tensormagic.functions.calls.function import Function

_SOON = 0.01  # seconds after a cell: its reply is sent first
_SECONDS = 0.1  # of one cell's functions: a cell that comes meanwhile waits for one of them at most

_log = logging.getLogger(__name__)


class Prepared:
    """The captured functions whose texts have been analysed, and those that wait for it."""

    def __init__(self) -> None:
        self._known: WeakSet[Function] = WeakSet()
        self._waiting: list[Function] = []
        self._timer: asyncio.TimerHandle | None = None
        self._left = 0.0

    def after_cell(self, space: Mapping[str, Any]) -> None:
        """Prepare the new captured functions among a namespace's values as soon as the event loop is idle; without a loop, do nothing."""
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:  # a terminal's, or a script's
            return
        new = {value for value in list(space.values()) if type(value) is Function and value not in self._known}
        self._waiting += new
        self._known |= new
        self._left = _SECONDS
        if self._waiting and self._timer is None:
            self._timer = loop.call_later(_SOON, self._next, loop)

    def end(self) -> None:
        """Prepare nothing any more."""
        if self._timer is not None:
            self._timer.cancel()
        self._timer = None
        self._waiting.clear()

    def _next(self, loop: asyncio.AbstractEventLoop) -> None:
        """Prepare one function; messages to the kernel come before the others."""
        self._timer = None
        function, begins = self._waiting.pop(), time.perf_counter()
        try:
            if context.current() is None:  # a cell that awaits something is captured now
                _prepare(function)
        except Exception:  # noqa: BLE001 (the first call does the same)
            _log.debug("%r could not be prepared", function, exc_info=True)
        self._left -= time.perf_counter() - begins
        if self._left <= 0:
            self._waiting.clear()
        if self._waiting:
            self._timer = loop.call_later(0, self._next, loop)


def _prepare(function: Function) -> None:
    users: Any = getattr(function, "__wrapped__", None)
    if type(users) is FunctionType and function.plain is users and not function.math and not function.fills:
        first_call.prepare(users)
