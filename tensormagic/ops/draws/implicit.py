"""Tangents of samples that no formula in standard numbers gives: by implicit differentiation of the distribution function."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from tensormagic.ir.node import Node
from tensormagic.ir.type import Size
from tensormagic.ops.draws.quantiles import by_beta, by_concentration, by_wald
from tensormagic.ops.draws.slopes import gamma_slope
from tensormagic.ops.fold import reduce_sum
from tensormagic.ops.form import to_form
from tensormagic.ops.move import broadcast
from tensormagic.ops.op import Tangent
from tensormagic.ops.pointwise import astype
from tensormagic.ops.scalars.scalar import arctan2, cos, equal, sin, where
from tensormagic.ops.tangents import multiply_by, total

Given = Mapping[str, Node]
Rule = Callable[[Node, Given, Given], Tangent]


def _along(slopes: Mapping[str, Callable[[], Node]], moving: Given) -> Tangent:
    return total([multiply_by(slopes[name](), t) for name, t in moving.items()])


def _gamma(x: Node, given: Given, moving: Given) -> Tangent:
    return _along({"shape": lambda: gamma_slope(given["shape"], x)}, moving)


def _beta(x: Node, given: Given, moving: Given) -> Tangent:
    by_a, by_b = by_beta(given["a"], given["b"], x)
    return _along({"a": lambda: by_a, "b": lambda: by_b}, moving)


def _dirichlet(x: Node, given: Given, moving: Given) -> Tangent:
    """Return the tangent of a Dirichlet sample: each element is beta distributed, and the others keep their shares of the rest."""
    alpha, last = given["alpha"], (x.type.ndim - 1,)
    rest = broadcast(reduce_sum(alpha, last, keepdims=True), x.type.shape) - alpha
    by_a, _ = by_beta(alpha, rest, x)
    left = 1 - x
    own = multiply_by(where(equal(left, 0), 0, by_a / where(equal(left, 0), 1, left)), moving["alpha"])
    return own - x * broadcast(reduce_sum(own, last, keepdims=True), x.type.shape)


def _ratio(x: Node, given: Given, moving: Given) -> Tangent:
    """Return the tangent of an F distributed sample: ``x = dfden / dfnum * y / (1 - y)`` with y beta distributed."""
    first, second = given["dfnum"], given["dfden"]
    ratio = x * first / second
    by_a, by_b = by_beta(first / 2, second / 2, ratio / (1 + ratio))
    stretch = (second / first) * (1 + ratio) * (1 + ratio) / 2
    slopes = {"dfnum": lambda: stretch * by_a - x / first, "dfden": lambda: stretch * by_b + x / second}
    return _along(slopes, moving)


def _student(x: Node, given: Given, moving: Given) -> Tangent:
    """Return the tangent of a Student's t distributed sample: ``x * x = df * y / (1 - y)`` with y beta distributed."""
    df = given["df"]
    ratio = x * x / df
    _, by_b = by_beta(0 * df + 0.5, df / 2, ratio / (1 + ratio))
    middle = equal(x, 0)
    moved = (ratio + df * (1 + ratio) * (1 + ratio) * by_b / 2) / (2 * where(middle, 1, x))
    return _along({"df": lambda: where(middle, 0, moved)}, moving)


def _von_mises(x: Node, given: Given, moving: Given) -> Tangent:
    angle = x - given["mu"]
    around = arctan2(sin(angle), cos(angle))
    return _along({"mu": lambda: 0 * x + 1, "kappa": lambda: by_concentration(given["kappa"], around)}, moving)


def _wald(x: Node, given: Given, moving: Given) -> Tangent:
    by_mean, by_scale = by_wald(given["mean"], given["scale"], x)
    return _along({"mean": lambda: by_mean, "scale": lambda: by_scale}, moving)


IMPLICIT: dict[str, Rule] = {
    "standard_gamma": _gamma,
    "beta": _beta,
    "dirichlet": _dirichlet,
    "f": _ratio,
    "standard_t": _student,
    "vonmises": _von_mises,
    "wald": _wald,
}


def whole(x: Node, shape: tuple[Size, ...]) -> Node:
    """Return a parameter or tangent in double precision, broadcast to the shape of the sample."""
    return broadcast(astype(x if x.type.shape else to_form(x, "scalar"), np.float64), shape)


def implicit_tangent(method: str, sample: Node, given: Given, moving: Mapping[str, Any]) -> Tangent:
    """Return the tangent of a sample of ``method`` for tangents of some of its parameters."""
    shape = sample.type.shape
    wide = {name: whole(v, shape) for name, v in given.items()}
    return IMPLICIT[method](whole(sample, shape), wide, {name: whole(t, shape) for name, t in moving.items()})
