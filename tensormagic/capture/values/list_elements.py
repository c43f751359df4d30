"""Elements that a rolled loop has appended to a list; each knows the array that holds them all."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from tensormagic.capture.errors.refusal import abstract
from tensormagic.capture.hooks import hooks
from tensormagic.capture.numbers import classes as number_classes
from tensormagic.capture.numbers import numbers_taken
from tensormagic.capture.numbers.classes import Classes, of_class
from tensormagic.capture.stores.place import Buffer, Place
from tensormagic.capture.values.live_values import hold
from tensormagic.capture.values.value import Tensor, wrap
from tensormagic.ir.node import Node
from tensormagic.ir.type import Form, Type
from tensormagic.ops.form import to_form
from tensormagic.ops.move import reshape, slice_
from tensormagic.ops.pointwise import astype
from tensormagic.ops.update import set_at


class Element(Tensor):
    """Represents one value appended in a loop: a slice of an array with an axis for the iterations."""

    __slots__ = ("number", "stack")
    _held_unread = False  # there may be thousands, and none of them is read

    def __init__(self, stack: Stack, number: int) -> None:
        self.stack = stack
        self.number = number
        super().__init__(stack.place.view(self._of, self._into, lambda x: x[number]))

    def numpy(self) -> Any:
        abstract("it is used here as a number of Python")
        with self.leveled():
            found = self.stack.number_there(self.number)
        return super().numpy() if found is None else found

    def _part(self, node: Node) -> Any:
        return ((self.number, 1, 1), *((0, s, 1) for s in node.type.shape[1:]))

    def _of(self, node: Node) -> Node:
        hold(self)
        part = reshape(slice_(node, self._part(node)), node.type.shape[1:])
        return part if part.type.shape else self.stack.number(part, self.number)

    def _into(self, old: Node, new: Node) -> Node:
        return set_at(old, reshape(new, (1, *old.type.shape[1:])), self._part(old))


class Stack:
    """Represents the array of the values appended in a loop, one per iteration, in their original form.

    Parameters
    ----------
    node
        The array.
    form
        The form of a value.
    count
        The number of values.
    classes
        The possible classes of numbers, if there are several, with an array of their codes.
    types
        The type of each value, if values are known.
    row
        If the array is a row of one that holds a list per iteration: that array, and the row.
    """

    def __init__(
        self,
        node: Node,
        form: Form,
        count: int,
        classes: Classes | None = None,
        types: Sequence[Type] = (),
        row: Row | None = None,
    ) -> None:
        self.place = Place(Buffer(node))
        self.row = row
        self.form: Form = form
        self.classes = classes
        self.types = types
        self.elements = [Element(self, k) for k in range(count)]
        hold(self)

    @property
    def node(self) -> Node:
        """Return the array's current node."""
        return self.place.buffer.node

    @property
    def array(self) -> Node:
        """Return the array that NumPy makes of them."""
        node = self.place.buffer.node
        if self.types:
            return astype(node, np.result_type(*(t.dtype for t in self.types)))
        return node if self.classes is None else number_classes.of_array(node, [self.classes])

    def rows(self, start: int, stop: int) -> Node | None:
        """Return NumPy's array of a range of the values; None if these are numbers of several classes."""
        if (self.classes is not None and not self.types) or len(set(self.types[start:stop])) > 1:
            return None
        node = self.place.buffer.node
        rows = slice_(node, ((start, stop - start, 1), *((0, s, 1) for s in node.type.shape[1:])))
        return astype(rows, self.types[start].dtype) if self.types else rows

    def number_there(self, index: int) -> Any:
        """Return the number at an index, if the array is computed and the number's class is known; else None."""
        node = self.place.buffer.node
        if self.form == "array" or (self.classes is not None and not self.types) or not hooks.is_computed(node):
            return None
        value = hooks.compute([node])[0]
        numbers_taken.note_array(node, value[index])
        found = value.item(index) if self.form == "python" else value[index]
        return of_class(found, self.types[index]) if self.types else found

    def number(self, part: Node, index: Any) -> Node:
        """Return the number at an index, with its class."""
        found = to_form(part, self.form)
        if self.types and isinstance(index, int):
            return number_classes.as_class(found, self.types[index])
        if self.classes is None:
            return found
        code = to_form(wrap(self.classes.code)[index].node, "python")
        return number_classes.from_among(found, Classes(code, self.classes.types))


class Row(NamedTuple):
    """Represents a row of an array of appended values."""

    of: Stack
    number: int


@dataclass(frozen=True)
class Twins:
    """Records what a list of data-dependent length, and arrays in it, may be identical to.

    Parameters
    ----------
    own, elements
        Marks: of the list, and of the one that its elements were appended to.
    said
        A description of what else an array in it may be in Python; None if only the list has it.
    """

    own: int = 0
    elements: int = 0
    said: str | None = None


NONE = Twins()


class Outgrown:
    """Represents a function's list whose length is known only when the graph runs.

    Parameters
    ----------
    stacks
        For each number in an element, the array of all of them.
    forms
        Their forms in an element.
    build
        Builds an element from its numbers.
    classes
        For numbers of several classes: the stack (after the others) with their codes, and the possible classes.
    twins
        What it, and arrays in it, may be identical to.
    """

    def __init__(
        self,
        stacks: Sequence[Any],
        forms: Sequence[Form],
        build: Callable[[Sequence[Any]], Any],
        classes: Mapping[int, tuple[int, Sequence[Type]]] = MappingProxyType({}),
        twins: Twins = NONE,
    ) -> None:
        self.stacks = stacks
        self.forms = forms
        self.build = build
        self.classes = classes
        self.twins = twins

    @property
    def has_arrays(self) -> bool:
        """Return whether some of its elements are arrays."""
        return "array" in self.forms

    def listed(self, stacks: Sequence[Any]) -> Any:
        """Return the list, if the arrays are given; else an :class:`Outgrown` over other stacks."""
        if not all(isinstance(s, np.ndarray) for s in stacks):
            return Outgrown(stacks, self.forms, self.build, self.classes, self.twins)
        columns = [s.tolist() if f == "python" else [*s] for s, f in zip(stacks, self.forms, strict=False)]
        for k, (codes, types) in self.classes.items():
            columns[k] = [of_class(v, types[int(code)]) for v, code in zip(columns[k], stacks[codes], strict=True)]
        return [self.build(parts) for parts in zip(*columns, strict=True)]


def rows_of(values: Any) -> Node | None:
    """Return the elements of a list as one array, if one loop has made all of them; None for other lists."""
    if hasattr(values, "stacks"):  # its length is known only when the graph runs
        return values.rows
    stack = _stack_of(values)
    return None if stack is None else stack.place.buffer.node


def stacked(values: Any) -> Node | None:
    """Return the array that NumPy makes of a list made by one loop; None for other lists."""
    if hasattr(values, "stacks"):
        return values.lazy.node
    stack = _stack_of(values)
    return None if stack is None else stack.array


def numbers_in(values: Any) -> Stack | None:
    """Return the array of a list that one loop has made of numbers of one class; None for any other value."""
    stack = _stack_of(values) if type(values) is list else None
    if stack is None or stack.form == "array" or stack.classes is not None or stack.types or len(values) == 1:
        return None
    return stack


def list_of(row: Element, form: Form, count: int) -> list[Element]:
    """Return a list of the numbers in a row of an array of appended values."""
    return [*Stack(row.node, form, count, row=Row(row.stack, row.number)).elements]


def array_of_lists(values: Any) -> Node | None:
    """Return the array of all lists made in one loop; None for other lists."""
    rows = [numbers_in(v) for v in values] if isinstance(values, list | tuple) else []
    first = rows[0].row if rows and rows[0] is not None else None
    if first is None or len(first.of.elements) != len(rows):
        return None
    whole = all(s is not None and s.row is not None and s.row == (first.of, k) for k, s in enumerate(rows))
    return first.of.place.buffer.node if whole else None


def runs_of(values: Sequence[Any]) -> list[tuple[Node | None, Sequence[Any]]]:
    """Return the items of a list in runs: consecutive elements of one loop together, with the array whose rows they are."""
    found = list[tuple[Node | None, Sequence[Any]]]()
    k = 0
    while k < len(values):
        first, start = values[k], k
        k += 1
        if isinstance(first, Element):
            following = first.stack.elements[first.number + 1 :]
            k += next(
                (n for n, e in enumerate(following) if k + n == len(values) or values[k + n] is not e), len(following)
            )
        rows = first.stack.rows(first.number, first.number + k - start) if k - start > 1 else None
        found.append((rows, values[start:k]))
    return found


def _stack_of(values: Any) -> Stack | None:
    if not isinstance(values, list | tuple) or not values or not isinstance(values[0], Element):
        return None
    stack = values[0].stack
    own: Sequence[Element] = stack.elements
    return stack if len(values) == len(own) and all(a is b for a, b in zip(values, own, strict=True)) else None
