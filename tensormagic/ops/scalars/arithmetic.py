"""Sums, products, quotients, remainders and roots."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence

from tensormagic.ir.node import Node
from tensormagic.ops.op import Tangent
from tensormagic.ops.reverse.squares import is_sum_of_squares
from tensormagic.ops.scalars.comparison import (
    equal,
    trunc,
    where,
)
from tensormagic.ops.scalars.function import INF, divided, one_like, scalar_op
from tensormagic.ops.tangents import multiply_by, total


def _linear_sum(signs: tuple[int, ...]) -> Callable[[Node, Sequence[Tangent]], Tangent]:
    def linearise(node: Node, tangents: Sequence[Tangent]) -> Tangent:
        del node
        return total([t if s > 0 else negative(t) for s, t in zip(signs, tangents, strict=True) if t is not None])

    return linearise


def _linear_sum_back(signs: tuple[int, ...]) -> Callable[[Node, Node, Sequence[bool]], Sequence[Tangent]]:
    def back(node: Node, cotangent: Node, linear: Sequence[bool]) -> Sequence[Tangent]:
        del node
        return [
            (cotangent if s > 0 else negative(cotangent)) if wanted else None
            for s, wanted in zip(signs, linear, strict=True)
        ]

    return back


def _product_back(node: Node, cotangent: Node, linear: Sequence[bool]) -> Sequence[Tangent]:
    left, right = node.args
    return (multiply_by(right, cotangent) if linear[0] else None, multiply_by(left, cotangent) if linear[1] else None)


def _product_tangent(node: Node, tangents: Sequence[Tangent]) -> Tangent:
    left, right = node.args
    terms = [(right, tangents[0]), (left, tangents[1])]
    from tensormagic.ops.reverse.support import with_zeros_of

    return total([with_zeros_of(p, t, multiply_by(p, t)) for p, t in terms if t is not None])


def _quotient_tangent(node: Node, tangents: Sequence[Tangent]) -> Tangent:
    _, divisor = node.args
    first = None if tangents[0] is None else _divide_by(divisor, tangents[0])
    second = None if tangents[1] is None else multiply_by(negative(divide(node, divisor)), tangents[1])
    return total([t for t in (first, second) if t is not None])


add = scalar_op(
    "add",
    weight=2,
    keeps_sign=True,
    infix="+",
    signs=(1, 1),
    sizes=lambda left, right: left + right,
    source={"f": "{0} + {1}", "i": "{0} + {1}", "u": "{0} + {1}", "c": "{0} + {1}", "b": "{0} | {1}"},
    linearise=_linear_sum((1, 1)),
    back=_linear_sum_back((1, 1)),
    commutative=True,
    complex_source="{0} + {1}",
    linear="together",
    doc="The sum of two numbers.",
)
subtract = scalar_op(
    "subtract",
    weight=2,
    infix="-",
    signs=(1, -1),
    sizes=lambda left, right: left - right,
    source=dict.fromkeys("fiuc", "{0} - {1}"),
    linearise=_linear_sum((1, -1)),
    back=_linear_sum_back((1, -1)),
    complex_source="{0} - {1}",
    linear="together",
    doc="The difference of two numbers.",
)
multiply = scalar_op(
    "multiply",
    sizes=lambda left, right: left * right if isinstance(left, int) or isinstance(right, int) else None,
    weight=2,
    keeps_sign=True,
    factors=True,
    infix="*",
    source={"f": "{0} * {1}", "i": "{0} * {1}", "u": "{0} * {1}", "b": "{0} & {1}"},
    linearise=_product_tangent,
    back=_product_back,
    commutative=True,
    complex_source="{0} * {1}",
    complex_elements="complex_multiply({0}, {1})",
    numbers={"c": operator.mul},
    linear="each",
    doc="The product of two numbers.",
)
divide = scalar_op(
    "divide",
    weight=6,
    keeps_sign=True,
    factors=True,
    steep=True,
    infix="/",
    source="{0} / {1}",
    linearise=_quotient_tangent,
    back=lambda node, ct, linear: (_divide_by(node.args[1], ct) if linear[0] else None, None),
    complex_source="complex_divide({0}, {1})",
    linear="first",
    doc="The true quotient of two numbers.",
)
negative = scalar_op(
    "negative",
    weight=2,
    signs=(-1,),
    picks=True,
    source=dict.fromkeys("fiuc", "-{0}"),
    linearise=_linear_sum((-1,)),
    back=_linear_sum_back((-1,)),
    complex_source="-{0}",
    linear="first",
    doc="The negative.",
)
positive = scalar_op(
    "positive",
    weight=2,
    picks=True,
    source=dict.fromkeys("fiuc", "{0}"),
    linearise=_linear_sum((1,)),
    back=_linear_sum_back((1,)),
    complex_source="{0}",
    doc="The number itself.",
)
floor_divide = scalar_op(
    "floor_divide",
    sizes=divided("floordiv"),
    weight=12,
    infix="//",
    source={
        "i": "0 if {1} == 0 else (-{0} if {1} == -1 else {0} // {1})",
        "u": "{0} // {1} if {1} != 0 else {1}",
        "f8": "floor_divide({0}, {1})",
    },
    step=True,
    doc="The quotient, rounded down.",
)
remainder = scalar_op(
    "remainder",
    sizes=divided("mod"),
    weight=12,
    infix="%",
    source={
        "i": "0 if {1} == 0 or {1} == -1 else {0} % {1}",
        "u": "{0} % {1} if {1} != 0 else {1}",
        "f": "remainder(np.float64({0}), np.float64({1}))",
    },
    partials=lambda _out, x, y: (one_like(x), negative(floor_divide(x, y))),
    domain=(0.3, 0.9),
    doc="The remainder of the division that rounds down.",
)
fmod = scalar_op(
    "fmod",
    weight=12,
    source="fmod(np.float64({0}), np.float64({1}))",
    partials=lambda _out, x, y: (one_like(x), negative(trunc(x / y))),
    domain=(0.3, 0.9),
    doc="The remainder of the division that rounds to zero.",
)


def _divide_by(divisor: Node, dividend: Node) -> Node:
    """Return ``dividend / divisor``; structural zeros of the dividend stay zero."""
    from tensormagic.ops.reverse.support import scaled

    return scaled(lambda by, part: divide(part, by), divisor, dividend)


square = scalar_op(
    "square",
    weight=2,
    factors=True,
    not_negative=True,
    source=dict.fromkeys("fiu", "{0} * {0}"),
    partials=lambda _out, x: 2 * x,
    complex_source="{0} * {0}",
    complex_elements="complex_multiply({0}, {0})",
    doc="The square.",
)


def _root_slope(out: Node, x: Node) -> Node:
    """Return the derivative of a square root: infinite at 0, except for a sum of squares: there the root is a norm, and 0 is taken."""
    if not is_sum_of_squares(x):
        return 0.5 / out
    zero = equal(out, 0)
    return where(zero, 0, 0.5 / where(zero, 1, out))


sqrt = scalar_op(
    "sqrt",
    weight=6,
    keeps_sign=True,
    factors=True,
    steep=True,
    not_negative=True,
    source="math.sqrt({0})",
    complex_source="complex_sqrt({0})",
    partials=_root_slope,
    domain=(0.05, INF),
    doc="The non-negative square root.",
)
cbrt = scalar_op(
    "cbrt",
    steep=True,
    source="cbrt({0})",
    partials=lambda out, _x: 1 / (3 * out * out),
    domain=(0.05, INF),
    doc="The cube root.",
)
reciprocal = scalar_op(
    "reciprocal",
    weight=12,
    factors=True,
    steep=True,
    source="1 / {0}",
    partials=lambda out, _x: -(out * out),
    domain=(0.05, INF),
    complex_source="complex_reciprocal({0})",
    doc="One over the number.",
)
