"""How many have an object: what Python counts differs between its versions, so what it counts for one holder is asked of it."""

from __future__ import annotations

from sys import getrefcount
from typing import Any


def count(holder: list[Any]) -> int:
    """What is counted for the first object of a list, which is one of those that have it.

    It is counted in one place: from Python 3.14 on, a local variable that is handed to a call may count once or twice there.
    """
    return getrefcount(holder[0])


ONE = count([object()])
"""What is counted where the list alone has it."""
