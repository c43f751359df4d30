"""nan in lists: Python treats an object as equal to itself, so ``in`` and ``==`` of lists depend on whether two nan are one object."""

from __future__ import annotations

import math
from typing import Any

from tensormagic.capture import context
from tensormagic.capture.inputs.snapshots import Snapshot
from tensormagic.capture.python import usercode
from tensormagic.capture.staging.messages import raising
from tensormagic.capture.values.operands import node_of
from tensormagic.capture.values.value import Tensor
from tensormagic.ir.errors import CaptureError
from tensormagic.ops.scalars import scalar


def refuse_two_nans(left: Any, right: Any) -> None:
    """Refuse at run time two nan from the caller, since they may be the same object."""
    values = [v for v in (left, right) if not isinstance(v, float)]
    if not values or not (_may_be_shared_nan(left) and _may_be_shared_nan(right)):
        return
    gaps = [scalar.isnan(node_of(v)) for v in values]
    both = gaps[0] if len(gaps) == 1 else scalar.logical_and(*gaps)
    error = CaptureError(
        f"{usercode.here()} compares two nan in lists, which are equal where they are one object",
        "Ask with np.isnan.",
    )
    if not raising.defer(scalar.logical_not(both), error):
        raise context.uncaught()


def _may_be_shared_nan(value: Any) -> bool:
    """Return whether a value may be one nan object at two places: a nan constant, or a number that a function is given or reads."""
    if isinstance(value, float):
        return math.isnan(value)
    if not isinstance(value, Tensor) or value.type.form == "array" or not value.type.inexact:
        return False
    return value.node.op.kind == "leaf"


def as_read(value: Any) -> Any:
    """Return a list or tuple with nan as a cell read it from the notebook; other values unchanged."""
    if type(value) in {list, tuple}:
        parts = [as_read(v) for v in value]
        return type(value)(parts) if any(a is not b for a, b in zip(parts, value, strict=True)) else value
    source = value.node.params.get("source") if isinstance(value, Tensor) else None
    number = source.value if isinstance(source, Snapshot) else None
    return number if isinstance(number, float) and math.isnan(number) else value


def holds_nan(own: Any, value: Any) -> bool:
    """Return whether a value, as it was read, is nan or holds one."""
    return own is not value or (isinstance(own, float) and math.isnan(own))
