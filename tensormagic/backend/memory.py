"""Which values of a plan share an array: what is stored into one takes its place."""

from __future__ import annotations

from tensormagic.backend.kinds import stored_below
from tensormagic.ir.node import Node


class Memory:
    """Which values share an array: what is stored into one takes its place.

    A value's *owner* is the node that the array is named after. Owners of one *group* trade arrays when a turn of a
    loop ends.
    """

    def __init__(self) -> None:
        self.home: dict[Node, Node] = {}
        self._group: dict[Node, Node] = {}

    def owner(self, node: Node) -> Node:
        """The node that the array of ``node`` is named after."""
        node = stored_below(node)
        while node in self.home:
            node = stored_below(self.home[node])
        return node

    def group(self, owner: Node) -> Node:
        """One owner for all that trade arrays with ``owner``."""
        while owner in self._group:
            owner = self._group[owner]
        return owner

    def trade(self, left: Node, right: Node) -> None:
        """Say that two owners trade arrays."""
        left, right = self.group(left), self.group(right)
        if left is not right:
            self._group[left] = right

    @property
    def traded(self) -> bool:
        """Whether any do."""
        return bool(self._group)
