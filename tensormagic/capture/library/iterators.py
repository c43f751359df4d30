"""NumPy's iterators over elements, for known values: stores through them go into the memory of the lazy arrays themselves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tensormagic.capture import context
from tensormagic.capture.errors.refusal import refuse_python, values_are_there
from tensormagic.capture.foreign.lending import as_numpy_lies
from tensormagic.capture.inputs.foreign_arrays import memory_of
from tensormagic.capture.names import implements
from tensormagic.capture.values.operands import has_lazy
from tensormagic.capture.values.value import Tensor
from tensormagic.ir.errors import CaptureError, LimitError


@implements(np.nditer)
def nditer(op: Any, flags: Any = None, op_flags: Any = None, *args: Any, **options: Any) -> Any:
    """Implement ``np.nditer``, for known values."""
    return np.nditer(_operands(op, op_flags, "np.nditer"), flags, op_flags, *args, **options)


@implements(np.nested_iters)
def nested_iters(op: Any, axes: Any, flags: Any = None, op_flags: Any = None, *args: Any, **options: Any) -> Any:
    """Implement ``np.nested_iters``, for known values."""
    return np.nested_iters(_operands(op, op_flags, "np.nested_iters"), axes, flags, op_flags, *args, **options)


def _operands(op: Any, flags: Any, name: str) -> Any:
    """Return the operands for NumPy's iterator: computed values in NumPy's memory layout; for those written to, the memory itself."""
    if not has_lazy(op):
        return op
    if not values_are_there():
        refuse_python(name, "Write `for index in np.ndindex(x.shape):`, and x[index].")
    if isinstance(op, Tensor):
        return _operand(op, _stored_through(flags, 0))
    return [_operand(a, _stored_through(flags, k)) for k, a in enumerate(op)]


def _stored_through(flags: Any, number: int) -> bool:
    if flags is None:
        return False
    own = flags if all(isinstance(f, str) for f in flags) else flags[number] if number < len(flags) else ()
    return isinstance(own, Sequence) and bool({"readwrite", "writeonly"} & {*own})


def _operand(value: Any, stored: bool) -> Any:
    capture = context.current()
    if not isinstance(value, Tensor) or capture is None:
        return value
    if not value.ndim and not isinstance(value, np.ndarray):
        return value.numpy()
    if not stored:
        return as_numpy_lies(np.asarray(value.numpy()), value)
    try:
        return memory_of(value, capture)
    except CaptureError as error:  # a store into a copy would be lost
        raise LimitError(error.message, error.hint) from None
