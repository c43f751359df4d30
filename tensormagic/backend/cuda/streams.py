"""Overlap copies with computation: inputs come in on one stream, values go out on another, and events order what has to be.

Computation is in one stream, in which the library and the kernels are launched. Memory belongs to that stream: the
array for an input is allocated there, and the copy waits for that; the first use of the array waits for the copy.
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

    As one stream copies them, the event of one array says that all before it are complete, too.

    Parameters
    ----------
    graph, order
        What is run with them, and in which order its parameters are copied.
    """

    def __init__(self, device: Device, graph: Graph | None = None, order: Order = NO_ORDER) -> None:
        self.graph, self.order = graph, order
        self._device = device
        self._numbers: dict[int, int] = {}  # index into ``_events`` by id of the array, which ``_events`` keeps alive
        self._events: list[tuple[DeviceArray, Event]] = []
        self._arrived = 0

    def copy(self, targets: Sequence[DeviceArray], arrays: Sequence[np.ndarray[Any, Any]]) -> None:
        """Start copying arrays into new ones, in order; call ``need`` before computing with them."""
        if not targets:
            return
        device = self._device
        there = device.record()
        with device.on(IN):
            device.wait(there)  # until earlier users of this memory are done
            for target, array in zip(targets, arrays, strict=True):
                device.fill(target, array)
                self._events.append((target, device.record()))
                self._numbers[id(target)] = len(self._events)

    def need(self, values: Iterable[Any]) -> None:
        """Make later launches wait for those of the values that are still being copied."""
        if self._arrived < len(self._events):
            self._wait(max((self._numbers.get(id(v), 0) for v in values), default=0))

    def need_all(self) -> None:
        """Make later launches wait for all arrays that are still being copied."""
        self._wait(len(self._events))

    def _wait(self, number: int) -> None:
        if number > self._arrived:
            self._device.wait(self._events[number - 1][1])
            self._arrived = number


def copied_out(device: Device, array: DeviceArray, after: Event | None = None) -> np.ndarray[Any, Any]:
    """Return a copy on the host of a value that is complete ``after`` an event, without waiting for later computation."""
    made = device.record() if after is None else after
    with device.on(OUT):
        device.wait(made)
        return device.fetch(array)
