"""What Python's numbers, and lists of them, become in an array: integers that do not fit its dtype are NumPy's errors."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensormagic.capture.elements import stacked
from tensormagic.capture.value import Tensor, has_lazy, node_of, wrap
from tensormagic.ir.node import Node
from tensormagic.ops.effects.checks import fits
from tensormagic.ops.leaf import constant


def value_of(value: Any, dtype: np.dtype[Any]) -> Node:
    """A value that goes into an array of ``dtype``; Python numbers have to fit it."""
    if isinstance(value, list | tuple | int | float | complex | str) and not has_lazy(value) and np.ndim(value) <= 32:
        found = np.asarray(value, dtype)
        return constant(found) if _has_text(value) else node_of(value)
    return node_of(_fitting(value, dtype) if dtype.kind in "iu" else value)


def _has_text(value: Any) -> bool:
    """Whether there is a text among the values, which NumPy reads as a number."""
    return any(map(_has_text, value)) if isinstance(value, list | tuple) else isinstance(value, str)


def _fitting(value: Any, dtype: np.dtype[Any]) -> Any:
    """``value``, whose Python numbers raise where integers of ``dtype`` do not hold them."""
    if isinstance(value, Tensor):
        return wrap(fits(value.node, dtype)) if value.type.form == "python" else value
    if not has_lazy(value):
        return value
    rows = stacked(value)
    if rows is None:
        return [_fitting(v, dtype) for v in value]
    types = value.types if hasattr(value, "types") else [v.type for v in value[:1]]
    return wrap(fits(rows, dtype) if {t.form for t in types} == {"python"} else rows)
