"""Which values of a plan share an array: a store reuses the array of what it stores into."""

from __future__ import annotations

from tensormagic.backend.planning.kinds import stored_below
from tensormagic.ir.node import Node


class Memory:
    """Which values share an array: a value stored into another one's array takes its place.

    The *owner* of a value is the node that the array is named after. Owners of one *group* trade arrays at the end of a
    loop's iteration.
    """

    def __init__(self) -> None:
        self.home: dict[Node, Node] = {}
        self._short: dict[Node, Node] = {}  # a shortcut further up the same chain, which may have a thousand stores
        self._group: dict[Node, Node] = {}

    def owner(self, node: Node) -> Node:
        """Return the node that the array of ``node`` is named after."""
        node, passed = stored_below(node), list[Node]()
        while (above := self._short.get(node) or self.home.get(node)) is not None:
            passed.append(node)
            node = stored_below(above)
        self._short.update(dict.fromkeys(passed, node))
        return node

    def put(self, node: Node, home: Node) -> None:
        """Let the value of ``node`` use the array of ``home``."""
        if self.home.get(node, home) is not home:
            self._short.clear()
        self.home[node] = home

    def drop(self, node: Node) -> None:
        """Let the value of ``node`` have an array of its own."""
        self._short.clear()
        self.home.pop(node, None)

    def group(self, owner: Node) -> Node:
        """Return the representative of all owners that trade arrays with ``owner``."""
        while owner in self._group:
            owner = self._group[owner]
        return owner

    def trade(self, left: Node, right: Node) -> None:
        """Record that two owners swap arrays."""
        left, right = self.group(left), self.group(right)
        if left is not right:
            self._group[left] = right

    @property
    def traded(self) -> bool:
        """Return whether any owners swap arrays."""
        return bool(self._group)
