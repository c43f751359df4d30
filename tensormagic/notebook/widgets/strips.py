"""Strips in the output of a cell: how cells are run, how far a computation is, and a button that rewrites cells."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import traitlets

from tensormagic.notebook.pictures.palette import variables
from tensormagic.notebook.widgets.controls import MESSAGES
from tensormagic.notebook.widgets.graph_files import joined
from tensormagic.notebook.widgets.standing import Closing

_here = Path(__file__).parent


def _styled(name: str) -> str:
    """Return the style sheet of one strip, after what all have in common."""
    return (
        MESSAGES
        + variables(".tm-strip")
        + "".join((_here / f"{sheet}.css").read_text(encoding="utf-8") for sheet in ("strips", name))
    )


class _Strip(Closing):
    """Words in a row, and what belongs to them."""

    words = traitlets.Unicode().tag(sync=True)

    def live(self) -> dict[str, Any]:
        """Return the widget's own display data; empty if there is no page."""
        made: Any = self._repr_mimebundle_() if self.comm is not None else None
        return {k: v for k, v in made[0].items() if k != "text/plain"} if made else {}


class Banner(_Strip):
    """A message, and whether capturing is on.

    Parameters
    ----------
    words
        The message.
    on
        Whether cells are captured by default; written to the metadata of the notebook that shows it.
    end
        Called when the button is pressed; returns the new message.
    """

    _esm = joined(_here, ["banner"])
    _css = _styled("banner")

    on = traitlets.Bool().tag(sync=True)

    def __init__(self, words: str, *, on: bool, end: Callable[[], str]) -> None:
        super().__init__(words=words, on=on)
        self._end = end
        self.on_msg(self._pressed)

    def _pressed(self, _: Any, content: Any, __: Any) -> None:
        if content == "end":
            self.words, self.on = self._end(), False


class Bar(_Strip):
    """Words, and the part that is done; -1 where that is not known.

    Parameters
    ----------
    cancel
        What its button does; where it is not given, that interrupts the kernel.
    """

    _esm = joined(_here, ["bar"])
    _css = _styled("bar")

    fraction = traitlets.Float(default_value=-1.0).tag(sync=True)
    cancels = traitlets.Bool().tag(sync=True)

    def __init__(self, words: str, fraction: float, cancel: Callable[[], object] | None = None) -> None:
        super().__init__(words=words, fraction=fraction, cancels=cancel is not None)
        if cancel is not None:
            self.on_msg(lambda _, content, __: cancel() if content == "cancel" else None)

    def say(self, words: str, fraction: float) -> None:
        """Change the text and the fraction in one message to the page."""
        with self.hold_sync():
            self.words, self.fraction = words, fraction


class Rewrite(_Strip):
    """A button that replaces the texts of cells in the notebook.

    Parameters
    ----------
    words
        The text beside it.
    after
        The text once it was pressed.
    cells
        For each cell ``cell``, its id, ``now``, its text, and ``better``, the new one.
    """

    _esm = joined(_here, ["rewrite"])
    _css = _styled("rewrite")

    after = traitlets.Unicode().tag(sync=True)
    cells = traitlets.List(traitlets.Dict()).tag(sync=True)

    def __init__(self, words: str, after: str, cells: list[dict[str, str]]) -> None:
        super().__init__(words=words, after=after, cells=cells)
