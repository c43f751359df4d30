"""Many small evaluations: they run in NumPy, and start no compiler before NumPy has spent what a compiler may save."""

import numpy as np
import pytest

import tensormagic as tm
import tensormagic.numpy as xp
from tensormagic import session


class Waiting:
    """A compilation that is not done."""

    def ready(self) -> bool:
        return False


@pytest.mark.parametrize(("worth", "starts"), [(1e9, 0), (0.0, 1)])
def test_a_compiler_starts_once_numpy_has_taken_long(monkeypatch: pytest.MonkeyPatch, worth: float, starts: int):
    started: list[object] = []
    monkeypatch.setattr(tm.config, "tier", "auto")
    monkeypatch.setattr(session, "WORTH_COMPILING", worth)
    monkeypatch.setattr(session.native, "start", lambda plan: started.append(plan) or Waiting())
    factor = 3.0 + starts  # a graph of this case alone
    for k in range(4):
        x = xp.asarray(np.full(5, float(k)))
        assert float(xp.sum(xp.tanh(x * factor))) == pytest.approx(5 * np.tanh(k * factor))
    assert len(started) == starts
