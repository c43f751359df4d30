"""What the standard requires of the array itself, beyond NumPy's methods: its namespace, its device, and DLPack."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from tensormagic import session
from tensormagic.capture.errors.refusal import needs_value
from tensormagic.capture.hooks import hooks
from tensormagic.capture.values.value import Tensor
from tensormagic.numpy.calling import DEVICE, check_device

_HOST = 1  # DLPack's number of the host
VERSIONS = ("2021.12", "2022.12", "2023.12", "2024.12")


def _namespace(self: Tensor, /, *, api_version: str | None = None) -> Any:
    """Return the namespace of the standard's functions."""
    if api_version is not None and api_version not in VERSIONS:
        raise ValueError(f"version {api_version!r} of the standard is not supported; {VERSIONS[-1]} is")
    return sys.modules["tensormagic.numpy"]


def _to_device(self: Tensor, device: Any, /, *, stream: Any = None) -> Tensor:
    """Return the array on a device, of which there is one."""
    if stream is not None:
        raise ValueError(f"the device {DEVICE!r} has no streams")
    check_device(device)
    return self


def _dlpack(
    self: Tensor,
    /,
    *,
    stream: Any = None,
    max_version: tuple[int, int] | None = None,
    dl_device: Any = None,
    copy: bool | None = None,
) -> Any:
    """Return the value as a DLPack capsule: read-only, or a copy if the consumer does not know read-only memory."""
    needs_value("DLPack")
    there = session.device_array(self.node)
    if hasattr(there, "__dlpack__") and (dl_device is None or dl_device[0] != _HOST):
        return there.__dlpack__(stream=stream, max_version=max_version)
    value = np.asarray(self.numpy())
    if copy or (copy is None and (max_version is None or max_version < (1, 0))):
        value = value.copy()
    return value.__dlpack__(stream=stream, max_version=max_version, dl_device=dl_device, copy=None)


def _dlpack_device(self: Tensor) -> Any:
    there = session.device_array(self.node)
    return (there if hasattr(there, "__dlpack__") else np.zeros(0)).__dlpack_device__()


def install() -> None:
    """Give lazy arrays these attributes."""
    Tensor.device = property(lambda self: DEVICE, doc="The device that the array is on.")  # type: ignore[attr-defined]
    hooks.methods["__array_namespace__"] = _namespace
    hooks.methods["to_device"] = _to_device
    hooks.methods["__dlpack__"] = _dlpack
    hooks.methods["__dlpack_device__"] = _dlpack_device
