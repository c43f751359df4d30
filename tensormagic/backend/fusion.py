"""Whether kernels compute several things at once while a plan is made."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar

_fused: ContextVar[bool] = ContextVar("fused", default=True)


def is_fused() -> bool:
    """Whether functions of elements are written into what reads them, and loops over the same elements joined."""
    return _fused.get()


@contextmanager
def fusing(*, fused: bool) -> Generator[None]:
    """Make plans with fusion, or without."""
    token = _fused.set(fused)
    try:
        yield
    finally:
        _fused.reset(token)
