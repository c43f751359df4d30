"""The lazy array: NumPy's operators, methods and indexing on nodes; the session computes them."""

from __future__ import annotations

import inspect
import operator
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from tensormagic.capture import context
from tensormagic.capture.errors.refusal import needs_value, refuse
from tensormagic.capture.hooks import hooks
from tensormagic.capture.inputs import door, snapshots
from tensormagic.capture.limits import Pace
from tensormagic.capture.numbers.known_values import arithmetic, static_value
from tensormagic.capture.python.words import said
from tensormagic.capture.stores.alias import apart_in_numpy
from tensormagic.capture.stores.kept_order import lies_anew
from tensormagic.capture.stores.layout import EveryOther, Shaped, reshaped
from tensormagic.capture.stores.place import Buffer, Place, reshapes_in_place
from tensormagic.capture.values import strides_and_flags
from tensormagic.capture.values.casts import warn_of_loss
from tensormagic.capture.values.equal_sizes import agreed_size
from tensormagic.capture.values.indexing import PartLayout, basic, expand, has_ellipsis, in_sizes, is_array, put_part
from tensormagic.capture.values.lazy import Lazy
from tensormagic.capture.values.live_values import held
from tensormagic.ir.errors import DTypeError, MissingAttributeError, ShapeError
from tensormagic.ir.node import Node
from tensormagic.ir.size import nodes_of
from tensormagic.ir.type import Dim, Size, hint
from tensormagic.ops.form import as_array, to_form
from tensormagic.ops.leaf import constant, size_node, size_of
from tensormagic.ops.move import reshape, transpose
from tensormagic.ops.move_kind import normalise_axis
from tensormagic.ops.named import is_bare
from tensormagic.ops.pointwise import astype
from tensormagic.ops.scalars import scalar
from tensormagic.ops.scalars.complex_parts import from_parts

_COMPARISONS = {f"__{name}__" for name in ("lt", "le", "gt", "ge", "eq", "ne")}


class Tensor(Lazy):
    """A lazy array: the result of NumPy code, computed when it is needed.

    It has NumPy's operators, methods, attributes and indexing; ``np.asarray``, ``float``, ``print`` and plotting compute it.
    Make one with :func:`tensormagic.tensor`, or by running a ``%%tensor`` cell.

    Examples
    --------
    >>> import numpy as np
    >>> from tensormagic import tensor
    >>> y = np.exp(tensor(np.zeros(2))) + 1
    >>> type(y).__name__, y.shape, float(y[0])
    ('Tensor', (2,), 2.0)
    """

    __slots__ = ()
    __array_priority__ = 1000.0
    has_labels: ClassVar[bool] = False  # these have to agree with those of a table

    @property
    def __pandas_priority__(self) -> int:
        """Return a higher priority than a DataFrame's, so that operations with a Series are lazy.

        Not for stores into it, and comparisons, which have no derivatives.
        """
        frame: Any = inspect.currentframe()
        operation = frame.f_back
        name = getattr(operation.f_locals.get("method"), "__name__", "")
        if not self.has_labels and (operation.f_back.f_code.co_name == "_inplace_method" or name in _COMPARISONS):
            raise AttributeError
        return 5000

    @property
    def shape(self) -> tuple[Any, ...]:
        """Return the shape: in captured code sizes stay symbolic, elsewhere they are ints."""
        return tuple(extent(agreed_size(s, self.node, self.place.buffer.first)) for s in self.type.shape)

    @property
    def size(self) -> Any:
        """Return the number of elements."""
        return extent(agreed_size(self.type.size, self.node, self.place.buffer.first))

    @property
    def nbytes(self) -> Any:
        """Return the bytes of the elements."""
        return self.size * self.dtype.itemsize

    @property
    def T(self) -> Tensor:
        """Return the transpose: a view."""
        return self.transpose()

    @property
    def base(self) -> Any:
        """Return the array that it is a view of, or that the notebook's array is a view of; None where the memory is its own."""
        strides_and_flags.needs_memory("base")
        buffer = self.place.buffer
        own = getattr(buffer.array, "base", None)
        if self.type.form != "array" or (not self.place.is_view and own is None):
            return None
        whole = [t.place.buffer for t in (self, *held()) if isinstance(t, Tensor) and t.place.buffer.array is own]
        if own is not None and not whole:
            return own
        buffer = buffer if own is None else whole[0]
        roots = (t for t in held() if isinstance(t, Tensor) and t.place.buffer is buffer and not t.place.is_view)
        root = next(roots, None)
        return Tensor(Place(buffer)) if root is None else root

    @property
    def mT(self) -> Tensor:
        """Return the transpose of the last two axes: a view."""
        if self.type.form == "scalar":
            raise AttributeError
        if self.ndim < 2:
            raise ShapeError("matrix transpose with ndim < 2 is undefined")
        return self.swapaxes(-1, -2)

    @property
    def real(self) -> Tensor:
        """Return the real part: a view."""
        if self.dtype.kind != "c" and self.type.form == "array":
            return self
        if self.type.form != "array":
            return wrap(context.record(arithmetic(scalar.real, [self.node])))
        return self.view_of(
            as_array(scalar.real), lambda old, new: from_parts(new, scalar.imag(old)), EveryOther("real")
        )

    @property
    def imag(self) -> Tensor:
        """Return the imaginary part: a view."""
        if self.type.form != "array" or self.dtype.kind != "c":
            return read_only(wrap(to_form(scalar.imag(self.node), self.type.form)))
        return self.view_of(
            as_array(scalar.imag), lambda old, new: from_parts(scalar.real(old), new), EveryOther("imag")
        )

    def __len__(self) -> int:
        if not self.ndim:
            number = self.type.form != "array"
            raise TypeError(f"object of type {self._class!r} has no len()" if number else "len() of unsized object")
        return operator.index(self.shape[0])

    def __iter__(self) -> Iterator[Any]:
        if not self.ndim:
            number = self.type.form != "array"
            raise TypeError(f"{self._class!r} object is not iterable" if number else "iteration over a 0-d array")
        return iter(_InOrder(self))  # a Python iterator over a sequence, as for NumPy's arrays

    @property
    def gone_over(self) -> Tensor | None:
        """Return the array whose elements an iteration gives, by number; None where it gives anything else."""
        return self

    def __delitem__(self, index: Any) -> None:
        if self.type.form == "array":
            raise ValueError("cannot delete array elements")
        raise TypeError(f"{self._class!r} object doesn't support item deletion")

    def __contains__(self, value: Any) -> bool:
        if self.type.form != "array":
            raise TypeError(said(operator.contains, 1, 1).replace("int", str(self.type)))
        return bool((self == value).any())

    def __reduce__(self) -> Any:
        needs_value("pickling", node=self.node)
        return (_restore, (self.numpy(),))

    def __copy__(self) -> Tensor:
        return self if self.type.form == "python" else self.copy("K")

    def __deepcopy__(self, memo: Any) -> Tensor:
        if self.type.form == "python":  # numbers cannot be changed
            return self
        of_callers = getattr(memo, "copy_of", None)
        return self.copy("K") if of_callers is None else of_callers(self)

    if TYPE_CHECKING:  # operators.py and storing.py set these, with the others

        def __setitem__(self, index: Any, value: Any) -> None: ...
        def fill(self, value: Any) -> None: ...
        def __add__(self, other: Any) -> Tensor: ...
        def __sub__(self, other: Any) -> Tensor: ...
        def __mul__(self, other: Any) -> Tensor: ...
        def __truediv__(self, other: Any) -> Tensor: ...
        def __radd__(self, other: Any) -> Tensor: ...
        def __rmul__(self, other: Any) -> Tensor: ...
        def __neg__(self) -> Tensor: ...
        def __abs__(self) -> Tensor: ...

    # NumPy's protocols ------------------------------------------------------------------------------------------------

    def __array_ufunc__(self, ufunc: Any, method: str, *operands: Any, **options: Any) -> Any:
        return hooks.call_ufunc(ufunc, method, operands, options)

    def __array_function__(self, function: Any, types: Any, args: tuple[Any, ...], options: dict[str, Any]) -> Any:
        found = hooks.call_numpy(function, args, options)
        return owned(found)

    def __getattr__(self, name: str) -> Any:
        method = hooks.methods.get(name)
        if self.type.form == "scalar" and hasattr(np.ndarray, name) and not hasattr(self.dtype.type, name):
            raise AttributeError(f"'numpy.{self.dtype}' object has no attribute {name!r}")
        if method is None:
            if name in strides_and_flags.ATTRIBUTES and self.type.form == "array":
                return strides_and_flags.ATTRIBUTES[name](self)
            if name == "ctypes" and self.type.form == "array" and context.current() is not None:
                return hooks.address_of(self)
            if name in {"ctypes", "data"} and context.current() is None:
                return getattr(self.__array__(), name)
            if hasattr(np.ndarray, name) and not name.startswith("_"):
                raise MissingAttributeError(f"lazy arrays have no {name!r}", f"Compute it first: x.numpy().{name}.")
            if name in {"numerator", "denominator"} and self.type.form != "array" and hasattr(self._number, name):
                return self._part_of_number(name)
            if self.type.form != "array" and callable(getattr(self._number, name, None)) and not name.startswith("_"):
                return self._method_of_number(name)
            raise AttributeError(f"{self._class!r} object has no attribute {name!r}", name=name, obj=self)
        return method.__get__(self)

    def __dir__(self) -> list[str]:
        """Return the names that completion offers: the attributes of arrays, and those written for people."""
        arrays = (n for n in object.__dir__(self) if n.startswith("__") or hasattr(np.ndarray, n))
        return sorted({*arrays, *hooks.methods, "grad", "graph", "numpy"})

    # indexing ---------------------------------------------------------------------------------------------------------

    def __getitem__(self, index: Any) -> Tensor:
        node = self.node
        if node.type.form == "python":
            raise DTypeError(f"'{node.type}' object is not subscriptable", "It is a Python number.")
        items = expand(index, node.type.ndim)
        if any(type(i) not in _BASIC and _is_advanced(i) for i in items):
            return hooks.call_numpy("getitem", (self, items), {})
        part = basic(items, node.type.shape, as_size)
        if not part.shape and not has_ellipsis(index):
            return wrap(context.record(to_form(part.take(node), "scalar")))  # a NumPy scalar: no view
        take = part.take if part.shape else lambda x: to_form(part.take(x), "array")
        if any(type(i) not in _BASIC and _is_array_without_axes(i) for i in items):
            return wrap(context.record(take(node)))  # NumPy selects by arrays of indices, and copies
        return self.view_of(take, lambda old, new: put_part(part, old, new), PartLayout(in_sizes(items, as_size)))

    def view_of(
        self,
        forward: Callable[[Node], Node],
        backward: Callable[[Node, Node], Node] | None,
        moved: Callable[[Any], Any],
    ) -> Tensor:
        """Return a view: the part that ``forward`` takes, stored through ``backward``; ``moved`` finds it in memory."""
        number = self.type.form != "array"  # its memory is shared with nothing
        base = Place(Buffer(to_form(self.node, "array"))) if number else self.place
        view = Tensor(base.view(forward, backward, moved))
        context.record(view.node)
        return view

    def reshape(self, *shape: Any, order: str = "C") -> Tensor:
        """Return the array with another shape, as ``ndarray.reshape``: a view, where it is one in NumPy."""
        if order != "C":
            given = shape[0] if len(shape) == 1 else shape
            return hooks.call_numpy(np.reshape, (self, given), {"order": order})
        sizes = tuple(
            as_size(s) for s in (shape[0] if len(shape) == 1 and isinstance(shape[0], tuple | list) else shape)
        )
        result = reshape(self.node, sizes)
        sizes = tuple(context.settle(s) for s in result.type.shape)
        result = reshape(self.node, sizes)
        if not result.type.shape and self.type.form == "scalar":
            return self
        if not result.type.shape:
            return self.view_of(
                lambda x: to_form(reshape(x, ()), "array"),
                lambda old, new: reshape(new, old.type.shape),
                lambda a: a.reshape(()),
            )
        in_place = reshapes_in_place(self.place, result.type.shape)
        if in_place:
            return self.view_of(
                lambda x: reshape(x, sizes),
                lambda old, new: reshape(new, old.type.shape),
                Shaped(reshaped, result.type.shape),
            )
        copy = wrap(context.record(result))
        if in_place is None:
            apart_in_numpy(self.place.buffer, copy.place.buffer)
        return copy

    def ravel(self, order: str = "C") -> Tensor:
        """Return the array with one axis, as ``ndarray.ravel``: a view of what is contiguous, else a copy."""
        if order != "C":
            return hooks.call_numpy(np.ravel, (self,), {"order": order})
        flat = self.reshape(-1)
        layout = self.place.layout()
        copied = flat.place.buffer is not self.place.buffer
        return flat if copied or layout is None or layout.flags.c_contiguous else flat.copy()

    def transpose(self, *axes: Any) -> Tensor:
        """Return the array with its axes permuted, as ``ndarray.transpose``: a view."""
        given = axes[0] if len(axes) == 1 and (axes[0] is None or isinstance(axes[0], tuple | list)) else axes
        given = reversed(range(self.ndim)) if not axes or given is None else given
        order = tuple(operator.index(a) for a in given)
        if not order and self.type.form != "array":
            return self
        checked = tuple(a % self.ndim if -self.ndim <= a < self.ndim else a for a in order)
        inverse = tuple(checked.index(k) for k in range(self.ndim)) if sorted(checked) == list(range(self.ndim)) else ()
        return self.view_of(
            lambda x: transpose(x, order), lambda _old, new: transpose(new, inverse), lambda a: a.transpose(order)
        )

    def swapaxes(self, first: int, second: int) -> Tensor:
        """Return the array with two axes exchanged, as ``ndarray.swapaxes``: a view."""
        order = list(range(self.ndim))
        one, other = normalise_axis(first, self.ndim, "axis1"), normalise_axis(second, self.ndim, "axis2")
        order[one], order[other] = other, one
        return self.transpose(order)

    def copy(self, order: str = "C") -> Tensor:
        """Return a copy that shares no memory."""
        if order != "C" and self.ndim > 1:
            return hooks.call_numpy(np.copy, (self,), {"order": order})
        with self.leveled():
            return in_c_order(wrap(self.node))

    def astype(self, dtype: Any, **options: Any) -> Tensor:
        """Return the array cast to a dtype, as ``ndarray.astype``."""
        copied = options.pop("copy", True)
        if not copied and self.dtype == dtype:
            order = options.get("order", "K") if self.type.form == "array" else "K"
            if order != "A":
                return self if order == "K" else hooks.call_numpy(np.asarray, (self,), {"order": order})
        if options:
            refuse(f"astype with {', '.join(options)}", "Use astype(dtype) alone.")
        door.check_dtype(np.dtype(dtype), "the result of astype")
        warn_of_loss(self.dtype, dtype)
        cast = (as_array(astype) if self.type.form == "array" and not self.ndim else astype)(self.node, dtype)
        return wrap(context.record(cast))


_BASIC = {int, slice, type(None)}


def _is_advanced(item: Any) -> bool:
    """Return whether an index entry is an array of indices, or a boolean."""
    return is_array(item) or isinstance(item, bool | np.bool_) or (isinstance(item, Tensor) and item.dtype.kind == "b")


def _is_array_without_axes(item: Any) -> bool:
    return isinstance(item, np.ndarray) or (isinstance(item, Tensor) and item.type.form == "array")


def _restore(value: Any) -> Any:
    return wrap(constant(value) if np.ndim(value) == 0 else snapshots.of_array(np.asarray(value), "restored"))


# making them ----------------------------------------------------------------------------------------------------------


class _InOrder:
    """Iterates over the elements of an array along its first axis; its shape may change meanwhile."""

    __slots__ = ("_length", "_node", "_of", "_pace")

    def __init__(self, of: Tensor) -> None:
        self._of, self._length = of, 0
        self._node: Node | None = None
        self._pace = Pace()

    def __len__(self) -> int:
        return len(self._of)

    def __getitem__(self, number: Any) -> Any:
        if self._of.node is not self._node:
            self._node, self._length = self._of.node, len(self._of)
        if number >= self._length:
            raise IndexError(number)
        return self._pace.element(context.current(), number, self._length, lambda: self._of[number])


def _array(node: Node) -> Tensor:
    return Tensor(Place(Buffer(node)))


hooks.array = _array


def wrap(node: Node) -> Tensor:
    """Return a lazy array with a buffer of its own for a node, which in a ``try`` must not fail later."""
    return Tensor(Place(Buffer(context.checked_in_try(node))))


def done(node: Node) -> Tensor:
    """Return a result, noted as built by the user's current expression."""
    return wrap(context.record(node))


def in_c_order(value: Tensor) -> Tensor:
    """Return ``value``, marked as a copy whose elements lie in C order."""
    value.place.buffer.ordered = True
    lies_anew(value.node)
    return value


def read_only(value: Tensor) -> Tensor:
    """Return ``value``, made read-only."""
    value.place.buffer.writeable = False
    return value


def owned(value: Any, *, numbers: bool = False) -> Any:
    """Return a function's result for the user: constants get a buffer of their own, since literals may be shared.

    Values captured without data or in a trial stay as they are, and so do numbers, unless ``numbers`` is set.
    """
    capture = context.current()
    if not isinstance(value, Tensor) or (capture is not None and (capture.abstract or capture.heap.trials)):
        return value
    node = value.node
    if node.type.inexact and (numbers or node.type.shape) and value.place.parent is None and is_bare(node):
        value.become_own()
    return value


def extent(size: Size) -> Any:
    """Return a size as captured code sees it: symbolic during a capture, an int elsewhere."""
    if isinstance(size, int):
        return size
    if context.current() is not None:
        return wrap(to_form(size_node(size), "python"))
    number = hint(size)
    return int(hooks.compute([size_node(size)])[0]) if number is None and nodes_of(size) else number


def as_size(value: Any) -> Size:
    """Return a size that captured code has written: an int, or an expression of sizes."""
    if isinstance(value, Dim):
        return value
    if isinstance(value, Tensor):
        size = size_of(value.node)
        if size is None or not nodes_of(size):
            return operator.index(value) if size is None else size
        known = static_value(value.node)  # from sizes and constants alone
        return size if known is None else int(known)
    return operator.index(value)
