"""Nodes that read digits of a node as factors of the same product as a rule's root, and nodes that are only compared."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from tensormagic.ir.facts import adds
from tensormagic.ir.node import Node
from tensormagic.ir.rewriting.roundings import multiplies, reads_digits

_FAR = 8
"""How many levels of products are searched."""
_MANY = 8
"""How many products of one level are considered."""
_COMPARED = 3
"""How many levels of arithmetic before a comparison are searched."""


class Over(dict[int, frozenset[Node]]):
    """The products that a root is a factor of, cached for each result."""


@dataclass(eq=False)
class Readers:
    """The readers of each node, the nodes that are results, and the results that each node belongs to."""

    users: Mapping[Node, Sequence[Node]]
    shown: Mapping[Node, int]
    of: Callable[[Node], int]

    def is_compared(self, node: Node) -> bool:
        """Return whether only comparisons read ``node``, so that its digits are never shown."""
        return node in self._compared

    @cached_property
    def _compared(self) -> set[Node]:
        """The nodes that only comparisons read, directly or through arithmetic."""
        found: set[Node] = set()
        below = {a for above in self.users.values() for u in above if not reads_digits(u) for a in u.needs}
        for _ in range(_COMPARED):
            more = [n for n in below if n not in found and self._reads_none(n, found)]
            if not more:
                break
            found.update(more)
            below = {a for n in more for a in n.needs}
        return found

    def _reads_none(self, node: Node, compared: set[Node]) -> bool:
        above = () if self.shown.get(node, 0) else self.users.get(node, ())
        return bool(above) and all(not reads_digits(u) or u in compared for u in above)

    def joins(self, user: Node, root: Node, results: int, over: Over) -> int:
        """Return the results in which ``user`` is a factor of a product that ``root`` is also a factor of."""
        found = 0
        while results:
            bit = results & -results
            results ^= bit
            if bit not in over:
                over[bit] = frozenset(self._products(root, bit))
            if over[bit] and self._comes_to(user, over[bit], bit):
                found |= bit
        return found

    def _products(self, root: Node, result: int) -> Iterator[Node]:
        """Yield the products in one result that ``root`` is a factor of, as long as only products read it."""
        level = [root]
        for _ in range(_FAR):
            readers = [self._reading(node, result) for node in level]
            level = list(dict.fromkeys(u for above in readers if all(map(multiplies, above)) for u in above))
            if not 0 < len(level) <= _MANY:
                return
            yield from level

    def _comes_to(self, user: Node, products: frozenset[Node], result: int) -> bool:
        for _ in range(_FAR):
            if user in products:
                return True
            above = self._reading(user, result)
            if len(above) != 1 or not (multiplies(user) or adds(user)):
                return False
            user = above.pop()
        return False

    def _reading(self, node: Node, result: int) -> set[Node]:
        """Return the nodes that read digits of ``node`` in one result; none if ``node`` is that result."""
        if self.shown.get(node, 0) & result:
            return set()
        return {
            u for u in self.users.get(node, ()) if self.of(u) & result and reads_digits(u) and not self.is_compared(u)
        }
