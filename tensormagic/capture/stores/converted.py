"""Numbers, and lists of them, converted for an array: integers that do not fit its dtype raise NumPy's errors."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensormagic.capture.values.list_elements import stacked
from tensormagic.capture.values.operands import has_lazy, node_of
from tensormagic.capture.values.value import Tensor, wrap
from tensormagic.ir.node import Node
from tensormagic.ops.effects.checks import fits
from tensormagic.ops.leaf import constant


def value_of(value: Any, dtype: np.dtype[Any], *, basic: bool = False) -> Node:
    """Return a value to be stored in an array of ``dtype``; Python numbers have to fit it.

    NumPy's scalars have to fit signed integers if they are in a list, or stored by a ``basic`` index.
    """
    if basic and isinstance(value, np.generic) and dtype.kind == "i":
        np.zeros(1, dtype)[0] = value  # NumPy's own error
    own = value is None or isinstance(value, list | tuple | int | float | complex | str)
    if own and not has_lazy(value) and np.ndim(value) <= 32:  # type: ignore[arg-type]
        found = np.asarray(value, dtype)
        return constant(found) if _is_read(value) else node_of(value)
    return node_of(_fitting(value, dtype, basic) if dtype.kind in "iu" else value)


def _is_read(value: Any) -> bool:
    """Return whether there is a text or None among the values, which NumPy reads as a number or as nan."""
    return any(map(_is_read, value)) if isinstance(value, list | tuple) else isinstance(value, str | None)


def _fitting(value: Any, dtype: np.dtype[Any], scalars: bool) -> Any:
    """Return ``value``, with a check that its numbers fit integers of ``dtype``."""
    if isinstance(value, Tensor):
        form = value.type.form
        return wrap(fits(value.node, dtype)) if form == "python" or (scalars and _checks(form, dtype)) else value
    if not has_lazy(value):
        return value
    rows = stacked(value)
    if rows is None:
        return [_fitting(v, dtype, True) for v in value]
    types = value.types if hasattr(value, "types") else [v.type for v in value[:1]]
    return wrap(fits(rows, dtype) if all(_checks(t.form, dtype) for t in types) else rows)


def _checks(form: str, dtype: np.dtype[Any]) -> bool:
    """Return whether NumPy checks that a number of a form fits."""
    return form == "python" or (form == "scalar" and dtype.kind == "i")
