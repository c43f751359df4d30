"""Facts about a rule that hold for whatever it matches, derived once from its two sides. Knows ops by their facts alone."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from tensormagic.ir.cost import PRICE, weight
from tensormagic.ir.node import Node, is_constant, topological
from tensormagic.ir.rewriting.rules import Rule

Weight = tuple[int, Mapping[Node, int]]
"""A number, and how often the weight of each variable counts."""
_NUMBER = 2
"""The largest weight of a number, broadcast or not."""


def outwards(node: Node) -> int:
    """Return the factor for the weights of operands: a term gets lighter when an op moves out of another, most of all out of a fold."""
    kind = node.op.kind
    return 1 if kind == "move" or negates(node) else 8 if kind == "fold" else 2


def negates(node: Node) -> bool:
    """Return whether ``node`` is the negative of its operand."""
    return node.op.signs == (-1,)


@lru_cache(maxsize=4096)
def always_lighter(rule: Rule) -> bool:
    """Return whether the replacement is lighter than the pattern whatever its variables are, if all have one type."""
    if rule.pattern is None or not _of_elements(rule):
        return False
    (new, mine), (old, theirs) = _weighed(rule.replacement, _NUMBER), _weighed(rule.pattern, 1)
    return new < old and all(times <= theirs.get(variable, 0) for variable, times in mine.items())


@lru_cache(maxsize=4096)
def never_dear(rule: Rule) -> bool:
    """Return whether the replacement stays within the allowed cost even if only the root of the pattern goes."""
    if rule.pattern is None or not _of_elements(rule):
        return False
    own = sum(weight(n) for n in topological([rule.replacement]) if n.args)
    root = weight(rule.pattern)
    return own <= (root if rule.even else root + PRICE + root // 4)


def _of_elements(rule: Rule) -> bool:
    """Return whether both sides consist of element-wise functions alone."""
    sides = [rule.pattern, rule.replacement]
    return all(isinstance(s, Node) and all(map(_is_of_elements, topological([s]))) for s in sides)


def _is_of_elements(node: Node) -> bool:
    return not node.args or (node.op.kind == "pointwise" and not node.op.hands_on)


def _weighed(side: Node, number: int) -> Weight:
    """Return the weight of one side: a constant part, and a factor for the weight of each variable.

    ``number`` is the weight of a constant.
    """
    known: dict[Node, Weight] = {}
    for node in topological([side]):
        if not node.args:
            known[node] = (number, {}) if is_constant(node) else (0, {node: 1})
            continue
        times = outwards(node)
        total, of = weight(node), dict[Node, int]()
        for arg in node.args:
            own, variables = known[arg]
            total += times * own
            for variable, count in variables.items():
                of[variable] = of.get(variable, 0) + times * count
        known[node] = total, of
    return known[side]
