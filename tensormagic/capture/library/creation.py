"""NumPy's functions that make arrays, in captured code: their sizes may be symbolic."""

from __future__ import annotations

import inspect
import itertools
from types import FunctionType
from typing import Any

import numpy as np

from tensormagic.capture import context
from tensormagic.capture.errors.refusal import needs_value, refuse
from tensormagic.capture.inputs import door
from tensormagic.capture.names import FUNCTIONS, implements
from tensormagic.capture.stores.converted import value_of
from tensormagic.capture.stores.layout import lies_as
from tensormagic.capture.values.arguments import order_letter, shape_of, tensor
from tensormagic.capture.values.casts import warn_of_loss
from tensormagic.capture.values.equal_sizes import agreed_size
from tensormagic.capture.values.operands import as_converted, has_lazy, node_of
from tensormagic.capture.values.value import Tensor, as_size, done, in_c_order, wrap
from tensormagic.ir.errors import ShapeError
from tensormagic.ir.node import Node
from tensormagic.ir.size import is_at_least, nodes_of
from tensormagic.ir.type import Size, apply, hint
from tensormagic.ops.effects.checks import in_range
from tensormagic.ops.form import to_form
from tensormagic.ops.leaf import constant, iota, size_node, size_of
from tensormagic.ops.move import broadcast, reshape, transpose
from tensormagic.ops.move_kind import normalise_axis
from tensormagic.ops.pointwise import astype
from tensormagic.ops.scalars import scalar

_SMALLEST = 5e-324  # the smallest float above 0


def _shape(shape: Any) -> tuple[Size, ...]:
    sizes = shape_of(shape)
    if any((hint(s) or 0) < 0 for s in sizes):
        raise ShapeError("negative dimensions are not allowed")
    return sizes


def _filled(shape: Any, value: Any, dtype: Any, order: str = "C", **options: Any) -> Tensor:
    if options.get("like") is not None:
        refuse("like=", "Leave the option out.")
    return _laid_out(constant(_kind(dtype, np.dtype(np.float64)).type(value)), _shape(shape), order)


def _kind(dtype: Any, usual: np.dtype[Any]) -> np.dtype[Any]:
    """Return the dtype of a new array; raise for non-numeric ones, which are left to NumPy."""
    found = usual if dtype is None else np.dtype(dtype)
    door.check_dtype(found, "the new array")
    return found


def _stretched(value: Node, shape: tuple[Size, ...]) -> Tensor:
    return done(broadcast(value, shape) if shape else to_form(value, "array"))


def _laid_out(value: Node, shape: tuple[Size, ...], order: str, like: Tensor | None = None) -> Tensor:
    """Return a new array of one value, with a memory order as in NumPy: K is that of the array that it is ``like``."""
    axes = list(range(len(shape)))
    letter = order_letter(order, "CFAK" if like is not None else "CF")
    if letter == "F":
        axes.reverse()
    elif letter in {"K", "A"} and like is not None and like.ndim == len(shape) > 1:
        layout = like.place.layout()
        if layout is None:
            made = _stretched(value, shape)
            lies_as(made.node, like.node)
            return made
        if letter == "K":
            axes.sort(key=lambda k: -abs(layout.strides[k]))
        elif layout.flags.f_contiguous and not layout.flags.c_contiguous:
            axes.reverse()
    if axes == sorted(axes):
        return _stretched(value, shape)
    return _stretched(value, tuple(shape[k] for k in axes)).transpose([axes.index(k) for k in range(len(axes))])


def _like_of(a: Any, shape: Any) -> tuple[Tensor, tuple[Size, ...]]:
    """Return an array, and the shape of a new one like it."""
    x = tensor(a)
    return x, tuple(agreed_size(s, x.node) for s in x.type.shape) if shape is None else _shape(shape)


@implements(np.zeros, np.empty)
def zeros(shape: Any, dtype: Any = None, order: str = "C", **options: Any) -> Tensor:
    """Implement ``np.zeros``, and ``np.empty``, whose elements are zeros here."""
    return _filled(shape, 0, dtype, order, **options)


@implements(np.ones)
def ones(shape: Any, dtype: Any = None, order: str = "C", **options: Any) -> Tensor:
    """Implement ``np.ones``."""
    return _filled(shape, 1, dtype, order, **options)


@implements(np.full)
def full(shape: Any, fill_value: Any, dtype: Any = None, order: str = "C", **options: Any) -> Tensor:
    """Implement ``np.full``."""
    del options
    value = node_of(fill_value)
    return _laid_out(astype(value, _kind(dtype, value.type.dtype)), _shape(shape), order)


def _like(value: Any) -> Any:
    def make(
        a: Any, dtype: Any = None, order: str = "K", subok: bool = True, shape: Any = None, **options: Any
    ) -> Tensor:
        del subok, options
        x, extents = _like_of(a, shape)
        return _laid_out(constant(_kind(dtype, x.dtype).type(value)), extents, order, x)

    return make


implements(np.zeros_like, np.empty_like)(_like(0))
implements(np.ones_like)(_like(1))


@implements(np.full_like)
def full_like(
    a: Any,
    fill_value: Any,
    dtype: Any = None,
    order: str = "K",
    subok: bool = True,
    shape: Any = None,
    *,
    device: Any = None,
) -> Tensor:
    """Implement ``np.full_like``."""
    del subok, device
    x, extents = _like_of(a, shape)
    return _laid_out(astype(node_of(fill_value), _kind(dtype, x.dtype)), extents, order, x)


@implements(np.array)
def array(
    value: Any,
    dtype: Any = None,
    *,
    copy: bool | None = True,
    order: str | None = "K",
    subok: bool = False,
    ndmin: int = 0,
    like: Any = None,
) -> Tensor:
    """Implement ``np.array``: a copy, as a lazy array."""
    if like is not None:
        refuse("np.array with like=", "Leave the option out.")
    if dtype is not None:
        door.check_dtype(np.dtype(dtype), "the new array")
    letter = "K" if order is None else order_letter(order)
    own = None if copy is None else _own_array(value, copy=copy)
    if own is not None:  # NumPy lets the object decide whether it is a copy
        return array(own, dtype, copy=None if copy else False, order=order, ndmin=ndmin)
    value = value if subok and issubclass(type(value), np.ndarray) else as_converted(value, dtype)
    if copy is False:
        if not _is_array(value, dtype) or ndmin > value.ndim:
            raise ValueError(_NO_COPY)
        return value
    if copy is None and ndmin <= np.ndim(value):
        return asarray(value, dtype, order)
    x = node_of(value) if dtype is None else value_of(value, np.dtype(dtype))
    if dtype is not None:
        warn_of_loss(x.type.dtype, dtype)
        x = astype(x, dtype)
    if ndmin > x.type.ndim:
        x = reshape(x, (*[1] * (ndmin - x.type.ndim), *x.type.shape))
    made = done(x if x.type.shape else to_form(x, "array"))
    if isinstance(value, list | tuple) and made.ndim > 1 and letter != "F":
        return in_c_order(made)
    return _in_order(made, letter) if letter in {"C", "F"} else made


@implements(np.fromiter)
def fromiter(iter: Any, dtype: Any, count: int = -1, **options: Any) -> Any:
    """Return what ``np.fromiter`` makes of an iterable that may give lazy numbers."""
    taken = list(iter if count < 0 else itertools.islice(iter, count))
    if not has_lazy(taken) or any(np.ndim(v) for v in taken):  # of arrays, where their values are there
        return np.fromiter(taken, dtype, count, **options)
    if len(taken) < count:
        raise ValueError(f"iterator too short: Expected {count} but iterator had only {len(taken)} items.")
    return array(taken, dtype)


@implements(np.asanyarray)
def asanyarray(a: Any, dtype: Any = None, order: str | None = None, *, copy: bool | None = None, **options: Any) -> Any:
    """Implement ``np.asanyarray``: like ``np.asarray``, but arrays with operators of their own stay what they are."""
    return asarray(door.variable(a) if isinstance(a, np.ndarray) else a, dtype, order, copy=copy, **options)


@implements(np.asarray)
def asarray(a: Any, dtype: Any = None, order: str | None = None, *, copy: bool | None = None, **options: Any) -> Any:
    """Implement ``np.asarray``: the array itself, if it has this dtype."""
    own = tensor(a) if isinstance(a, Tensor) else None if copy else door.lazy_array_of(a)  # without labels
    a = a if own is None else own
    if not copy and _is_array(a, dtype) and (isinstance(a, Tensor) or np.asarray(a, order=order) is a):  # type: ignore[call-overload]
        letter = "K" if order is None else order_letter(order)
        lies = _in_order(a, letter) if isinstance(a, Tensor) and letter in {"C", "F"} else a
        if copy is False and isinstance(a, Tensor) and lies.place.buffer is not a.place.buffer:
            raise ValueError(_NO_COPY)
        return lies
    return array(a, dtype, copy=copy is not False, order=order)


def _own_array(value: Any, *, copy: bool) -> Any:
    """Return the array that a user's object gives, as a copy if that is wanted; None if it gives none, or supports no copies."""
    method = getattr(type(value), "__array__", None)
    if not copy:
        return door.lazy_array_of(value)
    knows = isinstance(method, FunctionType) and "copy" in inspect.signature(method).parameters
    return door.lazy_array_of(value, copy=True) if knows else None


def _in_order(x: Tensor, letter: str) -> Tensor:
    """Return the array itself if it has that memory order, else a copy."""
    if x.ndim < 2:
        return x
    return FUNCTIONS[np.ascontiguousarray if letter == "C" else np.asfortranarray](x)


_NO_COPY = "Unable to avoid copy while creating an array as requested."


def _is_array(value: Any, dtype: Any) -> bool:
    """Return whether a value is an array of ``dtype``, if that is given; a plain NumPy array counts, too."""
    known = isinstance(value, Tensor) and value.type.form == "array"
    return (known or type(value) is np.ndarray) and (dtype is None or value.dtype == dtype)


@implements(np.arange)
def arange(*bounds: Any, start: Any = 0, stop: Any = None, step: Any = 1, dtype: Any = None, **options: Any) -> Tensor:
    """Implement ``np.arange`` of known integers or sizes, or of known floats."""
    given_bounds: list[Any] = list(bounds)
    if stop is not None:
        given_bounds[:1] = [*(bounds[:1] or (start,)), stop]
    elif not bounds:
        raise TypeError("arange() requires stop to be specified.")
    if len(given_bounds) == 1 or given_bounds[1] is None:
        given_bounds[:2] = [0, given_bounds[0]]
    start, stop, step, dtype = [*given_bounds, step, dtype][:4] if len(given_bounds) < 3 else [*given_bounds, dtype][:4]
    options.pop("device", None)
    if options.get("like") is not None:
        refuse("like=", "Leave the option out.")
    bounds = (start, stop, step)
    for given in (np.dtype(dtype), *(np.asarray(b).dtype for b in bounds if isinstance(b, str | np.generic))):
        door.check_dtype(given, "the new array")
    if any(_is_float(b) for b in (start, stop, step)):
        return wrap(constant(np.arange(_known(start), _known(stop), _known(step), dtype=dtype)))
    low, high, by = (as_size(b) for b in (start, stop, step))
    if not isinstance(by, int):
        refuse("np.arange with a step that is not a number", "Multiply np.arange(n) by the step.")
    span = high - low if by > 0 else low - high
    length = context.settle(apply("max", apply("floordiv", span + (abs(by) - 1), abs(by)), 0))
    ramp = iota((length,), 0)
    ramp = ramp * by if by != 1 else ramp
    ramp = ramp + size_node(low) if low != 0 else ramp
    if dtype is None and any(getattr(b, "dtype", None) == np.uint64 for b in bounds):
        dtype = np.float64  # as in NumPy: of int64 and uint64
    return done(astype(ramp, dtype) if dtype is not None else ramp)


def _is_float(value: Any) -> bool:
    return isinstance(value, float | np.floating) or (isinstance(value, Tensor) and size_of(value.node) is None)


def _known(value: Any) -> Any:
    if isinstance(value, Tensor):
        size = size_of(value.node)
        if size is None:
            advice = "Use np.linspace, or np.arange(n) * step + start."
            needs_value("a range whose bounds depend on data", advice, value.node)
            return value.numpy()
        return int(value)
    return value


@implements(np.linspace)
def linspace(
    start: Any,
    stop: Any,
    num: Any = 50,
    endpoint: bool = True,
    retstep: bool = False,
    dtype: Any = None,
    axis: int = 0,
    **options: Any,
) -> Any:
    """Implement ``np.linspace`` between numbers or arrays."""
    options.pop("device", None)
    if not any(map(has_lazy, (start, stop, num))):
        found: Any = np.linspace(start, stop, num, endpoint, bool(retstep), dtype, axis)  # type: ignore[call-overload]
        return tuple(wrap(constant(v)) for v in found) if isinstance(found, tuple) else wrap(constant(found))
    low, high, n = node_of(start), node_of(stop), context.settle(as_size(num))
    if (hint(n) or 0) < 0:
        raise ShapeError(f"Number of samples, {hint(n)}, must be non-negative.")
    kind = _inexact([low, high])
    if retstep and nodes_of(n) and low.type.shape + high.type.shape:
        refuse(
            "np.linspace with retstep of arrays, and of a data-dependent number of values,",
            "Compute the step yourself.",
        )
    values, step = _spaced(astype(low, kind), astype(high, kind), n, endpoint=endpoint)
    if axis:
        rank = values.type.ndim
        position = normalise_axis(axis, rank)
        values = transpose(values, (*range(1, position + 1), 0, *range(position + 1, rank)))
    if dtype is not None:
        values = astype(scalar.floor(values) if np.dtype(dtype).kind in "iu" else values, dtype)
    return (done(values), done(step)) if retstep else done(values)


def _inexact(nodes: list[Node]) -> np.dtype[Any]:
    """Return the dtype that NumPy computes in: of the strong operands and a Python float."""
    weak = {"b": 0, "i": 0, "f": 0.0, "c": 0j}
    return np.result_type(*(weak[n.type.dtype.kind] if n.type.form == "python" else n.type.dtype for n in nodes), 0.0)


def _spaced(low: Node, high: Node, n: Size, *, endpoint: bool) -> tuple[Node, Node]:
    """Return ``n`` values from ``low`` on, along a new first axis, and their distance."""
    distance = high - low
    count = n - 1 if endpoint else n
    shape = (n, *distance.type.shape)
    ramp = astype(iota(shape, 0), low.type.dtype)
    if count in {0, -1}:
        return ramp * distance + low, to_form(constant(np.float64(np.nan)), "python")
    parts, several = astype(size_node(count), low.type.dtype), scalar.greater(size_node(count), 0)
    parts = parts if is_at_least(count, 1) else scalar.where(several, parts, np.nan)
    step = distance / parts
    values = scalar.where(scalar.equal(step, 0), ramp / parts * distance, ramp * step)
    values = (values if is_at_least(count, 1) else scalar.where(several, values, ramp * distance)) + low
    if endpoint:  # the last element is the end itself, without rounding
        values = scalar.where(_is_last(shape), high, values)
    return values, to_form(step, "scalar") if step.type.form == "python" else step


def _is_last(shape: tuple[Size, ...]) -> Node:
    """Return a mask of the elements in the last row, if that is not the first one, too."""
    last = scalar.equal(iota(shape, 0), size_node(shape[0] - 1))
    return last if is_at_least(shape[0], 2) else scalar.logical_and(last, scalar.greater(size_node(shape[0]), 1))


@implements(np.logspace)
def logspace(
    start: Any, stop: Any, num: Any = 50, endpoint: bool = True, base: Any = 10.0, dtype: Any = None, axis: int = 0
) -> Any:
    """Implement ``np.logspace``: powers of ``base``."""
    if np.ndim(base):
        refuse("np.logspace with several bases", "Call it for each base.")
    powers = linspace(start, stop, num, endpoint, axis=axis)
    result = done(scalar.power(node_of(base), powers.node))
    return result if dtype is None else result.astype(dtype)


@implements(np.geomspace)
def geomspace(start: Any, stop: Any, num: Any = 50, endpoint: bool = True, dtype: Any = None, axis: int = 0) -> Any:
    """Implement ``np.geomspace`` between real numbers of one sign."""
    low, high = node_of(start), node_of(stop)
    if "c" in {low.type.dtype.kind, high.type.dtype.kind}:
        refuse("np.geomspace between complex numbers", "Write start * (stop / start) ** np.linspace(0, 1, n).")
    kind = np.result_type(low.type.dtype, high.type.dtype, np.float64)
    low, high = (_not_zero(astype(v, kind)) for v in (low, high))
    sign = scalar.sign(low)
    low, high = low / sign, high / sign
    n = context.settle(as_size(num))
    values = node_of(logspace(done(scalar.log10(low)), done(scalar.log10(high)), num, endpoint))
    place = iota(values.type.shape, 0)
    values = scalar.where(scalar.equal(place, 0), low, values)
    if endpoint and n != 1:
        values = scalar.where(_is_last(values.type.shape), high, values)
    values = values * sign
    if axis:
        order = [*range(1, values.type.ndim)]
        order.insert(normalise_axis(axis, values.type.ndim), 0)
        values = transpose(values, tuple(order))
    return done(values if dtype is None else astype(values, dtype))


def _not_zero(x: Node) -> Node:
    size = in_range(scalar.absolute(x), _SMALLEST, constant(np.inf), "Geometric sequence cannot include zero")
    return scalar.copysign(size, x)


@implements(np.eye)
def eye(N: Any, M: Any = None, k: int = 0, dtype: Any = float, order: str = "C", **options: Any) -> Tensor:
    """Implement ``np.eye``."""
    del options
    order_letter(order, "CF")
    shape = _shape((N, N if M is None else M))
    on = scalar.equal(iota(shape, 0) + k if k else iota(shape, 0), iota(shape, 1))
    return done(astype(on, dtype))


implements(np.identity)(lambda n, dtype=None, **_: eye(n, dtype=dtype or float))


@implements(np.tri)
def tri(N: Any, M: Any = None, k: int = 0, dtype: Any = float, **options: Any) -> Tensor:
    """Implement ``np.tri``."""
    del options
    shape = _shape((N, N if M is None else M))
    return done(astype(scalar.greater_equal(iota(shape, 0) + k, iota(shape, 1)), dtype))
