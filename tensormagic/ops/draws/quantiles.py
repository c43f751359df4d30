"""Derivatives of samples of the beta, von Mises and inverse Gaussian distributions with respect to parameters: implicit, as for gamma."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tensormagic.ir.node import Node, make
from tensormagic.ops.draws.slopes import only_once, quadrature
from tensormagic.ops.opaque import Opaque, items
from tensormagic.ops.scalars.scalar import sqrt
from tensormagic.ops.scalars.special import erfcx

_TERMS = 200_000


def _lower(a: Any, b: Any, x: Any) -> tuple[Any, Any]:
    """Return the derivatives by the series of the incomplete beta function in powers of ``x``, for samples up to about the mean."""
    from scipy.special import digamma

    both = a + b
    term = np.ones_like(x)
    total = term.copy()
    first, by_a, by_b, by_first = (np.zeros_like(x) for _ in range(4))
    for n in range(_TERMS):
        term = term * x * (both + n) / (a + 1 + n)
        first = first + (1 / (both + n) - 1 / (a + 1 + n))
        by_b = by_b + 1 / (both + n)
        total = total + term
        by_a = by_a + term * first
        by_first = by_first + term * by_b
        if np.all(term * (1 + np.abs(first) + by_b) <= 1e-18 * total):
            break
    scale = -x * (1 - x) / a
    return (
        scale * (total * (np.log(x) - digamma(a + 1) + digamma(both)) + by_a),
        scale * (total * (np.log1p(-x) - digamma(b) + digamma(both)) + by_first),
    )


def beta_slopes(a: Any, b: Any, x: Any) -> tuple[Any, Any]:
    """Return the derivatives of samples ``x`` of the beta distribution with respect to its two parameters."""
    a, b, x = np.broadcast_arrays(*(np.asarray(v, np.float64) for v in (a, b, x)))
    found = np.zeros(x.shape), np.zeros(x.shape)
    low = (x > 0) & (x <= a / (a + b))
    high = (x < 1) & (x > a / (a + b))
    if low.any():
        found[0][low], found[1][low] = _lower(a[low], b[low], x[low])
    if high.any():  # 1 - x is a sample with the parameters exchanged
        by_b, by_a = _lower(b[high], a[high], 1 - x[high])
        found[0][high], found[1][high] = -by_a, -by_b
    return found


def von_mises_slopes(kappa: Any, x: Any) -> Any:
    """Return the derivative of samples ``x`` around 0 of the von Mises distribution with respect to its concentration."""
    from scipy.special import i0e, i1e

    kappa, x = np.broadcast_arrays(np.asarray(kappa, np.float64), np.asarray(x, np.float64))
    side = np.abs(x)
    near = kappa * (1 - np.cos(side)) < 1
    with np.errstate(divide="ignore"):
        width = np.where(near, side, np.minimum(np.pi - side, 60 / (kappa * np.sin(side))))
    points, weights = quadrature()
    start = np.where(near, 0, side)[..., None]
    t = start + width[..., None] * (points + 1) / 2
    # cos(t) - cos(x), and cos(t) - 1 + 1 - the mean of the cosine, without cancellation
    exponent = 2 * np.sin((side[..., None] + t) / 2) * np.sin((side[..., None] - t) / 2)
    inside = (np.cos(t) - (i1e(kappa) / i0e(kappa))[..., None]) * np.exp(kappa[..., None] * exponent)
    return np.sign(x) * np.where(near, -1, 1) * width / 2 * (inside @ weights)


BETA_SLOPES = Opaque(
    name="beta_slopes",
    types=lambda args, _params: (args[2].type, args[2].type),
    numpy=beta_slopes,
    tangent=only_once("beta, F, Student's and Dirichlet's"),
    doc="The derivative of samples of the beta distribution with respect to its parameters.",
)
VON_MISES_SLOPE = Opaque(
    name="von_mises_slope",
    types=lambda args, _params: args[1].type,
    numpy=von_mises_slopes,
    tangent=only_once("von Mises"),
    doc="The derivative of samples of the von Mises distribution with respect to its concentration.",
)


def by_beta(a: Node, b: Node, x: Node) -> tuple[Node, ...]:
    """Return ``dx / da`` and ``dx / db`` of samples ``x``, all of one shape and in double precision."""
    return items(make(BETA_SLOPES, (a, b, x)))


def by_concentration(kappa: Node, x: Node) -> Node:
    """Return ``dx / d kappa`` of samples ``x`` around 0."""
    return make(VON_MISES_SLOPE, (kappa, x))


def by_wald(mean: Node, scale: Node, x: Node) -> tuple[Node, Node]:
    """Return ``dx / d mean`` and ``dx / d scale`` of inverse Gaussian samples ``x``, from the closed form of their distribution."""
    tail = sqrt(scale / x) * (x / mean + 1)
    mills = math.sqrt(math.pi / 2) * erfcx(tail * math.sqrt(0.5))
    part = 2.0 / mean * sqrt(x / scale) * x * mills
    return scale / mean * part, x / scale - part
