"""Rows of a memory-mapped file, read by the process that computes with them."""

from __future__ import annotations

import mmap
import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from tensormagic.ir.errors import GuardError

Stamp = tuple[int, int]  # bytes, and nanoseconds of the last change


@dataclass(frozen=True)
class FileRows:
    """The place of an array's rows in a file.

    Parameters
    ----------
    path
        The file.
    stamp
        Its size and when it was changed last: another machine's file of the same name is another one.
    dtype, shape, strides
        Those of the array.
    offset
        Where the array's first element lies.
    """

    path: str
    stamp: Stamp
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int

    def part(self, first: int, last: int) -> FileRows:
        """Return some of the rows."""
        return replace(self, shape=(last - first, *self.shape[1:]), offset=self.offset + first * self.strides[0])

    def head(self, count: int) -> FileRows:
        """Return the first rows."""
        return self.part(0, count)

    def read(self) -> np.ndarray[Any, Any]:
        """Return the rows, in memory."""
        if stamp_of(self.path) != self.stamp:
            raise GuardError(
                f"{self.path} is not there, or is not the file that it was when the call began",
                "Keep the file as it is, where all workers see it; or pass tm.shard(np.array(x)).",
            )
        ends = [(n - 1) * s for n, s in zip(self.shape, self.strides, strict=True) if n]
        if 0 in self.shape:
            return np.empty(self.shape, self.dtype)
        low, high = sum(e for e in ends if e < 0), sum(e for e in ends if e > 0) + self.dtype.itemsize
        count = high - low
        flat = np.memmap(self.path, np.uint8, "r", self.offset + low, (count,))
        own = np.ndarray(self.shape, self.dtype, flat, -low, self.strides)
        return np.array(own)


def stamp_of(path: str) -> Stamp | None:
    """Return what distinguishes a file from another one of the same name, or None if there is no file."""
    try:
        found = Path(path).stat()
    except OSError:
        return None
    return found.st_size, found.st_mtime_ns


def rows_of_file(array: np.memmap[Any, Any], client: Any) -> FileRows | None:
    """Return the place of all rows of an array in its file, or None if a worker does not see it, or the file does not hold all of it."""
    base: Any = array
    while isinstance(base, np.ndarray):
        base = base.base
    if not isinstance(base, mmap.mmap) or array.filename is None or array.mode == "c" or array.dtype.hasobject:
        return None
    path = os.fspath(array.filename)
    if array.mode in {"r+", "w+"}:
        base.flush()
    begin = np.frombuffer(base, np.uint8, 1).__array_interface__["data"][0]
    start = array.offset - array.offset % mmap.ALLOCATIONGRANULARITY  # the array's own offset within the map
    offset = start + array.__array_interface__["data"][0] - begin
    stamp = stamp_of(path)
    if stamp is None or any(seen != stamp for seen in client.run(stamp_of, path).values()):
        return None
    return FileRows(path, stamp, array.dtype, array.shape, array.strides, offset)
