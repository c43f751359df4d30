"""The processor's floating-point flags: whether something was divided by zero, overflowed, or was invalid since they were cleared."""

from __future__ import annotations

import ctypes
import math
import platform
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

BITS = {"x86_64": 0b1101, "AMD64": 0b1101, "aarch64": 0b111, "arm64": 0b111}.get(platform.machine(), 0)


def _function(name: str) -> Callable[[int], int]:
    """Return a function of the C library; one that returns 0 if it is missing."""
    for library in (None, "libm.so.6"):
        with suppress(OSError, AttributeError):
            return getattr(ctypes.PyDLL(library), name)
    return lambda _bits: 0


_clear, _test, _raise = _function("feclearexcept"), _function("fetestexcept"), _function("feraiseexcept")


def clear() -> None:
    """Forget what was seen on this thread."""
    _clear(BITS)


def seen() -> int:
    """Return the floating-point flags of this thread."""
    return _test(BITS)


def take_over(found: int) -> None:
    """Set flags in this thread that were set in another."""
    if found:
        _raise(found)


def suspicious(results: Sequence[Any]) -> bool:
    """Return whether a floating-point flag is set, or a result is not finite: a reason to search for the line responsible."""
    if _test(BITS):
        return True
    for result in results:  # noqa: SIM110 (a generator takes longer than all the rest)
        if isinstance(result, float) and not math.isfinite(result):
            return True
    return False
