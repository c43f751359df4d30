"""Calls of the device's library that store into arrays, and index arrays by integers."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np

from tensormagic.backend.cuda.compiling.compiler import MissingCompilerError
from tensormagic.backend.cuda.device import DeviceArray
from tensormagic.backend.cuda.kernels import segments
from tensormagic.backend.cuda.kernels.launch import UnsupportedError
from tensormagic.backend.cuda.library.call import Call, call
from tensormagic.backend.running.thread_warnings import tell_once
from tensormagic.ops.indices.scatter import are_unique
from tensormagic.ops.move import concrete_slices
from tensormagic.ops.op import Value

# stores and indices ---------------------------------------------------------------------------------------------------


@call("set", "add_at")
def _update(c: Call) -> Value:
    """Store into the first operand; the executor has copied it where anything else reads it."""
    result = c.values[0] if c.device.is_array(c.values[0]) else c.array(0)
    part = concrete_slices(c.node, c.size)
    result[part] = result[part] + c.values[1] if c.node.op.adds else c.values[1]  # type: ignore[attr-defined]
    return result


def _places(c: Call, axis: int, extent: int) -> DeviceArray:
    """Return the indices of the second operand as int64; those out of bounds raise NumPy's IndexError."""
    index = c.array(1).astype(np.int64)
    if index.size:

        def raises() -> None:
            shape = (*[1] * axis, extent)
            np.take(np.broadcast_to(np.int8(0), shape), c.device.fetch(index), axis=axis)

        c.fails(c.xp.any((index < -extent) | (index >= extent)), raises)
    return index


def _wrapped(c: Call, index: DeviceArray, extent: int) -> DeviceArray:
    """Return indices counted from the front and clipped to the extent."""
    counted = c.xp.where(index < 0, index + extent, index)
    return c.xp.clip(counted, 0, max(extent - 1, 0))


@call("gather")
def _gather(c: Call) -> Value:
    x, axis = c.array(0), c.node["axis"]
    extent = x.shape[axis]
    index = _places(c, axis, extent)
    if not extent:
        return c.xp.zeros((*x.shape[:axis], *index.shape, *x.shape[axis + 1 :]), x.dtype)
    return c.xp.take(x, _wrapped(c, index, extent), axis=axis)


@call("take_along_axis")
def _take_along(c: Call) -> Value:
    x, axis = c.array(0), c.node["axis"]
    extent = x.shape[axis]
    index = _places(c, axis, extent)
    if not extent or not index.size:
        return c.xp.zeros(index.shape, x.dtype)
    return c.xp.take_along_axis(x, _wrapped(c, index, extent), axis=axis)


@call("scatter_set")
def _scatter_set(c: Call) -> Value:
    """Store values; at a repeated place, the last one wins."""
    x, axis, values = c.values[0], c.node["axis"], c.array(2)
    extent = x.shape[axis]
    index = _places(c, axis, extent)
    if not values.size:
        return x
    head: tuple[slice, ...] = (slice(None),) * axis
    index = _wrapped(c, index, extent)
    if are_unique(c.node.args[1]):
        x[(*head, index)] = values
        return x
    count = index.size
    flat = c.xp.reshape(index, (count,))
    rows = c.xp.reshape(values, (*values.shape[:axis], count, *x.shape[axis + 1 :]))
    last = c.xp.zeros((extent,), np.uint64)  # 1 + the number of the last value stored there; 0 where none is
    c.device.scatter("max", last, flat, c.xp.arange(1, count + 1, dtype=np.uint64))
    taken = c.xp.take(rows, c.xp.maximum(last.astype(np.int64) - 1, 0), axis=axis)
    stored = c.xp.reshape(last > 0, (extent, *[1] * (x.ndim - axis - 1)))
    return c.xp.where(stored, taken, x)


def _scattered(c: Call, step: str) -> Value:
    x, axis = c.values[0], c.node["axis"]
    index = _wrapped(c, _places(c, axis, x.shape[axis]), x.shape[axis])
    return _folded(c, step, x, index, c.array(2), axis)


call("scatter_add")(partial(_scattered, step="+"))
call("scatter_multiply")(partial(_scattered, step="*"))
call("scatter_maximum")(partial(_scattered, step=">"))
call("scatter_minimum")(partial(_scattered, step="<"))


@call("add_along_axis")
def _add_along(c: Call) -> Value:
    """Add along an axis by flat indices into the whole array."""
    x, axis = c.values[0], c.node["axis"]
    index = _wrapped(c, _places(c, axis, x.shape[axis]), x.shape[axis])
    place = index * math.prod(x.shape[axis + 1 :])
    for k, n in enumerate(index.shape):
        if k != axis:
            ramp = c.xp.arange(n, dtype=np.int64) * math.prod(x.shape[k + 1 :])
            place = place + c.xp.reshape(ramp, [-1 if j == k else 1 for j in range(index.ndim)])
    _folded(c, "+", c.xp.reshape(x, (x.size,)), place, c.array(2), 0)
    return x


def _folded(c: Call, step: str, x: DeviceArray, index: DeviceArray, values: DeviceArray, axis: int) -> DeviceArray:
    """Reduce values into places of an array in place, deterministically where there is a kernel for the dtype."""
    if not values.size or not x.size:
        return x
    if x.dtype.name in segments.DTYPES:
        try:
            segments.store(c.device, step, x, index, values, axis)
        except (MissingCompilerError, UnsupportedError) as error:
            tell_once(f"sums into repeated places may differ in the last digits from run to run: {error.args[0]}")
        else:
            return x
    _added(c, x, (*(slice(None),) * axis, index), values)
    return x


def _added(c: Call, x: DeviceArray, places: tuple[Any, ...], values: DeviceArray) -> None:
    """Add into places by atomic additions; signed integers are viewed as unsigned, which wrap alike."""
    signed = x.dtype == np.int64
    target, added = (x.view(np.uint64), values.astype(np.int64).view(np.uint64)) if signed else (x, values)
    c.device.scatter("add", target, places, added)


@call("position")
def _position(c: Call) -> Value:
    index, extent, number = c.array(0).astype(np.int64), c.size(c.node["extent"]), c.node["number"]

    def raises() -> None:
        c.node.op.numpy(c.device.fetch(index), extent, number)

    c.fails(c.xp.any((index < -extent) | (index >= extent)), raises)
    return c.xp.where(index < 0, index + extent, index)


call("places")(lambda c: c.xp.flatnonzero(c.array(0)))
