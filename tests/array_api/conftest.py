"""Values are compared with NumPy's bit for bit: one tier, and floating-point warnings off, as in the functions' own documentation."""

from collections.abc import Iterator

import numpy as np
import pytest

import tensormagic as tm


@pytest.fixture(autouse=True)
def _numpy_tier(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(tm.config, "tier", "numpy")
    with np.errstate(all="ignore"):
        yield
