"""Weights of terms: rules that make them lighter terminate. Knows the weights of ops, and nothing of rules."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable

from tensormagic.ir.cost import weight
from tensormagic.ir.node import Node, topological
from tensormagic.ir.rewriting.judged import negates, outwards
from tensormagic.ir.rewriting.rules import is_constant, looked_through
from tensormagic.ir.rewriting.uses import near


def _moves_outwards(node: Node) -> int:
    """Return :func:`outwards`, but for a negation the factor of any other op: moves go out of it, and it goes out of products."""
    return 2 if negates(node) else outwards(node)


def lighter(new: Node, old: Node, inside: Iterable[Node] = ()) -> bool:
    """Return whether ``new`` weighs less than ``old``, whatever the weights of the nodes that both share at their ends.

    ``inside`` are the nodes below ``old`` that are removed, if they are known: nothing below these is visited.

    The weight of a term is that of its op plus a multiple of those of its operands, so it falls with that of any part:
    rules that make terms lighter terminate. A second weight decides between terms of equal first weight.
    """
    inside = tuple(inside)
    common = {*inside, *(a for n in inside for a in looked_through(n))} if inside else near(old)
    difference = _difference(new, old, common, outwards)
    if difference != 0:
        return difference is not None and difference < 0
    return (_difference(new, old, common, _moves_outwards) or 0) < 0


def _difference(new: Node, old: Node, common: set[Node], factor: Callable[[Node], int]) -> int | None:
    """Return an upper bound of how much heavier ``new`` is, or None if it depends on the weights of shared nodes."""
    needed: dict[Node, int] = {}
    total = 0
    pool = {new: 1}
    while pool:
        node, times = pool.popitem()
        if node in common and node is not old:
            needed[node] = needed.get(node, 0) + times
            continue
        folds = bool(node.args) and all(map(is_constant, node.args))
        total += times * (1 if folds else weight(node))
        for arg in () if folds else node.args:
            pool[arg] = pool.get(arg, 0) + times * factor(node)
    return total - found if (found := _spare(old, needed, common, factor)) is not None else None


def _spare(old: Node, needed: dict[Node, int], common: set[Node], factor: Callable[[Node], int]) -> int | None:
    """Return a lower bound of the weight of ``old`` apart from the ``needed`` nodes, or None if it does not contain them."""
    pool = {old: 1}
    missing = dict(needed)
    weighed = beyond = steps = 0
    order = topological([old], lambda n: n is not old and n not in common, operator.attrgetter("args"))
    for node in reversed(order):  # each node once, after all its users
        if not missing and steps >= _STEPS:
            break
        times = pool.pop(node, 0)
        if times and node in missing:
            held = min(times, missing[node])
            times -= held
            missing[node] -= held
            if not missing[node]:
                del missing[node]
        if times and node is not old and node not in common:
            beyond += times
        elif times:
            steps += 1
            weighed += times * weight(node)
            for arg in node.args:
                pool[arg] = pool.get(arg, 0) + times * factor(node)
    return None if missing else weighed + beyond + sum(pool.values())


_STEPS = 50
"""How many nodes of a replaced term are weighed, at least: the rest counts as light."""
