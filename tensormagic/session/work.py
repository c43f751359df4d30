"""The current work of threads, with start times, for displays of it. Knows nothing of how it is done."""

from __future__ import annotations

import threading
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tensormagic.session.tiers import Executable


@dataclass(eq=False)
class Counted:
    """Work that is done piece by piece elsewhere, with its progress."""

    what: str
    count: int
    done: int = 0

    def __str__(self) -> str:
        return f"{self.what} {self.done:,} of {self.count:,}"


Stage = str | Counted  # a stage before a computation, or in place of one

at_work: list[
    tuple[Executable | Stage, float]
] = []  # running executables and stages with their start times, for displays


class _Own(threading.local):
    """The current work of this thread; a background thread has a list of its own, as nobody waits for it."""

    work = at_work


own = _Own()


@contextmanager
def working(stage: Executable | Stage) -> Generator[None]:
    """Display what is being done, such as "rewriting", for the duration of the block."""
    work = own.work
    work.append((stage, time.perf_counter()))
    try:
        yield
    finally:
        work.pop()
