"""Measure the time of each part of a run (a kernel, a library call, a loop) on the device, synchronising before and after it."""

from __future__ import annotations

import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from typing import Any

from tensormagic.backend.cuda.device import Device
from tensormagic.ir.node import Node


class Clock:
    """Accumulates seconds per group of nodes; the time of a nested part counts for that part alone.

    Parameters
    ----------
    device
        What is waited for.

    Attributes
    ----------
    seconds
        By the nodes that are computed together.
    """

    def __init__(self, device: Device) -> None:
        self.device = device
        self.seconds: dict[tuple[Node, ...], float] = {}
        self._at: list[tuple[Node, ...]] = []
        self._since = 0.0

    @contextmanager
    def of(self, nodes: Sequence[Node]) -> Generator[None]:
        """Charge the time spent within the context to these nodes."""
        self._charge()
        self._at.append(tuple(nodes))
        try:
            yield
        finally:
            self._charge()
            self._at.pop()

    def _charge(self) -> None:
        self.device.synchronize()
        now = time.perf_counter()
        if self._at:
            self.seconds[self._at[-1]] = self.seconds.get(self._at[-1], 0.0) + now - self._since
        self._since = now


_clock: ContextVar[Clock | None] = ContextVar("clock", default=None)


@contextmanager
def timed(device: Device) -> Generator[Clock]:
    """Yield a clock that measures whatever is computed within the context."""
    made = Clock(device)
    token = _clock.set(made)
    try:
        yield made
    finally:
        _clock.reset(token)


def at(*nodes: Node) -> Any:
    """Return a context that charges the time of these nodes to the active clock, if there is one."""
    watch = _clock.get()
    return nullcontext() if watch is None else watch.of(nodes)


def runs() -> bool:
    """Return whether a clock is active."""
    return _clock.get() is not None
