"""Zeros of derivatives that cancel: ``x * (c / x)`` is ``c``, and ``x * (c / sqrt(x))`` is ``c * sqrt(x)``, at 0 too.

So ``x * log(x)`` and ``x * sqrt(x)`` have at 0 the slopes that they come near to, and not 0 times infinity.
"""

from __future__ import annotations

from tensormagic.ir.node import Node

_DEEPEST = 3  # how many products are looked through for a factor


def product(left: Node, right: Node) -> Node:
    """``left * right``, where a factor of one that the other is divided by is left out."""
    from tensormagic.ops.scalars.scalar import multiply

    for quotient, rest in ((left, right), (right, left)):
        found = _over(quotient, rest, _DEEPEST)
        if found is not None:
            return found
    return multiply(left, right)


def _over(quotient: Node, rest: Node, depth: int) -> Node | None:
    """The product of a quotient, which may be a factor itself, and what its divisor cancels; None where it does not."""
    from tensormagic.ops.scalars.scalar import multiply

    if quotient.op.name == "divide":
        return _cancelled(quotient, rest, depth)
    if quotient.op.name == "multiply" and depth:
        for k, factor in enumerate(quotient.args):
            found = _over(factor, rest, depth - 1)
            if found is not None:
                return multiply(found, quotient.args[1 - k])
    return None


def _cancelled(quotient: Node, rest: Node, depth: int) -> Node | None:
    from tensormagic.ops.scalars.scalar import multiply

    dividend, divisor = quotient.args
    if rest is divisor:
        return dividend
    if divisor.op.name == "sqrt" and divisor.args[0] is rest:
        return multiply(dividend, divisor)
    factors = {"multiply": rest.args, "square": rest.args * 2}.get(rest.op.name, ())
    for k, factor in enumerate(factors if depth else ()):
        found = _cancelled(quotient, factor, depth - 1)
        if found is not None:
            return multiply(found, factors[1 - k])
    return None
