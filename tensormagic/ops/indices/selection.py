"""Data-dependent selection: the places where a mask is true, and the distinct values of an array. Their number is a size."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tensormagic.ir.errors import DTypeError, ShapeError
from tensormagic.ir.node import Node, make
from tensormagic.ir.operation import Bounds
from tensormagic.ir.size import Size, atom
from tensormagic.ir.type import Type, array
from tensormagic.ops.fold import SUM, fold
from tensormagic.ops.indices.gather import gather
from tensormagic.ops.indices.sorting import SORT
from tensormagic.ops.leaf import constant, constant_value, iota
from tensormagic.ops.move import broadcast, reshape
from tensormagic.ops.move_kind import show
from tensormagic.ops.op import Value
from tensormagic.ops.opaque import Opaque, items
from tensormagic.ops.scalars import scalar

# masks ----------------------------------------------------------------------------------------------------------------


def _places_type(args: tuple[Node, ...], params: Mapping[str, Any]) -> Type:
    mask = args[0].type
    if mask.dtype != np.dtype(bool) or mask.ndim != 1:
        raise DTypeError(f"a mask is an array of bools with one axis here, not {mask}")
    return array(np.int64, params["length"])


@dataclass(frozen=True, eq=False, kw_only=True)
class Places(Opaque):
    """The indices at which a mask is true."""

    def bounds(self, node: Node) -> Bounds:
        return 0, node.args[0].type.shape[0] - 1

    def expression(self, node: Node, given: Sequence[str], scope: Any) -> str | None:
        return f"{given[0]}.nonzero()[0]"


PLACES = Places(
    name="places",
    in_numpy="np.flatnonzero({0})",
    sequential=True,
    types=_places_type,
    numpy=lambda mask, length: mask.nonzero()[0],
    doc="The indices where a mask of one axis is true; how many there are is the second operand.",
)


def count_true(mask: Node) -> Node:
    """Return the number of true elements of a mask."""
    return fold(SUM, mask, tuple(range(mask.type.ndim)))


def places(mask: Node) -> Node:
    """Return the indices into the flattened array where ``mask`` is true."""
    flat = reshape(mask, (mask.type.size,))
    known = constant_value(mask)
    shape = tuple(s for s in mask.type.shape if isinstance(s, int))
    if known is not None and len(shape) == mask.type.ndim:
        return constant(np.flatnonzero(np.broadcast_to(known, shape)))
    return make(PLACES, (flat,), length=atom(count_true(mask)))


# different values -----------------------------------------------------------------------------------------------------


def _flat(x: Node) -> None:
    if x.type.ndim != 1:
        raise ShapeError(f"the different values of an array of shape {show(x.type.shape)}: it has to have one axis")


@dataclass(frozen=True, eq=False, kw_only=True)
class Distinct(Opaque):
    """The number of distinct values."""

    def bounds(self, node: Node) -> Bounds:
        return 0, node.args[0].type.size


def _distinct_type(args: tuple[Node, ...], _params: Mapping[str, Any]) -> Type:
    _flat(args[0])
    return array(np.int64)


def _distinct_numpy(x: Value, equal_nan: bool) -> Value:
    return np.int64(np.unique(x, equal_nan=equal_nan).size)


def _distinct_stacked(node: Node, args: Sequence[Node], _batched: Sequence[bool], size: Size) -> Node:
    """Return the number of distinct values in each row: those that differ from the one before after sorting."""
    extent = node.args[0].type.size
    x = make(SORT, args, axis=1, kind=None)
    ramp = iota((extent,), 0)
    before = gather(x, scalar.maximum(ramp - 1, constant(0)), 1)
    same = scalar.equal(x, before)
    if node["equal_nan"] and x.type.inexact:
        same = scalar.bitwise_or(same, scalar.bitwise_and(scalar.isnan(x), scalar.isnan(before)))
    first = broadcast(scalar.equal(ramp, constant(0)), (size, extent))
    return fold(SUM, scalar.bitwise_or(first, scalar.invert(same)), (1,))


def _unique_stacked(_node: Node, _args: Sequence[Node], _batched: Sequence[bool], _size: Size) -> Node:
    raise ShapeError(
        "the number of distinct values differs within the batch",
        "Work on arrays of one size: np.sort, and np.where to ignore the others.",
    )


DISTINCT = Distinct(
    name="count_unique",
    in_numpy="np.unique({0}, equal_nan={equal_nan}).size",
    types=_distinct_type,
    numpy=_distinct_numpy,
    tangent=lambda _node, _tangents: None,
    stacked=_distinct_stacked,
    doc="How many distinct values an array of one axis has.",
)


def _unique_type(args: tuple[Node, ...], params: Mapping[str, Any]) -> tuple[Type, ...]:
    (x,) = args
    _flat(x)
    found = array(np.int64, params["length"])
    return found, array(np.int64, *x.type.shape), found


def _unique_numpy(x: Value, length: int, equal_nan: bool, asked: tuple[bool, bool, bool]) -> Value:
    _, first, inverse, counts = np.unique(x, True, True, True, equal_nan=equal_nan)
    inverse = inverse.reshape(np.shape(x))
    if x.dtype.kind in "fc" and not asked[0]:  # NumPy's call decides which zero stays, as its sort is not stable
        options: dict[str, Any] = {"return_inverse": asked[1], "return_counts": asked[2], "equal_nan": equal_nan}
        kept: Any = np.unique(x, **options)
        kept = (kept[0] if any(asked) else kept)[inverse]
        like = (np.signbit(x.real) == np.signbit(kept.real)) & (np.signbit(x.imag) == np.signbit(kept.imag))
        places = np.flatnonzero(like)[::-1]
        first[inverse[places]] = places  # the last store to a place remains
    return first, inverse, counts


UNIQUE = Opaque(
    name="unique",
    types=_unique_type,
    numpy=_unique_numpy,
    tangent=lambda node, _tangents: tuple(None for _ in node.types),
    stacked=_unique_stacked,
    doc="For the distinct values of an array, in order: where each first occurs, which one each element is, and how often each occurs.",
)


def unique(x: Node, *, equal_nan: bool = True, asked: tuple[bool, bool, bool] = (True, True, True)) -> tuple[Node, ...]:
    """Return first places, inverse and counts of the distinct values of ``x``, which has one axis.

    ``asked`` says which of the three the call of ``np.unique`` returns. The places are the first ones if these are
    asked for; else each is that of the element that NumPy's call keeps, which decides the sign of a zero.
    """
    length: Size = atom(make(DISTINCT, (x,), equal_nan=equal_nan))
    return items(make(UNIQUE, (x,), length=length, equal_nan=equal_nan, asked=asked))
