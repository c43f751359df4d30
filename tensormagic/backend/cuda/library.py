"""The table of library calls: for each operation that the device's library does, the call, in NumPy's names.

What runs on a card runs on the fake device with NumPy in the library's place. An operation that is not here is computed on the host:
:func:`lacking` says so before anything runs. What NumPy raises by looking at data is checked on the device, and raised at the end.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tensormagic.backend.cuda.device import Device, DeviceArray
from tensormagic.ir.node import Node
from tensormagic.ir.size import Size
from tensormagic.ops.contract import CONTRACT, split
from tensormagic.ops.fft import FFT, IFFT, IRFFT, RFFT
from tensormagic.ops.fold import ALL, ANY, CUMMAX, CUMPROD, CUMSUM, PROD, SUM
from tensormagic.ops.indices.scatter import are_unique
from tensormagic.ops.matrices.gram import GRAM
from tensormagic.ops.move import concrete_slices
from tensormagic.ops.op import Op, Value
from tensormagic.ops.scalars.comparison import where

Raises = Callable[[], None]


@dataclass(frozen=True, eq=False)
class Call:
    """One node with its operands: arrays of the device, and numbers in the dtypes of the node's operands.

    Parameters
    ----------
    fails
        ``fails(flag, raises)``: where the flag turns out to be true, what is raised.
    """

    device: Device
    node: Node
    values: Sequence[Any]
    size: Callable[[Size], int]
    fails: Callable[[DeviceArray, Raises], None]

    @property
    def xp(self) -> Any:
        """The library."""
        return self.device.library

    def array(self, k: int) -> DeviceArray:
        """An operand as an array of the device."""
        value = self.values[k]
        return value if self.device.is_array(value) else self.xp.asarray(value, dtype=self.node.args[k].type.dtype)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape that the node says, of those that say one: other results are as large as their operands make them."""
        return tuple(map(self.size, self.node["shape"]))


Function = Callable[[Call], Value]
LIBRARY: dict[str, Function] = {}


def _call(*names: str) -> Callable[[Function], Function]:
    def add(function: Function) -> Function:
        for name in names:
            LIBRARY[name] = function
        return function

    return add


# scalar functions -----------------------------------------------------------------------------------------------------

_PLAIN = """
where maximum minimum fmax fmin logical_and logical_or logical_xor logical_not bitwise_and
bitwise_or bitwise_xor invert left_shift right_shift gcd lcm floor ceil trunc rint signbit isnan
isinf isfinite copysign heaviside nextafter add subtract multiply divide negative positive
floor_divide remainder fmod square sqrt cbrt reciprocal exp exp2 expm1 log log2 log10 log1p
logaddexp logaddexp2 sin cos tan arcsin arccos arctan arctan2 sinh cosh tanh arcsinh arccosh arctanh
hypot degrees radians absolute conjugate sign less less_equal greater greater_equal equal not_equal
real imag sinc ldexp frexp
""".split()  # noqa: SIM905 (a table)
_SPECIAL = "xlogy logit exprel erf erfc erfcx erfinv erfcinv log_ndtr ndtri digamma gammaln i0 i1 i0e i1e j0 j1".split()  # noqa: SIM905
_COMPLEX = frozenset(
    "where add subtract multiply divide negative positive square sqrt reciprocal exp log sin cos tan sinh cosh tanh "  # noqa: SIM905
    "absolute conjugate equal not_equal real imag isnan isinf isfinite logical_and logical_or logical_not stop_gradient "
    "power".split()
)


def _plain(c: Call) -> Value:
    return getattr(c.xp, c.node.op.name)(*c.values)


def _of_special(c: Call) -> Value:
    return getattr(c.device.special, c.node.op.name)(*c.values)


LIBRARY.update(dict.fromkeys(_PLAIN, _plain))
LIBRARY.update(dict.fromkeys(_SPECIAL, _of_special))
LIBRARY["stop_gradient"] = lambda c: c.values[0]


@_call("power")
def _power(c: Call) -> Value:
    base, exponent = c.values
    if c.node.args[1].type.dtype.kind == "i":
        negative = c.xp.any(c.array(1) < 0)
        c.fails(negative, lambda: _raise(ValueError("Integers to negative integer powers are not allowed.")))
    return c.xp.power(base, exponent)


def _raise(error: Exception) -> None:
    raise error


@_call("sigmoid")
def _sigmoid(c: Call) -> Value:
    xp, x = c.xp, c.array(0)
    e = xp.exp(-xp.absolute(x))
    return xp.where(x >= 0, x.dtype.type(1), e) / (e + x.dtype.type(1))


@_call("softplus")
def _softplus(c: Call) -> Value:
    xp, x = c.xp, c.array(0)
    return xp.log1p(xp.exp(-xp.absolute(x))) + xp.maximum(x, x.dtype.type(0))


@_call("log1mexp")
def _log1mexp(c: Call) -> Value:
    xp, x = c.xp, c.array(0)
    near = (x > x.dtype.type(-np.log(2))) & (x <= 0)
    return xp.where(near, xp.log(-xp.expm1(x)), xp.log1p(-xp.exp(x)))


@_call("from_parts")
def _from_parts(c: Call) -> Value:
    shape = np.broadcast_shapes(*(np.shape(v) for v in c.values))
    made = c.xp.empty(shape, c.node.type.dtype)
    made.real, made.imag = c.values
    return made


@_call("astype")
def _astype(c: Call) -> Value:
    x, dtype = c.array(0), c.node.type.dtype
    if x.dtype.kind == "c" and dtype.kind != "c":
        x = c.xp.not_equal(x, 0) if dtype.kind == "b" else c.xp.real(x)
    return x.astype(dtype)


@_call("reinterpret")
def _reinterpret(c: Call) -> Value:
    return c.array(0).copy().view(np.dtype(c.node["dtype"]))


# moves ----------------------------------------------------------------------------------------------------------------


@_call("iota")
def _iota(c: Call) -> Value:
    axis, shape = c.node["axis"], c.shape
    ramp = c.xp.arange(shape[axis], dtype=np.int64)
    return c.xp.broadcast_to(c.xp.reshape(ramp, [-1 if k == axis else 1 for k in range(len(shape))]), shape)


@_call("broadcast")
def _broadcast(c: Call) -> Value:
    if any(n < 0 for n in c.shape):
        raise ValueError("negative dimensions are not allowed")
    return c.xp.broadcast_to(c.array(0), c.shape)


LIBRARY["transpose"] = lambda c: c.xp.transpose(c.array(0), c.node["permutation"])
LIBRARY["reshape"] = lambda c: c.xp.reshape(c.array(0), c.shape)
LIBRARY["slice"] = lambda c: c.array(0)[concrete_slices(c.node, c.size)]
LIBRARY["concatenate"] = lambda c: c.xp.concatenate([c.array(k) for k in range(len(c.values))], axis=c.node["axis"])
LIBRARY["form"] = LIBRARY["named"] = LIBRARY["fixed"] = lambda c: c.values[0]
LIBRARY["after"] = lambda c: c.values[1]
LIBRARY["item"] = lambda c: c.values[0][c.node["index"]]


# folds ----------------------------------------------------------------------------------------------------------------

_NAMES = {"max": "maximum", "min": "minimum"}


def _axis(c: Call) -> Any:
    axes = c.node["axes"]
    return axes[0] if len(axes) == 1 else tuple(axes)


@_call("sum", "prod")
def _sum(c: Call) -> Value:
    return getattr(c.xp, c.node.op.name)(c.array(0), axis=_axis(c), dtype=c.node.type.dtype)


@_call("any", "all")
def _any(c: Call) -> Value:
    return getattr(c.xp, c.node.op.name)(c.array(0), axis=_axis(c))


@_call("max", "min")
def _max(c: Call) -> Value:
    x, name = c.array(0), c.node.op.name
    rest = _rest(c, x)
    if 0 in [x.shape[k] for k in c.node["axes"]] and math.prod(rest):
        raise ValueError(f"zero-size array to reduction operation {_NAMES[name]} which has no identity")
    if not x.size:
        return c.xp.zeros(rest, x.dtype)
    return getattr(c.xp, name)(x, axis=_axis(c))


def _rest(c: Call, x: DeviceArray) -> tuple[int, ...]:
    """The extents that a fold leaves."""
    return tuple(n for k, n in enumerate(x.shape) if k not in c.node["axes"])


@_call("argmax", "argmin")
def _argmax(c: Call) -> Value:
    x, axes, name = c.array(0), c.node["axes"], c.node.op.name
    if 0 in [x.shape[k] for k in axes]:
        raise ValueError(f"attempt to get {name} of an empty sequence")
    if x.dtype.kind == "b":
        x = x.astype(np.uint8)
    return getattr(c.xp, name)(x, axis=axes[0] if len(axes) == 1 else None)


def _top(c: Call, x: DeviceArray) -> DeviceArray:
    return c.xp.max(x, axis=_axis(c), keepdims=True)


def _total(c: Call, x: DeviceArray) -> DeviceArray:
    return c.xp.sum(x, axis=_axis(c), keepdims=True, dtype=x.dtype)


def _finite(c: Call, x: DeviceArray) -> DeviceArray:
    top = _top(c, x)
    return c.xp.where(c.xp.isfinite(top), top, x.dtype.type(0))


@_call("logsumexp")
def _logsumexp(c: Call) -> Value:
    xp, x = c.xp, c.array(0)
    shift = _finite(c, x)
    return xp.reshape(xp.log(_total(c, xp.exp(x - shift))) + shift, _rest(c, x))


@_call("softmax")
def _softmax(c: Call) -> Value:
    xp, x = c.xp, c.array(0)
    if "whole" in c.node.params:
        x = x - _top(c, x)
    limits = np.finfo(x.dtype)
    e = xp.exp(x - xp.clip(_top(c, x), limits.min, limits.max))
    return e / _total(c, e)


@_call("log_softmax")
def _log_softmax(c: Call) -> Value:
    xp, x = c.xp, c.array(0)
    shifted = x - _finite(c, x)
    return shifted - xp.log(_total(c, xp.exp(shifted)))


@_call("cumsum", "cumprod")
def _cumulative(c: Call) -> Value:
    return getattr(c.xp, c.node.op.name)(c.array(0), axis=c.node["axes"][0], dtype=c.node.type.dtype)


@_call("cummax", "cummin")
def _running(c: Call) -> Value:
    """By doubling: after each step, an element is the extreme of twice as many before it."""
    x, (axis,) = c.array(0).copy(), c.node["axes"]
    function = c.xp.maximum if c.node.op is CUMMAX else c.xp.minimum
    head: tuple[slice, ...] = (slice(None),) * axis
    step = 1
    while step < x.shape[axis]:
        later, before = (*head, slice(step, None)), (*head, slice(None, -step))
        found = function(x[later], x[before])
        x[later] = found
        step *= 2
    return x


@_call("prod_others")
def _others(c: Call) -> Value:
    xp, x, axes = c.xp, c.array(0), c.node["axes"]
    last = tuple(range(x.ndim - len(axes), x.ndim))
    moved = xp.moveaxis(x, axes, last)
    flat = xp.reshape(moved, (*moved.shape[: last[0]], math.prod(moved.shape[last[0] :])))
    before, after = xp.ones_like(flat), xp.ones_like(flat)
    before[..., 1:] = xp.cumprod(flat[..., :-1], axis=-1)
    after[..., :-1] = xp.cumprod(flat[..., :0:-1], axis=-1)[..., ::-1]
    return xp.moveaxis(xp.reshape(before * after, moved.shape), last, axes)


# products -------------------------------------------------------------------------------------------------------------


@_call("contract")
def _contract(c: Call) -> Value:
    x, y = c.array(0), c.array(1)
    (a, b), out = split(c.node["subscripts"])
    if 1 <= len(a) <= 2 and 1 <= len(b) <= 2 and a[-1] == b[0] and a[:-1] + b[1:] == out:
        return c.xp.matmul(x, y)
    return c.xp.einsum(c.node["subscripts"], x, y)


@_call("gram")
def _gram(c: Call) -> Value:
    x = c.array(0)
    return c.xp.matmul(c.xp.swapaxes(x, -1, -2), x)


# stores and indices ---------------------------------------------------------------------------------------------------


@_call("set", "add_at")
def _update(c: Call) -> Value:
    """Into a copy; the executor hands over an array of its own where nothing else reads it."""
    result = c.values[0] if c.device.is_array(c.values[0]) else c.array(0)
    part = concrete_slices(c.node, c.size)
    result[part] = result[part] + c.values[1] if c.node.op.adds else c.values[1]  # type: ignore[attr-defined]
    return result


def _places(c: Call, axis: int, extent: int) -> DeviceArray:
    """The indices of the second operand as int64, checked: what is out of bounds is NumPy's IndexError."""
    index = c.array(1).astype(np.int64)
    if index.size:

        def raises() -> None:
            shape = (*[1] * axis, extent)
            np.take(np.broadcast_to(np.int8(0), shape), c.device.fetch(index), axis=axis)

        c.fails(c.xp.any((index < -extent) | (index >= extent)), raises)
    return index


def _wrapped(c: Call, index: DeviceArray, extent: int) -> DeviceArray:
    """Indices that count from the front, and lie inside."""
    counted = c.xp.where(index < 0, index + extent, index)
    return c.xp.clip(counted, 0, max(extent - 1, 0))


@_call("gather")
def _gather(c: Call) -> Value:
    x, axis = c.array(0), c.node["axis"]
    extent = x.shape[axis]
    index = _places(c, axis, extent)
    if not extent:
        return c.xp.zeros((*x.shape[:axis], *index.shape, *x.shape[axis + 1 :]), x.dtype)
    return c.xp.take(x, _wrapped(c, index, extent), axis=axis)


@_call("take_along_axis")
def _take_along(c: Call) -> Value:
    x, axis = c.array(0), c.node["axis"]
    extent = x.shape[axis]
    index = _places(c, axis, extent)
    if not extent or not index.size:
        return c.xp.zeros(index.shape, x.dtype)
    return c.xp.take_along_axis(x, _wrapped(c, index, extent), axis=axis)


@_call("scatter_set")
def _scatter_set(c: Call) -> Value:
    """Of repeated places the last one counts: each place is asked for the last value that goes there."""
    x, axis, values = c.values[0], c.node["axis"], c.array(2)
    extent = x.shape[axis]
    index = _places(c, axis, extent)
    if not values.size:
        return x
    head: tuple[slice, ...] = (slice(None),) * axis
    index = _wrapped(c, index, extent)
    if are_unique(c.node.args[1]):
        x[(*head, index)] = values
        return x
    count = index.size
    flat = c.xp.reshape(index, (count,))
    rows = c.xp.reshape(values, (*values.shape[:axis], count, *x.shape[axis + 1 :]))
    last = c.xp.zeros((extent,), np.uint64)  # one more than the number of the last value; no value is 0
    c.device.scatter("max", last, flat, c.xp.arange(1, count + 1, dtype=np.uint64))
    taken = c.xp.take(rows, c.xp.maximum(last.astype(np.int64) - 1, 0), axis=axis)
    stored = c.xp.reshape(last > 0, (extent, *[1] * (x.ndim - axis - 1)))
    return c.xp.where(stored, taken, x)


@_call("scatter_add")
def _scatter_add(c: Call) -> Value:
    x, axis = c.values[0], c.node["axis"]
    index = _wrapped(c, _places(c, axis, x.shape[axis]), x.shape[axis])
    return _added(c, x, (*(slice(None),) * axis, index), c.array(2))


@_call("add_along_axis")
def _add_along(c: Call) -> Value:
    x, axis = c.values[0], c.node["axis"]
    index = _wrapped(c, _places(c, axis, x.shape[axis]), x.shape[axis])
    shape = index.shape
    ramps = [c.xp.arange(n, dtype=np.int64) for n in shape]
    grid = [c.xp.reshape(r, [-1 if j == k else 1 for j in range(len(shape))]) for k, r in enumerate(ramps)]
    return _added(c, x, tuple([index if k == axis else place for k, place in enumerate(grid)]), c.array(2))


def _added(c: Call, x: DeviceArray, places: tuple[Any, ...], values: DeviceArray) -> DeviceArray:
    """Sums into places by atomic additions; integers wrap, so that signed ones are added as unsigned ones are."""
    if values.size and x.size:
        signed = x.dtype == np.int64
        target, added = (x.view(np.uint64), values.astype(np.int64).view(np.uint64)) if signed else (x, values)
        c.device.scatter("add", target, places, added)
    return x


@_call("position")
def _position(c: Call) -> Value:
    index, extent, number = c.array(0).astype(np.int64), c.size(c.node["extent"]), c.node["number"]

    def raises() -> None:
        c.node.op.numpy(c.device.fetch(index), extent, number)

    c.fails(c.xp.any((index < -extent) | (index >= extent)), raises)
    return c.xp.where(index < 0, index + extent, index)


LIBRARY["places"] = lambda c: c.xp.flatnonzero(c.array(0))


# sorting --------------------------------------------------------------------------------------------------------------


@_call("sort", "argsort")
def _sort(c: Call) -> Value:
    x = c.array(0)
    if x.dtype.kind == "b":
        x = x.astype(np.uint8)
    function = getattr(c.xp, c.node.op.name)
    return function(x, axis=c.node["axis"], kind="stable") if x.size else function(x, axis=c.node["axis"])


LIBRARY["searchsorted"] = lambda c: c.xp.searchsorted(c.array(0), c.array(1), side=c.node["side"])


# linear algebra and transforms ----------------------------------------------------------------------------------------

_INEXACT = frozenset("fc")


def _lin(c: Call, *options: str) -> Value:
    given = {name: c.node[name] for name in options if name in c.node.params}
    return getattr(c.xp.linalg, c.node.op.name)(*[c.array(k) for k in range(len(c.values))], **given)


LIBRARY.update(dict.fromkeys(("inv", "det"), _lin))
LIBRARY["slogdet"] = lambda c: tuple(_lin(c))
LIBRARY["eigvalsh"] = lambda c: _lin(c, "UPLO")
LIBRARY["eigh"] = lambda c: tuple(_lin(c, "UPLO"))
LIBRARY["svd"] = lambda c: tuple(_lin(c, "full_matrices"))
LIBRARY["svdvals"] = lambda c: c.xp.linalg.svd(c.array(0), compute_uv=False)
LIBRARY["qr"] = lambda c: tuple(_lin(c, "mode"))


@_call("cholesky")
def _cholesky(c: Call) -> Value:
    """Of the lower triangle; an upper factor is the adjoint of that of the adjoint."""
    x = c.array(0)
    if not c.node.params.get("upper"):
        return c.xp.linalg.cholesky(x)
    factor = c.xp.linalg.cholesky(c.xp.conjugate(c.xp.swapaxes(x, -1, -2)))
    return c.xp.conjugate(c.xp.swapaxes(factor, -1, -2))


@_call("solve")
def _solve(c: Call) -> Value:
    a, b = c.array(0), c.array(1)
    if b.ndim > 1:
        return c.xp.linalg.solve(a, b)
    found = c.xp.linalg.solve(a, c.xp.broadcast_to(c.xp.reshape(b, (-1, 1)), (*a.shape[:-2], b.shape[0], 1)))
    return found[..., 0]


@_call("fft", "ifft", "rfft", "irfft")
def _fft(c: Call) -> Value:
    function = getattr(c.xp.fft, c.node.op.name)
    return function(c.array(0), n=c.size(c.node["n"]), axis=c.node["axis"], norm=c.node.params.get("norm"))


@_call("resolved")
def _resolved(c: Call) -> Value:
    xp, differences, values = c.xp, c.array(0), c.array(1)
    if not values.size:
        return differences
    bound = xp.max(xp.absolute(values), axis=-1) * values.dtype.type(values.shape[-1] * np.finfo(values.dtype).eps)
    bound = xp.reshape(bound, (*bound.shape, *[1] * (differences.ndim - bound.ndim)))
    return xp.where(xp.absolute(differences) <= bound, differences.dtype.type(0), differences)


@_call("over_gaps")
def _over_gaps(c: Call) -> Value:
    xp, x, gaps = c.xp, c.array(0), c.array(1)
    zero = xp.equal(gaps, 0)

    def raises() -> None:
        c.node.op.numpy(np.ones(1), np.zeros(1), c.node["what"])

    c.fails(xp.any(xp.logical_and(zero, xp.not_equal(x, 0))), raises)
    return xp.where(zero, x.dtype.type(0), x / xp.where(zero, gaps.dtype.type(1), gaps))


# what there is --------------------------------------------------------------------------------------------------------

_CASTS = frozenset(["astype", "where", "equal", "not_equal", "real", "imag", "from_parts"])
_ADDS = {"add_along_axis", "scatter_add"}
_SUMMED = frozenset(["int32", "int64", "uint32", "uint64", "float16", "float32", "float64"])


def lacking(node: Node) -> str:
    """Why the device's library does not do a node; empty where it does."""
    op: Op = node.op  # type: ignore[assignment]
    if op.name not in LIBRARY:
        return f"{op.name} is not supported on the device"
    dtypes = {t.dtype for a in node.args for t in a.types if t.form != "tape"}
    return _lacking_dtype(op, node, dtypes)


def _lacking_dtype(op: Op, node: Node, dtypes: set[np.dtype[Any]]) -> str:
    kinds = {d.kind for d in dtypes}
    complex_ = "c" in kinds
    if op.kind == "pointwise" and complex_ and op.name not in _COMPLEX | _CASTS:
        return f"{op.name} of complex numbers is not supported on the device"
    if op.kind == "pointwise" and {"i", "u"} <= kinds and np.result_type(*dtypes).kind == "f" and op is not where:
        return f"{op.name} of signed and unsigned integers is not supported on the device"
    if op.kind == "fold" and complex_ and op not in {SUM, PROD, CUMSUM, CUMPROD, ANY, ALL}:
        return f"{op.name} of complex numbers is not supported on the device"
    if op.name in _ADDS and node.type.dtype.name not in _SUMMED:
        return f"{op.name} into {node.type.dtype} is not supported on the device"
    if op in {CONTRACT, GRAM} and kinds == {"b"}:
        return f"{op.name} of truth values is not supported on the device"
    half = np.dtype(np.float16) in dtypes
    if half and (op in {FFT, IFFT, RFFT, IRFFT} or op.name in _SPECIAL):
        return f"{op.name} of float16 is not supported on the device"
    return ""


def twins() -> Mapping[str, Function]:
    """The table, to look at."""
    return LIBRARY
