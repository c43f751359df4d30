"""Compiled code on threads."""

import pytest

import tensormagic as tm
from tensormagic.backend.running import threads


@pytest.fixture
def on_two_threads(by_numba: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Compiled code, on two threads where there are any: every loop that has more than one share is shared."""
    monkeypatch.setattr(threads, "_least", 0)
    monkeypatch.setattr(tm.config, "threads", 2)
