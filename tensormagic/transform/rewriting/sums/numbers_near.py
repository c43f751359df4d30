"""Floating-point values of nodes near a place: a quick test for cancellation there. Knows no rules."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable

from tensormagic.ir.node import Node
from tensormagic.ir.rewriting.rules import bare
from tensormagic.transform.rewriting.sums.terms import as_text, logarithm_of, number_of, written

_MANY = 20
"""From this argument on ``erfcx`` is computed by its first terms."""


def number_at(node: Node, known: dict[Node, float], depth: int) -> float:
    """Return the value of ``node`` for the ``known`` values of operands; other operands get arbitrary values."""
    node = bare(node)
    found = known.get(node)
    if found is None:
        found = known[node] = _computed(node, known, depth)
    return found


def _computed(node: Node, known: dict[Node, float], depth: int) -> float:
    name = node.op.name
    if name == "constant":
        value = number_of(node)
        return 1.37 if value is None else float(value)
    function = _NUMBERS.get(name)
    if depth and function is not None:
        return function(*[number_at(a, known, depth - 1) for a in node.args])
    if depth and name == "where":
        if (of := logarithm_of(node)) is not None:
            return math.log(number_at(of, known, depth - 1))
        sides = written(node)
        if sides is not None:
            return number_at(sides[0], known, depth - 1) - number_at(sides[1], known, depth - 1)
        if (text := bare(as_text(node))) is not node:
            return number_at(text, known, depth - 1)
    return 0.5 + (hash(node) % 1021) / 1021


_NUMBERS: dict[str, Callable[..., float]] = {
    "add": operator.add,
    "subtract": operator.sub,
    "negative": lambda x: -x,
    "multiply": operator.mul,
    "divide": operator.truediv,
    "square": lambda x: x * x,
    "reciprocal": lambda x: 1 / x,
    "power": math.pow,
    "sigmoid": lambda x: 1 / (1 + math.exp(-x)),
    "softplus": lambda x: math.log1p(math.exp(x)),
    "log1mexp": lambda x: math.log(-math.expm1(x)),
    "cbrt": math.cbrt,
    "xlogy": lambda x, y: x * math.log(y),
    "erf": math.erf,
    "erfc": math.erfc,
    "log2": math.log2,
    "log10": math.log10,
    "logaddexp": lambda x, y: max(x, y) + math.log1p(math.exp(-abs(x - y))),
    "exp2": math.exp2,
    "hypot": math.hypot,
    "absolute": math.fabs,
    "sinc": lambda x: math.sin(math.pi * x) / (math.pi * x),
    "arctan2": math.atan2,
    "erfcx": lambda x: math.exp(x * x) * math.erfc(x) if x < _MANY else (1 - 0.5 / (x * x)) / (x * math.sqrt(math.pi)),
    "gammaln": math.lgamma,
    **{
        name: getattr(math, name)
        for name in ("exp", "expm1", "log", "log1p", "sqrt", "sin", "cos", "tan", "sinh", "cosh", "tanh")
    },
    **{name: getattr(math, name.replace("arc", "a")) for name in ("arccos", "arcsin", "arctan", "arcsinh", "arctanh")},
}
