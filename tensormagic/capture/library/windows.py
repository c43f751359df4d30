"""Sliding windows over an array: each window's elements along new axes."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from tensormagic.capture import context
from tensormagic.capture.errors.refusal import refuse
from tensormagic.capture.library.creation import arange
from tensormagic.capture.names import implements
from tensormagic.capture.values.arguments import one_axis, tensor
from tensormagic.capture.values.value import Tensor, extent, wrap
from tensormagic.ir.errors import ShapeError
from tensormagic.ir.size import nodes_of
from tensormagic.ir.type import hint
from tensormagic.ops.effects.checks import require
from tensormagic.ops.leaf import size_node
from tensormagic.ops.scalars import scalar

_TOO_LARGE = "window shape cannot be larger than input array shape"


@implements(np.lib.stride_tricks.sliding_window_view)
def sliding_window_view(
    x: Any, window_shape: Any, axis: Any = None, *, subok: bool = False, writeable: bool = False
) -> Tensor:
    """Implement ``numpy.lib.stride_tricks.sliding_window_view``: a view that cannot be stored through."""
    del subok
    if writeable:
        refuse("sliding_window_view with writeable=True", "Store into the array itself.")
    array = tensor(x)
    several = isinstance(window_shape, tuple | list)
    windows = tuple(map(operator.index, window_shape)) if several else (operator.index(window_shape),)
    if any(w < 0 for w in windows):
        raise ValueError("`window_shape` cannot contain negative values")
    axes = tuple(range(array.ndim)) if axis is None else _each(axis, array.ndim)
    if len(windows) != len(axes):
        what = f"all dimensions of `x`; got {len(windows)} window_shape elements and `x.ndim` is {array.ndim}"
        if axis is not None:
            what = f"the axes; got {len(windows)} window_shape elements and {len(axes)} axes elements"
        raise ValueError(f"Must provide window_shape for {what}.")
    array = _long_enough(array, axes, windows)
    return array.view_of(
        lambda node: _windows(wrap(node), axes, windows).node,
        None,
        lambda a: np.lib.stride_tricks.sliding_window_view(a, windows, axes),
    )


def _long_enough(array: Tensor, axes: Sequence[int], windows: Sequence[int]) -> Tensor:
    """Return the array, checked to be at least as long as the windows along each axis, which may occur twice."""
    left = list(array.type.shape)
    for at, window in zip(axes, windows, strict=True):
        length = left[at]
        left[at] = length - window + 1
        if (seen := hint(length)) is not None and seen < window:
            raise ShapeError(_TOO_LARGE)
        if nodes_of(length):
            enough = scalar.greater_equal(size_node(length), window)
            array = wrap(require(array.node, enough, _TOO_LARGE))
        elif not isinstance(length, int) and (capture := context.current()) is not None:
            capture.guards.append((length, ">=", window))
    return array


def _windows(x: Tensor, axes: Sequence[int], windows: Sequence[int]) -> Tensor:
    """Return the windows of each axis, in turn."""
    for at, window in zip(axes, windows, strict=True):
        places = arange(extent(x.type.shape[at] - window + 1))[:, None] + arange(window)
        part = x[(slice(None),) * at + (places,)]  # the windows' own axis comes after the axis of their places
        x = part.transpose(*[k for k in range(part.ndim) if k != at + 1], at + 1)
    return x


def _each(axis: Any, rank: int) -> tuple[int, ...]:
    """Return the axes as a tuple; an axis may occur twice, for windows of windows."""
    return tuple(one_axis(a, rank) for a in (axis if isinstance(axis, tuple | list) else (axis,)))
