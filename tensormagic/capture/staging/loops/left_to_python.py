"""Loops in which nothing is lazy are left to Python; within another loop, for more and more of their runs without being asked."""

from __future__ import annotations

from dataclasses import dataclass
from types import CodeType

from tensormagic.capture import context
from tensormagic.capture.errors.refusal import values_are_there


class PlainPython(Exception):  # noqa: N818 (no error: a loop over Python's own numbers)
    """There is nothing lazy in a loop."""


@dataclass
class Left:
    """Why a short loop within another one was left to Python, and for how many more of its runs it is not asked again."""

    failed: Exception | None = None
    length: int = 0
    left: int = 0

    def reason(self) -> Exception | None:
        """Why it is left to Python without being asked; None where it is to be asked."""
        self.left -= 1
        return self.failed if self.left >= 0 else None

    def noted(self, failed: Exception | None) -> Exception | None:
        """Note what came of asking: each time that there was nothing lazy in it, twice as many runs are left."""
        plain = isinstance(failed, PlainPython)
        self.failed, self.length = failed, min(2 * self.length + 1, _LONGEST) if plain else 0
        self.left = self.length
        return failed


_LONGEST, _SHORT = 255, 100  # runs, iterations


def left_before(code: CodeType, known: int | None) -> Left:
    """The rest of a loop: in a cell, which Python can always run, and where that makes no large graph."""
    capture = context.current()
    if capture is None or known is None or known > _SHORT or not values_are_there():
        return Left()
    return capture.effort.rests.setdefault(code, Left())
