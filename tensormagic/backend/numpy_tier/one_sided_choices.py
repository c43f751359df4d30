"""Choices between two forms of one number, in the NumPy tier: where all elements take one of them, the other is not computed.

A rule that puts an accurate form beside the text asks at each element which of the two is better there. For most arrays the answer is
the same everywhere. Choices that the user wrote are left alone: NumPy computes, and warns of, both sides.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tensormagic.ir import site
from tensormagic.ir.cost import weight
from tensormagic.ir.node import Node, users
from tensormagic.ops.scalars.scalar import where

_LEAST = 2
"""What a side has to cost, by its ops, for a look at the condition to be worth it."""


@dataclass(frozen=True)
class Plan:
    """What may be left out.

    Parameters
    ----------
    order
        The nodes, with conditions before what they choose between.
    skips
        For a node that only one side of choices needs: the conditions, each with the value for which the node is not
        needed.
    choices
        For nodes that choose: the operand that is the result if the condition is the same everywhere, by its value.
    """

    order: Sequence[Node]
    skips: dict[Node, list[tuple[Node, bool]]] = field(default_factory=dict[Node, list[tuple[Node, bool]]])
    choices: dict[Node, dict[bool, Node]] = field(default_factory=dict[Node, dict[bool, Node]])


def plan(nodes: Sequence[Node], stays: Collection[Node]) -> Plan:
    """Return the plan for ``nodes``, in order; those in ``stays`` are results, or checked."""
    found = [n for n in nodes if n.op is where and _is_of_a_rule(n)]
    if not found:
        return Plan(nodes)
    reads = users(nodes)
    skips: dict[Node, list[tuple[Node, bool]]] = {}
    first: dict[Node, list[Node]] = {}
    for node in found:
        condition, *sides = node.args
        if condition.type.shape != node.type.shape:
            continue
        for holds, (side, other) in (
            (False, sides),
            (True, sides[::-1]),
        ):  # what the condition is where ``side`` is not taken
            alone = _alone(side, node, reads, stays) if other.type == node.type else set[Node]()
            if not _is_worth_it(node, alone):
                continue
            for one in alone:
                skips.setdefault(one, []).append((condition, holds))
                first.setdefault(one, []).append(condition)
    if not skips:
        return Plan(nodes)
    choices: dict[Node, dict[bool, Node]] = {}
    looked_at = {c for conditions in first.values() for c in conditions}
    for node in found:
        if node.args[0] in looked_at:
            ways = ((True, node.args[1]), (False, node.args[2]))
            choices[node] = {holds: n for holds, n in ways if n.type == node.type}
    return Plan(_ordered(nodes, first), skips, choices)


def _is_worth_it(node: Node, alone: Collection[Node]) -> bool:
    """Return whether computing a side takes longer than testing the condition."""
    if not node.type.shape and not any(t.shape for n in alone for a in n.args for t in a.types):
        return False
    return sum(weight(n) for n in alone if n.op.kind not in {"leaf", "move"}) >= _LEAST


def _is_of_a_rule(node: Node) -> bool:
    return any(s.role.startswith("rewritten by") for s in site.of(node))


def _alone(side: Node, node: Node, reads: Mapping[Node, Sequence[Node]], stays: Collection[Node]) -> set[Node]:
    """Return the nodes that only ``node`` needs, through this operand."""
    found: set[Node] = set()
    left: dict[Node, int] = {}
    stack = [side] if node.args.count(side) == 1 and set(reads.get(side, ())) == {node} else []
    while stack:
        one = stack.pop()
        if one in stays or one.op.raises or one.op.kind in {"region", "opaque"} or len(one.types) != 1:
            continue
        found.add(one)
        for arg in dict.fromkeys(one.needs):
            left[arg] = left.get(arg, len(set(reads.get(arg, ())))) - 1
            if not left[arg]:
                stack.append(arg)
    return found


def _ordered(nodes: Sequence[Node], first: dict[Node, list[Node]]) -> list[Node]:
    """Return the nodes, with conditions and all that these need before what they choose between."""
    among, done, found = set(nodes), set[Node](), list[Node]()
    for node in nodes:
        stack = [node]
        while stack:
            one = stack[-1]
            if one in done:
                stack.pop()
                continue
            waiting = [n for n in (*one.needs, *first.get(one, ())) if n in among and n not in done]
            if waiting:
                stack += waiting
                continue
            done.add(one)
            found.append(one)
            stack.pop()
    return found


class Looks:
    """The values of conditions in one run, each tested once.

    Parameters
    ----------
    table
        The values computed so far.
    """

    def __init__(self, plan: Plan, table: Mapping[Node, Any]) -> None:
        self._skips, self._choices, self._table = plan.skips, plan.choices, table
        self._known: dict[Node, bool | None] = {}

    def leaves_out(self, node: Node) -> bool:
        """Return whether nothing needs ``node``."""
        skips = self._skips.get(node)
        return skips is not None and any(self._all_are(c) is holds for c, holds in skips)

    def taken(self, node: Node) -> Node | None:
        """Return the operand that is the result everywhere, if the condition is uniform; None otherwise, and for other nodes."""
        ways = self._choices.get(node)
        holds = None if ways is None else self._all_are(node.args[0])
        return None if ways is None or holds is None else ways.get(holds)

    def _all_are(self, condition: Node) -> bool | None:
        """Return whether a condition holds everywhere (True) or nowhere (False), or None if it varies."""
        if condition not in self._known:
            if condition not in self._table:  # nothing needs it: it is on such a side itself
                return None
            value = np.asarray(self._table[condition])
            self._known[condition] = None if not value.size else True if value.all() else None if value.any() else False
        return self._known[condition]
