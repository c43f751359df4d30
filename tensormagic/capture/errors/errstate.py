"""NumPy's current floating-point error handling, read without ``np.geterr``, which takes longer than a short kernel."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np


def _asking() -> Callable[[], Any]:
    """Return a function that returns NumPy's floating-point settings, a new object after each change; None if there is none."""
    try:
        from numpy._core.umath import _extobj_contextvar  # pyright: ignore[reportPrivateUsage]
    except ImportError:
        return lambda: None
    found: Any = _extobj_contextvar
    return found.get


_AT_ONCE = frozenset({"raise", "call"})
_settings = _asking()
_last: tuple[Any, dict[str, str], bool] = (None, {}, False)  # the settings that were seen last, and what they say


def _now() -> tuple[Any, dict[str, str], bool]:
    global _last
    settings = _settings()
    if settings is None or settings is not _last[0]:
        asked = {kind: str(how) for kind, how in np.geterr().items()}
        _last = settings, asked, not _AT_ONCE.isdisjoint(asked.values())
    return _last


def asked() -> dict[str, str]:
    """Return ``np.geterr()``, to be read only."""
    return _now()[1]


def raises() -> bool:
    """Return whether NumPy raises floating-point errors, or calls a function, so that they must occur where the code runs."""
    settings = _settings()
    return _last[2] if settings is not None and settings is _last[0] else _now()[2]


def later() -> AbstractContextManager[Any]:
    """Return a context for values built earlier; those for which errors were enabled have been computed at once."""
    if not raises():
        return nullcontext()
    return np.errstate(**{kind: "warn" for kind, how in asked().items() if how in _AT_ONCE})  # type: ignore[arg-type]
