"""The texts of Python's own errors about numbers and functions, asked of the running version, since versions differ."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any


@functools.lru_cache(maxsize=None, typed=True)  # 1 and 1.0 fail in other words
def said(function: Callable[..., Any], *args: Any) -> str:
    """The text of the error that a call ends in; less the value in it (", got -1.0"), which is data-dependent."""
    try:
        function(*args)
    except Exception as error:  # noqa: BLE001 (whichever it is)
        return str(error).partition(", got ")[0]
    raise AssertionError(function, args)
