"""Formulas of Python's numbers in captured code: Python would compute them step by step, and lose digits that accurate forms keep.

A formula is captured on its own, once for each kind of operands. If a rule finds a form that keeps more digits, that
form gives the value; else, and at the level *exact*, Python computes the formula as it is written.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from types import BuiltinFunctionType
from typing import Any

import numpy as np

from tensormagic.capture import context
from tensormagic.capture.hooks import Form, hooks
from tensormagic.capture.inputs.stand_ins import original_of
from tensormagic.capture.staging.calls.staged import called
from tensormagic.capture.values.operands import input_tensor
from tensormagic.capture.values.value import Tensor
from tensormagic.config import config

_FLOATS = {float, np.float64, np.float32}
_NUMBERS = {*_FLOATS, int}
_WHOLE = 2**53  # smaller integers are exact as floats, too
_MOST = 2000  # formulas that are kept, at most


def has_form(text: str, *operands: Any) -> bool:
    """Return whether a formula's operands are all numbers that are not lazy, and a rule may have a more accurate form of it.

    Parameters
    ----------
    text
        The text of the formula.
    operands
        What its names stand for.
    """
    key = _kind(text, operands)
    found = _may_have.get(key)
    if found is None:
        found = _may_have[key] = _NUMBERS.issuperset(map(type, operands))
        if len(_may_have) > _MOST:
            _may_have.clear()
    return found


def formula(
    text: str, body: Callable[..., Any], operands: Sequence[Any], names: Sequence[str], functions: Sequence[Any]
) -> Any:
    """Return the value of a formula of numbers.

    Parameters
    ----------
    text
        The text of the formula.
    body
        Computes it of operands and functions.
    operands, names
        Numbers, and what the code calls them.
    functions
        What it calls.
    """
    key = (text, *map(type, operands), *functions, hooks.choices())
    try:
        accurate = _accurate[key]
    except KeyError:
        if len(_accurate) > _MOST:
            _accurate.clear()
        accurate = _accurate[key] = _captured(body, operands, names, functions)
        if _are_known(functions):  # others may be called by these names elsewhere
            _may_have[_kind(text, operands)] = accurate is not None
    except TypeError:  # a function that cannot be a key
        accurate = None
    if accurate is None:
        return body(*operands, *functions)
    with np.errstate(all="ignore"):
        plain = body(*operands, *functions)
        is_float = type(plain) in _FLOATS and all(-_WHOLE < v < _WHOLE for v in operands if type(v) is int)
        value = accurate.run([float(v) if type(v) is int else v for v in operands]) if is_float else math.nan
    if not math.isfinite(value):  # NumPy gives its own result, and warns
        return body(*operands, *functions)
    if (capture := context.current()) is not None:
        capture.formed |= accurate.levels
    return type(plain)(value)


def _kind(text: str, operands: Sequence[Any]) -> tuple[Any, ...]:
    return (text, config.math, len(hooks.own_rules), *map(type, operands))


_may_have: dict[Any, bool] = {}  # by text, level, and the classes of operands
_accurate: dict[Any, Form | None] = {}


def _are_known(functions: Sequence[Any]) -> bool:
    """Return whether functions only compute: ufuncs, and functions of ``math``."""
    functions = [*map(original_of, functions)]
    return all(
        isinstance(f, np.ufunc) or (type(f) is BuiltinFunctionType and (f.__module__ == "math" or f is abs))
        for f in functions
    )


def _captured(
    body: Callable[..., Any], operands: Sequence[Any], names: Sequence[str], functions: Sequence[Any]
) -> Form | None:
    """Return the accurate form of a formula; None where no rule has one, or the formula cannot be captured."""
    if context.current() is None or not _are_known(functions):
        return None
    try:
        given = [input_tensor(float(v) if type(v) is int else v, n) for v, n in zip(operands, names, strict=True)]
        with context.capturing(context.Capture("a formula")), np.errstate(all="ignore"):
            found = body(*given, *map(called, functions))
    except Exception:  # noqa: BLE001 (Python computes it then, and raises what it raises)
        return None
    return hooks.form_of(found.node, [t.node for t in given if t is not None]) if isinstance(found, Tensor) else None
