"""Zeros of derivatives that cancel: ``x * (c / x)`` is ``c``, and ``x * (c / sqrt(x))`` is ``c * sqrt(x)``, at 0 too.

So ``x * log(x)`` and ``x * sqrt(x)`` have at 0 the slopes that they come near to, and not 0 times infinity; parts of them too.
"""

from __future__ import annotations

from tensormagic.ir.node import Node, make, rebuild

_DEEPEST = 3  # how many products are looked through for a factor
_MOVES = frozenset(["broadcast", "reshape", "slice", "transpose"])
_OPENED = frozenset(["divide", "multiply", "sqrt", "square"])


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

    quotient = _opened(quotient)
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
    divisor, rest = _opened(divisor), _opened(rest)
    if divisor.op.name == "sqrt" and divisor.args[0] is rest:
        return multiply(dividend, divisor)
    factors = {"multiply": rest.args, "square": rest.args * 2}.get(rest.op.name, ())
    for k, factor in enumerate(factors if depth else ()):
        found = _cancelled(quotient, factor, depth - 1)
        if found is not None:
            return multiply(found, factors[1 - k])
    return None


def _opened(node: Node) -> Node:
    """A product, quotient or root of which moves show a part, as one of the parts of its operands."""
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
