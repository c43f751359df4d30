"""Who else reads the digits of the numbers that a rule absorbs: in each result, all readers must see one number rounded alike.

A result is what code outside gets, on its own: a reader in one result does not count in another. Sets of results are
ints, a bit each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from tensormagic.ir.node import Node, is_check, topological, users
from tensormagic.ir.rewriting.joins import Over, Readers
from tensormagic.ir.rewriting.roundings import below, cancels_with, hides, picks, reads_digits, rounds
from tensormagic.ir.rewriting.rules import Found, Rule
from tensormagic.ir.rewriting.sides import Sides, exclude, read_by, sides_of

_FAR = 8
"""How many levels below a replaced node are searched: more than any rule absorbs."""


def near(node: Node) -> set[Node]:
    """Return the nodes at most a few levels below ``node``, without itself."""
    level: list[Node] = [node]
    found: set[Node] = set()
    for _ in range(_FAR):
        level = [a for a in dict.fromkeys(arg for n in level for arg in n.args) if a not in found]
        found.update(level)
    return found


def made_by(node: Node, found: Found) -> set[Node]:
    """Return the nodes that a replacement adds."""
    return _down_to(found.node, {*found.inside, *found.bound} if found.parts else near(node))[0]


def again(found: Found) -> set[Node]:
    """Return the nodes of a pattern that its replacement still reads."""
    if found.absorbs:
        return set(found.absorbs)
    if not found.parts:
        return set()
    own = set(found.inside)
    return _down_to(found.node, own.union(found.bound))[1] & own


def _down_to(root: Node, stops: set[Node]) -> tuple[set[Node], set[Node]]:
    """Return the nodes from ``root`` down to ``stops``, and the stops that were reached.

    Conditions of checks are not visited: they existed before.
    """
    own: set[Node] = set()
    reached: set[Node] = set()
    stack = [root]
    while stack:
        node = stack.pop()
        if node in stops:
            reached.add(node)
        elif node not in own:
            own.add(node)
            stack.extend(node.args[:1] if is_check(node) else node.args)
    return own, reached


def inside(node: Node, found: Found) -> list[Node]:
    """Return the nodes below ``node`` that a rule replaces: those of its pattern, or those that its replacement no longer reads."""
    if found.parts or found.absorbs:
        return list(dict.fromkeys(found.inside[1:] if found.parts else found.absorbs))
    around = near(node)
    _, read = _down_to(found.node, around)
    own: set[Node] = set()
    for arg in node.args:
        own |= _down_to(arg, read | {n for n in around if not n.args})[0] & around
    return list(own)


def absorbed(rule: Rule, node: Node, found: Found) -> list[Node]:
    """Return the nodes whose rounding shows in ``node``, and does not, or in another way, in its replacement."""
    if rule.level != "stable":
        return []
    if found.parts:
        pattern = found.parts[0][0]
        undone = found.gives_back()  # a replacement that is the variable itself has no trace of the part's rounding
        return [n for part, n in found.parts[1:] if rounds(n) and (undone or not hides(pattern, part))]
    return [n for n in inside(node, found) if rounds(n)]


def residue(found: Found) -> Node | None:
    """Return an operand that is the rounding error of another one, which needs each rounding as written; None if there is none."""
    operands = list(dict.fromkeys(map(below, found.bound)))
    return next((x for x in operands for y in operands if x is not y and cancels_with(x, y)), None)


@dataclass(eq=False, slots=True)
class _Place:
    """The place at which a rule fires: its root, the nodes it absorbs, whether only readers of digits count, and the results that matter.

    ``over`` caches the products that the root is a factor of, by result. ``joined`` are readers of a part as another
    factor of such a product: there an accurate factor beside the rounded part does no harm. ``sides`` are the
    branches of choices that alone read the root.
    """

    root: Node
    parts: Sequence[Node]
    digits: bool
    results: int
    sides: Sides | None = None
    over: Over = field(default_factory=Over)
    joined: set[Node] = field(default_factory=set[Node])

    def counts(self, user: Node) -> bool:
        """Return whether a user counts as a reader here."""
        return not self.digits or reads_digits(user)


def origins_of(node: Node, origins: Mapping[Node, Sequence[Node]], normals: Mapping[Node, Node]) -> Sequence[Node]:
    """Return the nodes that became ``node``: itself if it is its own normal form and nothing else is recorded."""
    known = origins.get(node)
    if known is not None:
        return known
    return (node,) if normals.get(node) is node else ()


ANY = 1
"""The only bit, if all results are read together."""


@dataclass
class Reach:
    """The results that each node belongs to, as bits.

    Parameters
    ----------
    results
        The requested nodes.
    apart
        Whether each result is read on its own.
    nodes
        All that they need, in order.

    ``whole`` has the bits of all results.
    """

    results: Sequence[Node]
    apart: bool
    nodes: Sequence[Node]
    whole: int = field(init=False)
    _known: dict[Node, int] = field(init=False)

    def __post_init__(self) -> None:
        self.whole = (1 << len(self.results)) - 1
        self._known = self._over()

    def _over(self) -> dict[Node, int]:
        if not self.apart:
            return {}
        found = dict(self.shown)
        for node in reversed(self.nodes):
            bits = found[node]
            for arg in node.needs:
                found[arg] = found.get(arg, 0) | bits
        return found

    def of(self, node: Node) -> int:
        """Return the results that ``node`` belongs to."""
        return self._known.get(node, self.whole) if self.apart else ANY

    @cached_property
    def shown(self) -> dict[Node, int]:
        """The bits of the nodes that are results themselves."""
        found: dict[Node, int] = {}
        for k, node in enumerate(self.results):
            found[node] = found.get(node, 0) | (1 << k if self.apart else ANY)
        return found

    def spread(self, node: Node, new: Node) -> None:
        """Record that ``new`` replaces ``node``."""
        if not self.apart:
            return
        bits, known = self.of(node), self._known
        stack = [new]
        while stack:
            one = stack.pop()
            before = known.get(one, 0)
            after = before | bits
            if after != before:
                known[one] = after
                stack += one.needs


@dataclass
class Whole:
    """A graph: its results, and all nodes that they need, in order."""

    nodes: Sequence[Node]
    order: Sequence[Node]

    @cached_property
    def users(self) -> Mapping[Node, Sequence[Node]]:
        """The nodes that read each node."""
        return users(self.order)


@dataclass
class Uses:
    """Finds which nodes read the digits of others during one pass.

    Parameters
    ----------
    start, reach
        The graph when the pass starts, and which results its nodes belong to: results count as read.
    normals, becomes, origins
        What nodes have become so far; see the driver.
    matches
        The rules that match a node, and their replacements.
    comes
        For each node that was added during the pass, the node it replaced.
    """

    start: Whole
    reach: Reach
    normals: Mapping[Node, Node]
    becomes: Mapping[Node, Node]
    origins: Mapping[Node, Sequence[Node]]
    matches: Callable[[Node], Iterable[tuple[Rule, Found]]]
    sure: bool = False
    comes: dict[Node, Node] = field(default_factory=dict[Node, Node])
    _absorbed: dict[Node, tuple[set[Node], Iterator[tuple[Rule, Found]]]] = field(
        default_factory=dict[Node, tuple[set[Node], Iterator[tuple[Rule, Found]]]]
    )
    _joined: dict[Node, set[Node]] = field(default_factory=dict[Node, set[Node]])

    def elsewhere(self, absorbed: Iterable[Node], root: Node, parts: Sequence[Node]) -> dict[Node, int]:
        """Return for each absorbed node the results of ``root`` in which a node other than ``root`` and ``parts`` will read its digits."""
        at = _Place(root, parts, digits=True, results=self.reach.of(root))
        found = {part: self._found(part, at) for part in absorbed}
        if at.joined:
            self._joined.setdefault(root, set()).update(at.joined)
        return found

    def joined(self, root: Node) -> set[Node]:
        """Return the readers of a part of ``root`` as another factor of a product that ``root`` is a factor of."""
        return self._joined.get(root, set())

    def _joins(self, user: Node, at: _Place, results: int) -> int:
        """Return the results in which ``user`` is a factor of a product that the root is also a factor of."""
        root = at.root
        while root in self.comes:
            root = self.comes[root]
        return self._readers.joins(user, root, results, at.over)

    @cached_property
    def _readers(self) -> Readers:
        return Readers(self.start.users, self.reach.shown, self.reach.of)

    def stays(self, part: Node, root: Node, parts: Sequence[Node]) -> bool:
        """Return whether anything still needs ``part``, in any result, comparisons included."""
        return bool(self._found(part, _Place(root, parts, digits=False, results=-1)))

    def _found(self, part: Node, at: _Place) -> int:
        return _union(
            (self._read((origin,), part, at) for origin in origins_of(part, self.origins, self.normals)), at.results
        )

    def _read(self, chain: tuple[Node, ...], part: Node, at: _Place) -> int:
        """Return the results in which anything reads digits of ``part`` through ``chain``, each of which passes the node before it on."""
        last = chain[-1]
        shown = self.reach.shown.get(last, 0) & at.results
        readers = (self._reads(user, chain, part, at) for user in self.start.users.get(last, ()))
        return shown | _union(readers, at.results & ~shown)

    def _reads(self, user: Node, chain: tuple[Node, ...], part: Node, at: _Place) -> int:
        common = self.reach.of(user) & at.results
        if not common or (at.digits and self._readers.is_compared(user)):
            return 0
        if at.digits and (factor := self._joins(user, at, common)):
            at.joined.add(user)
            common &= ~factor
            return common and self._reads_in(user, chain, part, at, common)
        return self._reads_in(user, chain, part, at, common)

    def _reads_in(self, user: Node, chain: tuple[Node, ...], part: Node, at: _Place, common: int) -> int:
        now = self.normals.get(user)
        if now is not None:
            if part not in now.needs or not at.counts(now):
                return 0
            if picks(now) or now in at.parts:
                return common & self._read((*chain, user), now, at)
            return 0 if self._is_beside(user, chain[-1], at) else common
        here = user
        while here in self.becomes and self.becomes[here] is not here:
            here = self.becomes[here]
        if here is at.root or not at.counts(here):
            return 0
        if picks(here):
            return common & self._read((*chain, user), part, at)
        if not self.sure and self._absorbs(here, chain):
            return 0
        return 0 if self._is_beside(user, chain[-1], at) else common

    def _is_beside(self, user: Node, last: Node, at: _Place) -> bool:
        """Return whether a choice separates the root from what ``user`` makes of its operand ``last``, so that no element reads both."""
        if not at.digits:
            return False
        if at.sides is None:
            root = at.root
            while root in self.comes:
                root = self.comes[root]
            at.sides = sides_of(root, self.start.users, self.reach.shown.__contains__)
        return bool(at.sides) and exclude(
            read_by(user, last, self.start.users, self.reach.shown.__contains__), at.sides
        )

    def _absorbs(self, user: Node, chain: Sequence[Node]) -> bool:
        """Return whether a rule at ``user`` replaces a node of ``chain``; rules are tried only until that is known."""
        known = self._absorbed.get(user)
        if known is None:
            known = self._absorbed[user] = set(), iter(self.matches(user))
        found, more = known
        while found.isdisjoint(chain):
            one = next(more, None)
            if one is None:
                return False
            found.update(inside(user, one[1]))
        return True


def _union(found: Iterable[int], enough: int) -> int:
    """Return the union of bits, computed only until ``enough`` are set."""
    bits = 0
    for one in found:
        bits |= one
        if bits and (enough < 0 or enough & ~bits == 0):
            break
    return bits


@dataclass
class Claims:
    """The assumptions of the rules in a pass: that nothing will read the digits of the nodes they absorb."""

    _made: dict[Node, set[Node]] = field(default_factory=dict[Node, set[Node]])
    _by: list[tuple[Rule, Node, list[Node]]] = field(default_factory=list[tuple[Rule, Node, list[Node]]])
    _in: dict[Node, list[Node]] = field(default_factory=dict[Node, list[Node]])

    def add(self, rule: Rule, node: Node, parts: list[Node], found: Found, joined: set[Node]) -> None:
        """Record that a rule fired at ``node`` and absorbs ``parts``, which ``joined`` may read."""
        self._by.append((rule, node, parts))
        read = again(found)
        own = made_by(node, found) | read
        for part in parts:
            self._made.setdefault(part, set()).update(own)
            if found.absorbs or part in read:  # other rules may rewrite the replacement, but this is read in any case
                self._in.setdefault(part, []).append(found.node)
            self._in.setdefault(part, []).extend(joined)

    def broken(
        self, after: Whole, normals: Mapping[Node, Node], reach: Reach
    ) -> dict[tuple[Rule, Node], tuple[Node, int]]:
        """Return the firings whose assumption does not hold ``after`` the pass, with the node still read, and in which results."""
        if not self._by:
            return {}
        present = set(after.order)
        held = [(rule, node, p) for rule, node, parts in self._by for p in parts if p in present]
        if not held:
            return {}
        now = _After(after.users, Reach(after.nodes, reach.apart, after.order))
        allowed = {p: {normals.get(n, n) for n in self._made[p]} for _, _, p in held}
        for p, made in allowed.items():
            made.update(topological([normals.get(n, n) for n in self._in.get(p, ())]))
        still = {p: now.read(p, allowed[p]) for p in allowed}
        found: dict[tuple[Rule, Node], tuple[Node, int]] = {}
        for rule, node, p in held:
            left = still[p]
            root = normals.get(node, node)
            if left & reach.of(node) and (sides := now.sides(root)):
                left = now.read(p, allowed[p], sides)
            if left & reach.of(node):
                left = now.read(p, allowed[p], now.sides(root), root)
            if left & reach.of(node):
                found[rule, node] = p, left
        return found


@dataclass
class _After:
    """The graph after a pass: the readers of nodes, and which results each belongs to."""

    users: Mapping[Node, Sequence[Node]]
    reach: Reach

    @cached_property
    def _readers(self) -> Readers:
        return Readers(self.users, self.reach.shown, self.reach.of)

    def read(self, last: Node, own: set[Node], sides: Sides | None = None, root: Node | None = None) -> int:
        """Return the results in which a node outside ``own`` reads digits of ``last``.

        With ``sides``, readers on other branches of a choice do not count; with ``root``, neither do other factors of
        its products.
        """
        found = self.reach.shown.get(last, 0)
        over = Over()
        for user in self.users.get(last, ()):
            if not reads_digits(user) or user in own or self._readers.is_compared(user):
                continue
            if sides and exclude(read_by(user, last, self.users, self.reach.shown.__contains__), sides):
                continue
            here = self.reach.of(user)
            if root is not None and here & ~self._readers.joins(user, root, here, over) == 0:
                continue
            found |= self.read(user, own, sides, root) if picks(user) else here
        return found

    def sides(self, node: Node) -> Sides:
        """Return the branches of choices that alone read a node."""
        return sides_of(node, self.users, self.reach.shown.__contains__)
