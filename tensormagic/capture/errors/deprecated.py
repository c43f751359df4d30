"""NumPy's deprecations: its warnings, given for captured code, too, at the user's line; and what it no longer supports.

Which calls those are, and in which words, depends on the version: the installed NumPy is called on small arrays of
the same dtypes. Only functions whose own code warns are tried, so that others cost nothing.
"""

from __future__ import annotations

import enum
import functools
import inspect
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple, cast

import numpy as np

from tensormagic.capture.numbers.known_values import static_value
from tensormagic.capture.python import usercode
from tensormagic.capture.values.value import Tensor
from tensormagic.ir.type import hint

_PLAIN = bool, int, float, complex, str, bytes, np.generic, np.dtype, type, enum.Enum
_MOST = 8  # the longest axis of an array that stands in for another


class _Answer(NamedTuple):
    """The warnings of a call, and the error that it ends with."""

    said: tuple[tuple[str, type[Warning]], ...]
    error: Exception | None = None


def with_deprecations(own: Callable[..., Any], numpys: Callable[..., Any]) -> Callable[..., Any]:
    """Return ``own`` with the deprecation warnings of ``numpys``; ``own`` itself if that never warns so."""
    code = getattr(inspect.unwrap(numpys), "__code__", None)
    if code is None or "DeprecationWarning" not in code.co_names:
        return own

    @functools.wraps(own)
    def call(*args: Any, **options: Any) -> Any:
        show_deprecations(numpys, *args, **options)
        return own(*args, **options)

    return call


def show_deprecations(numpys: Callable[..., Any], *args: Any, **options: Any) -> Exception | None:
    """Show deprecation warnings of a NumPy call at the user's line; return the call's error, if any."""
    try:
        answer = _answer(
            numpys, tuple(map(_form, args)), tuple((name, _form(value)) for name, value in options.items())
        )
    except TypeError:  # arguments without a hash, that would be used up, or that the memo would keep alive
        return None
    for message, category in answer.said:
        usercode.warn(message, category)
    return answer.error


@functools.lru_cache(1024)
def _answer(numpys: Callable[..., Any], args: tuple[Any, ...], options: tuple[tuple[str, Any], ...]) -> _Answer:
    with warnings.catch_warnings(record=True) as found, np.errstate(all="ignore"):
        warnings.simplefilter("always")
        try:
            numpys(*map(_made, args), **{name: _made(form) for name, form in options})
        except Exception as error:  # noqa: BLE001 (an error is told by whoever runs the call itself)
            return _Answer((), error.with_traceback(None))
    return _Answer(tuple((str(w.message), w.category) for w in found if issubclass(w.category, DeprecationWarning)))


def _form(value: Any) -> tuple[Any, ...]:
    """Return a key that distinguishes values as far as deprecations are concerned."""
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
