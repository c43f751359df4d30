"""Filters by small kernels from ``scipy.ndimage`` and ``scipy.signal``: windows gathered along axes, times weights."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensormagic.capture import context
from tensormagic.capture.errors.refusal import refuse
from tensormagic.capture.library import signal
from tensormagic.capture.names import implements
from tensormagic.capture.values.arguments import done, one_axis, tensor
from tensormagic.capture.values.operands import node_of
from tensormagic.capture.values.value import Tensor
from tensormagic.ir.errors import ShapeError
from tensormagic.ir.node import Node
from tensormagic.ir.size import nodes_of
from tensormagic.ir.type import Size, apply, hint
from tensormagic.ops.contract import LETTERS, einsum
from tensormagic.ops.effects.checks import require
from tensormagic.ops.indices.gather import gather
from tensormagic.ops.leaf import iota, size_node
from tensormagic.ops.move import broadcast, flip, reshape
from tensormagic.ops.pointwise import astype
from tensormagic.ops.scalars import scalar

_MODES = {
    "reflect": "reflect",
    "grid-mirror": "reflect",
    "mirror": "mirror",
    "nearest": "nearest",
    "wrap": "wrap",
    "grid-wrap": "wrap",
    "constant": "constant",
    "grid-constant": "constant",
}


def _folded(index: Node, n: Size, mode: str) -> Node:
    """Return indices with those beyond the ends replaced by the places that ``mode`` maps them to."""
    count = size_node(n)
    if mode in {"nearest", "constant"}:
        return scalar.minimum(scalar.maximum(index, 0), count - 1)
    if mode == "wrap":
        return scalar.remainder(index, count)
    period = 2 * count if mode == "reflect" else scalar.maximum(2 * count - 2, 1)
    within = scalar.remainder(index, period)
    return scalar.where(scalar.less(within, count), within, period - within - (1 if mode == "reflect" else 0))


def windows(x: Node, axis: int, index: Node, mode: str, outside: Any) -> Node:
    """Return the elements of ``x`` along an axis at ``index``, two axes in the place of one."""
    n = x.type.shape[axis]
    taken = gather(x, _folded(index, n, mode), axis)
    if mode != "constant":
        return taken
    inside = scalar.logical_and(scalar.greater_equal(index, 0), scalar.less(index, size_node(n)))
    shape = (*(1 for _ in range(axis)), *index.type.shape, *(1 for _ in range(x.type.ndim - axis - 1)))
    filling = node_of(outside)
    filling = filling if filling.type.form == "python" else astype(filling, taken.type.dtype)
    return scalar.where(broadcast(reshape(inside, shape), taken.type.shape), taken, filling)


def _sliding(out: Size, count: Size, start: Size, sign: int) -> Node:
    """Return ``start + i + sign * k`` for every place ``i`` and every weight ``k``."""
    shape = (out, count)
    place, weight = iota(shape, 0), iota(shape, 1)
    return (place + weight if sign > 0 else place - weight) + size_node(start)


# scipy.ndimage --------------------------------------------------------------------------------------------------------


def _filter(name: str, input: Any, weights: Node, axis: int, output: Any, mode: str, cval: Any, start: Size) -> Tensor:
    """Return ``out[i] = sum(weights[k] * input[start + i + k])``, in float64, cast to the dtype of the input."""
    x = node_of(input)
    if mode not in _MODES:
        raise RuntimeError("boundary mode not supported")
    if output is not None and not isinstance(output, type | np.dtype | str):
        refuse(f"scipy.ndimage.{name} with output=", "Assign the result instead.")
    if weights.type.dtype.kind == "c" or weights.type.ndim != 1:
        refuse(
            f"scipy.ndimage.{name} with weights that are complex or not a vector",
            "Filter the real and the imaginary part separately.",
        )
    axis = one_axis(axis, x.type.ndim)
    wide = astype(x, np.complex128 if x.type.dtype.kind == "c" else np.float64)
    index = _sliding(x.type.shape[axis], weights.type.shape[0], start, 1)
    found = windows(wide, axis, index, _MODES[mode], cval)
    letters = LETTERS[: found.type.ndim]
    kernel = letters[axis + 1]
    result = einsum(f"{letters},{kernel}->{letters.replace(kernel, '')}", found, astype(weights, np.float64))
    return done(astype(result, x.type.dtype if output is None else np.dtype(output)))


@implements("scipy.ndimage.correlate1d")
def correlate1d(
    input: Any,
    weights: Any,
    axis: int = -1,
    output: Any = None,
    mode: str = "reflect",
    cval: Any = 0.0,
    origin: int = 0,
) -> Any:
    """Implement ``scipy.ndimage.correlate1d``."""
    w = node_of(weights)
    start = -(apply("floordiv", w.type.size, 2) + int(origin))
    return _filter("correlate1d", input, w, axis, output, mode, cval, start)


@implements("scipy.ndimage.convolve1d")
def convolve1d(
    input: Any,
    weights: Any,
    axis: int = -1,
    output: Any = None,
    mode: str = "reflect",
    cval: Any = 0.0,
    origin: int = 0,
) -> Any:
    """Implement ``scipy.ndimage.convolve1d``."""
    w = node_of(weights)
    count = w.type.size
    even = 1 - apply("mod", count, 2)
    start = -(apply("floordiv", count, 2) - int(origin) - even)
    return _filter("convolve1d", input, flip(w, (0,)), axis, output, mode, cval, start)


# scipy.signal ---------------------------------------------------------------------------------------------------------

_BOUNDARIES = {
    "fill": "constant",
    "pad": "constant",
    "wrap": "wrap",
    "circular": "wrap",
    "symm": "reflect",
    "symmetric": "reflect",
}


def _checked(mode: Any, boundary: Any) -> str:
    if mode not in {"full", "same", "valid"}:
        raise ValueError("Acceptable mode flags are 'valid', 'same', or 'full'.")
    if boundary not in _BOUNDARIES:
        raise ValueError("Acceptable boundary flags are 'fill', 'circular' (or 'wrap'), and 'symmetric' (or 'symm').")
    return _BOUNDARIES[boundary]


def _swapped(mode: str, x: Node, y: Node) -> bool:
    """Return whether mode "valid" swaps the operands; the graph is guarded by the answer."""
    pairs = list(zip(x.type.shape, y.type.shape, strict=True))
    seen = [(hint(s), hint(t)) for s, t in pairs]
    if mode != "valid":
        return False
    if any(a is None or b is None for a, b in seen):
        refuse("mode='valid' of arrays whose shapes depend on data", "Compute them in an earlier cell.")
    fits = all((a or 0) >= (b or 0) for a, b in seen)
    if not fits and not all((a or 0) <= (b or 0) for a, b in seen):
        raise ShapeError("For 'valid' mode, one must be at least as large as the other in every dimension")
    capture = context.current()
    if capture is not None:
        capture.guards += [
            (s, ">=", t) if fits else (t, ">=", s + 1 if a != b else s)
            for (s, t), (a, b) in zip(pairs, seen, strict=True)
        ]
    return not fits


def _planes(x: Node, y: Node, mode: str, boundary: str, filling: Any, sign: int) -> Node:
    """Return ``out[i] = sum(y[k] * x[start + i + sign * k])`` along each axis."""
    dtype = np.result_type(x.type.dtype, y.type.dtype)
    x, y = astype(x, dtype), astype(y, dtype)
    rank = x.type.ndim
    found = x
    for axis in reversed(range(rank)):
        n, m = x.type.shape[axis], y.type.shape[axis]
        out = {"full": n + m - 1, "same": n, "valid": n - m + 1}[mode]
        half = apply("floordiv", m - 1, 2)
        start = {"full": 0, "same": half, "valid": m - 1}[mode]
        start = start if sign < 0 else {"full": 1 - m, "same": -half, "valid": 0}[mode]
        found = windows(found, axis, _sliding(out, m, start, sign), boundary, filling)
    letters = LETTERS[: 2 * rank]
    return astype(einsum(f"{letters},{letters[1::2]}->{letters[::2]}", found, y), dtype)


def _two(name: str, in1: Any, in2: Any) -> tuple[Node, Node]:
    x, y = node_of(in1), node_of(in2)
    if x.type.ndim != 2 or y.type.ndim != 2:
        raise ShapeError(f"{name} inputs must both be 2-D arrays")
    return x, y


@implements("scipy.signal.convolve2d")
def convolve2d(in1: Any, in2: Any, mode: str = "full", boundary: str = "fill", fillvalue: Any = 0) -> Any:
    """Implement ``scipy.signal.convolve2d``: by windows, for kernels that are small beside the image."""
    x, y = _two("convolve2d", in1, in2)
    way = _checked(mode, boundary)
    if _swapped(mode, x, y):
        x, y = y, x
    return done(_planes(x, y, mode, way, fillvalue, -1))


@implements("scipy.signal.correlate2d")
def correlate2d(in1: Any, in2: Any, mode: str = "full", boundary: str = "fill", fillvalue: Any = 0) -> Any:
    """Implement ``scipy.signal.correlate2d``: by windows, for kernels that are small beside the image."""
    x, y = _two("correlate2d", in1, in2)
    way = _checked(mode, boundary)
    turned = _swapped(mode, x, y)
    x, y = (y, x) if turned else (x, y)
    y = scalar.conjugate(y) if y.type.dtype.kind == "c" else y
    result = _planes(x, y, mode, way, fillvalue, 1)
    return done(flip(result, (0, 1)) if turned else result)


def _of_any_rank(name: str, in1: Any, in2: Any, mode: str) -> Tensor:
    """Implement ``scipy.signal.convolve`` of vectors by NumPy's, of higher ranks by windows."""
    x, y = node_of(in1), node_of(in2)
    if x.type.ndim != y.type.ndim:
        raise ValueError("volume and kernel should have the same dimensionality")
    _checked(mode, "fill")
    if not x.type.ndim:
        return tensor(x) * tensor(y)
    for s in (*x.type.shape, *y.type.shape):
        if nodes_of(s):
            y = require(
                y,
                scalar.greater(size_node(s), 0),
                "a convolution of a data-dependent number of elements, here none, is not captured",
                "capture",
            )
    if x.type.ndim > 1 or mode == "valid":
        if _swapped(mode, x, y):
            x, y = y, x
        if x.type.ndim > 1:
            return done(_planes(x, y, mode, "constant", 0, -1))
    if mode != "same":
        return signal.convolve_(tensor(x), tensor(y), mode)
    whole = signal.convolve_(tensor(x), tensor(y), "full")
    begin = (y.type.shape[0] - 1) // 2
    return whole[_as_tensor(begin) : _as_tensor(begin + x.type.shape[0])]


def _as_tensor(size: Size) -> Any:
    return size if isinstance(size, int) else done(size_node(size))


@implements("scipy.signal.convolve")
def convolve(in1: Any, in2: Any, mode: str = "full", method: str = "auto") -> Any:
    """Implement ``scipy.signal.convolve``."""
    return _of_any_rank("convolve", in1, in2, mode)


@implements("scipy.signal.fftconvolve")
def fftconvolve(in1: Any, in2: Any, mode: str = "full", axes: Any = None) -> Any:
    """Implement ``scipy.signal.fftconvolve`` over all axes; computed as ``convolve``, in floating point."""
    if axes is not None:
        refuse("scipy.signal.fftconvolve with axes=", "Leave axes out.")
    x, y = node_of(in1), node_of(in2)
    dtype = np.result_type(x.type.dtype, y.type.dtype)
    wide = dtype if dtype.kind in "fc" else np.float64
    return _of_any_rank("fftconvolve", tensor(astype(x, wide)), tensor(astype(y, wide)), mode)
