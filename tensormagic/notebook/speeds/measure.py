"""Measure speed, memory and accuracy of a cell: in plain NumPy, captured, and by other packages on request.

Displaying the results is done elsewhere.
"""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Callable, Generator
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass, replace
from io import StringIO
from typing import Any

import numpy as np

from tensormagic.backend.compiling import native
from tensormagic.backend.cuda.device import is_there
from tensormagic.backend.planning import costs
from tensormagic.backend.planning.costs import Cost
from tensormagic.backend.planning.plan import Plan
from tensormagic.backend.planning.schedule import Kernel
from tensormagic.backend.printing.parallel_steps import at_once
from tensormagic.backend.running.buffers import pool
from tensormagic.config import config
from tensormagic.notebook.cells.outcome import Outcome
from tensormagic.notebook.cells.run import plain
from tensormagic.notebook.pictures.adaptor import Portrait
from tensormagic.notebook.pictures.labels import symbol
from tensormagic.notebook.speeds import against, machine
from tensormagic.notebook.speeds.by_numpy import beside, copies, difference, in_numpy, longer, wanted
from tensormagic.notebook.speeds.machine import Machine
from tensormagic.notebook.speeds.on_device import COPIES, THERE, OnDevice
from tensormagic.notebook.speeds.profiled import Profile, profiled
from tensormagic.session import Executable

_SECONDS = 0.3  # spent on each party, about
_RUNS = 200
_PROFILED = 3  # runs that are followed line by line, of a cell that is quickly done:
_QUICKLY = 0.3  # seconds that they take together
_BATCHES = 7  # of runs, as %%timeit has them
_FAR = 1e-9
_WIDE_SPREAD = 0.5  # a relative spread from which means tell nothing
_DISTURBED = (
    2.0  # how many times the fastest run a mean may be: all may have been disturbed alike, which no spread tells
)
_QUICK = 1.0  # seconds of NumPy's time from which longer floats, which take some ten times that, are not tried


@dataclass(frozen=True)
class Party:
    """One competitor that ran the cell, with its measurements.

    Parameters
    ----------
    name
        ``"NumPy"``, ``"tensormagic"``, or another package.
    how
        The mode: the tier, or that it compiles.
    first
        Seconds to the first result; for ``tensormagic`` those of this run of the cell, with gradients.
    compiling, call
        Seconds of compiling, and of the fastest run; None if nothing was compiled, or run.
    memory
        The peak of allocated bytes in a run; None if that cannot be measured.
    launched
        The kernels and calls that a run starts, in words.
    error
        The largest difference from the value at higher precision, relative to the largest number; None if there is
        none.
    apart
        The same difference from NumPy's result.
    refused
        Why the cell was not run.
    mean, spread, batches, runs
        Of the runs after the first: their mean, the standard deviation of the batch means, the numbers of batches and
        of runs in each.
    idle
        Whether a run has nothing to compute.
    """

    name: str
    how: str = ""
    first: float | None = None
    compiling: float | None = None
    call: float | None = None
    memory: int | None = None
    launched: str = ""
    error: float | None = None
    apart: float | None = None
    refused: str = ""
    mean: float | None = None
    spread: float = 0.0
    batches: int = 0
    runs: int = 0
    idle: bool = False

    @property
    def usual(self) -> float | None:
        """Return the time of a run, as ``%%timeit`` would tell it; the fastest where the mean is not known."""
        return self.call if self.mean is None else self.mean


@dataclass(frozen=True)
class Speed:
    """The measurements of a cell.

    Parameters
    ----------
    parties
        NumPy, tensormagic, and the others.
    by_numpy, by_plan
        The cost of the captured cell in NumPy, and that of the plan.
    machine
        The limits of one core.
    lines
        The time of each line in plain NumPy.
    digits
        The mantissa bits of the reference for ``error``; 0 if nothing is more accurate than the cell itself.
    at_once
        Which kernels and calls of NumPy run at the same time, in groups.
    inputs
        The arrays that the cell reads, with their types.
    """

    parties: tuple[Party, ...]
    by_numpy: Cost
    by_plan: Cost
    machine: Machine
    lines: Profile
    digits: int
    at_once: tuple[tuple[str, ...], ...] = ()
    inputs: tuple[str, ...] = ()

    @property
    def numpy(self) -> Party:
        """Return the measurements of plain NumPy."""
        return self.parties[0]

    @property
    def own(self) -> Party:
        """Return the measurements of the captured program."""
        return self.parties[1]

    @property
    def doubt(self) -> float:
        """Return the error below which errors cannot be told from zero: longer floats round as NumPy does, 11 bits later.

        Four bits are left for sums that are rounded in another way.
        """
        return (
            (self.numpy.error or 0.0) * 2.0 ** -(self.digits - np.finfo(np.float64).nmant - 4) if self.digits else 0.0
        )

    @property
    def varies(self) -> bool:
        """Return whether the runs vary so much that only the fastest ones tell anything, as on a machine that does other work."""
        far = any(p.call and p.mean and p.mean > _DISTURBED * p.call for p in (self.numpy, self.own))
        return far or self.doubtful > _WIDE_SPREAD

    def run(self, party: Party) -> float:
        """Return the seconds of a run that are compared and drawn: the usual ones, or the fastest where the runs vary."""
        return (party.call if self.varies and party.call else party.usual) or 0.0

    def times_faster(self, party: Party) -> float:
        """Return how many times faster than NumPy a run of a party is."""
        return self.run(self.numpy) / (self.run(party) or 1.0)

    @property
    def doubtful(self) -> float:
        """Return how uncertain the ratio of the means is, relative to it, by the spreads of both."""
        both = [p.spread / p.mean for p in (self.numpy, self.own) if p.mean]
        return float(np.hypot.reduce(both)) if both else 0.0

    @property
    def is_done(self) -> bool:
        """Return whether a run of the captured graph has nothing to compute."""
        return self.own.idle

    @property
    def pays_after(self) -> int | None:
        """Return the number of runs after which compiling has paid, or None for never."""
        saved = self.run(self.numpy) - self.run(self.own)
        return int((self.own.compiling or 0.0) / saved) + 1 if saved > 0 else None


@dataclass(frozen=True)
class Times:
    """Seconds of the first run and of the fastest; the mean, deviation and number of runs after the first.

    As in ``%%timeit``, runs are timed in batches, and the deviation is that of the batches' means.
    """

    first: float
    fastest: float
    mean: float
    spread: float
    batches: int
    runs: int

    def of(self, party: Party) -> Party:
        """Return a party with these times of its runs."""
        counted = {"batches": self.batches, "runs": self.runs}
        return replace(party, call=self.fastest, mean=self.mean, spread=self.spread, **counted)


def run_times(action: Callable[[Any], Any], prepare: Callable[[], Any]) -> Times:
    """Return the times of the runs of an action, at least three; ``prepare`` is not counted."""
    times: list[float] = []
    while len(times) < 3 or (sum(times) < _SECONDS and len(times) < _RUNS):
        given = prepare()
        begin = time.perf_counter()
        action(given)
        times.append(time.perf_counter() - begin)
    count = min(_BATCHES, len(times) - 1)
    each = (len(times) - 1) // count
    means = np.asarray(times[len(times) - count * each :]).reshape(count, each).mean(axis=1)
    return Times(times[0], min(times), float(means.mean()), float(means.std()), count, each)


@contextmanager
def _watched() -> Generator[list[int]]:
    """Yield a list that receives the peak of bytes allocated within the context; arrays of NumPy are counted."""
    found: list[int] = []
    own = not tracemalloc.is_tracing()
    if own:
        tracemalloc.start()
    try:
        tracemalloc.reset_peak()
        before, _ = tracemalloc.get_traced_memory()
        yield found
        found.append(max(0, tracemalloc.get_traced_memory()[1] - before))
    finally:
        if own:
            tracemalloc.stop()


def measure(outcome: Outcome, shown: Portrait) -> Speed:
    """Run the cell with NumPy, tensormagic and the other packages.

    Parameters
    ----------
    outcome
        The captured run; its options name the other packages.
    shown
        The graph behind it.
    """
    begin = time.perf_counter()
    expected = in_numpy(outcome)[0]
    quick = time.perf_counter() - begin < _QUICK
    truth = _truth(outcome, shown, expected) if quick else None
    parties = [_numpy(outcome, shown, expected, truth), _captured(outcome, shown, expected, truth)]
    parties += [_with_gradients(shown)] if outcome.gradients else []
    if outcome.options.device in {"gpu", "auto"} and is_there():
        parties[1] = replace(parties[1], first=None)
        parties += _on_device(outcome, shown, expected, truth)
    parties += [_other(name, outcome, expected, truth) for name in outcome.options.against]
    lines = _profile(outcome)
    return Speed(
        tuple(parties),
        costs.of_graph(shown.primal.nodes, shown.number),
        costs.total(costs.of_plan(shown.primal_executable.plan, shown.number)),
        machine.measured(),
        lines,
        int(np.finfo(np.longdouble).nmant) if truth is not None else 0,
        _at_once(shown) if parties[1].how == "compiled" else (),
    )


def _at_once(shown: Portrait) -> tuple[tuple[str, ...], ...]:
    """Return the names of steps that run at the same time, for the value and its gradients."""
    found: dict[tuple[str, ...], None] = {}
    for plan in dict.fromkeys([shown.primal_executable.plan, shown.executable.plan]):
        kernels = plan.driver.overlap.numbers
        for group in at_once(plan.driver.overlap, shown.number):
            names = [f"kernel {kernels[s] + 1}" if isinstance(s, Kernel) else symbol(s.op.name) for s in group]
            found[tuple(names)] = None
    return tuple(found)


def _truth(outcome: Outcome, shown: Portrait, expected: list[Any]) -> list[Any] | None:
    """Return the results at higher precision, or None if NumPy has no wider type for the cell, or it would decide nothing."""
    if np.finfo(np.longdouble).nmant <= np.finfo(np.float64).nmant:
        return None
    try:
        found = in_numpy(outcome, {n: longer(v) for n, v in outcome.notebook.items()})[0]
    except Exception:  # noqa: BLE001 (linear algebra and transforms have no long double)
        return None
    kinds = [(np.asarray(a).dtype, np.asarray(b).dtype) for a, b in zip(found, expected, strict=True)]
    if any(b.kind in "fc" and a.itemsize <= max(b.itemsize, 8) for a, b in kinds):
        return None
    with np.errstate(all="ignore"):
        own = shown.primal_executable.by_numpy(shown.sizes, *shown.values)
    lost = max(difference(own, expected), difference(expected, own)) > _FAR >= difference(expected, found)
    return None if lost else found  # longer floats that agree with NumPy alone may have lost the same digits


def _numpy(outcome: Outcome, shown: Portrait, expected: list[Any], truth: list[Any] | None) -> Party:
    """Measure plain NumPy."""
    code, notebook, kept = outcome.code, outcome.notebook, outcome.kept

    def prepared() -> dict[str, Any]:
        if kept is not None:
            kept.restore()
        return copies(code, notebook)

    with beside(outcome):
        times = run_times(lambda space: plain(code, space), prepared)
        space = prepared()
        with _watched() as memory:
            plain(code, space)
    error = None if truth is None else difference(expected, truth)
    count = f"{shown.ops} op{'s' * (shown.ops != 1)}"
    return times.of(Party("NumPy", "the cell as it is", times.first, None, None, memory[0], count, error, 0.0))


def _profile(outcome: Outcome) -> Profile:
    """Return one more run by plain NumPy, followed line by line: of a cell that is quickly done the fastest of some."""
    code, kept = outcome.code, outcome.kept
    found: list[Profile] = []
    with beside(outcome):
        while not found or (len(found) < _PROFILED and sum(p.seconds for p in found) < _QUICKLY):
            if kept is not None:
                kept.restore()
            space = copies(code, outcome.notebook)
            found.append(profiled(code.filename, lambda: plain(code, space)))  # noqa: B023 (run at once)
    return min(found, key=lambda p: p.seconds)


def _captured(outcome: Outcome, shown: Portrait, expected: list[Any], truth: list[Any] | None) -> Party:
    """Measure the captured program, on the best tier available."""
    party, results = _own(shown.primal_executable, shown)
    error = None if truth is None else difference(results, truth)
    return replace(party, first=outcome.seconds, error=error, apart=difference(results, expected))


def _own(program: Executable, shown: Portrait) -> tuple[Party, list[Any]]:
    """Return a graph of ours, run."""
    values, sizes = shown.values, shown.sizes
    if config.tier != "numpy":
        program.compile().wait()
    compiled = program.tier == "numba"
    with np.errstate(all="ignore"), redirect_stdout(StringIO()):
        times = run_times(lambda _: program.run(sizes, *values), lambda: None)
        pool.clear()
        with _watched() as memory:
            results = program.run(sizes, *values)
    compiling = _compile_seconds(program.plan) if compiled else None
    ops = sum(bool(node.args) for node in program.graph.nodes)
    launched = launches(program.plan) if compiled else f"{ops} op{'s' * (ops != 1)}"
    how, idle = "compiled" if compiled else "on NumPy", not (program.plan.steps if compiled else ops)
    return times.of(Party("tensormagic", how, None, compiling, None, memory[0], launched, idle=idle)), results


def _with_gradients(shown: Portrait) -> Party:
    """Return the value and its gradients together, which NumPy alone has not."""
    party, _ = _own(shown.executable, shown)
    return replace(party, how="with gradients")


def _on_device(outcome: Outcome, shown: Portrait, expected: list[Any], truth: list[Any] | None) -> list[Party]:
    """Return the cell on the device: its data there, and copied."""
    own = OnDevice(shown)
    results = own.results(own.run)
    times = run_times(lambda _: own.run(), lambda: None)
    error = None if truth is None else difference(results, truth)
    apart = difference(results, expected)
    there = Party("tensormagic", THERE, outcome.seconds, None, None, None, own.launched, error, apart)
    copied = run_times(lambda _: own.with_copies(), lambda: None)
    return [times.of(there), copied.of(Party("tensormagic", COPIES))]


def _compile_seconds(plan: Plan) -> float | None:
    """Return the seconds that compiling the plan's kernels took, now or earlier, or None where the cache lacks any of them."""
    known = native.codes(plan.sources)  # what has just been compiled may not be kept yet
    return sum(code.seconds for code in known.values()) if len(known) == len(set(plan.sources)) else None


def launches(plan: Plan) -> str:
    """Return the kernels and calls of NumPy that a run starts, where no loop is Python's."""
    kernels = sum(isinstance(step, Kernel) for step in plan.steps)
    calls = len(plan.steps) - kernels
    parts = [f"{kernels} kernel{'s' * (kernels != 1)}"] if kernels or not calls else []
    parts += [f"{calls} NumPy call{'s' * (calls != 1)}"] if calls else []
    return " + ".join(parts)


def _other(name: str, outcome: Outcome, expected: list[Any], truth: list[Any] | None) -> Party:
    """Measure another package."""
    with beside(outcome):
        space = copies(outcome.code, outcome.notebook)
        ran = against.run(name, outcome.code, space, lambda result, own: wanted(outcome, result, own))
        if ran.call is None:
            return Party(ran.peer.name, refused=ran.refused)
        action = ran.call
        times = run_times(lambda _: action(), lambda: None)
    results = list(ran.results)
    error = None if truth is None else difference(results, truth)
    apart = difference(results, expected) if len(results) == len(expected) else None
    compiling = max(ran.first - times.fastest, 0.0) if ran.compiles else None  # some compile at the first run
    return times.of(Party(ran.peer.name, "", ran.first, compiling, None, None, "", error, apart))
