"""A progress bar for computations longer than a second: what runs, since when, and how far it is. It does not affect them.

A quicker cell publishes nothing. The bar is only a widget: a page without widgets, and a comparison of outputs,
never see it, and it disappears when the computation ends.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from IPython.core.display_functions import publish_display_data

from tensormagic import session
from tensormagic.ir.node import made

if TYPE_CHECKING:
    from tensormagic.notebook.widgets.strips import Bar


AFTER = 1.0  # seconds without a bar
EVERY = 0.25
MANY = 100  # nodes made between two looks, where a graph is being built


class Progress:
    """Watches each cell from a thread of its own, which ends with the cell.

    Parameters
    ----------
    rich
        Whether there is a page that can show it.
    """

    def __init__(self, rich: Callable[[], bool]) -> None:
        self._rich = rich
        self._watch: _Watch | None = None

    def begin(self) -> None:
        """Start watching a cell."""
        self.end()
        if self._rich():
            self._watch = _Watch()

    def end(self) -> None:
        """Remove the bar of the cell that has run."""
        watch, self._watch = self._watch, None
        if watch is not None:
            watch.end()


class _Watch:
    """The state of one cell's progress bar."""

    def __init__(self) -> None:
        self._ended = threading.Event()
        self._lock = threading.Lock()  # the bar is shown by this thread, and taken away by either
        self._bar: Bar | None = None
        self._busy: float | None = None  # since when something is done at each look
        self._nodes = made()
        self._doing = session.doing()
        threading.Thread(target=self._work, name="tensormagic progress", daemon=True).start()

    def _work(self) -> None:
        wait = AFTER
        while not self._ended.wait(wait):
            wait = EVERY
            with self._lock:
                if not self._ended.is_set():
                    self._look()

    def _look(self) -> None:
        """Show what runs, once it takes long: by itself, or one after the other."""
        now = time.perf_counter()
        work = list(self._doing.work) or self._growing(now)
        if not work:
            self._busy = None
            self._close()
            return
        self._busy = now if self._busy is None else self._busy
        found = session.shown([w for w in work if now - w[1] >= AFTER] or work)
        if self._bar is None and now - found[1] < AFTER and now - self._busy < AFTER:
            return
        words, fraction, _ = self._doing.far_with(*found)
        if self._bar is None:
            from tensormagic.notebook.widgets.strips import Bar

            self._bar = Bar(words=words, fraction=fraction)
            data = self._bar.live()
            if data:
                publish_display_data(data)
        else:
            self._bar.say(words, fraction)

    def _growing(self, now: float) -> list[tuple[session.Executable | session.Stage, float]]:
        """Return what is done where a cell's own code builds lazy values, one after the other."""
        before, self._nodes = self._nodes, made()
        if self._nodes - before < MANY:
            return []
        return [("building the graph", now if self._busy is None else self._busy)]

    def end(self) -> None:
        """Close the bar when the cell has run."""
        self._ended.set()
        with self._lock:
            self._close()

    def _close(self) -> None:
        bar, self._bar = self._bar, None
        if bar is not None:
            bar.close()
