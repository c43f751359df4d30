"""Folds of integers by ufuncs whose order does not matter: bitwise operations, greatest common divisor, least common multiple."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tensormagic.ir.errors import DTypeError
from tensormagic.ops.fold_kind import Fold
from tensormagic.ops.op import Value


def _lcm(x: Any, axis: Any) -> Value:
    """Return ``np.lcm.reduce``, applied to one axis at a time, as NumPy requires."""
    axes = range(x.ndim) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    for k in sorted(axes, reverse=True):
        x = np.lcm.reduce(x, axis=k)
    return x


def _dtype(ufunc: np.ufunc) -> Callable[[np.dtype[Any]], np.dtype[Any]]:
    """Return a function from the dtype of the elements to that of the result, which raises DTypeError if NumPy has no loop for it."""

    def result(dtype: np.dtype[Any]) -> np.dtype[Any]:
        try:
            found = ufunc.resolve_dtypes((dtype, dtype, None), reduction=True)[-1]
        except TypeError:
            found = None
        if found is None or found != dtype:  # None equals the dtype of floats
            raise DTypeError(f"{ufunc.__name__} is not supported for elements of {dtype}", "Convert them: astype(int).")
        return dtype

    return result


def _fold(ufunc: np.ufunc, doc: str) -> Fold:
    nothing = ufunc.identity
    start = None if nothing is None else lambda dtype: np.asarray(nothing).astype(dtype)[()]
    name = f"{ufunc.__name__}_of"
    return Fold(
        name=name,
        joins=ufunc.__name__,
        numpy=ufunc.reduce if start else _lcm,
        in_numpy=f"np.{ufunc.__name__}.reduce" if start else "",
        result=_dtype(ufunc),
        start=start,
        differentiable=False,
        doc=doc,
    )


BIT_FOLDS = {
    "bitwise_and": _fold(np.bitwise_and, "The bits that all elements have."),
    "bitwise_or": _fold(np.bitwise_or, "The bits that any element has."),
    "bitwise_xor": _fold(np.bitwise_xor, "The bits that an odd number of elements has."),
    "gcd": _fold(np.gcd, "The greatest common divisor."),
    "lcm": _fold(np.lcm, "The least common multiple."),
}
"""By the ufunc's name. The result has the dtype of the elements."""
