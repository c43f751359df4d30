"""``np.fft`` on lazy arrays."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from tensormagic.capture import context
from tensormagic.capture.errors.refusal import refuse
from tensormagic.capture.names import implements
from tensormagic.capture.python.words import said
from tensormagic.capture.values.operands import node_of
from tensormagic.capture.values.value import Tensor, as_size, done
from tensormagic.ir.node import Node
from tensormagic.ir.size import is_at_least
from tensormagic.ir.type import apply
from tensormagic.ops import fft
from tensormagic.ops.effects.checks import not_zero
from tensormagic.ops.form import to_form
from tensormagic.ops.leaf import iota, size_node
from tensormagic.ops.pointwise import astype
from tensormagic.ops.scalars import scalar


def _no_out(name: str, out: Any) -> None:
    if out is not None:
        refuse(f"np.fft.{name} with out=", "Assign the result instead.")


def _axes(axes: Any) -> Any:
    return None if axes is None else tuple(int(k) for k in axes)


def _one_axis(name: str) -> Callable[..., Any]:
    op = getattr(fft, name)

    def transform(a: Any, n: Any = None, axis: int = -1, norm: str | None = None, out: Any = None) -> Any:
        _no_out(name, out)
        return done(op(node_of(a), None if n is None else as_size(n), int(axis), norm))

    return transform


def _several(name: str, default: Any) -> Callable[..., Any]:
    op = getattr(fft, name)

    def transform(a: Any, s: Any = None, axes: Any = default, norm: str | None = None, out: Any = None) -> Any:
        _no_out(name, out)
        sizes = None if s is None else tuple(as_size(n) for n in s)
        return done(to_form(op(node_of(a), sizes, _axes(axes), norm), "array"))

    return transform


def _shift(name: str) -> Callable[..., Any]:
    op = getattr(fft, name)

    def shift(x: Any, axes: Any = None) -> Any:
        node = node_of(x)
        if not node.type.ndim:
            raise ValueError(f"np.fft.{name} takes an array with axes")
        return done(op(node, int(axes) if isinstance(axes, int | np.integer) else _axes(axes)))

    return shift


for _name in ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft"):
    implements(getattr(np.fft, _name))(_one_axis(_name))
for _name in ("fft2", "ifft2", "rfft2", "irfft2"):
    implements(getattr(np.fft, _name))(_several(_name, (-2, -1)))
for _name in ("fftn", "ifftn", "rfftn", "irfftn"):
    implements(getattr(np.fft, _name))(_several(_name, None))
for _name in ("fftshift", "ifftshift"):
    implements(getattr(np.fft, _name))(_shift(_name))


@implements(np.fft.fftfreq)
def fftfreq(n: Any, d: Any = 1.0, device: Any = None) -> Any:
    """Implement ``np.fft.fftfreq``: the frequencies of ``np.fft.fft``, for sizes that may be symbolic."""
    count = context.settle(as_size(n))
    half = apply("floordiv", count - 1, 2) + 1
    ramp = iota((count,), 0)
    centred = scalar.where(scalar.less(ramp, size_node(half)), ramp, ramp - size_node(count))
    return _scaled(centred, count, d, strong=_is_numpys(n))


@implements(np.fft.rfftfreq)
def rfftfreq(n: Any, d: Any = 1.0, device: Any = None) -> Any:
    """Implement ``np.fft.rfftfreq``: the frequencies of ``np.fft.rfft``."""
    count = as_size(n)
    return _scaled(iota((apply("floordiv", count, 2) + 1,), 0), count, d, strong=_is_numpys(n))


def _is_numpys(n: Any) -> bool:
    return isinstance(n, np.generic) or (isinstance(n, Tensor) and n.type.form != "python")


def _scaled(steps: Node, count: Any, d: Any, *, strong: bool) -> Tensor:
    length = astype(size_node(count), np.float64) * node_of(d)
    if not is_at_least(count, 1) and not strong:
        length = not_zero(length, said(operator.truediv, 1.0, 0))
    return done(steps * (1.0 / length))
