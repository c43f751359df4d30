"""Decide whether stages that access an array which one of them changes may share a loop over rows, row after row."""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence

from tensormagic.backend.planning.kinds import stored_below
from tensormagic.backend.planning.lower import IndexTuple, Stage, variable
from tensormagic.backend.planning.shared_arrays import Memory
from tensormagic.ir.node import Node
from tensormagic.ops.leaf import IOTA

Meeting = tuple[IndexTuple, IndexTuple]


def is_changer(stage: Stage, memory: Memory) -> bool:
    """Return whether a stage stores into an array that is there before."""
    return stage.written is not None or stage.root in memory.home


def meetings(earlier: Stage, later: Stage, memory: Memory, made: Container[Node]) -> list[Meeting] | None:
    """Return the pairs of indices at which two stages access an array that one of them changes, or None if one accesses all of it.

    What the later stage reads that is not ``made`` in the same nest is older than the earlier stage, which then
    changes other elements.
    """
    found: list[Meeting] = []
    for changer, other in ((earlier, later), (later, earlier)):
        if not is_changer(changer, memory):
            continue
        for node, index in _touched(other, memory.owner(changer.root), memory):
            if other is later and node not in made and node is not other.root:
                continue
            if index is None or changer.kind not in {"map", "store"}:
                return None
            found.append((changer.identity(), index))
    return found


def _touched(stage: Stage, owner: Node, memory: Memory) -> Iterator[tuple[Node, IndexTuple | None]]:
    """Yield what a stage accesses in an array, with its index: None for a view, a copy of the whole, or an accumulation."""
    for node, index in stage.reads:
        if node.op is not IOTA and memory.owner(node) is owner:
            yield stored_below(node), index if stored_below(node) is node and node.type.shape else None
    if memory.owner(stage.root) is owner:
        yield stage.root, stage.identity() if stage.kind in {"map", "store"} else None
    elif stage.written is not None and memory.owner(stage.root.args[0]) is owner:
        yield stored_below(stage.root.args[0]), None


def rows_in_common(found: Sequence[Meeting], most: int) -> int:
    """Return the number of leading loops whose iterations access separate elements wherever two stages meet."""
    return next((k for k in range(most) if not all(_is_along(pair, k) for pair in found)), most)


def _is_along(pair: Meeting, position: int) -> bool:
    """Return whether both indices follow a loop along some axis, at the same place."""
    name = variable(position)
    return any(a == b and a.variable == name for a, b in zip(*pair, strict=True))
