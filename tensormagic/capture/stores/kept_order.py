"""The layout of computed arrays in NumPy, where a ufunc keeps the memory order of its operands."""

from __future__ import annotations

import math
from typing import Any
from weakref import WeakSet

import numpy as np

from tensormagic.capture import context
from tensormagic.capture.stores.layout import NOWHERE, Layout, as_given, given_for, made_as, reshaped
from tensormagic.ir.node import Node
from tensormagic.ir.type import hint
from tensormagic.ops.leaf import CONSTANT, INPUT, IOTA
from tensormagic.ops.move import BROADCAST, RESHAPE, SLICE, TRANSPOSE, squeezes
from tensormagic.ops.named import NAMED
from tensormagic.ops.pointwise import Pointwise

_MOST = 200  # links of one expression
_anew = WeakSet[Node]()  # values that also have a copy in C order, which a graph does not distinguish


def lies_anew(node: Node) -> None:
    """Record that a value has a copy in C order."""
    _anew.add(node)


def kept_order(node: Node) -> Layout | None:
    """Return the layout of the result of elementwise operations on arrays and views of arrays; None for other nodes."""
    found: dict[Node, Layout | None] = {}
    pending = [node]
    while pending and len(pending) < _MOST:  # a value that is made in its own layout, through others, would never end
        one = pending[-1]
        same = made_as(one)  # its elements were stored there, too
        parts = [a for a in (*_operands(one), *same) if a not in found]
        pending += parts
        if not parts:
            pending.pop()
            made = _layout(one, [found[a] for a in _operands(one)])
            found[one] = made if made is not None and _has_one_layout(one, made, [found[a] for a in same]) else None
    layout = found.get(node)
    return None if layout is None else _as_strided(layout.shape, _allocated([layout]).strides)


def _has_one_layout(node: Node, layout: Layout, others: list[Layout | None]) -> bool:
    """Return whether a value surely lies in one layout only."""
    if any(one is None or one.strides != layout.strides for one in others):
        return False
    return layout.flags.c_contiguous or node not in _anew


def _operands(node: Node) -> tuple[Node, ...]:
    moves = node.op in {BROADCAST, RESHAPE, SLICE, TRANSPOSE, NAMED}
    if not (moves or isinstance(node.op, Pointwise) or node.op.kind == "update") or not node.types[0].shape:
        return ()
    return node.args if isinstance(node.op, Pointwise) else node.args[:1]


def _layout(node: Node, operands: list[Layout | None]) -> Layout | None:
    """Return the layout of a node, given those of its operands; None where it is not known."""
    if len(node.types) > 1 or any(hint(s) is None for s in node.type.shape):
        return None
    shape = tuple([hint(s) or 0 for s in node.type.shape])
    if not shape or node.op is CONSTANT or node.op is IOTA:
        return _in_c_order(shape)
    if node.op is INPUT:
        return _of_input(node)
    known = [one for one in operands if one is not None]
    if not known or len(known) < len(operands):
        return None
    return _of_numbers(shape, known) if isinstance(node.op, Pointwise) else _moved(node, shape, known[0])


def _moved(node: Node, shape: tuple[int, ...], of: Layout) -> Layout | None:
    """Return the layout of a view, or of the result of a store; None where it is not known."""
    if not any(of.strides):
        of = _in_c_order(of.shape)  # a new array of one value
    if node.op is NAMED:
        return of
    if node.op is TRANSPOSE:
        return of.transpose(node["permutation"])
    if node.op is RESHAPE:
        return reshaped(of, shape) if squeezes(node) or of.flags.c_contiguous else None
    if node.op is SLICE:
        return _as_strided(shape, [s * step for s, (_, _, step) in zip(of.strides, node["slices"], strict=True)])
    if node.op is not BROADCAST:
        return None if of.flags.c_contiguous else of  # what is allocated anew to be stored into has an order of its own
    capture = context.current()
    if capture is not None and capture.abstract and node.args[0].op is CONSTANT:
        return None  # a number, or a new array
    return np.broadcast_to(of, shape) if _fits(of.shape, shape) else None


def _of_numbers(shape: tuple[int, ...], operands: list[Layout]) -> Layout | None:
    """Return the layout of a ufunc's result; None where it depends on which operand is first."""
    if any(one.shape not in {(), shape} for one in operands):
        return None
    made, other = _allocated(operands), _allocated(operands[::-1])
    if made.strides != other.strides:
        return None  # the first operand decides, and a graph does not keep which one that is
    return _as_strided(shape, made.strides)


def _allocated(operands: list[Any]) -> Any:
    """Return the array that a ufunc would allocate for its result, with elements of one byte."""
    own: list[Any] = [["readonly"]] * len(operands)
    return np.nditer([*operands, None], ["zerosize_ok"], [*own, ["writeonly", "allocate"]], order="K").operands[-1]


def _as_strided(shape: Any, strides: Any) -> Layout:
    return np.lib.stride_tricks.as_strided(NOWHERE, shape, strides)


def _of_input(node: Node) -> Layout | None:
    """Return the layout of a notebook's array, or of an argument, which is then checked at each call; None where it is not known."""
    given = given_for(node)
    if given is not None:
        return as_given(node, given)
    source = node["source"]
    original = getattr(source, "original", None)
    value = original() if callable(original) else getattr(source, "value", None)
    if not isinstance(value, np.ndarray) or any(s % value.itemsize for s in value.strides):
        return None
    return _as_strided(value.shape, [s // value.itemsize for s in value.strides])


def _in_c_order(shape: Any) -> Layout:
    steps = [math.prod(shape[k + 1 :]) for k in range(len(shape))]
    return _as_strided(shape, steps)


def _fits(own: Any, shape: Any) -> bool:
    """Return whether an array is broadcast to a shape, by the sizes that are seen."""
    return all(n in {1, most} for n, most in zip(own[::-1], shape[::-1], strict=False))
