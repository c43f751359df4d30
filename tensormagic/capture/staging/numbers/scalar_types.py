"""NumPy's number types called on captured values (``np.float64(v)``): conversions that stay in the graph, as Python's do.

Also the types of exact numbers, which need the value.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np

from tensormagic.capture import context
from tensormagic.capture.inputs.snapshots import check_dtype
from tensormagic.capture.library.creation import array
from tensormagic.capture.staging.numbers.conversions import whole_number
from tensormagic.capture.values.casts import warn_of_loss
from tensormagic.capture.values.operands import has_lazy
from tensormagic.capture.values.value import Tensor, needs_value, wrap
from tensormagic.ir.errors import DTypeError
from tensormagic.ops.effects.checks import require
from tensormagic.ops.form import to_form
from tensormagic.ops.leaf import CONSTANT
from tensormagic.ops.pointwise import astype
from tensormagic.ops.scalars import scalar

_KINDS = [t for t in np.sctypeDict.values() if np.dtype(t).kind in "biufc"]


def _is_captured(args: tuple[Any, ...], options: dict[str, Any]) -> bool:
    given = args[0] if len(args) == 1 and not options else None
    if isinstance(given, Tensor) and given.node.op is CONSTANT:
        return False
    return context.current() is not None and has_lazy(given)


def _numpys(kind: type[np.generic]) -> Callable[..., Any]:
    """Return one of NumPy's number types as captured code calls it: a number becomes a number, an array an array."""

    def convert(*args: Any, **options: Any) -> Any:
        if not _is_captured(args, options):
            return kind(*args, **options)
        dtype = np.dtype(kind)
        check_dtype(dtype, f"the result of np.{kind.__name__}")
        given = args[0] if isinstance(args[0], Tensor) else array(args[0])
        if given.type.form == "python":
            given = _of_python(given, dtype)
        if given.ndim:
            return given.astype(dtype)
        warn_of_loss(given.dtype, dtype)
        return wrap(context.record(to_form(astype(given.node, dtype), "scalar")))

    return convert


def _of_python(number: Tensor, dtype: np.dtype[Any]) -> Tensor:
    """Return a number of Python's for a conversion; raise if it does not fit the type, when the graph runs if it is lazy."""
    if number.dtype.kind == "c" and dtype.kind not in "cb":
        name = "int" if dtype.kind in "iu" else "float"
        text = "a string, a bytes-like object or a real number" if name == "int" else "a string or a real number"
        raise DTypeError(f"{name}() argument must be {text}, not 'complex'")
    if dtype.kind not in "iu" or number.dtype.kind == "b":
        return number
    whole = to_form(whole_number(number).node, "scalar")
    limits = np.iinfo(dtype)
    least, most = np.int64(limits.min), np.int64(min(limits.max, np.iinfo(np.int64).max))
    fits = scalar.logical_and(scalar.greater_equal(whole, least), scalar.less_equal(whole, most))
    return wrap(require(whole, fits, f"Python integer {{value}} out of bounds for {dtype}", "overflow"))


def _exact(kind: type) -> Callable[..., Any]:
    """Return ``Decimal`` or ``Fraction`` as captured code calls it, with computed values."""

    def make(*args: Any, **options: Any) -> Any:
        return kind(*[_value(v, kind) for v in args], **{k: _value(v, kind) for k, v in options.items()})

    return make


def _value(given: Any, kind: type) -> Any:
    if not isinstance(given, Tensor):
        return given
    needs_value(f"{kind.__name__}()", "Convert the result, where the value can be computed.", given.node)
    return given.numpy()


TYPES: dict[Any, Callable[..., Any]] = {
    **{kind: _numpys(kind) for kind in _KINDS},
    **{kind: _exact(kind) for kind in (Decimal, Fraction)},
}
