"""Tasks that run on workers: chunks of a stage, and the combination of their parts. All their inputs arrive as text, arrays and numbers."""

from __future__ import annotations

import functools
import os
import time
from collections.abc import Sequence
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np

from tensormagic import session
from tensormagic.config import config
from tensormagic.distributed.files import FileRows
from tensormagic.distributed.lines import tell
from tensormagic.distributed.report import Told, size_of
from tensormagic.distributed.running import of_chunk, put_together
from tensormagic.distributed.sources import Computed
from tensormagic.functions.tracing import parse
from tensormagic.ir.size import Symbol


class Job(NamedTuple):
    """The data that all chunks of a stage share.

    Parameters
    ----------
    texts
        The graph of a chunk, and that of the last one.
    lines
        The lines that the nodes of each came from.
    numbered
        Whether a chunk reads how many rows come before it.
    named
        The sizes as they travel: name, least, number.
    own
        The symbol of the number of rows of a chunk: name, least.
    reads
        Values that are the same for all rows.
    how
        The level of rewriting, and the tier.
    parts
        How many of the results are parts; the others have rows.
    """

    texts: tuple[str, str]
    lines: tuple[tuple[str, ...], tuple[str, ...]]
    numbered: bool
    named: tuple[tuple[str, int, int], ...]
    own: tuple[str, int]
    reads: tuple[Any, ...]
    how: tuple[str, str]
    parts: int


class Chunk(NamedTuple):
    """The identity of a chunk: its number, how many rows come before it, and whether it is the last one."""

    number: int
    before: int
    last: bool


def heads(values: Sequence[Any], count: int) -> list[Any]:
    """Return the first rows of each argument's chunk."""
    return [v.head(count) if isinstance(v, FileRows) else np.array(v[:count]) for v in values]


def on_worker(job: Job, chunk: Chunk, *pieces: Sequence[Any]) -> tuple[Any, list[Any]]:
    """Return the parts of a chunk, the worker's report on it, and its results with rows.

    Each argument comes in pieces of consecutive rows.
    """
    _alone()
    start, processor = time.perf_counter(), time.process_time()
    found = job.how[1] == "numpy" or _is_there(job, chunk)
    results = rows_on_worker(job, chunk, *pieces)
    told = Told(chunk.number, _here(), time.perf_counter() - start, time.process_time() - processor, _memory(), found)
    return (results[: job.parts], [told]), results[job.parts :]


def rows_on_worker(job: Job, chunk: Chunk, *pieces: Sequence[Any]) -> list[Any]:
    """Return the results of a chunk."""
    arrays = [
        _joined([p.read() if isinstance(p, FileRows | Computed) else np.asarray(p) for p in own]) for own in pieces
    ]
    sizes = {Symbol(name, least=least): number for name, least, number in job.named}
    sizes[Symbol(job.own[0], least=job.own[1])] = len(arrays[0])
    first = [np.int64(chunk.before)] if job.numbered else []
    graph = _read(job.texts[chunk.last])
    try:
        return of_chunk(graph, sizes, arrays, first, job.reads, job.how)
    except Exception as error:
        where = f"chunk {chunk.number}, whose first row is row {chunk.before}"
        tell(error, graph, sizes, [*arrays, *first, *job.reads], job.lines[chunk.last], where)
        raise


def _joined(pieces: list[Any]) -> Any:
    return pieces[0] if len(pieces) == 1 else np.concatenate(pieces)


def together(ufuncs: tuple[str, ...], whole: bool, *results: Any) -> tuple[list[Any], list[Told], int, int]:
    """Return the combined parts of neighbouring chunks, their reports, and the number and bytes of parts from other workers.

    ``whole``: the given results are whole results of chunks, and not only their parts.
    """
    here = _here()
    results = tuple(r[0] for r in results) if whole else results
    away = [parts for parts, told in results if told[0].worker != here]
    said = [one for _, told in results for one in told]
    return (
        put_together([parts for parts, _ in results], ufuncs),
        said,
        len(away),
        sum(size_of(v) for parts in away for v in parts),
    )


def _is_there(job: Job, chunk: Chunk) -> bool:
    """Return whether the machine code was ready, or in the cache."""
    handle = session.executable(_read(job.texts[chunk.last]), job.how[0]).compile()
    ready = handle.ready()
    handle.wait()
    return ready or handle.from_cache


def _alone() -> None:
    """Restrict a worker process to the threads that Dask assigns it, unless the environment sets a number."""
    if import_module("distributed").get_worker().nanny and "TENSORMAGIC_THREADS" not in os.environ:
        config.threads = 1


def _here() -> str:
    """Return the address of the worker that this runs on."""
    return str(import_module("distributed").get_worker().address)


def _memory() -> int:
    return int(import_module("psutil").Process().memory_info().rss)


_read = functools.lru_cache(256)(parse)
