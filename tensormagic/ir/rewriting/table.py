"""Tables that find the rules that may match a node, by names and numbers within two levels; each rule looks at a node once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from weakref import WeakKeyDictionary

from tensormagic.ir.facts import adds
from tensormagic.ir.graph import Graph
from tensormagic.ir.node import Node, is_constant
from tensormagic.ir.rewriting.rules import SAME, Found, Rule, number
from tensormagic.ir.rewriting.within import within

_marks: dict[str, int] = {}
"""The bit for each name of an op, and for each number that a rule requires among operands."""


def _marked(names: Iterable[str]) -> int:
    """Return the bits of op names for tables; new names get new bits."""
    found = 0
    for name in names:
        found |= _marks.setdefault(name, 1 << len(_marks))
    return found


def heads(node: Node) -> int:
    """Return the bits of the ops of the operands, also below moves and checks, and of the numbers among them.

    Includes the bit of ``SAME`` if two operands are the same. Cached on the node until more names are known.
    """
    known = node.heads
    if known is not None and known[0] == len(_marks):
        return known[1]
    found = _heads(node)
    node.heads = len(_marks), found
    return found


def _heads(node: Node) -> int:
    found = 0
    args = node.args
    for arg in args:
        found |= _marks.get(arg.op.name, 0)
        while arg.below is not None or arg.op.kind == "move" and len(arg.args) == 1:  # noqa: RUF021 (``moves``, in place)
            arg = arg.args[0]  # noqa: PLW2901 (going down)
            found |= _marks.get(arg.op.name, 0)
        if not arg.args and is_constant(arg) and not arg.type.shape:
            found |= _marks.get(number(arg), 0)
    if len(args) == 2:
        left, right = args
        if (left.below or left) is (right.below or right):
            found |= _marks.get(SAME, 0)
    elif len(args) > 1 and len({a.below or a for a in args}) < len(args):
        found |= _marks.get(SAME, 0)
    return found


class Table:
    """Rules, indexed by the op of the node they look at and by what must be below it.

    Parameters
    ----------
    rules
        In the order in which they are tried.
    looks
        A first look at a graph: whether they may match in it.
    """

    def __init__(self, rules: Iterable[Rule], looks: Callable[[Graph], bool] = lambda _: True) -> None:
        self.rules = tuple(rules)
        self.looks = looks
        self._by_op: dict[str, _Index] = {}
        self._beyond: WeakKeyDictionary[Table, Table] = WeakKeyDictionary()
        for rule in self.rules:
            _marked(rule.heads)
            _marked(head for _, head in rule.second)

    def at(self, node: Node) -> tuple[Rule, ...]:
        """Return the rules that may match ``node``, judged by its operands and their operands."""
        name = node.op.name
        index = self._by_op.get(name)
        if index is None:
            index = self._by_op[name] = _Index([r for r in self.rules if not r.roots or name in r.roots])
        return index.under(node)

    @cached_property
    def known(self) -> frozenset[Rule]:
        """The rules, as a set."""
        return frozenset(self.rules)

    def beyond(self, other: Table) -> Table:
        """Return a table of the rules that ``other`` does not have."""
        found = self._beyond.get(other)
        if found is None:
            found = self._beyond[other] = Table(r for r in self.rules if r not in other.known)
        return found

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The names of the rules."""
        return tuple(r.name for r in self.rules)


def _of_levels(rule: Rule) -> list[tuple[bool, int]]:
    """Return the tests that a rule requires below a node: pairs of bits and whether all of them, or only one, must be set."""
    return [(True, rule.deep)] * bool(rule.deep) + [(False, rule.within)] * bool(rule.within)


_Kept = tuple[tuple[Rule, ...], "tuple[Rule, ...] | None"]
"""The rules that may match; and those of them in which nothing cancels, if these are fewer."""


class _Index:
    """The rules of one op, selected by bits of what is below a node; the selection for each set of bits is cached."""

    def __init__(self, rules: list[Rule]) -> None:
        pairs = {pair: 1 << k for k, pair in enumerate(sorted({p for rule in rules for p in rule.second}))}
        self._rules = [(rule, _marked(rule.heads), sum(pairs[p] for p in rule.second)) for rule in rules]
        self._asked = _marked(name for rule in rules for name in rule.heads)
        self._second: dict[str, list[tuple[int, int]]] = {}
        for (op, head), bit in pairs.items():
            self._second.setdefault(op, []).append((_marked([head]), bit))
        self._levels = list(dict.fromkeys(level for rule in rules for level in _of_levels(rule)))
        self._looks = [(*level, 1 << k) for k, level in enumerate(self._levels)]
        self._known: dict[tuple[int, int, int], _Kept] = {}

    def under(self, node: Node) -> tuple[Rule, ...]:
        """Return the rules whose requirements ``node`` meets."""
        there = heads(node) & self._asked if node.args else 0
        pairs = self._pairs(node) if self._second else 0
        levels = self._missing(node) if self._levels else 0
        known = self._known.get((there, pairs, levels))
        if known is None:
            lost = {level for k, level in enumerate(self._levels) if levels >> k & 1}
            found = tuple(
                rule
                for rule, asked, second in self._rules
                if not asked & ~there and not second & ~pairs and lost.isdisjoint(_of_levels(rule))
            )
            rest = tuple(rule for rule in found if not rule.cancels)
            known = found, None if len(rest) == len(found) else rest
            if len(self._known) < _KEPT:
                self._known[there, pairs, levels] = known
        found, rest = known
        return found if rest is None or not adds(node, _NEAR) else rest

    def _missing(self, node: Node) -> int:
        """Return one bit for each test below a node that it fails: few combinations occur, while most nodes differ in what is below."""
        there = node.within
        if there is None:
            there = within(node)
        found = 0
        for every, bits, own in self._looks:
            if (bits & there) != bits if every else not bits & there:
                found |= own
        return found

    def _pairs(self, node: Node) -> int:
        """Return one bit for each required pair of an operand's op and an op among that operand's own operands."""
        found = 0
        for arg in node.args:
            inner = arg if arg.below is None else arg.below
            pairs = self._second.get(inner.op.name)
            if pairs is not None and inner.args:
                there = heads(inner)
                for head, bit in pairs:
                    if head & there:
                        found |= bit
        return found


_NEAR = 2
"""How many levels are searched for the signs of terms."""
_KEPT = 4096
"""For how many sets of bits an index caches its selection."""


class Matches:
    """The rules that match each node, with their replacements; each rule looks at a node only once.

    Parameters
    ----------
    table
        The rules.
    before
        The matches of other rules on the same graph: rules that are in both tables do not look again at nodes where
        none matched.

    ``settled``: whether none of these would be used if all were asked again.
    """

    def __init__(self, table: Table, before: Matches | None = None) -> None:
        self.table = table
        self._before = before.none if before is not None else frozenset[Node]()
        self._new = table.beyond(before.table) if before is not None else table
        self._found: dict[Node, tuple[list[tuple[Rule, Found]], Iterator[tuple[Rule, Found]]]] = {}
        self.none: set[Node] = set()
        self.settled = True

    def adds_to(self, nodes: Iterable[Node]) -> bool:
        """Return whether a rule that was not tried before matches any of ``nodes``, or any node in graphs within."""
        for node in nodes:
            if node in self._before:
                if self.at(node):
                    return True
            elif next(_search(node, self._new.at(node)), None) is not None:
                return True
            for _, value in node.param_items:
                if isinstance(value, Graph) and self.adds_to(value.nodes):
                    return True
        return False

    def at(self, node: Node) -> Iterable[tuple[Rule, Found]]:
        """Return the rules that match ``node``, in order, each with its replacement."""
        known = self._found.get(node)
        if known is None:
            if node in self.none:
                return ()
            rules = (self._new if node in self._before else self.table).at(node)
            rest = _search(node, rules) if rules else iter(())
            first = next(rest, None)
            if first is None:
                self.none.add(node)
                return ()
            known = self._found[node] = [first], rest
        return _in_turn(*known)


def _in_turn(known: list[tuple[Rule, Found]], rest: Iterator[tuple[Rule, Found]]) -> Iterator[tuple[Rule, Found]]:
    """Yield the known items, then the items of ``rest``, which become known."""
    k = 0
    while True:
        if k == len(known):
            more = next(rest, None)
            if more is None:
                return
            known.append(more)
        yield known[k]
        k += 1


def _search(node: Node, rules: Iterable[Rule]) -> Iterator[tuple[Rule, Found]]:
    """Yield the matches one by one. This is no method, as a waiting generator would keep its own owner alive."""
    for rule in rules:
        found = rule.apply(node)
        if found is not None and found.changes(node):
            yield rule, found
