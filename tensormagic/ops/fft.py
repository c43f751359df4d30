"""Discrete Fourier transforms: those along one axis are linear ops, those along several are made of these."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from tensormagic.ir.errors import AxisError, DifferentiationError, DTypeError, ShapeError
from tensormagic.ir.node import Node, make
from tensormagic.ir.type import Size, Type, apply, hint
from tensormagic.ops.leaf import iota, size_node
from tensormagic.ops.move import broadcast, concatenate, slice_
from tensormagic.ops.move_kind import normalise_axis, show
from tensormagic.ops.op import Tangent
from tensormagic.ops.opaque import Opaque, along_axis
from tensormagic.ops.pointwise import astype
from tensormagic.ops.scalars.scalar import conjugate, equal, logical_or, real, where
from tensormagic.ops.update import add_at, zeros_like

_NORMS = ("backward", "ortho", "forward")
_INVERSE = {"backward": "forward", "ortho": "ortho", "forward": "backward"}


def _complex_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    if dtype.kind not in "biufc":
        raise DTypeError(f"fft does not take an array of dtype {dtype}")
    return np.dtype(
        np.complex64 if dtype in {np.dtype(np.float16), np.dtype(np.float32), np.dtype(np.complex64)} else np.complex128
    )


def _real_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    return np.dtype(np.float32 if _complex_dtype(dtype) == np.complex64 else np.float64)


def _along(x: Node, axis: int, length: Size) -> tuple[Size, ...]:
    shape = x.type.shape
    return (*shape[:axis], length, *shape[axis + 1 :])


def _half(n: Size) -> Size:
    """Return the number of frequencies of a real signal of length ``n``."""
    return apply("floordiv", n, 2) + 1


def _fitted(x: Node, axis: int, length: Size) -> Node:
    """Return ``x`` cropped, or padded with zeros, to a length along an axis."""
    extent = x.type.shape[axis]
    if extent == length:
        return x
    seen = hint(extent), hint(length)
    if seen[0] is None or seen[1] is None:
        raise DifferentiationError(
            f"whether a transform of length {length} crops or pads {extent} elements is not known", "Leave n out."
        )
    shape = _along(x, axis, length)
    if seen[0] >= seen[1]:
        return slice_(x, tuple((0, s, 1) for s in shape))
    return add_at(
        broadcast(zeros_like(slice_(x, tuple((0, 1, 1) for _ in shape))), shape),
        x,
        tuple((0, s, 1) for s in x.type.shape),
    )


def _transform(
    name: str,
    types: Callable[[tuple[Node, ...], Mapping[str, Any]], Type],
    back: Callable[[Node, Node], Node],
    doc: str,
) -> Opaque:
    """Return the op of a transform along one axis, which is linear, so its own derivative."""
    op: Opaque
    function = getattr(np.fft, name)

    def tangent(node: Node, tangents: Sequence[Tangent]) -> Tangent:
        return None if tangents[0] is None else make(op, (tangents[0],), **node.params)

    def pull(node: Node, cotangent: Node, linear: Sequence[bool]) -> Sequence[Tangent]:
        del linear
        (x,) = node.args
        part = back(node, cotangent)
        part = real(part) if part.type.dtype.kind == "c" and x.type.dtype.kind != "c" else part
        return (_fitted(astype(part, x.type.dtype), node["axis"], x.type.shape[node["axis"]]),)

    op = Opaque(
        name=name,
        in_numpy=f"np.fft.{name}",
        split_rows=along_axis,
        types=types,
        numpy=function,
        tangent=tangent,
        back=pull,
        each=5000,
        doc=doc,
    )
    return op


def _complex_type(args: tuple[Node, ...], params: Mapping[str, Any]) -> Type:
    return Type(_complex_dtype(args[0].type.dtype), _along(args[0], params["axis"], params["n"]))


def _rfft_type(args: tuple[Node, ...], params: Mapping[str, Any]) -> Type:
    if args[0].type.dtype.kind == "c":
        raise DTypeError(f"rfft takes real numbers, not {args[0].type}")
    return Type(_complex_dtype(args[0].type.dtype), _along(args[0], params["axis"], _half(params["n"])))


def _irfft_type(args: tuple[Node, ...], params: Mapping[str, Any]) -> Type:
    return Type(_real_dtype(args[0].type.dtype), _along(args[0], params["axis"], params["n"]))


def _irfft_back(node: Node, cotangent: Node) -> Node:
    """Return the transpose of ``irfft``: each frequency counts twice, except those that are their own mirror image."""
    axis, n = node["axis"], node["n"]
    spectrum = conjugate(make(RFFT, (cotangent,), axis=axis, n=n, norm=_INVERSE[node["norm"]]))
    frequency = iota(spectrum.type.shape, axis)
    alone = logical_or(equal(frequency, 0), equal(frequency * 2, size_node(n)))
    return where(alone, spectrum, spectrum * 2)


FFT = _transform(
    "fft",
    _complex_type,
    lambda node, ct: make(FFT, (ct,), **node.params),
    "The discrete Fourier transform along an axis.",
)
IFFT = _transform("ifft", _complex_type, lambda node, ct: make(IFFT, (ct,), **node.params), "The inverse of fft.")
RFFT = _transform(
    "rfft",
    _rfft_type,
    lambda node, ct: make(FFT, (ct,), **node.params),  # fft pads the upper frequencies with zeros
    "The frequencies from zero up of a real signal.",
)
IRFFT = _transform(
    "irfft", _irfft_type, _irfft_back, "The inverse of rfft: the real signal of given non-negative frequencies."
)


def _build(op: Opaque, x: Node, n: Size | None, axis: int, norm: str | None, default: Callable[[Size], Size]) -> Node:
    if not x.type.ndim:
        raise AxisError("a Fourier transform needs at least one axis")
    axis = normalise_axis(axis, x.type.ndim)
    length = default(x.type.shape[axis]) if n is None else n
    if norm is not None and norm not in _NORMS:
        message = f'Invalid norm value {norm}; should be "backward", "ortho" or "forward".'
        raise ValueError(message)
    if isinstance(length, int) and length < 1:
        raise ShapeError(f"Invalid number of FFT data points ({length}) specified.")
    return make(op, (x,), n=length, axis=axis, norm=norm or "backward")


def fft(x: Node, n: Size | None = None, axis: int = -1, norm: str | None = None) -> Node:
    """Return ``np.fft.fft``."""
    return _build(FFT, x, n, axis, norm, lambda s: s)


def ifft(x: Node, n: Size | None = None, axis: int = -1, norm: str | None = None) -> Node:
    """Return ``np.fft.ifft``."""
    return _build(IFFT, x, n, axis, norm, lambda s: s)


def rfft(x: Node, n: Size | None = None, axis: int = -1, norm: str | None = None) -> Node:
    """Return ``np.fft.rfft``."""
    return _build(RFFT, x, n, axis, norm, lambda s: s)


def irfft(x: Node, n: Size | None = None, axis: int = -1, norm: str | None = None) -> Node:
    """Return ``np.fft.irfft``."""
    return _build(IRFFT, x, n, axis, norm, lambda s: 2 * (s - 1))


def hfft(x: Node, n: Size | None = None, axis: int = -1, norm: str | None = None) -> Node:
    """Return ``np.fft.hfft``."""
    return irfft(conjugate(x), n, axis, _INVERSE[norm or "backward"])


def ihfft(x: Node, n: Size | None = None, axis: int = -1, norm: str | None = None) -> Node:
    """Return ``np.fft.ihfft``."""
    return conjugate(rfft(x, n, axis, _INVERSE[norm or "backward"]))


# several axes, in NumPy's order ---------------------------------------------------------------------------------------

Sizes = tuple[Size, ...] | None
Axes = tuple[int, ...] | None
_LAST_TWO = (-2, -1)


def _steps(x: Node, s: Sizes, axes: Axes) -> list[tuple[Size | None, int]]:
    """Return the length and axis of each one-axis transform."""
    if axes is None:
        axes = tuple(range(x.type.ndim)) if s is None else tuple(range(-len(s), 0))
    lengths: tuple[Size | None, ...] = (None,) * len(axes) if s is None else tuple(None if n == -1 else n for n in s)
    if len(lengths) != len(axes):
        raise ShapeError(f"Shape and axes have different lengths: {show(s or ())} and {axes}")
    return list(zip(lengths, axes, strict=True))


def fftn(x: Node, s: Sizes = None, axes: Axes = None, norm: str | None = None) -> Node:
    """Return ``np.fft.fftn``."""
    for n, axis in reversed(_steps(x, s, axes)):
        x = fft(x, n, axis, norm)
    return x


def ifftn(x: Node, s: Sizes = None, axes: Axes = None, norm: str | None = None) -> Node:
    """Return ``np.fft.ifftn``."""
    for n, axis in reversed(_steps(x, s, axes)):
        x = ifft(x, n, axis, norm)
    return x


def rfftn(x: Node, s: Sizes = None, axes: Axes = None, norm: str | None = None) -> Node:
    """Return ``np.fft.rfftn``."""
    *others, (n, axis) = _steps(x, s, axes)
    x = rfft(x, n, axis, norm)
    for length, other in reversed(others):
        x = fft(x, length, other, norm)
    return x


def irfftn(x: Node, s: Sizes = None, axes: Axes = None, norm: str | None = None) -> Node:
    """Return ``np.fft.irfftn``."""
    *others, (n, axis) = _steps(x, s, axes)
    for length, other in others:
        x = ifft(x, length, other, norm)
    return irfft(x, n, axis, norm)


def fft2(x: Node, s: Sizes = None, axes: Axes = _LAST_TWO, norm: str | None = None) -> Node:
    """Return ``np.fft.fft2``."""
    return fftn(x, s, axes, norm)


def ifft2(x: Node, s: Sizes = None, axes: Axes = _LAST_TWO, norm: str | None = None) -> Node:
    """Return ``np.fft.ifft2``."""
    return ifftn(x, s, axes, norm)


def rfft2(x: Node, s: Sizes = None, axes: Axes = _LAST_TWO, norm: str | None = None) -> Node:
    """Return ``np.fft.rfft2``."""
    return rfftn(x, s, axes, norm)


def irfft2(x: Node, s: Sizes = None, axes: Axes = _LAST_TWO, norm: str | None = None) -> Node:
    """Return ``np.fft.irfft2``."""
    return irfftn(x, s, axes, norm)


def _rotated(x: Node, axes: int | Axes, first: Callable[[Size], Size]) -> Node:
    """Return ``x`` with each axis rolled so that it begins at ``first(extent)``."""
    chosen = tuple(range(x.type.ndim)) if axes is None else (axes,) if isinstance(axes, int) else axes
    for axis in (normalise_axis(a, x.type.ndim) for a in chosen):
        extent = x.type.shape[axis]
        start = first(extent)
        if extent in {0, 1}:
            continue
        parts = [
            tuple((begin, length, 1) if k == axis else (0, s, 1) for k, s in enumerate(x.type.shape))
            for begin, length in ((start, extent - start), (0, start))
        ]
        x = concatenate([slice_(x, part) for part in parts], axis)
    return x


def fftshift(x: Node, axes: int | Axes = None) -> Node:
    """Return ``np.fft.fftshift``."""
    return _rotated(x, axes, lambda n: apply("floordiv", n + 1, 2))


def ifftshift(x: Node, axes: int | Axes = None) -> Node:
    """Return ``np.fft.ifftshift``."""
    return _rotated(x, axes, lambda n: apply("floordiv", n, 2))
