"""What a rolled loop has appended to a list: elements that know the array that holds them all."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tensormagic.capture.living import hold
from tensormagic.capture.stores.place import Buffer, Place
from tensormagic.capture.value import Tensor
from tensormagic.ir.node import Node
from tensormagic.ir.type import Form, Type
from tensormagic.ops.form import to_form
from tensormagic.ops.move import reshape, slice_
from tensormagic.ops.op import as_form
from tensormagic.ops.update import set_at


class Element(Tensor):
    """One of the values that the iterations of a loop have appended: a part of an array with an axis for the iterations."""

    __slots__ = ("number", "stack")
    _held_unread = False  # there may be thousands of which nobody reads any

    def __init__(self, stack: Stack, number: int) -> None:
        self.stack = stack
        self.number = number
        super().__init__(stack.place.view(self._of, self._into, lambda x: x[number]))

    def _part(self, node: Node) -> Any:
        return ((self.number, 1, 1), *((0, s, 1) for s in node.type.shape[1:]))

    def _of(self, node: Node) -> Node:
        hold(self)
        part = reshape(slice_(node, self._part(node)), node.type.shape[1:])
        return part if part.type.shape else to_form(part, self.stack.form)

    def _into(self, old: Node, new: Node) -> Node:
        return set_at(old, reshape(new, (1, *old.type.shape[1:])), self._part(old))


class Stack:
    """The array of what iterations have appended, one for each iteration, in the form that each was."""

    def __init__(self, node: Node, form: Form, count: int) -> None:
        self.place = Place(Buffer(node))
        self.form: Form = form
        self.elements = [Element(self, k) for k in range(count)]


class Outgrown:
    """What a function gives of a list whose length is known when the graph runs.

    Parameters
    ----------
    stacks
        For each number of an element, the array of them all.
    forms
        Their forms in an element.
    build
        Makes an element of its numbers.
    first
        The types that the numbers of the elements have that it begins with.
    """

    def __init__(
        self,
        stacks: Sequence[Any],
        forms: Sequence[Form],
        build: Callable[[Sequence[Any]], Any],
        first: Sequence[Sequence[Type]] = (),
    ) -> None:
        self.stacks = stacks
        self.forms = forms
        self.build = build
        self.first = first

    def listed(self, stacks: Sequence[Any]) -> Any:
        """The list, where the arrays are there; the same again of others where they are not."""
        if not all(isinstance(s, np.ndarray) for s in stacks):
            return Outgrown(stacks, self.forms, self.build, self.first)
        columns = [s.tolist() if f == "python" else list(s) for s, f in zip(stacks, self.forms, strict=True)]
        for k, types in enumerate(self.first):
            for column, t in zip(columns, types, strict=True):
                if not t.shape and t.form != "array":
                    column[k] = as_form(np.asarray(column[k]).astype(t.dtype), t.form)
        return [self.build(parts) for parts in zip(*columns, strict=True)]


def stacked(values: Any) -> Node | None:
    """The array of a list that holds the elements of one loop and nothing else; None for other lists."""
    if hasattr(values, "stacks"):  # its length is known when the graph runs
        return values.lazy.node
    if not isinstance(values, list | tuple) or not values or not isinstance(values[0], Element):
        return None
    stack = values[0].stack
    own: Sequence[Element] = stack.elements
    if len(values) != len(own) or any(a is not b for a, b in zip(values, own, strict=True)):
        return None
    return stack.place.buffer.node
