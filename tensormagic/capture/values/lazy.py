"""A lazy value: the place that holds its node, and the hook that computes it. It knows no indices, operators or views."""

from __future__ import annotations

import inspect
import math
import operator
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np

from tensormagic.capture import context
from tensormagic.capture.errors.refusal import (
    AS_TEXT,
    abstract,
    is_called_by,
    is_called_by_the_user,
    needs_value,
    refuse_positions,
    refuse_several_elements,
    values_are_there,
    zero_like,
)
from tensormagic.capture.hooks import hooks
from tensormagic.capture.numbers import numbers_taken
from tensormagic.capture.numbers.known_values import static_int, static_value
from tensormagic.capture.python import usercode
from tensormagic.capture.stores.lent import lent
from tensormagic.capture.stores.place import Buffer, Place
from tensormagic.capture.values.live_values import hold
from tensormagic.capture.values.summary import describe
from tensormagic.config import config
from tensormagic.ir.node import Node
from tensormagic.ir.type import Type, python_kind
from tensormagic.ops.form import to_form
from tensormagic.ops.leaf import CONSTANT, constant
from tensormagic.ops.named import named

SEE_LAZY = (
    __name__.partition(".")[0],
    "IPython.",
    "json.",
)  # this package, and libraries that handle lazy values themselves


class Lazy:
    """A value that is not computed yet: its type is known; it is computed when Python needs it, and kept."""

    __slots__ = ("__weakref__", "_cached", "place")
    _held_unread = True  # whether it is known to exist before anything has read it

    def __init__(self, place: Place | float) -> None:
        if not isinstance(place, Place):  # type(x)(2), as for NumPy's numbers
            place = Place(Buffer(constant(np.float64(place))))
        self.place = place
        self._cached: tuple[Place, int, Node] | None = None
        if self._held_unread:
            hold(self)

    @property
    def __class__(self) -> type[Any]:  # pyright: ignore[reportIncompatibleMethodOverride] (Python lets it be any class)
        """Return the class that its value has in NumPy or Python, for ``isinstance``: that of an array only for the user's code."""
        if is_called_by(SEE_LAZY):
            return type(self)
        if self.type.form != "array":
            return self._number
        return (
            self.array_class if is_called_by_the_user() else type(self)
        )  # libraries pass it on to code that reads memory

    @property
    def array_class(self) -> type[Any]:
        """Return the class of NumPy's array."""
        return np.ndarray

    @property
    def node(self) -> Node:
        """Return the node that is the current value."""
        version = self.place.buffer.version
        cached = self._cached
        if cached is None or cached[0] is not self.place or cached[1] != version:
            cached = self._cached = (self.place, version, self.place.read())
        return cached[2]

    @property
    def type(self) -> Type:
        """Return the type: dtype, symbolic shape and form."""
        return self.node.type

    @property
    def dtype(self) -> np.dtype[Any]:
        """Return the dtype, as NumPy would give it."""
        return self.type.dtype

    @property
    def ndim(self) -> int:
        """Return the number of axes."""
        return self.type.ndim

    @property
    def itemsize(self) -> int:
        """Return the bytes of one element."""
        return self.dtype.itemsize

    @property
    def level(self) -> str:
        """Return the level of rewriting for its value; empty for the one in force when it is computed."""
        return self.place.buffer.level

    @property
    def placed(self) -> tuple[str, str]:
        """Return the device for its value and how copies are reported; empty for the settings in force when it is computed."""
        return self.place.buffer.placed

    def leveled(self) -> AbstractContextManager[None]:
        """Return a context in which its level and its device are in force."""
        device, policy = self.place.buffer.placed
        if not self.level and not device:
            return nullcontext()
        return config.using(math=self.level, device=device, transfers=policy)

    def become_own(self) -> None:
        """Become distinct from other values with the same content."""
        self.place.buffer.hold(named(self.node))
        self._cached = None

    # what computes it -------------------------------------------------------------------------------------------------

    def numpy(self) -> Any:
        """Return the value: computed once; the same object after that.

        Returns
        -------
        ndarray, NumPy scalar or number
            Of the lazy value's shape and dtype, read-only where it is an array.

        Raises
        ------
        CaptureError
            In captured code, where there are no values yet.

        Examples
        --------
        >>> import tensormagic as tm
        >>> (tm.tensor([1.0, 2.0]) * 2).numpy()
        array([2., 4.])
        """
        abstract("it is used here as an array of NumPy")
        with self.leveled():
            value = hooks.compute([self.node])[0]
        if self.place.parent is None and self.place.buffer.ordered:
            value = self.place.buffer.in_order(value)
        numbers_taken.note_array(self.node, value)
        return value

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        if self.node.op is not CONSTANT:
            needs_value("np.asarray of it, or a function that is not captured,", node=self.node)
        pandas = is_called_by("pandas.")
        if pandas and dtype is not None and self.type.dtype.kind == "b" and np.dtype(dtype).kind == "i":
            refuse_positions()
        value = np.asarray(self.numpy() if self.node.op is not CONSTANT else self.node["bits"].array())
        if dtype is not None and np.dtype(dtype) != value.dtype:
            value = value.astype(dtype)
        elif copy or pandas:
            value = value.copy()  # which stores into its argument
        elif copy is None and self.type.form == "array" and is_called_by_the_user():
            value = lent(self.place, value)
        numbers_taken.note(self.node, value)
        return value

    def __bytes__(self) -> bytes:
        return bytes(self.__array__())

    def item(self, *index: Any) -> Any:
        """Return the value of one element, as a Python number.

        Parameters
        ----------
        *index : int
            Which element: its position in C order, or an index for each axis. Default: the only one.

        Returns
        -------
        bool, int, float or complex

        Raises
        ------
        ValueError
            If there are several elements and no index is given.
        IndexError
            If there is no such element.

        Examples
        --------
        >>> import tensormagic as tm
        >>> tm.tensor([[1.0, 2.0], [3.0, 4.0]]).item(1, 0)
        3.0
        """
        needs_value(".item()", node=self.node)
        value = np.asarray(self.numpy()).item(*index)
        numbers_taken.note(self.node, value)
        return value

    def tolist(self) -> Any:
        """Return the value as nested lists of Python numbers.

        Returns
        -------
        list or number
            Nested lists, one level for each axis; a number for an array without axes.

        Raises
        ------
        CaptureError
            In captured code, where there are no values yet.

        Examples
        --------
        >>> import tensormagic as tm
        >>> tm.tensor([[1.0, 2.0], [3.0, 4.0]]).tolist()
        [[1.0, 2.0], [3.0, 4.0]]
        """
        needs_value(".tolist()", node=self.node)
        value = np.asarray(self.numpy())
        numbers_taken.note(self.node, value)
        return value.tolist()

    def __float__(self) -> float:
        refuse_several_elements(float, self.type)
        needs_value("float()", "Remove float(): the value is already a number.", self.node)
        value = float(self.numpy())
        numbers_taken.note(self.node, value)
        return value

    def __complex__(self) -> complex:
        refuse_several_elements(complex, self.type)
        needs_value("complex()", node=self.node)
        return complex(self.numpy())

    def __int__(self) -> int:
        known = static_int(self.node)
        if known is not None:
            return known
        refuse_several_elements(int, self.type)
        needs_value("int()", "Use .astype(int), which stays in the graph.")
        return int(self.numpy())

    def __index__(self) -> int:
        known = static_int(self.node)
        if known is not None:
            return known
        refuse_several_elements(operator.index, self.type)
        operator.index(zero_like(self.type))  # not for an integer, for which no value is needed
        needs_value("an index or a size that depends on data", "Compute it in an earlier cell.")
        value = self.numpy()
        return operator.index(np.asarray(value)[()] if self.type.form == "scalar" else value)

    def __bool__(self) -> bool:
        known = static_value(self.node)
        if known is not None:
            return bool(known)
        refuse_several_elements(bool, self.type)
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

    @property
    def _class(self) -> str:
        """Return the name of the class that it stands for, for errors."""
        return {"array": "numpy.ndarray", "scalar": f"numpy.{self.dtype}", "python": str(self.type)}[self.type.form]

    @property
    def _number(self) -> type:
        """Return the class of the number that it stands for."""
        return python_kind(self.type) if self.type.form == "python" else self.dtype.type

    def _method_of_number(self, name: str) -> Callable[..., Any]:
        """Return a method that numbers have and arrays have not: it computes the number, when it is called."""

        def method(*args: Any) -> Any:
            unknown = context.current() is not None and not values_are_there()
            if unknown and name == "is_integer" and not args and self.dtype.kind == "f":
                number: Any = self
                whole = number % 1 == 0  # nan if infinite
                return type(self)(Place(Buffer(to_form(whole.node, "python"))))
            needs_value(f".{name}() of a number", node=self.node)
            return getattr(self._number(self.item()), name)(*args)

        return method

    def _part_of_number(self, name: str) -> Any:
        """An attribute that numbers have and arrays have not."""
        needs_value(f".{name} of a number", node=self.node)
        return getattr(self._number(self.item()), name)

    def specialised(self) -> Any:
        """Return the Python number that sizes make this, and record it as fixed, where code is captured without values; else None."""
        capture = context.current()
        if capture is None or not capture.abstract or self.type.form != "python":
            return None
        known = static_value(self.node)
        return None if known is None else python_kind(self.type)(known)

    def __str__(self) -> str:
        known = self.specialised()
        if known is not None:
            return str(known)
        abstract(AS_TEXT)
        return str(self.numpy())

    def __format__(self, spec: str) -> str:
        known = self.specialised()
        if known is not None:
            return format(known, spec)
        abstract(AS_TEXT)
        return format(self.numpy(), spec)

    def __repr__(self) -> str:
        known = self.specialised()
        if known is not None:
            return repr(known)
        abstract(AS_TEXT)
        return describe(self, asked=usercode.cell_asks(inspect.currentframe()))

    def __round__(self, digits: int | None = None) -> Any:
        needs_value("round()", "Use np.round, which stays in the graph.")
        return round(self.numpy(), digits) if digits is not None else round(self.numpy())

    def __trunc__(self) -> int:
        needs_value("math.trunc()", "Use np.trunc, which stays in the graph.")
        return math.trunc(self.item())
