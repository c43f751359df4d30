"""Choose the steps of a plan that run concurrently on several threads, and the order of the others. Runs nothing, prints nothing.

A step is *handed out* to another thread where it takes long, releases the interpreter's lock, has no threads of its
own, and another long step can run before its result is needed. Dependencies are those of the block's order
(`Block.before`), in which values that share memory have their order, too.
"""

from __future__ import annotations

import heapq
import os
from collections import deque
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from graphlib import TopologicalSorter
from typing import Any

from tensormagic.backend.planning.schedule import Kernel, Nest, Step
from tensormagic.backend.planning.shared_arrays import Memory
from tensormagic.backend.planning.steps import Block, Check, Region, produced
from tensormagic.backend.planning.work_counts import work_of
from tensormagic.backend.printing.kernel_text import Printed
from tensormagic.backend.printing.ledger import is_view
from tensormagic.config import processors
from tensormagic.ir.graph import Graph
from tensormagic.ir.node import Node
from tensormagic.ir.size import Size, nodes_of
from tensormagic.ops.contract import CONTRACT
from tensormagic.ops.effects.telling import EFFECTS

EIGHTH = 125  # picoseconds of an eighth of an operation in a kernel
MOST = 64  # steps that are handed out and not yet needed
_least = 500_000_000  # picoseconds from which a step is handed out, ten times the cost of doing so


def least() -> int:
    """Return the picoseconds from which a step counts as long."""
    return _least


@dataclass(frozen=True)
class Order:
    """An order of steps.

    Parameters
    ----------
    steps
        Their numbers.
    handed
        Those that are handed to other threads.
    """

    steps: tuple[int, ...]
    handed: frozenset[int]


class Overlap:
    """The steps of a plan that may run concurrently.

    Parameters
    ----------
    graph, block, memory, steps, printed
        What is run, see :class:`~tensormagic.backend.printing.plan_walk.Walk`.

    Attributes
    ----------
    possible
        Whether anything may: there are no effects, no data-dependent sizes, and no store into the caller's arrays.
    numbers
        The numbers of the kernels.
    """

    def __init__(
        self, graph: Graph, block: Block, memory: Memory, steps: Sequence[Step], printed: Sequence[Printed]
    ) -> None:
        self.steps = steps
        kernels = [s for s in steps if isinstance(s, Kernel)]
        self.numbers = {kernel: k for k, kernel in enumerate(kernels)}
        self._printed = dict(zip(kernels, printed, strict=True))
        self._made = [produced(p) for step in steps for p in (step.steps if isinstance(step, Kernel) else [step])]
        self.possible = (
            len(steps) > 1
            and graph.ops.isdisjoint(EFFECTS)
            and not any(nodes_of(s) for made in self._made for n in made for t in n.types for s in t.shape)
            and not any(memory.owner(n) in graph.parameters for made in self._made for n in made)
        )
        self._block = block

    @cached_property
    def before(self) -> list[set[int]]:
        """Return for each step the numbers of the steps it depends on."""
        number = {
            p: k for k, step in enumerate(self.steps) for p in (step.steps if isinstance(step, Kernel) else [step])
        }
        found: list[set[int]] = [set() for _ in self.steps]
        for part, k in number.items():
            found[k].update(number[other] for other in self._block.before[part] if number[other] != k)
        return found

    @cached_property
    def efforts(self) -> list[Size]:
        """Return for each step about how many picoseconds it takes."""
        return [self._effort(step) for step in self.steps]

    def _effort(self, step: Step) -> Size:
        if isinstance(step, Kernel):
            return EIGHTH * sum((work_of(s) for s in step.steps if not isinstance(s, Check)), 0)
        return 0 if is_view(step) else step.op.effort(step)

    @cached_property
    def fit(self) -> list[bool]:
        """Return which steps could be handed out."""
        return [self._is_fit(step) for step in self.steps]

    def _is_fit(self, step: Step) -> bool:
        if isinstance(step, Kernel):
            return bool(step.regions) or not self._shares(step)
        return self._effort(step) != 0 and not any(t.form == "tape" for n in (step, *step.args) for t in n.types)

    def _shares(self, kernel: Kernel) -> bool:
        return any(e.kind == "threads" for e in self._printed[kernel].entries)

    @cached_property
    def nests(self) -> list[list[Size]]:
        """Return for each step the work of each of its loops that threads may share."""
        return [
            [] if isinstance(step, Node) or not self._shares(step) else [w for p in step.parts for w in _nests(p)]
            for step in self.steps
        ]

    @cached_property
    def gate(self) -> Size:
        """Return the total effort of steps that could be handed out; 0 if nothing can run concurrently, or efforts are data-dependent."""
        if not self.possible or any(map(nodes_of, self.efforts)) or self.order([1] * len(self.steps), least=1) is None:
            return 0
        return sum((e for e, fit in zip(self.efforts, self.fit, strict=True) if fit), 0)

    def order(
        self, efforts: Sequence[int], *, unfit: Collection[Step] = (), blas: bool = False, least: int
    ) -> Order | None:
        """Return the order for known efforts, or None if no step is handed out.

        Parameters
        ----------
        efforts
            The effort of each step.
        unfit
            Steps that are not handed out for other reasons.
        blas
            Whether BLAS has threads of its own: its calls are not handed out.
        least
            The effort from which a step counts as long.
        """
        heavy = [e >= least for e in efforts]
        if sum(heavy) < 2:
            return None
        handable = [
            long and fit and step not in unfit and not (blas and uses_blas(step))
            for long, fit, step in zip(heavy, self.fit, self.steps, strict=True)
        ]
        found = self._arranged(handable, heavy)
        handed = self._worth_it(found, handable, heavy)
        return Order(tuple(found), frozenset(handed)) if handed else None

    def _arranged(self, handable: Sequence[bool], heavy: Sequence[bool]) -> list[int]:
        """Return all steps in order: those handed out, short ones, the rest, and last those that depend on handed-out steps."""
        sorter = TopologicalSorter(dict(enumerate(self.before)))
        sorter.prepare()
        ready: list[tuple[int, int]] = []
        pending: deque[int] = deque()
        found: list[int] = []
        while sorter.is_active():
            for k in sorter.get_ready():
                heapq.heappush(ready, (0 if handable[k] else 1 + heavy[k], k))
            if not ready or len(pending) > MOST:
                sorter.done(pending.popleft())
                continue
            _, k = heapq.heappop(ready)
            found.append(k)
            if handable[k]:
                pending.append(k)
            else:
                sorter.done(k)
        return found

    def _worth_it(self, order: Sequence[int], handable: Sequence[bool], heavy: Sequence[bool]) -> list[int]:
        """Return the steps to hand out: those with a long step between themselves and their first reader."""
        place = {k: at for at, k in enumerate(order)}
        first = dict.fromkeys(order, len(order))
        for k, needed in enumerate(self.before):
            for other in needed:
                first[other] = min(first[other], place[k])
        return [k for k in order if handable[k] and any(heavy[m] for m in order[place[k] + 1 : first[k]])]

    def beside(self, order: Order, efforts: Sequence[int], *, least: int) -> list[list[int]]:
        """Return groups of long steps that run concurrently unless one has to wait."""
        place = {k: at for at, k in enumerate(order.steps)}
        groups: list[list[int]] = []
        for k in order.steps:
            if k not in order.handed:
                continue
            until = min((place[j] for j, needed in enumerate(self.before) if k in needed), default=len(place))
            group = [k, *(m for m in order.steps[place[k] + 1 : until] if efforts[m] >= least)]
            if not groups or not set(group) <= set(groups[-1]):
                groups.append(group)
        return groups


def _nests(part: Any) -> Iterator[Size]:
    """Yield the work of each nest of a kernel's part, including those in regions."""
    if isinstance(part, Nest):
        yield sum((work_of(s) for s in part.stages), 0)
    elif isinstance(part, Region):
        for block in part.blocks.values():
            for inner in block.parts:
                yield from _nests(inner)


def uses_blas(step: Step) -> bool:
    """Return whether NumPy calls BLAS or LAPACK for a step, which may have their own threads."""
    linear = isinstance(step, Node) and (step.op is CONTRACT or bool(step.op.cubed))
    return linear and isinstance(step, Node) and step.types[0].dtype.kind in "fc"


@cache
def _libraries() -> list[Any] | None:
    """Return the loaded linear algebra libraries, or None if that is not known."""
    try:
        from threadpoolctl import ThreadpoolController
    except ImportError:
        return None
    return list(ThreadpoolController().select(user_api="blas").lib_controllers)


def blas_threads() -> int:
    """Return the number of threads a BLAS call uses."""
    libraries = _libraries()
    if libraries is None:
        asked = [os.environ.get(name, "") for name in ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")]
        return next((int(number) for number in asked if number.isdecimal()), processors())
    return max((int(library.num_threads) for library in libraries), default=1)
