"""Which boxes of a picture stand together: by kernel, or by source line where a graph is large.

Groups never feed each other in a circle, so a picture of groups is drawn from top to bottom like one of vertices.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tensormagic.notebook.layout import topological_order

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

__all__ = ["CHUNK", "Group", "groups"]

CHUNK = 100  # a group of more members is cut, so that opening one stays readable
_MOST_PIECES = 40  # lines that feed each other in a circle this often are one group


@dataclass(frozen=True)
class Group:
    """Members by index, the keys they came with, and which part of a cut group it is (0 of 1 where it was not cut)."""

    members: tuple[int, ...]
    keys: tuple[Hashable, ...]
    part: int
    parts: int


def groups(keys: Sequence[Hashable | None], pairs: list[tuple[int, int]], chunk: int = CHUNK) -> list[Group]:
    """Group what has equal keys, cutting groups where they would feed each other in a circle.

    Parameters
    ----------
    keys : sequence
        One key for each index; None stands alone.
    pairs : list of (int, int)
        Who feeds whom.
    chunk : int
        The largest group.

    Returns
    -------
    list of Group
        In the order of their first members. What stands alone is in none.
    """
    order = topological_order(len(keys), pairs)
    place = {index: position for position, index in enumerate(order)}
    units: dict[Hashable, int] = {}
    unit = [units.setdefault(("key", key) if key is not None else ("alone", i), len(units)) for i, key in enumerate(keys)]
    knots = _knots(len(units), [(unit[s], unit[t]) for s, t in pairs])
    sizes: dict[int, set[int]] = {}
    for number, knot in enumerate(knots):
        sizes.setdefault(knot, set()).add(number)
    rank = _ranks(order, pairs, unit, knots)
    pieces: dict[Hashable, list[int]] = {}
    for index in order:
        pieces.setdefault((knots[unit[index]], unit[index], rank[index]), []).append(index)
    tangled = {knot for knot, inside in sizes.items() if len(inside) > 1}
    count = {knot: sum(1 for piece in pieces if piece[0] == knot) for knot in tangled}  # type: ignore[index]
    lumps = {knot for knot in tangled if count[knot] > _MOST_PIECES}
    merged: dict[Hashable, list[int]] = {}
    for (knot, number, height), members in pieces.items():  # type: ignore[misc]
        merged.setdefault(("lump", knot) if knot in lumps else (number, height), []).extend(members)
    found: list[Group] = []
    for members in merged.values():
        if keys[members[0]] is None and len(members) == 1:
            continue
        members.sort(key=place.__getitem__)
        seen = tuple(sorted({keys[index] for index in members if keys[index] is not None}, key=repr))
        parts = -(-len(members) // chunk)
        step = -(-len(members) // parts)
        found += [Group(tuple(members[k * step : (k + 1) * step]), seen, k, parts) for k in range(parts)]
    return sorted(found, key=lambda group: min(group.members))


def _ranks(order: list[int], pairs: list[tuple[int, int]], unit: list[int], knots: list[int]) -> list[int]:
    """Count, within each knot, how often the longest way to an index changed its unit: pieces of equal rank cannot circle."""
    after: dict[int, list[int]] = {}
    for source, target in pairs:
        after.setdefault(source, []).append(target)
    rank = [0] * len(order)
    for index in order:
        for target in after.get(index, ()):
            if knots[unit[index]] == knots[unit[target]]:
                rank[target] = max(rank[target], rank[index] + (unit[index] != unit[target]))
    return rank


def _knots(count: int, pairs: list[tuple[int, int]]) -> list[int]:
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
