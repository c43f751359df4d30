"""A quick test whether anything may cancel when a difference is written over one denominator. Knows no rules."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from tensormagic.ir.node import Node
from tensormagic.ir.rewriting.rules import bare
from tensormagic.transform.rewriting.sums.terms import number_of, written

ATOMS = 5
"""How many non-arithmetic operands a difference may have."""
NODES = 28
DEEP = 6
_FIRST = 4
"""The level of sums down to which a product must be found."""
ARITHMETIC = frozenset(("add", "subtract", "negative", "multiply", "divide", "square", "reciprocal", "power"))
_TERMS = frozenset(("add", "subtract"))
_PLAIN = ARITHMETIC - {"power"}
_DIVIDES = frozenset(("divide", "reciprocal", "power"))
_SUMS = frozenset(("add", "subtract", "negative", "divide", "where"))
_INNER = ARITHMETIC | {"where"}


def worth_it(a: Node, b: Node) -> bool:
    """Return whether a common denominator may help (a quick test).

    It may if a sum is multiplied or divided and both sides share something, or if one operand occurs often.
    """
    return _is_small(a, b) and (_expands_alike(a, b) or _repeats(a, b))


def _is_small(a: Node, b: Node) -> bool:
    """Return whether the sides are small enough to be read, with a product or quotient near the top."""
    seen: set[Node] = set()
    products, operands = False, 0
    level: list[Node] = [a, b]
    for depth in range(DEEP + 1):
        below: list[Node] = []
        for given in level:
            node = given if given.below is None else given.below
            if node in seen:
                continue
            seen.add(node)
            name = node.op.name
            args = (node.args if name in _PLAIN else _parts(node, name)) if depth < DEEP else None
            if args:
                below += args
                products = products or name in _PRODUCTS
            elif name != "constant":
                operands += 1
                if operands > ATOMS:
                    return False
        if len(seen) > NODES + 1 or (depth == _FIRST and not products):
            return False
        if not below:
            break
        level = below
    return products


_PRODUCTS = frozenset(("multiply", "square", "divide", "reciprocal", "power"))


def _parts(node: Node, name: str) -> Sequence[Node] | None:
    """Return the operands of an arithmetic node that are read further (terms, factors or base), or None for other nodes."""
    if name == "where":
        return written(node)
    if name == "power":
        return node.args[:1] if is_small_power(number_of(bare(node.args[1]))) else None
    return None


def is_small_power(power: Fraction | None) -> bool:
    """Return whether a power is a product of few factors."""
    return power is not None and power.denominator == 1 and 0 < abs(power) <= _POWER


_POWER = 4


def _repeats(a: Node, b: Node) -> bool:
    """Return whether one operand occurs three times in sums of products, twice in one product."""
    count: dict[Node, int] = {}
    products, looked, most = False, 0, 0
    level = [(a, 1), (b, 1)]
    for depth in range(DEEP):
        below: list[tuple[Node, int]] = []
        for given, times in level:
            node = given if given.below is None else given.below
            how = _READ.get(node.op.name)
            if how is None:
                count[node] = found = count.get(node, 0) + times
                most = max(most, found)
            elif how == "sides":
                below += [(side, times) for side in written(node) or ()]
            elif how == "twice":
                products = True
                below.append((node.args[0], 2 * times))
            elif how:
                products = products or how == "product"
                below += [(arg, times) for arg in node.args]
        looked += len(below)
        if not below or looked > NODES or (depth == _FIRST and not products):
            break
        level = below
    return products and looked <= NODES and most > 2


_READ = {
    **dict.fromkeys(ARITHMETIC, "terms"),
    **dict.fromkeys(("square", "power"), "twice"),
    "multiply": "product",
    "where": "sides",
    "constant": "",
}
"""How operands of an op are looked for."""


def _expands_alike(a: Node, b: Node) -> bool:
    """Return whether a sum is multiplied or something is divided, and both sides have something in common."""
    one, two = bare(a), bare(b)
    first, second = one.op.name, two.op.name
    if not (first in _INNER and _expands(one, 2)) and not (second in _INNER and _expands(two, 2)):
        return False
    if "constant" in {first, second} and (number_of(one) is not None or number_of(two) is not None):
        return True
    if first == second == "divide" and all(bare(n.args[1]).op.name in _TERMS for n in (one, two)):
        return True
    left = _ends(one) if first in _INNER else {one}
    return not left.isdisjoint(_ends(two) if second in _INNER else {two})


def _expands(node: Node, depth: int) -> bool:
    """Return whether ``node`` contains more than sums of products."""
    name = node.op.name
    if name in _DIVIDES:
        return True
    product = name == "multiply" or name == "square"  # noqa: PLR1714 (the fastest way)
    if not product and (not depth or name not in _SUMS):
        return False
    for arg in (written(node) or ()) if name == "where" else node.args:
        inner = bare(arg)
        if inner.op.name in _SUMS if product else _expands(inner, depth - 1):
            return True
    return False


def _ends(node: Node) -> set[Node]:
    """Return the nodes below sums and products, down to the depth that is read."""
    found: set[Node] = set()
    level = [node]
    for _ in range(DEEP):
        below: list[Node] = []
        for one in level:
            name = one.op.name
            if name in ARITHMETIC:
                below += map(bare, one.args)
            elif name == "where" and (sides := written(one)) is not None:
                below += map(bare, sides)
            elif name != "constant":
                found.add(one)
        if not below:
            return found
        level = below
    found.update(n for n in level if n.op.name != "constant")
    return found
