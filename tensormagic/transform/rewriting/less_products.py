"""What is less than 1, or than an operand, by a product. Knows nothing of rules."""

from __future__ import annotations

from collections.abc import Callable

from tensormagic.ir.node import Node
from tensormagic.ir.rules import bare
from tensormagic.ops.leaf import constant
from tensormagic.ops.scalars.scalar import absolute, add, cos, multiply, square, subtract
from tensormagic.transform.rewriting.apart import known
from tensormagic.transform.rewriting.forms import both, within
from tensormagic.transform.rewriting.terms import Apart, number_of, sum_of


def less_product(a: Node, b: Node) -> Apart | None:
    """``1 - u * v`` with both near 1, and ``x - (1 - u) * f(x)`` with small ``u`` and ``x - f(x)``.

    Other factors of ``f(x)`` are rarely near 1: ``w - rate * f(w)`` is a step of gradient descent.
    """
    product, whole = bare(b), bare(a)
    if product.op is not multiply:
        return None
    is_one = not whole.args and number_of(whole) == 1
    for u, v in (product.args, product.args[::-1]):
        inner = bare(v)
        if is_one and bare(u) is not inner:
            one = constant(1.0)
            first, second = known(one, u), known(one, v)
            terms = first and second and (first.value, u * second.value)
        elif len(inner.args) == 1 and bare(inner.args[0]) is whole and _is_less_than_one(bare(u)):
            first, second = known(a, v), Apart(sum_of(constant(1.0)).minus(sum_of(u)).node())
            terms = first and (first.value, second.value * v)
        else:
            continue
        if terms and first and second:
            bound = absolute(a) * 0.5
            near = both(*(within(t, bound) for t in terms), first.near, second.near)
            parts = (product, *(n for n in (*first.parts, *second.parts) if n.args))
            return Apart(terms[0] + terms[1], near if isinstance(near, Node) else None, parts, known=True)
    return None


def beside_one(a: Node, b: Node) -> Apart | None:
    """``cosh(x) - cos(y)`` and the like, with both near 1, by their differences from 1."""
    first, second = (known(n, constant(1.0)) if bare(n).op.name in _AT_ONE else None for n in (a, b))
    if first is None or second is None:
        return None
    return _together(a, first, second, (a, b))


def beside_minus_one(a: Node, b: Node) -> Apart | None:
    """``cosh(x) + cos(y)`` as ``cosh(x) - (-cos(y))``, with one near 1 and the other near -1."""
    inner = bare(b)
    if inner.op.name not in _AT_MINUS_ONE or bare(a).op.name not in _AT_ONE:
        return None
    first = known(a, constant(1.0))
    return first and _together(a, first, Apart(-_AT_MINUS_ONE[inner.op.name](inner.args[0])), (a, b))


def _together(a: Node, first: Apart, second: Apart, sides: tuple[Node, Node]) -> Apart:
    bound = absolute(a) * 0.5
    near = both(*(within(n.value, bound) for n in (first, second)), first.near, second.near)
    parts = tuple(n for n in (*map(bare, sides), *first.parts, *second.parts) if n.args)
    return Apart(first.value - second.value, near if isinstance(near, Node) else None, parts, known=True, local=True)


_AT_ONE = frozenset(("exp", "cos", "cosh", "sqrt", "cbrt", "erfc"))
"""Functions that are 1 where their operand is 0 or 1."""
_AT_MINUS_ONE: dict[str, Callable[[Node], Node]] = {"cos": lambda x: 2 * square(cos(x * 0.5))}
"""Functions, and what they are more than -1."""


def _is_less_than_one(node: Node) -> bool:
    """Whether ``node`` is written as a sum or difference with 1."""
    return node.op in {add, subtract} and 1 in {number_of(bare(n)) for n in node.args}
