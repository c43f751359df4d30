"""Whether kernels compute several things at once, and round otherwise than NumPy does, while a plan is made."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar

_fused: ContextVar[bool] = ContextVar("fused", default=True)
_rounds: ContextVar[bool] = ContextVar("rounds", default=False)


def is_fused() -> bool:
    """Whether functions of elements are written into what reads them, and loops over the same elements joined."""
    return _fused.get()


def may_round() -> bool:
    """Whether sums may be added up in another order than NumPy has, and sums of products rounded once."""
    return _rounds.get()


@contextmanager
def fusing(*, fused: bool, rounds: bool) -> Generator[None]:
    """Make plans with fusion, or without; that may round otherwise than NumPy, or not."""
    tokens = _fused.set(fused), _rounds.set(rounds)
    try:
        yield
    finally:
        _fused.reset(tokens[0])
        _rounds.reset(tokens[1])
