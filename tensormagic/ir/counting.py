"""Reference counts of objects, whose meaning differs between versions of Python."""

from __future__ import annotations

from sys import getrefcount
from typing import Any


def count(holder: list[Any]) -> int:
    """Return the reference count of the first object of a list; the list's own reference is included.

    This is the only place that counts: since Python 3.14 a local variable passed to a call may count once or twice.
    """
    return getrefcount(holder[0])


ONE = count([object()])
"""The count for an object that only the list refers to."""
