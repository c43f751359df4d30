"""Reads NumPy's arguments in captured code: operands, axes, shapes, omitted options, and ``out=``."""

from __future__ import annotations

import operator
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from tensormagic.capture import context
from tensormagic.capture.errors.refusal import refuse, refuse_ambiguous_integer, refuse_foreign_store
from tensormagic.capture.names import computed
from tensormagic.capture.numbers.known_values import static_value
from tensormagic.capture.values.operands import node_of
from tensormagic.capture.values.operators import store_result
from tensormagic.capture.values.value import Tensor, as_size, done, wrap
from tensormagic.ir.errors import DTypeError, ShapeError
from tensormagic.ir.node import Node
from tensormagic.ir.size import apply, is_at_least, nodes_of
from tensormagic.ir.type import Size
from tensormagic.ops.effects.checks import fixed, require
from tensormagic.ops.form import to_form
from tensormagic.ops.leaf import constant, size_node
from tensormagic.ops.move import broadcast, concatenate, reshape, slice_
from tensormagic.ops.move_kind import normalise_axis, same
from tensormagic.ops.scalars.scalar import equal, maximum, minimum, remainder

MISSING = np._NoValue  # type: ignore[attr-defined] # noqa: SLF001 (NumPy's own mark for an option that is not given)


def given(value: Any) -> bool:
    """Return whether an option is given."""
    return value is not None and value is not MISSING


def agreeing(node: Node, left: Size, right: Size, message: str) -> Node:
    """Return ``node`` if two sizes agree; else raise a ShapeError now, or a ValueError when the graph runs."""
    if not same(left, right):
        raise ShapeError(message)
    if left == right:
        return node
    if nodes_of(left) or nodes_of(right):
        return require(node, equal(size_node(left), size_node(right)), message)
    capture = context.current()
    if capture is not None:
        capture.guards.append((left, "==", right))
    return node


def by_mode(index: Node, extent: Any, mode: str) -> Node:
    """Return indices by ``mode=``: wrapped, clipped, or unchanged if an index out of bounds is an error."""
    if mode == "wrap":
        return remainder(index, extent)
    if mode == "clip":
        return minimum(maximum(index, 0), extent - 1)
    if mode != "raise":
        raise ValueError(f"clipmode must be one of 'clip', 'raise', or 'wrap' (got '{mode}')")
    return index


def pad_empty_axes(x: Node, axes: Sequence[int], value: float) -> Node:
    """Return ``x`` with one element of ``value`` along each of ``axes`` that is empty, also if that is data-dependent."""
    for axis in axes:
        extent = x.type.shape[axis]
        if is_at_least(extent, 1):
            continue
        one = broadcast(constant(x.type.dtype.type(value)), (*x.type.shape[:axis], 1, *x.type.shape[axis + 1 :]))
        length = apply("max", extent, 1)
        longer = concatenate([x, one], axis)
        x = slice_(longer, tuple((0, length if k == axis else s, 1) for k, s in enumerate(longer.type.shape)))
    return x


def tensor(value: Any) -> Tensor:
    """Return ``value`` as a lazy array; for labelled data the values alone, as ``np.asarray`` gives them."""
    if not isinstance(value, Tensor):
        return wrap(node_of(value))
    return Tensor(value.place) if value.has_labels else value


def strong(value: Any) -> Tensor:
    """Return ``value`` as a lazy array; a Python number becomes a NumPy scalar, as in NumPy's functions."""
    found = tensor(value)
    return wrap(to_form(found.node, "scalar")) if found.type.form == "python" else found


def axis_of(axis: Any) -> Any:
    """Return an axis argument as an int, a tuple of ints, or None."""
    if axis is None:
        return None
    if isinstance(axis, tuple):
        return tuple(map(axis_of, axis))
    if isinstance(axis, bool | np.bool_):
        raise DTypeError("an integer is required for the axis")
    return operator.index(axis)


def listed_axes(axis: Any) -> Any:
    """Return an axis argument that may be a list, too."""
    return axis_of(tuple(axis) if isinstance(axis, list) else axis)


def array_alone(value: Any, attribute: str = "ndim") -> Tensor:
    """Return an array; raise AttributeError for a list, in a function of NumPy's that reads an ``attribute`` first."""
    if isinstance(value, list | tuple):
        raise AttributeError(f"{type(value).__name__!r} object has no attribute {attribute!r}")  # noqa: TRY004 (Python's own)
    return tensor(value)


def of_rank(x: Node, rank: int) -> Node:
    """Return values to be stored into an array of ``rank`` axes: leading axes of 1 are added or removed."""
    shape = x.type.shape
    more = len(shape) - rank
    if more > 0 and all(s == 1 for s in shape[:more]):
        return reshape(x, shape[more:])
    return reshape(x, (*[1] * -more, *shape)) if more < 0 else x


def one_axis(axis: Any, rank: int) -> int:
    """Return a single axis, counted from the first."""
    return normalise_axis(axis, rank)


def several_axes(axis: Any, rank: int) -> tuple[int, ...]:
    """Return one axis or several, in the order given, each once."""
    axes = tuple(one_axis(a, rank) for a in (axis if isinstance(axis, tuple | list) else (axis,)))
    if len(set(axes)) < len(axes):
        raise ValueError("repeated axis")
    return axes


def reduced_axis(axis: Any, rank: int) -> Any:
    """Return the axis argument of a fold; for a rank-0 array, 0 and -1 mean no axis, as in NumPy."""
    found = axis_of(axis)
    return None if not rank and found in (0, -1) and not isinstance(found, tuple) else found


def order_letter(order: Any, allowed: str = "CFAK") -> str:
    """Return the letter of a memory order, checked to be one of ``allowed``."""
    if not isinstance(order, str):
        raise TypeError(f"order must be str, not {type(order).__name__}")
    letter = order.upper()
    if letter not in set("CFAK"):
        raise ValueError(f"order must be one of 'C', 'F', 'A', or 'K' (got {order!r})")
    if letter not in allowed:
        raise ValueError(f"order {order!r} is not allowed here: it must be one of {', '.join(allowed)}")
    return letter


def shape_of(shape: Any) -> tuple[Size, ...]:
    """Return a shape as captured code has written it, with each extent as a size."""
    if isinstance(shape, np.ndarray):
        shape = shape.tolist()
    elif isinstance(shape, Tensor) and shape.ndim == 1:
        shape = [shape[k] for k in range(extent_number(shape.node, 0))]
    several = isinstance(shape, tuple | list)
    refuse_ambiguous_integer(shape)
    sizes: Any = shape if several else (shape,)
    for size in sizes:
        if isinstance(size, bool | np.bool_) or (isinstance(size, Tensor) and size.dtype == bool):
            said = (
                "an integer is required"
                if several
                else "expected a sequence of integers or a single integer, got '{!r}'"
            )
            raise TypeError(said.format(size if isinstance(size, bool | np.bool_) else True))
    return tuple(context.settle(as_size(s)) for s in sizes)


def extent_number(x: Node, axis: int) -> int:
    """Return the extent of an axis as a number, to which the graph is then restricted."""
    return operator.index(wrap(x).shape[axis])


def known(value: Any, name: str) -> Any:
    """Return the value of an argument that must be known at capture; raise an error that names it otherwise."""
    if not isinstance(value, Tensor):
        return value
    found = static_value(value.node)
    if found is None:
        refuse(f"{name} that depends on data", "Write it as a number, or run the cell with --plain.")
    return found


_AS_UFUNCS = {
    "clip",
    "round",
    "fix",
    "concatenate",
    "outer",
    "isposinf",
    "isneginf",
}  # functions that cast their result as ufuncs do


def into_out(result: Node, out: Any, name: str) -> Any:
    """Return the result, stored into ``out`` if that is given."""
    if not given(out):
        return done(result)
    if isinstance(out, tuple) and len(out) == 1:
        out = out[0]
    if not isinstance(out, Tensor):
        refuse_foreign_store(f"{name} with out=")
    return store_result(out, result, name, reduced=name not in _AS_UFUNCS)


def _lazy_in(value: Any) -> Iterator[Tensor]:
    """Yield the lazy values in an argument, in lists and tuples, too."""
    if isinstance(value, Tensor):
        yield value
    elif type(value) in {list, tuple}:
        for part in value:
            yield from _lazy_in(part)


def at_capture(function: Any, name: str, *values: Any) -> Any:
    """Return ``function`` of values that are known when a cell is captured; raise if a function is captured."""
    capture = context.current()
    if capture is not None and capture.abstract:
        refuse(f"{name} in a function, where values are not known,", "Compute it in a cell, and pass the result.")
    found = function(*map(computed, values))
    sources = [v.node for v in _lazy_in(values)]

    def lazy(value: Any) -> Tensor:
        return done(fixed(constant(np.asarray(value) if np.ndim(value) else value), sources))

    return tuple(map(lazy, found)) if isinstance(found, tuple) else lazy(found)
