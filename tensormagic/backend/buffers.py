"""Memory of runs: a large array that nobody has any more is taken again, so that its pages need not be mapped anew."""

from __future__ import annotations

import ctypes
import math
import sys
import threading
import weakref
from typing import Any

import numpy as np

LARGE = 1 << 17  # elements from which an array comes from here: the allocator maps fresh pages for every larger one
MOST_BYTES = 256 << 20  # kept in all; more than that is left to the allocator
_FREE = 2  # references to a block that only the pool has: the list's and that of the call that counts
_COUNTS = getattr(sys, "_is_gil_enabled", lambda: True)()  # without the lock, counts of references say nothing

Array = np.ndarray[Any, Any]


class Pool:
    """Blocks of memory that arrays were made from, the least recently used first.

    An array given out is a view of its block and so holds it; when the array and all its views are gone, the pool's own
    reference is the only one, and the block is free.
    """

    def __init__(self) -> None:
        self._blocks: list[Array] = []
        self._lock = threading.Lock()

    def take(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
        """An array with any content."""
        size = dtype.itemsize
        for extent in shape:
            size *= extent
        if size > MOST_BYTES // 2 or not _COUNTS:
            return np.empty(shape, dtype)
        with self._lock:
            block = self._find(size)
            if block is None:
                block = np.empty(size, np.uint8)
                self._shrink(size)
            self._blocks.append(block)
        return np.ndarray(shape, dtype, buffer=block)

    def _find(self, size: int) -> Array | None:
        blocks = self._blocks
        for k in reversed(range(len(blocks))):  # the last one used is most likely in a cache
            if blocks[k].nbytes == size and sys.getrefcount(blocks[k]) == _FREE:
                block = blocks.pop(k)
                block.flags.writeable = True  # whoever had an array of it may have set its base read-only
                return block
        return None

    def _shrink(self, size: int) -> None:
        """Forget the least recently used blocks beyond the bound, used or not: who has one keeps it."""
        total = size + sum(b.nbytes for b in self._blocks)
        while self._blocks and total > MOST_BYTES:
            total -= self._blocks.pop(0).nbytes

    def clear(self) -> None:
        """Give everything that is free back to the allocator."""
        with self._lock:
            self._blocks.clear()


pool = Pool()


def growing() -> Array:
    """Address and size, in bytes, of memory that compiled code makes larger; it is given back with this array."""
    memory = (ctypes.c_int64 * 2)()
    array = np.frombuffer(memoryview(memory), np.int64)
    weakref.finalize(array, _give_back, memory)
    return array


def _give_back(memory: ctypes.Array[ctypes.c_int64]) -> None:
    if memory[0]:
        ctypes.CDLL(None).free(ctypes.c_void_p(memory[0]))


def packed(value: Any, dtype: np.dtype[Any]) -> Array:
    """``value`` as an aligned array in C order, itself where it is one."""
    array = np.asarray(value, dtype, order="C")
    if array.flags.num & 0x101 != 0x101:  # C_CONTIGUOUS and ALIGNED
        array = np.array(array, dtype, order="C")
    return array


def cut(array: np.ndarray[Any, Any], shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    """The first elements of an array in C order, as many as an array of ``shape`` has; all there are, where it has more."""
    count = math.prod(shape)
    return array if array.shape == shape or array.size < count else array.reshape(-1)[:count].reshape(shape)


def owned(value: Any, others: tuple[Any, ...]) -> Any:
    """``value`` as a result that shares memory with nothing: a copy of what is a view, or one of ``others``."""
    if isinstance(value, np.ndarray) and (value.base is not None or any(value is o for o in others)):
        return value.copy()
    return value
