"""Windows: parts of an array given by strides in memory, whose elements several places may share."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensormagic.capture import context
from tensormagic.capture.errors.refusal import refuse
from tensormagic.capture.values.operands import node_of
from tensormagic.capture.values.value import Tensor, wrap
from tensormagic.ir.errors import CaptureError
from tensormagic.ir.node import Node
from tensormagic.ops.form import to_form
from tensormagic.ops.indices.gather import gather
from tensormagic.ops.indices.scatter import scatter_set
from tensormagic.ops.move import reshape

Array = np.ndarray[Any, Any]


def window(lazy: Tensor, lies: Array, strides: tuple[int, ...], shape: tuple[int, ...], start: int = 0) -> Tensor:
    """Return the view of ``lazy`` that begins ``start`` bytes after its first element and has these strides.

    Parameters
    ----------
    lies
        An array with the memory layout and item size of the lazy one; its elements are not read.
    """
    size = lies.itemsize
    if start % size or any(s % size and n > 1 for s, n in zip(strides, shape, strict=True)):
        refuse(
            "a part of an array that is not aligned with its elements",
            "Take whole elements: strides are counted in bytes.",
        )
    places = _positions(lies.shape, tuple(s // size for s in lies.strides))
    wanted = _positions(shape, tuple(s // size for s in strides)) + start // size
    order = np.argsort(places, axis=None)
    ordered = places.reshape(-1)[order]
    at = np.minimum(np.searchsorted(ordered, wanted), max(ordered.size - 1, 0))
    if wanted.size and (not ordered.size or not np.array_equal(ordered[at], wanted)):
        error = CaptureError(
            "memory outside of this array is not captured", "Use parts of the whole array: x.base, or the array itself."
        )
        error.pythons = False  # nothing is to be read there
        raise error
    index = order[at] if wanted.size else np.zeros(shape, np.intp)
    return _taken(lazy, index, once=np.unique(index).size == index.size)


def _positions(shape: tuple[int, ...], strides: tuple[int, ...]) -> Array:
    """Return the positions of elements, counted in elements from the first one."""
    found = np.zeros(shape, np.intp)
    for axis, (extent, stride) in enumerate(zip(shape, strides, strict=True)):
        found += (np.arange(extent) * stride).reshape((-1,) + (1,) * (len(shape) - axis - 1))
    return found


def _taken(lazy: Tensor, index: Array, *, once: bool) -> Tensor:
    """Return a view of the elements at ``index``, counted in C order; it can be stored into if each is selected ``once``."""
    flat = node_of(index.reshape(-1))
    shape = index.shape

    def forward(node: Node) -> Node:
        return to_form(reshape(gather(node, flat), shape), "array")

    def backward(old: Node, new: Node) -> Node:
        if not once:
            refuse("a store through windows that share elements", "Store into the array itself, or into a copy.")
        stored = scatter_set(reshape(old, (old.type.size,)), flat, reshape(new, (index.size,)))
        return reshape(stored, old.type.shape)

    def moved(layout: Any) -> Any:
        own = np.asarray(_positions(layout.shape, layout.strides)).reshape(-1)
        chosen = own[index] if index.size else np.zeros(shape, np.intp)
        steps = [int(np.take(chosen, 1, k).flat[0] - chosen.flat[0]) if n > 1 else 1 for k, n in enumerate(shape)]
        first = np.unravel_index(index.flat[0], layout.shape) if index.size else ()
        return np.lib.stride_tricks.as_strided(layout[tuple(slice(k, None) for k in first)], shape, steps)

    if lazy.type.form != "array":
        return wrap(context.record(forward(lazy.node)))
    return lazy.view_of(forward, backward, moved)
