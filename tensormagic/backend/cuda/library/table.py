"""The table of library calls: the call for each operation that the device's library supports, in NumPy's names.

The fake device runs the same calls with NumPy as the library. An operation that is not here is computed on the
host: :func:`lacking` says so before anything runs. Errors of NumPy that depend on data are checked on the device,
and raised at the end.
"""

from __future__ import annotations

import math
import re
from functools import lru_cache
from typing import Any

import numpy as np

from tensormagic.backend.cuda.compiling import compiler
from tensormagic.backend.cuda.device import DeviceArray
from tensormagic.backend.cuda.kernels import segments
from tensormagic.backend.cuda.library import matrices as library_matrices
from tensormagic.backend.cuda.library import orders as library_orders
from tensormagic.backend.cuda.library import places as library_places
from tensormagic.backend.cuda.library import signatures
from tensormagic.backend.cuda.library.call import LIBRARY, Call, call
from tensormagic.ir.node import Node, topological
from tensormagic.ops.contract import CONTRACT
from tensormagic.ops.convolution import CONVOLVE
from tensormagic.ops.fft import FFT, IFFT, IRFFT, RFFT
from tensormagic.ops.fold import ALL, ANY, CUMMAX, CUMPROD, CUMSUM, PROD, SUM, ordinary
from tensormagic.ops.indices.gather import ADD_ALONG_AXIS
from tensormagic.ops.indices.scatter import SCATTER_ADD, SCATTER_MAXIMUM, SCATTER_MINIMUM, SCATTER_MULTIPLY
from tensormagic.ops.indices.sorting import ROW_ORDER
from tensormagic.ops.matrices.gram import GRAM
from tensormagic.ops.move import concrete_slices
from tensormagic.ops.op import Op, Value
from tensormagic.ops.scalars.comparison import where

OTHERS = (library_matrices, library_orders, library_places)  # imported for the calls that they register

# scalar functions -----------------------------------------------------------------------------------------------------

_NAMED = re.compile(r"(?:np|scipy)\.((?:special\.)?\w+)(?:\(\{0\}\))?")
# Of complex numbers those whose values CuPy defines as NumPy does; it has loops of others, which follow older rules (sign, maximum).
_COMPLEX = frozenset(
    "where add subtract multiply divide negative positive square sqrt reciprocal exp log sin cos tan sinh cosh tanh "  # noqa: SIM905
    "absolute conjugate equal not_equal real imag isnan isinf isfinite logical_and logical_or logical_xor logical_not "
    "stop_gradient power".split()
)


def name_of(op: Op) -> str:
    """Return CuPy's name of the function of an op: ``add``, ``special.erf``; "" for a formula."""
    found = _NAMED.fullmatch(op.in_numpy or f"np.{op.name}")
    return found.group(1) if found else ""


def named(c: Call) -> Value:
    """Call the function of the library that the op names."""
    name = name_of(c.node.op)  # type: ignore[arg-type]
    of, name = (c.device.special, name.removeprefix("special.")) if name.startswith("special.") else (c.xp, name)
    return getattr(of, name)(*c.values)


call("ldexp", "frexp")(named)


@call("logical_and", "logical_or", "logical_xor", "logical_not")
def _logical(c: Call) -> Value:
    """Compute a logical op; complex numbers are first compared with 0, as CuPy has no loops for them."""
    xp = c.xp
    values = [xp.not_equal(v, 0) if a.type.dtype.kind == "c" else v for v, a in zip(c.values, c.node.args, strict=True)]
    return getattr(xp, c.node.op.name)(*values)


call("stop_gradient")(lambda c: c.values[0])


@call("power")
def _power(c: Call) -> Value:
    base, exponent = c.values
    if c.node.args[1].type.dtype.kind == "i":
        negative = c.xp.any(c.array(1) < 0)
        c.fails(negative, lambda: _raise(ValueError("Integers to negative integer powers are not allowed.")))
    return c.xp.power(base, exponent)


def _raise(error: Exception) -> None:
    raise error


@call("sigmoid")
def _sigmoid(c: Call) -> Value:
    xp, x = c.xp, c.array(0)
    e = xp.exp(-xp.absolute(x))
    return xp.where(x >= 0, x.dtype.type(1), e) / (e + x.dtype.type(1))


@call("from_parts")
def _from_parts(c: Call) -> Value:
    shape = np.broadcast_shapes(*(np.shape(v) for v in c.values))
    made = c.xp.empty(shape, c.node.type.dtype)
    made.real, made.imag = c.values
    return made


@call("astype")
def _astype(c: Call) -> Value:
    x, dtype = c.array(0), c.node.type.dtype
    if x.dtype.kind == "c" and dtype.kind != "c":
        x = c.xp.not_equal(x, 0) if dtype.kind == "b" else c.xp.real(x)
    return x.astype(dtype)


@call("reinterpret")
def _reinterpret(c: Call) -> Value:
    return c.array(0).copy().view(np.dtype(c.node["dtype"]))


def _weights(c: Call) -> DeviceArray:
    """Return the values of the bits of a byte, along the axis after ``axis``."""
    values = c.xp.left_shift(np.uint8(1), c.xp.arange(8, dtype=np.uint8))
    ordered = values[::-1] if c.node["bitorder"] == "big" else values
    return c.xp.reshape(ordered, (8, *[1] * (c.array(0).ndim - c.node["axis"] - 1)))


@call("packbits")
def _packbits(c: Call) -> Value:
    xp, x, axis = c.xp, c.array(0), c.node["axis"]
    bits = xp.not_equal(x, 0).astype(np.uint8)
    missing = -x.shape[axis] % 8
    bits = xp.concatenate([bits, xp.zeros((*x.shape[:axis], missing, *x.shape[axis + 1 :]), np.uint8)], axis=axis)
    bits = xp.reshape(bits, (*x.shape[:axis], bits.shape[axis] // 8, 8, *x.shape[axis + 1 :]))
    return xp.sum(bits * _weights(c), axis=axis + 1, dtype=np.uint8)


@call("unpackbits")
def _unpackbits(c: Call) -> Value:
    xp, x, axis = c.xp, c.array(0), c.node["axis"]
    parts = xp.bitwise_and(xp.expand_dims(x, axis + 1), _weights(c))
    bits = xp.not_equal(parts, 0).astype(np.uint8)
    return xp.reshape(bits, (*x.shape[:axis], x.shape[axis] * 8, *x.shape[axis + 1 :]))


# moves ----------------------------------------------------------------------------------------------------------------


@call("iota")
def _iota(c: Call) -> Value:
    axis, shape = c.node["axis"], c.shape
    ramp = c.xp.arange(shape[axis], dtype=np.int64)
    return c.xp.broadcast_to(c.xp.reshape(ramp, [-1 if k == axis else 1 for k in range(len(shape))]), shape)


@call("broadcast")
def _broadcast(c: Call) -> Value:
    if any(n < 0 for n in c.shape):
        raise ValueError("negative dimensions are not allowed")
    return c.xp.broadcast_to(c.array(0), c.shape)


call("transpose")(lambda c: c.xp.transpose(c.array(0), c.node["permutation"]))
call("reshape")(lambda c: c.xp.reshape(c.array(0), c.shape))
call("slice")(lambda c: c.array(0)[concrete_slices(c.node, c.size)])
call("concatenate")(lambda c: c.xp.concatenate([c.array(k) for k in range(len(c.values))], axis=c.node["axis"]))
call("form", "named", "fixed")(lambda c: c.values[0])
call("after")(lambda c: c.values[1])
call("item")(lambda c: c.values[0][c.node["index"]])


# folds ----------------------------------------------------------------------------------------------------------------

_NAMES = {"max": "maximum", "min": "minimum"}


def _axis(c: Call) -> Any:
    axes = c.node["axes"]
    return axes[0] if len(axes) == 1 else tuple(axes)


@call("sum", "prod")
def _sum(c: Call) -> Value:
    return getattr(c.xp, c.node.op.name)(c.array(0), axis=_axis(c), dtype=c.node.type.dtype)


@call("any", "all")
def _any(c: Call) -> Value:
    return getattr(c.xp, c.node.op.name)(c.array(0), axis=_axis(c))


@call("max", "min")
def _max(c: Call) -> Value:
    x, name = c.array(0), c.node.op.name
    rest = _rest(c, x)
    if 0 in [x.shape[k] for k in c.node["axes"]] and math.prod(rest):
        raise ValueError(f"zero-size array to reduction operation {_NAMES[name]} which has no identity")
    if not x.size:
        return c.xp.zeros(rest, x.dtype)
    return getattr(c.xp, name)(x, axis=_axis(c))


def _rest(c: Call, x: DeviceArray) -> tuple[int, ...]:
    """Return the extents of the axes that a reduction keeps."""
    return tuple(n for k, n in enumerate(x.shape) if k not in c.node["axes"])


@call("argmax", "argmin")
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


@call("logsumexp")
def _logsumexp(c: Call) -> Value:
    xp, x = c.xp, c.array(0)
    shift = _finite(c, x)
    return xp.reshape(xp.log(_total(c, xp.exp(x - shift))) + shift, _rest(c, x))


@call("softmax")
def _softmax(c: Call) -> Value:
    xp, x = c.xp, c.array(0)
    if "whole" in c.node.params:
        x = x - _top(c, x)
    limits, top = np.finfo(x.dtype), _top(c, x)
    if "whole" not in c.node.params:
        top = xp.where(xp.abs(top) <= ordinary(x.dtype), x.dtype.type(0), top)
    e = xp.exp(x - xp.clip(top, limits.min, limits.max))
    return e / _total(c, e)


@call("log_softmax")
def _log_softmax(c: Call) -> Value:
    xp, x = c.xp, c.array(0)
    shifted = x - _finite(c, x)
    return shifted - xp.log(_total(c, xp.exp(shifted)))


@call("cumsum", "cumprod")
def _cumulative(c: Call) -> Value:
    return getattr(c.xp, c.node.op.name)(c.array(0), axis=c.node["axes"][0], dtype=c.node.type.dtype)


@call("cummax", "cummin")
def _running(c: Call) -> Value:
    """Compute a running maximum or minimum by doubling: each step covers twice as many elements."""
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


@call("bitwise_and_of", "bitwise_or_of", "bitwise_xor_of", "gcd_of", "lcm_of")
def _halved(c: Call) -> Value:
    """Reduce integers by an associative function by halving an axis."""
    xp, x, axes = c.xp, c.array(0), c.node["axes"]
    name = c.node.op.name.removesuffix("_of")
    function = getattr(xp, name)
    rest = _rest(c, x)
    count = math.prod(x.shape[k] for k in axes)
    start = c.node.op.start  # type: ignore[attr-defined]
    if not count and start is None and math.prod(rest):
        raise ValueError(f"zero-size array to reduction operation {name} which has no identity")
    if not count or not x.size:
        return xp.full(rest, 0 if start is None else start(x.dtype), x.dtype)
    x = xp.reshape(xp.moveaxis(x, axes, tuple(range(len(axes)))), (count, *rest))
    if count == 1 and start is not None:
        return function(x[0], x.dtype.type(start(x.dtype)))
    while len(x) > 1:
        half = len(x) // 2
        x = xp.concatenate([function(x[:half], x[half : 2 * half]), x[2 * half :]])
    return x[0]


@call("prod_others")
def _others(c: Call) -> Value:
    xp, x, axes = c.xp, c.array(0), c.node["axes"]
    last = tuple(range(x.ndim - len(axes), x.ndim))
    moved = xp.moveaxis(x, axes, last)
    flat = xp.reshape(moved, (*moved.shape[: last[0]], math.prod(moved.shape[last[0] :])))
    before, after = xp.ones_like(flat), xp.ones_like(flat)
    before[..., 1:] = xp.cumprod(flat[..., :-1], axis=-1)
    after[..., :-1] = xp.cumprod(flat[..., :0:-1], axis=-1)[..., ::-1]
    return xp.moveaxis(xp.reshape(before * after, moved.shape), last, axes)


# support
# -------------------------------------------------------------------------------------------------------------

_CASTS = frozenset(["astype", "where", "equal", "not_equal", "real", "imag", "from_parts"])
_ADDS = {ADD_ALONG_AXIS, SCATTER_ADD}
_SCATTERS = {*_ADDS, SCATTER_MULTIPLY, SCATTER_MAXIMUM, SCATTER_MINIMUM}
_SUMMED = frozenset(["int32", "int64", "uint32", "uint64", "float16", "float32", "float64"])


def simpler(node: Node) -> list[Node]:
    """Return simpler nodes that compute a node without a library function; the last one has the same value. Empty if none are needed."""
    op: Op = node.op  # type: ignore[assignment]
    if _is_there(node):
        return []
    found = op.expand(node)
    own = set(node.args)
    return [] if found is None else [n for n in topological([found], stop=own.__contains__) if n not in own]


def _is_there(node: Node) -> bool:
    """Return whether the library supports an op, by a registered call or by the function of its name."""
    op: Op = node.op  # type: ignore[assignment]
    return op.name in LIBRARY or (op.kind == "pointwise" and _has_loop(op, tuple(a.type.dtype for a in node.args)))


@lru_cache(maxsize=4096)
def _has_loop(op: Op, dtypes: tuple[np.dtype[Any], ...]) -> bool:
    return signatures.takes(name_of(op), dtypes)


def lacking(node: Node) -> str:
    """Return why the device's library does not support a node, or "" if it does."""
    op: Op = node.op  # type: ignore[assignment]
    if not _is_there(node):
        instead = simpler(node)
        if not instead:
            return f"{op.name} is not supported on the device"
        return next(filter(None, (lacking(n) for n in instead if n.op.kind != "leaf")), "")
    dtypes = {t.dtype for a in node.args for t in a.types if t.form != "tape"}
    return _lacking_dtype(op, node, dtypes)


def _scatters(op: Op, dtype: str) -> bool:
    """Return whether values of a dtype can be scattered, by our kernel or by the library's atomic additions."""
    return (dtype in segments.DTYPES and compiler.is_there()) or (op in _ADDS and dtype in _SUMMED)


def _lacking_dtype(op: Op, node: Node, dtypes: set[np.dtype[Any]]) -> str:
    kinds = {d.kind for d in dtypes}
    complex_ = "c" in kinds
    if op.kind == "pointwise" and complex_ and op.name not in _COMPLEX | _CASTS:
        return f"{op.name} of complex numbers is not supported on the device"
    if op.kind == "pointwise" and {"i", "u"} <= kinds and np.result_type(*dtypes).kind == "f" and op is not where:
        return f"{op.name} of signed and unsigned integers is not supported on the device"
    if op.kind == "fold" and complex_ and op not in {SUM, PROD, CUMSUM, CUMPROD, ANY, ALL}:
        return f"{op.name} of complex numbers is not supported on the device"
    if op in _SCATTERS and not _scatters(op, node.type.dtype.name):
        return f"{op.name} into {node.type.dtype} is not supported on the device"
    if op is ROW_ORDER and complex_:
        return f"{op.name} of complex numbers is not supported on the device"
    if op in {CONTRACT, GRAM, CONVOLVE} and kinds == {"b"}:
        return f"{op.name} of truth values is not supported on the device"
    if np.dtype(np.float16) in dtypes and op in {FFT, IFFT, RFFT, IRFFT}:
        return f"{op.name} of float16 is not supported on the device"
    return ""
