"""Calls of compiled functions that take arrays and numbers alone: Numba's, and those of C by ctypes or cffi.

In a cell they get the values; where there are none yet, in functions and in what depends on data, they are refused by name.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tensormagic.capture.elements import Outgrown
from tensormagic.capture.refusal import needs_value
from tensormagic.capture.value import Tensor
from tensormagic.ir.errors import CaptureError

_MAKERS = {"numba": "Numba", "_ctypes": "C", "ctypes": "C", "_cffi_backend": "C"}


def maker_of(function: Any) -> str:
    """Whose function this is; empty for Python's and NumPy's own."""
    found = (_MAKERS.get(kind.__module__.partition(".")[0]) for kind in type(function).__mro__)
    return next((maker for maker in found if maker), "")


def with_values(function: Callable[..., Any], maker: str) -> Callable[..., Any]:
    """``function``, called with the values of what is lazy among its arguments."""
    name = getattr(function, "__name__", type(function).__name__)

    def call(*args: Any, **options: Any) -> Any:
        lent: list[tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]] = []
        values = [_value(v, name, maker, lent) for v in args]
        named = {k: _value(v, name, maker, lent) for k, v in options.items()}
        result = function(*values, **named)
        if any(copy.tobytes() != own.tobytes() for copy, own in lent):
            raise CaptureError(
                f"{name}, a function of {maker}, stores into a captured array, which does not see that",
                "Call it in a cell of its own, with arrays.",
            )
        return result

    return call


def _value(value: Any, name: str, maker: str, lent: list[tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]]) -> Any:
    """An argument with values for what is lazy in it; arrays are copies, since compiled code may store into them."""
    if type(value) in {list, tuple} and not isinstance(value, Outgrown):
        return type(value)(_value(v, name, maker, lent) for v in value)
    if not isinstance(value, Tensor):
        return value
    needs_value(
        f"{name}, a function of {maker},", "Call it outside, with arrays; or write it as NumPy code.", value.node
    )
    found = value.numpy()
    if not isinstance(found, np.ndarray):
        return found
    copy = np.array(found, order="K")
    lent.append((copy, found))
    return copy


__all__ = ["maker_of", "with_values"]
