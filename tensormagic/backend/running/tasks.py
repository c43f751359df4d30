"""Calls that are handed to other threads while a plan runs: Python's threads, which wait in calls that let go of the interpreter's lock.

It knows nothing of plans. A run that hands out calls does itself what nobody has begun when it needs it, so that it never waits for
a thread to wake up.
"""

from __future__ import annotations

import contextlib
import os
import queue
import threading
from collections import deque
from collections.abc import Callable
from contextvars import Context, copy_context
from types import TracebackType
from typing import Any, Self

from tensormagic.backend.running import flags
from tensormagic.config import config


class Task:
    """A call, and what became of it."""

    __slots__ = ("call", "done", "error", "flags", "is_done", "value")

    def __init__(self, call: Callable[[], Any]) -> None:
        self.call: Callable[[], Any] | None = call
        self.done = threading.Lock()
        self.done.acquire()
        self.is_done = False
        self.value: Any = None
        self.error: BaseException | None = None
        self.flags = 0

    def do(self, context: Context | None = None) -> None:
        """Run the call, in ``context`` if on another thread; errors are raised to whoever needs the value."""
        call, self.call = self.call, None
        try:
            if context is None:
                self.value = call()  # type: ignore[misc]
            else:
                flags.clear()
                self.value = context.run(call)  # type: ignore[arg-type]
                self.flags = flags.seen()
        except BaseException as error:
            if context is None and not isinstance(error, Exception):  # an interrupt of the run itself
                raise
            self.error = error
        self.is_done = True
        self.done.release()


class Team:
    """The tasks handed out by one run.

    Parameters
    ----------
    waits
        Whether a run that fails or is interrupted waits for tasks that have begun, because they read the caller's
        memory.

    Examples
    --------
    >>> with Team() as team:
    ...     task = team.begin(lambda: 6 * 7)
    ...     team.wait(task)
    42
    """

    def __init__(self, *, waits: bool = False) -> None:
        self._waits = waits
        self._begun: list[Task] = []
        self._open: deque[Task] = deque()  # tasks not begun: a thread takes one from here and runs it
        self._context = copy_context()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Drop tasks that have not begun; others go on unheeded, or are waited for."""
        left = set(self._begun)
        while (task := self._next()) is not None:
            left.discard(task)
        for task in left if self._waits and error is not None else ():
            if not task.is_done:
                task.done.acquire()

    def begin(self, call: Callable[[], Any]) -> Task:
        """Let an idle thread run a call, if there is one."""
        task = Task(call)
        self._begun.append(task)
        self._open.append(task)
        _ask(self)
        return task

    def wait(self, task: Task) -> Any:
        """Return the value of a task: run here if nobody has begun it; meanwhile other tasks are run here."""
        try:
            self._open.remove(task)
        except ValueError:
            while not task.is_done and (other := self._next()) is not None:
                other.do()
            if not task.is_done:
                task.done.acquire()
        else:
            task.do()
        flags.take_over(task.flags)
        if task.error is not None:
            raise task.error
        value, task.value = task.value, None
        return value

    def _next(self) -> Task | None:
        try:
            return self._open.popleft()
        except IndexError:
            return None

    def help(self) -> None:
        """Run tasks that nobody has begun until none is left."""
        context = self._context.copy()
        while (task := self._next()) is not None:
            task.do(context)
            del task


# threads --------------------------------------------------------------------------------------------------------------

_running: dict[int, int] = {}  # threads that run plans which hand out, and how deep they are in these
_asked: queue.SimpleQueue[Team] = queue.SimpleQueue()
_helpers: list[threading.Thread] = []
_helped: list[Team] = []  # what a thread helps, or has been asked to help: from the moment of asking on


def with_team(run: Callable[[Team], Any], *, waits: bool = False) -> Any:
    """Return the result of ``run`` with a team of its own.

    An interrupt arrives at the beginning or end of a call: so the thread is deregistered in a C call that comes first.
    """
    thread = threading.get_ident()
    depth = _running.get(thread, 0)
    try:
        _running[thread] = depth + 1
        with Team(waits=waits) as team:
            return run(team)
    finally:
        _running.__setitem__(thread, depth) if depth else _running.pop(thread, None)


def _ask(team: Team) -> None:
    """Let a thread help, as long as fewer than ``config.threads`` are at work, those that run plans included."""
    if len(_running) + len(_helped) >= config.threads:
        return
    if len(_helpers) <= len(_helped):
        helper = threading.Thread(target=_help, args=(_asked,), name="tensormagic helper", daemon=True)
        helper.start()
        _helpers.append(helper)  # an interrupt may come before: there may be more than are known, and never fewer
    try:
        _helped.append(team)
        _asked.put(team)
    except BaseException:
        _is_helped(team)
        raise


def _help(asked: queue.SimpleQueue[Team]) -> None:
    while True:
        team = asked.get()
        try:
            team.help()
        finally:
            _is_helped(team)
        del team


def _is_helped(team: Team) -> None:
    with contextlib.suppress(ValueError):  # who was interrupted just after asking has said so already
        _helped.remove(team)


def _after_fork() -> None:
    """A forked child has none of the threads: it starts its own."""
    global _asked
    _asked = queue.SimpleQueue()
    _helpers.clear()
    _helped.clear()
    _running.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
