"""Functions of the standard that move elements: shapes, joining, taking."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensormagic.capture.values.value import Tensor
from tensormagic.ir.errors import AxisError
from tensormagic.numpy.calling import call


def broadcast_arrays(*arrays: Any) -> list[Tensor]:
    """Return arrays stretched to the shape that they have together."""
    return list(call(np.broadcast_arrays, *arrays))


def broadcast_to(x: Any, /, shape: tuple[Any, ...]) -> Tensor:
    """Return an array stretched to a shape."""
    return call(np.broadcast_to, x, shape)


def concat(arrays: Any, /, *, axis: int | None = 0) -> Tensor:
    """Return arrays joined along an axis that they have."""
    return call(np.concatenate, arrays, axis=axis)


def expand_dims(x: Any, /, axis: Any = 0) -> Tensor:
    """Return an array with one more axis, or several, of extent 1."""
    return call(np.expand_dims, x, axis)


def flip(x: Any, /, *, axis: Any = None) -> Tensor:
    """Return elements in reversed order."""
    return call(np.flip, x, axis)


def moveaxis(x: Any, source: Any, destination: Any, /) -> Tensor:
    """Return an array with some of its axes at other places."""
    return call(np.moveaxis, x, source, destination)


def permute_dims(x: Any, /, axes: tuple[int, ...]) -> Tensor:
    """Return an array with its axes in another order."""
    return call(np.transpose, x, axes)


def repeat(x: Any, repeats: Any, /, *, axis: int | None = None) -> Tensor:
    """Return each element several times."""
    if axis is not None and not x.ndim:  # NumPy raises no error
        raise AxisError(f"axis {axis} is out of bounds for array of dimension 0")
    return call(np.repeat, x, repeats, axis)


def reshape(x: Any, /, shape: Any, *, copy: bool | None = None) -> Tensor:
    """Return the same elements in another shape."""
    return call(np.reshape, x, shape, copy=copy)


def roll(x: Any, /, shift: Any, *, axis: Any = None) -> Tensor:
    """Return elements moved on, those at the end to the start."""
    return call(np.roll, x, shift, axis)


def squeeze(x: Any, /, axis: Any) -> Tensor:
    """Return an array without some axes of extent 1."""
    if not isinstance(axis, tuple) and not x.ndim:  # NumPy raises no error
        raise AxisError(f"axis {axis} is out of bounds for array of dimension 0")
    return call(np.squeeze, x, axis)


def stack(arrays: Any, /, *, axis: int = 0) -> Tensor:
    """Return arrays joined along a new axis."""
    return call(np.stack, arrays, axis)


def tile(x: Any, repetitions: tuple[int, ...], /) -> Tensor:
    """Return the whole array several times along each axis."""
    return call(np.tile, x, repetitions)


def unstack(x: Any, /, *, axis: int = 0) -> tuple[Tensor, ...]:
    """Return the slices along an axis."""
    return tuple(call(np.unstack, x, axis=axis))


def take(x: Any, indices: Any, /, *, axis: int | None = None) -> Tensor:
    """Return elements, or slices along an axis, by their indices."""
    if axis is None and np.ndim(x) != 1:
        raise ValueError(f"take needs an axis, since x has {np.ndim(x)} axes")
    return call(np.take, x, indices, axis)


def take_along_axis(x: Any, indices: Any, /, *, axis: int = -1) -> Tensor:
    """Return elements by an index for each place along an axis."""
    return call(np.take_along_axis, x, indices, axis)
