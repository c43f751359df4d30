"""Whether objects are frozen in Python's garbage collector, and by whom."""

from __future__ import annotations

import gc
import time
from functools import lru_cache

frozen: list[None] = []
"""One entry for each running trace, nested ones included, that has frozen objects."""
_SELDOM = 10.0  # seconds


def is_frozen() -> bool:
    """Return whether objects are frozen in the garbage collector at the moment."""
    return bool(frozen) or is_frozen_by_others()


def is_frozen_by_others() -> bool:
    """Return whether code outside this package has frozen objects; checked rarely, since the check counts them."""
    return not frozen and _are_some(int(time.monotonic() / _SELDOM))


@lru_cache(maxsize=1)
def _are_some(_when: int) -> bool:
    return gc.get_freeze_count() > 0
