"""Finds which library made a function that is not written in Python: such functions take arrays and numbers, and are called as they are."""

from __future__ import annotations

import sys
from functools import lru_cache
from types import ModuleType
from typing import Any

import numpy as np

from tensormagic.ir.alive import once_for_each
from tensormagic.ir.modules import package_of

_MAKERS = {"numba": "Numba", "_ctypes": "C", "ctypes": "C", "_cffi_backend": "C", "cffi": "C"}
_LIBRARIES = {"CDLL", "PyDLL", "Lib", "FFILibrary"}


def maker_of(function: Any) -> str:
    """Return the library that made a function; empty for Python's and NumPy's own."""
    owner = getattr(function, "__self__", None)
    method = not isinstance(owner, ModuleType | None) and package_of(type(owner)) in {"_cffi_backend", "cffi"}
    return _maker(type(function)) or (_maker(type(owner)) if method else "")


@once_for_each
def _maker(kind: type) -> str:
    found = (_MAKERS.get(package_of(k)) for k in kind.__mro__)
    return getattr(kind, "made_by", "") or next((maker for maker in found if maker), "")


def is_function(value: Any) -> bool:
    """Return whether a value is such a function: an object without state, since it reads all that it uses at each call."""
    if isinstance(value, type) or not callable(value) or not maker_of(value):
        return False
    return package_of(type(value)) != "_cffi_backend" or sys.modules["_cffi_backend"].typeof(value).kind == "function"


def is_library(value: Any) -> bool:
    """Return whether an object is a loaded C library."""
    return type(value).__name__ in _LIBRARIES and bool(_maker(type(value)))


@lru_cache(maxsize=1024)
def is_numpys(ufunc: np.ufunc) -> bool:
    """Return whether a ufunc is NumPy's or SciPy's, rather than made from a function."""
    homes = ("numpy", "numpy._core.umath", "numpy.strings", "scipy.special", "scipy.special._ufuncs")
    return any(ufunc in _ufuncs(home) for home in homes if home in sys.modules)


@lru_cache(maxsize=16)
def _ufuncs(module: str) -> frozenset[np.ufunc]:
    return frozenset(v for v in vars(sys.modules[module]).values() if isinstance(v, np.ufunc))
