"""Programs are compared bit for bit: no rewriting, and one tier."""

import pytest

import tensormagic as tm


@pytest.fixture(autouse=True)
def exact(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tm.config, "math", "exact")
    monkeypatch.setattr(tm.config, "tier", "numpy")
