"""The chunks of one stage on a cluster, from their submission until all of their parts are available.

Chunks lost with their worker are submitted again; if the last chunks take long, they are computed a second time on
other workers, and the first answer is taken; if the computation ends early, the cluster is stopped.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

from tensormagic.distributed.tasks import Job, on_worker, together
from tensormagic.ir.errors import GuardError
from tensormagic.session import Counted

if TYPE_CHECKING:
    from tensormagic.distributed.cluster import Cluster

BLOCK = 16  # chunks whose parts one task combines: a power of two, so that the tree is that of all chunks
LOOK = 0.25  # seconds between two checks of the tasks
LATE = (
    1.0,
    3.0,
)  # seconds, and a multiple of a chunk's time, after which idle workers compute the remaining chunks a second time
STALLED = 60.0  # seconds after which that is done if nothing is finished, or all workers are said to be busy
TRIES = 5  # how often a chunk is submitted again
_GONE = {"lost", "cancelled", "error"}


class Handed:
    """The submitted chunks of a stage.

    Parameters
    ----------
    cluster
        What knows the chunks.
    job
        What is the same for all.
    ufuncs
        What puts two parts together, for each part.
    count
        How many results with rows there are.
    """

    def __init__(self, cluster: Cluster, job: Job, ufuncs: tuple[str, ...], count: int) -> None:
        self.cluster, self.job, self.ufuncs, self._count = cluster, job, ufuncs, count
        self._client: Any = cluster.client
        self._dask: Any = import_module("dask")
        self._distributed: Any = import_module("distributed")
        chunks = len(cluster.groups)
        self._members = [range(k, min(k + BLOCK, chunks)) for k in range(0, chunks, BLOCK)]
        self._chunks: dict[int, Any] = {}  # futures of chunks whose block is not finished
        self._second: dict[int, Any] = {}
        self._blocks: list[Any] = [None] * len(self._members)
        self._between: dict[
            int, list[Any]
        ] = {}  # kept alive, as the scheduler fails when it cancels waiting tasks that nobody wants
        self._tried: dict[int, int] = {}
        self._slow: set[str] = set()  # workers on which something took long
        self.rows: list[list[Any]] = [[] for _ in range(chunks)]
        self.progress = Counted("on the cluster: chunk", chunks)

    def results(self) -> list[Any]:
        """Return the combined parts of each block, with the reports on its chunks."""
        try:
            self._hand_out(range(self.progress.count))
            while True:
                self._watch()
                try:
                    return self._client.gather(self._blocks)
                except self._losses:
                    continue
        except BaseException:
            self._stop()
            raise

    @property
    def _losses(self) -> tuple[type[BaseException], ...]:
        """The errors raised if something was lost with its worker, and nothing else is wrong."""
        return (import_module("concurrent.futures").CancelledError, import_module("asyncio").CancelledError)

    def _stop(self) -> None:
        """Cancel the tasks that nobody waits for."""
        known = [*self._chunks.values(), *self._second.values(), *(b for b in self._blocks if b is not None)]
        self._client.cancel(known, force=True)

    # submitting

    def _hand_out(self, numbers: Iterable[int]) -> None:
        """Submit chunks, and the blocks that they belong to."""
        tasks = self._tasks(numbers)
        self._chunks.update(zip(tasks, self._client.compute([*tasks.values()], optimize_graph=False), strict=True))
        self._gather_blocks({k // BLOCK for k in tasks})
        self._keep_rows(tasks)

    def _tasks(self, numbers: Iterable[int]) -> dict[int, Any]:
        sent = self._dask.delayed(self.job, pure=False, traverse=False)  # once in the graph: workers pass it on
        task = self._dask.delayed(on_worker, pure=False)
        return {k: task(sent, self.cluster.chunk(k), *self.cluster.pieces(k)) for k in numbers}

    def _gather_blocks(self, blocks: Iterable[int]) -> None:
        """Submit the tasks that combine blocks from their chunks."""
        for b in sorted(blocks):
            chunks = [self._chunks[k] for k in self._members[b]]
            if self._count:  # rows stay on their workers
                chunks = [self._client.submit(_first, c, pure=False) for c in chunks]
                self._between[b] = chunks
            self._blocks[b] = self._client.submit(
                together, self.ufuncs, not self._count, *chunks, pure=False, **self._elsewhere()
            )

    def _keep_rows(self, numbers: Iterable[int]) -> None:
        for k in numbers:
            self.rows[k] = [self._client.submit(_row, self._chunks[k], r, pure=False) for r in range(self._count)]

    # watching

    def _watch(self) -> None:
        """Wait until all blocks are done, and repair losses."""
        began = last = looked = time.perf_counter()
        done = -1
        while pending := [b for b in range(len(self._blocks)) if not self._is_there(b)]:
            self._mend(pending)
            self._wait([self._blocks[b] for b in pending])
            self.progress.done = self._finished()
            now = time.perf_counter()
            if self.progress.done > done:
                done, last = self.progress.done, now
            elif now - max(last, looked) > self._patience(last - began):
                self._double(anyway=now - last > STALLED)
                looked = now

    def _patience(self, taken: float) -> float:
        """Return how many seconds may pass without progress, if the finished tasks took ``taken`` seconds."""
        if not self.progress.done:
            return STALLED
        return max(LATE[0], LATE[1] * taken * len(self.cluster.workers) / self.progress.done)

    def _is_there(self, block: int) -> bool:
        """Return whether a block is combined; if so, its chunks are released."""
        if self._blocks[block].status != "finished":
            return False
        self._between.pop(block, None)
        for k in self._members[block]:
            self._chunks.pop(k, None)
            second = self._second.pop(k, None)
            if second is not None:
                second.cancel(force=True)
        return True

    def _finished(self) -> int:
        return self.progress.count - sum(c.status != "finished" for c in self._chunks.values())

    def _wait(self, futures: Sequence[Any]) -> None:
        try:
            self._distributed.wait(futures, timeout=LOOK)
        except (TimeoutError, *self._losses):
            pass

    def _mend(self, blocks: Sequence[int]) -> None:
        """Accept finished second answers, and submit again what was lost."""
        lost: set[int] = set()
        changed: set[int] = set()
        for b in blocks:
            for k in self._members[b]:
                if k not in self._chunks or self._is_gone(self._chunks[k]):
                    lost.add(k)
                elif k in self._second and self._chunks[k].status != "finished":
                    changed |= self._take_second(k)
                elif k in self._second:
                    self._second.pop(k).cancel(force=True)
            if self._is_gone(self._blocks[b]):
                changed.add(b)
        if lost:
            self._again(sorted(lost))
        self._gather_blocks(changed - {k // BLOCK for k in lost})

    def _take_second(self, number: int) -> set[int]:
        """Accept the second answer for a chunk if it is finished, and return the block that contains it."""
        second = self._second[number]
        if second.status != "finished":
            return set()
        self._chunks[number].cancel(force=True)
        self._chunks[number] = self._second.pop(number)
        self._keep_rows([number])
        self.cluster.report.doubled += 1
        return {number // BLOCK}

    def _is_gone(self, future: Any) -> bool:
        """Return whether a result is lost; raise an error of the computation."""
        if future.status not in _GONE:
            return False
        if future.status == "error":
            error = future.exception()
            if isinstance(error, self._distributed.KilledWorker):
                raise GuardError(
                    f"workers were lost again and again over one chunk: {error}",
                    "Where they have too little memory for a chunk, make chunks of fewer rows.",
                ) from error
            if not isinstance(error, self._losses):
                raise error
        return True

    def _again(self, numbers: Sequence[int]) -> None:
        for k in numbers:
            self._tried[k] = self._tried.get(k, 0) + 1
            if self._tried[k] > TRIES:
                raise GuardError(f"chunk {k} was lost {TRIES} times, each time with the worker that had it")
            self.cluster.lost(k)
        self.cluster.report.again += len(numbers)
        self._hand_out(numbers)

    def _double(self, *, anyway: bool) -> None:
        """Compute the remaining chunks a second time if some workers are idle, or in any case if ``anyway``.

        A task queued behind a slow one is as late, so all remaining chunks, however many, are computed by idle workers,
        and their blocks are combined there. A worker goes on with a cancelled task although the scheduler considers it
        idle, so the slow ones are remembered. Tasks that a scheduler has lost are computed in any case, by the workers
        last.
        """
        self._refuse_paused()
        busy = {w for w, tasks in self._client.processing().items() if tasks}
        if busy.issuperset(self.cluster.workers) and not anyway:
            return
        self._slow |= busy
        late = [k for k, c in self._chunks.items() if c.status == "pending" and k not in self._second]
        for k, task in self._tasks(late).items():
            (self._second[k],) = self._client.compute([task], optimize_graph=False, **self._elsewhere())
        self._gather_blocks(
            b
            for b, members in enumerate(self._members)
            if self._blocks[b].status == "pending"
            and all(k in self._chunks and self._chunks[k].status == "finished" for k in members)
        )

    def _refuse_paused(self) -> None:
        """Raise if all workers are paused by Dask as they use much memory, since the call would wait for ever."""

        def paused(dask_scheduler: Any) -> list[bool]:  # defined here, as a scheduler need not have this package
            return [w.status.name == "paused" for w in dask_scheduler.workers.values()]

        workers = self._client.run_on_scheduler(paused)
        if workers and all(workers):
            raise GuardError(
                f"all {len(workers)} workers of the cluster are paused, as they have used most of the memory that Dask leaves them",
                "Give workers more memory (memory_limit= of the cluster), or make chunks of fewer rows.",
            )

    def _elsewhere(self) -> dict[str, Any]:
        """Return options that make Dask prefer the workers on which nothing took long."""
        quick = [w for w in self.cluster.workers if w not in self._slow]
        return {"workers": quick, "allow_other_workers": True} if self._slow and quick else {}


def _first(result: tuple[Any, list[Any]]) -> Any:
    return result[0]


def _row(result: tuple[Any, list[Any]], number: int) -> Any:
    return result[1][number]
