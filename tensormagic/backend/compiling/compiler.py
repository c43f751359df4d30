"""The session's end of the compile worker: starts it when it is needed, keeps it, and starts another when it dies or hangs.

A manager thread alone starts and ends workers; what may block, writing to one and reading from it, is done by threads of
that worker, so that a worker that does not move holds up neither a request nor the end of the interpreter.
"""

from __future__ import annotations

import atexit
import os
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tensormagic.backend.compiling.messages import Code, Request, code_of, receive, send
from tensormagic.ir.alive import Alive

MOST_DEATHS = 2  # of workers at one request: it is then given up, and the next worker has the others
MOST_COMPILED = 200  # by one worker: where Numba reads a kernel, it keeps about a megabyte for it
LOOK = 2.0  # seconds between looks at a worker that an answer is waited from; it gives a sign of life every second
MOST_SILENT = 10  # looks without a sign of life after which it hangs
MOST_STARTING = 30  # and while it starts
FIRST_PAUSE, LONGEST_PAUSE = (
    0.25,
    30.0,
)  # seconds before the start after a second death without an answer between, and at most
_every: Alive[Compiler] = Alive()

Answer = Callable[[str, Code | None, str], None]


@dataclass
class _Asked:
    request: Request
    deaths: int = 0


class _Worker:
    """One worker process, and the threads that write to it and read from it."""

    def __init__(self, on_message: Callable[[_Worker, dict[str, Any] | None], None]) -> None:
        script = str(Path(__file__).with_name("worker.py"))
        command = [sys.executable, "-P", "-W", "ignore", script, str(MOST_COMPILED)]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, bufsize=0,
            start_new_session=True,
        )  # fmt: skip
        self.spoke = False  # whether it has given any sign of life
        self.answered = False
        self.ended = False  # whether it has been read to its end
        self.silent = 0  # looks without one
        self.asked: set[str] = set()
        self.at = ""  # what it compiles itself, and no copy of it
        self._on_message = on_message
        self._out: queue.SimpleQueue[dict[str, Any] | None] = queue.SimpleQueue()
        for work in (self._write, self._read):
            threading.Thread(target=work, name=f"tensormagic compiler {work.__name__}", daemon=True).start()

    def ask(self, message: dict[str, Any]) -> None:
        """Have a message written; returns at once."""
        self._out.put(message)

    def _write(self) -> None:
        stream: Any = self.process.stdin
        with suppress(OSError):  # a worker that has ended: who reads from it notices
            while (message := self._out.get()) is not None:
                send(stream, message)
        with suppress(OSError):
            stream.close()

    def _read(self) -> None:
        stream: Any = self.process.stdout
        with suppress(OSError, ValueError):
            while (message := receive(stream)) is not None:
                self._on_message(self, message)
        with suppress(OSError):
            stream.close()
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(1.0)
        self._on_message(self, None)

    def ended_well(self) -> bool:
        """Return whether it has exited normally after enough requests."""
        return self.answered and self.process.poll() == 0

    def hangs(self) -> bool:
        """Return whether it has been silent for too long."""
        return self.silent >= (MOST_SILENT if self.spoke else MOST_STARTING)

    def end(self) -> None:
        """Kill the process, whatever state it is in, and reap it."""
        self.process.kill()
        self._out.put(None)
        with suppress(subprocess.TimeoutExpired):  # one that the system holds: it goes when the system lets it
            self.process.wait(1.0)

    def forget(self) -> None:
        """In a forked child: close our ends of the pipes, and leave the parent's worker alone."""
        self.process.returncode = 0  # not our child: nothing to wait for
        for pipe in (self.process.stdin, self.process.stdout):
            with suppress(OSError):
                os.close(pipe.fileno())  # type: ignore[union-attr]


class Compiler:
    """Asks the worker process for the code of kernels.

    Parameters
    ----------
    on_answer
        Called for each request with the key, the code, and an error if there is no code, on another thread.
    """

    def __init__(self, on_answer: Answer) -> None:
        self._on_answer = on_answer
        self._changed = threading.Condition()
        self._pending: dict[str, _Asked] = {}
        self._worker: _Worker | None = None
        self._manager: threading.Thread | None = None
        self._wanted = False  # a worker, though nothing is to be compiled yet
        self._deaths = 0  # without an answer between
        _every.add(self)

    @property
    def process(self) -> subprocess.Popen[bytes] | None:
        """Return the worker process."""
        worker = self._worker
        return None if worker is None else worker.process

    def submit(self, key: str, request: Request) -> None:
        """Request the compilation of a kernel under ``key``; returns at once."""
        with self._changed:
            self._pending.setdefault(key, _Asked(request))
            self._manage()

    def prepare(self) -> None:
        """Start a worker in the background; returns at once."""
        with self._changed:
            self._wanted = True
            self._manage()

    def _manage(self) -> None:
        """Wake the manager thread; the lock is held."""
        if self._manager is None:
            self._manager = threading.Thread(target=self._work, name="tensormagic compiler", daemon=True)
            self._manager.start()
        self._changed.notify_all()

    def _closed(self) -> bool:
        """Return whether the calling manager thread must end; the lock is held."""
        return self._manager is not threading.current_thread()

    def _work(self) -> None:
        with self._changed:
            while not self._closed():
                if self._worker is not None:
                    self._see_to(self._worker)
                elif self._pending or self._wanted:
                    self._start()
                else:
                    self._changed.wait()

    def _see_to(self, worker: _Worker) -> None:
        """Send new requests, then wait, and end a worker that gives no sign of life; the lock is held."""
        if not worker.asked:
            worker.silent = 0  # nobody waited for it before
        for key in [key for key in self._pending if key not in worker.asked]:
            worker.asked.add(key)
            worker.ask(self._pending[key].request.message(key))
        if self._wanted:
            self._wanted = False
            worker.ask({})
        if not self._changed.wait(LOOK if self._pending else None):
            worker.silent += 1
        if self._worker is worker and self._pending and worker.hangs():
            self._lost(worker)

    def _start(self) -> None:
        """Start a worker, after a pause that grows with the number of deaths; the lock is released meanwhile."""
        until = time.monotonic() + self._pause()
        while not self._closed() and (left := until - time.monotonic()) > 0:
            self._changed.wait(left)
        if self._closed():
            return
        self._changed.release()
        try:
            worker = _Worker(self._message)
        except (OSError, RuntimeError) as error:
            worker, reason = None, str(error)
        else:
            reason = ""
        finally:
            self._changed.acquire()
        if worker is None:
            self._deaths += 1
            self._wanted = False
            self._give_up(list(self._pending), f"the compile process does not start: {reason}")
        elif self._closed():
            worker.end()
        else:
            self._worker = worker
            if worker.ended:
                self._lost(worker)

    def _pause(self) -> float:
        return (
            0.0
            if self._deaths < MOST_DEATHS
            else min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** min(self._deaths - MOST_DEATHS, 20))
        )

    def _message(self, worker: _Worker, message: dict[str, Any] | None) -> None:
        """Handle a message of a worker; None means that it has ended."""
        with self._changed:
            worker.ended = worker.ended or message is None
            if worker is not self._worker:  # given up, or at its end before it was known
                return
            if message is None:
                self._lost(worker)
                self._changed.notify_all()
                return
            worker.spoke, worker.silent = True, 0
            if "symbol" not in message and "error" not in message:
                self._hear(worker, message)
                return
            worker.answered, self._deaths = True, 0
            known = self._pending.pop(message["key"], None)
            worker.asked.discard(message["key"])
        if known is not None:
            self._on_answer(message["key"], code_of(message), message["error"])

    def _lost(self, worker: _Worker) -> None:
        """A worker has ended or hangs: count the death for its current request, and give up a second-time offender; the lock is held."""
        self._worker = None
        well = worker.ended_well()
        worker.end()
        if well or not self._pending:
            return
        self._deaths += 1
        first = worker.at if worker.at in self._pending else next(iter(self._pending))
        self._count_deaths([first] if worker.spoke else list(self._pending))

    def _count_deaths(self, keys: list[str]) -> None:
        """Count deaths of workers at these requests; a request is given up at the second."""
        known = [key for key in keys if key in self._pending]
        for key in known:
            self._pending[key].deaths += 1
        self._give_up(
            [k for k in known if self._pending[k].deaths >= MOST_DEATHS], "the compile process failed twice on this"
        )

    def _hear(self, worker: _Worker, message: dict[str, Any]) -> None:
        """Handle messages other than answers: the current request, and the death of a copy; the lock is held."""
        worker.at = message.get("at", worker.at)
        if "lost" in message:
            worker.asked.discard(message["lost"])
            self._count_deaths([message["lost"]])
            self._changed.notify_all()

    def _give_up(self, keys: list[str], error: str) -> None:
        for key in keys:
            del self._pending[key]
            self._on_answer(key, None, error)

    def close(self) -> None:
        """Stop the worker; a later request starts another."""
        with self._changed:
            self._manager = None
            worker, self._worker = self._worker, None
            self._pending.clear()
            self._changed.notify_all()
        if worker is not None:
            worker.end()

    def forget(self) -> None:
        """In a forked child: the worker and the threads do not exist there."""
        if self._worker is not None:
            self._worker.forget()
        self._worker = self._manager = None


def _close_all() -> None:
    for one in _every:
        one.close()


def _forget_all() -> None:
    for one in _every:
        one.forget()


atexit.register(_close_all)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_all)
