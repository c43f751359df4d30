"""What each part of a run takes on the device, which is waited for before and behind it: a kernel, a call of the library, a loop."""

from __future__ import annotations

import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from typing import Any

from tensormagic.backend.cuda.device import Device
from tensormagic.ir.node import Node


class Clock:
    """Seconds by what is computed; those of parts inside another one are theirs alone.

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
        """While these nodes are computed."""
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
    """A clock that stands at what is computed within."""
    made = Clock(device)
    token = _clock.set(made)
    try:
        yield made
    finally:
        _clock.reset(token)


def at(*nodes: Node) -> Any:
    """While these nodes are computed: on the clock, where there is one."""
    watch = _clock.get()
    return nullcontext() if watch is None else watch.of(nodes)


def runs() -> bool:
    """Whether there is a clock."""
    return _clock.get() is not None
