"""The logarithm of a length, accurate near 1, where the plain formula loses digits, and without overflow and underflow."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensormagic.ir.node import Node
from tensormagic.ops.op import Value
from tensormagic.ops.pointwise import astype
from tensormagic.ops.scalars import scalar
from tensormagic.ops.scalars.function import INF, float_loop2, scalar_op
from tensormagic.ops.scalars.scalar import hypot


def _rest_of_square(x: Any, squared: Any, bits: int) -> Any:
    """Return the exact error of a rounded square, by splitting ``x`` into two halves of its digits (Dekker 1971)."""
    large = x * float(2 ** ((bits + 2) // 2) + 1)
    high = large - (large - x)
    low = x - high
    return low * low - ((squared - high * high) - 2 * (high * low))


def _log_length(x: Any, y: Any, of: Any, dtype: Any) -> Any:
    """Return the logarithm of the length, accurate near 1, with functions from the module ``of``; squares are scaled by powers of two."""
    info, number = np.finfo(dtype), np.dtype(dtype).type
    most = int(info.maxexp)
    x, y = of.absolute(x), of.absolute(y)
    larger, smaller = of.maximum(x, y), of.minimum(x, y)
    over, under = of.less(2.0 ** int(0.48 * most), larger), of.less(larger, 2.0 ** -int(0.44 * most))
    down, up = int(0.58 * most), int(0.78 * most)
    scale = of.where(over, number(2.0**-down), of.where(under, number(2.0**up), number(1)))
    a, b = larger * scale, smaller * scale
    p, q = a * a, b * b
    total = p + q
    beside = of.logical_and(of.less(0.5, total), of.less(total, 2.0))
    rest = ((p - 1) + q) + (_rest_of_square(a, p, info.nmant) + _rest_of_square(b, q, info.nmant))
    moved = of.where(over, number(down * np.log(2)), of.where(under, number(-up * np.log(2)), number(0)))
    small = of.less_equal(total, 0.5)
    away = of.where(small, 1 / of.where(small, total, 1), total) - 1
    half = 0.5 * of.log1p(of.where(beside, rest, away))
    value = of.where(small, -half, half) + moved
    return of.where(of.logical_or(of.isinf(x), of.isinf(y)), number(INF), value)


def _log_hypot(x: Value, y: Value) -> Value:
    dtype = np.result_type(x, y)
    wide = np.dtype(np.result_type(dtype, np.float64))
    with np.errstate(all="ignore"):
        return np.asarray(_log_length(np.asarray(x, wide), np.asarray(y, wide), np, wide)).astype(dtype, copy=False)


def _body(x: Node, y: Node) -> Node:
    dtype = x.type.dtype
    if dtype.itemsize < 8:  # whose squares are exact in the wider float
        return astype(_body(astype(x, np.float64), astype(y, np.float64)), dtype)
    return _log_length(x, y, scalar, dtype)


log_hypot = scalar_op(
    "log_hypot",
    _log_hypot,
    weight=60,
    arity=2,
    commutative=True,
    dtypes=float_loop2,
    partials=lambda _out, x, y: (x / hypot(x, y) / hypot(x, y), y / hypot(x, y) / hypot(x, y)),
    body=_body,
    domain=(0.05, INF),
    in_numpy="np.log(np.hypot({0}, {1}))",
    doc="log(sqrt(x*x + y*y)), without overflow, and with all digits where that is near 0.",
)
