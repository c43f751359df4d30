"""Layered drawing of a directed acyclic graph: rows, order within rows, x coordinates, and bends of long links.

It knows boxes of a width and links between them, nothing of vertices, text or SVG. Equal input gives equal output, and
no step recurses, so a chain of any length is laid out.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections import defaultdict, deque
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

GAP = 18.0  # between two boxes of one row
BUS_PULL = 0.25  # of a bend on a box, where that of another box is 1: a value used everywhere bends no chain
BEND_GAP = 10.0  # between a passing link and its neighbour
MOST_BENDS = 20_000  # above this the longest links are drawn without bends, so that time stays linear
STILL = 0.01  # pixels: sweeps that move nothing further are enough
SMALL = 4_000  # up to so many segments crossings are counted and the best order is kept


@dataclass(frozen=True)
class Link:
    """One link of the drawing.

    Parameters
    ----------
    source, target : int
        Indices of boxes.
    leaves, enters : float
        Where the link touches, as an offset in pixels from the centre of the source and of the target.
    port : int
        Links of one source and port share their way down, like a bus.
    """

    source: int
    target: int
    leaves: float = 0.0
    enters: float = 0.0
    port: int = 0


@dataclass(frozen=True)
class Placement:
    """Where everything went: the row and centre of each box, and for each link the x of its bends, row by row."""

    rows: tuple[int, ...]
    x: tuple[float, ...]
    bends: tuple[tuple[float, ...], ...]


@dataclass
class _Net:
    """Boxes and bends as one list of items, with their neighbours above and below."""

    widths: list[float]
    rank: list[int]
    real: int
    above: list[list[tuple[int, float, float]]]  # (item, its offset, my offset)
    below: list[list[tuple[int, float, float]]]

    def add_bend(self, rank: int) -> int:
        self.widths.append(0.0)
        self.rank.append(rank)
        self.above.append([])
        self.below.append([])
        return len(self.widths) - 1

    def join(self, upper: int, lower: int, leaves: float, enters: float) -> None:
        if (lower, enters, leaves) not in self.below[upper][-8:]:  # the links of two closed groups count once
            self.below[upper].append((lower, enters, leaves))
            self.above[lower].append((upper, leaves, enters))


def topological_order(count: int, pairs: list[tuple[int, int]]) -> list[int]:
    """Return the indices below `count` so that sources come before targets; a cycle is cut at its lowest index."""
    waiting = [0] * count
    after: list[list[int]] = [[] for _ in range(count)]
    for source, target in pairs:
        if source != target:
            after[source].append(target)
            waiting[target] += 1
    ready = deque(index for index in range(count) if not waiting[index])
    done = [False] * count
    order: list[int] = []
    lowest = 0
    while len(order) < count:
        if not ready:
            while done[lowest]:
                lowest += 1
            ready.append(lowest)
        index = ready.popleft()
        if done[index]:
            continue
        done[index] = True
        order.append(index)
        for target in after[index]:
            waiting[target] -= 1
            if not waiting[target]:
                ready.append(target)
    return order


def layered(
    widths: list[float], links: list[Link], top: frozenset[int] = frozenset(), bottom: frozenset[int] = frozenset()
) -> Placement:
    """Lay out boxes in rows from top to bottom.

    Parameters
    ----------
    widths : list of float
        The width of each box in pixels.
    links : list of Link
        Who feeds whom. A link that closes a cycle is drawn upwards.
    top, bottom : frozenset of int
        Boxes that stand in the first and in the last row.

    Returns
    -------
    Placement
        Rows, centres and bends; the leftmost edge stands at 0.
    """
    count = len(widths)
    if not count:
        return Placement((), (), ())
    rank = _ranks(count, links, top, bottom)
    net = _Net(list(widths), rank, count, [[] for _ in widths], [[] for _ in widths])
    chains = _bend(net, links)
    rows = _ordered(net, links)
    x = _coordinates(net, rows)
    left = min(x[item] - net.widths[item] / 2 for row in rows for item in row)
    return Placement(
        tuple(net.rank[:count]),
        tuple(round(x[item] - left, 1) for item in range(count)),
        tuple(tuple(round(x[item] - left, 1) for item in chain) for chain in chains),
    )


def _ranks(count: int, links: list[Link], top: frozenset[int], bottom: frozenset[int]) -> list[int]:
    order = topological_order(count, [(link.source, link.target) for link in links])
    place = [0] * count
    for position, index in enumerate(order):
        place[index] = position
    after: list[list[int]] = [[] for _ in range(count)]
    fed = [False] * count
    for link in links:
        if place[link.source] < place[link.target]:
            after[link.source].append(link.target)
            fed[link.target] = True
    floor = 1 if top else 0  # what is pinned to the top has the first row for itself
    rank = [0 if index in top else floor for index in range(count)]
    for index in order:
        for target in after[index]:
            rank[target] = max(rank[target], rank[index] + 1)
    # what nobody feeds and nothing pins moves down to its user, which shortens its links
    for index in reversed(order):
        if not fed[index] and index not in top and after[index]:
            rank[index] = max(floor, min(rank[target] for target in after[index]) - 1)
    inner = max((rank[index] for index in range(count) if index not in bottom), default=-1)
    last = max([inner + 1, *(rank[index] for index in bottom)]) if bottom else inner
    for index in bottom:
        rank[index] = last
    used = sorted(set(rank))
    dense = {value: position for position, value in enumerate(used)}
    return [dense[value] for value in rank]


def _bend(net: _Net, links: list[Link]) -> list[list[int]]:
    """Add the bends of long links, shared by the links of one source and port; return each link's bends."""
    buses: dict[tuple[int, int], list[int]] = defaultdict(list)
    for number, link in enumerate(links):
        buses[link.source, link.port].append(number)
    lengths = {
        key: max(net.rank[links[number].target] for number in bus) - net.rank[key[0]] - 1 for key, bus in buses.items()
    }
    budget = MOST_BENDS
    routed: set[tuple[int, int]] = set()
    for key in sorted(buses, key=lambda key: (lengths[key], key)):
        budget -= max(0, lengths[key])
        if budget >= 0:
            routed.add(key)
    chains: list[list[int]] = [[] for _ in links]
    ways = MOST_BENDS  # each link of a bus is drawn with all its bends
    for key, bus in buses.items():
        trunk: list[int] = []
        for number in sorted(bus, key=lambda number: net.rank[links[number].target]):
            link = links[number]
            span = net.rank[link.target] - net.rank[link.source]
            if span < 1 or (span > 1 and (key not in routed or ways < span)):
                continue
            ways -= span - 1
            while len(trunk) < span - 1:
                bend = net.add_bend(net.rank[link.source] + len(trunk) + 1)
                net.join(trunk[-1] if trunk else link.source, bend, 0.0 if trunk else link.leaves, 0.0)
                trunk.append(bend)
            above = trunk[span - 2] if span > 1 else link.source
            net.join(above, link.target, 0.0 if span > 1 else link.leaves, link.enters)
            chains[number] = trunk[: span - 1]
    return chains


def _first_order(net: _Net, links: list[Link]) -> list[int]:
    """Number the boxes in depth-first postorder from the last ones, operands left to right."""
    operands: list[list[tuple[float, int]]] = [[] for _ in range(net.real)]
    used = [False] * net.real
    for link in links:
        operands[link.target].append((link.enters, link.source))
        used[link.source] = True
    number = [-1] * net.real
    entered = [False] * net.real
    count = 0
    for start in [*(i for i in range(net.real) if not used[i]), *range(net.real)]:
        stack = [start]
        while stack:
            item = stack[-1]
            if not entered[item]:
                entered[item] = True
                stack.extend(source for _, source in sorted(operands[item], reverse=True) if not entered[source])
                continue
            stack.pop()
            if number[item] < 0:
                number[item] = count
                count += 1
    return number


def _ordered(net: _Net, links: list[Link]) -> list[list[int]]:
    """Order each row by barycentre sweeps, keeping the order with the fewest crossings on small graphs."""
    first: list[float] = [float(value) for value in _first_order(net, links)]
    for item in range(net.real, len(net.widths)):  # a bend starts where the link came from
        first.append(first[net.above[item][0][0]])
    rows: list[list[int]] = [[] for _ in range(max(net.rank) + 1)]
    for item in sorted(range(len(net.widths)), key=lambda item: (first[item], item)):
        rows[net.rank[item]].append(item)
    segments = sum(len(near) for near in net.above)
    small = segments <= SMALL
    best, fewest = [list(row) for row in rows], _crossings(net, rows) if small else 0
    before: list[list[list[int]]] = []
    for sweep in range(12 if segments <= SMALL // 8 else 6 if small else 4):
        if small and not fewest:
            break
        _sweep(net, rows, downwards=sweep % 2 == 1)
        if rows in before[-2:-1]:  # the same as two sweeps ago: from here on they repeat themselves
            break
        before.append([list(row) for row in rows])
        if small:
            crossings = _crossings(net, rows)
            if crossings < fewest:
                best, fewest = [list(row) for row in rows], crossings
    return best if small else rows


def _sweep(net: _Net, rows: list[list[int]], *, downwards: bool) -> None:
    position = [0.0] * len(net.widths)
    near = net.above if downwards else net.below
    for row in rows if downwards else reversed(rows):
        for place, item in enumerate(row):
            position[item] = place
        key: dict[int, float] = {}
        for item in row:
            around = near[item]
            if around:  # the offset counts for less than one place, so that operands keep their order
                key[item] = sum(position[n] + o / (net.widths[n] + 1.0) for n, o, _ in around) / len(around)
        _sort_known(row, key)
        for place, item in enumerate(row):
            position[item] = place


def _sort_known(row: list[int], key: dict[int, float]) -> None:
    """Sort the items of a row that have a key, leaving the others in place."""
    known = iter(sorted((item for item in row if item in key), key=key.__getitem__))
    row[:] = [next(known) if item in key else item for item in row]


def _crossings(net: _Net, rows: list[list[int]]) -> int:
    position = [0.0] * len(net.widths)
    for row in rows:
        for place, item in enumerate(row):
            position[item] = place
    total = 0
    for row in rows:
        ends: list[float] = []
        for item in row:
            width = net.widths[item] + 1.0
            starts = sorted((mine / width, position[n] + o / (net.widths[n] + 1.0)) for n, o, mine in net.below[item])
            for _, end in starts:
                total += len(ends) - bisect_right(ends, end)
                insort(ends, end)
    return total


def _coordinates(net: _Net, rows: list[list[int]]) -> list[float]:
    """Give each item the mean x of its neighbours as far as the order and the gaps allow, by a few sweeps."""
    x = [0.0] * len(net.widths)
    for row in rows:
        edge = 0.0
        for item in row:
            x[item] = edge + net.widths[item] / 2
            edge += net.widths[item] + GAP
        for item in row:
            x[item] -= edge / 2
    _settle(net, [(row, _offsets(net, row)) for row in rows], x)
    strands = _strands(net)
    for _ in range(3):
        _straighten(net, rows, x, strands)
    return x


def _settle(net: _Net, rows: list[tuple[list[int], list[float]]], x: list[float]) -> None:
    """Shift the items of rows, each with its offset, towards their neighbours: first in the row above or below, then in both."""
    for _ in range(8 if len(net.widths) <= SMALL else 2):
        before = list(x)
        for row, offsets in rows:
            _place(net, row, offsets, x, use_above=True, use_below=False)
        for row, offsets in reversed(rows):
            _place(net, row, offsets, x, use_above=False, use_below=True)
        if all(abs(now - then) < STILL for now, then in zip(x, before, strict=True)):
            break
    for _ in range(2):
        for row, offsets in (*rows, *reversed(rows)):
            _place(net, row, offsets, x, use_above=True, use_below=True)
    for row, offsets in rows:
        _place(net, row, offsets, x, use_above=True, use_below=True)


def _place(
    net: _Net, row: list[int], offsets: list[float], x: list[float], *, use_above: bool, use_below: bool
) -> None:
    wanted: list[float] = []
    weights: list[float] = []
    for item in row:
        total = weight = 0.0
        bend = item >= net.real
        for use, near in ((use_above, net.above[item]), (use_below, net.below[item])):
            if use:
                for other, theirs, mine in near:
                    pull = (8.0 if other >= net.real else 2.0) if bend else 1.0 if other < net.real else BUS_PULL
                    total += pull * (x[other] + theirs - mine)
                    weight += pull
        wanted.append(total / weight if weight else x[item])
        weights.append(weight or 0.05)
    for item, value in zip(row, _spread(offsets, wanted, weights), strict=True):
        x[item] = value


def _straighten(net: _Net, rows: list[list[int]], x: list[float], strands: list[list[int]]) -> None:
    """Move each strand (the bends of a link, a chain of boxes) onto one vertical as far as neighbours leave room."""
    left: dict[int, int] = {}
    right: dict[int, int] = {}
    for row in rows:
        left.update((item, other) for other, item in pairwise(row))
        right.update(pairwise(row))

    def room(item: int) -> tuple[float, float]:
        low, high = -1e9, 1e9
        if item in left:
            low = x[left[item]] + _apart(net, left[item], item)
        if item in right:
            high = x[right[item]] - _apart(net, item, right[item])
        return low, high

    for strand in strands:
        start = 0
        while start < len(strand):
            low, high = room(strand[start])
            stop = start + 1
            while stop < len(strand):
                more_low, more_high = room(strand[stop])
                if max(low, more_low) > min(high, more_high):
                    break
                low, high = max(low, more_low), min(high, more_high)
                stop += 1
            piece = strand[start:stop]
            ends = [x[other] + theirs - mine for item in piece for other, theirs, mine in _fastened(net, item)]
            mean = median(ends) if ends else sum(x[item] for item in piece) / len(piece)
            for item in piece:
                x[item] = min(max(mean, low), high)
            start = stop


def _fastened(net: _Net, item: int) -> list[tuple[int, float, float]]:
    """Return the boxes that a bend is linked to; a chain of bends follows most of these."""
    if item < net.real:
        return []
    return [near for near in (*net.above[item], *net.below[item]) if near[0] < net.real]


def _strands(net: _Net) -> list[list[int]]:
    """Return the runs of items that should stand one below the other."""
    following: dict[int, int] = {}
    boxes_above = [sum(near[0] < net.real for near in nears) for nears in net.above]
    for item in range(len(net.widths)):
        boxes = [near for near in net.below[item] if near[0] < net.real]
        for other, enters, leaves in net.below[item] if item >= net.real else boxes:
            bends = item >= net.real and other >= net.real
            chained = len(boxes) == boxes_above[other] == 1 and not enters and not leaves and item < net.real
            if bends or chained:
                following[item] = other
    inner = set(following.values())
    strands: list[list[int]] = []
    for first in following.keys() - inner:
        strand = [first]
        while strand[-1] in following:
            strand.append(following[strand[-1]])
        strands.append(strand)
    return sorted(strands, key=lambda strand: (-len(strand), strand))


def _apart(net: _Net, one: int, other: int) -> float:
    gap = GAP if one < net.real and other < net.real else BEND_GAP
    return (net.widths[one] + net.widths[other]) / 2 + gap


def _offsets(net: _Net, row: list[int]) -> list[float]:
    """Return the minimal distance of each item of a row from the first."""
    offsets = [0.0]
    for left, right in pairwise(row):
        offsets.append(offsets[-1] + _apart(net, left, right))
    return offsets


def _spread(offsets: list[float], wanted: list[float], weights: list[float]) -> list[float]:
    """Return the positions closest to the wanted ones (least squares) with the gaps of the row, by pooling adjacent violators."""
    means: list[float] = []
    masses: list[float] = []
    sizes: list[int] = []
    for want, weight, offset in zip(wanted, weights, offsets, strict=True):
        mean, mass, size = want - offset, weight, 1
        while means and means[-1] > mean:
            mean = (means[-1] * masses[-1] + mean * mass) / (masses[-1] + mass)
            mass += masses.pop()
            size += sizes.pop()
            means.pop()
        means.append(mean)
        masses.append(mass)
        sizes.append(size)
    flat = [mean for mean, size in zip(means, sizes, strict=True) for _ in range(size)]
    return [value + offset for value, offset in zip(flat, offsets, strict=True)]
