"""The capabilities of the namespace, as the standard has them queried."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensormagic.numpy.calling import DEVICE, check_device
from tensormagic.numpy.dtypes import ALL, KINDS, complex128, float64, int64


class Info:
    """Capabilities, devices and data types of the namespace."""

    def capabilities(self) -> dict[str, Any]:
        """Return the capabilities that the standard leaves open."""
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 64}

    def default_device(self) -> str:
        """Return the device that arrays are created on."""
        return DEVICE

    def default_dtypes(self, *, device: Any = None) -> dict[str, np.dtype[Any]]:
        """Return the data types of arrays that are created without naming one."""
        check_device(device)
        return {"real floating": float64, "complex floating": complex128, "integral": int64, "indexing": int64}

    def devices(self) -> list[str]:
        """Return all devices."""
        return [DEVICE]

    def dtypes(self, *, device: Any = None, kind: Any = None) -> dict[str, np.dtype[Any]]:
        """Return the data types, or those of one kind or several, by name."""
        check_device(device)
        if kind is None:
            return dict(ALL)
        found: dict[str, np.dtype[Any]] = {}
        for name in kind if isinstance(kind, tuple) else (kind,):
            if name not in KINDS:
                raise ValueError(f"no kind of data type is called {name!r}; the kinds are {', '.join(KINDS)}")
            found |= KINDS[name]
        return found


def __array_namespace_info__() -> Info:  # noqa: N807  (the standard's name)
    """Return an object that tells the namespace's capabilities."""
    return Info()
