"""NumPy's casting rules: whether values of one dtype may be cast to another, and the error where they may not."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensormagic.capture.python import usercode
from tensormagic.ir.errors import DTypeError
from tensormagic.ir.node import Node
from tensormagic.ops.pointwise import astype


def cast_error(own: Any, dtype: Any, rule: str = "safe") -> DTypeError:
    """Return NumPy's error for a cast that its rule does not allow."""
    return DTypeError(
        f"Cannot cast array data from {np.dtype(own)!r} to {np.dtype(dtype)!r} according to the rule '{rule}'"
    )


def check_cast(own: Any, dtype: Any, rule: Any = "safe") -> None:
    """Raise NumPy's error for a cast that a rule does not allow."""
    if not np.can_cast(own, dtype, rule):
        raise cast_error(own, dtype, rule)


def cast_to(node: Node, dtype: Any, rule: Any = "safe") -> Node:
    """Return ``node`` cast to another dtype; raise if the rule does not allow it."""
    check_cast(node.type.dtype, dtype, rule)
    return astype(node, dtype)


def loses(own: np.dtype[Any], dtype: np.dtype[Any]) -> bool:
    """Return whether a cast to another dtype drops imaginary parts."""
    return own.kind == "c" and dtype.kind not in "cb"


def warn_of_loss(own: np.dtype[Any], dtype: Any) -> None:
    """Warn the user's line, as NumPy does, where a cast drops imaginary parts."""
    if loses(own, np.dtype(dtype)):
        usercode.warn("Casting complex values to real discards the imaginary part", np.exceptions.ComplexWarning)


def check_output(dtype: np.dtype[Any], target: np.dtype[Any], name: str) -> None:
    """Raise NumPy's error if the array that a ufunc's results are stored in cannot take their dtype."""
    if not np.can_cast(dtype, target, "same_kind"):
        raise DTypeError(
            f"Cannot cast ufunc '{name}' output from {dtype!r} to {target!r} with casting rule 'same_kind'",
            "Write x = x + y, which makes a new array of the wider type.",
        )
