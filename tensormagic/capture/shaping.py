"""NumPy's functions that move elements, and those that choose between them, on lazy arrays."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from tensormagic.capture import context
from tensormagic.capture.names import implements
from tensormagic.capture.numbers import is_huge
from tensormagic.capture.value import Tensor, as_size, build, hooks, node_of, read_only, refuse, wrap
from tensormagic.ir.errors import ShapeError
from tensormagic.ir.node import Node
from tensormagic.ir.type import Size, apply
from tensormagic.ops import scalar
from tensormagic.ops.form import to_form
from tensormagic.ops.leaf import iota
from tensormagic.ops.move import (
    broadcast,
    broadcast_shapes,
    concatenate,
    expand_dims,
    flip,
    normalise_axis,
    reshape,
    slice_,
)
from tensormagic.ops.pointwise import astype
from tensormagic.ops.update import zeros_like


def tensor(value: Any) -> Tensor:
    """``value`` as a lazy array."""
    return value if isinstance(value, Tensor) else wrap(node_of(value))


def _done(node: Node) -> Tensor:
    return wrap(context.record(node))


@implements(np.reshape)
def reshape_(a: Any, /, shape: Any, order: str = "C", *, copy: bool | None = None) -> Any:
    """``np.reshape``."""
    result = tensor(a).reshape(shape, order=order)
    return result.copy() if copy else result


@implements(np.ravel)
def ravel(a: Any, order: str = "C") -> Any:
    """``np.ravel``."""
    return tensor(a).ravel(order)


@implements(np.size)
def size(a: Any, axis: int | None = None) -> Any:
    """``np.size``."""
    return tensor(a).size if axis is None else tensor(a).shape[axis]


implements(np.shape)(lambda a: tensor(a).shape)
implements(np.ndim)(lambda a: tensor(a).ndim)
implements(np.transpose)(lambda a, axes=None: tensor(a).transpose(*(() if axes is None else (axes,))))
implements(np.matrix_transpose)(lambda x, /: tensor(x).mT)
implements(np.swapaxes)(lambda a, axis1, axis2: tensor(a).swapaxes(axis1, axis2))
implements(np.copy)(lambda a, order="K", subok=False: tensor(a).copy())
implements(np.astype)(lambda x, dtype, /, *, copy=True, device=None: tensor(x).astype(dtype, copy=copy))
implements(np.real)(lambda val: tensor(val).real)
implements(np.imag)(lambda val: tensor(val).imag)


def _flatten(self: Any, order: str = "C") -> Any:
    return tensor(self).reshape(-1, order=order).copy()


hooks.methods["flatten"] = _flatten
hooks.methods["conj"] = hooks.methods["conjugate"] = lambda self: build(scalar.conjugate, self)


@implements(np.angle)
def angle(z: Any, deg: bool = False) -> Any:
    """``np.angle``."""
    x = tensor(z)
    result = build(scalar.arctan2, x.imag, x.real)
    return result * (180 / np.pi) if deg else result


@implements(np.moveaxis)
def moveaxis(a: Any, source: Any, destination: Any) -> Any:
    """``np.moveaxis``."""
    x = tensor(a)
    start = [normalise_axis(k, x.ndim) for k in np.atleast_1d(source).tolist()]
    stop = [normalise_axis(k, x.ndim) for k in np.atleast_1d(destination).tolist()]
    order = [k for k in range(x.ndim) if k not in start]
    for target, axis in sorted(zip(stop, start, strict=True)):
        order.insert(target, axis)
    return x.transpose(order)


@implements(np.expand_dims)
def expand_dims_(a: Any, axis: Any) -> Any:
    """``np.expand_dims``."""
    x = tensor(a)
    axes = axis if isinstance(axis, tuple | list) else (axis,)
    rank = x.ndim + len(axes)
    found = tuple(normalise_axis(int(k), rank) for k in axes)
    return x.view_of(
        lambda n: expand_dims(n, found),
        lambda old, new: reshape(new, old.type.shape),
        lambda v: np.expand_dims(v, found),
    )


@implements(np.squeeze, method="squeeze")
def squeeze(a: Any, axis: Any = None) -> Any:
    """``np.squeeze``."""
    x = tensor(a)
    shape = x.type.shape
    axes = (
        [k for k, s in enumerate(shape) if s == 1]
        if axis is None
        else [normalise_axis(int(k), x.ndim) for k in (axis if isinstance(axis, tuple) else (axis,))]
    )
    if any(shape[k] != 1 for k in axes):
        raise ShapeError("cannot select an axis to squeeze out which has size not equal to one")
    kept = tuple(s for k, s in enumerate(shape) if k not in axes)
    return x.view_of(
        lambda n: to_form(reshape(n, kept), "array") if not kept else reshape(n, kept),
        lambda old, new: reshape(new, old.type.shape),
        lambda v: np.squeeze(v, tuple(axes)),
    )


def _shape(shape: Any) -> tuple[Size, ...]:
    return tuple(context.settle(as_size(s)) for s in (shape if isinstance(shape, tuple | list) else (shape,)))


@implements(np.broadcast_to)
def broadcast_to(array: Any, shape: Any, subok: bool = False) -> Any:
    """``np.broadcast_to``."""
    del subok
    sizes = _shape(shape)
    return read_only(_done(broadcast(node_of(array), sizes) if sizes else to_form(node_of(array), "array")))


@implements(np.broadcast_arrays)
def broadcast_arrays(*args: Any, subok: bool = False) -> Any:
    """``np.broadcast_arrays``."""
    del subok
    nodes = [node_of(a) for a in args]
    shape = broadcast_shapes([n.type.shape for n in nodes])
    return tuple(read_only(_done(broadcast(n, shape))) for n in nodes)


# joining and splitting ------------------------------------------------------------------------------------------------


def _promoted(arrays: Sequence[Any]) -> list[Node]:
    nodes = [node_of(a) for a in arrays]
    dtype = np.result_type(*(n.type.dtype for n in nodes))
    return [astype(n, dtype) for n in nodes]


@implements(np.concatenate)
def concatenate_(
    arrays: Any, /, axis: int | None = 0, out: Any = None, *, dtype: Any = None, casting: str = "same_kind"
) -> Any:
    """``np.concatenate``."""
    del casting
    if out is not None:
        refuse("np.concatenate with out=", "Assign the result instead.")
    nodes = _promoted(list(arrays))
    if any(not n.type.ndim for n in nodes) and axis is not None:
        raise ShapeError("zero-dimensional arrays cannot be concatenated")
    if axis is None:
        nodes, axis = [reshape(n, (-1,)) for n in nodes], 0
    result = concatenate(nodes, normalise_axis(axis, nodes[0].type.ndim))
    return _done(result if dtype is None else astype(result, dtype))


@implements(np.stack)
def stack(arrays: Any, axis: int = 0, out: Any = None, **options: Any) -> Any:
    """``np.stack``."""
    nodes = [node_of(a) for a in arrays]
    if any(n.type.ndim != nodes[0].type.ndim for n in nodes):
        raise ShapeError("all input arrays must have the same shape")
    position = normalise_axis(axis, nodes[0].type.ndim + 1)
    return concatenate_([expand_dims(n, (position,)) for n in nodes], position, out, **options)


def _at_least(x: Node, rank: int) -> Node:
    shape = x.type.shape
    if len(shape) >= rank:
        return x
    if rank == 2:
        return reshape(x, (1, *shape) if shape else (1, 1))
    return reshape(x, {0: (1, 1, 1), 1: (1, *shape, 1), 2: (*shape, 1)}[len(shape)] if rank == 3 else (1,))


def _of_rank(value: Any, rank: int) -> Tensor:
    """A view with at least ``rank`` axes."""
    x = tensor(value)
    return x if x.ndim >= rank else x.reshape(_at_least(x.node, rank).type.shape)


implements(np.atleast_1d)(lambda *arys: _one_or_more([_of_rank(v, 1) for v in arys]))
implements(np.atleast_2d)(lambda *arys: _one_or_more([_of_rank(v, 2) for v in arys]))
implements(np.atleast_3d)(lambda *arys: _one_or_more([_of_rank(v, 3) for v in arys]))


def _one_or_more(values: list[Any]) -> Any:
    return values[0] if len(values) == 1 else tuple(values)


@implements(np.hstack)
def hstack(tup: Any, **options: Any) -> Any:
    """``np.hstack``."""
    nodes = [_at_least(node_of(a), 1) for a in tup]
    return concatenate_(nodes, 0 if nodes[0].type.ndim == 1 else 1, **options)


@implements(np.vstack)
def vstack(tup: Any, **options: Any) -> Any:
    """``np.vstack``."""
    return concatenate_([_at_least(node_of(a), 2) for a in tup], 0, **options)


@implements(np.column_stack)
def column_stack(tup: Any) -> Any:
    """``np.column_stack``."""
    nodes = [node_of(a) for a in tup]
    return concatenate_([reshape(n, (-1, 1)) if n.type.ndim < 2 else n for n in nodes], 1)


@implements(np.append)
def append(arr: Any, values: Any, axis: int | None = None) -> Any:
    """``np.append``."""
    return concatenate_((tensor(arr), tensor(values)), axis)


@implements(np.split)
def split(ary: Any, indices_or_sections: Any, axis: int = 0) -> Any:
    """``np.split``: views."""
    x = tensor(ary)
    axis = normalise_axis(axis, x.ndim)
    extent = x.type.shape[axis]
    if isinstance(indices_or_sections, int | np.integer):
        parts = int(indices_or_sections)
        total = int(x.shape[axis])
        if total % parts:
            raise ShapeError("array split does not result in an equal division")
        bounds: list[Any] = [total // parts * k for k in range(1, parts)]
    else:
        bounds = list(indices_or_sections)
    edges = [0, *bounds, extent if isinstance(extent, int) else None]
    return [x[(slice(None),) * axis + (slice(a, b),)] for a, b in itertools.pairwise(edges)]


# order ----------------------------------------------------------------------------------------------------------------


@implements(np.flip)
def flip_(m: Any, axis: Any = None) -> Any:
    """``np.flip``: a view."""
    x = tensor(m)
    axes = (
        tuple(range(x.ndim))
        if axis is None
        else tuple(normalise_axis(k, x.ndim) for k in (axis if isinstance(axis, tuple) else (axis,)))
    )
    return x.view_of(lambda n: flip(n, axes), lambda _old, new: flip(new, axes), lambda v: np.flip(v, axes))


implements(np.flipud)(lambda m: flip_(m, 0))
implements(np.fliplr)(lambda m: flip_(m, 1))


@implements(np.roll)
def roll(a: Any, shift: Any, axis: Any = None) -> Any:
    """``np.roll`` by numbers that are known."""
    x = node_of(a)
    if axis is None:
        return tensor(roll(reshape(x, (-1,)), shift, 0)).reshape(x.type.shape)
    if isinstance(axis, tuple):
        for s, k in zip(np.broadcast_to(shift, len(axis)).tolist(), axis, strict=True):
            x = node_of(roll(x, s, k))
        return _done(x)
    k = normalise_axis(int(axis), x.type.ndim)
    extent = x.type.shape[k]
    if extent in {0, 1}:
        return _done(x)
    by = apply("mod", as_size(shift), extent)

    def part(start: Size, length: Size) -> Node:
        return slice_(x, tuple((start, length, 1) if d == k else (0, s, 1) for d, s in enumerate(x.type.shape)))

    return _done(concatenate([part(extent - by, by), part(0, extent - by)], k)) if by != 0 else _done(x)


@implements(np.diff)
def diff(a: Any, n: int = 1, axis: int = -1, prepend: Any = None, append: Any = None) -> Any:
    """``np.diff``."""
    if (prepend is not None and prepend is not np._NoValue) or (append is not None and append is not np._NoValue):  # type: ignore[attr-defined] # noqa: SLF001 (NumPy's mark)
        refuse("np.diff with prepend or append", "Concatenate first.")
    x = tensor(a)
    axis = normalise_axis(axis, x.ndim)
    lead = (slice(None),) * axis
    for _ in range(n):
        high, low = x[(*lead, slice(1, None))], x[(*lead, slice(None, -1))]
        x = build(scalar.not_equal, high, low) if x.dtype.kind == "b" else high - low
    return x


@implements(np.tile)
def tile(A: Any, reps: Any) -> Any:
    """``np.tile`` by numbers that are known."""
    x = node_of(A)
    counts = _shape(reps)
    rank = max(len(counts), x.type.ndim)
    counts = (1,) * (rank - len(counts)) + counts
    shape = (1,) * (rank - x.type.ndim) + x.type.shape
    wide = reshape(x, tuple(s for extent in shape for s in (1, extent)))
    stretched = broadcast(wide, tuple(s for count, extent in zip(counts, shape, strict=True) for s in (count, extent)))
    return _done(reshape(stretched, tuple(count * extent for count, extent in zip(counts, shape, strict=True))))


@implements(np.repeat, method="repeat")
def repeat(a: Any, repeats: Any, axis: int | None = None) -> Any:
    """``np.repeat`` by one number."""
    if np.ndim(repeats) and not isinstance(repeats, Tensor):
        refuse("np.repeat with several counts", "Use one count, or run the cell with --plain.")
    x = node_of(a)
    if axis is None:
        x, axis = reshape(x, (-1,)), 0
    x = x if x.type.ndim else reshape(x, (1,))
    axis = normalise_axis(axis, x.type.ndim)
    shape, count = x.type.shape, context.settle(as_size(repeats))
    wide = broadcast(expand_dims(x, (axis + 1,)), (*shape[: axis + 1], count, *shape[axis + 1 :]))
    return _done(reshape(wide, (*shape[:axis], shape[axis] * count, *shape[axis + 1 :])))


# diagonals and triangles ----------------------------------------------------------------------------------------------


@implements(np.diagonal, method="diagonal")
def diagonal(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Any:
    """``np.diagonal``."""
    x = tensor(a)
    order = [k for k in range(x.ndim) if k not in {normalise_axis(axis1, x.ndim), normalise_axis(axis2, x.ndim)}]
    moved = x.transpose([*order, normalise_axis(axis1, x.ndim), normalise_axis(axis2, x.ndim)]).node
    *lead, rows, columns = moved.type.shape
    length = context.settle(
        apply(
            "max", apply("min", rows if offset >= 0 else rows + offset, columns - offset if offset > 0 else columns), 0
        )
    )
    from tensormagic.ops.fold import reduce_sum

    first: Size = 0 if offset >= 0 else -offset
    second: Size = max(offset, 0)
    whole = tuple((0, s, 1) for s in lead)
    square = slice_(moved, (*whole, (first, length, 1), (second, length, 1)))
    shape = square.type.shape
    on = scalar.equal(iota(shape, len(lead)), iota(shape, len(lead) + 1))
    return read_only(_done(astype(reduce_sum(scalar.where(on, square, zeros_like(square)), (len(lead) + 1,)), x.dtype)))


@implements(np.diag)
def diag(v: Any, k: int = 0) -> Any:
    """``np.diag``."""
    x = node_of(v)
    if x.type.ndim == 2:
        return diagonal(v, k)
    if x.type.ndim != 1:
        raise ShapeError("Input must be 1- or 2-d.")
    if k:
        refuse("np.diag of a vector off the main diagonal", "Use np.diag(v) and pad, or run the cell with --plain.")
    n = x.type.shape[0]
    shape = (n, n)
    return _done(
        scalar.where(scalar.equal(iota(shape, 0), iota(shape, 1)), broadcast(x, shape), x.type.dtype.type(0).item())
    )


def _triangle(m: Any, k: int, keep: Any) -> Any:
    x = node_of(m)
    x = broadcast(x, (x.type.shape[0], x.type.shape[0])) if x.type.ndim == 1 else x
    shape = x.type.shape
    rows, columns = iota(shape, len(shape) - 2), iota(shape, len(shape) - 1)
    return _done(scalar.where(keep(columns, rows + as_size_node(k)), x, zeros_like(x)))


def as_size_node(k: Any) -> Any:
    """An int or a size as an operand."""
    from tensormagic.ops.leaf import size_node

    return size_node(as_size(k))


implements(np.tril)(lambda m, k=0: _triangle(m, k, scalar.less_equal))
implements(np.triu)(lambda m, k=0: _triangle(m, k, scalar.greater_equal))


# choice ---------------------------------------------------------------------------------------------------------------


@implements(np.where)
def where(condition: Any, /, *values: Any) -> Any:
    """``np.where`` with three arguments."""
    if len(values) != 2:
        refuse("np.where with one argument", "Its result has a size that depends on data; run the cell with --plain.")
    chosen = list(values)
    for k, other in ((0, 1), (1, 0)):
        if type(chosen[k]) is int and not is_huge(chosen[k]):  # NumPy wraps here what does not fit
            dtype = node_of(chosen[other]).type
            if dtype.form != "python" and dtype.dtype.kind in "iu":
                chosen[k] = np.asarray(chosen[k]).astype(dtype.dtype)[()]
    return build(scalar.where, condition, *chosen)


@implements(np.clip, method="clip")
def clip(
    a: Any, a_min: Any = None, a_max: Any = None, out: Any = None, *, min: Any = None, max: Any = None, **options: Any
) -> Any:
    """``np.clip``."""
    if options:
        refuse(f"np.clip with {', '.join(options)}", "Leave the option out.")
    low = min if a_min is None or a_min is np._NoValue else a_min  # type: ignore[attr-defined] # noqa: SLF001 (NumPy's mark)
    high = max if a_max is None or a_max is np._NoValue else a_max  # type: ignore[attr-defined] # noqa: SLF001 (NumPy's mark)
    low = None if low is np._NoValue else low  # type: ignore[attr-defined] # noqa: SLF001 (NumPy's mark)
    high = None if high is np._NoValue else high  # type: ignore[attr-defined] # noqa: SLF001 (NumPy's mark)
    result = tensor(a)
    if low is not None:
        result = build(scalar.maximum, result, low)
    if high is not None:
        result = build(scalar.minimum, result, high)
    return _out(result, out, "clip")


def _out(result: Tensor, out: Any, name: str) -> Any:
    """The result, stored into ``out`` where that is given."""
    if out is None:
        return result
    from tensormagic.capture.operators import store_result

    return store_result(out, result.node, name)


@implements(np.nan_to_num)
def nan_to_num(x: Any, copy: bool = True, nan: Any = 0.0, posinf: Any = None, neginf: Any = None) -> Any:
    """``np.nan_to_num``."""
    if not copy:
        refuse("np.nan_to_num with copy=False", "Assign the result instead.")
    value = tensor(x)
    if value.dtype.kind != "f":
        return value
    limits = np.finfo(value.dtype)
    value = where(build(scalar.isnan, value), nan, value)
    value = where(build(scalar.equal, value, np.inf), limits.max.item() if posinf is None else posinf, value)
    return where(build(scalar.equal, value, -np.inf), limits.min.item() if neginf is None else neginf, value)


@implements(np.round, np.around, method="round")
def round_(a: Any, decimals: int = 0, out: Any = None) -> Any:
    """``np.round``: to even at halves; to decimals as NumPy does, by a power of ten."""
    x = tensor(a)
    if x.dtype.kind in "biu" and decimals >= 0:
        return _out(x.copy() if x.dtype.kind != "b" else build(scalar.rint, x), out, "round")
    if x.dtype.kind != "f":
        refuse(f"np.round of {x.dtype} to {decimals} decimals", "Convert it with astype(float), or round the parts.")
    power = 10.0 ** abs(decimals)
    if decimals == 0:
        return _out(build(scalar.rint, x), out, "round")
    scaled = x * power if decimals > 0 else x / power
    rounded = build(scalar.rint, scaled)
    return _out(rounded / power if decimals > 0 else rounded * power, out, "round")


@implements(np.fix)
def fix(x: Any, out: Any = None) -> Any:
    """``np.fix``: rounded to zero."""
    return _out(build(scalar.trunc, x), out, "fix")


@implements(np.fabs)
def fabs(x: Any) -> Any:
    """``np.fabs``: the absolute value of a real number, as a float."""
    value = tensor(x)
    if value.dtype.kind == "c":
        refuse("np.fabs of complex numbers", "Use np.abs.")
    return build(scalar.absolute, value if value.dtype.kind == "f" else build(scalar.rint, value))


@implements(np.float_power)
def float_power(x1: Any, x2: Any) -> Any:
    """``np.float_power``: a power in double precision."""
    values = [tensor(v) for v in (x1, x2)]
    kind = np.complex128 if any(v.dtype.kind == "c" for v in values) else np.float64
    return build(scalar.power, *(v.astype(kind) for v in values))


implements(np.isscalar)(
    lambda element: element.type.form != "array" if isinstance(element, Tensor) else np.isscalar(element)
)
implements(np.iscomplexobj)(lambda x: tensor(x).dtype.kind == "c")
implements(np.isrealobj)(lambda x: tensor(x).dtype.kind != "c")


@implements(np.sinc)
def sinc(x: Any) -> Any:
    """``np.sinc``: sin(pi x)/(pi x), 1 at 0."""
    y = tensor(x) * np.pi
    zero = build(scalar.equal, y, 0)
    safe = where(zero, 1.0, y)
    return where(zero, 1.0, build(scalar.sin, safe) / safe)


@implements(np.isclose)
def isclose(a: Any, b: Any, rtol: Any = 1e-5, atol: Any = 1e-8, equal_nan: bool = False) -> Any:
    """``np.isclose``."""
    x, y = tensor(a), tensor(b)
    near = build(scalar.less_equal, abs(x - y), atol + rtol * abs(y))
    result = build(scalar.logical_or, build(scalar.logical_and, near, build(scalar.isfinite, y)), x == y)
    if equal_nan:
        result = build(
            scalar.logical_or, result, build(scalar.logical_and, build(scalar.isnan, x), build(scalar.isnan, y))
        )
    return result


@implements(np.allclose)
def allclose(a: Any, b: Any, rtol: Any = 1e-5, atol: Any = 1e-8, equal_nan: bool = False) -> Any:
    """``np.allclose``."""
    return wrap(to_form(isclose(a, b, rtol, atol, equal_nan).all().node, "python"))
