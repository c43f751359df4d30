"""Functions of the standard that search, sort and make sets."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tensormagic.capture.values.value import Tensor
from tensormagic.numpy.calling import call


class UniqueAll(NamedTuple):
    """The different values, where each is first, which of them each element is, and how often each is there."""

    values: Tensor
    indices: Tensor
    inverse_indices: Tensor
    counts: Tensor


class UniqueCounts(NamedTuple):
    """The different values, and how often each is there."""

    values: Tensor
    counts: Tensor


class UniqueInverse(NamedTuple):
    """The different values, and which of them each element is."""

    values: Tensor
    inverse_indices: Tensor


def argmax(x: Any, /, *, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """Return where the first maximum is."""
    return call(np.argmax, x, axis, keepdims=keepdims)


def argmin(x: Any, /, *, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """Return where the first minimum is."""
    return call(np.argmin, x, axis, keepdims=keepdims)


def count_nonzero(x: Any, /, *, axis: Any = None, keepdims: bool = False) -> Tensor:
    """Return how many elements are not zero."""
    return call(np.count_nonzero, x, axis, keepdims=keepdims)


def nonzero(x: Any, /) -> tuple[Tensor, ...]:
    """Return the indices of the elements that are not zero, an array for each axis."""
    return tuple(call(np.nonzero, x))


def searchsorted(x1: Any, x2: Any, /, *, side: str = "left", sorter: Any = None) -> Tensor:
    """Return where elements would go into a sorted array."""
    return call(np.searchsorted, x1, x2, side, sorter)


def where(condition: Any, x1: Any, x2: Any, /) -> Tensor:
    """Return ``x1`` where the condition holds, ``x2`` elsewhere."""
    return call(np.where, condition, x1, x2)


def unique_all(x: Any, /) -> UniqueAll:
    """Return the different values, with their first indices, the inverse and the counts."""
    values, indices, inverse, counts = call(
        np.unique, x, return_index=True, return_inverse=True, return_counts=True, equal_nan=False
    )
    return UniqueAll(values, indices, _as(x, inverse), counts)


def unique_counts(x: Any, /) -> UniqueCounts:
    """Return the different values, and how often each is there."""
    return UniqueCounts(*call(np.unique, x, return_counts=True, equal_nan=False))


def unique_inverse(x: Any, /) -> UniqueInverse:
    """Return the different values, and which of them each element is."""
    values, inverse = call(np.unique, x, return_inverse=True, equal_nan=False)
    return UniqueInverse(values, _as(x, inverse))


def unique_values(x: Any, /) -> Tensor:
    """Return the different values, in order."""
    return call(np.unique, x, equal_nan=False)


def _as(x: Any, inverse: Tensor) -> Tensor:
    """Return the inverse in the shape of ``x``, also if ``x`` has no axes."""
    return inverse if np.ndim(x) else inverse.reshape(())


def argsort(x: Any, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Tensor:
    """Return the indices that sort an array."""
    if not descending:
        return call(np.argsort, x, axis, stable=stable)
    # Equal elements keep their order: the reversed array is sorted, and its indices are counted from the other end.
    backwards = call(np.flip, call(np.argsort, call(np.flip, x, axis), axis, stable=True), axis)
    return x.shape[axis] - 1 - backwards


def sort(x: Any, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Tensor:
    """Return a sorted copy."""
    found = call(np.sort, x, axis, stable=stable)
    return call(np.flip, found, axis) if descending else found
