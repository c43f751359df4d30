"""One thread for all kernels that are asked for: it asks the compile worker, hands out the answers, and keeps them on disk.

Knows neither what kernels are of nor what is done with their code: whoever waits for some is `Awaited`.
"""

from __future__ import annotations

import atexit
import queue
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Literal

from tensormagic.backend.compiling import cache
from tensormagic.backend.compiling.compiler import Compiler
from tensormagic.backend.compiling.messages import Code, Request
from tensormagic.backend.running.per_process import OnePerProcess
from tensormagic.backend.running.thread_warnings import tell_once

State = Literal["pending", "ready", "failed"]
Take = Callable[[Code | None, str], bool]  # the code, or the error; whether the code is of use
Work = Callable[[], None]


class Awaited:
    """Something that becomes available once its kernels are compiled.

    Attributes
    ----------
    instead
        What computes if it does not become available.
    error
        Why it does not become available; empty otherwise.
    """

    instead = "NumPy"

    def __init__(self) -> None:
        self.error = ""
        self._done = threading.Event()

    @property
    def state(self) -> State:
        """Return ``"pending"``, ``"ready"`` or ``"failed"``."""
        if not self._done.is_set():
            return "pending"
        return "failed" if self.error else "ready"

    def ready(self) -> bool:
        """Return whether it is there."""
        return self.state == "ready"

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until it is available or has failed, at most ``timeout`` seconds; returns whether it is available."""
        self._done.wait(timeout)
        return self.ready()

    def begin(self, service: Service) -> None:
        """Take stored code, and request the rest by `Service.compile`; runs on the service's thread."""
        raise NotImplementedError

    def finish(self, error: str) -> None:
        """Record that the code is there, or an error."""
        if not self._done.is_set():
            self.error = error
            self._done.set()

    def tell(self, why: str) -> None:
        """Warn once of what could not be compiled."""
        tell_once(f"{self.instead} computes what could not be compiled: {why}")

    def fail(self, error: Exception) -> None:
        """Handle an unforeseen error, for instance in planning; the thread goes on."""
        why = f"{type(error).__name__}: {error}"
        self.tell(why)
        self.finish(why)

    def abandon(self, error: str) -> None:
        """Fail in a forked child, where the thread that held the old event's lock may not exist."""
        self._done = threading.Event()
        self.finish(error)


class Service:
    """The service thread, and its compiler."""

    def __init__(self) -> None:
        self._work: queue.SimpleQueue[Work] = queue.SimpleQueue()
        self.compiler = Compiler(lambda *answer: self.ask(partial(self.answer, *answer)))
        self._waiting: dict[str, list[tuple[Awaited, Take]]] = {}
        self.awaited: list[Awaited] = []
        threading.Thread(target=self._run, name="tensormagic loader", daemon=True).start()

    def submit(self, one: Awaited) -> None:
        """Have kernels asked for; returns at once."""
        self.awaited = [a for a in self.awaited if a.state == "pending"] + [one]
        self.ask(partial(self._begin, one))

    def ask(self, work: Work) -> None:
        """Append work to the queue."""
        self._work.put(work)

    def compile(self, one: Awaited, key: str, request: Request, take: Take) -> None:
        """Request a kernel for which there is no code under ``key``; runs on the service's thread."""
        waiting = self._waiting.setdefault(key, [])
        waiting.append((one, take))
        if len(waiting) == 1:
            self.compiler.submit(key, request)

    def answer(self, key: str, code: Code | None, error: str) -> None:
        """Pass the code (or error) to all who wait for a kernel, then store it; runs on the service's thread."""
        with _keeping:
            of_use = [_taken(one, take, code, error) for one, take in self._waiting.pop(key, [])]
            if code is not None and all(of_use):
                cache.write(key, code)

    def _begin(self, one: Awaited) -> None:
        try:
            one.begin(self)
        except Exception as error:  # noqa: BLE001 (which is told)
            one.fail(error)

    def _run(self) -> None:
        while True:
            work = self._work.get()
            with suppress(Exception):  # the thread goes on
                work()


def _taken(one: Awaited, take: Take, code: Code | None, error: str) -> bool:
    try:
        return take(code, error)
    except Exception as wrong:  # noqa: BLE001 (which is told)
        one.fail(wrong)
        return False


_keeping = threading.Lock()  # held while code is handed out and written to the cache
_PATIENCE = 1.0  # seconds that the end of a process waits for that


@atexit.register
def _wait_until_kept() -> None:
    if _keeping.acquire(timeout=_PATIENCE):
        _keeping.release()


def _abandon(old: Service) -> None:
    global _keeping
    _keeping = threading.Lock()
    for one in old.awaited:
        one.abandon("the process was forked while this was compiled")


service = OnePerProcess(Service, _abandon)
