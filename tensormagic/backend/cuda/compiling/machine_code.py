"""Load kernels on a GPU: as machine code that the driver has made, cached on disk like the PTX, or as PTX."""

from __future__ import annotations

import hashlib
import time
from typing import Any

from tensormagic.backend.compiling import cache as disk
from tensormagic.backend.compiling.messages import Code
from tensormagic.backend.cuda.device import Device


def loaded(device: Device, code: Code) -> Any:
    """Return the kernel of a code, loaded on a device."""
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
    """Return the cache key of machine code: a digest of the PTX, the architecture, and the driver's version."""
    told = (hashlib.sha256(code.data).hexdigest(), code.symbol, device.capability, device.driver)
    return "cubin-" + hashlib.sha256(repr(told).encode()).hexdigest()


def _tried(device: Device, kept: Code) -> Any:
    """Return the kernel of cached machine code, or None where the driver refuses it."""
    try:
        return device.load(kept.data, kept.symbol)
    except Exception:  # noqa: BLE001 (whatever a driver says of it: the PTX is there)
        return None
