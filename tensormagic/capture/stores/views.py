"""Stores other than by index, ``x.shape = …``, ``np.put``, ``np.copyto`` and the like; and read-only views."""

from __future__ import annotations

import builtins
import functools
import warnings
from typing import Any, NoReturn

import numpy as np

from tensormagic.capture import context
from tensormagic.capture.errors.refusal import refuse, refuse_foreign_store
from tensormagic.capture.hooks import hooks
from tensormagic.capture.names import FUNCTIONS, implements
from tensormagic.capture.stores.alias import apart_in_numpy
from tensormagic.capture.stores.converted import value_of
from tensormagic.capture.stores.flat import Flat, at_places, cycled, place_in
from tensormagic.capture.stores.layout import Shaped
from tensormagic.capture.stores.storing import (
    as_stored,
    entries,
    fitted,
    storable,
)
from tensormagic.capture.values.arguments import agreeing, by_mode, done, shape_of, tensor
from tensormagic.capture.values.casts import cast_error, check_cast
from tensormagic.capture.values.operands import node_of
from tensormagic.capture.values.value import Tensor, in_c_order, wrap
from tensormagic.ir.errors import DTypeError, ShapeError
from tensormagic.ir.node import Node, topological
from tensormagic.ir.type import hint
from tensormagic.ops.bits import reinterpret
from tensormagic.ops.form import to_form
from tensormagic.ops.leaf import iota, size_node
from tensormagic.ops.matrices.matrix import diagonal
from tensormagic.ops.move import broadcast, reshape, transpose
from tensormagic.ops.move_kind import broadcast_shapes, same
from tensormagic.ops.pointwise import astype
from tensormagic.ops.scalars import scalar


def own_array(value: Any, name: str) -> Tensor:
    """Return an array to be stored into; raise for anything else."""
    if isinstance(value, np.ndarray):
        refuse_foreign_store(name)
    if not isinstance(value, Tensor) or value.type.form != "array":
        raise DTypeError(f"{name}: argument 1 must be an array, not {type(value).__name__}")
    return value


def _resize(self: Tensor, *shape: Any, **options: Any) -> NoReturn:
    del self, shape, options
    refuse("x.resize", "Use np.resize(x, shape), which makes a new array.")


hooks.methods["resize"] = _resize


@implements(np.ndarray)
def ndarray(shape: Any, dtype: Any = float, buffer: Any = None, *place: Any, **options: Any) -> Any:
    """Return what ``np.ndarray(shape, dtype)`` gives: a new array of the cell's own."""
    if buffer is not None or place or any(v is not None for v in options.values()):
        refuse("np.ndarray with a buffer, strides or an order", "Use np.empty(shape, dtype), or a view.")
    return FUNCTIONS[np.empty](shape, dtype)


@implements(method="view")
def view(x: Tensor, dtype: Any = None, type: Any = None) -> Tensor:
    """Return what ``ndarray.view`` gives with the same elements: another array for the same memory."""
    if isinstance(dtype, builtins.type) and issubclass(dtype, np.ndarray):
        dtype, type = None, dtype
    if isinstance(dtype, int) or isinstance(type, int):
        refuse("an array with other sizes by view", "NumPy calls it x.reshape(...).")
    if type not in {None, np.ndarray}:
        refuse(f"an array as a {getattr(type, '__name__', type)}", "Use the array itself.")
    if dtype is not None and np.dtype(dtype) != x.dtype:
        other, own = np.dtype(dtype), x.dtype
        if other.kind in "fc" and own.kind not in "fc" and any(n.type.inexact for n in topological([x.node])):
            refuse(
                "reading the bits of integers as floats", "There is no derivative of that: use np.frexp and np.ldexp."
            )
        if other.kind in "iufc" and other.isnative and other.itemsize == own.itemsize and x.type.form == "array":
            return x.view_of(
                lambda node: reinterpret(node, other), lambda _old, new: reinterpret(new, own), lambda a: a.view(other)
            )
        refuse(f"an array's memory as elements of dtype {np.dtype(dtype)}", "Convert the values with astype.")
    return x[...] if x.type.form == "array" else x


# functions that store -------------------------------------------------------------------------------------------------


@implements(np.put, method="put")
def put(a: Any, ind: Any, v: Any, mode: str = "raise") -> None:
    """Store into the elements in C order, as ``np.put``; values are repeated if there are fewer."""
    a = tensor(a) if isinstance(a, np.generic) else a
    if isinstance(a, Tensor) and a.type.form == "scalar":
        a = done(to_form(a.node, "array"))  # for NumPy's numbers, the store goes into a copy
    x = own_array(a, "np.put")
    listed = isinstance(ind, list | tuple)  # numbers of lists are converted, while an array of floats is refused
    places = _safe(list(ind), np.dtype(np.intp)) if listed else node_of(entries(ind)[0])
    extent = size_node(x.type.size)
    flat = astype(by_mode(places, extent, mode), np.int64)
    Flat(x)[wrap(reshape(flat, (flat.type.size,)))] = v


def _safe(value: Any, dtype: np.dtype[Any]) -> Node:
    """Return values converted to ``dtype``; arrays only if the cast is safe, numbers and lists always."""
    node = value_of(value, dtype)
    if isinstance(value, Tensor | np.ndarray) and node.type.form == "array":
        check_cast(node.type.dtype, dtype)
    return node


@implements(np.place)
def place(arr: Any, mask: Any, vals: Any) -> None:
    """Store the first values where the mask is true, as ``np.place``, from the start again if there are fewer."""
    x = own_array(arr, "np.place")
    chosen, values = node_of(mask), _safe(vals, x.dtype)
    chosen = agreeing(chosen, chosen.type.size, x.type.size, "place: mask and data must be the same size")
    if values.type.size == 0:
        raise ShapeError("Cannot insert from an empty array!")
    place_in(Flat(x).lazy, astype(reshape(chosen, (x.type.size,)), np.bool_), storable(values, x.dtype))


@implements(np.putmask)
def putmask(a: Any, /, mask: Any, values: Any) -> None:
    """Store, where the mask is true, the value of the same place, as ``np.putmask``; values are repeated if there are fewer."""
    x = own_array(a, "np.putmask")
    chosen, given = node_of(mask), _safe(values, x.dtype)
    chosen = agreeing(chosen, chosen.type.size, x.type.size, "putmask: mask and data must be the same size")
    if given.type.size == 0:
        return
    size = x.type.size
    line = Flat(x).lazy
    mask = astype(reshape(chosen, (size,)), np.bool_)
    line.place.write(context.record(scalar.where(mask, cycled(storable(given, x.dtype), size), line.node)))


@implements(np.copyto)
def copyto(dst: Any, src: Any, casting: Any = "same_kind", where: Any = True) -> None:
    """Store all or the masked elements of an array, as ``np.copyto``."""
    if src is dst and (isinstance(dst, np.ndarray) or (isinstance(dst, Tensor) and dst.type.form == "array")):
        return  # NumPy allows this for read-only arrays, too
    x = own_array(dst, "np.copyto")
    node = value_of(src, x.dtype) if type(src) in {int, bool} else node_of(src)
    if not _can_cast(node, x.dtype, casting):
        raise cast_error(node.type.dtype, x.dtype, casting)
    new = as_stored(node, x.dtype, x.type.shape)
    if where is not True:
        mask = node_of(where)
        check_cast(mask.type.dtype, bool)
        chosen = fitted(mask, x.type.shape, "could not broadcast where mask from shape {} into shape {}")
        new = scalar.where(chosen, new, x.node)
    x.place.write(context.record(new))


def _can_cast(node: Node, dtype: np.dtype[Any], casting: Any) -> bool:
    """Return whether a value may be cast; Python's numbers are of the smallest kind that holds them."""
    given = node.type.dtype
    if node.type.form == "python" and casting != "unsafe":
        return "buifc".index(given.kind) <= "buifc".index(dtype.kind) or (given.kind == "i" and dtype.kind in "ui")
    return np.can_cast(given, dtype, casting)


@implements(np.fill_diagonal)
def fill_diagonal(a: Any, val: Any, wrap: bool = False) -> None:
    """Fill the main diagonal, as ``np.fill_diagonal``; with ``wrap``, that of a tall matrix starts again below its end."""
    x = own_array(a, "np.fill_diagonal")
    shape, rank = x.type.shape, x.ndim
    if rank < 2:
        raise ShapeError("array must be at least 2-d")
    if rank > 2 and not all(same(shape[0], s) for s in shape[1:]):
        raise ShapeError("All dimensions of input must be of equal length")
    values = storable(value_of(val, x.dtype), x.dtype)
    if values.type.size == 0:
        return
    first = iota(shape, 0)
    if wrap and rank == 2:
        period = size_node(shape[1]) + 1
        places = first * size_node(shape[1]) + iota(shape, 1)
        on, which = scalar.equal(scalar.remainder(places, period), 0), scalar.floor_divide(places, period)
    else:
        on, which = scalar.equal(first, iota(shape, 1)), first
        for axis in range(2, rank):
            on = scalar.logical_and(on, scalar.equal(first, iota(shape, axis)))
    x.place.write(context.record(scalar.where(on, at_places(values, which), x.node)))


# read-only views ------------------------------------------------------------------------------------------------------


@implements(np.broadcast_to)
def broadcast_to(array: Any, shape: Any, subok: bool = False) -> Any:
    """Return what ``np.broadcast_to`` gives: a view that cannot be stored into."""
    del subok
    x, sizes = tensor(array), shape_of(shape)
    if any((hint(s) or 0) < 0 for s in sizes):
        raise ShapeError("all elements of broadcast shape must be non-negative")
    if x.ndim and not sizes:
        raise ShapeError("cannot broadcast a non-scalar to a scalar array")
    return _stretched(x, Shaped(np.broadcast_to, sizes))


def _stretched(x: Tensor, moved: Shaped) -> Tensor:
    sizes = moved.sizes
    return x.view_of(lambda n: broadcast(n, sizes) if sizes else to_form(n, "array"), None, moved)


def _one_of_arrays(array: Any, shape: tuple[int, ...]) -> Any:
    """Return NumPy's view of an array broadcast together with others; its version says whether it may be stored into."""
    return np.broadcast_arrays(array, np.broadcast_to(np.zeros(()), shape))[0]


@functools.cache
def _are_writeable() -> bool:
    with warnings.catch_warnings(action="ignore"):
        return bool(_one_of_arrays(np.zeros(()), (2,)).flags.writeable)


@implements(np.broadcast_arrays)
def broadcast_arrays(*args: Any, subok: bool = False) -> Any:
    """Return what ``np.broadcast_arrays`` gives: views; those that were broadcast cannot be stored into."""
    if context.current() is None and any(
        a is None for a in args
    ):  # as matplotlib calls it: None stands for a missing array
        return np.broadcast_arrays(*[np.asarray(a) if isinstance(a, Tensor) else a for a in args], subok=subok)
    arrays = [tensor(a) for a in args]
    shape = broadcast_shapes([x.type.shape for x in arrays])

    def stretched(x: Tensor) -> Tensor:
        return _stretched(x, Shaped(_one_of_arrays, shape, writeable=_are_writeable() and not x.place.frozen))

    return tuple(x if x.type.shape == shape and x.type.form == "array" else stretched(x) for x in arrays)


def einsum_view(x: Tensor, letters: str, out: str) -> Tensor | None:
    """Return the view that ``np.einsum`` returns for one operand without a sum, diagonals included; None for other calls."""
    if set(letters) != set(out) or x.type.form != "array":
        return None
    if len(letters) == len(out):
        return x.transpose([letters.index(c) for c in out])

    def stored(old: Node, new: Node) -> Node:
        shape = old.type.shape
        kept = [k for k, c in enumerate(letters) if letters.index(c) == k]
        found = transpose(new, tuple(out.index(letters[k]) for k in kept))
        wide = reshape(found, tuple(s if k in kept else 1 for k, s in enumerate(shape)))
        pairs = [(letters.index(c), k) for k, c in enumerate(letters) if k not in kept]
        on = [scalar.equal(iota(shape, first), iota(shape, k)) for first, k in pairs]
        return scalar.where(functools.reduce(scalar.logical_and, on), broadcast(wide, shape), old)

    def taken(node: Node) -> Node:
        names = list(letters)
        for c in out:
            while names.count(c) > 1:
                first, second = [k for k, name in enumerate(names) if name == c][-2:]
                node, names = (
                    diagonal(node, first, second),
                    [*names[:first], *names[first + 1 : second], *names[second + 1 :], c],
                )
        return transpose(node, tuple(names.index(c) for c in out))

    subscripts = f"{letters}->{out}"
    return x.view_of(taken, stored, lambda a: np.einsum(subscripts, a))


@implements(np.asfortranarray)
def asfortranarray(a: Any, dtype: Any = None, **options: Any) -> Any:
    """Return what ``np.asfortranarray`` gives: the array itself where it lies in Fortran order, else a copy."""
    if type(a) is np.ndarray:  # NumPy has computed it with plain values
        return np.asfortranarray(a, dtype)
    x = tensor(a)
    if x.type.form != "array" or x.ndim < 2:
        return ascontiguousarray(a, dtype, **options)
    turned = x.transpose()
    found = ascontiguousarray(turned, dtype, **options)
    return x if found is turned else found.transpose()


@implements(np.ascontiguousarray)
def ascontiguousarray(a: Any, dtype: Any = None, **options: Any) -> Any:
    """Return what ``np.ascontiguousarray`` gives: the array itself where it lies in C order, else a copy."""
    del options
    if type(a) is np.ndarray:  # NumPy has computed it with plain values
        return np.ascontiguousarray(a, dtype)
    x = tensor(a)
    if x.type.form != "array" or not x.ndim:
        x = x if dtype is None else x.astype(dtype)
        return x.reshape(1) if not x.ndim else x
    if dtype is not None and x.dtype != dtype:
        return x.astype(dtype)
    layout = x.place.layout()
    capture = context.current()
    if capture is not None and x.place.buffer.argument:
        capture.stored()  # otherwise it matters how the arguments of a function lie in memory
    lies = layout is not None and layout.flags.c_contiguous
    if layout is None or (not lies and any(hint(s) is None for s in x.type.shape)):  # one row lies in C order
        copy = in_c_order(done(x.node))
        apart_in_numpy(x.place.buffer, copy.place.buffer)
        return copy
    return x if lies else in_c_order(done(x.node))
