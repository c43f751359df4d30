"""What an op is: a record that answers, through its kind, what its type, value, derivative and loop code are."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from tensormagic.ir.errors import DifferentiationError
from tensormagic.ir.node import Bounds, Node
from tensormagic.ir.size import is_at_least
from tensormagic.ir.type import Size, Type
from tensormagic.ops.rows import Axes, Found, Mixed

Value = Any  # what NumPy evaluation passes around: arrays, NumPy scalars, Python numbers, tuples of these
Tangent = Node | None  # None is a zero
Guard = tuple[Size, str, Size]  # left, "==" or ">=", right

CHEAP = 3  # the weight of what is computed again rather than stored
registry: dict[str, Op] = {}
AWAY: set[type] = set()  # the classes of arrays on devices: without axes they stay there, whatever form the value has


@dataclass(frozen=True, eq=False, kw_only=True)
class Op:
    """One operation. A subclass is a *kind*: it answers every question for all of its ops.

    Parameters
    ----------
    name
        NumPy's name, where NumPy has one.
    doc
        One line for the reference.
    plainly
        What messages call it, where a user would not know the name.
    edges
        Operand values that the generated tests try beside random ones.
    picks
        Whether every element of the result is one of an operand, its sign aside: nothing is rounded.
    hands_on
        Whether the result is the first operand as it is, perhaps stretched, in another form or checked: rules look through it.
    not_negative
        Whether no element of the result is below 0: it may be nan, and integers may wrap around.
    keeps_sign
        Whether no element of the result is below 0 where none of any operand is, integers that wrap around aside.
    factors
        Whether the result is off, as a part of itself, by no more than its operands are together: products, quotients and roots.
    steep
        Whether the slope may be infinite, or have no bound.
    sequential
        Whether each step of its loop needs the one before.
    joins
        The name of the ufunc that puts two results, or what is stored and what was there, together; empty where none does.
    weight
        What one application costs, in the time of half an addition; 0: what its kind costs (:mod:`tensormagic.ir.cost`).
    raises
        Whether it raises for some values when the graph runs; of an op that does so for some of its nodes, whether for a node.
    each
        About how many picoseconds NumPy takes for an element that is read or made, on one core.
    """

    name: str
    doc: str = ""
    plainly: str = ""
    edges: tuple[Any, ...] = ()
    picks: bool = False
    hands_on: bool = False
    not_negative: bool = False
    keeps_sign: bool = False
    factors: bool = False
    steep: bool = False
    sequential: bool = False
    joins: str = ""
    weight: int = field(default=0, repr=False)
    raises: bool | Callable[[Node], bool] = field(default=False, repr=False)
    each: int = field(default=500, repr=False)
    kind: ClassVar[str] = "op"

    def __post_init__(self) -> None:
        if self.name in registry:
            message = f"there is an op {self.name!r} already"
            raise ValueError(message)
        registry[self.name] = self

    def __repr__(self) -> str:
        return f"<{self.kind} {self.name}>"

    def infer(self, args: tuple[Node, ...], params: Mapping[str, Any]) -> Type | tuple[Type, ...]:
        """The type of the result; raises where the operands do not fit."""
        raise NotImplementedError

    def evaluate(self, node: Node, values: Sequence[Value], size: Callable[[Size], int]) -> Value:
        """The value by NumPy, with ``size`` giving the number that a symbolic size is."""
        raise NotImplementedError

    def expression(self, node: Node, given: Sequence[str], scope: Any) -> str | None:
        """The value as a Python expression over the names of the operands, as quick as NumPy is; None where it is evaluated.

        ``scope`` (:class:`tensormagic.ops.loop_text.Scope`) knows sizes, and names objects.
        """
        return None

    def is_aside(self, node: Node, scope: Any) -> bool:
        """Whether what reads the value does by itself, from the first operand, what this op would do."""
        return False

    def jvp(self, node: Node, tangents: Sequence[Tangent]) -> Tangent | tuple[Tangent, ...]:
        """The tangent of the result, linear in ``tangents``."""
        message = f"{self.name} has no derivative"
        raise DifferentiationError(message)

    def transpose(self, node: Node, cotangent: Node, linear: Sequence[bool]) -> Sequence[Tangent]:
        """The cotangents of the operands marked in ``linear``, for an op that is linear in these."""
        message = f"{self.name} is not linear: it has no transpose"
        raise DifferentiationError(message)

    def batch(self, node: Node, args: Sequence[Node], batched: Sequence[bool], size: Size) -> Node:
        """The node for a stack: ``args`` marked in ``batched`` have a new leading axis of ``size``, and so do the results."""
        message = f"{self.name} has no rule for batches"
        raise NotImplementedError(message)

    def split(self, node: Node, axes: Axes, rows: Size) -> Found:
        """Where a batch of ``rows`` is in the result, whose operands have it along ``axes``: see :mod:`tensormagic.ops.rows`."""
        raise Mixed("has no rule for rows that are split")

    def may_raise(self, node: Node) -> bool:
        """Whether it may raise when the graph runs, whatever :meth:`guards` say of sizes."""
        return self.raises(node) if callable(self.raises) else self.raises

    def apart(self, node: Node) -> Node | tuple[Node, ...] | None:
        """The same value in ops that have a rule for rows that are split, where this one has none for it; None where there are none."""
        return self.expand(node)

    def guards(self, node: Node) -> list[Guard]:
        """What sizes must satisfy when the graph runs."""
        return []

    def effort(self, node: Node) -> Size:
        """About how many picoseconds one call of NumPy takes on one core, as a formula in sizes; 0 where Python does most of it."""
        total: Size = 0
        for t in (*node.types, *(t for a in node.args for t in a.types)):
            total = total + self.each * t.size
        return total

    def bounds(self, node: Node) -> Bounds:
        """The sizes between which the value of an integer lies, ends included; None for an end that is not known."""
        return None, None

    def expand(self, node: Node) -> Node | None:
        """The same value in simpler ops, for the planner; None for an op that is simple already."""
        return None


@dataclass(frozen=True, eq=False, kw_only=True)
class Leaf(Op):
    """Parameters, inputs, constants, sizes: what has no operands."""

    kind = "leaf"
    value: Callable[[Node, Callable[[Size], int]], Value] | None = field(default=None, repr=False)
    split_rows: Callable[[Node, Axes, Size], int] | None = field(default=None, repr=False)

    def infer(self, args: tuple[Node, ...], params: Mapping[str, Any]) -> Type:
        message = f"the type of a {self.name} has to be given"
        raise TypeError(message)

    def evaluate(self, node: Node, values: Sequence[Value], size: Callable[[Size], int]) -> Value:
        if self.value is None:
            message = f"a {self.name} has no value of its own"
            raise TypeError(message)
        return self.value(node, size)

    def jvp(self, node: Node, tangents: Sequence[Tangent]) -> Tangent:
        return None

    def split(self, node: Node, axes: Axes, rows: Size) -> Found:
        return self.split_rows(node, axes, rows) if self.split_rows else super().split(node, axes, rows)

    def effort(self, node: Node) -> Size:
        return 0

    def expression(self, node: Node, given: Sequence[str], scope: Any) -> str | None:
        return scope.size(node["size"]) if "size" in node.params and node.type.form == "python" else None

    def bounds(self, node: Node) -> Bounds:
        low, high = node.params.get("within") or (None, None)
        return low, None if high is None else high - 1


def is_cheap(op: Any) -> bool:
    """Whether a function of elements costs no more than to read its operand again."""
    return op.kind == "pointwise" and 0 < op.weight <= CHEAP


def has_negative_size(node: Node) -> bool:
    """Whether a size of the result may be negative, for the data that it depends on."""
    return not all(is_at_least(s, 0) for s in node.type.shape)


def plainly(node: Node) -> str:
    """What messages call what a node does, where a user would not know the name of its op; empty elsewhere."""
    op: Any = node.op  # nodes know of their op only a name and types
    return op.plainly


def as_form(value: Value, form: str) -> Value:
    """A rank-0 value as array, NumPy scalar or Python number; a tape is one already, and on a device there is one form."""
    if form == "tape" or type(value) in AWAY:
        return value
    if form == "array":
        return np.asarray(value)
    array = np.asarray(value)
    return array.item() if form == "python" else array[()]
