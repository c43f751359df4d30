"""What a cell in the background shows: that it is computed, and its value when that comes."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from html import escape
from typing import Any

from IPython.core.display_functions import display
from IPython.display import DisplayHandle

__all__ = ["show_when_there"]


class _Line:
    """A line of a page."""

    def __init__(self, text: str) -> None:
        self.text = text

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        style = "margin:0;background:none;border:0"
        return {"text/plain": self.text, "text/html": f'<pre style="{style}">{escape(self.text)}</pre>'}


def show_when_there(future: Future[Any], label: str, line: Callable[[], str]) -> None:
    """Show under the cell that runs that it is computed, and there, when it is done, the ``line`` of its value, or how it has failed."""
    if future.done():
        display(_Line(_outcome(future, line)))
        return
    handle = display(_Line(f"{label} is computed in the background"), display_id=True)
    if isinstance(handle, DisplayHandle):

        def arrived(_: Future[Any]) -> None:
            with suppress(Exception):  # the page is gone: the value is asked for by its name
                handle.update(_Line(_outcome(future, line)))  # as of the cell that runs then: nbclient takes no others

        future.add_done_callback(arrived)


def _outcome(future: Future[Any], line: Callable[[], str]) -> str:
    if future.cancelled():
        return "cancelled: it is computed where it is asked for"
    error = future.exception()
    return line() if error is None else f"{type(error).__name__}: {error}"
