"""Products in derivatives in which zero factors cancel: ``x * (c / x)`` is ``c`` at 0, too.

Likewise ``x * (c / sqrt(x))`` is ``c * sqrt(x)``. So ``x * log(x)``, ``x * sqrt(x)`` and parts of them have at 0 the
limits of their slopes, and not 0 times infinity.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tensormagic.ir.node import Node, make, rebuild
from tensormagic.ops.form import to_form
from tensormagic.ops.leaf import constant_value
from tensormagic.ops.scalars.scalar import add, multiply, power

_DEEPEST = 3  # how many nested products are searched for a factor
_MOVES = frozenset(["broadcast", "reshape", "slice", "transpose"])
_OPENED = frozenset(["divide", "multiply", "sqrt", "square"])


def product(left: Node, right: Node) -> Node:
    """Return ``left * right``, with a factor cancelled if the other is divided by it."""
    whole = multiply(left, right)
    for quotient, rest in ((left, right), (right, left)):
        found = _over(quotient, rest, _DEEPEST)
        if found is not None and found.type.form != whole.type.form:
            found = to_form(found, whole.type.form)
        if found is not None and found.type == whole.type:
            return found
    return whole


def _over(quotient: Node, rest: Node, depth: int) -> Node | None:
    """Return a quotient (or a factor that is one) times ``rest`` after cancelling its divisor, or None if it does not cancel."""
    quotient = _opened(quotient)
    if quotient.op.name == "divide":
        return _cancelled(quotient, rest, depth)
    if quotient.op.name == "power":
        return _lowered(quotient, rest, depth)
    if quotient.op.name == "multiply" and depth:
        for k, factor in enumerate(quotient.args):
            found = _over(factor, rest, depth - 1)
            if found is not None:
                return multiply(found, quotient.args[1 - k])
    return None


def _cancelled(quotient: Node, rest: Node, depth: int) -> Node | None:
    dividend, divisor = quotient.args
    divisor, rest = _bare(divisor), _bare(rest)
    if rest is divisor:
        return dividend
    divisor, rest = _opened(divisor), _opened(rest)
    if divisor.op.name == "sqrt" and _bare(divisor.args[0]) is rest:
        return multiply(dividend, divisor)
    return _of_factors(rest, depth, lambda factor: _cancelled(quotient, factor, depth - 1))


def _lowered(inverse: Node, rest: Node, depth: int) -> Node | None:
    """Return a power with an exponent between -1 and 0 times a multiple of its base, as a power with one more, or None."""
    base, exponent = inverse.args
    known = _number(exponent)
    if known is None or not -1 < known < 0:
        return None
    if _bare(rest) is _bare(base):
        return power(base, add(exponent, 1))
    return _of_factors(_opened(_bare(rest)), depth, lambda factor: _lowered(inverse, factor, depth - 1))


def _of_factors(rest: Node, depth: int, over: Callable[[Node], Node | None]) -> Node | None:
    """Return ``over`` applied to one factor of a product, times the other factor, or None if it applies to neither."""
    factors = {"multiply": rest.args, "square": rest.args * 2}.get(rest.op.name, ())
    for k, factor in enumerate(factors if depth else ()):
        found = over(factor)
        if found is not None:
            return multiply(found, factors[1 - k])
    return None


def _number(exponent: Node) -> float | None:
    """Return a known exponent, or the difference of two, as the derivative of a power has it, or None."""
    if exponent.op.name == "subtract":
        first, second = map(_number, exponent.args)
        return None if first is None or second is None else first - second
    value = constant_value(exponent)
    return (
        None if value is None or value.dtype.kind not in "uif" or np.unique(value).size != 1 else float(value.flat[0])
    )


def _bare(node: Node) -> Node:
    """Return ``node`` below forms and checks, since Python floats and NumPy's are the same here."""
    while node.op.name in {"form", "require"}:
        node = node.args[0]
    return node


def _opened(node: Node) -> Node:
    """Return a product, quotient or root of which moves take a part, as an op on the parts of its operands."""
    moves: list[Node] = []
    inner = node
    while inner.op.name in _MOVES:
        moves.append(inner)
        inner = inner.args[0]
    if not moves or inner.op.name not in _OPENED:
        return node
    operands = list(inner.args)
    for move in reversed(moves):
        operands = [rebuild(move, [a]) for a in operands]
    return make(inner.op, operands)
