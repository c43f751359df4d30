"""Loops in which nothing is lazy are left to Python; an inner loop is then tried again only after more and more of its runs."""

from __future__ import annotations

from dataclasses import dataclass
from types import CodeType

from tensormagic.capture import context
from tensormagic.capture.errors.refusal import values_are_there


class PlainPython(Exception):  # noqa: N818 (no error: a loop over Python's own numbers)
    """Raised when there is nothing lazy in a loop."""


@dataclass
class Left:
    """Records why a short inner loop was left to Python, and for how many more of its runs staging is not tried again."""

    failed: Exception | None = None
    length: int = 0
    left: int = 0

    def reason(self) -> Exception | None:
        """Return why the loop is left to Python without another try; None where staging is to be tried."""
        self.left -= 1
        return self.failed if self.left >= 0 else None

    def noted(self, failed: Exception | None) -> Exception | None:
        """Record the result of trying: each time that nothing in the loop was lazy, twice as many further runs are left to Python."""
        plain = isinstance(failed, PlainPython)
        self.failed, self.length = failed, min(2 * self.length + 1, _LONGEST) if plain else 0
        self.left = self.length
        return failed


_LONGEST, _SHORT = 255, 100  # runs of the loop times iterations, above which it is always tried


def left_before(code: CodeType, known: int | None) -> Left:
    """Return the record for the rest of a loop; a new one outside of cells, and if Python's iterations would make a large graph."""
    capture = context.current()
    if capture is None or known is None or known > _SHORT or not values_are_there():
        return Left()
    return capture.effort.rests.setdefault(code, Left())
