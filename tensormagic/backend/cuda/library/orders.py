"""Calls of the device's library that order elements: sorts, partitions, unique values."""

from __future__ import annotations

from functools import partial

import numpy as np

from tensormagic.backend.cuda.device import DeviceArray
from tensormagic.backend.cuda.library.call import Call, call
from tensormagic.ops.op import Value


def _sortable(x: DeviceArray) -> DeviceArray:
    return x.astype(np.uint8) if x.dtype.kind == "b" else x


@call("sort", "argsort")
def _sort(c: Call) -> Value:
    x = _sortable(c.array(0))
    function = getattr(c.xp, c.node.op.name)
    return function(x, axis=c.node["axis"], kind="stable") if x.size else function(x, axis=c.node["axis"])


def _parted(c: Call, function: str) -> Value:
    """Return the fully sorted array, which is partitioned, too; places out of bounds raise NumPy's ValueError."""
    x, places = c.array(0), c.values[1]
    extent = x.shape[c.node["axis"]]

    def raises() -> None:
        where = c.device.fetch(places) if c.device.is_array(places) else places
        np.partition(np.broadcast_to(np.int8(0), (extent,)), where)

    if extent:
        c.fails(c.xp.any(c.xp.asarray((places < -extent) | (places >= extent))), raises)
    return getattr(c.xp, function)(_sortable(x), axis=c.node["axis"])


call("partition")(partial(_parted, function="sort"))
call("argpartition")(partial(_parted, function="argsort"))


call("searchsorted")(lambda c: c.xp.searchsorted(c.array(0), c.array(1), side=c.node["side"]))


@call("row_order")
def _row_order(c: Call) -> Value:
    xp, rows = c.xp, _sortable(c.array(0))
    if not rows.size:
        return xp.arange(rows.shape[0])
    return xp.lexsort(xp.transpose(rows)[::-1])


# unique values
# ---------------------------------------------------------------------------------------------------------


def _first_of_each(c: Call) -> tuple[DeviceArray, DeviceArray]:
    """Return the stable order of the elements, and for each in this order whether it differs from the one before."""
    xp, x = c.xp, _sortable(c.array(0))
    order = xp.argsort(x, kind="stable")
    found = xp.take(x, order)
    differs = xp.not_equal(found[1:], found[:-1])
    if c.node["equal_nan"] and x.dtype.kind in "fc":
        differs = xp.logical_and(differs, xp.logical_not(xp.logical_and(xp.isnan(found[1:]), xp.isnan(found[:-1]))))
    return order, xp.concatenate([xp.ones(min(1, x.size), bool), differs])


@call("count_unique")
def _count_unique(c: Call) -> Value:
    return c.xp.sum(_first_of_each(c)[1], dtype=np.int64)


@call("unique")
def _unique(c: Call) -> Value:
    xp = c.xp
    order, differs = _first_of_each(c)
    starts = xp.flatnonzero(differs)
    ends = xp.concatenate([starts[1:], xp.full((min(1, order.size),), order.size, np.int64)])
    inverse = xp.empty(order.shape, np.int64)
    inverse[order] = xp.cumsum(differs, dtype=np.int64) - 1
    return xp.take(order, starts), inverse, ends - starts
