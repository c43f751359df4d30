"""What NumPy deprecates: its warnings, for captured code too, at the user's line.

Which calls those are, and in which words, depends on the version: the NumPy that is there is asked, by a call on small arrays of the
same dtypes. Only functions whose own code warns are asked, so that others cost nothing.
"""

from __future__ import annotations

import enum
import functools
import inspect
import warnings
from collections.abc import Callable
from typing import Any, cast

import numpy as np

from tensormagic.capture import usercode
from tensormagic.capture.known import static_value
from tensormagic.capture.value import Tensor
from tensormagic.ir.type import hint

_PLAIN = bool, int, float, complex, str, bytes, np.generic, np.dtype, type, enum.Enum
_MOST = 8  # of a dimension of an array that stands in for another
_Said = tuple[tuple[str, type[Warning]], ...]


def telling(own: Callable[..., Any], numpys: Callable[..., Any]) -> Callable[..., Any]:
    """``own``, which warns as ``numpys`` does; ``own`` itself where that never says that something is deprecated."""
    code = getattr(inspect.unwrap(numpys), "__code__", None)
    if code is None or "DeprecationWarning" not in code.co_names:
        return own

    @functools.wraps(own)
    def call(*args: Any, **options: Any) -> Any:
        told(numpys, *args, **options)
        return own(*args, **options)

    return call


def told(numpys: Callable[..., Any], *args: Any, **options: Any) -> None:
    """Warn the user's line of what is deprecated in a call of NumPy's."""
    try:
        said = _said(numpys, tuple(map(_form, args)), tuple((name, _form(value)) for name, value in options.items()))
    except TypeError:  # what has no hash, would be used up, or would live on in what is remembered
        return
    for message, category in said:
        warn(message, category)


def warn(message: str, category: type[Warning]) -> None:
    """Warn the user's line, as NumPy does where it meets what is captured there."""
    frame = usercode.user_frame()
    if frame is not None:
        space = frame.f_globals
        registry = space.setdefault("__warningregistry__", {})
        warnings.warn_explicit(
            message, category, frame.f_code.co_filename, frame.f_lineno, space.get("__name__", "<string>"), registry
        )


@functools.lru_cache(1024)
def _said(numpys: Callable[..., Any], args: tuple[Any, ...], options: tuple[tuple[str, Any], ...]) -> _Said:
    with warnings.catch_warnings(record=True) as found, np.errstate(all="ignore"):
        warnings.simplefilter("always")
        try:
            numpys(*map(_made, args), **{name: _made(form) for name, form in options})
        except Exception:  # noqa: BLE001 (an error is told by whoever runs the call itself)
            return ()
    return tuple((str(w.message), w.category) for w in found if issubclass(w.category, DeprecationWarning))


def _form(value: Any) -> tuple[Any, ...]:
    """What tells a value from another, as far as it matters here."""
    if isinstance(value, Tensor):
        known = static_value(value.node) if not value.type.shape else None
        if known is not None:
            return _form(known)
        return (
            np.ndarray,
            tuple(_MOST if s is None else min(s, _MOST) for s in map(hint, value.type.shape)),
            value.dtype,
        )
    if isinstance(value, np.ndarray):
        return np.ndarray, tuple(min(s, _MOST) for s in value.shape), value.dtype
    if type(value) in {list, tuple}:
        return type(value), *map(_form, value)
    if value is not None and not isinstance(value, _PLAIN):
        raise TypeError
    return type(value), value


def _made(form: tuple[Any, ...]) -> Any:
    kind, *rest = form
    if kind is np.ndarray:
        return np.zeros(*rest)
    return cast("Any", kind)(map(_made, rest)) if kind in {list, tuple} else rest[0]
