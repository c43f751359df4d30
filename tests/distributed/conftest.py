"""What tests of clusters share."""

import pytest

import tensormagic as tm


@pytest.fixture
def by_numpy(monkeypatch: pytest.MonkeyPatch) -> None:
    """The NumPy tier: nothing is compiled."""
    monkeypatch.setattr(tm.config, "tier", "numpy")
