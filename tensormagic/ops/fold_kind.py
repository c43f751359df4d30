"""The fold kind: ops that combine elements along axes, all together or one after the other. The folds are in fold.py."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tensormagic.ir.errors import DTypeError, ShapeError
from tensormagic.ir.node import Node, make
from tensormagic.ir.operation import Bounds
from tensormagic.ir.size import nodes_of
from tensormagic.ir.type import Size, Type, product
from tensormagic.ops.move import reshape
from tensormagic.ops.op import Op, Tangent, Value, as_form
from tensormagic.ops.rows import Axes, Found, Mixed, common_axis, other_axis, shifted

_KINDS = {"b": "truth values", "i": "integers", "f": "real floats", "c": "complex numbers"}


@dataclass(frozen=True, eq=False, kw_only=True)
class Fold(Op):
    """A reduction over the axes in ``params["axes"]``, which are dropped.

    Parameters
    ----------
    numpy
        ``numpy(x, axis)``, with an axis as NumPy's functions take it: None for all, a number for one, a tuple for several.
    kinds
        The kinds of dtypes that it takes; others are refused.
    result
        The dtype of the result for that of the operand.
    start
        The accumulator's first value for a result dtype, as a number; None where an empty axis is an error.
    step
        The scalar text that takes ``{0}``, the accumulator, and ``{1}``, the element; None runs in NumPy. With a step, ``joins``
        names the op that puts two accumulators together.
    tangent
        ``tangent(node, t)``, linear in ``t``; None for a fold without derivative.
    positional
        Whether the result is a place among the elements: over several axes that in the flattened array.
    """

    kind = "fold"
    numpy: Callable[[Any, Any], Value] = field(repr=False)
    kinds: str = "biufc"
    result: Callable[[np.dtype[Any]], np.dtype[Any]] = field(default=lambda dtype: dtype, repr=False)
    start: Callable[[np.dtype[Any]], Any] | None = field(default=None, repr=False)
    step: str | None = None
    tangent: Callable[[Node, Node], Node] | None = field(default=None, repr=False)
    back: Callable[[Node, Node], Node] | None = field(default=None, repr=False)
    body: Callable[[Node], Node] | None = field(default=None, repr=False)
    differentiable: bool = True
    positional: bool = False

    def __post_init__(self) -> None:
        if self.step is not None and not self.joins:
            raise ValueError(
                f"the fold {self.name} has a step: say what puts the results of parts together, as in joins='add'"
            )
        if self.step is not None and self.start is None and self.step not in {"maximum", "minimum"}:
            raise ValueError(
                f"the fold {self.name} has a step: say where it begins, as in start=lambda dtype: dtype.type(0)"
            )
        super().__post_init__()

    def may_raise(self, node: Node) -> bool:
        """Return whether it is an extremum that may be of no elements."""
        return self.start is None and any(nodes_of(s) for s in node.args[0].type.shape)

    def infer(self, args: tuple[Node, ...], params: Mapping[str, Any]) -> Type:
        x = args[0].type
        axes = params["axes"]
        self._check(x.dtype)
        if self.start is None and any(x.shape[k] == 0 for k in axes):
            raise ShapeError(f"zero-size array to reduction operation {self.name} which has no identity")
        shape = tuple(s for k, s in enumerate(x.shape) if k not in axes)
        return Type(self.result(x.dtype), shape, "array" if shape else "scalar")

    def _check(self, dtype: np.dtype[Any]) -> None:
        if dtype.kind not in self.kinds:
            taken = " or ".join(words for kind, words in _KINDS.items() if kind in self.kinds)
            raise DTypeError(f"{self.name} takes {taken}, not {dtype}")

    def bounds(self, node: Node) -> Bounds:
        x = node.args[0]
        if self.name == "sum" and x.type.dtype.kind == "b":  # the count of true elements
            return 0, count(x, node["axes"])
        return (0, count(x, node["axes"]) - 1) if self.positional else (None, None)

    def evaluate(self, node: Node, values: Sequence[Value], size: Callable[[Size], int]) -> Value:
        del size
        axes = node["axes"]
        x = np.asarray(values[0])
        axis = None if len(axes) == x.ndim else axes if len(axes) != 1 else axes[0]
        value = self.numpy(x, axis)
        return value if node.type.shape else as_form(value, node.type.form)

    def expression(self, node: Node, given: Sequence[str], scope: Any) -> str | None:
        axes, rank = node["axes"], node.args[0].type.ndim
        if not rank or (not node.type.shape and node.type.form != "scalar"):
            return None
        axis = None if len(axes) == rank else axes if len(axes) != 1 else axes[0]
        return f"{scope.text.object(self.numpy)}({given[0]}, {axis}){'' if node.type.shape else '[()]'}"

    def jvp(self, node: Node, tangents: Sequence[Tangent]) -> Tangent:
        if tangents[0] is None or not node.type.inexact or not self.differentiable:
            return None
        if self.tangent is None:
            return super().jvp(node, tangents)  # type: ignore[return-value]
        return self.tangent(node, tangents[0])

    def transpose(self, node: Node, cotangent: Node, linear: Sequence[bool]) -> Sequence[Tangent]:
        if self.back is None:
            return super().transpose(node, cotangent, linear)
        return (self.back(node, cotangent),)

    def batch(self, node: Node, args: Sequence[Node], batched: Sequence[bool], size: Size) -> Node:
        axes = tuple(k + 1 for k in node["axes"])
        if self.positional and len(axes) > 1:  # the result is an index into the flattened array
            return make(self, (reshape(args[0], (size, node.args[0].type.size)),), axes=(1,))
        params: dict[str, Any] = {**node.params, "axes": axes}
        return make(self, args, **params)

    def split(self, node: Node, axes: Axes, rows: Size) -> Found:
        axis = common_axis(axes)
        if axis not in node["axes"]:
            return shifted(axis, -sum(k < axis for k in node["axes"]))
        if not self.joins:
            raise Mixed("over all rows is not put together from chunks")
        return self.joins

    def apart(self, node: Node) -> Node | tuple[Node, ...] | None:
        if self.positional:
            from tensormagic.ops.indices.few_rows import place_of_extreme

            return place_of_extreme(node)
        return super().apart(node)

    def expand(self, node: Node) -> Node | None:
        return self.body(node) if self.body else None


def count(x: Node, axes: tuple[int, ...]) -> Size:
    """Return the number of elements that a fold over ``axes`` combines."""
    return product(tuple(x.type.shape[k] for k in axes))


@dataclass(frozen=True, eq=False, kw_only=True)
class Row(Fold):
    """A function of whole rows that keeps their shape: cumulative folds, softmax and the like."""

    def infer(self, args: tuple[Node, ...], params: Mapping[str, Any]) -> Type:
        x = args[0].type
        self._check(x.dtype)
        return Type(self.result(x.dtype), x.shape)

    def split(self, node: Node, axes: Axes, rows: Size) -> Found:
        return other_axis(axes, node["axes"])
