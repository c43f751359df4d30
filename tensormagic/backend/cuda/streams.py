"""Copies beside computing: inputs come in on a stream of their own, values go out on another, and events order what has to be.

What is computed is in one stream, that in which the library and the kernels are launched. Memory belongs to that stream: an array that
is copied in is asked for there, and the copy waits for it; what computes with the array waits for the copy, at its first use.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from tensormagic.backend.cuda.arrivals import NO_ORDER, Order
from tensormagic.backend.cuda.device import Device, DeviceArray, Event
from tensormagic.ir.graph import Graph

IN, OUT = "in", "out"


class Arriving:
    """Arrays that are being copied to the device, in the order in which they are needed.

    An event says that one is complete, and all before it, since one stream copies them.

    Parameters
    ----------
    graph, order
        What is run with them, and in which order its parameters are copied.
    """

    def __init__(self, device: Device, graph: Graph | None = None, order: Order = NO_ORDER) -> None:
        self.graph, self.order = graph, order
        self._device = device
        self._numbers: dict[int, int] = {}  # by the identity of arrays, which are held below
        self._events: list[tuple[DeviceArray, Event]] = []
        self._arrived = 0

    def copy(self, targets: Sequence[DeviceArray], arrays: Sequence[np.ndarray[Any, Any]]) -> None:
        """Have arrays copied into new ones, the first one first; they are to be computed with once they have been needed here."""
        if not targets:
            return
        device = self._device
        there = device.record()
        with device.on(IN):
            device.wait(there)  # whoever had this memory before has done with it
            for target, array in zip(targets, arrays, strict=True):
                device.fill(target, array)
                self._events.append((target, device.record()))
                self._numbers[id(target)] = len(self._events)

    def need(self, values: Iterable[Any]) -> None:
        """Have what is launched from now on wait for those of the values that are on their way."""
        if self._arrived < len(self._events):
            self._wait(max((self._numbers.get(id(v), 0) for v in values), default=0))

    def need_all(self) -> None:
        """The same for all that are on their way; whoever takes them later has nothing to wait for."""
        self._wait(len(self._events))

    def _wait(self, number: int) -> None:
        if number > self._arrived:
            self._device.wait(self._events[number - 1][1])
            self._arrived = number


def copied_out(device: Device, array: DeviceArray, after: Event | None = None) -> np.ndarray[Any, Any]:
    """A copy on the host of a value that is complete ``after`` an event: it waits for nothing that is computed behind that."""
    made = device.record() if after is None else after
    with device.on(OUT):
        device.wait(made)
        return device.fetch(array)
