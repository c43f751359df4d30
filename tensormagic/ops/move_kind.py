"""The move kind: ops that change where elements are, not their values; and how shapes are broadcast and printed."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from tensormagic.ir.errors import AxisError, ShapeError
from tensormagic.ir.node import Node, make
from tensormagic.ir.operation import Guard
from tensormagic.ir.size import Size, hint, nodes_of, size_text
from tensormagic.ir.type import Type
from tensormagic.ops.op import Op, Tangent, Value, as_form
from tensormagic.ops.rows import Axes, Found

Shape = tuple[Size, ...]


class Index(NamedTuple):
    """One axis of an index map: ``variable * step + offset``; ``variable`` None is a constant index."""

    variable: str | None
    step: int = 1
    offset: Size = 0

    def through(self, start: Size, step: int) -> Index:
        """Return the same index in an array of which a slice begins at ``start`` with ``step``."""
        return Index(self.variable, self.step * step, self.offset * step + start)


@dataclass(frozen=True, eq=False, kw_only=True)
class Move(Op):
    """A move of one operand (``concatenate`` and ``gather`` have their own evaluation, and no index map)."""

    kind = "move"
    any_dtype = True
    shape: Callable[[tuple[Node, ...], Mapping[str, Any]], Shape] = field(repr=False)
    numpy: Callable[[Node, Sequence[Value], Callable[[Size], int]], Value] = field(repr=False)
    back: Callable[[Node, Node], Node] | None = field(default=None, repr=False)
    index: Callable[[Node, tuple[Index, ...]], tuple[Index, ...]] | None = field(default=None, repr=False)
    check: Callable[[Node], list[Guard]] | None = field(default=None, repr=False)
    stacked: Callable[[Node, Node, Size], Node] | None = field(default=None, repr=False)
    text: Callable[[Node, str, Any], str | None] | None = field(default=None, repr=False)
    aside: Callable[[Node, Any], bool] | None = field(default=None, repr=False)
    split_rows: Callable[[Node, Axes, Size], int] | None = field(default=None, repr=False)
    apart_rows: Callable[[Node], Node | None] | None = field(default=None, repr=False)

    def infer(self, args: tuple[Node, ...], params: Mapping[str, Any]) -> Type:
        first = args[0].type
        shape = self.shape(args, params)
        return Type(first.dtype, shape, "array" if shape else "scalar")

    def evaluate(self, node: Node, values: Sequence[Value], size: Callable[[Size], int]) -> Value:
        value = self.numpy(node, values, size)
        return value if node.type.shape else as_form(value, node.type.form)

    def expression(self, node: Node, given: Sequence[str], scope: Any) -> str | None:
        return self.text(node, given[0], scope) if self.text else None

    def is_aside(self, node: Node, scope: Any) -> bool:
        return self.aside(node, scope) if self.aside else False

    def jvp(self, node: Node, tangents: Sequence[Tangent]) -> Tangent:
        return None if tangents[0] is None else make(node.op, (tangents[0], *node.args[1:]), **node.params)

    def transpose(self, node: Node, cotangent: Node, linear: Sequence[bool]) -> Sequence[Tangent]:
        if self.back is None:
            return super().transpose(node, cotangent, linear)
        return (self.back(node, cotangent), *(None for _ in node.args[1:]))

    def batch(self, node: Node, args: Sequence[Node], batched: Sequence[bool], size: Size) -> Node:
        return self.stacked(node, args[0], size) if self.stacked else super().batch(node, args, batched, size)

    def split(self, node: Node, axes: Axes, rows: Size) -> Found:
        return self.split_rows(node, axes, rows) if self.split_rows else super().split(node, axes, rows)

    def apart(self, node: Node) -> Node | tuple[Node, ...] | None:
        return self.apart_rows(node) if self.apart_rows else super().apart(node)

    def guards(self, node: Node) -> list[Guard]:
        return self.check(node) if self.check else []


def show(shape: Sequence[Size]) -> str:
    """Return a shape as NumPy prints it, with the sizes seen at capture."""
    return shape_text([*map(size_text, shape)])


def shape_text(sizes: Sequence[str]) -> str:
    """Return sizes as NumPy prints a shape."""
    return f"({', '.join(sizes)}{',' if len(sizes) == 1 else ''})"


def same(left: Size, right: Size) -> bool:
    """Return whether two sizes may be equal: structurally, or as seen at capture."""
    if left == right:
        return True
    seen = hint(left), hint(right)
    return seen[0] == seen[1] if None not in seen else not (isinstance(left, int) and isinstance(right, int))


def broadcast_shapes(shapes: Sequence[Shape]) -> Shape:
    """Return the shape that NumPy broadcasts shapes to; only an extent that is literally 1 is stretched."""
    axes = [s for s in shapes if s]
    if not axes or all(s == axes[0] for s in axes[1:]):
        return axes[0] if axes else ()
    rank = max((len(s) for s in shapes), default=0)
    result: list[Size] = []
    for axis in range(rank):
        extent: Size = 1
        for shape in shapes:
            k = axis - rank + len(shape)
            if k < 0 or shape[k] == 1:
                continue
            if extent == 1:
                extent = shape[k]
            elif not same(extent, shape[k]):
                text = " ".join(show(s) for s in shapes)
                raise ShapeError(f"operands could not be broadcast together with shapes {text}")
            elif isinstance(shape[k], int) or (nodes_of(extent) and not nodes_of(shape[k])):
                # one that does not depend on data: the result has it where the other turns out to be 1, too
                extent = shape[k]
        result.append(extent)
    return tuple(result)


def normalise_axis(axis: int, ndim: int, name: str = "") -> int:
    """Return a nonnegative axis; ``name`` is the parameter's name, for messages."""
    axis = operator.index(axis)
    if not -ndim <= axis < ndim:
        raise AxisError(f"{name}{': ' * bool(name)}axis {axis} is out of bounds for array of dimension {ndim}")
    return axis % ndim
