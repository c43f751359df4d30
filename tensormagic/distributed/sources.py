"""The split arguments of a call: arrays of Dask, files, sharded arrays and generators, as chunks of rows on a cluster."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

import numpy as np

from tensormagic.capture.values.value import Tensor
from tensormagic.distributed.files import FileRows, rows_of_file
from tensormagic.distributed.report import Moved
from tensormagic.ir.errors import ArgumentError

BYTES = 2**26  # the size of a chunk, unless its number of rows is given


class Shard:
    """Rows that :func:`tensormagic.distribute` splits, and that stay on the workers.

    Chunks are sent to workers, or read there, at the first call, and stay there as long as this is kept.
    """

    def __init__(self, rows_of: Any, rows: int | None = None) -> None:
        self.array, self.rows = rows_of, rows
        self.held: dict[Any, Chunked] = {}  # chunks on clusters

    def __repr__(self) -> str:
        return f"<shard: {self.array.dtype}{list(self.array.shape)}>"


def shard(x: Any, axis: str | int = "batch", *, rows: int | None = None) -> Shard:
    """Return an array whose rows are split in calls of what :func:`distribute` returns: its chunks stay on the workers between calls.

    Parameters
    ----------
    x
        An array, whose values are copied; or an array of Dask or of zarr, or a ``np.memmap``, which workers read at the first call.
    axis
        The axis that is split: "batch", or 0, the leading one. Which axes of other values go with it is found in the function's graph.
    rows
        How many rows a chunk has, but for the last; None for chunks of 64 MiB, or as an array of Dask has them.

    Returns
    -------
    Shard
        An argument for what :func:`distribute` gives.

    Raises
    ------
    ArgumentError
        If the axis is another one, a chunk would have no rows, or ``x`` is a number, which has none.

    Examples
    --------
    >>> shard(np.ones((4, 2)), rows=2)
    <shard: float64[4, 2]>
    >>> shard(np.ones((4, 2)), "batch")
    <shard: float64[4, 2]>
    """
    if isinstance(axis, bool) or axis not in ("batch", 0):
        raise ArgumentError(
            f"the axis {axis!r}: only the leading axis is split, which is axis 0 and is called 'batch'",
            "Move the axis to the front, tm.shard(np.moveaxis(x, axis, 0)); how many rows a chunk has is said by rows=….",
        )
    if rows is not None and rows < 1:
        raise ArgumentError(f"a chunk of {rows} rows", "A chunk has at least one row.")
    if is_read_in_parts(x):
        return Shard(x, rows)
    array = np.array(x.numpy() if isinstance(x, Tensor) else x)
    if not array.ndim:
        raise ArgumentError("a number has no rows", "Pass it as it is: arguments that are not split are parameters.")
    return Shard(array, rows)


def is_dask(value: Any) -> bool:
    """Return whether a value is an array of Dask."""
    return type(value).__module__.startswith("dask.array") and hasattr(value, "chunks")


def is_zarr(value: Any) -> bool:
    """Return whether a value is an array of zarr."""
    return type(value).__module__.partition(".")[0] == "zarr" and hasattr(value, "chunks")


def is_read_in_parts(value: Any) -> bool:
    """Return whether rows of a value can be read without all of it."""
    return isinstance(value, np.memmap) or is_dask(value) or is_zarr(value)


def is_split(value: Any) -> bool:
    """Return whether an argument comes in chunks."""
    return isinstance(value, Shard | Iterator) or is_read_in_parts(value)


@dataclass(eq=False)
class Chunked:
    """An argument in chunks of rows.

    Parameters
    ----------
    dtype, row
        The dtype, and the shape of a row.
    pieces
        What stands for the rows of each chunk in a task: a future, what Dask computes later, or where a worker reads them; None
        where the piece before has them as well.
    again
        What is sent again where a worker that had it is lost; None where it is computed or read again, or cannot be had.
    alone
        Gives the same chunks as what a task computes itself, so that it holds no more than one; None where they have something in common.
    later
        Gives the same chunks for tasks that are computed at another time, where each call computes them anew; None else.
    """

    dtype: np.dtype[Any]
    row: tuple[int, ...]
    pieces: list[Any]
    again: list[Any] | None = None
    alone: Callable[[], list[Any] | None] | None = None
    later: Callable[[], list[Any]] | None = None
    made: bool = False  # computed in this call, and can be computed again by another run of it
    held: list[Any] = field(default_factory=list[Any])  # the same pieces, if a shard keeps them
    sent: int = 0  # bytes sent from here to workers in this call

    @property
    def arrives(self) -> str:
        """How the rows get to the workers: ``"sent"``, ``"there"`` or ``"read"``."""
        if self.sent:
            return "sent"
        return "there" if isinstance(self.pieces[0], import_module("distributed").Future) else "read"

    @property
    def present(self) -> list[Any]:
        """The pieces that exist."""
        return [p for p in self.pieces if p is not None]

    def replace(self, number: int, client: Any) -> bool:
        """Send a chunk again if its worker was lost, and return whether it is available."""
        piece = self.pieces[number]
        if not isinstance(piece, import_module("distributed").Future) or piece.status in {"finished", "pending"}:
            return True
        if self.again is None:
            return False
        self.pieces[number] = client.scatter(self.again[number], hash=False)
        if self.held:
            self.held[number] = self.pieces[number]
        return True


def chunked(values: Sequence[Any], client: Any, sent: Moved) -> tuple[tuple[int, ...], list[Chunked]]:
    """Return the numbers of rows of the chunks, and the arguments in these; ``sent`` records what was sent to workers."""
    own = [Moved("") for _ in values]
    read = [
        _batches(v, client, m) if isinstance(v, Iterator) else _as_dask(v) for v, m in zip(values, own, strict=True)
    ]
    lengths = _lengths(read)
    for value in read:
        if _rows(value) != sum(lengths):
            raise ArgumentError(
                f"arguments that are split have {_rows(value)} and {sum(lengths)} rows",
                "They have as many rows each.",
            )
        if isinstance(value, _Batches) and value.lengths != lengths:
            raise ArgumentError("generators of batches of different lengths", "Batches have as many rows in each.")
    placed = [_placed(v, lengths, client, m) for v, m in zip(read, own, strict=True)]
    for chunks, moved in zip(placed, own, strict=True):
        chunks.sent = moved.bytes
        sent.times, sent.bytes = sent.times + moved.times, sent.bytes + moved.bytes
    return lengths, placed


def _as_dask(given: Any) -> Any:
    """Return an array of zarr as one of Dask, whose chunks consist of zarr's own."""
    if isinstance(given, Shard):
        given.array = _as_dask(given.array)
    if not is_zarr(given):
        return given
    value: Any = given
    arrays = import_module("dask.array")
    axes = {k: "auto" if k == 0 else -1 for k in range(value.ndim)}
    chunks = arrays.core.normalize_chunks(
        axes, value.shape, limit=BYTES, dtype=value.dtype, previous_chunks=value.chunks
    )
    return arrays.from_array(value, chunks=chunks)


@dataclass(frozen=True, eq=False)
class _Batches:
    lengths: tuple[int, ...]
    chunks: Chunked


def _batches(batches: Iterator[Any], client: Any, sent: Moved) -> _Batches:
    """Return the batches of a generator, which is read once: each batch is sent on as it comes."""
    lengths: list[int] = []
    futures: list[Any] = []
    kind: tuple[np.dtype[Any], tuple[int, ...]] | None = None
    for batch in batches:
        array = np.array(batch)
        if not array.ndim or (kind is not None and kind != (array.dtype, array.shape[1:])):
            raise ArgumentError("batches of a generator differ in dtype or in the shape of a row")
        kind = array.dtype, array.shape[1:]
        lengths.append(len(array))
        futures.append(client.scatter(array, hash=False))
        sent.add([array])
    if kind is None:
        raise ArgumentError("a generator without batches")
    return _Batches(tuple(lengths), Chunked(*kind, futures))


def _rows(value: Any) -> int:
    if isinstance(value, _Batches):
        return sum(value.lengths)
    shape = value.array.shape if isinstance(value, Shard) else value.shape
    if not shape or not isinstance(shape[0], int | np.integer):
        raise ArgumentError("the array to split has no rows, or an unknown number of rows")
    return int(shape[0])


def _lengths(values: Sequence[Any]) -> tuple[int, ...]:
    """Return the number of rows in each chunk: those of the batches, else as specified, else those of a Dask array, else by bytes.

    They only depend on the arguments, and not on the cluster, so that sums have the same bits everywhere.
    """
    for value in values:
        if isinstance(value, _Batches):
            return value.lengths
    said = {v.rows for v in values if isinstance(v, Shard) and v.rows is not None}
    if len(said) > 1:
        raise ArgumentError(f"shards with chunks of {sorted(said)} rows", "Give one number of rows.")
    arrays = [v.array if isinstance(v, Shard) else v for v in values]
    for array in arrays:
        if is_dask(array) and not said:
            _rows(array)
            return tuple(map(int, array.chunks[0]))
    total = _rows(values[0])
    widest = max(a.nbytes // max(len(a), 1) for a in arrays if a.ndim)
    rows = said.pop() if said else max(1, BYTES // max(widest, 1))
    return tuple(min(rows, total - first) for first in range(0, total, rows))


def _placed(value: Any, lengths: tuple[int, ...], client: Any, sent: Moved) -> Chunked:
    """Return an argument in chunks of these numbers of rows."""
    if isinstance(value, _Batches):
        return value.chunks
    if not isinstance(value, Shard):
        return _read_later(value, lengths, client, sent)
    key = (client.id, lengths)
    if key not in value.held:
        value.held[key] = _kept(_read_later(value.array, lengths, client, sent), client)
    held = value.held[key]
    return Chunked(held.dtype, held.row, list(held.pieces), held.again, held=held.pieces)


def _read_later(value: Any, lengths: tuple[int, ...], client: Any, sent: Moved) -> Chunked:
    """Return rows that tasks read or compute: of a file that all workers see, or of an array of Dask."""
    dtype, row = value.dtype, tuple(value.shape[1:])
    if is_dask(value):
        own = value.rechunk((lengths, *((n,) for n in row)))
        named = _named(own)
        pieces = _delayed(named, optimize=True)
        return Chunked(
            dtype,
            row,
            pieces,
            alone=lambda: _alone(named, pieces),
            later=lambda: _delayed(_named(own), optimize=False),
        )
    rows = rows_of_file(value, client) if isinstance(value, np.memmap) else None
    ends = np.cumsum(lengths).tolist()
    bounds = [(end - n, end) for end, n in zip(ends, lengths, strict=True)]
    if rows is not None:
        return Chunked(dtype, row, [rows.part(first, last) for first, last in bounds])
    pieces = [value[first:last] for first, last in bounds]
    for piece in pieces:
        sent.add([piece])
    return Chunked(dtype, row, [client.scatter(np.array(p), hash=False) for p in pieces], pieces)


def _named(array: Any) -> Any:
    """Return an array under keys of its own, which fuse with its predecessors.

    Otherwise tasks that Dask fuses differently in another computation could share a key.
    """
    arrays: Any = import_module("dask.array")
    return arrays.map_blocks(_same, array, dtype=array.dtype, name=f"rows-{uuid.uuid4().hex}", meta=array._meta)  # noqa: SLF001 (of Dask)


def _delayed(array: Any, *, optimize: bool) -> list[Any]:
    """Return the blocks of an array, as delayed objects."""
    with import_module("dask").config.set({"optimization.fuse.active": False}):  # fusing would rename the tasks below
        return list(array.to_delayed(optimize_graph=optimize).ravel())


class Computed:
    """Rows that the reading worker computes itself: a Dask graph, and the key of the rows in it.

    This is not a dataclass: Dask traverses dataclasses, and would compute the graph's tasks first.
    """

    def __init__(self, graph: dict[Any, Any], key: Any) -> None:
        self.graph, self.key = graph, key

    def read(self) -> np.ndarray[Any, Any]:
        """Return the rows."""
        return np.asarray(import_module("dask").get(self.graph, self.key))


def _alone(array: Any, pieces: Sequence[Any]) -> list[Any] | None:
    """Return the blocks of an array, each with its complete graph, or None if two share a task, or blocks are already on workers."""
    if import_module("distributed").client.futures_of(array):
        return None
    cull: Any = import_module("dask.optimization").cull
    found: list[Any] = []
    count = 0
    graph = dict(pieces[0].__dask_graph__())
    for piece in pieces:
        own, _ = cull(graph, [piece.key])
        count += len(own)
        found.append(Computed(own, piece.key))
    return found if count == len({k for one in found for k in one.graph}) else None


def _same(block: Any) -> Any:
    return block


def _kept(chunks: Chunked, client: Any) -> Chunked:
    """Return what is read or computed later as futures: workers do it once and keep it, and again if it is lost."""
    if chunks.later is not None:
        chunks.pieces = client.compute(chunks.pieces, optimize_graph=False)
    chunks.pieces = [
        client.submit(FileRows.read, p, pure=False) if isinstance(p, FileRows) else p for p in chunks.pieces
    ]
    return chunks
