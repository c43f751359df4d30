"""Places: where a lazy array lives. A buffer holds the node that is its current value; a view is a buffer and the moves that lead to its part."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tensormagic.ir.errors import CaptureError
from tensormagic.ir.node import Node

Forward = Callable[[Node], Node]
Backward = Callable[[Node, Node], Node]


@dataclass(eq=False)
class Buffer:
    """Memory, as the captured code sees it.

    Parameters
    ----------
    node
        The current value.
    array
        The notebook's array, for an input: a store into the buffer is to be handed back to it.
    """

    node: Node
    array: Any = None
    name: str = ""
    version: int = 0
    writeable: bool = True
    overlaps: list[str] = field(default_factory=list)

    def store(self, node: Node) -> None:
        """Replace the value."""
        if not self.writeable:
            raise ValueError("assignment destination is read-only")
        if self.overlaps:
            raise CaptureError(
                f"{self.name} shares memory with {', '.join(self.overlaps)}, which this cell reads too: a store into it is not captured yet",
                f"Work on a copy, {self.name} = {self.name}.copy(), or run the cell with --plain.",
            )
        self.node = node
        self.version += 1


@dataclass(frozen=True, eq=False)
class Place:
    """A buffer, or the part of a place that a move leads to.

    Parameters
    ----------
    buffer
        The memory.
    parent
        The place that this one is a view of.
    forward
        The view's value for the parent's.
    backward
        The parent's value with the view's replaced: ``backward(parent, view)``; None for a view that cannot be stored into.
    """

    buffer: Buffer
    parent: Place | None = None
    forward: Forward | None = None
    backward: Backward | None = None

    def read(self) -> Node:
        """The current value."""
        if self.parent is None or self.forward is None:
            return self.buffer.node
        return self.forward(self.parent.read())

    def write(self, node: Node) -> None:
        """Store a new value, through the views, into the buffer."""
        if self.parent is None:
            self.buffer.store(node)
            return
        if self.backward is None:
            raise ValueError("assignment destination is read-only")
        self.parent.write(self.backward(self.parent.read(), node))

    def view(self, forward: Forward, backward: Backward | None) -> Place:
        """A view of this place."""
        return Place(self.buffer, self, forward, backward)
