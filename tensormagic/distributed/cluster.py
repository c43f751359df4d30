"""Stages on the workers of a cluster: submitted, watched, repeated if a worker is lost, and combined there."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from typing import Any

from tensormagic import session
from tensormagic.config import config
from tensormagic.distributed.lines import lines_of
from tensormagic.distributed.report import Passed, Report, size_of
from tensormagic.distributed.running import Sizes, put_together
from tensormagic.distributed.sources import Chunked
from tensormagic.distributed.stages import Split, Stage
from tensormagic.distributed.tasks import Chunk, Job, heads, rows_on_worker
from tensormagic.distributed.watching import Handed
from tensormagic.ir.errors import GuardError
from tensormagic.ir.graph import Graph
from tensormagic.ir.node import Node, as_size
from tensormagic.ir.size import evaluate


class RowsLost(Exception):  # noqa: N818 (no error: the call is run again)
    """Raised if a worker was lost with rows that iterations had left on it."""


@dataclass(eq=False)
class Cluster:
    """Computes the stages of a call on workers.

    Parameters
    ----------
    client
        That of Dask.
    split
        What is computed.
    groups
        The numbers of the pieces that each chunk is made of.
    lengths
        The rows of each piece.
    arguments
        The arguments that are split.
    report
        Is told what moved.
    workers
        How many threads there are.
    inside
        The loop or branch that is driven, where it is one: rows are computed at once there, and kept, even where they could be
        computed when they are asked for.
    """

    client: Any
    split: Split
    groups: list[list[int]]
    lengths: Sequence[int]
    arguments: list[Chunked]
    report: Report
    workers: dict[str, int]
    inside: Node | None = None

    def __post_init__(self) -> None:
        ends = [sum(self.lengths[: g[-1] + 1]) for g in self.groups]
        self.rows = [end - before for end, before in zip(ends, [0, *ends[:-1]], strict=True)]
        self.before = [end - n for end, n in zip(ends, self.rows, strict=True)]
        for argument in self.arguments if not self.split.halo else []:  # rows of halos would be computed twice
            argument.pieces = (argument.alone and argument.alone()) or argument.pieces
            argument.alone = None
        self.lazy = self.inside is None and bool(self.arguments) and all(a.later is not None for a in self.arguments)

    def within(self, split: Split, arguments: Sequence[Chunked], node: Node) -> Cluster:
        """Return the same chunks for a graph of a loop or branch, over these arguments."""
        return replace(self, split=split, arguments=[*arguments], inside=self.inside or node)

    @property
    def passed(self) -> list[Passed]:
        """The report's records of stages like those that are computed here."""
        report = self.report
        return report.passed if self.inside is None else report.within.setdefault(self.inside, [])

    def __call__(
        self, stage: Stage, sizes: Sizes, reads: Sequence[Any], inputs: Sequence[Chunked]
    ) -> tuple[list[Any], list[Chunked]]:
        """Return the parts of all chunks, and the results with rows as chunks."""
        if len(inputs) > len(self.arguments):
            return replace(self, arguments=[*inputs])(stage, sizes, reads, inputs)
        parts, rows = self._results(stage, sizes, reads)
        known = {**sizes, **{n: int(v) for n, v in zip(stage.reads, reads, strict=True) if as_size(n) is not None}}
        return parts, [
            self._rows(node, axis, [own[k] for own in rows], known) for k, (node, axis) in enumerate(stage.rows)
        ]

    def _rows(self, node: Node, axis: int, found: list[Any], sizes: Mapping[Any, int]) -> Chunked:
        """Return a result with rows as an argument in chunks, made of what each chunk has ``found``."""
        others = [s for k, s in enumerate(node.type.shape) if k != axis]
        pieces: list[Any] = [None] * len(self.lengths)
        for own, rows in zip(self.groups, found, strict=True):
            pieces[own[0]] = rows
        row = tuple(evaluate(s, sizes.__getitem__) for s in others)
        return Chunked(node.type.dtype, row, pieces, later=(lambda: pieces) if self.lazy else None, made=True)

    def _results(self, stage: Stage, sizes: Sizes, reads: Sequence[Any]) -> tuple[list[Any], list[list[Any]]]:
        job = self._job(stage, sizes, reads)
        if self.lazy and stage.rows:  # lazy like the arrays that they are computed from
            rows = self._later(stage, job)
            if not stage.parts:
                self.passed.append(Passed(tuple(map(size_of, reads)), 0, (), 0, 0, 0, later=True))
                return [], rows
            count = len(stage.parts)
            graphs = [g.with_results(g.results[:count]) for g in (stage.chunk, stage.end)]
            job = job._replace(**_sent(graphs))
            return self._stage(stage, graphs, job)[0], rows
        return self._stage(stage, [stage.chunk, stage.end], job)

    def _job(self, stage: Stage, sizes: Sizes, reads: Sequence[Any]) -> Job:
        named = tuple((s.name, s.least, n) for s, n in sizes.items())
        own = (self.split.own.name, self.split.own.least)
        how = config.math, config.tier
        return Job(
            numbered=stage.numbered,
            named=named,
            own=own,
            reads=tuple(reads),
            how=how,
            parts=len(stage.parts),
            **_sent((stage.chunk, stage.end)),
        )

    def _later(self, stage: Stage, job: Job) -> list[list[Any]]:
        """Return results with rows that are computed when they are asked for."""
        dask: Any = import_module("dask")
        count = len(stage.parts)
        given = [a.later() if a.later else a.pieces for a in self.arguments]
        graphs = [g.with_results(g.results[count:]) for g in (stage.chunk, stage.end)]
        sent = dask.delayed(job._replace(parts=0, **_sent(graphs)), pure=False)
        found: list[list[Any]] = []
        for k in range(len(self.groups)):
            results = dask.delayed(rows_on_worker, pure=False)(sent, self.chunk(k), *self.pieces(k, given))
            found.append([results[r] for r in range(len(stage.rows))])
        return found

    def _stage(self, stage: Stage, graphs: Sequence[Any], job: Job) -> tuple[list[Any], list[list[Any]]]:
        if config.tier != "numpy":  # workers on this machine then find it in the cache
            for graph in dict.fromkeys(graphs):
                session.executable(graph, config.math).compile().wait()
        self.report.stages += 1
        handed = Handed(self, job, tuple(ufunc for _, ufunc in stage.parts), 0 if self.lazy else len(stage.rows))
        with session.working(handed.progress):
            heads = handed.results()
        self._count(stage, job, heads)
        return put_together([parts for parts, *_ in heads], handed.ufuncs), handed.rows

    def _count(self, stage: Stage, job: Job, heads: Sequence[Any]) -> None:
        """Tell the report what was moved."""
        report = self.report
        told = [one for _, said, *_ in heads for one in said]
        report.took(told)
        workers, between = len({one.worker for one in told}), sum(count for *_, count, _ in heads)
        report.parameters.add(job.reads, workers)
        report.parts.times += between
        report.parts.bytes += sum(size for *_, size in heads)
        report.results.times += len(heads)
        report.results.bytes += sum(size_of(v) for parts, *_ in heads for v in parts)
        lent = len(self.groups) - 1 if self.split.halo else 0
        parts = tuple(size_of(v) for v in heads[0][0])
        reads = tuple(size_of(v) for v in job.reads)
        later = self.lazy and bool(stage.rows)
        self.passed.append(Passed(reads, workers, parts, between, len(heads), lent, later))
        if lent:
            report.halos.times += lent
            report.halos.bytes += (
                lent * self.split.halo * sum(a.dtype.itemsize * math.prod(a.row) for a in self.arguments)
            )

    def chunk(self, number: int) -> Chunk:
        return Chunk(number, self.before[number], number == len(self.groups) - 1)

    def pieces(self, number: int, given: Sequence[list[Any]] | None = None) -> list[list[Any]]:
        """Return for each argument the pieces of its rows in a chunk, and of those that the next chunk lends it."""
        dask: Any = import_module("dask")
        given = [a.pieces for a in self.arguments] if given is None else given
        pieces = [[own[p] for p in self.groups[number] if own[p] is not None] for own in given]
        if self.split.halo and number < len(self.groups) - 1:
            first = [own[self.groups[number + 1][0]] for own in given]
            lent = dask.delayed(heads, pure=False)(first, self.split.halo)
            for k, own in enumerate(pieces):
                own.append(lent[k])
        return pieces

    def lost(self, number: int) -> None:
        """Send the inputs of a chunk again if they were lost; raise an error if that is impossible."""
        following = self.groups[number + 1 : number + 2] if self.split.halo else []
        pieces = [*self.groups[number], *(g[0] for g in following)]
        replaced = [
            [a.replace(p, self.client) for p in pieces] for a in self.arguments
        ]  # all chunks, even if some cannot be replaced
        gone = [a for a, found in zip(self.arguments, replaced, strict=True) if not all(found)]
        if not all(a.made for a in gone):
            raise GuardError(
                "a worker was lost, with rows that cannot be read again",
                "Pass tm.shard(x), a file or an array of Dask; a generator is read once.",
            )
        if gone:
            raise RowsLost


def _sent(graphs: Sequence[Graph]) -> dict[str, Any]:
    """Return the graphs of chunks in the form that is sent: as text, with the source lines of their nodes."""
    return {"texts": tuple(g.text for g in graphs), "lines": tuple(lines_of(g) for g in graphs)}
