"""``x.flat``: the elements of an array in C order, read and stored into; and values that are repeated to fill a row."""

from __future__ import annotations

import functools
import operator
from collections.abc import Iterator
from typing import Any

import numpy as np

from tensormagic.capture import context
from tensormagic.capture.errors.deprecated import show_deprecations
from tensormagic.capture.errors.refusal import refuse
from tensormagic.capture.inputs.stand_ins import StandIn
from tensormagic.capture.stores.alias import may_share
from tensormagic.capture.stores.converted import value_of
from tensormagic.capture.stores.storing import (
    entries,
    is_advanced,
    spread,
    storable,
    store,
)
from tensormagic.capture.values.index_arrays import is_mask, resolve
from tensormagic.capture.values.operands import has_lazy, node_of
from tensormagic.capture.values.value import Tensor, wrap
from tensormagic.ir.errors import ShapeError
from tensormagic.ir.node import Node
from tensormagic.ir.size import nodes_of
from tensormagic.ir.type import Size, hint, product
from tensormagic.ops.effects.checks import fits
from tensormagic.ops.fold import CUMSUM, row
from tensormagic.ops.indices.gather import gather
from tensormagic.ops.leaf import constant, iota, size_node
from tensormagic.ops.move import broadcast, reshape
from tensormagic.ops.pointwise import astype
from tensormagic.ops.scalars import scalar


def _known(values: Node) -> Node:
    """Return values flattened; raise if their number is data-dependent."""
    size = values.type.size
    if nodes_of(size):
        refuse(
            "a store that repeats a data-dependent number of values",
            "Store through a mask or an index: x[mask] = v.",
        )
    return reshape(values, (size,))


def cycled(values: Node, length: Size) -> Node:
    """Return values, flattened and repeated or cut to ``length``."""
    flat = _known(values)
    (count,) = flat.type.shape
    if count == 1:
        return broadcast(flat, (length,))
    if count == length or (isinstance(count, int) and count == hint(length)):
        return broadcast(flat, (length,))
    return gather(flat, scalar.remainder(iota((length,), 0), size_node(count)), 0)


def at_places(values: Node, places: Node) -> Node:
    """Return the flattened values at ``places``, which count on beyond their end and start again."""
    flat = _known(values)
    (count,) = flat.type.shape
    if count == 1:
        return broadcast(reshape(flat, ()), places.type.shape)
    return gather(flat, scalar.remainder(places, size_node(count)), 0)


_SINGLE = "Error setting single item of array."


def _place_of(index: Any) -> Any:
    """Return what an index means to ``x.flat``: a boolean the first element, or none; a float its integer part."""
    if isinstance(index, bool) or not isinstance(index, int | slice):
        show_deprecations(_read_flat, index)
    if isinstance(index, bool):
        return 0 if index else slice(0, 0)
    if isinstance(index, list) and not has_lazy(index) and np.asarray(index).dtype.kind == "f":
        return np.asarray(index).astype(np.intp)
    return int(index) if isinstance(index, float | np.floating) else index


def _counts_as_a_number(index: Any) -> bool:
    """Return whether an index selects one element and thus takes one number; for 0-d arrays this depends on the NumPy version."""
    if isinstance(index, int | np.integer):
        return True
    if not isinstance(index, Tensor | np.ndarray) or index.ndim or index.dtype.kind not in "iu":
        return False
    return (isinstance(index, Tensor) and index.type.form != "array") or _is_a_number()


def _read_flat(index: Any) -> Any:
    return np.zeros(8).flat[index]


@functools.cache
def _is_a_number() -> bool:
    """Return whether this NumPy treats a rank-0 array as a number in a store into ``x.flat``; before 2.4 it does not."""
    try:
        np.zeros(1).flat[np.array(0)] = []
    except ValueError:
        return True
    return False


def _put_one(line: Any, value: Any) -> None:
    line.flat[0] = value


def _as_one_element(value: Any, dtype: np.dtype[Any]) -> Node:
    """Return the element of an array that is stored into one element: its only number, where NumPy accepts that."""
    node, line = node_of(value), np.zeros(1, dtype)
    if nodes_of(node.type.size) and show_deprecations(_put_one, line, np.zeros(1, node.type.dtype)) is None:
        refuse("storing an array of a data-dependent number of elements into one of x.flat", "Store its .item().")
    try:
        error = show_deprecations(_put_one, line, value)
    except DeprecationWarning as warning:  # where warnings are errors, NumPy raises another one
        raise ValueError(_SINGLE) from warning
    if error is None and node.type.size in {0, 1}:
        return reshape(node, ()) if node.type.size else constant(False)
    raise ValueError(_SINGLE)


def _one_element(value: Any, dtype: np.dtype[Any]) -> Node:
    """Return what a store into one element stores: a number that the dtype can hold."""
    own = value.lazy if isinstance(value, Flat) else value
    if isinstance(own, list | tuple) and dtype.kind == "b":
        return constant(bool(own))
    if isinstance(own, list | tuple) or (isinstance(value, complex) and dtype.kind not in "bc"):
        raise ValueError(_SINGLE)
    if np.ndim(own):
        value = wrap(_as_one_element(own, dtype))
    if isinstance(value, Tensor) and value.type.form == "python" and dtype.kind in "iu":
        value = wrap(fits(value.node, dtype, "value"))
    try:
        return storable(value_of(value, dtype), dtype)
    except OverflowError:
        raise ValueError(_SINGLE) from None


def _put(line: Tensor, index: Any, node: Node) -> None:
    """Store into elements of a row, repeating the values if they are fewer."""
    if node.type.size == 0:
        return
    items = spread(entries(index), 1)
    if not is_advanced(items):
        part = line[index]
        line[index] = wrap(reshape(cycled(node, part.type.size), part.type.shape))
    elif is_mask(items[0]):
        place_in(line, node_of(items[0]), node)
    else:
        shape = node_of(items[0]).type.shape
        store(resolve(line, items), reshape(cycled(node, product(shape)), shape), line.dtype)


def place_in(line: Tensor, mask: Node, values: Node) -> None:
    """Store into the elements where a mask is true, one value after the other."""
    if node_of(mask).type.ndim != 1:
        raise ShapeError("boolean index array should have 1 dimension")
    order = row(CUMSUM, astype(mask, np.int64), (0,)) - 1
    order = scalar.maximum(order, 0)
    line.place.write(context.record(scalar.where(mask, at_places(values, order), line.node)))


class Flat(StandIn):
    """Represents ``x.flat``: the elements in C order, read as copies, stored into the array."""

    def __init__(self, base: Tensor) -> None:
        self.base = base

    @property
    def own_class(self) -> type:
        """Return NumPy's class."""
        return np.flatiter

    def real(self) -> Any:
        """Return the object itself: it is lazy as its array is."""
        return self

    def __getattr__(self, name: str) -> Any:
        if name in {"index", "coords"}:
            refuse(f"x.flat.{name}", "Count the elements: for k, v in enumerate(x.flat).")
        raise AttributeError(name)

    @property
    def _line(self) -> Tensor:
        """Return the elements in a row, as a view of the array however it lies in memory."""
        size = self.base.type.size
        return self.base.view_of(lambda x: reshape(x, (size,)), lambda old, new: reshape(new, old.type.shape), np.ravel)

    def __getitem__(self, index: Any) -> Tensor:
        found = self._line[_place_of(index)]
        return found if found.type.form != "array" else found.copy()

    def __setitem__(self, index: Any, value: Any) -> None:
        line, index = self._line, _place_of(index)
        if _counts_as_a_number(index):
            _put(line, index, _one_element(value, line.dtype))
            return
        own = value.lazy if isinstance(value, Flat) else value
        if isinstance(own, Tensor) and own.size != 1 and may_share(own.place.buffer, line.place.buffer):
            refuse(
                "storing a part of x into x.flat",
                "Store a copy of that part: x.flat[...] = part.copy().",
            )
        _put(line, index, storable(value_of(value, line.dtype), line.dtype))

    def __iter__(self) -> Iterator[Tensor]:
        return iter(self._line)

    def __len__(self) -> int:
        return len(self._line)

    @property
    def lazy(self) -> Tensor:
        """Return the array that functions of arrays use for it."""
        return self._line

    def __array_ufunc__(self, ufunc: Any, method: str, *operands: Any, **options: Any) -> Any:
        return getattr(ufunc, method)(*(v.lazy if isinstance(v, Flat) else v for v in operands), **options)

    def __array_function__(self, function: Any, types: Any, args: tuple[Any, ...], options: dict[str, Any]) -> Any:
        return function(*(v.lazy if isinstance(v, Flat) else v for v in args), **options)

    def copy(self) -> Tensor:
        """Return the elements, in an array of their own."""
        return self._line.copy()

    __hash__ = None  # type: ignore[assignment]


def _compared(name: str) -> Any:
    def compare(self: Flat, other: Any) -> Any:
        return getattr(operator, name)(self.copy(), other.copy() if isinstance(other, Flat) else other)

    return compare


for _name in ("eq", "ne", "lt", "le", "gt", "ge"):  # the operators that NumPy's flatiter has
    setattr(Flat, f"__{_name}__", _compared(_name))


def _set_flat(self: Tensor, value: Any) -> None:
    if self.type.form != "array":
        raise AttributeError("attribute 'flat' of numbers is not writable")
    Flat(self)[:] = value


Tensor.flat = property(Flat, _set_flat)  # type: ignore[attr-defined]
