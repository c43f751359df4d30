"""What the bar says of what takes long: a stage before the computation, or the computation."""

from __future__ import annotations

import gc

import numpy as np

import tensormagic as tm
from tensormagic import session
from tensormagic.notebook.display import progress
from tensormagic.notebook.widgets import strips


class Shown:
    """In place of the widget."""

    def __init__(self, words, fraction):
        self.said = [words]
        bars.append(self)

    def live(self):
        return None

    def say(self, words, fraction):
        self.said.append(words)

    def close(self):
        self.said.append("closed")


bars: list[Shown] = []


def test_what_takes_long_is_told_by_itself_or_one_after_the_other(monkeypatch):
    monkeypatch.setattr(strips, "Bar", Shown)
    monkeypatch.setattr(progress, "AFTER", 10.0)
    monkeypatch.setattr(progress.threading.Thread, "start", lambda self: None)
    seconds = iter(range(100))
    monkeypatch.setattr(progress.time, "perf_counter", lambda: now[0])
    now = [0.0]
    watch = progress._Watch()
    for stage in ["capturing", "rewriting", "planning", "planning", ""]:  # each for six seconds
        if stage:
            with session.working(stage):
                now[0] = 6.0 * next(seconds) + 5.0
                watch._look()
        else:
            watch._look()
    (bar,) = bars
    assert bar.said == ["planning for 6 s", "planning for 6 s", "closed"]
    assert list(session.at_work) == []


def test_what_is_counted_is_told_with_how_far_it_is(monkeypatch):
    bars.clear()
    monkeypatch.setattr(strips, "Bar", Shown)
    monkeypatch.setattr(progress.threading.Thread, "start", lambda self: None)
    now = [0.0]
    monkeypatch.setattr(progress.time, "perf_counter", lambda: now[0])
    watch, stage = progress._Watch(), session.Counted("on the cluster: chunk", 1200)
    with session.working(stage):
        now[0], stage.done = 3.0, 300
        watch._look()
    assert bars[0].said == ["on the cluster: chunk 300 of 1,200 · 3 s"]
    assert session.doing().far_with(stage, 0.0).fraction == 0.25


def test_stages_that_are_told(monkeypatch):
    gc.collect()  # what other tests have left is not told here
    stages = []

    class Noted(list):
        def append(self, work):
            stages.append(work[0] if isinstance(work[0], str) else "computing")
            super().append(work)

    monkeypatch.setattr(session.work.own, "work", Noted())
    monkeypatch.setattr(tm.config, "tier", "numpy")
    x = np.linspace(0.0, 1.0, 11)
    tm.tensor(lambda x: np.sin(x) * 3.0 - x)(x)
    assert stages == ["capturing", "building the graph", "rewriting", "computing"], " ".join(stages)
    assert list(session.work.own.work) == []


def test_a_graph_that_grows_is_told(monkeypatch):
    bars.clear()
    monkeypatch.setattr(strips, "Bar", Shown)
    monkeypatch.setattr(progress.threading.Thread, "start", lambda self: None)
    now = [0.0]
    monkeypatch.setattr(progress.time, "perf_counter", lambda: now[0])
    watch, v = progress._Watch(), tm.tensor(0.5)
    for _ in range(3):
        for _ in range(100):
            v = v * 0.999 + 0.001
        now[0] += 1.0
        watch._look()
    now[0] += 1.0
    watch._look()  # nothing was added
    assert [bar.said for bar in bars] == [["building the graph for 1 s", "building the graph for 2 s", "closed"]]
