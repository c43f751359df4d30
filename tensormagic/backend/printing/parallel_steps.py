"""Print the function of a plan whose steps run in parallel, and choose it by sizes. Knows threads only through their tasks."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cache
from typing import Any

from tensormagic.backend.planning.overlap import Order, Overlap, blas_threads, least
from tensormagic.backend.planning.schedule import Step
from tensormagic.backend.printing.driver import Driver
from tensormagic.backend.running import threads
from tensormagic.backend.running.memory_limit import GATE
from tensormagic.backend.running.runtime import IDLE
from tensormagic.backend.running.tasks import with_team
from tensormagic.config import config
from tensormagic.ir.node import Node
from tensormagic.ir.size import Size, evaluate

MOST_SIZES = 256  # for which the order is kept


class Beside(Driver):
    """The text of a plan's ``run`` in another order, with some steps run by other threads: ``run(begin, wait, sizes, *values)``.

    The operands and results of such a step keep their variables until it has been waited for; if the run has failed
    before, its function still holds them.
    """

    def __init__(self, *given: Any, order: Order, **more: Any) -> None:
        self.order = order
        self.at = 0  # the step that is printed
        self.open: dict[
            int, tuple[str, Sequence[str]]
        ] = {}  # what was handed out: the name of its value, the lines behind it
        super().__init__(*given, **more)

    def _print(self) -> None:
        left = {node: len(users) for node, users in self.uses.items()}
        used: dict[int, list[Node]] = {}
        for node, users in self.uses.items():
            for number in users:
                used.setdefault(number, []).append(node)

        def ended(number: int) -> None:
            gone: list[Node] = []
            for node in used.get(number, ()):
                left[node] -= 1
                gone += [] if left[node] else [node]
            self.ledger.done()
            self._bury(gone)

        def join(number: int) -> None:
            name, after = self.open.pop(number)
            self.lines += [f"{name}wait(task{number})", *after]
            ended(number)

        for number in self.order.steps:
            for other in sorted(self.overlap.before[number] & self.open.keys()):
                join(other)
            self.at = number
            self._faults = f"fault_{number}"
            self._print_step(number)
            if number not in self.open:
                ended(number)
        for number in sorted(self.open):
            join(number)
        self._print_results()
        self.ledger.done()

    def _print_call(self, call: str, name: str = "") -> None:
        if self.at not in self.order.handed:
            super()._print_call(call, name)
            return
        self.lines.append(f"task{self.at} = begin(lambda: {call})")
        self.open[self.at] = (f"{name} = " if name else "", ())

    def _launch(self, number: int, items: Sequence[str], after: Sequence[str]) -> None:
        handed = self.at in self.order.handed
        super()._launch(number, items, () if handed else after)
        if handed:
            self.open[self.at] = ("", after)

    def _local(self, name: str) -> str:
        return f"{name}_{self.at}"

    @property
    def source(self) -> str:
        """Return the text of ``run``."""
        need = self._need()
        lines = [f"if (need := {need}) > {GATE}: afford(need, largest)"] if need else []
        lines += [*self._checks(), "flag = flag or idle"]
        lines += [f"threads, hands = team({self.size(self.work)})"] if self._shares() else []
        lines = [*self._numbers(), *lines, *self.lines]
        head = f"def run(begin, wait, sizes, {''.join(f'{p}, ' for p in self.parameters)}flag=0):\n"
        return head + "".join(f"    {line}\n" for line in lines)


class Together:
    """Runs steps of a plan concurrently, if that pays for the sizes of a run.

    Parameters
    ----------
    overlap
        What may run at the same time.
    failed
        Numbers of kernels that NumPy computes.
    compiled
        The function for an order of the steps.
    """

    def __init__(
        self, overlap: Overlap, failed: Collection[int], compiled: Callable[[Order], Callable[..., Any]]
    ) -> None:
        self._overlap = overlap
        self._failed = failed
        self._compiled = cache(compiled)
        self._known: dict[Any, Callable[..., list[Any]] | None] = {}
        self.failures = 0  # runs that were done again, one step after the other

    def __call__(self, sizes: Mapping[Any, int], values: Sequence[Any], flag: int) -> list[Any] | None:
        """Return the results, or None if steps should run sequentially, or one has failed."""
        if config.threads == 1:
            return None
        key = (*sizes.values(), blas := blas_threads() > 1, least())
        if key in self._known:
            run = self._known[key]
        else:
            order = order_for(
                self._overlap, lambda size: evaluate(size, sizes.__getitem__), blas=blas, failed=self._failed
            )
            run = None if order is None else self._compiled(order)
            if len(self._known) >= MOST_SIZES:
                self._known.clear()
            self._known[key] = run
        if run is None:
            return None
        try:
            return with_team(lambda team: run(team.begin, team.wait, sizes, *values, flag=flag), waits=flag != IDLE)
        except Exception:  # noqa: BLE001 (met again, in the order of the program)
            self.failures += 1
            return None


def order_for(
    overlap: Overlap, number: Callable[[Size], int], *, blas: bool, failed: Collection[int] = ()
) -> Order | None:
    """Return the order of steps for known sizes, None if no step is handed to another thread; kernels in ``failed`` are NumPy's."""
    unfit: set[Step] = {s for s, k in overlap.numbers.items() if k in failed}
    for step, works in zip(overlap.steps, overlap.nests, strict=True):
        if any(number(w) >= threads.least() for w in works):
            unfit.add(step)  # it has all threads
    return overlap.order([number(e) for e in overlap.efforts], unfit=unfit, blas=blas, least=least())


def at_once(overlap: Overlap, number: Callable[[Size], int]) -> list[list[Step]]:
    """Return groups of steps that run concurrently, or an empty list with one thread."""
    if config.threads == 1 or not overlap.gate or number(overlap.gate) <= least():
        return []
    order = order_for(overlap, number, blas=blas_threads() > 1)
    if order is None:
        return []
    groups = overlap.beside(order, [number(e) for e in overlap.efforts], least=least())
    return [[overlap.steps[k] for k in group] for group in groups]
