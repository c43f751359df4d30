"""NumPy's functions that return the same elements in another shape, on lazy arrays: views where they are views in NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensormagic.capture import context
from tensormagic.capture.errors.refusal import refuse
from tensormagic.capture.hooks import hooks
from tensormagic.capture.names import implements
from tensormagic.capture.numbers.optional import asked
from tensormagic.capture.values.arguments import (
    array_alone,
    done,
    into_out,
    one_axis,
    order_letter,
    several_axes,
    shape_of,
    tensor,
)
from tensormagic.capture.values.value import Tensor
from tensormagic.ir.errors import LayoutError, ShapeError
from tensormagic.ir.node import Node
from tensormagic.ir.size import nodes_of
from tensormagic.ops.form import to_form
from tensormagic.ops.move import expand_dims, flip, reshape
from tensormagic.ops.scalars import scalar


def c_or_f(x: Tensor, order: str) -> str:
    """Return whether ``order`` means C or Fortran order for ``x``."""
    letter = order_letter(order)
    if letter in {"C", "F"}:
        return letter
    layout = x.place.layout() if x.ndim > 1 else None
    capture = context.current()
    if capture is not None and x.ndim > 1:
        capture.stored()  # otherwise it matters how the arguments of a function lie in memory
    if x.ndim < 2 or (layout is not None and layout.flags.c_contiguous):
        return "C"
    if layout is not None and layout.flags.f_contiguous:
        return "F"
    if layout is not None and letter == "A":
        return "C"
    steps = [] if layout is None else [t for n, t in zip(layout.shape, layout.strides, strict=True) if n != 1]
    if min(steps, default=0) > 0 and steps in (sorted(steps), sorted(steps, reverse=True)):  # with gaps between them
        return "C" if steps[0] > steps[-1] else "F"
    raise LayoutError(
        f"order={order!r} of an array whose layout is not known is not captured", "Write order='C' or order='F'."
    )


def reshape_tensor(x: Tensor, shape: Any, order: str = "C") -> Tensor:
    """Return ``x.reshape(shape, order)``."""
    order_letter(order, "CFA")
    if c_or_f(x, order) == "C":
        return x.reshape(shape)
    sizes = shape_of(shape)
    return x.transpose().reshape(sizes[::-1]).transpose()


@implements(np.reshape)
def reshape_(a: Any, /, shape: Any, order: str = "C", *, copy: bool | None = None) -> Any:
    """Implement ``np.reshape``."""
    x = tensor(a)
    result = reshape_tensor(x, shape, order)
    if not result.ndim and x.type.form != "array":
        return done(to_form(x.node, "array" if x.type.form == "python" else "scalar"))
    return result.copy() if copy else result


@implements(np.ravel)
def ravel(a: Any, order: str = "C") -> Any:
    """Implement ``np.ravel``."""
    x = tensor(a)
    return x.ravel() if c_or_f(x, order) == "C" else x.transpose().ravel()


def _copy(a: Any, order: str = "K", subok: bool = False) -> Tensor:
    """Implement ``np.copy``: with the given memory order, which decides whether a later reshape is a view."""
    del subok
    x, letter = tensor(a), order_letter(order)
    if not x.ndim:
        return done(to_form(x.node, "array"))
    if letter == "F" and x.ndim > 1:
        return x.transpose().copy().transpose()
    return x.copy() if letter == "C" else done(x.node)


def _flatten(self: Any, order: str = "C") -> Any:
    return ravel(self, order).copy()


hooks.methods["flatten"] = _flatten


@implements(method="conj conjugate")
def _conjugate(self: Tensor, out: Any = None) -> Any:
    """Implement ``ndarray.conj``: the array itself, where it is not complex."""
    if out is not None:
        return into_out(scalar.conjugate(self.node), out, "conjugate")
    return done(scalar.conjugate(self.node)) if self.dtype.kind == "c" else self


@implements(np.size)
def size(a: Any, axis: Any = None) -> Any:
    """Implement ``np.size``."""
    a = asked(a, "np.size")
    if a is None:
        return np.size(None, axis)  # type: ignore[call-overload]
    x = tensor(a)
    if axis is None:
        return x.size
    total: Any = 1
    for k in several_axes(axis, x.ndim):
        total = total * x.shape[k]
    return total


@implements(np.shape)
def _shape(a: Any) -> Any:
    """Implement ``np.shape``."""
    a = asked(a, "np.shape")
    return () if a is None else tensor(a).shape


@implements(np.ndim)
def _ndim(a: Any) -> Any:
    """Implement ``np.ndim``."""
    a = asked(a, "np.ndim")
    return 0 if a is None else tensor(a).ndim


@implements(np.transpose)
def _transpose(a: Any, axes: Any = None) -> Tensor:
    """Implement ``np.transpose``: of a Python number an array, of NumPy's scalar itself."""
    x = tensor(a)
    if not x.ndim and axes is None:
        return done(to_form(x.node, "array")) if x.type.form == "python" else x
    return x.transpose(*(() if axes is None else (axes,)))


implements(np.matrix_transpose)(lambda x, /: tensor(x).mT)
implements(np.swapaxes)(lambda a, axis1, axis2: tensor(a).swapaxes(axis1, axis2))
implements(np.copy)(_copy)


def _of_numpy(x: Any) -> Tensor:
    if isinstance(x, list | tuple):
        raise TypeError(f"Input should be a NumPy array or scalar. It is a {type(x)} instead.")
    return tensor(x)


implements(np.astype)(lambda x, dtype, /, *, copy=True, device=None: _of_numpy(x).astype(dtype, copy=copy))
implements(np.real)(lambda val: tensor(val).real)
implements(np.imag)(lambda val: tensor(val).imag)


@implements(np.isscalar)
def _isscalar(element: Any) -> bool:
    """Implement ``np.isscalar``."""
    element = asked(element, "np.isscalar")
    return element.type.form != "array" if isinstance(element, Tensor) else np.isscalar(element)


implements(np.iscomplexobj)(lambda x: tensor(x).dtype.kind == "c")
implements(np.isrealobj)(lambda x: tensor(x).dtype.kind != "c")


@implements(np.moveaxis)
def moveaxis(a: Any, source: Any, destination: Any) -> Any:
    """Implement ``np.moveaxis``."""
    x = tensor(a)
    if x.type.form == "python":
        x = done(to_form(x.node, "array"))
    start, stop = several_axes(source, x.ndim), several_axes(destination, x.ndim)
    if len(start) != len(stop):
        raise ValueError("`source` and `destination` arguments must have the same number of elements")
    order = [k for k in range(x.ndim) if k not in start]
    for target, axis in sorted(zip(stop, start, strict=True)):
        order.insert(target, axis)
    return x.transpose(order)


@implements(np.rollaxis)
def rollaxis(a: Any, axis: int, start: int = 0) -> Any:
    """Implement ``np.rollaxis``."""
    x = array_alone(a)
    axis = one_axis(axis, x.ndim)
    start = start + x.ndim if start < 0 else start
    if not 0 <= start <= x.ndim:
        raise ValueError("'start' arg requires a valid axis")
    return moveaxis(x, axis, start - 1 if axis < start else start)


@implements(np.expand_dims)
def expand_dims_(a: Any, axis: Any) -> Any:
    """Implement ``np.expand_dims``."""
    x = tensor(a)
    axes = axis if isinstance(axis, tuple | list) else (axis,)
    found = several_axes(axes, x.ndim + len(axes))
    if not found and not x.ndim:
        return x if x.type.form == "array" else done(to_form(x.node, "array"))
    return x.view_of(
        lambda n: expand_dims(n, found),
        lambda old, new: reshape(new, old.type.shape),
        lambda v: np.expand_dims(v, found),
    )


@implements(np.squeeze, method="squeeze")
def squeeze(a: Any, axis: Any = None) -> Any:
    """Implement ``np.squeeze``."""
    x = tensor(a)
    shape = x.type.shape
    if axis is None and any(nodes_of(s) for s in shape):
        refuse("np.squeeze of an array whose sizes depend on data", "Name the axis: x.squeeze(axis).")
    if not shape and x.type.form != "array":
        return done(to_form(x.node, "array" if x.type.form == "python" else "scalar"))
    axes = tuple(k for k, s in enumerate(shape) if s == 1) if axis is None else _squeezed(axis, x.ndim)
    if any(nodes_of(shape[k]) for k in axes):
        refuse("np.squeeze of an axis of data-dependent length", "Take its first element: x[..., 0].")
    if any(shape[k] != 1 for k in axes):
        raise ShapeError("cannot select an axis to squeeze out which has size not equal to one")
    if not axes and x.type.form == "array":
        return x
    kept = tuple(s for k, s in enumerate(shape) if k not in axes)
    return x.view_of(
        lambda n: to_form(reshape(n, kept), "array") if not kept else reshape(n, kept),
        lambda old, new: reshape(new, old.type.shape),
        lambda v: np.squeeze(v, axes),
    )


def _squeezed(axis: Any, rank: int) -> tuple[int, ...]:
    return () if not rank and isinstance(axis, int) and axis in {0, -1} else several_axes(axis, rank)


def at_least(x: Node, rank: int) -> Node:
    """Return ``x`` with at least ``rank`` axes, placed as ``np.atleast_1d`` and the like place them."""
    shape = x.type.shape
    if len(shape) >= rank:
        return x
    if rank == 2:
        return reshape(x, (1, *shape) if shape else (1, 1))
    return reshape(x, {0: (1, 1, 1), 1: (1, *shape, 1), 2: (*shape, 1)}[len(shape)] if rank == 3 else (1,))


def _of_rank(value: Any, rank: int) -> Tensor:
    """Return a view with at least ``rank`` axes."""
    x = tensor(value)
    return x if x.ndim >= rank else x.reshape(at_least(x.node, rank).type.shape)


implements(np.atleast_1d)(lambda *arys: _one_or_more([_of_rank(v, 1) for v in arys]))
implements(np.atleast_2d)(lambda *arys: _one_or_more([_of_rank(v, 2) for v in arys]))
implements(np.atleast_3d)(lambda *arys: _one_or_more([_of_rank(v, 3) for v in arys]))


def _one_or_more(values: list[Any]) -> Any:
    return values[0] if len(values) == 1 else tuple(values)


# turned round ---------------------------------------------------------------------------------------------------------


@implements(np.flip)
def flip_(m: Any, axis: Any = None) -> Any:
    """Implement ``np.flip``: a view."""
    x = tensor(m)
    axes = tuple(range(x.ndim)) if axis is None else several_axes(axis, x.ndim)
    if not x.ndim:
        return done(to_form(x.node, "scalar"))
    return x.view_of(lambda n: flip(n, axes), lambda _old, new: flip(new, axes), lambda v: np.flip(v, axes))


def _flip_along(axis: int, rank: int) -> Any:
    def turned(m: Any) -> Any:
        x = tensor(m)
        if x.ndim < rank:
            raise ValueError(f"Input must be >= {rank}-d.")
        return flip_(x, axis)

    return turned


implements(np.flipud)(_flip_along(0, 1))
implements(np.fliplr)(_flip_along(1, 2))


@implements(np.rot90)
def rot90(m: Any, k: int = 1, axes: Any = (0, 1)) -> Any:
    """Implement ``np.rot90``: a view."""
    x = tensor(m)
    if len(axes) != 2:
        raise ValueError("len(axes) must be 2.")
    first, second = (one_axis(a, x.ndim) for a in axes)
    if first == second:
        raise ValueError("Axes must be different.")
    turns = k % 4
    if turns == 0:
        return x[...]
    if turns == 2:
        return flip_(flip_(x, first), second)
    if turns == 1:
        return flip_(x, second).swapaxes(first, second)
    return flip_(x.swapaxes(first, second), second)
