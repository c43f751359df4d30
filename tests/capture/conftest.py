"""Programs are compared bit for bit: no rewriting, and one tier."""

from collections.abc import Iterator

import pytest

import tensormagic as tm


@pytest.fixture(autouse=True)
def exact(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(tm.config, "math", "exact")
    monkeypatch.setattr(tm.config, "tier", "numpy")
    yield
