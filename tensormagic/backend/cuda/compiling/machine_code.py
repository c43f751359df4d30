"""Kernels on a GPU: machine code that the driver has made, kept in the disk cache as the PTX is; PTX where none fits."""

from __future__ import annotations

import hashlib
import time
from typing import Any

from tensormagic.backend.compiling import cache as disk
from tensormagic.backend.compiling.messages import Code
from tensormagic.backend.cuda.device import Device


def loaded(device: Device, code: Code) -> Any:
    """The kernel of a code on a device."""
    key = key_of(device, code)
    kept = disk.read(key)
    if kept is None:
        begin = time.perf_counter()
        image = device.assembled(code.data)
        if image:
            kept = Code(code.symbol, image, time.perf_counter() - begin)
            disk.write(key, kept)
    found = _tried(device, kept) if kept is not None else None
    return device.load(code.data, code.symbol) if found is None else found


def key_of(device: Device, code: Code) -> str:
    """The name under which machine code is kept: the PTX, the architecture, and the version of the driver."""
    told = (hashlib.sha256(code.data).hexdigest(), code.symbol, device.capability, device.driver)
    return "cubin-" + hashlib.sha256(repr(told).encode()).hexdigest()


def _tried(device: Device, kept: Code) -> Any:
    """The kernel of kept machine code; None where the driver does not take it."""
    try:
        return device.load(kept.data, kept.symbol)
    except Exception:  # noqa: BLE001 (whatever a driver says of it: the PTX is there)
        return None
