"""Arrays of the notebook that share memory: a store into one buffer is carried over to the others."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable
from types import FunctionType
from typing import Any

import numpy as np

from tensormagic.capture.hooks import hooks
from tensormagic.capture.inputs.door import has_buffer, is_table
from tensormagic.capture.inputs.snapshots import Snapshot, same_bits
from tensormagic.capture.stores.alias import beside
from tensormagic.capture.stores.place import Buffer
from tensormagic.ir.errors import DifferentiationError
from tensormagic.ir.node import Node, topological
from tensormagic.ir.site import substituted
from tensormagic.ir.type import hint
from tensormagic.ops.indices.gather import gather
from tensormagic.ops.indices.scatter import scatter_set
from tensormagic.ops.leaf import INPUT, constant
from tensormagic.ops.move import Slices, reshape, slice_, transpose
from tensormagic.ops.update import set_at

Array = np.ndarray[Any, Any]
Transfer = Callable[
    [Node, Node], Node
]  # the function from another buffer's old content and this one's new content to the other's new content


def share(first: Any, second: Any) -> bool:
    """Return whether two arrays have elements in common."""
    return bool(np.may_share_memory(first, second) and np.shares_memory(first, second))


def memory_of(value: Any) -> list[Array]:
    """Return the memory of an array, a table's columns, or another object with a buffer, as arrays; empty where there is none.

    They may not be kept: Python's own arrays cannot grow while their memory is exported.
    """
    if isinstance(value, np.ndarray):
        return [value]
    if is_table(value):
        columns = [value] if value.ndim == 1 else [column for _, column in value.items()]
        return [column.to_numpy() for column in columns if isinstance(column.dtype, np.dtype)]
    runs_python = isinstance(getattr(type(value), "__buffer__", None), FunctionType)  # a lazy value, too
    if runs_python or isinstance(value, bytes | np.generic) or not has_buffer(value):
        return []
    with memoryview(value) as view:
        return [np.asarray(view)] if view.nbytes else []


def connect(first: Buffer, second: Buffer) -> None:
    """Carry stores into each of two buffers, whose arrays share memory, over to the other one."""
    one, other = first.array, second.array
    if one.dtype != other.dtype:
        beside(first, f"{second.name} (of another dtype)")
        beside(second, f"{first.name} (of another dtype)")
        return
    first.shared.append((second, _Lazily(one, other)))
    second.shared.append((first, _Lazily(other, one)))


class _Lazily:
    """Computes the transfer from one array to another at the first store that needs it."""

    def __init__(self, source: Array, target: Array) -> None:
        self.source, self.target = source, target

    @functools.cached_property
    def transfer(self) -> Transfer:
        return transfer(self.source, self.target)

    def __call__(self, old: Node, new: Node) -> Node:
        return self.transfer(old, new)


def through_memory(result: Node, leaf: Node) -> Node:
    """Return a value as a function of one notebook array: arrays that share its memory are read from it.

    Parameters
    ----------
    result
        The value.
    leaf
        What the array is in it.

    Returns
    -------
    Node
        The value with what these arrays hold taken from ``leaf``; itself, where there are none.
    """
    array = _read_from(leaf)
    if array is None:
        return result
    mapping: dict[Node, Node] = {}
    for other in topological([result]):
        held = _read_from(other) if other is not leaf else None
        if held is None or held is array or not share(array, held):
            continue
        name, own = other["source"].name, leaf["source"].name
        if held.dtype != array.dtype:
            raise DifferentiationError(
                f"{name} shares memory with {own}, with another dtype",
                f"Work on a copy, {name} = {name}.copy().",
            )
        moved, was = transfer(array, held)(other, leaf), other["source"].value
        if same_bits(hooks.compute([moved])[0], was):  # otherwise it was read at another time
            mapping[other] = moved
    return substituted([result], mapping)[0] if mapping else result


def _read_from(node: Node) -> Array | None:
    """Return the notebook's array that an input was read from."""
    source = node.params.get("source") if node.op is INPUT else None
    array = source.original() if isinstance(source, Snapshot) and source.original is not None else None
    return array if isinstance(array, np.ndarray) else None


def _addresses(array: Array) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Return the address of each element, in bytes from a common origin."""
    found = np.asarray(array.__array_interface__["data"][0], np.int64)
    for stride, extent in zip(array.strides, array.shape, strict=True):
        found = found[..., None] + np.arange(extent, dtype=np.int64) * stride
    return np.broadcast_to(found, array.shape)


def transfer(source: Array, target: Array) -> Transfer:
    """Return the function that transfers the shared elements from one array to the other."""
    here, there = _addresses(source).ravel(), _addresses(target).ravel()
    order = np.argsort(here, kind="stable")
    at = np.minimum(np.searchsorted(here[order], there), len(here) - 1)
    hit = here[order][at] == there
    taken, put = order[at[hit]], np.flatnonzero(hit)
    parts = _as_slices(taken, put, source.shape, target.shape)
    if parts is not None:
        return parts
    return lambda old, new: reshape(
        scatter_set(_flat(old), constant(put), gather(_flat(new), constant(taken), 0)), old.type.shape
    )


def _flat(node: Node) -> Node:
    return reshape(node, (node.type.size,))


def _box(places: Array, shape: tuple[int, ...]) -> list[tuple[int, int, int]] | None:
    """Return the slices that select ``places`` of a flattened array; None if they are no regular grid."""
    axes = np.unravel_index(places, shape) if shape else ()
    slices: list[tuple[int, int, int]] = []
    for axis in axes:
        values = np.unique(axis)
        step = int(values[1] - values[0]) if len(values) > 1 else 1
        if not np.array_equal(values, values[0] + step * np.arange(len(values))):
            return None
        slices.append((int(values[0]), len(values), step))
    return slices if math.prod(length for _, length, _ in slices) == len(places) else None


def _as_slices(taken: Array, put: Array, source: tuple[int, ...], target: tuple[int, ...]) -> Transfer | None:
    """Return the transfer as a slice, a transposition and a store into a slice; None where it is not one."""
    sources, targets = _box(taken, source), _box(put, target)
    if sources is None or targets is None:
        return None
    part = np.arange(math.prod(source)).reshape(source)[tuple(slice(a, a + n * s, s) for a, n, s in sources)]
    wanted = taken.reshape([length for _, length, _ in targets])
    if np.array_equal(part.ravel(), wanted.ravel()):
        return lambda old, new: _stored(old, slice_(new, _open(sources, new)), targets)
    kept = [k for k, n in enumerate(part.shape) if n != 1]
    for permutation in itertools.permutations(kept):
        turned = part.transpose([*permutation, *(k for k in range(part.ndim) if k not in kept)]).reshape(-1)
        if np.array_equal(turned, wanted.ravel()):
            order = (*permutation, *(k for k in range(part.ndim) if k not in kept))
            return lambda old, new, order=order: _stored(
                old, transpose(slice_(new, _open(sources, new)), order), targets
            )
    return None


def _stored(old: Node, value: Node, slices: list[tuple[int, int, int]]) -> Node:
    opened = _open(slices, old)
    return set_at(old, reshape(value, tuple(length for _, length, _ in opened)), opened)


def _open(slices: list[tuple[int, int, int]], node: Node) -> Slices:
    """Return slices of a node in which whole axes keep their symbolic sizes."""
    return tuple(
        (0, size, 1) if (start, step) == (0, 1) and length == hint(size) else (start, length, step)
        for (start, length, step), size in zip(slices, node.type.shape, strict=True)
    )
