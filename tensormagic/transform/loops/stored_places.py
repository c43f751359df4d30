"""Arrays of which each iteration of a loop stores the next place along an axis, and the reads of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from tensormagic.ir.node import Node, topological
from tensormagic.ir.size import Size, is_at_least
from tensormagic.ops.move import RESHAPE, SLICE
from tensormagic.ops.update import ADD_AT, SET
from tensormagic.transform.loops.iterations import moving_axis

Slices = tuple[tuple[Size, Size, int], ...]


class Places(NamedTuple):
    """An array that a loop stores place by place, forwards or backwards.

    Parameters
    ----------
    slices, axis, first, step
        The slice that an iteration stores, the axis along which it moves, its first place there, and 1 or -1.
    ahead, before, just
        The reads of a place not yet stored, of the one stored by the previous iteration, and of the one stored by this
        one.
    """

    slices: Slices
    axis: int
    first: Size
    step: int
    ahead: tuple[Node, ...]
    before: tuple[Node, ...]
    just: tuple[Node, ...]

    @property
    def first_before(self) -> Slices:
        """The slice of the place before the first one."""
        return at(self.slices, self.axis, self.first - self.step)


def at(slices: Slices, axis: int, first: Size) -> Slices:
    """Return a slice that is one place along an axis, and as ``slices`` along the others."""
    return tuple((first, 1, 1) if k == axis else s for k, s in enumerate(slices))


def places_of(slot: Node, end: Node, roots: Sequence[Node], iteration: Node, stop: set[Node]) -> Places | None:
    """Return how ``end`` stores into the carry ``slot``, or None if it is no such store, or if the array is read in another way.

    Parameters
    ----------
    slot
        The carry.
    end
        Its next value.
    roots
        All results of an iteration.
    iteration
        The index.
    stop
        The nodes available outside the loop.
    """
    found = moving_axis(end["slices"], iteration) if end.op in {SET, ADD_AT} else None
    if found is None or end.args[0] is not slot or slot in roots or list(roots).count(end) > 1:
        return None
    places = Places(end["slices"], *found, (), (), ())
    ahead: list[Node] = []
    before: list[Node] = []
    just: list[Node] = []
    for n in topological(roots, stop=stop.__contains__):
        if n is end or not {slot, end} & {*n.args}:
            continue
        away = _away(n, places)
        if end in n.args:
            fits, kind = away == 0 and end.op is SET, just
        else:
            fits, kind = away is not None and away >= -1, before if away == -1 else ahead
        if not fits:
            return None
        kind.append(n)
    return places._replace(ahead=tuple(ahead), before=tuple(before), just=tuple(just))


def _away(read: Node, places: Places) -> int | None:
    """Return the distance, in iterations, from a read to the store of the place it reads, or None for other reads."""
    if read.op is not SLICE:
        return None
    own, k = read["slices"], places.axis
    if at(own, k, 0) != at(places.slices, k, 0) or own[k][1:] != (1, 1):
        return None
    away = (own[k][0] - places.slices[k][0]) * places.step
    return away if isinstance(away, int) else None


def is_inside(slices: Slices, shape: Sequence[Size]) -> bool:
    """Return whether a slice of single places and whole axes is in bounds for all sizes."""
    return all(
        is_at_least(first, 0) and is_at_least(extent - first - length, 0)
        for (first, length, _), extent in zip(slices, shape, strict=True)
    )


def bare(node: Node) -> Node:
    """Return a value below its reshapes."""
    while node.op is RESHAPE:
        node = node.args[0]
    return node
