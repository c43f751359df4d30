"""The progress of a thread's computation, for another thread that displays it. It changes nothing in the computation."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from tensormagic.backend.running.runtime import Flag, stoppable
from tensormagic.ops.regions.loops import turning
from tensormagic.session import work
from tensormagic.session.tiers import Executable

LONG = 1.0  # seconds of an earlier run, from which on progress is estimated from the elapsed time

_TIERS = {"numpy": "by NumPy", "numba": "by compiled code"}


class Far(NamedTuple):
    """The progress of a computation: a text, the fraction done (-1 if unknown), and the seconds it has run."""

    words: str
    fraction: float
    seconds: float


@dataclass
class Doing:
    """A thread's current work, updated as it goes on.

    Parameters
    ----------
    work
        What runs or is being prepared, outermost first, each with its start time.
    loops
        The loops that Python runs, outermost first: iteration, and number of iterations.
    flags
        The flags of running machine code, innermost last.
    """

    work: list[tuple[Executable | work.Stage, float]]
    loops: list[list[int]]
    flags: list[Flag]

    @property
    def shown(self) -> tuple[Executable | work.Stage, float] | None:
        """The displayed part of the work, and its start time, or None if nothing is done."""
        work = list(self.work)
        return shown(work) if work else None

    def far(self) -> Far | None:
        """Return the progress, or None if nothing is done."""
        found = self.shown
        return None if found is None else self.far_with(*found)

    def far_with(self, what: Executable | work.Stage, since: float) -> Far:
        """Return the progress of the work ``what``, which started at ``since``."""
        elapsed = time.perf_counter() - since
        if isinstance(what, work.Counted):
            return Far(f"{what} · {elapsed:.0f} s", what.done / max(what.count, 1), elapsed)
        if not isinstance(what, Executable):
            return Far(f"{what} for {elapsed:.0f} s", -1.0, elapsed)
        tier = what.tier_at_work
        parts = [f"{'compiling' if tier == 'compiler' else 'computing'} for {elapsed:.0f} s"]
        iteration, expected, fraction = self._iteration(tier), what.seconds.get(tier, 0.0), -1.0
        if iteration is not None:
            done, count = iteration
            parts.append(f"iteration {done:,} of {count:,}" if count else f"iteration {done:,}")
            fraction = min(done / count, 1.0) if count else -1.0
        elif expected > LONG:
            parts.append(f"it took {expected:.0f} s before")
            fraction = min(elapsed / expected, 0.99)
        parts.append(_TIERS.get(tier, "by Numba"))
        return Far(" · ".join(parts), fraction, elapsed)

    def _iteration(self, tier: str) -> tuple[int, int] | None:
        """Return the iteration of the outermost loop and the number of iterations (0 if unknown), or None if there is no loop."""
        if tier not in _TIERS:
            return None
        for iteration, count in self.loops[:1]:
            return iteration, count
        asked = self.flags[-1:] if tier == "numba" else []
        return asked[0].iteration() if asked else None


def shown(doing: Sequence[tuple[Executable | work.Stage, float]]) -> tuple[Executable | work.Stage, float]:
    """Return what is displayed: the computation, else the outermost stage of preparation."""
    return next((one for one in doing if isinstance(one[0], Executable | work.Counted)), doing[0])


def doing() -> Doing:
    """Return the current work of this thread."""
    return Doing(work.own.work, turning.loops, stoppable.flags)


def background_thread() -> None:
    """Mark this thread as one that nobody waits for, so that its work is not displayed as the notebook's."""
    work.own.work = []
