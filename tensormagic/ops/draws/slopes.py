"""Derivatives of gamma samples with respect to the shape parameter, by implicit differentiation of the distribution function."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from tensormagic.ir.errors import DifferentiationError
from tensormagic.ir.node import Node, make
from tensormagic.ir.type import Type
from tensormagic.ops.op import Tangent
from tensormagic.ops.opaque import Opaque

_TERMS = 100_000


@functools.cache
def quadrature() -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Return the nodes and weights of Gauss-Legendre quadrature, cached."""
    return np.polynomial.legendre.leggauss(120)


def _type(args: tuple[Node, ...], _params: Mapping[str, Any]) -> Type:
    return args[1].type


def _by_series(shape: Any, x: Any) -> Any:
    """Return the derivative by the power series of the lower incomplete gamma function, for samples up to about the mean."""
    from scipy.special import digamma

    term = np.ones_like(x)
    total, weighted, harmonic = term.copy(), np.zeros_like(x), np.zeros_like(x)
    for n in range(1, _TERMS):
        term = term * x / (shape + n)
        harmonic = harmonic + 1 / (shape + n)
        total = total + term
        weighted = weighted + term * harmonic
        if np.all(term * (1 + harmonic) <= 1e-17 * total):
            break
    return -x / shape * (total * (np.log(x) - digamma(shape + 1)) - weighted)


def _by_tail(shape: Any, x: Any) -> Any:
    """Return the derivative by the integral over the upper tail, for samples above the mean."""
    from scipy.special import digamma

    rate = np.maximum(1 - (shape - 1) / x, 0.0)
    width = 45 / np.maximum(rate, 4.5 / (4.5 + np.sqrt(x)))
    nodes, weights = quadrature()
    s = width[..., None] * (nodes + 1) / 2
    base = x[..., None]
    inside = np.exp((shape[..., None] - 1) * np.log1p(s / base) - s) * (np.log(base + s) - digamma(shape)[..., None])
    return width / 2 * (inside @ weights)


def gamma_slopes(shape: Any, x: Any) -> Any:
    """Return the derivative of samples ``x`` of the gamma distribution with respect to its shape parameter."""
    shape, x = np.broadcast_arrays(np.asarray(shape, np.float64), np.asarray(x, np.float64))
    found = np.zeros(x.shape)
    low = (x > 0) & (x <= shape + 1)
    high = x > shape + 1
    if low.any():
        found[low] = _by_series(shape[low], x[low])
    if high.any():
        found[high] = _by_tail(shape[high], x[high])
    return found


def only_once(numbers: str) -> Callable[[Node, Sequence[Tangent]], Tangent]:
    """Return a function that refuses to differentiate such derivatives again."""

    def refuse(node: Node, tangents: Sequence[Tangent]) -> Tangent:
        del node, tangents
        raise DifferentiationError(
            f"{numbers} numbers are drawn by rejection, so only first derivatives with respect to their shape exist",
            "tm.stop_gradient(shape) leaves the shape out; derivatives by location and scale have any order.",
        )

    return refuse


GAMMA_SLOPE = Opaque(
    name="gamma_slope",
    types=_type,
    numpy=gamma_slopes,
    tangent=only_once("gamma, chi-square and Student's"),
    doc="The derivative of samples of the gamma distribution with respect to its shape parameter.",
)


def gamma_slope(shape: Node, x: Node) -> Node:
    """Return ``dx / d shape`` of samples ``x``, of the same shape and in double precision."""
    return make(GAMMA_SLOPE, (shape, x))
