"""Makes the garbage collector run less often during capture: most objects made then stay, so collecting finds nothing."""

from __future__ import annotations

import gc
from collections.abc import Generator
from contextlib import contextmanager

_SPARSE = 20_000  # objects between two collections


@contextmanager
def sparsely() -> Generator[None]:
    """Make the garbage collector run less often within the context."""
    before = gc.get_threshold()
    if not 0 < before[0] < _SPARSE:  # off, or set by the user, or by a capture around this one
        yield
        return
    gc.set_threshold(_SPARSE, *before[1:])
    try:
        yield
    finally:
        if gc.get_threshold()[0] == _SPARSE:
            gc.set_threshold(*before)
