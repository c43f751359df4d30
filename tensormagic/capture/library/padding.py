"""``np.pad`` in every mode, on lazy arrays: axis by axis, elements are joined before and after the array."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tensormagic.capture.errors.refusal import refuse
from tensormagic.capture.library.creation import linspace
from tensormagic.capture.library.quantiles import median
from tensormagic.capture.library.reductions import mean_of
from tensormagic.capture.names import implements
from tensormagic.capture.values.arguments import done, extent_number, known, strong, tensor
from tensormagic.capture.values.operands import has_lazy, node_of
from tensormagic.capture.values.value import wrap
from tensormagic.ir.errors import ShapeError
from tensormagic.ir.node import Node
from tensormagic.ir.type import Size, hint, lower_bound
from tensormagic.ops import fold as folds
from tensormagic.ops.fold import fold
from tensormagic.ops.form import to_form
from tensormagic.ops.leaf import constant
from tensormagic.ops.move import broadcast, concatenate, flip, reshape, slice_
from tensormagic.ops.pointwise import astype
from tensormagic.ops.scalars import scalar

_OPTIONS = {
    "empty": "",
    "edge": "",
    "wrap": "",
    "constant": "constant_values",
    "linear_ramp": "end_values",
    "maximum": "stat_length",
    "mean": "stat_length",
    "median": "stat_length",
    "minimum": "stat_length",
    "reflect": "reflect_type",
    "symmetric": "reflect_type",
}


@implements(np.pad)
def pad(array: Any, pad_width: Any, mode: Any = "constant", **options: Any) -> Any:
    """Implement ``np.pad``; with ``mode="empty"`` zeros are padded."""
    x = node_of(array)
    if callable(mode):
        refuse("np.pad with a function as its mode", "Join what the function returns with np.concatenate.")
    if mode not in _OPTIONS:
        raise ValueError(f"mode '{mode}' is not supported")
    unsupported = set(options) - {_OPTIONS[mode]}
    if unsupported:
        raise ValueError(f"unsupported keyword arguments for mode '{mode}': {unsupported}")
    widths = _widths(pad_width, x.type.ndim)
    if mode not in {"constant", "empty"}:
        for axis, pair in enumerate(widths):
            if x.type.shape[axis] == 0 and any(pair):
                raise ShapeError(f"can't extend empty axis {axis} using modes other than 'constant' or 'empty'")
    rule = _rule(mode, options, x)
    for axis, (before, after) in enumerate(widths):
        if before or after:
            x = rule(x, axis, before, after)
    return done(to_form(x, "array")) if any(map(any, widths)) or not x.type.shape else tensor(array).copy()


def _widths(pad_width: Any, rank: int) -> list[tuple[int, int]]:
    if isinstance(pad_width, dict):
        pairs: list[Any] = [(0, 0)] * rank
        for axis, width in pad_width.items():
            pairs[axis] = (width, width) if isinstance(width, int) else width
        pad_width = pairs
    numbers = np.asarray(_numbers(pad_width))
    if numbers.dtype.kind != "i":
        raise TypeError("`pad_width` must be of integral type.")
    pairs = np.broadcast_to(numbers, (rank, 2)).tolist()
    if any(w < 0 for pair in pairs for w in pair):
        raise ValueError("index can't contain negative values")
    return [(int(a), int(b)) for a, b in pairs]


def _numbers(value: Any) -> Any:
    """Return nested lists of widths, each known when the code is captured."""
    if isinstance(value, list | tuple):
        return [_numbers(v) for v in value]
    return known(value, "the width of np.pad")


def _pairs(value: Any, x: Node) -> list[tuple[Node, Node]]:
    """Return, for each axis, two values in the dtype of ``x``."""
    rank = x.type.ndim
    if not has_lazy(value):
        found = np.broadcast_to(np.asarray(value), (rank, 2)).astype(x.type.dtype)
        return [(constant(a), constant(b)) for a, b in found]
    whole = wrap(broadcast(astype(strong(value).node, x.type.dtype), (rank, 2)))
    return [(whole[k, 0].node, whole[k, 1].node) for k in range(rank)]


Rule = Callable[[Node, int, int, int], Node]


def _rule(mode: str, options: dict[str, Any], x: Node) -> Rule:
    """Return the function that pads one axis."""
    option = next(iter(options.values()), None)
    if mode in {"constant", "empty"}:
        values = _pairs(0 if option is None else option, x)
        return lambda v, axis, a, b: _joined(v, axis, (a, values[axis][0]), (b, values[axis][1]))
    if mode == "edge":
        return lambda v, axis, a, b: _joined(v, axis, (a, _end(v, axis, 0)), (b, _end(v, axis, -1)))
    if mode == "linear_ramp":
        ends = _pairs(0 if option is None else option, x)
        return lambda v, axis, a, b: _ramps(v, axis, (a, ends[axis][0]), (b, ends[axis][1]))
    if mode == "wrap":
        return _wrapped
    if mode in {"reflect", "symmetric"}:
        if option not in {None, "even", "odd"}:
            raise ValueError(f"unsupported reflect_type {option!r}")
        return lambda v, axis, a, b: _reflected(v, axis, a, b, odd=option == "odd", edge=mode == "symmetric")
    lengths = np.broadcast_to(np.asarray(option, object), (x.type.ndim, 2)).tolist()
    return lambda v, axis, a, b: _with_statistics(v, axis, (a, b), lengths[axis], mode)


def _part(x: Node, axis: int, start: Size, length: Size) -> Node:
    return slice_(x, tuple((start, length, 1) if k == axis else (0, s, 1) for k, s in enumerate(x.type.shape)))


def _end(x: Node, axis: int, place: int) -> Node:
    return _part(x, axis, 0 if place == 0 else x.type.shape[axis] - 1, 1)


def _joined(x: Node, axis: int, left: tuple[int, Node], right: tuple[int, Node]) -> Node:
    """Return ``x`` between so many copies of each of two values."""
    parts = [x]
    for place, (width, value) in ((0, left), (1, right)):
        if width:
            shape = tuple(width if k == axis else s for k, s in enumerate(x.type.shape))
            parts.insert(place * len(parts), broadcast(astype(value, x.type.dtype), shape))
    return concatenate(parts, axis)


def _between_its_ends(x: Node, axis: int, before: int, after: int) -> Node:
    return _joined(x, axis, (before, _end(x, axis, 0)), (after, _end(x, axis, -1)))


def _ramps(x: Node, axis: int, left: tuple[int, Node], right: tuple[int, Node]) -> Node:
    """Return ``x`` between straight lines from the ends to its edges."""
    parts = [x]
    rest = tuple(s for k, s in enumerate(x.type.shape) if k != axis)
    for place, (width, value) in ((0, left), (1, right)):
        if not width:
            continue
        edge = wrap(reshape(_end(x, axis, -place), rest))
        line = node_of(linspace(wrap(value), edge, width, endpoint=False, dtype=x.type.dtype, axis=axis))
        parts.insert(place * len(parts), flip(line, (axis,)) if place else line)
    return concatenate(parts, axis)


def _with_statistics(x: Node, axis: int, widths: tuple[int, int], lengths: Any, mode: str) -> Node:
    """Return ``x`` between a statistic of its elements, or of those near each end."""
    extent = x.type.shape[axis]
    found: list[Node] = []
    for place, length in enumerate(lengths):
        taken = extent
        if length is not None:
            seen = extent if isinstance(extent, int) else extent_number(x, axis)
            taken = min(int(length), seen)
        if taken == 0 and mode in {"maximum", "minimum"}:
            raise ShapeError("stat_length of 0 yields no value for padding")
        found.append(_statistic(_part(x, axis, extent - taken if place else 0, taken), axis, mode))
    return _joined(x, axis, (widths[0], found[0]), (widths[1], found[1]))


def _statistic(part: Node, axis: int, mode: str) -> Node:
    if mode in {"maximum", "minimum"}:
        return fold(folds.MAX if mode == "maximum" else folds.MIN, part, (axis,), keepdims=True)
    if mode == "mean":
        value = mean_of(part, (axis,))
        value = reshape(value, tuple(1 if k == axis else s for k, s in enumerate(part.type.shape)))
    else:
        value = node_of(median(wrap(part), axis, keepdims=True))
    return scalar.rint(value) if part.type.dtype.kind in "iu" else value


# reflecting and wrapping ----------------------------------------------------------------------------------------------


def _reaches(x: Node, axis: int, most: int) -> bool:
    """Return whether the axis is at least ``most`` long: surely, or at capture, and then the slices check it."""
    extent = x.type.shape[axis]
    least = lower_bound(extent)
    return (least is not None and least >= most) or (hint(extent) or 0) >= most


def _reflected(x: Node, axis: int, before: int, after: int, *, odd: bool, edge: bool) -> Node:
    """Return ``x`` with its mirror image at both ends, repeated where the image is shorter than the padding."""
    if x.type.shape[axis] == 1:
        return _between_its_ends(x, axis, before, after)
    if _reaches(x, axis, max(before, after) + (not edge)):
        return _mirror(_mirror(x, axis, before, odd=odd, edge=edge), axis, after, odd=odd, edge=edge, right=True)
    period = extent_number(x, axis) - (not edge)
    if not period:
        return _between_its_ends(x, axis, before, after)
    length = period + (not edge)
    while before or after:
        whole = (length - (not edge)) // period * period
        left = min(whole, before)
        x = _mirror(x, axis, left, odd=odd, edge=edge)
        length, before = length + left, before - left
        right = min(whole, after)
        x = _mirror(x, axis, right, odd=odd, edge=edge, right=True)
        length, after = length + right, after - right
    return x


def _mirror(x: Node, axis: int, width: int, *, odd: bool, edge: bool, right: bool = False) -> Node:
    """Return ``x`` with ``width`` elements of its mirror image at one end."""
    if not width:
        return x
    offset = int(not edge)
    extent = x.type.shape[axis]
    chunk = flip(_part(x, axis, extent - width - offset if right else offset, width), (axis,))
    if odd:
        chunk = 2 * _end(x, axis, -1 if right else 0) - chunk
    return concatenate([x, chunk] if right else [chunk, x], axis)


def _wrapped(x: Node, axis: int, before: int, after: int) -> Node:
    """Return ``x`` between parts of itself, continued periodically."""
    extent = x.type.shape[axis]
    if _reaches(x, axis, max(before, after)):
        left = [_part(x, axis, extent - before, before)] if before else []
        right = [_part(x, axis, 0, after)] if after else []
        return concatenate([*left, x, *right], axis)
    period = extent_number(x, axis)
    left = [_part(x, axis, period - before % period, before % period)] if before % period else []
    right = [_part(x, axis, 0, after % period)] if after % period else []
    return concatenate([*left, *[x] * (before // period + 1 + after // period), *right], axis)
