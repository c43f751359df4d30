"""Stores in other ways than by index, ``x.flat``, ``x.shape = …``, ``np.put``, ``np.copyto`` and their kin; and read-only views."""

from __future__ import annotations

import builtins
import functools
import operator
import warnings
from collections.abc import Iterator
from typing import Any, NoReturn

import numpy as np

from tensormagic.capture import context
from tensormagic.capture.arguments import agreeing, by_mode, done, shape_of, tensor
from tensormagic.capture.casts import cast_error, check_cast
from tensormagic.capture.deprecated import told
from tensormagic.capture.hooks import hooks
from tensormagic.capture.index_arrays import is_mask, resolve
from tensormagic.capture.names import FUNCTIONS, implements
from tensormagic.capture.operands import has_lazy, node_of
from tensormagic.capture.refusal import not_own, refuse
from tensormagic.capture.stand_ins import StandIn
from tensormagic.capture.stores.alias import apart_in_numpy, may_share
from tensormagic.capture.stores.converted import value_of
from tensormagic.capture.stores.layout import Shaped
from tensormagic.capture.stores.storing import (
    as_stored,
    entries,
    fitted,
    is_advanced,
    spread,
    storable,
    store,
)
from tensormagic.capture.value import Tensor, in_c_order, wrap
from tensormagic.ir.errors import DTypeError, ShapeError
from tensormagic.ir.node import Node, topological
from tensormagic.ir.size import nodes_of
from tensormagic.ir.type import Size, hint, product
from tensormagic.ops.bits import reinterpret
from tensormagic.ops.effects.checks import fits
from tensormagic.ops.fold import CUMSUM, row
from tensormagic.ops.form import to_form
from tensormagic.ops.indices.gather import gather
from tensormagic.ops.leaf import constant, iota, size_node
from tensormagic.ops.matrices.matrix import diagonal
from tensormagic.ops.move import broadcast, reshape, transpose
from tensormagic.ops.move_kind import broadcast_shapes, same
from tensormagic.ops.pointwise import astype
from tensormagic.ops.scalars import scalar


def own_array(value: Any, name: str) -> Tensor:
    """An array that is stored into."""
    if isinstance(value, np.ndarray):
        not_own(name)
    if not isinstance(value, Tensor) or value.type.form != "array":
        raise DTypeError(f"{name}: argument 1 must be an array, not {type(value).__name__}")
    return value


def _known(values: Node) -> Node:
    """Values in a row."""
    size = values.type.size
    if nodes_of(size):
        refuse(
            "a store that repeats a data-dependent number of values",
            "Store through a mask or an index: x[mask] = v.",
        )
    return reshape(values, (size,))


def cycled(values: Node, length: Size) -> Node:
    """Values, flattened and repeated or cut to ``length``."""
    flat = _known(values)
    (count,) = flat.type.shape
    if count == 1:
        return broadcast(flat, (length,))
    if count == length or (isinstance(count, int) and count == hint(length)):
        return broadcast(flat, (length,))
    return gather(flat, scalar.remainder(iota((length,), 0), size_node(count)), 0)


def at_places(values: Node, places: Node) -> Node:
    """Values, flattened, at places counted on beyond their end."""
    flat = _known(values)
    (count,) = flat.type.shape
    if count == 1:
        return broadcast(reshape(flat, ()), places.type.shape)
    return gather(flat, scalar.remainder(places, size_node(count)), 0)


# x.flat ---------------------------------------------------------------------------------------------------------------


_SINGLE = "Error setting single item of array."


def _place_of(index: Any) -> Any:
    """What an index means to ``x.flat``: a truth value the first element, or none; a number its whole part."""
    if isinstance(index, bool) or not isinstance(index, int | slice):
        told(_read_flat, index)
    if isinstance(index, bool):
        return 0 if index else slice(0, 0)
    if isinstance(index, list) and not has_lazy(index) and np.asarray(index).dtype.kind == "f":
        return np.asarray(index).astype(np.intp)
    return int(index) if isinstance(index, float | np.floating) else index


def _counts_as_a_number(index: Any) -> bool:
    """Whether an index names one element, which then takes one number; an array without axes does where this NumPy says so."""
    if isinstance(index, int | np.integer):
        return True
    if not isinstance(index, Tensor | np.ndarray) or index.ndim or index.dtype.kind not in "iu":
        return False
    return (isinstance(index, Tensor) and index.type.form != "array") or _is_a_number()


def _read_flat(index: Any) -> Any:
    return np.zeros(8).flat[index]


@functools.cache
def _is_a_number() -> bool:
    """Whether this NumPy takes an array without axes for a number, where ``x.flat`` is stored into; NumPy before 2.4 takes it for many."""
    try:
        np.zeros(1).flat[np.array(0)] = []
    except ValueError:
        return True
    return False


def _put_one(line: Any, value: Any) -> None:
    line.flat[0] = value


def _only_one(value: Any, dtype: np.dtype[Any]) -> Node:
    """What an array becomes where the number of one element stands: its only number, where NumPy takes that."""
    node, line = node_of(value), np.zeros(1, dtype)
    if nodes_of(node.type.size) and told(_put_one, line, np.zeros(1, node.type.dtype)) is None:
        refuse("storing an array of a data-dependent number of elements into one of x.flat", "Store its .item().")
    try:
        error = told(_put_one, line, value)
    except DeprecationWarning as warning:  # where warnings are errors, NumPy has its own for it
        raise ValueError(_SINGLE) from warning
    if error is None and node.type.size in {0, 1}:
        return reshape(node, ()) if node.type.size else constant(False)
    raise ValueError(_SINGLE)


def _one_element(value: Any, dtype: np.dtype[Any]) -> Node:
    """What is stored by the number of one element: a number that the dtype can hold."""
    own = value.lazy if isinstance(value, Flat) else value
    if isinstance(own, list | tuple) and dtype.kind == "b":
        return constant(bool(own))
    if isinstance(own, list | tuple) or (isinstance(value, complex) and dtype.kind not in "bc"):
        raise ValueError(_SINGLE)
    if np.ndim(own):
        value = wrap(_only_one(own, dtype))
    if isinstance(value, Tensor) and value.type.form == "python" and dtype.kind in "iu":
        value = wrap(fits(value.node, dtype, "value"))
    try:
        return storable(value_of(value, dtype), dtype)
    except OverflowError:
        raise ValueError(_SINGLE) from None


def _put(line: Tensor, index: Any, node: Node) -> None:
    """Store into elements of a row, as often as these are more."""
    if node.type.size == 0:
        return
    items = spread(entries(index), 1)
    if not is_advanced(items):
        part = line[index]
        line[index] = wrap(reshape(cycled(node, part.type.size), part.type.shape))
    elif is_mask(items[0]):
        _place(line, node_of(items[0]), node)
    else:
        shape = node_of(items[0]).type.shape
        store(resolve(line, items), reshape(cycled(node, product(shape)), shape), line.dtype)


class Flat(StandIn):
    """``x.flat``: the elements in C order, read as copies, stored into the array."""

    def __init__(self, base: Tensor) -> None:
        self.base = base

    @property
    def own_class(self) -> type:
        """NumPy's class."""
        return np.flatiter

    def real(self) -> Any:
        """The same: it is lazy as its array is."""
        return self

    def __getattr__(self, name: str) -> Any:
        if name in {"index", "coords"}:
            refuse(f"x.flat.{name}", "Count the elements: for k, v in enumerate(x.flat).")
        raise AttributeError(name)

    @property
    def _line(self) -> Tensor:
        """The elements in a row, as a place in the array however it lies in memory."""
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
        """What functions of arrays take for it."""
        return self._line

    def __array_ufunc__(self, ufunc: Any, method: str, *operands: Any, **options: Any) -> Any:
        return getattr(ufunc, method)(*(v.lazy if isinstance(v, Flat) else v for v in operands), **options)

    def __array_function__(self, function: Any, types: Any, args: tuple[Any, ...], options: dict[str, Any]) -> Any:
        return function(*(v.lazy if isinstance(v, Flat) else v for v in args), **options)

    def copy(self) -> Tensor:
        """The elements, in an array of their own."""
        return self._line.copy()

    __hash__ = None  # type: ignore[assignment]


def _compared(name: str) -> Any:
    def compare(self: Flat, other: Any) -> Any:
        return getattr(operator, name)(self.copy(), other.copy() if isinstance(other, Flat) else other)

    return compare


for _name in ("eq", "ne", "lt", "le", "gt", "ge"):  # the operators that NumPy's has
    setattr(Flat, f"__{_name}__", _compared(_name))


def _set_flat(self: Tensor, value: Any) -> None:
    if self.type.form != "array":
        raise AttributeError("attribute 'flat' of numbers is not writable")
    Flat(self)[:] = value


def _resize(self: Tensor, *shape: Any, **options: Any) -> NoReturn:
    del self, shape, options
    refuse("x.resize", "Use np.resize(x, shape), which makes a new array.")


hooks.methods["resize"] = _resize
Tensor.flat = property(Flat, _set_flat)  # type: ignore[attr-defined]


@implements(np.ndarray)
def ndarray(shape: Any, dtype: Any = float, buffer: Any = None, *place: Any, **options: Any) -> Any:
    """``np.ndarray(shape, dtype)``: an array of the cell's own."""
    if buffer is not None or place or any(v is not None for v in options.values()):
        refuse("np.ndarray with a buffer, strides or an order", "Use np.empty(shape, dtype), or a view.")
    return FUNCTIONS[np.empty](shape, dtype)


@implements(method="view")
def view(x: Tensor, dtype: Any = None, type: Any = None) -> Tensor:
    """``ndarray.view`` of the same elements: another array for the same memory."""
    if isinstance(dtype, builtins.type) and issubclass(dtype, np.ndarray):
        dtype, type = None, dtype
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
    """``np.put``: into the elements in C order; values are repeated where there are fewer of them."""
    a = tensor(a) if isinstance(a, np.generic) else a
    if isinstance(a, Tensor) and a.type.form == "scalar":
        a = done(to_form(a.node, "array"))  # NumPy's numbers put into a copy
    x = own_array(a, "np.put")
    listed = isinstance(ind, list | tuple)  # whose numbers are converted, where an array of floats is refused
    places = _safe(list(ind), np.dtype(np.intp)) if listed else node_of(entries(ind)[0])
    extent = size_node(x.type.size)
    flat = astype(by_mode(places, extent, mode), np.int64)
    Flat(x)[wrap(reshape(flat, (flat.type.size,)))] = v


def _safe(value: Any, dtype: np.dtype[Any]) -> Node:
    """Values that keep what they are in an array of ``dtype``: numbers and lists are converted in any case."""
    node = value_of(value, dtype)
    if isinstance(value, Tensor | np.ndarray) and node.type.form == "array":
        check_cast(node.type.dtype, dtype)
    return node


@implements(np.place)
def place(arr: Any, mask: Any, vals: Any) -> None:
    """``np.place``: the first values where the mask is true, from the start again where there are fewer of them."""
    x = own_array(arr, "np.place")
    chosen, values = node_of(mask), _safe(vals, x.dtype)
    chosen = agreeing(chosen, chosen.type.size, x.type.size, "place: mask and data must be the same size")
    if values.type.size == 0:
        raise ShapeError("Cannot insert from an empty array!")
    _place(Flat(x).lazy, astype(reshape(chosen, (x.type.size,)), np.bool_), storable(values, x.dtype))


def _place(line: Tensor, mask: Node, values: Node) -> None:
    """Store into the elements where a mask is true, one value after the other."""
    if node_of(mask).type.ndim != 1:
        raise ShapeError("boolean index array should have 1 dimension")
    order = row(CUMSUM, astype(mask, np.int64), (0,)) - 1
    order = scalar.maximum(order, 0)
    line.place.write(context.record(scalar.where(mask, at_places(values, order), line.node)))


@implements(np.putmask)
def putmask(a: Any, /, mask: Any, values: Any) -> None:
    """``np.putmask``: where the mask is true the value of the same place, counted on beyond the end of the values."""
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
    """``np.copyto``."""
    if src is dst and (isinstance(dst, np.ndarray) or (isinstance(dst, Tensor) and dst.type.form == "array")):
        return  # which NumPy does not mind for read-only arrays either
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
    """Whether a value may be cast; Python's numbers are of the smallest kind that holds them."""
    given = node.type.dtype
    if node.type.form == "python" and casting != "unsafe":
        return "buifc".index(given.kind) <= "buifc".index(dtype.kind) or (given.kind == "i" and dtype.kind in "ui")
    return np.can_cast(given, dtype, casting)


@implements(np.fill_diagonal)
def fill_diagonal(a: Any, val: Any, wrap: bool = False) -> None:
    """``np.fill_diagonal``: of a matrix, with ``wrap`` again below the end; of more axes, which are equal then."""
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
    """``np.broadcast_to``: a view that cannot be stored into."""
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
    """NumPy's view of one of several arrays that are stretched alike: whether it may be stored into, its version says."""
    return np.broadcast_arrays(array, np.broadcast_to(np.zeros(()), shape))[0]


@functools.cache
def _are_writeable() -> bool:
    with warnings.catch_warnings(action="ignore"):
        return bool(_one_of_arrays(np.zeros(()), (2,)).flags.writeable)


@implements(np.broadcast_arrays)
def broadcast_arrays(*args: Any, subok: bool = False) -> Any:
    """``np.broadcast_arrays``: views; what is stretched cannot be stored into."""
    if context.current() is None and any(
        a is None for a in args
    ):  # as matplotlib asks: None stands beside arrays there
        return np.broadcast_arrays(*[np.asarray(a) if isinstance(a, Tensor) else a for a in args], subok=subok)
    arrays = [tensor(a) for a in args]
    shape = broadcast_shapes([x.type.shape for x in arrays])

    def stretched(x: Tensor) -> Tensor:
        return _stretched(x, Shaped(_one_of_arrays, shape, writeable=_are_writeable() and not x.place.frozen))

    return tuple(x if x.type.shape == shape and x.type.form == "array" else stretched(x) for x in arrays)


def einsum_view(x: Tensor, letters: str, out: str) -> Tensor | None:
    """What ``np.einsum`` gives for one operand that nothing is summed of: a view, of diagonals too; None elsewhere."""
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
    """``np.asfortranarray``: the array itself where it lies in Fortran order, else a copy."""
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
    """``np.ascontiguousarray``: the array itself where it lies in C order, else a copy."""
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
        capture.stored()  # as then, it matters how the arguments of a function lie in memory
    lies = layout is not None and layout.flags.c_contiguous
    if layout is None or (not lies and any(hint(s) is None for s in x.type.shape)):  # one row lies in C order
        copy = in_c_order(done(x.node))
        apart_in_numpy(x.place.buffer, copy.place.buffer)
        return copy
    return x if lies else in_c_order(done(x.node))
