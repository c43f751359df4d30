"""Results that captured code computes and does not use: Python computes them all the same, so their errors must be raised."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from typing import Any

from tensormagic.capture import context
from tensormagic.capture.inputs.snapshots import Snapshot
from tensormagic.ir.graph import Graph, Guard, guards_of
from tensormagic.ir.node import Node, make, substitute, topological
from tensormagic.ir.size import atoms, nodes_of
from tensormagic.ops.effects.checks import SETTLED
from tensormagic.ops.effects.failing import may_fail
from tensormagic.ops.effects.raising import AFTER, CHECK, after
from tensormagic.ops.effects.telling import TELL
from tensormagic.ops.indices.gather import GATHER, TAKE_ALONG_AXIS
from tensormagic.ops.indices.position import POSITION
from tensormagic.ops.leaf import INPUT, constant
from tensormagic.ops.opaque import items


class Unused:
    """Represents the nodes that captured code has computed besides those that it ``used``, from the ``leaves`` of a call."""

    def __init__(self, capture: context.Capture, leaves: Iterable[Node], used: Sequence[Node]) -> None:
        known, reached = set(leaves), set(topological(used))
        self._awaited = [n for n in capture.order.awaited if n not in reached]
        self._all = [n for n in topological(capture.order.made) if n not in reached]
        self._new: list[Node] = []
        self._sizes = {a for leaf in known for s in leaf.type.shape for a in atoms(s)}
        foreign = set[Node]()  # stand-ins for arguments within the function
        for node in self._all:
            own = node.op is INPUT and node not in known
            if (own and not isinstance(node["source"], Snapshot)) or any(n in foreign for n in node.needs):
                foreign.add(node)
            else:
                self._new.append(node)
                self._sizes |= {a for s in node.type.shape for a in atoms(s)} if own else set()

    def guards(self) -> list[Guard]:
        """Return the guards on sizes that the unused nodes rely on, where data have no part in them."""
        found = (g for node in self._all for g in guards_of(node))
        return [g for g in found if {*atoms(g[0]), *atoms(g[2])} <= self._sizes]

    def before(self, results: list[Node]) -> list[Node]:
        """Return the results, the first of which depends on every operation that may fail."""
        failing = [*(_failing(n) for n in self._new if may_fail(n)), *self._awaited]
        below = {a for n in failing for a in topological(n.needs)}
        last = [n for n in failing if n not in below]
        if not last:
            return results
        token = constant(0)
        for node in reversed(last):  # earlier nodes are computed first
            token = after(items(node)[0], token)
        return [after(token, results[0]), *results[1:]] if results else [token]


def unused_in_cell(capture: context.Capture, held: Iterable[Node]) -> list[Node]:
    """Return the nodes a cell has computed that may fail, and that no value still referenced depends on."""
    made = made_in_cell(capture)
    reached = set(topological(list(held))) if made else set[Node]()
    return [n for n in made if n not in reached]


def made_in_cell(capture: context.Capture) -> list[Node]:
    """Return the nodes a cell has computed that may fail, with the stand-ins inside functions replaced by their arguments."""
    found = within_no_function(capture.order.made, capture.inputs.stand_ins, capture.inputs.behind)
    return list(dict.fromkeys(found))


def raises(node: Node) -> bool:
    """Return whether an operation may raise for some values. Arrays of data-dependent size do not count: masked stores replace them."""
    if any(nodes_of(s) for n in (node, *node.args) for t in n.types for s in t.shape):
        return False
    op: Any = node.op
    inner = (graph for _, graph in node.param_items if isinstance(graph, Graph))
    return bool(op.may_raise(node)) or any(raises(n) for graph in inner for n in graph.nodes)


def before_effect(made: Sequence[Node], token: Node) -> Node:
    """Return ``token``, after all nodes that may fail among those ``made`` since it: before the code prints, or checks data."""
    new = set(made)
    inside = topological(made, stop=lambda n: n not in new and context.is_built(n))
    for node in inside:
        if (
            (node in new or not context.is_built(node))
            and node.op not in {CHECK, AFTER, TELL}
            and (raises(node) or node.op is SETTLED)
        ):
            token = after(items(_failing(node))[0], token)
    return token


def unused_on_trial(made: Iterable[Node], used: Sequence[Node], known: Container[Node], token: Node) -> Node:
    """Return ``token``, after all failing nodes that trial code has ``made`` besides those ``used`` or already ``known``."""
    reached = set(topological(used, stop=lambda n: n in known))
    inside = topological([n for n in made if n not in reached], stop=lambda n: n in known or n in reached)
    for node in reversed(inside):  # earlier nodes are computed first
        if node not in reached and node not in known and raises(node):
            token = after(items(_failing(node))[0], token)
    return token


def _failing(node: Node) -> Node:
    """Return a node that fails whenever this one does; for a gather, a check of the positions only."""
    if node.op in {GATHER, TAKE_ALONG_AXIS} and not node.sized_by:
        axis = node["axis"]
        return make(POSITION, (node.args[1],), extent=node.args[0].type.shape[axis], number=axis)
    return node


def within_no_function(made: Sequence[Node], stand_ins: Sequence[Node], behind: Mapping[Node, Node]) -> list[Node]:
    """Return the nodes ``made``, with the ``stand_ins`` for parameters of called functions replaced by their arguments.

    A stand-in for a part of an argument has no node ``behind`` it; nodes that depend on it are left out.
    """
    actual = {n: behind[n] for n in stand_ins if n in behind}
    given, found = list(made), list(made) if not actual else substitute(made, actual)
    while found != given:  # for a function within another one
        given, found = found, substitute(found, actual)
    foreign = {n for n in stand_ins if n not in behind}
    if foreign:
        for node in topological(found):
            if any(n in foreign for n in node.needs):
                foreign.add(node)
    return [n for n in found if n not in foreign]
