"""Data types of the standard, and the functions that examine them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from tensormagic.capture.values.value import Tensor
from tensormagic.numpy.calling import call, check_device

bool = np.dtype(np.bool_)
int8 = np.dtype(np.int8)
int16 = np.dtype(np.int16)
int32 = np.dtype(np.int32)
int64 = np.dtype(np.int64)
uint8 = np.dtype(np.uint8)
uint16 = np.dtype(np.uint16)
uint32 = np.dtype(np.uint32)
uint64 = np.dtype(np.uint64)
float32 = np.dtype(np.float32)
float64 = np.dtype(np.float64)
complex64 = np.dtype(np.complex64)
complex128 = np.dtype(np.complex128)

SIGNED = {d.name: d for d in (int8, int16, int32, int64)}
UNSIGNED = {d.name: d for d in (uint8, uint16, uint32, uint64)}
REAL = {d.name: d for d in (float32, float64)}
COMPLEX = {d.name: d for d in (complex64, complex128)}
KINDS: dict[str, dict[str, np.dtype[Any]]] = {
    "bool": {"bool": bool},
    "signed integer": SIGNED,
    "unsigned integer": UNSIGNED,
    "integral": SIGNED | UNSIGNED,
    "real floating": REAL,
    "complex floating": COMPLEX,
    "numeric": SIGNED | UNSIGNED | REAL | COMPLEX,
}
ALL = {"bool": bool} | KINDS["numeric"]


@dataclass(frozen=True)
class FloatInfo:
    """The result of ``finfo``: limits of a floating-point data type, as Python floats."""

    bits: int
    eps: float
    max: float
    min: float
    smallest_normal: float
    dtype: np.dtype[Any]


@dataclass(frozen=True)
class IntegerInfo:
    """The result of ``iinfo``: limits of an integer data type, as Python ints."""

    bits: int
    max: int
    min: int
    dtype: np.dtype[Any]


def dtype_of(value: Any) -> np.dtype[Any]:
    """Return the data type that an array has or that ``value`` names."""
    return value.dtype if isinstance(value, Tensor | np.ndarray) else np.dtype(value)


def astype(x: Any, dtype: Any, /, *, copy: Any = True, device: Any = None) -> Any:
    """Return ``x`` with another data type."""
    check_device(device)
    return call(np.astype, x, dtype, copy=copy)


def can_cast(from_: Any, to: Any, /) -> Any:
    """Return whether one data type can be cast to another without loss."""
    return np.can_cast(dtype_of(from_), np.dtype(to))


def finfo(type: Any, /) -> FloatInfo:
    """Return the limits of a floating-point data type, or of that of an array."""
    dtype = dtype_of(type)
    if dtype not in ALL.values() or dtype.kind not in "fc":
        raise TypeError(f"finfo is of floating-point data types, not of {dtype}")
    info = np.finfo(dtype)
    eps, largest, least, normal = (float(v) for v in (info.eps, info.max, info.min, info.smallest_normal))
    return FloatInfo(info.bits, eps, largest, least, normal, np.dtype(info.dtype))


def iinfo(type: Any, /) -> IntegerInfo:
    """Return the limits of an integer data type, or of that of an array."""
    dtype = dtype_of(type)
    if dtype.kind not in "iu":
        raise TypeError(f"iinfo is of integer data types, not of {dtype}")
    info = np.iinfo(dtype)
    return IntegerInfo(info.bits, int(info.max), int(info.min), dtype)


def isdtype(dtype: Any, kind: Any) -> Any:
    """Return whether a data type is of a kind: a data type, a kind's name, or a tuple of these."""
    return any(_is_of(np.dtype(dtype), k) for k in (kind if isinstance(kind, tuple) else (kind,)))


def _is_of(dtype: np.dtype[Any], kind: Any) -> Any:
    if not isinstance(kind, str):
        return dtype == np.dtype(kind)
    if kind not in KINDS:
        raise ValueError(f"no kind of data type is called {kind!r}; the kinds are {', '.join(KINDS)}")
    return dtype in KINDS[kind].values()


def result_type(*arrays_and_dtypes: Any) -> np.dtype[Any]:
    """Return the data type that arrays, data types and Python numbers promote to."""
    if not arrays_and_dtypes:
        raise ValueError("at least one array or dtype is required")
    return np.result_type(*(v.dtype if isinstance(v, Tensor | np.ndarray) else v for v in arrays_and_dtypes))
