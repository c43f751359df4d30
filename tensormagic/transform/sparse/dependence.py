"""Sets of columns as integer codes: which entries of an input each element of an array depends on.

The code 0 stands for nothing, 1 for everything, and others for a set that is stored once for all elements that share
it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

Codes = np.ndarray[Any, np.dtype[np.int64]]
NOTHING, EVERYTHING = 0, 1
_LARGEST = 30_000_000  # entries of the sets made in one step; larger sets become EVERYTHING


class Sets:
    """The sets of columns seen so far.

    Parameters
    ----------
    columns
        The number of columns.
    """

    def __init__(self, columns: int) -> None:
        self.columns = columns
        self._starts: Codes = np.zeros(2, np.int64)
        self._lengths: Codes = np.array([0, columns], np.int64)
        self._members: Codes = np.zeros(1024, np.int64)
        self._used = 0

    def single(self, first: int, count: int) -> Codes:
        """Return codes for ``count`` sets of one column each, from ``first`` onwards."""
        if self.columns == 1:
            return np.full(count, EVERYTHING, np.int64)
        return self._added(np.ones(count, np.int64), np.arange(first, first + count))

    def lengths(self, codes: Codes) -> Codes:
        """Return the number of columns in each set."""
        return self._lengths[codes]

    def members(self, codes: Codes) -> tuple[Codes, Codes]:
        """Return pairs of a position in ``codes`` and a column in the set there."""
        lengths = self._lengths[codes]
        owners = np.repeat(np.arange(codes.size), lengths)
        offsets = np.arange(owners.size) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        whole = codes[owners] == EVERYTHING
        places = np.where(whole, 0, self._starts[codes][owners] + offsets)
        return owners, np.where(whole, offsets, self._members[places])

    def union(self, a: Codes, b: Codes) -> Codes:
        """Return the union of two sets, element by element."""
        if a is b:
            return a
        found = np.where((a == b) | (b == NOTHING), a, np.where(a == NOTHING, b, -1))
        found[(a == EVERYTHING) | (b == EVERYTHING)] = EVERYTHING
        rest = found < 0
        if not rest.any():
            return found
        pairs, which = np.unique(a[rest] * len(self._lengths) + b[rest], return_inverse=True)
        both = np.stack([pairs // len(self._lengths), pairs % len(self._lengths)], axis=1)
        found[rest] = self.unions(np.repeat(np.arange(len(pairs)), 2), both.ravel(), len(pairs))[which.ravel()]
        return found

    def unions(self, groups: Codes, codes: Codes, count: int) -> Codes:
        """Return for each of ``count`` groups the union of the sets that ``groups`` assigns to it."""
        found = np.zeros(count, np.int64)
        found[groups[codes == EVERYTHING]] = EVERYTHING
        some = (codes > EVERYTHING) & (found[groups] == NOTHING)
        pairs = np.unique(groups[some] * len(self._lengths) + codes[some])
        groups, codes = pairs // len(self._lengths), pairs % len(self._lengths)
        parts = np.bincount(groups, minlength=count)
        alone = parts[groups] == 1
        found[groups[alone]] = codes[alone]
        groups, codes = groups[~alone], codes[~alone]
        if self._lengths[codes].sum() > _LARGEST:
            found[groups] = EVERYTHING
        elif groups.size:
            owners, members = self.members(codes)
            pairs = np.unique(groups[owners] * self.columns + members)
            groups, members = pairs // self.columns, pairs % self.columns
            lengths = np.bincount(groups, minlength=count)
            own = lengths > 0
            found[own] = self._added(lengths[own], members)
        return found

    def _added(self, lengths: Codes, members: Codes) -> Codes:
        """Return codes for new sets; ``members`` lists their columns, one set after the other."""
        end = self._used + members.size
        if end > self._members.size:
            self._members = np.concatenate([self._members[: self._used], np.zeros(end, np.int64)])
        self._members[self._used : end] = members
        starts = self._used + np.cumsum(lengths) - lengths
        codes = np.arange(len(self._lengths), len(self._lengths) + len(lengths))
        self._starts = np.concatenate([self._starts, starts])
        self._lengths = np.concatenate([self._lengths, lengths])
        self._used = end
        return np.where(lengths == self.columns, EVERYTHING, codes)
