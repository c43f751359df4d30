"""Calls that Python runs faster than machine code, which Python therefore runs.

Python runs the first call of a kind where that gives the same result
(:mod:`~tensormagic.functions.calls.first_call`), so its time is known. Most captured code is much faster once it is
compiled; a loop that goes from library call to library call need not be.
"""

from __future__ import annotations

import math
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from tensormagic.config import config
from tensormagic.functions.calls import first_call
from tensormagic.functions.calls.program import Known
from tensormagic.functions.calls.quick_key import Seen, known_by

_RUNS = 3  # timed runs of machine code, of which the fastest counts
_AGAIN = 2  # further runs by Python, as its first one takes longer than others
_NEAR = 3  # up to this multiple of machine code's time, Python's first run may turn out faster
_LEAST = 1e-3  # seconds: the time of shorter calls is mostly overhead
_MUCH, _MORE = 1.1, 2e-4  # up to this multiple of Python's time, plus seconds, machine code counts as fast
_MOST = 128  # forms of calls whose times are kept


class Clock:
    """Elapsed time: the lesser of wall and CPU time, since another program or thread adds to one of them."""

    def __init__(self) -> None:
        self._wall, self._cpu = time.perf_counter(), time.process_time()

    @property
    def seconds(self) -> float:
        """Seconds until now."""
        return min(time.perf_counter() - self._wall, time.process_time() - self._cpu)


@dataclass(eq=False)
class _Race:
    """One form of calls, with the best times of Python and of machine code."""

    python: float
    machine: float = math.inf
    runs: int = 0  # runs of machine code
    again: int = 0  # runs by Python
    take_up: Callable[[], object] = lambda: None  # makes the program take calls of this form
    leave: Callable[[], object] = lambda: None  # makes calls of this form be examined again

    @property
    def is_pythons(self) -> bool:
        """Whether Python runs the next call."""
        near = self.runs == _RUNS and self.python < _NEAR * self.machine
        return near and (self.again < _AGAIN or self.machine > _MUCH * self.python + _MORE)


@dataclass(eq=False)
class Quicker:
    """Decides, for each form of calls that Python ran first, what runs further calls."""

    _races: OrderedDict[Any, _Race] = field(default_factory=OrderedDict[Any, _Race])
    _any: bool = False  # whether Python runs calls of any form

    def clear(self) -> None:
        """Forget all times."""
        self._races.clear()

    def is_pythons(self, args: tuple[Any, ...]) -> bool:
        """Return whether Python runs a call."""
        race = self._races.get(_form(args)) if self._any else None
        return race is not None and race.is_pythons

    def by_python(self, function: Any, args: tuple[Any, ...]) -> Any:
        """Return the result of a call run and timed in Python, or :data:`first.NOT` if captured code must be used."""
        form = _form(args)  # determined before the call, which may store into arrays
        clock: list[Clock] = []
        result = first_call.result_of(function, args, lambda: clock.append(Clock()))
        seconds = clock[-1].seconds if clock and result is not first_call.NOT else math.inf
        race = self._races.setdefault(form, _Race(seconds))
        if race.runs:
            race.python = seconds if seconds == math.inf else min(race.python, seconds)
            race.again += 1
            if not race.is_pythons:
                race.take_up()
        while len(self._races) > _MOST:
            self._races.popitem(last=False)
        return result

    def begin(self, known: Known, args: tuple[Any, ...], seen: Seen, key: Any) -> None:
        """Time the first runs of a program stored in ``seen`` under ``key``, if Python's time for such a call is known."""
        race = self._races.get(_form(args))
        if race is None or race.runs or not _LEAST <= race.python < math.inf:
            return
        race.take_up, race.leave = lambda: seen.update({key: known}), lambda: seen.drop(key)

        def run(values: Sequence[Any]) -> Any:
            compiled = config.tier == "auto" and known.program.program.tier_at_work == "numba"
            clock = Clock()
            result = Known.run(known, values)
            if compiled:
                race.machine = min(race.machine, clock.seconds)
                race.runs += 1
            if race.runs == _RUNS:
                del known.run
                if race.is_pythons:
                    self._any = True
                    race.leave()
            return result

        known.run = run


def _form(args: tuple[Any, ...]) -> tuple[Any, ...] | None:
    """Return the key of a call with such arrays and numbers (types, shapes, and integers), or None if it has none."""
    try:
        return known_by(None, args, {})[0]
    except (KeyError, TypeError):
        return None
