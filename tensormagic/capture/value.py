"""The lazy array: NumPy's operators, methods and indexing on nodes; computing is left to the session."""

from __future__ import annotations

import inspect
import math
import operator
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from itertools import count
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from tensormagic.capture import context, door, inputs, memory, taken, undecided
from tensormagic.capture.agreement import agreed_size
from tensormagic.capture.hooks import hooks
from tensormagic.capture.indexing import Taken, basic, expand, has_ellipsis, is_array, put_part
from tensormagic.capture.known import arithmetic, static_value
from tensormagic.capture.living import held, hold
from tensormagic.capture.numbers import is_huge, representable
from tensormagic.capture.refusal import (
    abstract,
    asked_by,
    asked_by_the_user,
    needs_value,
    of_several,
    refuse,
    refuse_positions,
    values_are_there,
)
from tensormagic.capture.stores.layout import EveryOther, Shaped, reshaped
from tensormagic.capture.stores.place import Buffer, Place, reshapes_in_place
from tensormagic.capture.stores.uncertain import apart_in_numpy
from tensormagic.capture.words import said
from tensormagic.config import config
from tensormagic.ir.errors import DTypeError, MissingAttributeError, ShapeError
from tensormagic.ir.node import Node
from tensormagic.ir.size import nodes_of
from tensormagic.ir.type import Dim, Size, Type, hint, python_kind
from tensormagic.ops.form import as_array, to_form
from tensormagic.ops.leaf import CONSTANT, constant, size_node, size_of
from tensormagic.ops.move import normalise_axis, reshape, same, show, transpose
from tensormagic.ops.named import is_bare, named
from tensormagic.ops.pointwise import Pointwise, astype
from tensormagic.ops.scalars import scalar
from tensormagic.ops.scalars.complex_parts import from_parts

_COMPARISONS = {f"__{name}__" for name in ("lt", "le", "gt", "ge", "eq", "ne")}
_SEE_LAZY = (
    __name__.partition(".")[0],
    "IPython.",
    "json.",
)  # this package, and what has a way of its own for lazy values


class Tensor:
    """A lazy array: what NumPy code computes, not yet computed.

    It has NumPy's operators, methods, attributes and indexing; ``np.asarray``, ``float``, ``print`` and plotting compute it.
    Make one with :func:`tensormagic.tensor`, or by running a ``%%tensor`` cell.
    """

    __slots__ = ("__weakref__", "_cached", "_origin", "place")
    __array_priority__ = 1000.0
    has_labels: ClassVar[bool] = False  # which have to agree with those of a table

    def __init__(self, place: Place | float) -> None:
        if not isinstance(place, Place):  # type(x)(2), as of NumPy's numbers
            place = Place(Buffer(constant(np.float64(place))))
        self.place = place
        self._cached: tuple[Place, int, Node] | None = None
        self._origin: str = ""
        hold(self)

    # what it is -------------------------------------------------------------------------------------------------------

    @property
    def __class__(self) -> type[Any]:  # pyright: ignore[reportIncompatibleMethodOverride] (Python lets it be any class)
        """The class that it has in NumPy or Python, for ``isinstance`` outside of this package: of an array, in the user's code alone."""
        if asked_by(_SEE_LAZY):
            return type(self)
        if self.type.form != "array":
            return self._number
        return self._stands_for if asked_by_the_user() else type(self)  # libraries hand it on to what reads memory

    @property
    def _stands_for(self) -> type[Any]:
        return np.ndarray

    @property
    def __pandas_priority__(self) -> int:
        """Above a DataFrame's: what a Series and a lazy array make is lazy; not what is stored into the Series, or has no derivative."""
        frame: Any = inspect.currentframe()
        operation = frame.f_back
        name = getattr(operation.f_locals.get("method"), "__name__", "")
        if not self.has_labels and (operation.f_back.f_code.co_name == "_inplace_method" or name in _COMPARISONS):
            raise AttributeError
        return 5000

    @property
    def node(self) -> Node:
        """The node that is the current value."""
        version = self.place.buffer.version
        cached = self._cached
        if cached is None or cached[0] is not self.place or cached[1] != version:
            cached = self._cached = (self.place, version, self.place.read())
        return cached[2]

    @property
    def type(self) -> Type:
        """dtype, symbolic shape and form."""
        return self.node.type

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype, as NumPy would give it."""
        return self.type.dtype

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return self.type.ndim

    @property
    def shape(self) -> tuple[Any, ...]:
        """The shape: in captured code sizes stay symbolic, elsewhere they are ints."""
        return tuple(extent(agreed_size(s, self.node, self.place.buffer.first)) for s in self.type.shape)

    @property
    def size(self) -> Any:
        """The number of elements."""
        return extent(agreed_size(self.type.size, self.node, self.place.buffer.first))

    @property
    def nbytes(self) -> Any:
        """The bytes of the elements."""
        return self.size * self.dtype.itemsize

    @property
    def itemsize(self) -> int:
        """The bytes of one element."""
        return self.dtype.itemsize

    @property
    def T(self) -> Tensor:
        """The transpose: a view."""
        return self.transpose()

    @property
    def base(self) -> Any:
        """The array that it is a view of, or the notebook's array is; None where the memory is its own."""
        memory.needs_memory("base")
        buffer = self.place.buffer
        own = getattr(buffer.array, "base", None)
        if self.type.form != "array" or (self.place.parent is None and own is None):
            return None
        whole = [t.place.buffer for t in (self, *held()) if isinstance(t, Tensor) and t.place.buffer.array is own]
        if own is not None and not whole:
            return own
        buffer = buffer if own is None else whole[0]
        roots = (t for t in held() if isinstance(t, Tensor) and t.place.buffer is buffer and t.place.parent is None)
        root = next(roots, None)
        return Tensor(Place(buffer)) if root is None else root

    @property
    def mT(self) -> Tensor:
        """The transpose of the last two axes: a view."""
        if self.type.form == "scalar":
            raise AttributeError
        if self.ndim < 2:
            raise ShapeError("matrix transpose with ndim < 2 is undefined")
        return self.swapaxes(-1, -2)

    @property
    def real(self) -> Tensor:
        """The real part: a view."""
        if self.dtype.kind != "c" and self.type.form == "array":
            return self
        if self.type.form != "array":
            return build(scalar.real, self)
        return self.view_of(
            as_array(scalar.real), lambda old, new: from_parts(new, scalar.imag(old)), EveryOther("real")
        )

    @property
    def imag(self) -> Tensor:
        """The imaginary part: a view."""
        if self.type.form != "array" or self.dtype.kind != "c":
            return read_only(wrap(to_form(scalar.imag(self.node), self.type.form)))
        return self.view_of(
            as_array(scalar.imag), lambda old, new: from_parts(scalar.real(old), new), EveryOther("imag")
        )

    @property
    def level(self) -> str:
        """The level of rewriting that its value is computed at; empty for the one in force when it is asked for."""
        return self.place.buffer.level

    @property
    def placed(self) -> tuple[str, str]:
        """The device that its value is computed on, and what is said of copies; empty for those in force when it is asked for."""
        return self.place.buffer.placed

    def leveled(self) -> AbstractContextManager[None]:
        """A block in which its level and its device are in force."""
        device, policy = self.place.buffer.placed
        if not self.level and not device:
            return nullcontext()
        return config.using(math=self.level, device=device, transfers=policy)

    def become_own(self) -> None:
        """Be a value of its own, which is told from others that hold the same."""
        self.place.buffer.hold(named(self.node))
        self._cached = None

    # what computes it -------------------------------------------------------------------------------------------------

    def numpy(self) -> Any:
        """The value: a read-only array, a NumPy scalar, or a Python number.

        Computed once; the same object after that.
        """
        abstract("its value is asked for")
        with self.leveled():
            return hooks.compute([self.node])[0]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        if self.node.op is not CONSTANT:
            needs_value("np.asarray of it, or a function that is not captured,", node=self.node)
        pandas = asked_by("pandas.")
        if pandas and dtype is not None and self.type.dtype.kind == "b" and np.dtype(dtype).kind == "i":
            refuse_positions()
        value = np.asarray(self.numpy() if self.node.op is not CONSTANT else self.node["bits"].array())
        taken.note(self.node, value)
        if dtype is not None and np.dtype(dtype) != value.dtype:
            return value.astype(dtype)
        return value.copy() if copy or pandas else value  # which stores into what it is given

    def __bytes__(self) -> bytes:
        return bytes(self.__array__())

    def item(self, *index: Any) -> Any:
        """The value of one element, as a Python number."""
        needs_value(".item()", node=self.node)
        return np.asarray(self.numpy()).item(*index)

    def tolist(self) -> Any:
        """The value as nested lists of Python numbers."""
        needs_value(".tolist()", node=self.node)
        return np.asarray(self.numpy()).tolist()

    def __float__(self) -> float:
        of_several(float, self.type)
        needs_value("float()", "Remove float(): the value is already a number.", self.node)
        value = float(self.numpy())
        taken.note(self.node, value)
        return value

    def __complex__(self) -> complex:
        of_several(complex, self.type)
        needs_value("complex()", node=self.node)
        return complex(self.numpy())

    def __int__(self) -> int:
        known = static_int(self)
        if known is not None:
            return known
        of_several(int, self.type)
        needs_value("int()", "Use .astype(int), which stays in the graph.")
        return int(self.numpy())

    def __index__(self) -> int:
        known = static_int(self)
        if known is not None:
            return known
        of_several(operator.index, self.type)
        needs_value("an index or a size that depends on data", "Compute it in an earlier cell.")
        value = self.numpy()
        return operator.index(value if self.type.form == "array" else np.asarray(value)[()])

    def __bool__(self) -> bool:
        known = static_value(self.node)
        if known is not None:
            return bool(known)
        of_several(bool, self.type)
        needs_value(
            "`if`, `while`, `and`, `or`, `not` on data",
            "Write np.where(condition, a, b), np.logical_and, …; or run the cell with --plain.",
        )
        return bool(self.numpy())

    def __hash__(self) -> int:
        if self.type.form == "array":
            raise TypeError("unhashable type: 'numpy.ndarray'")
        known = self.specialised()
        if known is not None:
            return hash(known)
        needs_value("a key of a dictionary, or a member of a set,", node=self.node)
        return hash(self.numpy())

    def __len__(self) -> int:
        if not self.ndim:
            number = self.type.form != "array"
            raise TypeError(f"object of type {self._class!r} has no len()" if number else "len() of unsized object")
        return operator.index(self.shape[0])

    def __iter__(self) -> Iterator[Any]:
        if not self.ndim:
            number = self.type.form != "array"
            raise TypeError(f"{self._class!r} object is not iterable" if number else "iteration over a 0-d array")
        return self._iterated()

    @property
    def gone_over(self) -> Tensor | None:
        """The array whose elements an iteration gives, by number; None where it gives something else."""
        return self

    def _iterated(self) -> Iterator[Any]:
        node, length = None, 0
        for k in count():
            if self.node is not node:  # its shape may change meanwhile
                node, length = self.node, len(self)
            if k >= length:
                return
            yield self[k]

    def __delitem__(self, index: Any) -> None:
        if self.type.form == "array":
            raise ValueError("cannot delete array elements")
        raise TypeError(f"{self._class!r} object doesn't support item deletion")

    @property
    def _class(self) -> str:
        """The class of what this stands for, as errors name it."""
        return {"array": "numpy.ndarray", "scalar": f"numpy.{self.dtype}", "python": str(self.type)}[self.type.form]

    @property
    def _number(self) -> type:
        """The class of the number that this stands for."""
        return python_kind(self.type) if self.type.form == "python" else self.dtype.type

    def _method_of_number(self, name: str) -> Callable[..., Any]:
        """A method that numbers have and arrays have not: it computes the number, when it is called."""

        def method(*args: Any) -> Any:
            needs_value(f".{name}() of a number", node=self.node)
            return getattr(self._number(self.item()), name)(*args)

        return method

    def __contains__(self, value: Any) -> bool:
        if self.type.form != "array":
            raise TypeError(said(operator.contains, 1, 1).replace("int", str(self.type)))
        return bool((self == value).any())

    def specialised(self) -> Any:
        """The number of Python's that sizes make this, noted as fixed, where code is captured without values; else None."""
        capture = context.current()
        if capture is None or not capture.abstract or self.type.form != "python":
            return None
        known = static_value(self.node)
        return None if known is None else python_kind(self.type)(known)

    def __str__(self) -> str:
        known = self.specialised()
        if known is not None:
            return str(known)
        abstract("its text is asked for")
        return str(self.numpy())

    def __format__(self, spec: str) -> str:
        known = self.specialised()
        if known is not None:
            return format(known, spec)
        abstract("its text is asked for")
        return format(self.numpy(), spec)

    def __repr__(self) -> str:
        from tensormagic.capture.summary import describe

        known = self.specialised()
        if known is not None:
            return repr(known)
        abstract("its text is asked for")
        return describe(self)

    def __round__(self, digits: int | None = None) -> Any:
        needs_value("round()", "Use np.round, which stays in the graph.")
        return round(self.numpy(), digits) if digits is not None else round(self.numpy())

    def __trunc__(self) -> int:
        needs_value("math.trunc()", "Use np.trunc, which stays in the graph.")
        return math.trunc(self.item())

    def __reduce__(self) -> Any:
        needs_value("pickling", node=self.node)
        return (_restore, (self.numpy(),))

    def __copy__(self) -> Tensor:
        return self.copy("K")

    def __deepcopy__(self, memo: Any) -> Tensor:
        return self.copy("K")

    if TYPE_CHECKING:  # operators.py and storing.py set these, with the others

        def __setitem__(self, index: Any, value: Any) -> None: ...
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
        if name in {"dot", "mT"} and self.type.form == "scalar":
            raise AttributeError(f"'numpy.{self.dtype}' object has no attribute {name!r}")
        if method is None:
            if name in memory.ATTRIBUTES and self.type.form == "array":
                return memory.ATTRIBUTES[name](self)
            if name == "ctypes" and self.type.form == "array" and context.current() is not None:
                return hooks.address_of(self)
            if name in {"ctypes", "data"} and context.current() is None:
                return getattr(self.__array__(), name)
            if hasattr(np.ndarray, name) and not name.startswith("_"):
                raise MissingAttributeError(f"lazy arrays have no {name!r}", f"Compute it first: x.numpy().{name}.")
            if self.type.form != "array" and callable(getattr(self._number, name, None)) and not name.startswith("_"):
                return self._method_of_number(name)
            raise AttributeError(f"{self._class!r} object has no attribute {name!r}", name=name, obj=self)
        return method.__get__(self)

    def __dir__(self) -> list[str]:
        """What completion offers: the attributes of arrays, and those that are written for people."""
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
            return wrap(context.record(take(node)))  # NumPy chooses by arrays of indices, and copies
        return self.view_of(take, lambda old, new: put_part(part, old, new), Taken(items, as_size))

    def view_of(
        self,
        forward: Callable[[Node], Node],
        backward: Callable[[Node, Node], Node] | None,
        moved: Callable[[Any], Any],
    ) -> Tensor:
        """A view: the part that ``forward`` takes, stored through ``backward``, where ``moved`` says in memory."""
        number = self.type.form != "array"  # whose memory is nobody else's
        base = Place(Buffer(to_form(self.node, "array"))) if number else self.place
        view = Tensor(base.view(forward, backward, moved))
        context.record(view.node)
        return view

    def reshape(self, *shape: Any, order: str = "C") -> Tensor:
        """``ndarray.reshape``: a view, where it is one in NumPy."""
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
            apart_in_numpy(self.place.buffer, copy.place.buffer, "a reshape of it")
        return copy

    def ravel(self, order: str = "C") -> Tensor:
        """``ndarray.ravel``: a view of what is contiguous, else a copy."""
        if order != "C":
            return hooks.call_numpy(np.ravel, (self,), {"order": order})
        flat = self.reshape(-1)
        layout = self.place.layout()
        copied = flat.place.buffer is not self.place.buffer
        return flat if copied or layout is None or layout.flags.c_contiguous else flat.copy()

    def transpose(self, *axes: Any) -> Tensor:
        """``ndarray.transpose``: a view."""
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
        """``ndarray.swapaxes``: a view."""
        order = list(range(self.ndim))
        one, other = normalise_axis(first, self.ndim, "axis1"), normalise_axis(second, self.ndim, "axis2")
        order[one], order[other] = other, one
        return self.transpose(order)

    def copy(self, order: str = "C") -> Tensor:
        """A copy that shares no memory."""
        if order != "C" and self.ndim > 1:
            return hooks.call_numpy(np.copy, (self,), {"order": order})
        with self.leveled():
            return in_c_order(wrap(self.node))

    def astype(self, dtype: Any, **options: Any) -> Tensor:
        """``ndarray.astype``."""
        copied = options.pop("copy", True)
        if not copied and self.dtype == dtype:
            order = options.get("order", "K") if self.type.form == "array" else "K"
            if order != "A":
                return self if order == "K" else hooks.call_numpy(np.asarray, (self,), {"order": order})
        if options:
            refuse(f"astype with {', '.join(options)}", "Use astype(dtype) alone.")
        door.check_dtype(np.dtype(dtype), "the result of astype")
        cast = (as_array(astype) if self.type.form == "array" and not self.ndim else astype)(self.node, dtype)
        return wrap(context.record(cast))

    def fill(self, value: Any) -> None:
        """``ndarray.fill`` with one number, or for truth values with whether something is true; of NumPy's scalars it does nothing."""
        if self.dtype.kind == "b" and isinstance(value, list | tuple):
            value = bool(value)
        elif (node := node_of(value)).type.shape and self.dtype.kind == "b" and node.type.size == 1:
            value = wrap(reshape(node, ()))
        elif node.type.shape:
            raise (TypeError if self.dtype.kind == "c" else ShapeError)("setting an array element with a sequence.")
        if self.type.form != "scalar":
            self[...] = value


_BASIC = {int, slice, type(None)}


def _is_advanced(item: Any) -> bool:
    """Whether an index entry is an array of indices, or a truth value."""
    return is_array(item) or isinstance(item, bool | np.bool_) or (isinstance(item, Tensor) and item.dtype.kind == "b")


def _is_array_without_axes(item: Any) -> bool:
    return isinstance(item, np.ndarray) or (isinstance(item, Tensor) and item.type.form == "array")


def _restore(value: Any) -> Any:
    return wrap(constant(value) if np.ndim(value) == 0 else inputs.of_array(np.asarray(value), "restored"))


# making them ----------------------------------------------------------------------------------------------------------


def wrap(node: Node) -> Tensor:
    """A lazy array of its own for a node, which in a ``try`` must not fail later."""
    return Tensor(Place(Buffer(context.met(node))))


def in_c_order(value: Tensor) -> Tensor:
    """``value``, a copy whose elements lie in C order."""
    value.place.buffer.ordered = True
    return value


def read_only(value: Tensor) -> Tensor:
    """``value``, which may not be stored into."""
    value.place.buffer.writeable = False
    return value


def input_tensor(value: Any, name: str) -> Tensor | None:
    """The lazy array of a notebook's array or number; None for what is no input."""
    if not isinstance(value, np.ndarray | float | complex | np.number):
        return None
    node = inputs.lift(door.variable(value, name), name)
    if node is None or node.op is CONSTANT:
        return None
    array = value if isinstance(value, np.ndarray) else None
    writeable = array is None or bool(array.flags.writeable)
    return Tensor(Place(Buffer(node, array, name, writeable=writeable)))


def owned(value: Any, *, numbers: bool = False) -> Any:
    """What a function made, handed to the user: a lazy array of constants alone becomes a value of its own, which no literal is.

    What is captured without values, or tried out, stays as it is, and so do numbers, unless they are wanted, too.
    """
    capture = context.current()
    if not isinstance(value, Tensor) or (capture is not None and (capture.abstract or capture.trials)):
        return value
    node = value.node
    if node.type.inexact and (numbers or node.type.shape) and value.place.parent is None and is_bare(node):
        value.become_own()
    return value


def node_of(value: Any) -> Node:
    """The node of an operand: lazy array, array, number, or nested lists of these."""
    if isinstance(value, Tensor):
        return value.node
    if isinstance(value, Node):
        return value
    node = inputs.lift(value, name_of(value))
    if node is not None:
        return node
    if isinstance(value, list | tuple | range):
        return _stacked(value)
    if hasattr(value, "lazy"):
        return value.lazy.node
    if door.kind_of(value) is door.Kind.READ and isinstance(given := door.lazily(value), Tensor):
        return given.node
    if values_are_there() and door.is_sequence(value):
        return (
            inputs.of_content(np.asarray(value), _label_of(value)) if door.has_buffer(value) else _stacked(list(value))
        )
    node = inputs.of_object(value, _label_of(value))
    if node is None:
        raise DTypeError(
            f"{type(value).__name__} cannot be an operand: only arrays and numbers can",
            "Make an array of it outside the function, and pass that."
            if door.has_buffer(value)
            else "If it holds numbers, convert it with np.asarray.",
        )
    return node


def as_converted(value: Any, dtype: Any = None) -> Any:
    """The lazy array of an object whose numbers ``np.asarray`` takes, operators or not; any other value as it is."""
    if door.is_converted(value) and isinstance(given := door.lazily(value), Tensor):
        return given if dtype is None else given.astype(dtype)
    if isinstance(value, np.ndarray) and values_are_there():
        door.variable(value)  # NumPy's own stays what it is, and so does what lies in its memory
    found = door.converted(value, dtype)
    return value if found is value else wrap(inputs.of_content(found, _label_of(value)))


def _label_of(value: Any) -> str:
    """The user's name of an object; else the column that it is, as a Series says, or its class."""
    column = getattr(value, "name", None) if door.is_table(value) else None
    return _named(value) or (f"column {column!r}" if column is not None else type(value).__name__)


def _stacked(values: Sequence[Any]) -> Node:
    """Nested lists, as ``np.array`` reads them."""
    if isinstance(whole := getattr(values, "tensor", None), Tensor):
        return whole.node
    if has_lazy(values):
        from tensormagic.capture.elements import stacked
        from tensormagic.ops.move import concatenate, expand_dims

        if (rows := stacked(values)) is not None:
            return rows

        nodes = [node_of(v) for v in values]
        dtype = np.result_type(*(n.type.dtype for n in nodes))
        first = nodes[0].type.shape
        if any(len(n.type.shape) != len(first) or not all(map(same, n.type.shape, first)) for n in nodes):
            raise ShapeError(
                "setting an array element with a sequence. The elements have different shapes: "
                + ", ".join(show(n.type.shape) for n in nodes)
            )
        return undecided.joined(concatenate([expand_dims(astype(n, dtype), (0,)) for n in nodes], 0), nodes)
    array = np.array(values)
    door.check_dtype(array.dtype, "the list")
    return inputs.of_list(values, array)


def has_lazy(value: Any) -> bool:
    """Whether a value is lazy, or a list that holds a lazy value."""
    several = isinstance(value, list | tuple)
    return any(map(has_lazy, value)) if several else isinstance(value, Tensor) or hasattr(value, "stacks")


def name_of(value: Any) -> str:
    """The user's name of an array that code reached without the cell's namespace."""
    return _named(value) if isinstance(value, np.ndarray) else ""


def _named(value: Any) -> str:
    names = context.user_names(context.user_frame())
    return next((name for name, held in names.items() if held is value and not name.startswith("_")), "")


def build(op: Pointwise, *operands: Any) -> Tensor:
    """A pointwise op on operands."""
    if any(map(is_huge, operands)):
        others = [node_of(x).type.dtype for x in operands if not is_huge(x)]
        operands = tuple(representable(x, others, op.name) if is_huge(x) else x for x in operands)
    nodes = [node_of(x) for x in operands]
    return wrap(context.record(arithmetic(op, nodes)))


def extent(size: Size) -> Any:
    """A size as captured code sees it: symbolic during a capture, an int elsewhere."""
    if isinstance(size, int):
        return size
    if context.current() is not None:
        return wrap(to_form(size_node(size), "python"))
    number = hint(size)
    return int(hooks.compute([size_node(size)])[0]) if number is None and nodes_of(size) else number


def as_size(value: Any) -> Size:
    """A size that captured code has written: an int, or an expression of sizes."""
    if isinstance(value, Dim):
        return value
    if isinstance(value, Tensor):
        size = size_of(value.node)
        if size is None or not nodes_of(size):
            return operator.index(value) if size is None else size
        known = static_value(value.node)  # of sizes and constants alone
        return size if known is None else int(known)
    return operator.index(value)


def static_int(tensor: Tensor) -> int | None:
    """The int that a size is."""
    if tensor.type.dtype.kind not in "iub" or tensor.type.shape:
        return None
    value = static_value(tensor.node)
    return None if value is None else int(value)
