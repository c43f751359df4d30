"""Whether a plan is to do without libraries: loops then compute all that they can, products of matrices too."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar

_alone: ContextVar[bool] = ContextVar("alone", default=False)


def is_alone() -> bool:
    """Whether loops compute all that they can."""
    return _alone.get()


@contextmanager
def without_library() -> Generator[None]:
    """Make plans that call a library where nothing else is known alone."""
    token = _alone.set(True)
    try:
        yield
    finally:
        _alone.reset(token)
