"""Sorting along an axis; the derivative of a sort follows the elements to where they went."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tensormagic.ir.errors import AxisError, DTypeError
from tensormagic.ir.node import Node, make
from tensormagic.ir.type import Type
from tensormagic.ops.gather import take_along_axis
from tensormagic.ops.move import normalise_axis, reshape
from tensormagic.ops.op import Tangent
from tensormagic.ops.opaque import Opaque

_KINDS = {"quicksort", "heapsort", "stable", "mergesort"}


def _checked(args: tuple[Node, ...]) -> Type:
    t = args[0].type
    if t.dtype.kind not in "biufc":
        raise DTypeError(f"sort does not take an array of dtype {t.dtype}")
    return t


def _sort_type(args: tuple[Node, ...], _params: Mapping[str, Any]) -> Type:
    t = _checked(args)
    return Type(t.dtype, t.shape)


def _argsort_type(args: tuple[Node, ...], _params: Mapping[str, Any]) -> Type:
    return Type(np.dtype(np.int64), _checked(args).shape)


def _sort_tangent(node: Node, tangents: Sequence[Tangent]) -> Tangent:
    if tangents[0] is None:
        return None
    order = make(ARGSORT, node.args, axis=node["axis"], kind="stable")
    return take_along_axis(tangents[0], order, node["axis"])


SORT = Opaque(
    name="sort",
    types=_sort_type,
    numpy=np.sort,
    tangent=_sort_tangent,
    doc="The elements along an axis, ascending; nan last.",
)
ARGSORT = Opaque(
    name="argsort",
    types=_argsort_type,
    numpy=np.argsort,
    tangent=lambda _node, _tangents: None,
    doc="The indices that sort along an axis.",
)


def _build(op: Opaque, x: Node, axis: int | None, kind: str | None, stable: bool | None) -> Node:
    if kind is not None and stable is not None:
        message = "`kind` and `stable` parameters can't be provided at the same time. Use only one of them."
        raise ValueError(message)
    if kind is not None and kind not in _KINDS:
        message = f"sort kind must be one of 'quick', 'heap', or 'stable' (got '{kind}')"
        raise ValueError(message)
    if axis is None:
        x, axis = reshape(x, (x.type.size,)), -1
    if op is ARGSORT and not x.type.ndim:
        x = reshape(x, (1,))  # as NumPy does, though only here
    if not x.type.ndim:
        raise AxisError(f"axis {axis} is out of bounds for array of dimension 0")
    return make(op, (x,), axis=normalise_axis(axis, x.type.ndim), kind="stable" if stable else kind)


def sort(x: Node, axis: int | None = -1, kind: str | None = None, *, stable: bool | None = None) -> Node:
    """``np.sort``; ``axis=None`` sorts the flattened array."""
    return _build(SORT, x, axis, kind, stable)


def argsort(x: Node, axis: int | None = -1, kind: str | None = None, *, stable: bool | None = None) -> Node:
    """``np.argsort``; ``axis=None`` sorts the flattened array."""
    return _build(ARGSORT, x, axis, kind, stable)
