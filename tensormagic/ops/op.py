"""The base class of the ops of the registry: an op is a record, whose kind implements its type, value, derivative and loop code."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tensormagic.ir.node import Node
from tensormagic.ir.operation import Bounds, Operation
from tensormagic.ir.size import is_at_least
from tensormagic.ir.type import Size, Type
from tensormagic.ops.rows import Axes, Found, Mixed

Value = Any  # values of NumPy evaluation: arrays, NumPy scalars, Python numbers, tuples of these
Tangent = Node | None  # None stands for zero

CHEAP = 3  # the weight up to which a value is recomputed rather than stored
registry: dict[str, Op] = {}
AWAY: set[type] = set()  # classes of arrays on devices: those without axes stay there, whatever the form of the value


@dataclass(frozen=True, eq=False, kw_only=True)
class Op(Operation):
    """One operation of the registry. A subclass is a *kind*, which implements the methods for all of its ops."""

    kind = "op"

    def __post_init__(self) -> None:
        if self.name in registry:
            known = registry[self.name]
            message = f"there is an op {self.name!r} already, of the kind {known.kind}: {known.doc}"
            raise ValueError(message)
        registry[self.name] = self

    def split(self, node: Node, axes: Axes, rows: Size) -> Found:
        raise Mixed("has no rule for rows that are split")


@dataclass(frozen=True, eq=False, kw_only=True)
class Leaf(Op):
    """Ops without operands: parameters, inputs, constants, sizes."""

    kind = "leaf"
    any_dtype = True
    value: Callable[[Node, Callable[[Size], int]], Value] | None = field(default=None, repr=False)
    text: Callable[[Any], str] | None = field(default=None, repr=False)
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
        if self.text is not None:
            return self.text(scope)
        return scope.size(node["size"]) if "size" in node.params and node.type.form == "python" else None

    def bounds(self, node: Node) -> Bounds:
        low, high = node.params.get("within") or (None, None)
        return low, None if high is None else high - 1


def is_cheap(op: Operation) -> bool:
    """Return whether an element-wise function costs no more than reading its operand again."""
    return op.kind == "pointwise" and 0 < op.weight <= CHEAP


def has_negative_size(node: Node) -> bool:
    """Return whether a size of the result may be negative for some data."""
    return not all(is_at_least(s, 0) for s in node.type.shape)


def plainly(node: Node) -> str:
    """Return what messages call the op, if a user would not know its name; else empty."""
    return node.op.plainly


def as_form(value: Value, form: str) -> Value:
    """Return a rank-0 value as array, NumPy scalar or Python number; tapes and values on a device stay as they are."""
    if form == "tape" or type(value) in AWAY:
        return value
    if form == "array":
        return np.asarray(value)
    array = np.asarray(value)
    return array.item() if form == "python" else array[()]
