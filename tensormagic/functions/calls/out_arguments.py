"""Results in arrays that the caller gives, as with ``out=`` of NumPy's functions: their checks, and which can be computed in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tensormagic.capture.values.casts import check_cast
from tensormagic.ir.errors import ArgumentError, ShapeError
from tensormagic.ir.size import Size, evaluate, nodes_of
from tensormagic.ir.type import Type

Arrays = list[Any]  # an array, or None, for each result


def arrays_for(out: Any, types: Sequence[Type], *, single: bool) -> Arrays:
    """Return the arrays of ``out=``, one or None for each result.

    Raises
    ------
    ArgumentError, ShapeError, DTypeError
        If they are no arrays, not writable, or cannot hold the dtype of a result; as in NumPy.
    """
    given: Sequence[Any] = (out,) if single and not isinstance(out, tuple) else out
    if not isinstance(given, tuple | list) or len(given) != len(types):
        raise ShapeError(
            f"The 'out' tuple must have exactly one entry per ufunc output: there are {len(types)} results",
            "Give a tuple with an array, or None, for each result.",
        )
    for array, kind in zip(given, types, strict=True):
        if array is None:
            continue
        if not isinstance(array, np.ndarray):
            raise ArgumentError("return arrays must be of ArrayType")
        if not array.flags.writeable:
            raise ShapeError("output array is read-only")
        check_cast(kind.dtype, array.dtype, "same_kind")
    return list(given)


def check_shapes(arrays: Arrays, types: Sequence[Type], sizes: Mapping[Any, int]) -> None:
    """Raise for arrays of wrong shapes, if sizes determine these before the run."""
    for array, kind in zip(arrays, types, strict=True):
        if array is not None and not any(map(nodes_of, kind.shape)):
            _check_shape(array, tuple(_number(s, sizes) for s in kind.shape))


def _check_shape(array: Any, shape: tuple[int, ...]) -> None:
    if array.shape != shape:
        text = "(" + ",".join(map(str, array.shape)) + ("," if array.ndim == 1 else "") + ")"
        other = "(" + ",".join(map(str, shape)) + ("," if len(shape) == 1 else "") + ")"
        raise ShapeError(
            f"non-broadcastable output operand with shape {text} doesn't match the broadcast shape {other}"
        )


def _number(size: Size, sizes: Mapping[Any, int]) -> int:
    return size if isinstance(size, int) else evaluate(size, sizes.__getitem__)


def fits(array: Any, kind: Type, sizes: Mapping[Any, int], values: Sequence[Any]) -> bool:
    """Return whether a single result can be computed directly in an array: :func:`arrays_for` and :func:`usable` in one test."""
    shape = kind.shape
    known = array.dtype == kind.dtype and array.flags.carray and array.ndim == len(shape)
    if not known or not all(
        extent == (size if isinstance(size, int) else _number(size, sizes) if not nodes_of(size) else -1)
        for extent, size in zip(array.shape, shape, strict=True)
    ):
        return False
    return not any(isinstance(v, np.ndarray) and np.may_share_memory(array, v) for v in values)


def usable(arrays: Arrays, types: Sequence[Type], values: Sequence[Any]) -> Arrays:
    """Return those of ``arrays`` that code can compute in: of the result's dtype, in C order, disjoint from each other and from inputs."""
    read = [v for v in values if isinstance(v, np.ndarray)]
    found: Arrays = []
    for array, kind in zip(arrays, types, strict=True):
        own = array is not None and array.dtype == kind.dtype and array.flags.carray
        others = [*read, *(a for a in arrays if a is not None and a is not array)]
        twice = sum(a is array for a in arrays) > 1
        found.append(array if own and not twice and not any(np.may_share_memory(array, v) for v in others) else None)
    return found


def filled(arrays: Arrays, results: Sequence[Any]) -> list[Any]:
    """Return the results, copied into their arrays if needed."""
    for array, result in zip(arrays, results, strict=True):
        if array is not None and result is not array:
            _check_shape(array, np.shape(result))
    for array, result in zip(arrays, results, strict=True):
        if array is not None and result is not array:
            np.copyto(array, result, casting="same_kind")
    return [result if array is None else array for array, result in zip(arrays, results, strict=True)]
