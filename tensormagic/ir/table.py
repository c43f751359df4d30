"""Which rules may match a node: found by names and numbers within two levels of it, and each looked at once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property

from tensormagic.ir.node import Node, is_constant, moves
from tensormagic.ir.rules import SAME, Found, Rule, bare, number
from tensormagic.ir.within import within


def heads(node: Node) -> frozenset[str]:
    """The names of the ops that operands are, also below moves and checks, and the numbers that they are.

    ``SAME`` is among them where two operands are the same.
    """
    if node.heads is None:
        node.heads = frozenset(_heads(node))
    return node.heads


def _heads(node: Node) -> set[str]:
    found: set[str] = set()
    args = node.args
    for arg in args:
        found.add(arg.op.name)
        while arg.below is not None or moves(arg):
            arg = arg.args[0]  # noqa: PLW2901 (going down)
            found.add(arg.op.name)
        if is_constant(arg) and not arg.type.shape:
            found.add(number(arg))
    if len(args) > 1 and len(set(map(bare, args))) < len(args):
        found.add(SAME)
    return found


def second(node: Node) -> set[tuple[str, str]]:
    """The ops that operands are, each with what is among its own operands."""
    return {(inner.op.name, name) for inner in map(bare, node.args) if inner.args for name in heads(inner)}


class Table:
    """Rules, found by the op of the node that they look at, and by what has to be below it.

    Parameters
    ----------
    rules
        In the order in which they are tried.
    """

    def __init__(self, rules: Iterable[Rule]) -> None:
        self.rules = tuple(rules)
        self._by_op: dict[str, _Index] = {}

    def at(self, node: Node) -> tuple[Rule, ...]:
        """The rules that may match ``node``, as far as its operands and theirs tell."""
        name = node.op.name
        index = self._by_op.get(name)
        if index is None:
            index = self._by_op[name] = _Index([r for r in self.rules if not r.roots or name in r.roots])
        found, deeper, spread = index.under(heads(node) if node.args else ())
        if deeper:
            below = second(node)
            found = tuple(r for r in found if r.second <= below)
        if spread:
            bits = within(node)
            found = tuple(r for r in found if not r.within or r.within & bits)
        return found

    @cached_property
    def names(self) -> tuple[str, ...]:
        """What the rules are called."""
        return tuple(r.name for r in self.rules)


class _Index:
    """The rules of one op, by which of the heads that they ask for a node has."""

    def __init__(self, rules: list[Rule]) -> None:
        self.rules = rules
        self.asked = frozenset[str]().union(*(r.heads for r in rules))
        self._known: dict[frozenset[str], tuple[tuple[Rule, ...], bool, bool]] = {}

    def under(self, names: Iterable[str]) -> tuple[tuple[Rule, ...], bool, bool]:
        """Those that ask for no other heads than ``names``, and whether any of them asks for more, one level down or within a few."""
        there = self.asked.intersection(names)
        found = self._known.get(there)
        if found is None:
            own = tuple(r for r in self.rules if r.heads <= there)
            found = self._known[there] = own, any(r.second for r in own), any(r.within for r in own)
        return found


class Matches:
    """What rules make of nodes: each rule looks at a node once, however often that is asked for.

    Parameters
    ----------
    table
        The rules.
    before
        What other rules made of the same graph: those of them that are among ``table`` do not look again where none matched.
    """

    def __init__(self, table: Table, before: Matches | None = None) -> None:
        self.table = table
        self._before = before.none if before is not None else frozenset[Node]()
        known = frozenset(before.table.rules if before is not None else ())
        self._new = Table(r for r in table.rules if r not in known) if known else table
        self._found: dict[Node, tuple[list[tuple[Rule, Found]], Iterator[tuple[Rule, Found]]]] = {}
        self.none: set[Node] = set()

    def at(self, node: Node) -> Iterator[tuple[Rule, Found]]:
        """The rules that match ``node``, in order, and what they put in its place."""
        if node in self.none:
            return
        if node not in self._found:
            rules = (self._new if node in self._before else self.table).at(node)
            if not rules:
                self.none.add(node)
                return
            self._found[node] = [], self._search(node, rules)
        known, rest = self._found[node]
        k = 0
        while True:
            if k == len(known):
                more = next(rest, None)
                if more is None:
                    break
                known.append(more)
            yield known[k]
            k += 1
        if not known:
            self.none.add(node)

    def _search(self, node: Node, rules: Iterable[Rule]) -> Iterator[tuple[Rule, Found]]:
        for rule in rules:
            found = rule.apply(node)
            if found is not None and found.node is not node:
                yield rule, found
