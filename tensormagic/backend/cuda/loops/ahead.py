"""Iterations of a loop on data that are launched before the host knows of the test: how many, and where each of them began."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from tensormagic.backend.cuda.device import DeviceArray
from tensormagic.ir.node import Node

if TYPE_CHECKING:
    from tensormagic.backend.cuda.loops.looped import Repetition

MOST_AHEAD = 32  # iterations of a loop on data that are launched before the host looks
LOOKING = 1e-4  # seconds that the library may compute in vain behind the last iteration, rather than have the host look more often


class Ahead:
    """Blocks of iterations, of which those behind the last one change nothing.

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
        self._arrays: list[list[DeviceArray]] = []  # what each began with; a recording has the same in each iteration
        self._numbers: list[dict[Node, int]] = []

    def _most_ahead(self) -> int:
        """How many iterations a block has: what the library does in them is done behind the last one, too."""
        called = self.run.frame.called + self.run.tests.called
        return max(1, min(MOST_AHEAD, int(LOOKING / called))) if called else MOST_AHEAD

    def launch(self) -> None:
        """The next block."""
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
        """The integers that the host has, as each of so many iterations begins with them, and the one behind; fewer where they end."""
        found = [dict(self.run.known)]
        with np.errstate(all="ignore"):
            for _ in range(count):
                try:
                    self.run.count_on()
                except ArithmeticError:  # behind the last iteration there may be none
                    if len(found) == 1:
                        raise
                    break
                found.append(dict(self.run.known))
        return found

    def longer(self) -> None:
        """Have the next block be longer, or recorded."""
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
        """Have the loop be where the iteration of this number began, which is one of the last block."""
        place = done - (self.launched - self._count)
        arrays = self._arrays[place % len(self._arrays)]
        for slot, array in zip(self.run.given, arrays, strict=True):
            slot.array = array
        self.run.known.update(self._numbers[place])
