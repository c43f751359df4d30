"""Programs are compared bit for bit: no rewriting, and one tier."""

import pytest


@pytest.fixture(autouse=True)
def _as_numpy(by_numpy: None, exact: None) -> None:
    pass
