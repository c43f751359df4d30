"""Launch iterations of a data-dependent loop ahead of its test: how many, and from which state each of them begins."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from tensormagic.backend.cuda.device import DeviceArray
from tensormagic.ir.node import Node

if TYPE_CHECKING:
    from tensormagic.backend.cuda.loops.looped import Repetition

MOST_AHEAD = 32  # iterations of a data-dependent loop that are launched before the host reads the test
LOOKING = (
    1e-4  # seconds of useless library calls after the last iteration that are preferred to reading the test more often
)


class Ahead:
    """Blocks of iterations of a data-dependent loop; those after the last true test change nothing.

    Parameters
    ----------
    run
        The loop.

    Attributes
    ----------
    launched
        How many iterations there were.
    """

    def __init__(self, run: Repetition) -> None:
        self.run = run
        self.launched = 0
        self._count = 1
        self._most = self._most_ahead()
        self._replay: Callable[[], None] | None = None
        self._arrays: list[
            list[DeviceArray]
        ] = []  # the arrays at the start of each iteration; a recording reuses the same
        self._numbers: list[dict[Node, int]] = []

    def _most_ahead(self) -> int:
        """Return how many iterations a block has at most: library calls in them also run after the last iteration."""
        called = self.run.frame.called + self.run.tests.called
        return max(1, min(MOST_AHEAD, int(LOOKING / called))) if called else MOST_AHEAD

    def launch(self) -> None:
        """Launch the next block."""
        numbers = self._numbers = self._known(self._count)
        if len(numbers) <= self._count:
            self._count, self._replay = len(numbers) - 1, None
        if self._replay is None:
            self._arrays.clear()
            for known in numbers[: self._count]:
                self.run.known.update(known)
                self.run.fill()
                self._iterate()
            self.run.known.update(numbers[self._count])
        else:
            for _ in range(self._count // len(self._arrays)):
                self._replay()
        self.launched += self._count

    def _iterate(self) -> None:
        self._arrays.append([slot.array for slot in self.run.given])
        self.run.tests()
        self.run.launch()

    def _known(self, count: int) -> list[dict[Node, int]]:
        """Return the integers on the host at the start of each of ``count`` iterations and after them, or of as many as can be computed."""
        found = [dict(self.run.known)]
        with np.errstate(all="ignore"):
            for _ in range(count):
                try:
                    self.run.count_on()
                except ArithmeticError:  # they may not be computable after the last iteration
                    if len(found) == 1:
                        raise
                    break
                found.append(dict(self.run.known))
        return found

    def longer(self) -> None:
        """Make the next block longer, or recorded."""
        if self._replay is not None:
            return
        if self._count < self._most:
            self._count *= 2
        elif unit := self.run.unit(2 * MOST_AHEAD):
            self._arrays.clear()
            self._replay = self.run.recorded(unit, self._iterate)
            if self._replay is not None:
                self._count = unit * math.ceil(self._most / unit)

    def back(self, done: int) -> None:
        """Restore the loop to the start of the iteration with this number, which is in the last block."""
        place = done - (self.launched - self._count)
        arrays = self._arrays[place % len(self._arrays)]
        for slot, array in zip(self.run.given, arrays, strict=True):
            slot.array = array
        self.run.known.update(self._numbers[place])
