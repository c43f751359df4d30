"""Resend interrupts that Python would lose: one that arrives in a finaliser is ignored there.

Graphs hold their nodes weakly, so that many finalisers run during capture, and of interrupts during long captures
one in twenty was lost.
"""

from __future__ import annotations

import _thread
import sys
import threading
import time
from typing import Any

SOON = 0.05  # seconds; by then the finaliser has ended


class Interrupts:
    """Watches for lost interrupts while a cell runs."""

    def __init__(self) -> None:
        self._before: Any = None

    def begin(self) -> None:
        """Install the hook when a cell starts."""
        if self._before is None:
            self._before, sys.unraisablehook = sys.unraisablehook, self._ignored

    def end(self) -> None:
        """Remove the hook when the cell has run."""
        before, self._before = self._before, None
        if before is not None and sys.unraisablehook == self._ignored:
            sys.unraisablehook = before

    def _ignored(self, found: Any) -> None:
        """Handle an error that Python ignores because it was raised where nothing can catch it; raise an interrupt again."""
        if issubclass(found.exc_type, KeyboardInterrupt) and threading.current_thread() is threading.main_thread():
            again()
        elif self._before is not None:
            self._before(found)


def again() -> None:
    """Interrupt the main thread once more, soon; a kernel that is idle by then ignores it."""
    _thread.start_new_thread(
        _interrupt, ()
    )  # threading's own start waits for the thread, and would be interrupted there


def _interrupt() -> None:
    time.sleep(SOON)
    _thread.interrupt_main()
