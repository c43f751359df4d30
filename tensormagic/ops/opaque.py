"""The opaque kind: library calls that no loop is generated for, each with its declared type and derivative."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tensormagic.ir.node import Node, as_size, make
from tensormagic.ir.operation import Bounds, Guard
from tensormagic.ir.size import product
from tensormagic.ir.type import Dim, Size, Type
from tensormagic.ops.move import lead
from tensormagic.ops.op import Op, Tangent, Value, as_form
from tensormagic.ops.rows import FIRST, Axes, Found, Mixed, common_axis, other_axis

Types = Type | tuple[Type, ...]
Warn = Callable[[str, type[Warning]], None]
ASKED_BY = "asked_by"  # the parameter that names the library function that was called, if only warnings depend on it
_warn: ContextVar[Warn | None] = ContextVar("warn", default=None)


@contextmanager
def heard_by(warn: Warn) -> Generator[None]:
    """Call ``warn`` with the warnings of library calls that run within the block."""
    token = _warn.set(warn)
    try:
        yield
    finally:
        _warn.reset(token)


@dataclass(frozen=True, eq=False, kw_only=True)
class Opaque(Op):
    """A library call.

    Parameters
    ----------
    types
        ``types(args, params)``: the type of the result, or of each result; raises as NumPy does where operands do not fit.
    numpy
        ``numpy(*values, **params)``.
    tangent
        ``tangent(node, tangents)``: linear in the tangents, a tuple for several results.
    back
        ``back(node, cotangent, linear)``, for a call that is linear in some operands.
    check
        ``check(node)``: what sizes must satisfy when the graph runs.
    stacked
        ``stacked(node, args, batched, size)``, for a call that does not take stacks of each operand by itself, with an ``axis``
        counted from the first.
    holds
        For a call that only looks whether something is so, and gives its first operand: what is to be true, as Python text.
    split_rows
        ``split_rows(node, axes, rows)``: where rows are in the result, for a call that keeps them apart.
    warns
        ``warns(*values, **params)``: the message and the category of what the library warns of; asked where somebody hears it.
    names
        For parameters that name something of Python's or a library's: which names are taken from a file.
    """

    kind = "opaque"
    types: Callable[[tuple[Node, ...], Mapping[str, Any]], Types] = field(repr=False)
    numpy: Callable[..., Value] = field(repr=False)
    tangent: Callable[[Node, Sequence[Tangent]], Tangent | tuple[Tangent, ...]] | None = field(default=None, repr=False)
    back: Callable[[Node, Node, Sequence[bool]], Sequence[Tangent]] | None = field(default=None, repr=False)
    check: Callable[[Node], list[Guard]] | None = field(default=None, repr=False)
    stacked: Callable[[Node, Sequence[Node], Sequence[bool], Size], Node] | None = field(default=None, repr=False)
    holds: str = ""
    split_rows: Callable[[Node, Axes, Size], Found] | None = field(default=None, repr=False)
    apart_rows: Callable[[Node], Node | None] | None = field(default=None, repr=False)
    warns: Callable[..., tuple[str, type[Warning]] | None] | None = field(default=None, repr=False)
    names: Mapping[str, Callable[[Any], bool]] = field(default_factory=dict[str, Callable[[Any], bool]], repr=False)

    def infer(self, args: tuple[Node, ...], params: Mapping[str, Any]) -> Types:
        return self.types(args, params)

    def evaluate(self, node: Node, values: Sequence[Value], size: Callable[[Size], int]) -> Value:
        params = concrete(node.params, size)
        value = self.numpy(*values, **params)
        if self.warns is not None and (warn := _warn.get()) is not None and (found := self.warns(*values, **params)):
            warn(*found)
        return value if len(node.types) > 1 or node.type.shape else as_form(value, node.type.form)

    def expression(self, node: Node, given: Sequence[str], scope: Any) -> str | None:
        if not self.holds or any(a.type.shape for a in node.args[1:]):
            return None
        return f"{given[0]} if {self.holds.format(*given)} else {scope.evaluated(node)}"

    def jvp(self, node: Node, tangents: Sequence[Tangent]) -> Tangent | tuple[Tangent, ...]:
        if all(t is None for t in tangents):
            return None if len(node.types) == 1 else tuple(None for _ in node.types)
        return self.tangent(node, tangents) if self.tangent else super().jvp(node, tangents)

    def transpose(self, node: Node, cotangent: Node, linear: Sequence[bool]) -> Sequence[Tangent]:
        return self.back(node, cotangent, linear) if self.back else super().transpose(node, cotangent, linear)

    def batch(self, node: Node, args: Sequence[Node], batched: Sequence[bool], size: Size) -> Node:
        if self.stacked is not None:
            return self.stacked(node, args, batched, size)
        params = {k: v + 1 if k == "axis" else v for k, v in node.params.items()}
        return make(self, [lead(a, b, size) for a, b in zip(args, batched, strict=True)], **params)

    def split(self, node: Node, axes: Axes, rows: Size) -> Found:
        return self.split_rows(node, axes, rows) if self.split_rows else super().split(node, axes, rows)

    def may_raise(self, node: Node) -> bool:
        return bool(self.fails) or super().may_raise(node)

    def apart(self, node: Node) -> Node | tuple[Node, ...] | None:
        return self.apart_rows(node) if self.apart_rows else super().apart(node)

    def guards(self, node: Node) -> list[Guard]:
        return self.check(node) if self.check else []

    def bounds(self, node: Node) -> Bounds:
        size = as_size(node.args[0]) if self.holds else None
        return super().bounds(node) if size is None else (size, size)

    def effort(self, node: Node) -> Size:
        shape = node.args[0].types[0].shape if self.cubed else ()
        return super().effort(node) + (self.cubed * product(shape) * shape[-1] if shape else 0)


def along_axis(node: Node, axes: Axes, _rows: Size) -> int:
    """Return the axis of rows for a call that runs along its own ``axis``, which must be another one."""
    return other_axis(axes, (node["axis"],))


def in_stack(node: Node, axes: Axes, _rows: Size) -> int:
    """Return the axis of rows for a call on stacks of matrices, along an axis of the stack."""
    axis = common_axis(axes)
    if any(axis >= n.type.ndim - 2 for n in node.args):
        raise Mixed("works on matrices that have the rows within them")
    return axis


@dataclass(frozen=True, eq=False, kw_only=True)
class Store(Opaque):
    """A call that stores into its first operand, an array, or into a copy if that is needed elsewhere."""

    any_dtype = True

    raises: bool | Callable[[Node], bool] = field(default=True, repr=False)  # raises for an index out of bounds

    def evaluate(self, node: Node, values: Sequence[Value], size: Callable[[Size], int]) -> Value:
        return self.reuse(node, [np.array(values[0], order="C"), *values[1:]], size)

    def reuse(self, node: Node, values: Sequence[Value], size: Callable[[Size], int]) -> Value:
        """Return the value as ``evaluate``, in the memory of the first operand, which nothing else reads."""
        return super().evaluate(node, values, size)

    def store(self, node: Node, given: Sequence[str], scope: Any) -> tuple[str, Callable[[str], str]] | None:
        """Return texts for a loop: the copy of the array, and a statement that stores into a given name, or None if a size is symbolic."""
        if any(isinstance(v, Dim) for v in node.params.values()):
            return None
        rest = ", ".join([*given[1:], *(f"{k}={v!r}" for k, v in node.params.items())])
        copied = f"{scope.text.object(np.array)}({given[0]}, order='C')"
        return copied, lambda name: f"{scope.text.object(self.numpy)}({name}, {rest})"


def concrete(params: Mapping[str, Any], size: Callable[[Size], int]) -> dict[str, Any]:
    """Return parameters with symbolic sizes as numbers."""
    return {k: size(v) if isinstance(v, Dim) else v for k, v in params.items()}


@dataclass(frozen=True, eq=False, kw_only=True)
class Item(Op):
    """One result of a node with several results."""

    kind = "leaf"
    any_dtype = True

    def infer(self, args: tuple[Node, ...], params: Mapping[str, Any]) -> Type:
        return args[0].types[params["index"]]

    def evaluate(self, node: Node, values: Sequence[Value], size: Callable[[Size], int]) -> Value:
        del size
        value = values[0][node["index"]]
        return value if node.type.shape else as_form(value, node.type.form)

    def effort(self, node: Node) -> Size:
        return 0

    def split(self, node: Node, axes: Axes, rows: Size) -> Found:
        (every,) = axes
        found = every[node["index"]] if isinstance(every, tuple) else every
        return FIRST if found is None else found

    def expression(self, node: Node, given: Sequence[str], scope: Any) -> str | None:
        return f"{given[0]}[{node['index']}]" if node.type.shape else None


ITEM = Item(name="item", doc="One result of several.")


def item(node: Node, index: int) -> Node:
    """Return result number ``index`` of ``node``."""
    return node if len(node.types) == 1 else make(ITEM, (node,), index=index)


def items(node: Node) -> tuple[Node, ...]:
    """Return every result of ``node``."""
    return tuple(item(node, k) for k in range(len(node.types)))
