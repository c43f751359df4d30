"""Attributes that only arrays have: for a lazy number, ``x.shape`` raises the error that it raises for a number."""

from __future__ import annotations

from typing import Any

from tensormagic.capture.errors.refusal import refuse, refuse_python
from tensormagic.capture.numbers import classes as number_classes
from tensormagic.capture.numbers.by_class import asked_classes
from tensormagic.capture.numbers.optional import Perhaps
from tensormagic.capture.staging.messages import raising
from tensormagic.capture.values.value import Tensor
from tensormagic.ops.form import to_form


def of_array(value: Any, name: str) -> Any:
    """Return ``value.name``, for one of these names."""
    if isinstance(value, Perhaps):
        return _there(value, name)
    if type(value) is Tensor and value.type.form != "array":
        _asked(value, name)
    return getattr(value, name)


def _there(value: Perhaps, name: str) -> Any:
    """Return the attribute of a value that may be None; the graph raises Python's error if it is."""
    if value.is_there is not None:
        return of_array(value.now, name)
    if not raising.defer(value.flag.node, AttributeError(f"'NoneType' object has no attribute {name!r}")):
        refuse_python(f".{name} of what is None for some data, in a `try`,", "Ask `is None` first.")
    return of_array(value.inner, name)


_OF_DTYPES = {"dtype", "itemsize", "nbytes", "view", "tobytes", "data", "byteswap"}


def _asked(value: Tensor, name: str) -> None:
    """Raise Python's error for a Python number; when the graph runs if the class is data-dependent."""
    classes = asked_classes(value.node)
    types = [value.type] if classes is None else classes.types
    pythons = [t for t in types if t.form == "python"]
    if name in _OF_DTYPES and len({t.dtype for t in types if t.form != "python"}) > 1:
        refuse_python(f".{name} of a number whose class depends on data", "Convert it to one class: np.float64(x).")
    if not pythons:
        return
    error = AttributeError(f"{str(pythons[0])!r} object has no attribute {name!r}")
    if len(pythons) == len(types) or classes is None:
        raise error
    others = number_classes.is_of(classes, [t for t in types if t.form != "python"])
    if not raising.defer(to_form(others, "python"), error):
        refuse(f".{name} of a number whose class depends on data", "Make it one of NumPy's: np.float64(x).")
