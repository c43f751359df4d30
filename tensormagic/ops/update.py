"""Updates: an array with a part replaced or added to, the functional form of a store and the transpose of a slice."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tensormagic.ir.errors import ShapeError
from tensormagic.ir.node import Node, make
from tensormagic.ir.operation import Guard
from tensormagic.ir.type import Size, Type
from tensormagic.ops.leaf import constant, size_of
from tensormagic.ops.move import RESHAPE, SLICE, Slices, broadcast, concrete_slices, lead, places, slice_, slice_guards
from tensormagic.ops.move_kind import same, show
from tensormagic.ops.op import Op, Tangent, Value
from tensormagic.ops.reverse.tape import add_tapes
from tensormagic.ops.rows import Axes, Found, Mixed, common_axis
from tensormagic.ops.tangents import total


@dataclass(frozen=True, eq=False, kw_only=True)
class Update(Op):
    """``x`` with the slice ``slices`` set to (or increased by) ``value``."""

    kind = "update"
    any_dtype = True

    @property
    def adds(self) -> bool:
        """Whether the value is added to the present contents."""
        return bool(self.joins)

    def infer(self, args: tuple[Node, ...], params: Mapping[str, Any]) -> Type:
        x, value = args[0].type, args[1].type
        part = tuple(length for _, length, _ in params["slices"])
        if len(part) != len(value.shape) or not all(same(s, t) for s, t in zip(part, value.shape, strict=True)):
            raise ShapeError(f"could not broadcast input array from shape {show(value.shape)} into shape {show(part)}")
        return Type(x.dtype, x.shape)

    def evaluate(self, node: Node, values: Sequence[Value], size: Callable[[Size], int]) -> Value:
        return self.reuse(node, [np.array(values[0], order="C"), values[1]], size)

    def reuse(self, node: Node, values: Sequence[Value], size: Callable[[Size], int]) -> Value:
        """Return the value as ``evaluate``, in the memory of the first operand, which nothing else reads."""
        result = values[0]
        part = concrete_slices(node, size)
        if self.adds:
            result[part] += values[1]
        else:
            result[part] = values[1]
        return result

    def store(self, node: Node, given: Sequence[str], scope: Any) -> tuple[str, Callable[[str], str]]:
        """Return texts for a loop: the copy of the array, and a statement that stores into a given name."""
        drops = scope.is_dropped(node.args[1], given[1])
        part = places(node["slices"], node.type.shape, scope, drops=drops)
        sign = "+=" if self.adds else "="
        return f"{scope.text.object(np.array)}({given[0]}, order='C')", lambda name: f"{name}[{part}] {sign} {given[1]}"

    def jvp(self, node: Node, tangents: Sequence[Tangent]) -> Tangent:
        x, value = tangents
        if x is None and value is None:
            return None
        base = zeros_like(node.args[0], node.type.dtype) if x is None else x
        if value is None and self.adds:
            return base
        part = zeros_like(node.args[1], node.type.dtype) if value is None else value
        return make(self, (base, part), slices=node["slices"])

    def transpose(self, node: Node, cotangent: Node, linear: Sequence[bool]) -> Sequence[Tangent]:
        x: Tangent = None
        if linear[0]:
            x = cotangent if self.adds else set_at(cotangent, zeros_like(node.args[1], node.type.dtype), node["slices"])
        return x, slice_(cotangent, node["slices"]) if linear[1] else None

    def batch(self, node: Node, args: Sequence[Node], batched: Sequence[bool], size: Size) -> Node:
        stacks = [lead(a, b, size) for a, b in zip(args, batched, strict=True)]
        return make(self, stacks, slices=((0, size, 1), *node["slices"]))

    def split(self, node: Node, axes: Axes, rows: Size) -> Found:
        if axes[0] is not None and node["slices"][axes[0]] != (0, node.type.shape[axes[0]], 1):
            raise Mixed("stores into some of the rows")
        return common_axis(axes)

    def guards(self, node: Node) -> list[Guard]:
        part = tuple(length for _, length, _ in node["slices"])
        fits: list[Guard] = [(s, "==", t) for s, t in zip(part, node.args[1].type.shape, strict=True) if s != t]
        return fits + ([] if 0 in part else slice_guards(node["slices"], node.type.shape))


SET = Update(name="set", picks=True, doc="x with x[i] = v.")
ADD_AT = Update(name="add_at", joins="add", linear="together", doc="x with x[i] += v.")


def zeros_like(x: Node, dtype: Any = None) -> Node:
    """Return zeros in the shape of ``x``."""
    return broadcast(constant(np.dtype(dtype or x.type.dtype).type(0)), x.type.shape)


def place_in(stack: Node, index: Node) -> Slices:
    """Return the slice of one element of a stack."""
    at = size_of(index)
    if at is None:
        raise AssertionError
    return ((at, 1, 1), *((0, s, 1) for s in stack.type.shape[1:]))


def set_at(x: Node, value: Node, slices: Slices) -> Node:
    """Return ``x`` with the slice ``slices`` replaced by ``value``; ``x`` itself if ``value`` is that slice."""
    own = value
    while own.op is RESHAPE:
        own = own.args[0]
    if own.op is SLICE and own.args[0] is x and own["slices"] == slices and own.type.shape == value.type.shape:
        return x  # a view that is stored back into its own place
    return make(SET, (x, value), slices=slices)


def add_at(x: Node, value: Node, slices: Slices) -> Node:
    """Return ``x`` with ``value`` added to the slice ``slices``."""
    return make(ADD_AT, (x, value), slices=slices)


def accumulate(old: Tangent, new: Node) -> Node:
    """Return ``old + new``; parts added to zeros go directly into ``old`` instead of through a dense array."""
    if old is None:
        return new
    if new.type.form == "tape":
        return add_tapes(old, new)
    for base, other in ((old, new), (new, old)):
        chain = _parts(other) if base.type == other.type else None
        if chain is not None:
            for link in chain:
                base = make(link.op, (base, *link.args[1:]), **link.params)  # noqa: PLW2901 (the running sum)
            return base
    result = total([old, new])
    if result is None:
        raise AssertionError
    return result


def _parts(node: Node) -> list[Node] | None:
    """Return the additions to zeros, part by part, that make ``node``, or None if it is anything else."""
    links: list[Node] = []
    while node.op.kind in {"update", "opaque"} and node.op.joins == "add":
        links.append(node)
        node = node.args[0]
    return links[::-1] if links and node is zeros_like(node) else None
