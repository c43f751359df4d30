"""The values already computed, and where a graph may be cut at them so that a rounding is treated alike on both sides of a cut.

A rule that absorbs the rounding of ``u`` sees the readers of ``u`` in its own graph. A value that was computed before
may itself be such a reader, or may have been computed by such a rule: then the graph is not cut there, and the driver
decides over all of it.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from tensormagic.ir.closing import Closed
from tensormagic.ir.node import Node, topological, users
from tensormagic.ir.rewriting.roundings import picks, reads_digits
from tensormagic.transform.rewriting import Choices, Rewritten, choices, chosen

FAR = 512
"""How many nodes that a value was computed from are searched."""

Parts = frozenset[Node]
_NONE: Parts = frozenset()


@dataclass(eq=False)
class Table:
    """Values by node, for one level of rewriting.

    Parameters
    ----------
    there
        The values.
    absorbed
        The nodes whose rounding rules have absorbed on the way to some values.
    """

    there: weakref.WeakKeyDictionary[Node, Any] = field(default_factory=weakref.WeakKeyDictionary[Node, Any])
    absorbed: weakref.WeakKeyDictionary[Node, Parts] = field(default_factory=weakref.WeakKeyDictionary[Node, Parts])

    def inherit(self, result: Node, leaves: Iterable[Node], own: Parts = _NONE) -> None:
        """Record what was absorbed on the way to ``result``, by this run's rules and by those of its ``leaves``."""
        every = own.union(*(self.absorbed.get(leaf, _NONE) for leaf in leaves))
        every = every & behind(result) if every else every
        if every or result in self.absorbed:
            self.absorbed[result] = every


class Values:
    """The computed values, in one table for each level, set of rules and device."""

    def __init__(self) -> None:
        self._tables: dict[Choices, Table] = {}

    def table(self) -> Table:
        """Return the table for the current level, rules and device."""
        own = choices()
        found = self._tables.get(own)
        if found is None:
            for key in [k for k in self._tables if k != chosen(k[0], k[2])]:  # rules that are no longer in force
                del self._tables[key]
            found = self._tables[own] = Table()
        return found

    def here(self) -> weakref.WeakKeyDictionary[Node, Any]:
        """Return the values for the current level, rules and device."""
        return self.table().there

    def near(self) -> list[weakref.WeakKeyDictionary[Node, Any]]:
        """Return the values for the current device, and those of the same level and rules on other devices."""
        return [self.table().there] if len(self._tables) == 1 else [table.there for table in self._near()]

    def _near(self) -> list[Table]:
        here, own = self.table(), choices()
        return [here, *(t for k, t in self._tables.items() if k[:2] == own[:2] and k[2] != own[2])]

    def adopt(self, nodes: Iterable[Node]) -> None:
        """Record for values that are only on other devices which roundings were absorbed on the way to them."""
        if len(self._tables) == 1:
            return
        here, *others = self._near()
        for node in nodes if others else ():
            found = next((t for t in others if node in t.there), None) if node not in here.there else None
            if found is not None and node in found.absorbed:
                here.absorbed[node] = found.absorbed[node]

    def every(self) -> list[weakref.WeakKeyDictionary[Node, Any]]:
        """Return the values of each level."""
        return [table.there for table in self._tables.values()]


def behind(value: Node) -> set[Node]:
    """Return the nodes that the digits of ``value`` were computed from, itself included: the nearest, up to a limit."""
    found: dict[Node, None] = {value: None}
    for node in (pending := [value]):
        for arg in node.args if len(found) < FAR else ():
            if arg not in found and reads_digits(arg):
                found[arg] = None
                pending.append(arg)
    return set(found)


def absorbed(closed: Closed, rewritten: Rewritten) -> Parts:
    """Return the nodes, as they were before the graph was closed, whose roundings rules have absorbed."""
    parts = {p for firing in rewritten.fired for p in firing.parts}
    if not parts:
        return _NONE
    found = [n for n, own in closed.mapping.items() if own in parts]
    for node in found:  # a part of an absorbed node has its rounding errors
        found += node.args if picks(node) else ()
    return frozenset(found)


@dataclass
class _Side:
    """One graph that is cut at values; for each node, the results that depend on it, as bits."""

    results: Sequence[Node]
    leaves: Sequence[Node]

    def __post_init__(self) -> None:
        cut = set(self.leaves)
        self.nodes = topological(self.results, lambda n: n in cut)
        self.within: dict[Node, int] = {}
        for k, node in enumerate(self.results):
            self.within[node] = self.within.get(node, 0) | 1 << k
        for node in reversed(self.nodes):
            for arg in () if node in cut else node.needs:
                self.within[arg] = self.within.get(arg, 0) | self.within[node]
        self.users = users([n for n in self.nodes if n not in cut])

    def reads(self, part: Node) -> int:
        """Return the results in which digits of ``part`` are read on this side of the cut."""
        bits = 0
        for user in self.users.get(part, ()):
            bits |= self.within[user] if reads_digits(user) else 0
        return bits


def parted(results: Sequence[Node], leaves: Sequence[Node], own: Callable[[], Parts], table: Table) -> set[Node]:
    """Return the leaves at which the graph of ``results`` must not be cut.

    Parameters
    ----------
    results
        The nodes that are wanted.
    leaves
        Where their graph is cut.
    own
        What rules absorb in that graph.
    table
        The values, and what they have absorbed on the way to these.
    """
    computed = [leaf for leaf in leaves if leaf.args and leaf.types[0].inexact]
    if not computed:
        return set()
    before = {leaf: table.absorbed.get(leaf, _NONE) for leaf in computed}
    now = own()
    parts = now.union(*before.values())
    if not parts:
        return set()
    side = _Side(results, leaves)
    history = {leaf: behind(leaf) for leaf in computed}
    found: set[Node] = set()
    for part in parts:
        taken = {leaf for leaf in computed if part in before[leaf]}
        plain = {leaf for leaf in computed if part in history[leaf] and leaf not in taken}
        takes = _union(side.within.get(n, 0) for n in (*taken, *([part] if part in now else ())))
        reads = _union(side.within.get(n, 0) for n in plain if n is not part) | (side.reads(part) if taken else 0)
        if takes & reads:
            found |= taken | plain
    return found


def _union(bits: Iterable[int]) -> int:
    whole = 0
    for one in bits:
        whole |= one
    return whole
