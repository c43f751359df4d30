"""Memory reuse between runs: a large array that nobody references any more is used again, so that its pages need not be mapped anew."""

from __future__ import annotations

import ctypes
import math
import sys
import threading
import weakref
from typing import Any

import numpy as np

from tensormagic.ir.counting import ONE, count

LARGE = 1 << 13  # elements from which an array comes from here: the allocator maps fresh pages for most that are larger
MOST_BYTES = 256 << 20  # kept in all; more than that is left to the allocator
_ALIKE = 16  # blocks of one size that are kept: this many are looked at, at most, for one that is free
_COUNTS = getattr(sys, "_is_gil_enabled", lambda: True)()  # without the lock, counts of references say nothing

Array = np.ndarray[Any, Any]


class Pool:
    """Blocks of memory of former arrays, by size, for reuse.

    An array given out is a view of its block and so keeps it; once the array and all its views are gone, the pool's own
    reference is the only one, and the block is free. Threads take a block out of its list before they look at it.
    """

    def __init__(self) -> None:
        self._blocks: dict[int, list[Array]] = {}  # the last one taken last; the size of the last new block last
        self._lock = threading.Lock()

    def take(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
        """Return an array with any content."""
        size = dtype.itemsize
        for extent in shape:
            size *= extent
        if size > MOST_BYTES // 2 or not _COUNTS:
            return np.empty(shape, dtype)
        alike = self._blocks.get(size) or []
        for _ in range(len(alike)):
            try:
                mine = [alike.pop()]  # the last one taken is most likely in a cache
            except IndexError:  # other threads have the rest
                break
            free, block = count(mine) == ONE, mine[0]
            if free:
                if not block.flags.writeable:  # the owner of an array in it has made its base read-only
                    block.flags.writeable = True
                alike.append(block)
                return np.ndarray(shape, dtype, block)
            alike.insert(0, block)
        return np.ndarray(shape, dtype, self._new(size))

    def _new(self, size: int) -> Array:
        """Return a new block; if there are too many, others leave the pool (arrays in use keep their memory)."""
        block = np.empty(size, np.uint8)
        with self._lock:
            alike = self._blocks.pop(size, [])
            del alike[: max(0, len(alike) - _ALIKE + 1)]
            alike.append(block)
            self._blocks[size] = alike
            total = sum(s * len(blocks) for s, blocks in self._blocks.items())
            while total > MOST_BYTES:
                oldest, blocks = next(iter(self._blocks.items()))
                total -= oldest
                del blocks[:1]
                if not blocks:
                    del self._blocks[oldest]
        return block

    def clear(self) -> None:
        """Return all free blocks to the allocator."""
        with self._lock:
            self._blocks.clear()


pool = Pool()


def growing() -> Array:
    """Address and size, in bytes, of memory that compiled code enlarges; freed with the returned array."""
    memory = (ctypes.c_int64 * 2)()
    array = np.frombuffer(memoryview(memory), np.int64)
    weakref.finalize(array, _give_back, memory)
    return array


def _give_back(memory: ctypes.Array[ctypes.c_int64]) -> None:
    if memory[0]:
        ctypes.CDLL(None).free(ctypes.c_void_p(memory[0]))


def packed(value: Any, dtype: np.dtype[Any]) -> Array:
    """``value`` as an aligned array in C order; ``value`` itself if it is one."""
    array = np.asarray(value, dtype, order="C")
    if array.flags.num & 0x101 != 0x101:  # C_CONTIGUOUS and ALIGNED
        array = np.array(array, dtype, order="C")
    return array


def cut(array: np.ndarray[Any, Any], shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    """Return as many leading elements of a C-order array as ``shape`` needs; the whole array if it has fewer."""
    count = math.prod(shape)
    return array if array.shape == shape or array.size < count else array.reshape(-1)[:count].reshape(shape)


def owned(value: Any, others: tuple[Any, ...]) -> Any:
    """``value`` as a result that shares no memory: a copy if it is a view, or one of ``others``."""
    if isinstance(value, np.ndarray) and (value.base is not None or any(value is o for o in others)):
        return value.copy()
    return value
