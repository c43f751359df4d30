"""Places: where a lazy array lives. A buffer holds the node that is its value now; a view, the moves that lead to its part."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tensormagic.ir.errors import CaptureError
from tensormagic.ir.node import Node
from tensormagic.ir.type import hint
from tensormagic.ops.move import squeezes

Forward = Callable[[Node], Node]
Backward = Callable[[Node, Node], Node]
Layout = np.ndarray[Any, Any]  # an array that is never read: what is where in memory


@dataclass(eq=False)
class Buffer:
    """Memory, as the captured code sees it.

    Parameters
    ----------
    node
        The current value.
    array
        The notebook's array, for an input: a store into the buffer is to be handed back to it.
    overlaps
        Other inputs, and what else the cell reads, that share the array's memory: stores are refused.
    away
        The cell that read the array, once that has ended: what it handed back cannot be stored into.
    """

    node: Node
    array: Any = None
    name: str = ""
    version: int = 0
    writeable: bool = True
    overlaps: list[str] = field(default_factory=list)
    away: str = ""

    def layout(self) -> Layout | None:
        """Where the elements lie in NumPy; None where that is not known."""
        shape = [hint(s) or 7 for s in self.node.type.shape]
        if isinstance(self.array, np.ndarray):
            strides = [s // self.array.itemsize for s in self.array.strides]
            return np.lib.stride_tricks.as_strided(_NOWHERE, self.array.shape, strides)
        if not in_c_order(self.node):
            return None
        return np.lib.stride_tricks.as_strided(_NOWHERE, shape, [math.prod(shape[k + 1 :]) for k in range(len(shape))])

    def store(self, node: Node) -> None:
        """Replace the value."""
        if not self.writeable:
            raise ValueError("assignment destination is read-only")
        if self.away:
            raise CaptureError(
                f"this is a part of the notebook's {self.name} as it was in {self.away}: it cannot be stored into",
                f"Store into {self.name} itself, or into a copy.",
            )
        if self.overlaps:
            raise CaptureError(
                f"{self.name} shares memory with {', '.join(self.overlaps)}, which this cell reads too: "
                "a store into it is not captured yet",
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
    moved
        The layout of the view for that of the parent.
    """

    buffer: Buffer
    parent: Place | None = None
    forward: Forward | None = None
    backward: Backward | None = None
    moved: Callable[[Layout], Layout] | None = None

    def layout(self) -> Layout | None:
        """Where the elements lie in NumPy; None where that is not known."""
        if self.parent is None or self.moved is None:
            return self.buffer.layout()
        base = self.parent.layout()
        return None if base is None else self.moved(base)

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

    def view(self, forward: Forward, backward: Backward | None, moved: Callable[[Layout], Layout]) -> Place:
        """A view of this place."""
        return Place(self.buffer, self, forward, backward, moved)


_NOWHERE = np.zeros(1, np.int8)


def in_c_order(node: Node) -> bool:
    """Whether NumPy's array for ``node`` has its elements in C order for sure: functions of elements take the order of their operands."""
    pending, seen = [node], set[Node]()
    while pending:
        found = pending.pop()
        if found in seen or found.type.ndim < 2:
            continue
        seen.add(found)
        kind = getattr(found.op, "kind", "")
        source = found.params.get("source")
        if (
            kind == "opaque"
            or found.op.name == "transpose"
            or (source is not None and not _c_like(getattr(source, "value", None)))
        ):
            return False
        if kind in {"pointwise", "move"} and (found.op.name != "reshape" or squeezes(found)):
            pending += found.args
    return True


def _c_like(value: Any) -> bool:
    """Whether the axes of an array stand in memory in their order."""
    steps = (
        [abs(s) for s, n in zip(value.strides, value.shape, strict=True) if n > 1]
        if isinstance(value, np.ndarray)
        else []
    )
    return steps == sorted(steps, reverse=True)
