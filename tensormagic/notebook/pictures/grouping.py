"""Group the boxes of a picture by kernel, or by source line where a graph is large.

Groups never form a cycle, so a picture of groups is drawn from top to bottom like one of vertices.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

from tensormagic.notebook.pictures.layout import topological_order

if TYPE_CHECKING:
    from collections.abc import Sequence


K = TypeVar("K")

CHUNK = 100  # a group of more members is cut, so that opening one stays readable
_MOST_PIECES = 40  # lines that feed each other in a circle this often are one group


@dataclass(frozen=True)
class Group(Generic[K]):
    """Members by index, the keys they came with, and which part of a cut group it is (0 of 1 where it was not cut)."""

    members: tuple[int, ...]
    keys: tuple[K, ...]
    part: int
    parts: int


def groups(keys: Sequence[K | None], pairs: list[tuple[int, int]], chunk: int = CHUNK) -> list[Group[K]]:
    """Group indices with equal keys, splitting groups that would form a cycle.

    Parameters
    ----------
    keys : sequence
        One key for each index; an index with None is in no group.
    pairs : list of (int, int)
        The edges: the first index feeds the second.
    chunk : int
        The largest group.

    Returns
    -------
    list of Group
        In the order of their first members.
    """
    order = topological_order(len(keys), pairs)
    units: dict[K, int] = {}
    for key in keys:
        if key is not None:
            units.setdefault(key, len(units))
    unit = [units[key] if key is not None else len(units) + index for index, key in enumerate(keys)]
    knots = _knots(len(units) + len(keys), [(unit[source], unit[target]) for source, target in pairs])
    rank = _ranks(order, pairs, unit, knots)
    pieces: dict[tuple[int, int], list[int]] = {}  # by unit and rank
    for index in order:
        pieces.setdefault((unit[index], rank[index]), []).append(index)
    count = Counter(knots[number] for number, _ in pieces)
    merged: dict[tuple[int, int, int], list[int]] = {}
    for (number, height), members in pieces.items():
        tangled = count[knots[number]] > _MOST_PIECES
        merged.setdefault((knots[number], -1, 0) if tangled else (knots[number], number, height), []).extend(members)
    place = {index: position for position, index in enumerate(order)}
    found = [
        group
        for members in merged.values()
        if len(members) > 1 or keys[members[0]] is not None
        for group in _cut(sorted(members, key=place.__getitem__), keys, chunk)
    ]
    return sorted(found, key=lambda group: min(group.members))


def _cut(members: list[int], keys: Sequence[K | None], chunk: int) -> list[Group[K]]:
    """Return the members as one group, or in order as several of at most `chunk`."""
    seen: dict[K, None] = {}
    for index in members:
        key = keys[index]
        if key is not None:
            seen[key] = None
    parts = -(-len(members) // chunk)
    step = -(-len(members) // parts)
    return [Group(tuple(members[k * step : (k + 1) * step]), tuple(seen), k, parts) for k in range(parts)]


def _ranks(order: list[int], pairs: list[tuple[int, int]], unit: list[int], knots: list[int]) -> list[int]:
    """Count, within each knot, how often the longest way to an index changed its unit: equal ranks cannot circle."""
    after: dict[int, list[int]] = {}
    for source, target in pairs:
        after.setdefault(source, []).append(target)
    rank = [0] * len(order)
    for index in order:
        for target in after.get(index, ()):
            if knots[unit[index]] == knots[unit[target]]:
                rank[target] = max(rank[target], rank[index] + (unit[index] != unit[target]))
    return rank


def _knots(count: int, pairs: list[tuple[int, int]]) -> list[int]:  # noqa: C901 (one algorithm, in its usual form)
    """Return for each unit the number of its strongly connected component (Tarjan 1972, with a stack of its own)."""
    after: list[list[int]] = [[] for _ in range(count)]
    for source, target in dict.fromkeys(pairs):
        if source != target:
            after[source].append(target)
    met = [-1] * count
    low = [0] * count
    knot = [-1] * count
    path: list[int] = []
    clock = found = 0
    for start in range(count):
        work = [(start, 0)] if met[start] < 0 else []
        while work:
            unit, step = work.pop()
            if step == 0:
                met[unit] = low[unit] = clock
                clock += 1
                path.append(unit)
            else:
                low[unit] = min(low[unit], low[after[unit][step - 1]])
            while step < len(after[unit]):
                other = after[unit][step]
                step += 1
                if met[other] < 0:
                    work += [(unit, step), (other, 0)]
                    break
                if knot[other] < 0:
                    low[unit] = min(low[unit], met[other])
            else:
                if low[unit] == met[unit]:
                    while knot[unit] < 0:
                        knot[path.pop()] = found
                    found += 1
    return knot
