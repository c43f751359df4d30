"""The recursion limit during capture: user code may recurse as deep as in Python, although each of its calls takes several frames."""

from __future__ import annotations

import sys
import threading
from collections.abc import Generator
from contextlib import contextmanager

FRAMES = 10  # Python frames for one user call: its branches are functions of their own, and a captured function is several calls

_raised: list[int] = []


@contextmanager
def as_deep_as_python() -> Generator[None]:
    """Allow more frames, in the main thread only: others may have little memory for them."""
    if _raised or threading.current_thread() is not threading.main_thread():
        yield
        return
    before = sys.getrecursionlimit()
    _raised.append(before * FRAMES)
    sys.setrecursionlimit(before * FRAMES)
    try:
        yield
    finally:
        if sys.getrecursionlimit() == _raised.pop():  # otherwise the user has set it
            sys.setrecursionlimit(before)
