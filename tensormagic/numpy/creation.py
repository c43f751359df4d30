"""Functions of the standard that make arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensormagic.capture import context
from tensormagic.capture.values.operands import has_lazy
from tensormagic.capture.values.value import Tensor
from tensormagic.numpy.calling import call, check_device, of_array


def asarray(obj: Any, /, *, dtype: Any = None, device: Any = None, copy: bool | None = None) -> Tensor:
    """Return an array, a number or nested lists of these as a lazy array."""
    check_device(device)
    if has_lazy(obj):
        return call(np.array, obj, dtype=dtype, copy=copy) if copy is not None else call(np.asarray, obj, dtype=dtype)
    if copy is False:
        raise ValueError("Unable to avoid copy while creating a lazy array from other data.")
    array = np.array(obj, dtype=dtype)
    if context.current() is not None:  # the notebook's object stays an input of the cell
        return call(np.array, obj if isinstance(obj, list | tuple) else array, dtype=dtype)
    return of_array(array)


def from_dlpack(x: Any, /, *, device: Any = None, copy: bool | None = None) -> Tensor:
    """Return a lazy array of what another library's array holds."""
    check_device(device)
    if isinstance(x, Tensor):
        return asarray(x, copy=copy)
    if copy is False:
        raise ValueError("Unable to avoid copy while creating a lazy array from other data.")
    return of_array(np.array(np.from_dlpack(x)))


def arange(start: Any, /, stop: Any = None, step: Any = 1, *, dtype: Any = None, device: Any = None) -> Tensor:
    """Return numbers with even steps between them, the end left out."""
    check_device(device)
    return call(np.arange, 0 if stop is None else start, start if stop is None else stop, step, dtype=dtype)


def linspace(
    start: Any, stop: Any, /, num: Any, *, dtype: Any = None, device: Any = None, endpoint: bool = True
) -> Tensor:
    """Return ``num`` numbers with even steps between them."""
    check_device(device)
    return call(np.linspace, start, stop, num, endpoint=endpoint, dtype=dtype)


def zeros(shape: Any, *, dtype: Any = None, device: Any = None) -> Tensor:
    """Return zeros."""
    check_device(device)
    return call(np.zeros, shape, dtype)


def ones(shape: Any, *, dtype: Any = None, device: Any = None) -> Tensor:
    """Return ones."""
    check_device(device)
    return call(np.ones, shape, dtype)


def empty(shape: Any, *, dtype: Any = None, device: Any = None) -> Tensor:
    """Return an array to be filled; it holds zeros."""
    check_device(device)
    return call(np.empty, shape, dtype)


def full(shape: Any, fill_value: Any, *, dtype: Any = None, device: Any = None) -> Tensor:
    """Return one number everywhere."""
    check_device(device)
    return call(np.full, shape, _fitting(fill_value, dtype), dtype)


def zeros_like(x: Any, /, *, dtype: Any = None, device: Any = None) -> Tensor:
    """Return zeros in the shape of ``x``."""
    check_device(device)
    return call(np.zeros_like, x, dtype)


def ones_like(x: Any, /, *, dtype: Any = None, device: Any = None) -> Tensor:
    """Return ones in the shape of ``x``."""
    check_device(device)
    return call(np.ones_like, x, dtype)


def empty_like(x: Any, /, *, dtype: Any = None, device: Any = None) -> Tensor:
    """Return an array in the shape of ``x``, to be filled; it holds zeros."""
    check_device(device)
    return call(np.empty_like, x, dtype)


def full_like(x: Any, /, fill_value: Any, *, dtype: Any = None, device: Any = None) -> Tensor:
    """Return one number everywhere, in the shape of ``x``."""
    check_device(device)
    return call(np.full_like, x, _fitting(fill_value, x.dtype if dtype is None else dtype), dtype)


def _fitting(value: Any, dtype: Any) -> Any:
    """Return a number to fill with; raise NumPy's error for an integer that does not fit the data type."""
    if dtype is not None and isinstance(value, int):
        np.asarray(value, dtype)
    return value


def eye(n_rows: Any, n_cols: Any = None, /, *, k: int = 0, dtype: Any = None, device: Any = None) -> Tensor:
    """Return ones on one diagonal, zeros elsewhere."""
    check_device(device)
    return call(np.eye, n_rows, n_cols, k, np.float64 if dtype is None else dtype)


def tril(x: Any, /, *, k: int = 0) -> Tensor:
    """Return the lower triangle."""
    return call(np.tril, x, k)


def triu(x: Any, /, *, k: int = 0) -> Tensor:
    """Return the upper triangle."""
    return call(np.triu, x, k)


def meshgrid(*arrays: Any, indexing: str = "xy") -> list[Tensor]:
    """Return coordinates of the points of a grid."""
    return list(call(np.meshgrid, *arrays, indexing=indexing))
