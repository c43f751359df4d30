"""What a staged loop can iterate over without a known length: ranges of lazy numbers, rows of arrays, and iterators over these."""

from __future__ import annotations

import builtins
import operator
from collections.abc import Iterator
from typing import Any

from tensormagic.capture import context
from tensormagic.capture.errors.refusal import zero_like
from tensormagic.capture.library.creation import arange
from tensormagic.capture.limits import Pace
from tensormagic.capture.numbers.alternatives import OneOf
from tensormagic.capture.numbers.known_values import static_int
from tensormagic.capture.numbers.optional import sized
from tensormagic.capture.python.words import said
from tensormagic.capture.staging.calls import special_methods
from tensormagic.capture.staging.trials.needs_python import NeedsPython
from tensormagic.capture.staging.trials.trial import refuse_taken
from tensormagic.capture.tables.as_pandas import as_pythons
from tensormagic.capture.tree import OF_NUMBERS
from tensormagic.capture.values.equal_sizes import agreed_size
from tensormagic.capture.values.list_elements import Stack, rows_of
from tensormagic.capture.values.value import Tensor, as_size, extent, wrap
from tensormagic.ir.errors import DTypeError
from tensormagic.ir.size import Dim, Size, apply
from tensormagic.ops.effects.checks import require
from tensormagic.ops.form import to_form
from tensormagic.ops.leaf import constant, size_node
from tensormagic.ops.pointwise import astype
from tensormagic.ops.scalars import scalar


class Items:
    """Represents a sequence of values indexed by number, whose length may be lazy."""

    def count(self) -> Size:
        """Return the number of items."""
        raise NotImplementedError

    def at(self, index: Any) -> Any:
        """Return the item at ``index``, which may be lazy."""
        raise NotImplementedError

    def __len__(self) -> int:
        return int(extent(self.count()))

    def __iter__(self) -> Iterator[Any]:
        return (self.at(k) for k in builtins.range(len(self)))

    def __reversed__(self) -> Iterator[Any]:
        return (self.at(k) for k in builtins.reversed(builtins.range(len(self))))


class Range(Items):
    """Represents a ``range`` some of whose bounds are lazy."""

    def __init__(self, start: Any, stop: Any, step: Any) -> None:
        for value in (start, stop, step):
            if isinstance(value, Tensor):
                try:
                    operator.index(zero_like(value.type))
                except TypeError as error:
                    refused = DTypeError(str(error), "Convert it with astype(int).")
                    refused.numpys = str(error)
                    raise refused from None
        self.start, self.stop, self.step = map(counted, (start, stop, step))
        if not isinstance(as_size(step), int):
            self.step = int(step)
        if as_size(self.step) == 0:
            raise ValueError("range() arg 3 must not be zero")

    def count(self) -> Size:
        start, stop, step = as_size(self.start), as_size(self.stop), as_size(self.step)
        away = stop - start if _number(step) > 0 else start - stop
        each = abs(_number(step))
        return apply("max", away if each == 1 else apply("floordiv", away + (each - 1), each), 0)

    def at(self, index: Any) -> Any:
        start, step = as_size(self.start), as_size(self.step)
        found = start + _number(step) * as_size(index)
        return found if isinstance(found, int) else wrap(size_node(found))

    @property
    def lazy(self) -> Tensor:
        """Return the same numbers as an array, as NumPy converts a range used as an index or operand."""
        return arange(self.start, self.stop, self.step)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return builtins.range(int(self.start), int(self.stop), int(self.step))[index]
        return self.at(index if not isinstance(index, int) or index >= 0 else extent(self.count()) + index)


def counted(value: Any) -> Any:
    """Return an integer used as a count or an index in the form that Python takes: NumPy's becomes one of Python's."""
    if isinstance(value, Tensor) and value.type.form != "python":
        return wrap(size_node(as_size(value)))
    return value if isinstance(value, Tensor | Dim) else operator.index(value)


def _number(step: Size) -> int:
    if not isinstance(step, int):
        raise TypeError(step)
    return step


class Rows(Items):
    """Represents the rows of an array; numbers taken from a Series are Python's."""

    def __init__(self, array: Tensor, *, pythons: bool = False) -> None:
        self.array = array
        self.pythons = pythons

    def count(self) -> Size:
        return agreed_size(self.array.type.shape[0], self.array.node, self.array.place.buffer.first)

    def at(self, index: Any) -> Any:
        found = self.array[index]
        return as_pythons(found) if self.pythons else found


class First(Items):
    """Represents the first items of a sequence, as many as a number says, which it surely has."""

    def __init__(self, items: Items, number: int) -> None:
        self.items = items
        self.number = number

    def count(self) -> Size:
        return self.number

    def at(self, index: Any) -> Any:
        return self.items.at(index)


class After(Items):
    """Represents a sequence without its first items, of which there may be fewer."""

    def __init__(self, items: Items, taken: int) -> None:
        self.items = items
        self.taken = taken

    def count(self) -> Size:
        return apply("max", self.items.count() - self.taken, 0)

    def at(self, index: Any) -> Any:
        return self.items.at(index + self.taken)


class Rest(After):
    """Represents a sequence without its first item, which it surely has."""

    def __init__(self, items: Items) -> None:
        super().__init__(items, 1)

    def count(self) -> Size:
        return self.items.count() - 1


class Appended(Items):
    """Represents the elements of a list made by one loop, without some at the beginning."""

    def __init__(self, stack: Stack, start: int = 0) -> None:
        self.stack = stack
        self.start = start

    def count(self) -> Size:
        return len(self.stack.elements) - self.start

    def at(self, index: Any) -> Any:
        found = Tensor(self.stack.place)[index + self.start]
        return found if found.ndim else wrap(self.stack.number(found.node, index + self.start))


class LazyIterator:
    """Represents an iterator over such items, as ``zip`` and ``enumerate`` return; items taken from it are gone.

    Parameters
    ----------
    items
        What it iterates over.
    own_class
        Python's class.
    """

    def __init__(self, items: Items, own_class: type) -> None:
        self.items, self.own_class = items, own_class
        self.taken = 0
        self.ended = False
        self.pace = Pace()
        self.lost = ""  # the consumer that has taken an unknown number of values

    def __iter__(self) -> LazyIterator:
        return self

    def __next__(self) -> Any:
        refuse_taken(self)
        left, number = len(self.left()), self.taken
        if left == 0:
            raise StopIteration
        self.taken += 1
        return self.pace.element(context.current(), number, number + left, lambda: self.items.at(number))

    def left(self) -> Any:
        """Return the items that have not been taken."""
        if self.lost:
            raise NeedsPython(
                f"the position of the {self.own_class.__name__} object is not known after {self.lost}",
                "Make a list of it first, or a new one.",
            )
        if self.ended:
            return Range(0, 0, 1)
        return After(self.items, self.taken) if self.taken else self.items

    def used(self, *, early: bool = False) -> None:
        """Note that a loop has run over it: to its end, or perhaps not (``early``)."""
        if early:
            self.lost = "a loop that may end early"
        else:
            self.ended = True


def used(iterable: Any, *, early: bool = False) -> None:
    """Note that a loop has run over a value, if that is an iterator."""
    if isinstance(iterable, LazyIterator):
        iterable.used(early=early)


def items_of(value: Any) -> Items | None:
    """Return a value as items indexed by number; None if Python has to iterate over it."""
    if isinstance(value, Items):
        return value
    if isinstance(value, LazyIterator):
        return value.left()
    if isinstance(value, Tensor) and value.ndim:
        rows = value.gone_over
        return None if rows is None else Rows(rows, pythons=value.has_labels)
    if isinstance(value, list) and rows_of(value) is not None:
        return Appended(value[0].stack)
    if hasattr(value, "stacks"):
        return Grown(value, 0)
    if isinstance(value, range):
        return Range(value.start, value.stop, value.step)
    return None


def first_and_rest(values: Any, empty: str = "") -> tuple[Any, Items]:
    """Return the first element of a list that one loop has made, and the others.

    ``empty`` is the error to raise at run time if the list has no element for these data.
    """
    if isinstance(values, list | tuple):
        return values[0], Appended(values[0].stack, 1)
    if empty:
        there = require(constant(0), scalar.greater(size_node(values.size), 0), empty)
        return values.element(there), Grown(values, 1)
    return values[0], Grown(values, 1)


def none_and_all(values: Any) -> tuple[Any, Items]:
    """Return the initial value of a sum over such a list, and the items added."""
    if isinstance(values, list | tuple):
        return first_and_rest(values)
    return (0 if values.holds_numbers else values.zero), Grown(values, 0)


class Grown(Items):
    """Represents the elements of a list of data-dependent length, without some at the beginning."""

    def __init__(self, values: Any, start: int = 0) -> None:
        self.values = values
        self.start = start

    def count(self) -> Size:
        return apply("max", self.values.size - self.start, 0)

    def at(self, index: Any) -> Any:
        return self.values.element(size_node(as_size(index) + self.start))


def is_lazy(value: Any) -> bool:
    """Return whether Python itself cannot iterate over ``value`` without computing it."""
    return isinstance(value, Items | LazyIterator | Tensor) or hasattr(value, "stacks")


# Python's functions ---------------------------------------------------------------------------------------------------


def range_(*args: Any) -> Any:
    """Return what ``range`` gives."""
    if not any(isinstance(a, Tensor) for a in args) or not 1 <= len(args) <= 3:
        return range(*args)
    start, stop, step = (0, args[0], 1) if len(args) == 1 else (*args, 1) if len(args) == 2 else args
    return Range(start, stop, step)


OF_NUMBERS[Range] = range_


def _length(found: Any) -> Any:
    """Return the length that a special method gives, checked to be one."""
    whole = isinstance(found, Tensor) and not found.ndim and (found.type.form, found.dtype.kind) in _WHOLE
    if whole and static_int(found.node) is None:
        node = require(found.node, scalar.greater_equal(found.node, 0), _NEGATIVE)
        return wrap(to_form(astype(node, int), "python"))
    return len(_WithLength(found))


class _WithLength:
    """An object whose ``__len__`` returns a given value, so that Python checks it."""

    def __init__(self, length: Any) -> None:
        self.length = length

    def __len__(self) -> int:
        return self.length


_WHOLE = {(form, kind) for form in ("array", "scalar", "python") for kind in "iu"} | {("python", "b")}
_NEGATIVE = said(len, _WithLength(-1))


def len_(value: Any) -> Any:
    """Return what ``len`` gives: a size of a lazy array stays lazy."""
    if isinstance(value, OneOf):
        return value.mapped(len_)
    value = sized(value)
    if isinstance(value, Tensor) and value.ndim:
        return value.shape[0]
    if hasattr(value, "stacks"):  # a list of data-dependent length
        return value.count
    if (own := special_methods.method_of(value, "__len__")) is not None:
        return _length(own())
    return extent(value.count()) if isinstance(value, Items) else len(value)
