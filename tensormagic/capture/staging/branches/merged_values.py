"""Merges values that control flow leaves: parts of containers, names that may be unbound, arrays that may share memory."""

from __future__ import annotations

import dis
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tensormagic.capture import context
from tensormagic.capture.numbers.deferred import Deferred
from tensormagic.capture.python.bytecode import binds, within
from tensormagic.capture.python.usercode import span_at
from tensormagic.capture.staging.branches.slots import INTERNAL, UNBOUND
from tensormagic.capture.staging.trials.attributes import is_users_class
from tensormagic.capture.staging.trials.needs_python import NeedsPython
from tensormagic.capture.stores.alias import GIVEN
from tensormagic.capture.stores.place import Buffer, Place
from tensormagic.capture.tree import flatten, structure
from tensormagic.capture.values.operands import node_of
from tensormagic.capture.values.value import Tensor
from tensormagic.ir.node import Node, rebuild
from tensormagic.ops.effects.checks import REQUIRE, require
from tensormagic.ops.leaf import constant


class Partial(Tensor):
    """Represents a value that exists only if ``defined`` is true; its use is an error otherwise, when the graph runs."""

    __slots__ = ("defined", "raw")

    def __init__(self, raw: Node, defined: Node, name: str, why: str) -> None:
        message = f"{name} is not bound here: {why}"
        super().__init__(_CheckedPlace(_CheckedBuffer(require(raw, defined, message, "name"), name=name, alias=GIVEN)))
        self.raw = raw
        self.defined = defined

    @property
    def stored(self) -> bool:
        """Return whether something may have been stored into it."""
        return isinstance(self.place, _CheckedPlace) and bool(self.place.stored)

    @property
    def handed_back(self) -> Node:
        """Return the value of a name at the end of a cell; unconditional once code that always runs has stored into it."""
        node = self.node
        return (
            node
            if isinstance(self.place, _CheckedPlace) and True in self.place.stored
            else ExistenceCheck.of(node).unasked(node)
        )


@dataclass(frozen=True, eq=False)
class _CheckedPlace(Place):
    """The place of a value that may not exist, with the stores into it: whether each is made by code that always runs."""

    stored: list[bool] = field(default_factory=list[bool])

    def write(self, node: Node) -> None:
        """Store a new value; record whether the code that does it always runs."""
        super().write(node)
        capture = context.current()
        self.stored.append(capture is not None and not capture.heap.trials)


@dataclass(frozen=True)
class ExistenceCheck:
    """Represents the check that the value of an array exists: made where it is used, not where code begins that may use it."""

    node: Node | None

    @classmethod
    def of(cls, node: Node) -> ExistenceCheck:
        """Return the check in front of a value; one without a node if it surely exists."""
        return cls(node if node.op is REQUIRE and node["error"] == "name" else None)

    def asked(self, node: Node) -> Node:
        """Return a value with the check in front of it."""
        if self.node is None or self.unasked(node) is not node:
            return node
        return rebuild(self.node, [node, self.node.args[1]])

    def unasked(self, node: Node) -> Node:
        """Return a value without the check in front of it."""
        asks = self.node is not None and node.op is REQUIRE and node.args[1] is self.node.args[1]
        return node.args[0] if asks else node


NONE = ExistenceCheck(None)


class _CheckedBuffer(Buffer):
    """The memory of a value that may not exist: everything stored there is checked."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self._question = ExistenceCheck.of(self.node)

    @property
    def bare(self) -> Node:
        """Return the value without the check."""
        return self._question.unasked(self.node)

    def asked(self, node: Node) -> Node:
        """Return a value with the check in front of it."""
        return self._question.asked(node)

    def store(self, node: Node) -> None:
        """Replace the value."""
        super().store(node)
        self.put(self.asked(self.node))


def is_number(value: Any) -> bool:
    """Return whether a value is one that a region can hold."""
    if isinstance(value, Tensor):
        return True
    if type(value) is int:
        return -(2**63) <= value < 2**63
    if isinstance(value, np.ndarray | np.generic):
        return value.dtype.kind in "biufc" and value.dtype.itemsize <= 16
    return type(value) in {bool, float, complex}


@dataclass(frozen=True)
class Parts:
    """Represents a value split into its numbers and arrays, and the structure that holds them.

    Parameters
    ----------
    nodes
        The nodes of its numbers and arrays, in order.
    defined
        For each, the condition under which it exists; None for always.
    form
        What values of the same structure have in common: containers, and everything that is no number.
    build
        Rebuilds such a value from lazy arrays.
    """

    nodes: tuple[Node, ...]
    defined: tuple[Node | None, ...]
    form: Any
    build: Callable[[Sequence[Any]], Any]

    @property
    def numeric(self) -> bool:
        """Return whether there is a number or an array in it."""
        return bool(self.nodes)


class _Fixed:
    """Represents a value that is no number, compared as Python compares it."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, _Fixed):
            return False
        if self.value is other.value:
            return True
        plain = (str, bytes, int, range, slice, np.dtype)
        return isinstance(self.value, plain) and type(self.value) is type(other.value) and self.value == other.value

    __hash__ = None  # type: ignore[assignment]


def apart(value: Any, *, asked: bool = False) -> Parts:
    """Split a value into parts; where ``asked``, names that may be unbound are checked here, as in Python, and not where they are used."""
    leaves, build = flatten(value)
    marks = [is_number(v) for v in leaves]
    fixed = [None if m else _Fixed(v) for v, m in zip(leaves, marks, strict=True)]
    numbers = [v for v, m in zip(leaves, marks, strict=True) if m]

    def again(given: Sequence[Any]) -> Any:
        numbers: Iterator[Any] = iter(given)
        return build(iter([next(numbers) if m else v for v, m in zip(leaves, marks, strict=True)]))

    raws = [
        ExistenceCheck.of(n).unasked(n) if isinstance(v, Partial) and not asked else n
        for v, n in zip(numbers, map(node_of, numbers), strict=True)
    ]
    defined = [v.defined if isinstance(v, Partial) and not asked else None for v in numbers]
    return Parts(tuple(raws), tuple(defined), (structure(value), fixed), again)


def same_value(left: Any, right: Any) -> bool:
    """Return whether ``left`` and ``right`` are the same object, or equal constants, so that no code can tell them apart."""
    if left is right:
        return True
    if isinstance(left, bool | int | float | complex | str) and type(left) is type(right):
        return left == right and repr(left) == repr(right)
    return False


def both(first: Node | None, second: Node | None, choose: Callable[[Node, Node], Node]) -> Node | None:
    """Return the condition that ``choose`` makes of two, where None means always true; None for two of these."""
    if first is None and second is None:
        return None
    true = constant(True)
    return choose(true if first is None else first, true if second is None else second)


def result(node: Node, defined: Node | None, name: str, why: str) -> Tensor:
    """Return the lazy array for the value that a region gives to a name."""
    return Tensor(Place(Buffer(node, name=name, alias=GIVEN))) if defined is None else Partial(node, defined, name, why)


def unlike(name: str, what: str, values: Sequence[Any], lines: Sequence[str] = ("", "")) -> NeedsPython:
    """Return the error for two values that no region can return, with the lines at which a name was bound to each."""
    counts = [len(v) if isinstance(v, tuple | list) else None for v in values]
    differ = None not in counts and counts[0] != counts[1]
    told = [f"{n} value{'s' * (n != 1)}" if differ else describe(v) for n, v in zip(counts, values, strict=True)]
    first, second = (f"{t} ({line})" if line else t for t, line in zip(told, lines, strict=True))
    whose = "back" if name.startswith(INTERNAL) else name
    advice = "Let both give the same number of values." if differ else "Let both be numbers or arrays of the same kind."
    if is_users_class(kind := type(values[0])) and type(values[1]) is kind:
        advice = f"Make the {kind.__name__} after the branch, of numbers that both give; or make it a dataclass of its attributes."
    return NeedsPython(f"{what} {whose} {first} and {second}", advice)


def bound_at(function: Any, name: str) -> str:
    """Return the last line at which a function of staged code binds ``name``; empty if it does not."""
    found, whole = "", getattr(function, "__code__", None)
    for code in () if whole is None else within(whole):
        for step in dis.get_instructions(code):
            if name in binds(step) and step.positions and step.positions.lineno:
                found = str(span_at(code, step.offset, step.positions.lineno))
    return found


def describe(value: Any) -> str:
    """Return a value's description in a few words."""
    if value is UNBOUND:
        return "no value"
    if isinstance(value, Tensor):
        return str(value.type)
    if is_users_class(type(value)):
        return f"an object of {type(value).__name__}"
    if callable(value):
        return f"the function {getattr(value, '__name__', type(value).__name__)}"
    if isinstance(value, tuple | list) and len(value) <= 4:
        return f"({', '.join(map(describe, value))})"
    if isinstance(value, Deferred):
        return "a value that depends on data"
    text = repr(value)
    return text if len(text) < 40 else type(value).__name__
