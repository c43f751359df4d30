"""How functions of the standard call captured ones: the result is lazy, even if NumPy itself had to compute it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tensormagic.capture.inputs.door import check_dtype
from tensormagic.capture.inputs.snapshots import own
from tensormagic.capture.names import call_numpy
from tensormagic.capture.values.operands import node_of
from tensormagic.capture.values.ufuncs import call_ufunc
from tensormagic.capture.values.value import Tensor, owned, wrap

DEVICE = "cpu"


def lazy(value: Any) -> Any:
    """Return ``value`` with its arrays replaced by lazy arrays."""
    if isinstance(value, Tensor):
        return owned(value)
    if isinstance(value, np.ndarray | np.generic):
        return of_array(np.asarray(value))
    return type(value)(map(lazy, value)) if type(value) in {list, tuple} else value


def of_array(array: np.ndarray[Any, Any]) -> Tensor:
    """Return the lazy array of an array that nobody else holds."""
    check_dtype(array.dtype, "the data")
    array.flags.writeable = False  # so that it need not be copied
    return wrap(own(array) or node_of(array))


def call(function: Callable[..., Any], *args: Any, **options: Any) -> Any:
    """Return the result of the captured form of a NumPy function."""
    return lazy(call_numpy(function, tuple(map(lazy, args)), options))


def ufunc(function: Any, *operands: Any) -> Any:
    """Return the result of the captured form of a ufunc."""
    return lazy(call_ufunc(function, "__call__", operands, {}))


def check_device(device: Any) -> None:
    """Raise ValueError for a device that does not exist."""
    if device is not None and device != DEVICE:
        raise ValueError(f"there is no device {device!r}: lazy arrays of this namespace live on {DEVICE!r}")
