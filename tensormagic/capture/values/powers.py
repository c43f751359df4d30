"""Exponents whose value decides the dtype of a power: NumPy's numbers, before NumPy 2.3."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from tensormagic.capture.errors.refusal import needs_value
from tensormagic.capture.numbers.known_values import static_value
from tensormagic.capture.values.value import Tensor

_SHORT = {-1, 0, 0.5, 1, 2}  # exponents with operations of their own, in the dtype of the base


def exponent_of(base: Tensor, exponent: Any) -> Any:
    """Return the exponent of ``base ** exponent``; a NumPy number that leaves the dtype alone by its value becomes Python's."""
    numpys = isinstance(exponent, np.generic | np.ndarray | Tensor) and not exponent.shape
    if base.type.form != "array" or not numpys or not _decides():
        return exponent
    if isinstance(exponent, Tensor) and exponent.type.form == "python":
        return exponent
    kinds = "iuf" if base.type.inexact else "iu"
    if exponent.dtype.kind not in kinds or np.result_type(base.dtype, exponent.dtype) == base.dtype:
        return exponent
    value = exponent
    if isinstance(exponent, Tensor):
        value = static_value(exponent.node)
        if value is None:
            what = "a power whose dtype depends on the value of the exponent in NumPy before 2.3"
            needs_value(what, "Make the exponent a Python number: x ** int(n), or x ** float(n).", exponent.node)
            value = exponent.numpy()
    number = np.asarray(value).item()
    return number if number in (_SHORT if base.type.inexact else {2}) else exponent


@cache
def _decides() -> bool:
    """Return whether in this NumPy the value of an exponent that is a NumPy number decides the dtype."""
    return (np.ones(1, np.float32) ** np.float64(2)).dtype == np.float32
