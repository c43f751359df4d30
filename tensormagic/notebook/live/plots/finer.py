"""A sweep over two numbers at more points than it has been computed at: cubic between its points where the slopes are known."""

from __future__ import annotations

import numpy as np

from tensormagic.notebook.live.sweep import Sweep


def finer(sweep: Sweep, least: int) -> Sweep:
    """Return the sweep at ``least`` points or more along both axes; its own points keep their values.

    Along each axis it is Hermite's cubic, with the slopes across that axis taken between as lines; without slopes it is linear.
    Where a corner of a square is nan, so is the square.
    """
    if min(map(len, sweep.axes)) < 2:
        return sweep
    values, axes = sweep.values, list(sweep.axes)
    slopes: list[np.ndarray | None] = [None, None] if sweep.slopes is None else [np.asarray(s) for s in sweep.slopes]
    for axis in (0, 1):
        values = values.swapaxes(0, axis)
        own, other = (None if s is None else s.swapaxes(0, axis) for s in (slopes[axis], slopes[1 - axis]))
        at, index, share = _places(axes[axis], least)
        values = _between(values, own, np.diff(axes[axis])[index], index, share).swapaxes(0, axis)
        slopes[1 - axis] = None if other is None else _mixed(other, index, share).swapaxes(0, axis)
        axes[axis] = at
    return Sweep((axes[0], axes[1]), values, None)


def _places(axis: np.ndarray, least: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return points along an axis, the same number in each of its pieces: their positions, their pieces, and the fraction within these."""
    count = len(axis) - 1
    each = max(-(-(least - 1) // count), 1)
    index = np.append(np.repeat(np.arange(count), each), count - 1)
    share = np.append(np.tile(np.arange(each) / each, count), 1.0)
    return axis[index] + share * np.diff(axis)[index], index, share


def _mixed(table: np.ndarray, index: np.ndarray, share: np.ndarray) -> np.ndarray:
    t = share[:, None]
    with np.errstate(all="ignore"):
        found = table[index] * (1 - t) + table[index + 1] * t
    return np.where(t == 0, table[index], np.where(t == 1, table[index + 1], found))


def _between(
    table: np.ndarray, slopes: np.ndarray | None, wide: np.ndarray, index: np.ndarray, share: np.ndarray
) -> np.ndarray:
    if slopes is None:
        return _mixed(table, index, share)
    t, h = share[:, None], wide[:, None]
    a, b, s, e = table[index], table[index + 1], h * slopes[index], h * slopes[index + 1]
    with np.errstate(all="ignore"):
        found = a + t * (s + t * (3 * (b - a) - 2 * s - e + t * (2 * (a - b) + s + e)))
    return np.where(t == 0, a, np.where(t == 1, b, found))
