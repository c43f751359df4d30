"""``tm.to_gpu`` and ``tm.to_host``: the copies between the host and the card that somebody asks for."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensormagic import session
from tensormagic.backend.cuda.device import current
from tensormagic.backend.cuda.transfers import asked_for
from tensormagic.capture.tree import flatten
from tensormagic.capture.value import Tensor
from tensormagic.config import config
from tensormagic.functions.tensor import tensor


def to_gpu(value: Any) -> Any:
    """Have a value on the card, and stay there: it is copied once, and read from there by every run on the card.

    Parameters
    ----------
    value
        An array, a lazy array, or a container of these (a list, a tuple, a dictionary, a dataclass).

    Returns
    -------
    Tensor
        A lazy array whose value lies on the card; of a container, one like it.

    Raises
    ------
    DeviceError
        Where there is no card, with what is missing.

    Examples
    --------
    >>> X = to_gpu(np.ones((1000, 30)))  # doctest: +SKIP
    """
    current()
    leaves, build = flatten(value)
    return build(iter([_there(v) for v in leaves]))


def _there(value: Any) -> Any:
    if not isinstance(value, Tensor | np.ndarray) or not np.ndim(value):
        return value
    with config.using(device="gpu"), asked_for():
        made = tensor(value)
        session.place(made.node)
        return made if made.placed[0] == "gpu" else made.copy()


def to_host(value: Any) -> Any:
    """The value on the host: an array of NumPy's, or a number; of a container, one like it.

    Parameters
    ----------
    value
        A lazy array, or a container of these; what lies on the host is given back as it is.

    Examples
    --------
    >>> to_host(tensor([1.0, 2.0]) * 2)
    array([2., 4.])
    """
    leaves, build = flatten(value)
    with asked_for():
        return build(iter([v.numpy() if isinstance(v, Tensor) else v for v in leaves]))
