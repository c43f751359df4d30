"""The threads that large loops of kernels are shared among: how many, started when first needed, anew in a forked child.

They are POSIX threads that run machine code alone, hold no lock of the interpreter, and sleep between loops. A system without such
threads, or without the loader of machine code, has one.
"""

from __future__ import annotations

import atexit
import ctypes
import os
import signal
import threading
from contextlib import suppress
from functools import cache
from importlib.util import find_spec
from typing import Any

from tensormagic.backend.running import flags
from tensormagic.config import config

ALONE = (0, 1)
"""What a kernel is given to run by itself: no pool, one thread."""
MOST = 256
SPINS = 50
_STACK = 8 << 20  # bytes for each thread: kernels keep tiles there
_least = 2_000_000


def least() -> int:
    """Return the work, in eighths of an operation, from which a loop is shared."""
    return _least


class Pool:
    """Threads that wait for work.

    Parameters
    ----------
    count
        The number of threads that share a loop, including the calling one.

    Attributes
    ----------
    address
        The address passed to kernels.
    """

    def __init__(self, count: int) -> None:
        code = _code()
        library = ctypes.CDLL(None)
        library.calloc.restype = ctypes.c_void_p
        library.calloc.argtypes = [ctypes.c_size_t, ctypes.c_size_t]
        from tensormagic.backend.cpu.pool import LOCAL, WORDS

        memory = library.calloc(WORDS + count * LOCAL + 8, 8)  # for good: a thread may look at it to the end
        if not memory:
            raise MemoryError
        self.count, self.bound = count, _least
        self.address: int = (memory + 63) // 64 * 64
        code["prepare"](self.address, count, self.bound)
        self._threads: list[ctypes.c_void_p] = []
        starter = threading.Thread(target=self._start, args=(library, code["work_address"]), daemon=True)
        starter.start()
        starter.join()

    def _start(self, library: Any, work: int) -> None:
        """Start the threads from one that blocks all signals, so that signals go to the interpreter's threads."""
        signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        attributes = (ctypes.c_uint64 * 16)()
        library.pthread_attr_init(attributes)
        library.pthread_attr_setstacksize(attributes, ctypes.c_size_t(_STACK))
        for _ in range(self.count - 1):
            thread, given = ctypes.c_void_p(), (ctypes.c_void_p(work), ctypes.c_void_p(self.address))
            if library.pthread_create(ctypes.byref(thread), attributes, *given):
                break  # those that there are do it
            self._threads.append(thread)
        library.pthread_attr_destroy(attributes)

    def is_current(self) -> bool:
        """Return whether the pool has the number of threads that is configured now."""
        return self.count == min(config.threads, MOST) and self.bound == _least

    def finish(self) -> bool:
        """Stop the threads and wait for them; False if they are at work."""
        if not _code()["finish"](self.address):
            return False
        join = ctypes.CDLL(None).pthread_join
        for thread in self._threads:
            join(thread, None)
        return True


@cache
def _code() -> dict[str, Any]:
    """Return the machine code of pools: functions, and the address of a thread's main function."""
    from tensormagic.backend.cpu.loader import link, object_of
    from tensormagic.backend.cpu.pool import pool_text

    library = link(object_of(pool_text(flags.BITS, SPINS)), "prepare", "work", "finish")
    pointer = ctypes.c_void_p
    return {
        "prepare": ctypes.CFUNCTYPE(None, pointer, ctypes.c_int64, ctypes.c_int64)(library["prepare"]),
        "finish": ctypes.CFUNCTYPE(ctypes.c_int32, pointer)(library["finish"]),
        "work_address": library["work"],
    }


@cache
def available() -> bool:
    """Return whether this system has POSIX threads and the loader for their code."""
    return os.name == "posix" and find_spec("llvmlite") is not None and hasattr(ctypes.CDLL(None), "pthread_create")


_current: Pool | None = None
_past: list[Pool] = []  # of other sizes, which were at work when they were asked to end
_lock = threading.Lock()


def team(work: int) -> tuple[int, int]:
    """Return the pool for a run with this amount of work, and its number of threads; `ALONE` if it is little."""
    if work < _least or config.threads == 1:
        return ALONE
    pool = _current
    if pool is None or not pool.is_current():
        pool = _pool()
    return ALONE if pool is None else (pool.address, pool.count)


def _pool() -> Pool | None:
    """Return the pool with the configured number of threads; one of another size is stopped."""
    global _current
    if not available():
        return None
    with _lock:
        if _current is None or not _current.is_current():
            old, _current = _current, Pool(min(config.threads, MOST))
            _past[:] = [pool for pool in (*_past, *([old] if old else [])) if not pool.finish()]
        return _current


@atexit.register
def _end() -> None:
    if _current is not None:
        with suppress(Exception):
            _current.finish()


def _after_fork() -> None:
    """A forked child has none of the threads: it starts its own."""
    global _current, _lock
    _lock, _current = threading.Lock(), None
    _past.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
