"""What is split of a call's arguments: arrays of Dask, files, sharded arrays and generators, as chunks that a cluster holds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tensormagic.capture.value import Tensor
from tensormagic.ir.errors import ArgumentError

BYTES = 2**24  # of a chunk, where nobody says how many rows it has


class Shard:
    """An array that :func:`tensormagic.distribute` splits by its rows, as it was when it was sharded.

    Chunks are sent to workers at the first call, and stay there as long as this is kept.
    """

    def __init__(self, array: np.ndarray[Any, Any], rows: int | None = None) -> None:
        self.array, self.rows = array, rows
        self.held: dict[Any, list[Any]] = {}  # chunks on clusters

    def __repr__(self) -> str:
        return f"<shard: {self.array.dtype}{list(self.array.shape)}>"


def shard(x: Any, rows: int | None = None) -> Shard:
    """An array whose rows are split, in a call of what :func:`distribute` gives.

    Parameters
    ----------
    x
        An array; its values are copied.
    rows
        How many rows a chunk has, but for the last; None for chunks of 16 MiB.

    Examples
    --------
    >>> shard(np.ones((4, 2)), rows=2)
    <shard: float64[4, 2]>
    """
    array = np.array(x.numpy() if isinstance(x, Tensor) else x)
    if not array.ndim:
        raise ArgumentError("a number has no rows", "Hand it in as it is: what is not split is a parameter.")
    if rows is not None and rows < 1:
        raise ArgumentError(f"a chunk of {rows} rows", "A chunk has at least one row.")
    return Shard(array, rows)


def is_dask(value: Any) -> bool:
    """Whether a value is an array of Dask."""
    return type(value).__module__.startswith("dask.array") and hasattr(value, "chunks")


def is_split(value: Any) -> bool:
    """Whether an argument is one that comes in chunks."""
    return isinstance(value, Shard | np.memmap | Iterator) or is_dask(value)


@dataclass(frozen=True, eq=False)
class Chunked:
    """An argument in chunks: its dtype, the shape of a row, and what stands for each chunk on the cluster."""

    dtype: np.dtype[Any]
    row: tuple[int, ...]
    futures: list[Any]


def chunked(values: Sequence[Any], client: Any) -> tuple[tuple[int, ...], list[Chunked]]:
    """The numbers of rows of the chunks, and the arguments in these."""
    read = [_batches(v, client) if isinstance(v, Iterator) else v for v in values]
    lengths = _lengths(read)
    for value in read:
        if _rows(value) != sum(lengths):
            raise ArgumentError(
                f"arguments that are split have {_rows(value)} and {sum(lengths)} rows",
                "They have as many rows each.",
            )
        if isinstance(value, _Batches) and value.lengths != lengths:
            raise ArgumentError("generators of batches of different lengths", "Batches have as many rows in each.")
    return lengths, [_placed(v, lengths, client) for v in read]


@dataclass(frozen=True, eq=False)
class _Batches:
    lengths: tuple[int, ...]
    chunks: Chunked


def _batches(batches: Iterator[Any], client: Any) -> _Batches:
    """A generator, read once: each batch is sent on as it comes."""
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
    if kind is None:
        raise ArgumentError("a generator without batches")
    return _Batches(tuple(lengths), Chunked(*kind, futures))


def _rows(value: Any) -> int:
    if isinstance(value, _Batches):
        return sum(value.lengths)
    shape = value.array.shape if isinstance(value, Shard) else value.shape
    if not shape or not isinstance(shape[0], int):
        raise ArgumentError("what is split has no rows, or a number of rows that is not known")
    return shape[0]


def _lengths(values: Sequence[Any]) -> tuple[int, ...]:
    """The rows of each chunk: as batches come, else as an array of Dask has them, else as is said, else by bytes."""
    for value in values:
        if isinstance(value, _Batches):
            return value.lengths
    for value in values:
        if is_dask(value):
            _rows(value)
            return tuple(value.chunks[0])
    said = {v.rows for v in values if isinstance(v, Shard) and v.rows is not None}
    if len(said) > 1:
        raise ArgumentError(f"shards with chunks of {sorted(said)} rows", "Say one number of rows.")
    arrays = [v.array if isinstance(v, Shard) else v for v in values]
    total = _rows(values[0])
    widest = max(a.nbytes // max(len(a), 1) for a in arrays if a.ndim)
    rows = said.pop() if said else max(1, BYTES // max(widest, 1))
    return tuple(min(rows, total - first) for first in range(0, total, rows))


def _placed(value: Any, lengths: tuple[int, ...], client: Any) -> Chunked:
    """An argument in chunks of these numbers of rows."""
    if isinstance(value, _Batches):
        return value.chunks
    if is_dask(value):
        own = value.rechunk((lengths, *((n,) for n in value.shape[1:])))
        return Chunked(value.dtype, value.shape[1:], client.compute(list(own.to_delayed().ravel())))
    held = value.held if isinstance(value, Shard) else {}
    array = value.array if isinstance(value, Shard) else value
    key = (client.id, lengths)
    if key not in held:
        ends = np.cumsum(lengths).tolist()
        pieces = [np.array(array[end - n : end]) for end, n in zip(ends, lengths, strict=True)]
        held[key] = [client.scatter(piece, hash=False) for piece in pieces]
    return Chunked(array.dtype, array.shape[1:], held[key])
