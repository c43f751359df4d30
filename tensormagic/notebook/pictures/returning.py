"""Draw paths back: from a result of an iteration, around all boxes, up to the input that it becomes in the next. Places only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

BESIDE = 10.0  # from the boxes to the first lane
LANE = 7.0  # from lane to lane
BELOW = 6.0  # from the row that a way leaves
ABOVE = 11.0  # to the row that it enters
CORNER = 5.0


def ways_back(returns: Sequence[tuple[str, str]], place: Mapping[str, int]) -> tuple[tuple[int, int], ...]:
    """Return the back edges between boxes, by their indices in a list; edges inside closed groups are left out."""
    pairs = [(place[end], place[begin]) for end, begin in returns if end in place and begin in place]
    return tuple(dict.fromkeys(pairs))


def lanes_width(count: int) -> float:
    """Return the width of so many lanes beside a picture."""
    return BESIDE + LANE * (count - 1) + 1 if count else 0.0


def lane(edge: float, number: int) -> float:
    """Return where a lane is, of a picture whose boxes end at ``edge``."""
    return edge + BESIDE + LANE * number


def way(start: tuple[float, float], below: float, x: float, above: float, end: tuple[float, float]) -> str:
    """Return the path from ``start`` down below its row, along the lane at ``x`` to above the row of ``end``, and down to ``end``."""
    (left, top), (right, bottom) = start, end
    low, high, c = below + BELOW, above - ABOVE, CORNER
    points = [
        f"M{_n(left)} {_n(top)}V{_n(low - c)}Q{_n(left)} {_n(low)} {_n(left + c)} {_n(low)}",
        f"H{_n(x - c)}Q{_n(x)} {_n(low)} {_n(x)} {_n(low - c)}",
        f"V{_n(high + c)}Q{_n(x)} {_n(high)} {_n(x - c)} {_n(high)}",
        f"H{_n(right + c)}Q{_n(right)} {_n(high)} {_n(right)} {_n(high + c)}V{_n(bottom)}m-3.5 -5.5l3.5 5.5l3.5 -5.5",
    ]
    return "".join(points)


def _n(value: float) -> str:
    return f"{value:.1f}".rstrip("0").rstrip(".")
