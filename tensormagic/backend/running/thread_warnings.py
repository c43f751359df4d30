"""Warnings from our own threads: each is shown once, and never raised there, where nobody would catch it."""

from __future__ import annotations

import sys
import warnings

_told: set[str] = set()


def tell_once(message: str) -> None:
    """Warn of ``message`` once per process; if warnings are errors, write it to standard error."""
    if message in _told:
        return
    _told.add(message)
    try:
        warnings.warn(message, RuntimeWarning, stacklevel=3)
    except RuntimeWarning:
        print(f"RuntimeWarning: {message}", file=sys.stderr)  # noqa: T201 (an error of this thread would reach nobody)
