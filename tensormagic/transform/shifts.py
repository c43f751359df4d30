"""Sums of one array at several offsets, as in gradients of stencils, written as reads of neighbours in place of repeated additions.

``g[R] = 0; g[R + o] += v`` for several offsets ``o`` goes over ``g`` once for each. With ``v`` in the middle of
zeros, what is added to an element of ``R`` is one expression, and the rim of ``R`` gets its part by thin slices. A
number that all of ``v`` is multiplied with is multiplied with their sum.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import pairwise

from tensormagic.ir.node import Node, topological, users
from tensormagic.ir.site import substituted
from tensormagic.ir.size import Size
from tensormagic.ops.leaf import constant, constant_value
from tensormagic.ops.move import BROADCAST, broadcast, slice_
from tensormagic.ops.scalars.scalar import add, multiply
from tensormagic.ops.update import ADD_AT, SET, add_at, set_at

FEWEST = 3  # the fewest additions at offsets that are rewritten
Offset = tuple[int, ...]
Box = tuple[tuple[Size, Size], ...]  # for each axis its start, relative to the stored part, and its extent


@dataclass
class _Chain:
    """A store into a slice, followed by additions to that slice at offsets."""

    store: Node
    middle: list[Node]
    moved: dict[Node, list[Offset]]

    @property
    def margins(self) -> list[tuple[int, int]]:
        """How far the offsets reach along each axis, down and up."""
        along = zip(*(o for offsets in self.moved.values() for o in offsets), strict=True)
        return [(max(0, -min(own)), max(0, *own)) for own in along]


def gathered(results: Sequence[Node]) -> list[Node]:
    """Return ``results`` with such sums written as reads of neighbouring places."""
    nodes = topological(results)
    links = [n for n in nodes if n.op is ADD_AT]
    if len(links) < FEWEST:
        return list(results)
    used = users(nodes)
    wanted = set(results)
    tops = [n for n in links if n in wanted or [u.op for u in used.get(n, ())] != [ADD_AT]]
    new: dict[Node, Node] = {}
    for top in tops:
        chain = _chain(top, used, wanted)
        if chain is not None:
            new[top] = _together(chain)
    return substituted(results, new) if new else list(results)


def _chain(top: Node, used: dict[Node, list[Node]], wanted: set[Node]) -> _Chain | None:
    """Return the chain that ends with ``top``, or None if there is none, or it is not worth it."""
    links = [top]
    while links[-1].op is ADD_AT:
        links.append(links[-1].args[0])
    *additions, store = links
    alone = all(used[below] == [above] and below not in wanted for above, below in pairwise(links))
    if not alone or store.op is not SET or any(step != 1 for _, _, step in store["slices"]):
        return None
    found = _Chain(store, [], {})
    for link in additions:
        offset = _offset(link, store)
        if offset is None:
            return None
        if any(offset):
            found.moved.setdefault(link.args[1], []).append(offset)
        else:
            found.middle.append(link.args[1])
    count = sum(map(len, found.moved.values()))
    return found if count >= FEWEST and count >= 2 * len(found.moved) else None


def _offset(link: Node, store: Node) -> Offset | None:
    """Return the offset of an addition from the store, or None if its size or type differs."""
    value = link.args[1]
    pairs = list(zip(link["slices"], store["slices"], strict=True))
    if value.type.dtype != link.type.dtype or any(a[1:] != b[1:] for a, b in pairs):
        return None
    apart = [a[0] - b[0] for a, b in pairs]
    return tuple(d for d in apart if isinstance(d, int)) if all(isinstance(d, int) for d in apart) else None


def _together(chain: _Chain) -> Node:
    part = chain.store["slices"]
    margins = chain.margins
    scaled = {v: _scaled(v) for v in chain.moved}
    padded = {v: _padded(base, margins) for v, (base, _) in scaled.items()}
    factors = {v: own for v, (_, own) in scaled.items()}
    everywhere: Box = tuple((0, extent) for _, extent, _ in part)
    before = constant_value(chain.store.args[1])
    first = [chain.store.args[1]] if before is None or before.any() else []
    inside = [*first, *_read(chain, padded, factors, everywhere), *chain.middle]
    found = set_at(chain.store.args[0], reduce(add, inside), part)
    for axis, up, box in _rim(part, margins):
        terms = _read(chain, padded, factors, box, (axis, up))
        slices = tuple((begin + at, extent, 1) for (begin, _, _), (at, extent) in zip(part, box, strict=True))
        found = add_at(found, reduce(add, terms), slices)
    return found


def _scaled(value: Node) -> tuple[Node, list[Node]]:
    """Return a value without its constant factors, and these factors."""
    factors: list[Node] = []
    while value.op is multiply:
        number = next((a for a in value.args if a.op is BROADCAST and not a.args[0].type.shape), None)
        other = value.args[value.args[0] is number]
        if number is None or other.type != value.type or number.type != value.type:
            break
        factors.append(number.args[0])
        value = other
    return value, factors


def _padded(value: Node, margins: Sequence[tuple[int, int]]) -> Node:
    """Return a value in the middle of zeros."""
    wide = [low + high for low, high in margins]
    shape = tuple(s + 2 * w for s, w in zip(value.type.shape, wide, strict=True))
    zeros = broadcast(constant(value.type.dtype.type(0)), shape)
    return set_at(zeros, value, tuple((w, s, 1) for s, w in zip(value.type.shape, wide, strict=True)))


def _read(
    chain: _Chain,
    padded: dict[Node, Node],
    factors: dict[Node, list[Node]],
    box: Box,
    side: tuple[int, bool] | None = None,
) -> list[Node]:
    """Return what each value adds to a box; to one side of the rim only from the offsets that point there."""
    found: list[Node] = []
    for value, offsets in chain.moved.items():
        own = offsets
        if side is not None:
            own = [o for o in offsets if (o[side[0]] > 0 if side[1] else o[side[0]] < 0)]
        parts = [slice_(padded[value], _moved(box, o, chain.margins)) for o in own]
        if parts:
            found.append(reduce(_times, factors[value], reduce(add, parts)))
    return found


def _moved(box: Box, offset: Offset, margins: Sequence[tuple[int, int]]) -> tuple[tuple[Size, Size, int], ...]:
    """Return the slice of the padded array that is added to a box at an offset."""
    along = zip(box, offset, margins, strict=True)
    return tuple((at - o + low + high, extent, 1) for (at, extent), o, (low, high) in along)


def _times(value: Node, number: Node) -> Node:
    return multiply(value, broadcast(number, value.type.shape))


def _rim(part: Sequence[tuple[Size, Size, int]], margins: Sequence[tuple[int, int]]) -> Iterator[tuple[int, bool, Box]]:
    """Yield the boxes around the slice: the axis along which each lies outside, whether it lies beyond its end, and the box."""
    for axis, (low, high) in enumerate(margins):
        inner = [(0, extent) for _, extent, _ in part[:axis]]
        outer = [
            (-down, extent + down + up)
            for (_, extent, _), (down, up) in zip(part[axis + 1 :], margins[axis + 1 :], strict=True)
        ]
        if low:
            yield axis, False, (*inner, (-low, low), *outer)
        if high:
            yield axis, True, (*inner, (part[axis][1], high), *outer)
