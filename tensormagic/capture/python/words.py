"""The texts of Python's own errors about numbers and functions, taken from the running version, since versions differ."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any


@functools.lru_cache(maxsize=None, typed=True)  # 1 and 1.0 fail with different texts
def said(function: Callable[..., Any], *args: Any) -> str:
    """Return the text of the error that a call raises, without the value in it (", got -1.0"), which is data-dependent."""
    try:
        function(*args)
    except Exception as error:  # noqa: BLE001 (whichever it is)
        return str(error).partition(", got ")[0]
    raise AssertionError(function, args)
