"""Folds of values that are neutral unless a condition says otherwise, and the nodes that only they need.

``sum(where(c, 0, f(x)))`` is such a fold: where ``c`` holds, no ``f(x)`` is needed. Knows ops by their facts alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tensormagic.ir.node import Node, is_constant
from tensormagic.ir.rewriting.roundings import below


def choice_of(root: Node) -> tuple[Node, bool] | None:
    """Return the condition of a fold over ``where(condition, …)``, and its value for which the fold adds nothing; None for others."""
    if root.op.kind != "fold" or not root.args[0].op.picks or len(root.args[0].args) != 3:
        return None
    start: Callable[[np.dtype[Any]], Any] | None = getattr(root.op, "start", None)
    if start is None:
        return None
    condition, *sides = root.args[0].args
    if not _is_spread(condition, root["axes"]):
        return None
    for holds, nothing in zip((True, False), map(below, sides), strict=True):
        known = is_constant(nothing) and not nothing.type.shape
        if known and nothing["bits"].array() == start(root.type.dtype):
            return condition, holds
    return None


def _is_spread(condition: Node, axes: Sequence[int]) -> bool:
    """Return whether a condition is constant along ``axes`` because it is broadcast."""
    if condition.op.kind != "move" or len(condition.args) != 1:
        return False
    ends, of = condition.type.shape, condition.args[0].type.shape
    before = len(ends) - len(of)
    return before >= 0 and all(k < before or (of[k - before] == 1 and ends[k] != 1) for k in axes)


def second_looks(nodes: Sequence[Node]) -> set[Node]:
    """Return the nodes that only such folds need, which are rarely computed."""
    chosen: dict[Node, Node] = {}
    for node in nodes:
        choice = choice_of(node)
        if choice is not None:
            taken = node.args[0]
            chosen[taken] = taken.args[2 if choice[1] else 1]
    found: set[Node] = set()
    if not chosen:
        return found
    readers: dict[Node, list[Node]] = {}
    for node in nodes:
        for arg in dict.fromkeys(node.needs):
            readers.setdefault(arg, []).append(node)
    for node in reversed(nodes):
        users = readers.get(node, [])
        ways = [choice_of(u) if node in chosen else u in found and chosen.get(u, node) is node for u in users]
        if ways and all(ways):
            found.add(node)
    return found
