"""The options of the plan being made: whether it fuses operations, and may round otherwise than NumPy."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar

_fused: ContextVar[bool] = ContextVar("fused", default=True)
_rounds: ContextVar[bool] = ContextVar("rounds", default=False)


def is_fused() -> bool:
    """Return whether element-wise functions are inlined into their readers, and loops over the same elements are joined."""
    return _fused.get()


def may_round() -> bool:
    """Return whether sums may be reordered, and products and sums fused, so that rounding differs from NumPy's."""
    return _rounds.get()


@contextmanager
def fusing(*, fused: bool, rounds: bool) -> Generator[None]:
    """Make plans with or without fusion, and with or without other rounding than NumPy's."""
    tokens = _fused.set(fused), _rounds.set(rounds)
    try:
        yield
    finally:
        _fused.reset(tokens[0])
        _rounds.reset(tokens[1])
