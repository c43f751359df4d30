"""Bessel functions of real numbers: their derivatives are given by neighbouring orders; there is none with respect to the order."""

from __future__ import annotations

from tensormagic.ops.scalars.function import INF
from tensormagic.ops.scalars.scalar import sign
from tensormagic.ops.scalars.special import real_function

_ORDERS = ((0.0, 1.0, 2.0, 3.0),)
"""The orders at which derivatives are tested."""

j0 = real_function("j0", lambda _out, x: -j1(x), "The Bessel function of the first kind of order 0.")
j1 = real_function("j1", lambda _out, x: (j0(x) - jv(2, x)) / 2, "The Bessel function of the first kind of order 1.")
jv = real_function(
    "jv",
    lambda _out, v, x: (jv(v - 1, x) - jv(v + 1, x)) / 2,
    "The Bessel function of the first kind.",
    fixed=_ORDERS,
    arity=2,
)
y0 = real_function(
    "y0", lambda _out, x: -y1(x), "The Bessel function of the second kind of order 0.", domain=(0.1, INF)
)
y1 = real_function(
    "y1",
    lambda _out, x: (y0(x) - yv(2, x)) / 2,
    "The Bessel function of the second kind of order 1.",
    domain=(0.1, INF),
)
yv = real_function(
    "yv",
    lambda _out, v, x: (yv(v - 1, x) - yv(v + 1, x)) / 2,
    "The Bessel function of the second kind.",
    fixed=_ORDERS,
    arity=2,
    domain=(0.1, INF),
)
i0 = real_function("i0", lambda _out, x: i1(x), "The modified Bessel function of the first kind of order 0.")
i1 = real_function(
    "i1", lambda _out, x: (i0(x) + iv(2, x)) / 2, "The modified Bessel function of the first kind of order 1."
)
iv = real_function(
    "iv",
    lambda _out, v, x: (iv(v - 1, x) + iv(v + 1, x)) / 2,
    "The modified Bessel function of the first kind.",
    fixed=_ORDERS,
    arity=2,
)
i0e = real_function(
    "i0e", lambda out, x: i1e(x) - sign(x) * out, "exp(-|x|) times the modified Bessel function of order 0."
)
i1e = real_function(
    "i1e",
    lambda out, x: (i0e(x) + ive(2, x)) / 2 - sign(x) * out,
    "exp(-|x|) times the modified Bessel function of order 1.",
)
ive = real_function(
    "ive",
    lambda out, v, x: (ive(v - 1, x) + ive(v + 1, x)) / 2 - sign(x) * out,
    "exp(-|x|) times the modified Bessel function of the first kind.",
    fixed=_ORDERS,
    arity=2,
)
kv = real_function(
    "kv",
    lambda _out, v, x: (kv(v - 1, x) + kv(v + 1, x)) / -2,
    "The modified Bessel function of the second kind.",
    fixed=_ORDERS,
    arity=2,
    domain=(0.1, INF),
)
