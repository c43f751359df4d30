"""Colours for the columns of a sparse matrix: columns of one colour are computed in one pass, and separated afterwards.

The colouring is greedy, with the colours of a row as the bits of an integer.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

Indices = np.ndarray[Any, np.dtype[Any]]


def _lists(pattern: Any) -> list[list[int]]:
    """Return the columns of each row of a CSR matrix."""
    ends, indices = pattern.indptr.tolist(), pattern.indices.tolist()
    return [indices[a:b] for a, b in itertools.pairwise(ends)]


def column_colours(pattern: Any) -> Indices:
    """Return a colour for each column of a CSR matrix; no row has two columns of one colour."""
    rows, columns = pattern.shape
    if rows and int(np.diff(pattern.indptr).max()) == columns:
        return np.arange(columns)
    taken = [0] * rows
    colours = np.zeros(columns, np.int64)
    for column, own in enumerate(_lists(pattern.T.tocsr())):
        colours[column], bit = _lowest(own, taken)
        for row in own:
            taken[row] |= bit
    return colours


def _lowest(rows: list[int], taken: list[int]) -> tuple[int, int]:
    """Return the first colour that none of the rows uses, and its bit."""
    used = 0
    for row in rows:
        used |= taken[row]
    bit = ~used & (used + 1)
    return bit.bit_length() - 1, bit


def star_colours(pattern: Any) -> Indices:
    """Return a colour for each column of a symmetric CSR matrix, suitable for :func:`star_places`.

    Neighbours differ, and two neighbours of a column share a colour only if it is greater than the column's: so every
    path over four columns has three colours.
    """
    size = pattern.shape[0]
    neighbours = _lists(pattern)
    order = np.argsort(-np.diff(pattern.indptr), kind="stable").tolist()
    around = [0] * size  # the colours of the already coloured neighbours
    bits = [0] * size
    colours = np.zeros(size, np.int64)
    for column in order:
        used = 0
        for other in neighbours[column]:
            if other != column:
                bit = bits[other]
                used |= bit | (around[other] & (bit - 1)) if bit else around[other]
        bit = ~used & (used + 1)
        bits[column] = bit
        colours[column] = bit.bit_length() - 1
        for other in neighbours[column]:
            if other != column:
                around[other] |= bit
    return colours


def star_places(rows: Indices, columns: Indices, colours: Indices) -> tuple[Indices, Indices]:
    """Return for each entry of a symmetric matrix the pass and the row in which it is not mixed with others."""
    swapped = colours[rows] < colours[columns]
    return colours[np.where(swapped, rows, columns)], np.where(swapped, columns, rows)
