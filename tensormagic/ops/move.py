"""Moves: ops that change where elements are, not their values, each with its shape, NumPy call, index map and transpose."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tensormagic.ir.errors import ShapeError
from tensormagic.ir.node import Node, make
from tensormagic.ir.operation import Guard
from tensormagic.ir.size import Size, hint, is_at_least, nodes_of, product
from tensormagic.ir.type import apply, divide_exactly
from tensormagic.ops.leaf import constant
from tensormagic.ops.move_kind import Index, Move, Shape, broadcast_shapes, normalise_axis, same, show
from tensormagic.ops.op import Tangent, Value, has_negative_size
from tensormagic.ops.rows import Axes, Merged, Mixed, common_axis, is_multiple, missing_rows, rows_in, shifted

# broadcast ------------------------------------------------------------------------------------------------------------


def _broadcast_numpy(node: Node, values: Sequence[Value], size: Callable[[Size], int]) -> Value:
    return _stretched(values[0], tuple(size(s) for s in node["shape"]))


def _stretched(value: Value, shape: tuple[int, ...]) -> Value:
    """Return ``np.broadcast_to``, with a fast path for numbers."""
    if any(n < 0 for n in shape):
        raise ShapeError("negative dimensions are not allowed")
    array = np.asarray(value)
    if array.ndim:
        return np.broadcast_to(array, shape)
    result = np.ndarray(shape, array.dtype, array, 0, (0,) * len(shape))
    result.flags.writeable = False
    return result


def _broadcast_text(node: Node, given: str, scope: Any) -> str:
    return f"{scope.text.object(_stretched)}({given}, {scope.shape(node['shape'])})"


def _broadcast_back(node: Node, cotangent: Node) -> Node:
    from tensormagic.ops.fold import reduce_sum

    source, target = node.args[0].type.shape, node["shape"]
    offset = len(target) - len(source)
    axes = [*range(offset), *(offset + k for k, s in enumerate(source) if s == 1 and target[offset + k] != 1)]
    return reshape(reduce_sum(cotangent, tuple(axes)), source) if axes else cotangent


def _broadcast_index(node: Node, index: tuple[Index, ...]) -> tuple[Index, ...]:
    source, target = node.args[0].type.shape, node["shape"]
    kept = index[len(target) - len(source) :]
    return tuple(Index(None) if s == 1 else i for s, i in zip(source, kept, strict=True))


def _broadcast_guards(node: Node) -> list[Guard]:
    source, target = node.args[0].type.shape, node["shape"]
    pairs = zip(source, target[len(target) - len(source) :], strict=True)
    return [(s, "==", t) for s, t in pairs if s not in {1, t}]


def _broadcast_aside(node: Node, scope: Any) -> bool:
    """Return whether all readers broadcast by themselves, because another operand has the whole shape."""
    from tensormagic.ops.pointwise import broadcasts, takes_whole

    return all(broadcasts(u.op) and any(takes_whole(a, u) for a in u.args) for u in scope.users_of(node))


def _broadcast_rows(node: Node, axes: Axes, rows: Size) -> int:
    (axis,), shape = axes, node["shape"]
    found = rows_in(shape, rows) if axis is None else shifted(axis, len(shape) - node.args[0].type.ndim)
    if found is None:
        merged = next((k for k, size in enumerate(shape) if is_multiple(size, rows)), None)
        if merged is not None:
            return Merged(merged, None)
        raise Mixed("has a shape that follows from the number of rows")
    return found


BROADCAST = Move(
    name="broadcast",
    hands_on=True,
    keeps_sign=True,
    raises=has_negative_size,
    split_rows=_broadcast_rows,
    text=_broadcast_text,
    aside=_broadcast_aside,
    doc="Stretch axes of extent 1, and prepend axes.",
    shape=lambda _args, params: params["shape"],
    numpy=_broadcast_numpy,
    back=_broadcast_back,
    index=_broadcast_index,
    check=_broadcast_guards,
    stacked=lambda node, x, size: stretch(x, True, size, node["shape"]),
)


def broadcast(x: Node, shape: Shape) -> Node:
    """Return ``np.broadcast_to``."""
    source = x.type.shape
    if source == shape:
        return x
    if source and broadcast_shapes([source, shape]) != shape and not _fits(source, shape):
        raise ShapeError(f"an array of shape {show(source)} cannot be broadcast to shape {show(shape)}")
    return make(BROADCAST, (x,), shape=shape)


def stretch(x: Node, batched: bool, size: Size, shape: Shape) -> Node:
    """Return ``x`` broadcast to a batch of ``size`` arrays of ``shape``; if ``batched``, its first axis is the batch."""
    if batched:
        own = x.type.shape[1:]
        x = reshape(x, (x.type.shape[0], *[1] * (len(shape) - len(own)), *own))
    return broadcast(x, (size, *shape))


def lead(x: Node, batched: bool, size: Size) -> Node:
    """Return ``x`` as a batch of ``size``: itself if ``batched``, else repeated."""
    if not batched and x.type.form == "tape":
        from tensormagic.ops.reverse.tape import lead_tape

        return lead_tape(x, size)
    return x if batched else broadcast(x, (size, *x.type.shape))


def _fits(source: Shape, target: Shape) -> bool:
    tail = target[len(target) - len(source) :]
    return len(source) <= len(target) and all(s == 1 or same(s, t) for s, t in zip(source, tail, strict=True))


# transpose ------------------------------------------------------------------------------------------------------------


def _inverse(permutation: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(permutation.index(k) for k in range(len(permutation)))


TRANSPOSE = Move(
    name="transpose",
    keeps_sign=True,
    split_rows=lambda node, axes, _rows: shifted(a := common_axis(axes), node["permutation"].index(a) - a),
    doc="Permute the axes.",
    shape=lambda args, params: tuple(args[0].type.shape[k] for k in params["permutation"]),
    numpy=lambda node, values, _size: np.transpose(values[0], node["permutation"]),
    back=lambda node, cotangent: transpose(cotangent, _inverse(node["permutation"])),
    index=lambda node, index: tuple(index[k] for k in _inverse(node["permutation"])),
    stacked=lambda node, x, _size: transpose(x, (0, *(k + 1 for k in node["permutation"]))),
    text=lambda node, x, _scope: f"{x}.transpose({node['permutation']})",
)


def transpose(x: Node, permutation: tuple[int, ...] | None = None) -> Node:
    """Return ``np.transpose``."""
    rank = x.type.ndim
    axes = tuple(reversed(range(rank))) if permutation is None else tuple(normalise_axis(k, rank) for k in permutation)
    if sorted(axes) != list(range(rank)):
        raise ShapeError(
            f"axes {permutation} are no permutation of the {rank} axes of an array of shape {show(x.type.shape)}"
        )
    return x if axes == tuple(range(rank)) else make(TRANSPOSE, (x,), permutation=axes)


# reshape --------------------------------------------------------------------------------------------------------------


def _kept_axes(shape: Shape) -> list[int]:
    return [k for k, s in enumerate(shape) if s != 1]


def squeezes(node: Node) -> bool:
    """Return whether a reshape only adds and drops axes of extent 1, so that it has an index map."""
    source, target = node.args[0].type.shape, node["shape"]
    return [source[k] for k in _kept_axes(source)] == [target[k] for k in _kept_axes(target)]


def _reshape_index(node: Node, index: tuple[Index, ...]) -> tuple[Index, ...]:
    kept = iter([index[k] for k in _kept_axes(node["shape"])])
    return tuple(Index(None) if s == 1 else next(kept) for s in node.args[0].type.shape)


def _reshape_guards(node: Node) -> list[Guard]:
    before, after = product(node.args[0].type.shape), product(node["shape"])
    return [] if before == after else [(before, "==", after)]


def _reshape_text(node: Node, x: str, scope: Any) -> str | None:
    source, target = node.args[0].type, node.type
    if not target.shape:
        return f"{x}[{', '.join('0' * source.ndim)}]" if target.form == "scalar" else None
    own = x if source.shape else f"{scope.text.object(np.asarray)}({x})"
    return f"{own}.reshape({scope.shape(target.shape)})"


def without_ones(shape: Sequence[Size]) -> list[Size]:
    """Return a shape without its axes of extent 1."""
    return [s for s in shape if s != 1]


def _reshape_aside(node: Node, scope: Any) -> bool:
    """Return whether all readers are stores or rows of numbers, which ignore axes of extent 1."""
    users = scope.users_of(node)
    stored = users and all(u.op.kind == "update" and takes_dropped(u, node) for u in users)
    return bool(stored or (users and all(map(is_row, users))))


def is_row(node: Node) -> bool:
    """Return whether a node concatenates numbers into one row."""
    return node.op is CONCATENATE and all(
        a.op is RESHAPE and not a.args[0].type.shape and a.type.ndim == 1 for a in node.args
    )


def drops_ones(node: Node, users: Sequence[Node]) -> bool:
    """Return whether the axes of extent 1 of a slice do not matter to its only reader."""
    if node.op is not SLICE or len(users) != 1 or 1 not in (shape := node.type.shape):
        return False
    if users[0].op is RESHAPE:
        return list(users[0]["shape"]) == without_ones(shape)
    return not without_ones(shape) and _is_moved(node, users[0])


def _is_moved(part: Node, store: Node) -> bool:
    """Return whether a slice is stored unchanged into an array of the same dtype."""
    sets = store.op.name == "set" and store.type.dtype == part.type.dtype
    return sets and len(store.args) == 2 and store.args[1] is part and store.args[0] is not part


def takes_dropped(store: Node, value: Node) -> bool:
    """Return whether the stored value is another one with axes of extent 1 added."""
    if len(store.args) != 2 or store.args[1] is not value or store.args[0] is value or value.op is not RESHAPE:
        return False
    return 1 in value["shape"] and list(value.args[0].type.shape) == without_ones(value["shape"])


def _reshape_rows(node: Node, axes: Axes, rows: Size) -> int:
    axis, before, after = common_axis(axes), node.args[0].type.shape, node["shape"]
    kept = _place_of(axis, axis + 1, before, after)
    if kept is not None:
        return shifted(axis, kept - axis)
    if isinstance(axis, Merged):
        if axis.of is None:
            raise Mixed("puts rows together with other axes")
        before, axis = (*before[:axis], *axis.of, *before[axis + 1 :]), axis + axis.at
    for first in range(axis, -1, -1):
        for last in range(axis + 1, len(before) + 1):
            found = _place_of(first, last, before, after)
            if found is not None:
                return Merged(found, before[first:last], axis - first) if last - first > 1 else found
    raise Mixed("puts rows together with other axes")


def _place_of(first: int, last: int, before: Shape, after: Shape) -> int | None:
    """Return the axis that the axes from ``first`` to ``last`` become in a reshape, or None."""
    size, ahead = product(before[first:last]), product(before[:first])
    return next((k for k, s in enumerate(after) if s == size and product(after[:k]) == ahead), None)


RESHAPE = Move(
    name="reshape",
    keeps_sign=True,
    split_rows=_reshape_rows,
    text=_reshape_text,
    aside=_reshape_aside,
    doc="The same elements in C order, in another shape.",
    shape=lambda _args, params: params["shape"],
    numpy=lambda node, values, size: np.reshape(values[0], tuple(size(s) for s in node["shape"])),
    back=lambda node, cotangent: reshape(cotangent, node.args[0].type.shape),
    index=_reshape_index,
    check=_reshape_guards,
    stacked=lambda node, x, size: reshape(x, (size, *node["shape"])),
)


def reshape(x: Node, shape: Shape) -> Node:
    """Return ``np.reshape`` in C order; one size may be -1."""
    source = x.type.shape
    if -1 in shape:
        known = product(tuple(s for s in shape if s != -1))
        total = product(source)
        missing = _quotient(total, known)
        if missing is None or shape.count(-1) > 1:
            raise ShapeError(f"cannot reshape array of size {hint(total)} into shape {show(shape)}")
        shape = tuple(missing if s == -1 else s for s in shape)
    if not same(product(source), product(shape)):
        raise ShapeError(f"cannot reshape array of size {hint(product(source))} into shape {show(shape)}")
    return x if shape == source else make(RESHAPE, (x,), shape=shape)


def _quotient(total: Size, known: Size) -> Size | None:
    if known in {0, 1}:
        return total if known == 1 else None
    seen = hint(total), hint(known)
    if None not in seen and seen[0] % seen[1]:  # type: ignore[operator]
        return None
    exact = divide_exactly(total, known)
    return exact if exact is not None else apply("floordiv", total, known)


def expand_dims(x: Node, axes: tuple[int, ...]) -> Node:
    """Return ``x`` with axes of extent 1 inserted, at positions in the result."""
    rest = iter(x.type.shape)
    rank = x.type.ndim + len(axes)
    return reshape(x, tuple(1 if k in axes else next(rest) for k in range(rank)))


# slice ----------------------------------------------------------------------------------------------------------------


def _slice_numpy(node: Node, values: Sequence[Value], size: Callable[[Size], int]) -> Value:
    return np.asarray(values[0])[concrete_slices(node, size)]


def concrete_slices(node: Node, size: Callable[[Size], int]) -> tuple[slice, ...]:
    """Return the Python slices of a ``slice`` or ``update`` node for the sizes of one run."""
    result: list[slice] = []
    for start, length, step in node["slices"]:
        result.append(_part(size(start), size(length), step))
    return tuple(result)


def _part(first: int, count: int, step: int) -> slice:
    """Return the slice of ``count`` elements from ``first`` on."""
    stop = first + count * step
    return slice(first, None if stop < 0 else stop, step) if count else slice(0, 0)


def slice_guards(slices: tuple[tuple[Size, Size, int], ...], shape: Shape) -> list[Guard]:
    """Return the guards that the first and last element of every slice exist, or that it is empty and begins within the axis."""
    guards: list[Guard] = []
    for (start, length, step), extent in zip(slices, shape, strict=True):
        last = start + (length - 1) * step
        low, high = (start, last) if step > 0 else (last, start)
        inside = [(low, ">=", 0), (extent - 1 - high, ">=", 0), *([(length, ">=", 0)] if nodes_of(length) else [])]
        guards += [g for g in inside if not is_at_least(g[0], 0)]
    return guards


def places(slices: Slices, shape: Sequence[Size], scope: Any, *, drops: bool = False) -> str:
    """Return the index of a slice as Python text; with ``drops``, axes of extent 1 are indexed by numbers."""
    parts: list[str] = []
    for (start, length, step), extent in zip(slices, shape, strict=True):
        first, count = scope.size(start), scope.size(length)
        if drops and length == 1:
            parts.append(first)
        elif (start, length, step) == (0, extent, 1):
            parts.append(":")
        elif step > 0:
            stop = scope.size(start + length * step)
            parts.append(f"{first}:{stop}" if step == 1 else f"{first}:{stop}:{step}")
        else:
            parts.append(f"{scope.text.object(_part)}({first}, {count}, {step})")
    return ", ".join(parts) or "()"


def _slice_text(node: Node, x: str, scope: Any) -> str | None:
    return f"{x}[{places(node['slices'], node.args[0].type.shape, scope, drops=scope.drops(node))}]"


def _slice_rows(node: Node, axes: Axes, rows: Size) -> int:
    """Return the axis of rows for a slice of all rows, or of all but a fixed number of first and last ones; raise Mixed for others."""
    axis = common_axis(axes)
    start, length, step = node["slices"][axis]
    less = missing_rows(length, node.args[0].type.shape[axis])
    if step != 1 or less is None or not isinstance(start, int) or start < 0 or (less and isinstance(axis, Merged)):
        raise Mixed("picks or moves rows")
    return axis


def _slice_apart(node: Node) -> Node | None:
    from tensormagic.ops.indices.few_rows import rows_of_slice

    return rows_of_slice(node)


SLICE = Move(
    name="slice",
    apart_rows=_slice_apart,
    keeps_sign=True,
    split_rows=_slice_rows,
    text=_slice_text,
    doc="A strided part: per axis a start, a length and a step (which may be negative).",
    shape=lambda _args, params: tuple(length for _, length, _ in params["slices"]),
    numpy=_slice_numpy,
    index=lambda node, index: tuple(
        i.through(start, step) for i, (start, _, step) in zip(index, node["slices"], strict=True)
    ),
    check=lambda node: [] if 0 in node.type.shape else slice_guards(node["slices"], node.args[0].type.shape),
    back=lambda node, cotangent: _slice_back(node, cotangent),
    stacked=lambda node, x, size: slice_(x, ((0, size, 1), *node["slices"])),
)


def _slice_back(node: Node, cotangent: Node) -> Node:
    from tensormagic.ops.update import add_at, zeros_like

    return add_at(zeros_like(node.args[0], cotangent.type.dtype), cotangent, node["slices"])


Slices = tuple[tuple[Size, Size, int], ...]


def slice_(x: Node, slices: Slices) -> Node:
    """Return the part of ``x`` given by ``(start, length, step)`` for each axis."""
    whole = tuple((0, s, 1) for s in x.type.shape)
    return x if slices == whole else make(SLICE, (x,), slices=slices)


def flip(x: Node, axes: tuple[int, ...]) -> Node:
    """Return ``np.flip``."""
    return slice_(x, tuple((s - 1, s, -1) if k in axes else (0, s, 1) for k, s in enumerate(x.type.shape)))


# concatenate ----------------------------------------------------------------------------------------------------------


def _concatenate_shape(args: tuple[Node, ...], params: Mapping[str, Any]) -> Shape:
    axis = params["axis"]
    shapes = [a.type.shape for a in args]
    for k, other in enumerate(shapes[1:], 1):
        if len(other) != len(shapes[0]):
            raise ShapeError(
                "all the input arrays must have same number of dimensions, but the array at index 0 has "
                f"{len(shapes[0])} dimension(s) and the array at index {k} has {len(other)} dimension(s)"
            )
        fits = all(at == axis or same(s, t) for at, (s, t) in enumerate(zip(shapes[0], other, strict=True)))
        if not fits:
            given = ", ".join(map(show, shapes))
            raise ShapeError(
                "all the input array dimensions except for the concatenation axis must match exactly: "
                f"{given} along axis {axis}"
            )
    total: Size = 0
    for shape in shapes:
        total = total + shape[axis]
    return (*shapes[0][:axis], total, *shapes[0][axis + 1 :])


@dataclass(frozen=True, eq=False, kw_only=True)
class Concatenate(Move):
    """The only move with several operands."""

    def jvp(self, node: Node, tangents: Sequence[Tangent]) -> Tangent:
        if all(t is None for t in tangents):
            return None
        filled = [
            broadcast(constant(a.type.dtype.type(0)), a.type.shape) if t is None else t
            for a, t in zip(node.args, tangents, strict=True)
        ]
        return make(self, filled, **node.params)

    def transpose(self, node: Node, cotangent: Node, linear: Sequence[bool]) -> Sequence[Tangent]:
        axis, offset = node["axis"], 0
        parts: list[Tangent] = []
        for arg, wanted in zip(node.args, linear, strict=True):
            slices = tuple((offset if k == axis else 0, s, 1) for k, s in enumerate(arg.type.shape))
            parts.append(slice_(cotangent, slices) if wanted else None)
            offset = offset + arg.type.shape[axis]
        return parts

    def batch(self, node: Node, args: Sequence[Node], batched: Sequence[bool], size: Size) -> Node:
        return make(self, [lead(a, b, size) for a, b in zip(args, batched, strict=True)], axis=node["axis"] + 1)

    def expression(self, node: Node, given: Sequence[str], scope: Any) -> str | None:
        if is_row(node):
            numbers = [g if scope.is_dropped(a, g) else f"{g}[0]" for a, g in zip(node.args, given, strict=True)]
            return f"{scope.text.object(np.array)}([{', '.join(numbers)}], {scope.text.object(node.type.dtype)})"
        return f"{scope.text.object(np.concatenate)}(({', '.join(given)},), {node['axis']})"

    def guards(self, node: Node) -> list[Guard]:
        first = node.args[0].type.shape
        return [
            (s, "==", t)
            for other in node.args[1:]
            for k, (s, t) in enumerate(zip(first, other.type.shape, strict=True))
            if k != node["axis"] and s != t
        ]


def _concatenate_rows(node: Node, axes: Axes, rows: Size) -> int:
    axis = common_axis(axes)
    if axis == node["axis"]:
        raise Mixed("puts rows after one another")
    return axis


CONCATENATE = Concatenate(
    name="concatenate",
    split_rows=_concatenate_rows,
    doc="Join along an axis.",
    shape=_concatenate_shape,
    numpy=lambda node, values, _size: np.concatenate(values, axis=node["axis"]),
)


def concatenate(parts: Sequence[Node], axis: int) -> Node:
    """Return ``np.concatenate`` of parts of one dtype."""
    return parts[0] if len(parts) == 1 else make(CONCATENATE, parts, axis=axis)
