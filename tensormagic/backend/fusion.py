"""Whether kernels compute several things at once, and round them once, while a plan is made."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar

_fused: ContextVar[bool] = ContextVar("fused", default=True)
_contracted: ContextVar[bool] = ContextVar("contracted", default=False)


def is_fused() -> bool:
    """Whether functions of elements are written into what reads them, and loops over the same elements joined."""
    return _fused.get()


def is_contracted() -> bool:
    """Whether steps of polynomials may be rounded once, which is not what NumPy does."""
    return _contracted.get()


@contextmanager
def fusing(*, fused: bool, contracted: bool) -> Generator[None]:
    """Make plans with fusion, or without; with contraction, or without."""
    tokens = _fused.set(fused), _contracted.set(contracted)
    try:
        yield
    finally:
        _fused.reset(tokens[0])
        _contracted.reset(tokens[1])
