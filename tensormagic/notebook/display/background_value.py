"""The display of a cell in the background: its progress, and its value when it is computed."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from html import escape
from typing import TYPE_CHECKING, Any

from IPython.core.display_functions import display
from IPython.display import DisplayHandle

from tensormagic.functions.submitting import Submitted
from tensormagic.notebook.errors.report import at_node

if TYPE_CHECKING:
    from tensormagic.notebook.widgets.strips import Bar


AFTER = 1.0  # seconds without a bar
EVERY = 0.25


class _Line:
    """A line of a page, replaced by a bar where the page has widgets."""

    def __init__(self, text: str, bar: Bar | None = None) -> None:
        self.text, self._bar = text, bar

    def _repr_mimebundle_(self, **_: Any) -> dict[str, Any]:
        style = "margin:0;background:none;border:0"
        live = self._bar.live() if self._bar is not None else {}
        return {"text/plain": self.text, "text/html": f'<pre style="{style}">{escape(self.text)}</pre>', **live}


class _Filling:
    """The display of one future, until it is done: a bar, from a second on, in the place of the line."""

    def __init__(self, future: Submitted, handle: DisplayHandle, label: str, line: Callable[[], str]) -> None:
        self._future, self._handle, self._label, self._line = future, handle, label, line
        self._lock = threading.Lock()  # the bar is shown by one thread, and taken away by another
        self._bar: Bar | None = None

    def look(self) -> bool:
        """Show how far it is; whether there is more to show."""
        with self._lock, suppress(Exception):  # the page is gone: the value is asked for by its name
            if self._future.done():
                return False
            far = self._future.far
            words, fraction = far[:2] if far else (f"{self._label} waits for its inputs, or for a thread", -1.0)
            if self._bar is not None:
                self._bar.say(words, fraction)
                return True
            from tensormagic.notebook.widgets.strips import Bar

            self._bar = Bar(words=words, fraction=fraction, cancel=self._future.cancel)
            self._handle.update(_Line(f"{self._label} is computed in the background", self._bar))
        return True

    def arrived(self, _: Future[Any]) -> None:
        """Show the result, or the error, in the cell that runs by then: nbclient accepts updates of no other."""
        with self._lock, suppress(Exception):
            bar, self._bar = self._bar, None
            self._handle.update(_Line(_outcome(self._future, self._line)))
            if bar is not None:
                bar.close()


class _Looking:
    """A thread that looks at all futures that are shown, as long as there are any."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._shown: list[_Filling] = []

    def add(self, filling: _Filling) -> None:
        with self._lock:
            self._shown.append(filling)
            if len(self._shown) > 1:
                return
        threading.Thread(target=self._work, name="tensormagic background bars", daemon=True).start()

    def _work(self) -> None:
        tick, wait = threading.Event(), AFTER
        while True:
            tick.wait(wait)
            wait = EVERY
            with self._lock:
                shown = list(self._shown)
            over = [f for f in shown if not f.look()]
            with self._lock:
                self._shown = [f for f in self._shown if f not in over]
                if not self._shown:
                    return


_looking = _Looking()


def show_when_there(future: Submitted, label: str, line: Callable[[], str]) -> None:
    """Show under the cell that runs that it is computed, and there, when it is done, the ``line`` of its value, or how it has failed."""
    if future.done():
        display(_Line(_outcome(future, line)))
        return
    handle = display(_Line(f"{label} is computed in the background"), display_id=True)
    if isinstance(handle, DisplayHandle):
        filling = _Filling(future, handle, label, line)
        _looking.add(filling)
        future.add_done_callback(filling.arrived)


def _outcome(future: Future[Any], line: Callable[[], str]) -> str:
    if future.cancelled():
        return "cancelled: it is computed when it is used"
    error = future.exception()
    if error is None:
        return line()
    place = at_node(error)
    return f"{type(error).__name__}: {error}{f' ({place})' if place else ''}"
