"""Functions of the standard that reduce: sums, extremes, moments, and truth; and those that run along an axis."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensormagic.capture.values.value import Tensor
from tensormagic.numpy.calling import call


def sum(x: Any, /, *, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Tensor:
    """Return the sum; small integers are added as the default integer."""
    return call(np.sum, x, axis, dtype, keepdims=keepdims)


def prod(x: Any, /, *, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Tensor:
    """Return the product; small integers are multiplied as the default integer."""
    return call(np.prod, x, axis, dtype, keepdims=keepdims)


def max(x: Any, /, *, axis: Any = None, keepdims: bool = False) -> Tensor:
    """Return the maximum."""
    return call(np.max, x, axis, keepdims=keepdims)


def min(x: Any, /, *, axis: Any = None, keepdims: bool = False) -> Tensor:
    """Return the minimum."""
    return call(np.min, x, axis, keepdims=keepdims)


def mean(x: Any, /, *, axis: Any = None, keepdims: bool = False) -> Tensor:
    """Return the mean."""
    return call(np.mean, x, axis, keepdims=keepdims)


def std(x: Any, /, *, axis: Any = None, correction: float = 0.0, keepdims: bool = False) -> Tensor:
    """Return the standard deviation."""
    return call(np.std, x, axis, correction=correction, keepdims=keepdims)


def var(x: Any, /, *, axis: Any = None, correction: float = 0.0, keepdims: bool = False) -> Tensor:
    """Return the variance."""
    return call(np.var, x, axis, correction=correction, keepdims=keepdims)


def all(x: Any, /, *, axis: Any = None, keepdims: bool = False) -> Tensor:
    """Return whether every element is true."""
    return call(np.all, x, axis, keepdims=keepdims)


def any(x: Any, /, *, axis: Any = None, keepdims: bool = False) -> Tensor:
    """Return whether some element is true."""
    return call(np.any, x, axis, keepdims=keepdims)


def cumulative_sum(x: Any, /, *, axis: int | None = None, dtype: Any = None, include_initial: bool = False) -> Tensor:
    """Return sums of all elements up to each; before them zero, where that is asked for."""
    return call(np.cumulative_sum, x, axis=axis, dtype=dtype, include_initial=include_initial)


def cumulative_prod(x: Any, /, *, axis: int | None = None, dtype: Any = None, include_initial: bool = False) -> Tensor:
    """Return products of all elements up to each; before them one, where that is asked for."""
    return call(np.cumulative_prod, x, axis=axis, dtype=dtype, include_initial=include_initial)


def diff(x: Any, /, *, axis: int = -1, n: int = 1, prepend: Any = None, append: Any = None) -> Tensor:
    """Return differences of neighbours, ``n`` times."""
    ends = {name: v for name, v in (("prepend", prepend), ("append", append)) if v is not None}
    return call(np.diff, x, n, axis, **ends)
