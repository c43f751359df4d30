"""Whether a function may take roots, powers or logarithms of folds that overflow: rules give a value there, and NumPy does not."""

from __future__ import annotations

from collections.abc import Mapping
from types import FunctionType
from typing import Any

from tensormagic.capture.staging.analysis.numpy_functions import LOGARITHMS

_FOLDS = frozenset(("sum", "mean", "std", "var", "prod", "dot", "inner", "matmul", "norm"))
_SILENT = frozenset(("vdot", "einsum"))  # NumPy does not report when these overflow
_READERS = LOGARITHMS | {"sqrt", "power"}
_ROOTS_OF_FOLDS = frozenset(("std", "norm"))


def may_run_over(reached: Mapping[FunctionType, Any]) -> bool:
    """Return whether functions contain something that may overflow, by the names that they call."""
    names = _names(reached)
    if not _has_roots(reached, names):
        return False
    return not names.isdisjoint(_FOLDS) or any(written.products for written in reached.values())


def runs_over_silently(reached: Mapping[FunctionType, Any]) -> bool:
    """Return whether functions contain something whose overflow NumPy does not report."""
    names = _names(reached)
    return not names.isdisjoint(_SILENT) and _has_roots(reached, names)


def _names(reached: Mapping[FunctionType, Any]) -> frozenset[str]:
    return frozenset(n for f in reached for n in f.__code__.co_names)


def _has_roots(reached: Mapping[FunctionType, Any], names: frozenset[str]) -> bool:
    return not names.isdisjoint(_READERS | _ROOTS_OF_FOLDS) or any(
        _is_root(c) for f in reached for c in f.__code__.co_consts
    )


def _is_root(constant: object) -> bool:
    return isinstance(constant, float) and 0 < abs(constant) < 1
