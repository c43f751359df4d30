"""Arrays as sets, on lazy arrays: union, intersection and differences; the number of elements is a size of the graph."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensormagic.capture.library.choosing import isin
from tensormagic.capture.library.ordering import sort
from tensormagic.capture.library.selection import unique
from tensormagic.capture.names import implements
from tensormagic.capture.values.arguments import tensor
from tensormagic.capture.values.value import Tensor


@implements(np.union1d)
def union1d(ar1: Any, ar2: Any) -> Tensor:
    """Implement ``np.union1d``: the elements of either array."""
    return unique(np.concatenate([ar1, ar2], axis=None))


@implements(np.intersect1d)
def intersect1d(ar1: Any, ar2: Any, assume_unique: bool = False, return_indices: bool = False) -> Any:
    """Implement ``np.intersect1d``: the elements of both arrays, and their first place in each."""
    first, second = _alike(ar1, ar2)
    if not return_indices:
        if not assume_unique:
            first, second = unique(first), unique(second)
        joined = sort(np.concatenate([first, second]))
        return joined[:-1][joined[1:] == joined[:-1]]
    (left, at_left), (right, at_right) = unique(first, return_index=True), unique(second, return_index=True)
    common = isin(left, right)
    return left[common], at_left[common], at_right[isin(right, left)]


@implements(np.setdiff1d)
def setdiff1d(ar1: Any, ar2: Any, assume_unique: bool = False) -> Tensor:
    """Implement ``np.setdiff1d``: the elements of the first array that are not in the second."""
    first = tensor(ar1).ravel() if assume_unique else unique(ar1)
    return first[isin(first, ar2, invert=True)]


@implements(np.setxor1d)
def setxor1d(ar1: Any, ar2: Any, assume_unique: bool = False) -> Tensor:
    """Implement ``np.setxor1d``: the elements of exactly one of the two arrays."""
    first, second = _alike(ar1, ar2)
    if not assume_unique:
        first, second = unique(first), unique(second)
    joined = sort(np.concatenate([first, second]))
    differs = np.concatenate([[True], joined[1:] != joined[:-1], [True]])
    return joined[differs[1:] & differs[:-1]]


def _alike(*arrays: Any) -> list[Tensor]:
    """Return arrays with one axis, and of one dtype."""
    flat = [tensor(a).ravel() for a in arrays]
    dtype = np.result_type(*(a.dtype for a in flat))
    return [a.astype(dtype) for a in flat]
