"""Tapes as values of programs: arrays whose length differs from iteration to iteration, and lists of data-dependent length.

The first are tapes with one entry, at 0; in the second, entry k is element k.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tensormagic.ir.errors import DTypeError, ShapeError
from tensormagic.ir.node import Node, make
from tensormagic.ir.operation import Bounds
from tensormagic.ir.size import Size
from tensormagic.ir.type import Type, python
from tensormagic.ops.leaf import constant, size_of
from tensormagic.ops.move import lead, transpose
from tensormagic.ops.op import Op, Tangent, Value
from tensormagic.ops.reverse.tape import RECORD, Tape, empty_tape, index_text, is_tape, read_tape, record, tape_type


def _tape_of(args: Sequence[Node]) -> Node:
    if not is_tape(args[0]):
        raise DTypeError(f"{args[0].type} is no tape")
    return args[0]


@dataclass(frozen=True, eq=False, kw_only=True)
class Extent(Op):
    """``(tape, index)``: the length of an axis of the entry there; 0 if there is none."""

    kind = "opaque"
    any_dtype = True

    def infer(self, args: tuple[Node, ...], params: Mapping[str, Any]) -> Type:
        _tape_of(args)
        return python(int)

    def evaluate(self, node: Node, values: Sequence[Value], size: Callable[[Size], int]) -> Value:
        return values[0].extent(int(values[1]), node["axis"])

    def expression(self, node: Node, given: Sequence[str], scope: Any) -> str | None:
        index = index_text(node.args[1], given[1])
        return None if index is None else f"{given[0]}.extent({index}, {node['axis']})"

    def jvp(self, node: Node, tangents: Sequence[Tangent]) -> Tangent:
        return None

    def batch(self, node: Node, args: Sequence[Node], batched: Sequence[bool], size: Size) -> Node:
        raise ShapeError(
            "an array whose length differs from iteration to iteration may be of another length for each element of a batch",
            "Work on arrays of one size, with np.where to ignore the others; or call the function in a loop.",
        )

    def bounds(self, node: Node) -> Bounds:
        return 0, None


EXTENT = Extent(name="extent", doc="The length of an axis of an entry of a tape.")


_NUMBERS = (bool, int, float, complex, np.generic)


@dataclass(frozen=True, eq=False, kw_only=True)
class Stacked(Op):
    """The first ``params["shape"][0]`` entries of a tape as one array."""

    kind = "opaque"
    any_dtype = True

    def infer(self, args: tuple[Node, ...], params: Mapping[str, Any]) -> Type:
        return Type(_tape_of(args).type.dtype, params["shape"])

    def evaluate(self, node: Node, values: Sequence[Value], size: Callable[[Size], int]) -> Value:
        count, *shape = (size(s) for s in node["shape"])
        entries = values[0].entries[:count]
        if not shape and len(entries) == count and all(issubclass(t, _NUMBERS) for t in set(map(type, entries))):
            return np.array(entries, node.type.dtype)
        result = np.zeros((count, *shape), node.type.dtype)
        for k in range(count):
            result[k] = values[0].array(k, tuple(shape), node.type.dtype)
        return result

    def jvp(self, node: Node, tangents: Sequence[Tangent]) -> Tangent:
        return None if tangents[0] is None else make(self, (tangents[0],), **node.params)

    def transpose(self, node: Node, cotangent: Node, linear: Sequence[bool]) -> Sequence[Tangent]:
        del linear
        return (unstack_tape(cotangent),)

    def batch(self, node: Node, args: Sequence[Node], batched: Sequence[bool], size: Size) -> Node:
        count, *shape = node["shape"]
        stack = make(self, (lead(args[0], batched[0], size),), shape=(count, size, *shape))
        return transpose(stack, (1, 0, *range(2, stack.type.ndim)))


STACK_TAPE = Stacked(name="stack_tape", doc="The entries of a tape as one array.")


@dataclass(frozen=True, eq=False, kw_only=True)
class Unstacked(Op):
    """A tape whose entries are the rows of an array."""

    kind = "opaque"
    any_dtype = True

    def infer(self, args: tuple[Node, ...], params: Mapping[str, Any]) -> Type:
        return tape_type(args[0].type)

    def evaluate(self, node: Node, values: Sequence[Value], size: Callable[[Size], int]) -> Value:
        return Tape([row.copy() for row in values[0]])

    def jvp(self, node: Node, tangents: Sequence[Tangent]) -> Tangent:
        return None if tangents[0] is None else make(self, (tangents[0],))

    def transpose(self, node: Node, cotangent: Node, linear: Sequence[bool]) -> Sequence[Tangent]:
        del linear
        return (make(STACK_TAPE, (cotangent,), shape=node.args[0].type.shape),)

    def batch(self, node: Node, args: Sequence[Node], batched: Sequence[bool], size: Size) -> Node:
        array = lead(args[0], batched[0], size)
        return make(self, (transpose(array, (1, 0, *range(2, array.type.ndim))),))


UNSTACK_TAPE = Unstacked(name="unstack_tape", doc="A tape whose entries are the rows of an array.")


def stack_tape(tape: Node, count: Size, t: Type) -> Node:
    """Return the first ``count`` entries of a tape, each of type ``t``, as one array."""
    if tape.op is UNSTACK_TAPE and tape.args[0].type.shape[0] == count:
        return tape.args[0]
    return make(STACK_TAPE, (tape,), shape=(count, *t.shape))


def unstack_tape(array: Node) -> Node:
    """Return a tape whose entries are the rows of ``array``."""
    return make(UNSTACK_TAPE, (array,))


# one array whose length differs ---------------------------------------------------------------------------------------


def boxed(array: Node) -> Node:
    """Return a tape that holds one array."""
    return record(empty_tape(array.type), constant(0), array)


def unboxed(tape: Node, t: Type, axes: Sequence[int], known: Mapping[int, Size] | None = None) -> Node:
    """Return the array that a tape holds, of type ``t``; the lengths of ``axes`` are ``known`` or read from the tape."""
    zero = constant(0)
    if tape.op is RECORD and size_of(tape.args[1]) == 0:
        return tape.args[2]
    shape = list(t.shape)
    for axis in axes:
        length = (known or {}).get(axis)
        shape[axis] = size_of(make(EXTENT, (tape, zero), axis=axis)) or 0 if length is None else length
    return read_tape(tape, zero, Type(t.dtype, tuple(shape), t.form))
