"""The session's end of the compile worker: starts it when it is needed, keeps it, starts it once more if it dies."""

from __future__ import annotations

import atexit
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from tensormagic.backend.worker import receive, send
from tensormagic.ir.alive import Alive

MOST_STARTS = 2
MOST_COMPILED = 200  # by one worker: Numba keeps about a megabyte for each kernel
_every: Alive[Compiler] = Alive()


class Compiler:
    """Asks the worker process for machine code.

    Parameters
    ----------
    on_answer
        Called with key, source, error (empty for none) and seconds for each request, on another thread.
    """

    def __init__(self, on_answer: Callable[[str, str, str, float], None]) -> None:
        self._on_answer = on_answer
        self._lock = threading.Lock()
        self._pending: dict[str, tuple[str, str]] = {}
        self._process: subprocess.Popen[bytes] | None = None
        self._starts = 0
        _every.add(self)

    def submit(self, key: str, source: str, folder: str) -> None:
        """Have ``source`` compiled into ``folder`` under ``key``."""
        with self._lock:
            self._pending[key] = (source, folder)
            if self._process is None:
                self._start()
            else:
                self._ask(key)

    def prepare(self) -> None:
        """Have a worker started and ready."""
        with self._lock:
            if self._process is None:
                self._start()
                if self._process is not None:
                    with suppress(OSError):
                        send(self._process.stdin, {})

    def _start(self) -> None:
        """Start a worker and ask it for everything that is pending; the lock is held."""
        if self._starts == MOST_STARTS:
            self._give_up("the compile worker has ended twice")
            return
        self._starts += 1
        root = str(Path(__file__).parents[2])
        path = os.pathsep.join(filter(None, [root, os.environ.get("PYTHONPATH", "")]))
        command = [sys.executable, "-P", "-W", "ignore", "-m", "tensormagic.backend.worker", str(MOST_COMPILED)]
        try:
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                env={**os.environ, "PYTHONPATH": path}, start_new_session=True,
            )  # fmt: skip
        except OSError as error:
            self._give_up(f"the compile worker does not start: {error}")
            return
        threading.Thread(target=self._listen, args=(self._process,), name="tensormagic compiler", daemon=True).start()
        for key in list(self._pending):
            self._ask(key)

    def _ask(self, key: str) -> None:
        source, folder = self._pending[key]
        with suppress(OSError):  # a worker that has just ended: its listener notices
            send(self._process.stdin, {"key": key, "source": source, "folder": folder})  # type: ignore[union-attr,arg-type]

    def _listen(self, process: subprocess.Popen[bytes]) -> None:
        """Pass answers on; when the worker ends with requests open, start another."""
        with suppress(OSError, ValueError):
            while (message := receive(process.stdout)) is not None:  # type: ignore[arg-type]
                self._starts = 1
                with self._lock:
                    known = self._pending.pop(message["key"], None)
                if known is not None:
                    self._on_answer(message["key"], known[0], message["error"], message.get("seconds", 0.0))
        with self._lock:
            if self._process is process:
                _end(process)
                self._process = None
                if self._pending:
                    self._start()

    def _give_up(self, error: str) -> None:
        pending, self._pending = self._pending, {}
        for key, (source, _) in pending.items():
            self._on_answer(key, source, error, 0.0)

    def close(self) -> None:
        """End the worker."""
        with self._lock:
            process, self._process = self._process, None
            self._pending.clear()
        if process is not None:
            _end(process)

    def forget(self) -> None:
        """In a forked child: leave the parent's worker alone, but do not hold its pipes open."""
        process, self._process = self._process, None
        if process is not None:
            process.returncode = 0  # not our child: nothing to wait for
            for pipe in (process.stdin, process.stdout):
                with suppress(OSError):
                    os.close(pipe.fileno())  # type: ignore[union-attr]


def _end(process: subprocess.Popen[Any]) -> None:
    """End a worker and collect it."""
    process.kill()
    process.wait()
    for pipe in (process.stdin, process.stdout):
        with suppress(OSError):
            pipe.close()  # type: ignore[union-attr]


def _close_all() -> None:
    for one in _every:
        one.close()


def _forget_all() -> None:
    for one in _every:
        one.forget()


atexit.register(_close_all)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_all)
