"""``tm.tensor`` and ``tm.evaluate``: into the graph, and out of it."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensormagic import session
from tensormagic.capture.value import Tensor, node_of, wrap
from tensormagic.functions.function import of_callable


def tensor(value: Any) -> Any:
    """Capture a function, or make data a lazy array.

    Parameters
    ----------
    value
        A function of arrays (also as a decorator), or an array, a number or nested lists of numbers.

    Returns
    -------
    Function or Tensor

    Examples
    --------
    >>> @tensor
    ... def f(x, w):
    ...     return np.log(1 + np.exp(-x @ w))
    >>> bool(f(np.zeros(3), np.ones(3)) == np.log(2))
    True
    >>> float(tensor([1.0, 2.0]).sum())
    3.0
    """
    if callable(value) and not isinstance(value, Tensor):
        return of_callable(value)
    return (
        value
        if isinstance(value, Tensor)
        else wrap(node_of(np.asarray(value) if isinstance(value, list | tuple) else value))
    )


def evaluate(*values: Any) -> Any:
    """Compute several lazy arrays in one run.

    Examples
    --------
    >>> x = tensor([1.0, 2.0])
    >>> evaluate(x.sum(), x.max())
    (np.float64(3.0), np.float64(2.0))
    """
    found = tuple(session.compute([node_of(v) for v in values]))
    return found[0] if len(found) == 1 else found
