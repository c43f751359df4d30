"""What the bar says of what takes long: a stage before the computation, or the computation."""

from __future__ import annotations

import numpy as np

import tensormagic as tm
from tensormagic import session
from tensormagic.notebook import progress


def test_the_outermost_stage_and_then_what_computes(monkeypatch):
    monkeypatch.setattr(progress, "AFTER", 0.0)
    assert progress._lasting() is None
    with session.working("capturing"), session.working("rewriting"):
        stage, since = progress._lasting() or ("", 0.0)
        assert stage == "capturing"
        assert progress._staged(stage, since)[0] == "capturing for 0 s"
    assert progress._lasting() is None


def test_stages_that_are_told(monkeypatch):
    stages = []

    class Noted(list):
        def append(self, work):
            stages.append(work[0] if isinstance(work[0], str) else "computing")
            super().append(work)

    monkeypatch.setattr(session, "at_work", Noted())
    monkeypatch.setattr(tm.config, "tier", "numpy")
    x = np.linspace(0.0, 1.0, 11)
    tm.tensor(lambda x: np.sin(x) * 3.0 - x)(x)
    assert stages == ["capturing", "building the graph", "rewriting", "computing"]
    assert list(session.at_work) == []
