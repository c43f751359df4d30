"""Replaces nodes by others, also within the replacements."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tensormagic.ir import site
from tensormagic.ir.node import Node, rebuild


def followed(roots: Iterable[Node], goals: Mapping[Node, Node]) -> list[Node]:
    """Return ``roots`` with nodes replaced, also inside the replacements."""
    roots = list(roots)
    goals = {old: new for old, new in goals.items() if old is not new}
    if not goals:
        return roots
    memo: dict[Node, Node] = {}
    stack = list(roots)
    while stack:
        node = stack[-1]
        goal = goals.get(node)
        waiting = [n for n in (node.needs if goal is None else (goal,)) if n not in memo]
        if node in memo or not waiting:
            stack.pop()
            if node not in memo:
                memo[node] = memo[goal] if goal is not None else _rebuilt(node, memo)
                if goal is not None:
                    site.inherit(memo[goal], node)
        else:
            stack += waiting
    return [memo[n] for n in roots]


def _rebuilt(node: Node, memo: dict[Node, Node]) -> Node:
    new = rebuild(node, [memo[a] for a in node.args], memo)
    if new is not node:
        for place in site.of(node):
            site.record(new, place)
    return new
