"""Takes the factors that both terms of a sum share out of it. Knows nothing of rules.

A derivative of a product has the other factor in each of its terms: that of ``(1 - exp(-x * y)) / x * f(y)`` by ``x``
is a sum of two products with ``f(y) / x``. Cancellation is then looked for in the remaining sum.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from fractions import Fraction

from tensormagic.ir.node import Node, topological
from tensormagic.ir.rewriting.rules import bare
from tensormagic.ops.leaf import constant
from tensormagic.ops.scalars.scalar import add, divide, multiply, negative, square, subtract
from tensormagic.transform.rewriting.sums.terms import number_of

_DEEP = 7
"""How many levels of products are split into factors."""
_PRODUCTS = frozenset((multiply, divide, negative, square))


def _times(value: Node | float, node: Node, times: int) -> Node | float:
    """Return ``value * node ** times``, one factor at a time: a power may overflow or underflow where the product does not."""
    for _ in range(abs(times)):
        value = node if times > 0 and value == 1 else value * node if times > 0 else value / node
    return value


def is_product(node: Node) -> bool:
    """Return whether ``node`` is a product, or twice something."""
    return node.op in _PRODUCTS or (node.op is add and bare(node.args[0]) is bare(node.args[1]))


@dataclass
class Factors:
    """A product: its number, its factors with powers, and the products ``within`` that were split.

    Nodes in ``whole`` are not split.
    """

    whole: Collection[Node] = ()
    number: Fraction = Fraction(1)
    powers: dict[Node, int] = field(default_factory=dict[Node, int])
    within: dict[Node, None] = field(default_factory=dict[Node, None])

    def take(self, node: Node, times: int, depth: int = _DEEP) -> None:
        """Split ``node ** times`` into factors, and add these."""
        inner = bare(node)
        if (value := number_of(inner)) is not None and value:
            self.number *= value**times
            return
        if not depth or not is_product(inner) or inner in self.whole:
            self.powers[inner] = self.powers.get(inner, 0) + times
            return
        self.within[inner] = None
        first, *second = inner.args
        if inner.op in {square, add}:  # the same factor twice
            self.number *= 2**times if inner.op is add else 1
            second = []
        self.take(first, 2 * times if inner.op is square else times, depth - 1)
        if second:
            self.take(second[0], -times if inner.op is divide else times, depth - 1)
        elif inner.op is negative:
            self.number = -self.number

    def without(self, common: Mapping[Node, int]) -> Node:
        """Return the product without the factors in ``common``, given with their powers."""
        value: Node | float = float(self.number)
        for node, times in sorted(self.powers.items(), key=lambda f: f[1] < 0):
            value = _times(value, node, times - common.get(node, 0))
        return value if isinstance(value, Node) else constant(value)


@dataclass(frozen=True)
class Without:
    """A sum divided by the common factors of its terms, these factors, and the products that were split."""

    total: Node
    common: tuple[tuple[Node, int], ...]
    within: tuple[Node, ...]

    def times(self, value: Node | float) -> Node | float:
        """Return the value for the reduced sum, multiplied by the common factors."""
        for node, times in self.common:
            value = _times(value, node, times)
        return value


def without_common_factors(total: Node) -> Without | None:
    """Return a sum of two products with their common factors taken out, or None if there are none."""
    if total.op not in {add, subtract} or not all(is_product(bare(a)) for a in total.args):
        return None
    first, second = (factors_of(a) for a in total.args)
    if shared := first.within.keys() & second.within.keys():  # products that other nodes may read
        first, second = (factors_of(a, shared) for a in total.args)
    common = {n: _least(t, second.powers.get(n, 0)) for n, t in first.powers.items()}
    others = [n for f in (first, second) for n, t in f.powers.items() if t != common.get(n, 0)]
    within = set(topological([n for n in others if n.args]))
    common = {
        n: t for n, t in common.items() if t and n not in within
    }  # the small quantity may be among these: a series divides by it itself
    if not common:
        return None
    left, right = first.without(common), second.without(common)
    rest = left + right if total.op is add else left - right
    return Without(rest, tuple(common.items()), (*first.within, *second.within))


def factors_of(term: Node, whole: Collection[Node] = ()) -> Factors:
    """Return the factors of a product; nodes in ``whole`` are not split."""
    found = Factors(whole)
    found.take(term, 1)
    return found


def _least(one: int, other: int) -> int:
    """Return the power that two powers of one factor share."""
    return 0 if one * other <= 0 else min(one, other, key=abs)
