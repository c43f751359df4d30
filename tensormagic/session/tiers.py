"""The tiers on which a rewritten graph runs: which one runs next, and when it is compiled. Knows no values but those that it is given."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextvars import copy_context
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any

from tensormagic import residence
from tensormagic.backend.compiling import native
from tensormagic.backend.numpy_tier import reference
from tensormagic.backend.planning.fusion import fusing
from tensormagic.backend.planning.plan import Plan, plan_graph
from tensormagic.backend.running import flags, memory_limit
from tensormagic.capture import context
from tensormagic.capture.errors import floating
from tensormagic.capture.python import usercode
from tensormagic.config import config
from tensormagic.ir.errors import BoundsError, ShapeError, WideError
from tensormagic.ir.graph import Graph, Guard, check
from tensormagic.session import work
from tensormagic.transform.rewriting import Rewritten

WORTH_WARNING = 0.5  # seconds of NumPy's time that may be spent to find the line of a warning
SLOWER = {
    True: 200,
    False: 20,
}  # the assumed ratio of NumPy's time to that of compiled code, by whether there are loops
WORTH_COMPILING = 1e-3  # seconds of NumPy's time, in all runs together, above which a graph is compiled
PLANNING = 1e-4  # seconds that planning and printing take for each node: NumPy must have taken as long before

LONG = 0.1  # estimated seconds of NumPy's time from which on compilation starts along with the first run


@dataclass(eq=False)
class Executable:
    """A rewritten graph on its tiers: NumPy at once, compiled code as soon as it is ready.

    Parameters
    ----------
    rewritten
        The graph in normal form, and the log of its rewriting.
    device
        Where it runs: ``"cpu"``, ``"gpu"``, or ``"auto"``.
    nodes
        The number of nodes of the original graph.
    """

    rewritten: Rewritten
    device: str = "cpu"
    nodes: int = 0
    why: str = ""  # the reason for the last choice of a device
    spent: float = 0.0  # seconds of NumPy's time so far
    seconds: dict[str, float] = field(default_factory=dict)
    _reference: Callable[..., list[Any]] | None = None
    _plan: Plan | None = None
    _handle: native.Handle | None = None
    _native: Callable[..., list[Any]] | None = None
    _small: set[tuple[int, ...]] = field(default_factory=set[tuple[int, ...]])  # sizes of runs that need little memory
    _warned: int = -1  # the run of a cell for which warnings were last searched
    late: tuple[
        Guard, ...
    ] = ()  # relations of sizes that rewriting has found not to depend on data: no step checks them

    @property
    def graph(self) -> Graph:
        """The graph that runs."""
        return self.rewritten.graph

    @property
    def tier(self) -> str:
        """The tier that the next run takes."""
        if self.device != "cpu":
            return "gpu"
        if config.tier == "numpy":
            return "numpy"
        if self._handle is not None and self._handle.ready():
            return "numba"
        return config.tier if config.tier == "numba" else "numpy"

    @property
    def tier_at_work(self) -> str:
        """The tier that a run uses: ``"numba"``, ``"numpy"``, ``"gpu"``, or ``"compiler"`` if it waits for that."""
        if self.device != "cpu":
            return "gpu"
        if config.tier != "numpy" and self._native is not None:
            return "numba"
        waits = config.tier == "numba" and self._handle is not None and self._handle.state == "pending"
        return "compiler" if waits else "numpy"

    @property
    def plan(self) -> Plan:
        """The plan for compiling: kernels and steps.

        No lock: two threads may plan at once, which gives equal plans, and a forked child never waits for a missing
        thread.
        """
        if self._plan is None:
            with fusing(fused=self.rewritten.fused, rounds=self.rewritten.rounds):
                self._plan = plan_graph(self.graph)
        return self._plan

    def compile(self) -> native.Handle:
        """Start compiling, unless that has been done, and return the handle; planning happens on another thread if needed."""
        if self._handle is None:
            self._handle = native.start(self._plan or partial(copy_context().run, lambda: self.plan))
        return self._handle

    def resident(
        self, values: Sequence[Any], names: Sequence[str] = (), sites: residence.Sites = residence.at_call
    ) -> list[Any]:
        """Return the results of a run on the device, which stay there."""
        start = time.perf_counter()
        try:
            with work.working(self):
                return residence.run(self.graph, values, names, sites)
        finally:
            self.seconds["gpu"] = time.perf_counter() - start

    def is_for_device(self, sizes: dict[Any, int], values: Sequence[Any]) -> bool:
        """Return whether this run uses the device; if that is decided by sizes, ``why`` gives the reason."""
        if self.device == "auto":
            pays, self.why = residence.chosen(self.graph, sizes, values)
            return pays
        return self.device == "gpu"

    def run(self, sizes: dict[Any, int], *values: Any, names: Sequence[str] = ()) -> list[Any]:
        """Return the results on the host, by the tier that is ready; ``names`` are the user's names of the values."""
        if self.device != "cpu" and self.is_for_device(sizes, values):
            results = zip(self.resident(values, names), self.graph.results, strict=True)
            return [residence.hosted(value, node) for value, node in results]
        return self.here(sizes, *values)

    def here(self, sizes: dict[Any, int], *values: Any) -> list[Any]:
        """Return the results on the CPU, by the tier that is ready."""
        with work.working(self):
            return self._here(sizes, *values)

    def _here(self, sizes: dict[Any, int], *values: Any) -> list[Any]:
        try:
            if self.graph.is_wide:
                return self.by_numpy(sizes, *values)
            if self._native is not None and config.tier != "numpy":
                return self._by_machine(self._native, sizes, values)
            return self._slow(sizes, *values)
        except WideError:
            if self.tells or self.calls:
                raise
            return self.by_numpy(sizes, *values)
        except (ShapeError, BoundsError) as error:
            refused = reference.refusal(self.graph, sizes, values)
            if refused is not None:
                raise refused from error
            raise

    @cached_property
    def is_plain(self) -> bool:
        """Whether a run only computes, on the host, and checks nothing itself."""
        return self.device == "cpu" and not (self.late or self.graph.is_wide or self.tells or self.calls)

    def plainly(self, sizes: dict[Any, int], values: Sequence[Any]) -> list[Any] | None:
        """Return the results of machine code on the host, if that runs next and only computes, or None.

        None also if it fails: :meth:`run` then handles the failure.
        """
        machine = self._native
        if machine is None or config.tier == "numpy" or not self.is_plain:
            return None
        work.at_work.append((self, time.perf_counter()))
        try:
            return self._by_machine(machine, sizes, values)
        except Exception:  # noqa: BLE001 (met again)
            return None
        finally:
            work.at_work.pop()

    def into(self, sizes: dict[Any, int], values: Sequence[Any], arrays: Sequence[Any]) -> list[Any]:
        """Return the results, which share no memory with ``values``; machine code computes them in ``arrays``: one for each, or None."""
        machine: Any = self._ready()
        if machine is not None and self.is_plain:
            work.at_work.append((self, time.perf_counter()))
            try:
                return self._by_machine(partial(machine.given(), into=arrays), sizes, values)
            except Exception:  # noqa: BLE001, S110 (met again)
                pass
            finally:
                work.at_work.pop()
        return self.run(sizes, *values)

    def bound(self, sizes: dict[Any, int]) -> Callable[[Sequence[Any]], list[Any] | None] | None:
        """Return :meth:`plainly` for these sizes, with all lookups done, or None if there is no such function yet."""
        machine: Any = self._native
        run = machine.bind(sizes) if machine is not None and self.is_plain else None
        return None if run is None else self._bound(run, sizes)

    def _bound(
        self, run: Callable[..., list[Any]], sizes: dict[Any, int]
    ) -> Callable[[Sequence[Any]], list[Any] | None]:
        now, clear, suspicious, cells = time.perf_counter, flags.clear, flags.suspicious, usercode.cells
        begin, done = work.at_work.append, work.at_work.pop

        def bound(values: Sequence[Any]) -> list[Any] | None:
            if config.tier == "numpy":
                return None
            begin((self, start := now()))
            try:
                if not cells:
                    return run(*values)
                clear()
                results = run(*values)
                elapsed = now() - start
                if suspicious(results):
                    self._warn_again(elapsed, sizes, values)
            except Exception:  # noqa: BLE001 (met again)
                return None
            finally:
                done()
            return results

        return bound

    def by_numpy(self, sizes: dict[Any, int], *values: Any) -> list[Any]:
        """Return the results by NumPy; floating-point errors are raised or warned of as ``np.errstate`` says."""
        self._fit(sizes)
        self._afford(sizes)
        if self._reference is None:
            self._reference = reference.compile(self.graph)
        with floating.watched() as results:
            results.extend(reference.owned(self._reference(sizes, *values), values))
        return results

    def _afford(self, sizes: dict[Any, int]) -> None:
        """Raise for a NumPy run that needs more memory than there is; sizes that need little are remembered."""
        key = tuple(sizes.values())
        if key in self._small:
            return
        needed, largest = memory_limit.least_by_numpy(self.graph, sizes)
        if needed > memory_limit.GATE:
            memory_limit.afford(needed, largest)
        else:
            self._small.add(key)

    def _fit(self, sizes: dict[Any, int]) -> None:
        for guard in self.late:
            check(guard, sizes.__getitem__)

    def _by_machine(self, run: Callable[..., list[Any]], sizes: dict[Any, int], values: Sequence[Any]) -> list[Any]:
        """Return the results by machine code, which does not tell where a number stopped being finite."""
        self._fit(sizes)
        flags.clear()
        start = time.perf_counter()
        try:
            results = run(sizes, *values)
        except Exception as error:
            self._name(error, time.perf_counter() - start, sizes, values)
            raise
        elapsed = self.seconds["numba"] = time.perf_counter() - start
        if usercode.cells and flags.suspicious(results):
            self._warn_again(elapsed, sizes, values)
        return results

    def _name(self, error: Exception, elapsed: float, sizes: dict[Any, int], values: Sequence[Any]) -> None:
        """Find the node of a machine code error by running NumPy, if that is quick."""
        if (
            self._is_quick(elapsed)
            and not self.tells
            and not self.calls
            and not isinstance(error, MemoryError | WideError)
        ):
            try:
                self.by_numpy(sizes, *values)
            except Exception as again:  # noqa: BLE001 (looked at)
                if str(again) == str(error):
                    error.tensor_node = getattr(again, "tensor_node", None)  # type: ignore[attr-defined]

    def _is_quick(self, elapsed: float) -> bool:
        """Return whether a NumPy run is quick after machine code took ``elapsed`` seconds, which a busy machine prolongs, too."""
        loops = any(n.op.kind == "region" for n in self.graph.nodes)
        return self.seconds.get("numpy", elapsed * SLOWER[loops]) < WORTH_WARNING

    def _warn_again(self, elapsed: float, sizes: dict[Any, int], values: Sequence[Any]) -> None:
        """Show NumPy's warnings by a second run in NumPy: once for each run of a cell, if that is quick."""
        run = usercode.newest_run()
        if run != self._warned and self._is_quick(elapsed) and not self.tells and not self.calls:
            self._warned = run
            self.by_numpy(sizes, *values)

    @cached_property
    def tells(self) -> bool:
        """Whether running it prints."""
        return "tell" in self.graph.ops  # a run that prints must not be repeated

    @cached_property
    def calls(self) -> bool:
        """Whether a run calls functions that are not captured, such as those of Numba and C."""
        return "outside" in self.graph.ops

    def _ready(self) -> Callable[..., list[Any]] | None:
        """Return the machine code if it may run, or None; wait for it if nothing else may run."""
        if self._native is None and config.tier != "numpy":
            handle = self.compile() if config.tier == "numba" else self._handle
            if config.tier == "numba" and handle is not None:
                handle.wait()
            if handle is not None and handle.ready():
                self._native = handle.run
        return None if config.tier == "numpy" else self._native

    def _slow(self, sizes: dict[Any, int], *values: Any) -> list[Any]:
        machine = self._ready()
        if machine is not None:
            return self._by_machine(machine, sizes, values)
        handle = self._handle
        runs_once = context.is_driven()
        if (
            config.tier == "auto"
            and handle is None
            and not runs_once
            and reference.least_seconds(self.graph, sizes, values) > LONG
        ):
            self.compile()  # runs along with the first run
        start = time.perf_counter()
        results = self.by_numpy(sizes, *values)
        elapsed = time.perf_counter() - start
        self.seconds["numpy"] = elapsed
        self.spent += elapsed
        if (
            config.tier == "auto"
            and not runs_once
            and self.spent > max(WORTH_COMPILING, PLANNING * len(self.graph.nodes))
        ):
            self.compile()
        return results
