"""The estimated time of a call over workers, by a cost model: what runs where, what moves, and how many workers are worthwhile.

The figures are of one machine (`benchmarks/results/distribute.md` says how they were measured); the counts are those
of the plans.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from tensormagic import session
from tensormagic.backend.planning import costs
from tensormagic.distributed.report import Tables, in_bytes, page_of, text_of
from tensormagic.distributed.stages import Split, Stage
from tensormagic.ir.node import Node
from tensormagic.ir.size import Size, Symbol, evaluate
from tensormagic.ir.substituting import substitute
from tensormagic.ops.leaf import constant_value
from tensormagic.ops.regions.loops import LOOP

FLOP = 1.2e-10  # seconds of one core for a floating-point operation of compiled code
BYTE = 1e-10  # seconds for each byte that is read or written
TASK = 1.2e-3  # seconds of scheduler and client for each task, one after the other
OWN_TASK = 1.9e-3  # seconds of a worker for each task, besides its computation
TRIP = 1e-2  # seconds from the last task of a stage to its result at the client
LINK = 1e9  # bytes per second between two workers
MOST = 1 << 20  # the largest number of workers considered


@dataclass(frozen=True)
class StageCost:
    """The cost of one stage.

    Parameters
    ----------
    kernels, chunk
        Its kernels, and the seconds for one chunk on one core.
    parameters, part, lent
        The bytes that each worker reads, of the parts of a chunk, and of the rows lent to a chunk.
    times
        The number of runs: the iterations of the enclosing loop; 1 if these depend on data.
    """

    kernels: int
    chunk: float
    parameters: int
    part: int
    lent: int
    times: int = 1

    def seconds(self, chunks: int, workers: int) -> float:
        """Return the seconds on so many workers of one thread."""
        each = self.chunk + OWN_TASK + (self.part + self.lent) / LINK
        handed = chunks * TASK
        first = self.parameters / LINK * math.ceil(math.log2(workers + 1))
        return self.times * (first + max(handed, math.ceil(chunks / workers) * each) + TRIP)


@dataclass(frozen=True)
class SplitPlan:
    """The estimated cost of a call over workers.

    Attributes
    ----------
    rows, chunks
        How many there are.
    stages
        What each stage costs.
    alone
        The seconds in one process, without chunks.
    pays
        From how many workers on it is quicker than that; None where it never is.
    most
        From how many workers on more of them are of no use: the scheduler hands out tasks one after the other.
    """

    name: str
    rows: int
    chunks: int
    stages: tuple[StageCost, ...]

    @property
    def alone(self) -> float:
        """The seconds in one process."""
        return sum(self.chunks * s.chunk * s.times for s in self.stages)

    def seconds(self, workers: int) -> float:
        """Return the seconds on so many workers of one thread."""
        return sum(s.seconds(self.chunks, workers) for s in self.stages)

    @property
    def pays(self) -> int | None:
        """The smallest number of workers that are faster than one process, or None."""
        return next((n for n in self._counts if self.seconds(n) < self.alone), None)

    @property
    def most(self) -> int:
        """The smallest number of workers whose time is within a tenth of the best."""
        best = min(self.seconds(n) for n in self._counts)
        return next(n for n in self._counts if self.seconds(n) <= 1.1 * best)

    @property
    def _counts(self) -> list[int]:
        last = min(max(self.chunks, 1), MOST)
        return sorted({*range(1, min(last, 64) + 1), *(1 << k for k in range(last.bit_length())), last})

    @property
    def tables(self) -> Tables:
        """Tables of the stages, and of times by numbers of workers: heads and lines."""
        stages = [
            (
                f"{k}", f"{s.times}", f"{s.kernels}", f"{s.chunk:.3g} s",
                in_bytes(s.parameters), in_bytes(s.part), in_bytes(s.lent),
            )
            for k, s in enumerate(self.stages, 1)
        ]  # fmt: skip
        some = [n for n in self._counts if n.bit_count() == 1 and n <= 4 * self.most]
        times = [(f"{n}", f"{self.seconds(n):.3g} s", f"{self.alone / self.seconds(n):.2g}") for n in some]
        return [
            (
                (
                    "stage",
                    "times",
                    "kernels",
                    "a chunk on a core",
                    "parameters to each worker",
                    "parts of a chunk",
                    "rows lent",
                ),
                stages,
            ),
            (("workers", "time", "times as fast as one process"), times),
        ]

    @property
    def title(self) -> str:
        """One line on the plan."""
        pays = "does not pay on any number of workers" if self.pays is None else f"pays from {self.pays} workers on"
        return (
            f"{self.name}: {self.rows:,} rows in {self.chunks:,} chunks; {self.alone:.3g} s in one process; {pays}; "
            f"more than {self.most} are of no use"
        )

    def __repr__(self) -> str:
        return text_of(self.title, self.tables)

    def _repr_html_(self) -> str:
        return page_of(self.title, self.tables)


def planned(
    name: str, split: Split, chunks: Sequence[int], row: int, sizes: dict[Symbol, int], level: str
) -> SplitPlan:
    """Return the plan of a function that is split into chunks of these numbers of rows, each row of ``row`` bytes."""
    rows = sum(chunks)
    mean = max(1, round(rows / len(chunks)))
    stages = tuple(_stages(split, sizes, mean, row, level))
    return SplitPlan(name, rows, len(chunks), stages)


def _stages(
    split: Split, sizes: dict[Symbol, int], rows: int, row: int, level: str, times: int = 1
) -> Iterator[StageCost]:
    """Yield the stages of a graph and of the regions driven between them, for chunks of ``rows`` rows."""
    known = {**sizes, split.own: rows + split.halo}
    for stage in split.stages:
        yield _stage(stage, split, known, row, level, times)
    for driven in split.driven:
        count = constant_value(driven.begins[0]) if driven.node.op is LOOP else 1
        for inner in driven.graphs.values():
            yield from _stages(inner.split, sizes, rows, row, level, times * int(1 if count is None else count))


def _stage(stage: Stage, split: Split, sizes: dict[Symbol, int], row: int, level: str, times: int) -> StageCost:
    plan = session.executable(stage.chunk, level).plan
    cost = costs.total(costs.of_plan(plan, lambda size: substitute(size, sizes)))
    seconds = max(_number(cost.flops) * FLOP, _number(cost.moved) * BYTE)
    parts = sum(_bytes(node, sizes) for node, _ in stage.parts)
    reads = sum(_bytes(node, sizes) for node in stage.reads)
    return StageCost(len(plan.kernels), seconds, reads, parts, split.halo * row, times)


def _number(amount: Any) -> float:
    """Return an amount as a number; 0 if it depends on data."""
    return float(amount) if isinstance(amount, int | float) else 0.0


def _bytes(node: Node, sizes: dict[Symbol, int]) -> int:
    return node.type.dtype.itemsize * math.prod(_extent(s, sizes) for s in node.type.shape)


def _extent(size: Size, sizes: dict[Symbol, int]) -> int:
    return evaluate(size, lambda a: sizes.get(a, 1)) if not isinstance(size, int) else size
