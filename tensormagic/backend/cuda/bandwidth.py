"""Measure how fast a device copies, for the report of the doctor."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from tensormagic.backend.cuda.device import Device

BYTES = 1 << 26
_TIMES = 3  # measurements, of which the quickest counts


def bandwidths(device: Device, count: int) -> dict[str, float]:
    """Return the bytes per second of copies to a device, from it, and on it (each byte read and written)."""
    source = np.zeros(count, np.uint8)
    target = device.library.empty(source.shape, source.dtype)
    ways: dict[str, tuple[Callable[[], Any], int]] = {
        "to it": (lambda: device.fill(target, source), count),
        "from it": (lambda: device.fetch(target), count),
        "on it": (target.copy, 2 * count),
    }
    return {way: moved / min(_seconds(device, copy) for _ in range(_TIMES)) for way, (copy, moved) in ways.items()}


def bandwidths_text(device: Device) -> str:
    """Return the measured bandwidths as text: ``copies 25 GB/s to it, 24 GB/s from it, 2,930 GB/s on it``."""
    told = [f"{speed / 1e9:,.3g} GB/s {way}" for way, speed in bandwidths(device, BYTES).items()]
    return f"copies {', '.join(told)}"


def _seconds(device: Device, copy: Callable[[], Any]) -> float:
    device.synchronize()
    begin = time.perf_counter()
    copy()
    device.synchronize()
    return max(time.perf_counter() - begin, 1e-9)
