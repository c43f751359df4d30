"""Values are compared with NumPy's bit for bit: one tier, and floating-point warnings off, as in the functions' own documentation."""

import pytest


@pytest.fixture(autouse=True)
def _as_numpy(quietly_by_numpy: None) -> None:
    pass
