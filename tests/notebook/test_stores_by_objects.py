"""Stores that a cell's calls make into arrays of the notebook, by whatever leads to them: gradients go through, or the line is refused."""

import sys

import pytest

from tensormagic.ir.errors import CaptureError

SETUP = """
import numpy as np
from collections import defaultdict, deque
from functools import partial
class Model:
    fixed = np.ones(3)
    def __init__(self): self.w = np.ones(3)
    def step(self, s): self.w -= s * x
    @classmethod
    def shift(cls, s): cls.fixed -= s * x
class Slots:
    __slots__ = ('w',)
class Opt:
    def __init__(self, model): self.model = model
    @property
    def of(self): return self.model
    def step(self, s): self.model.w -= s * x
x, s = np.array([1.0, 2.0, 3.0]), 2.0
m, sl, fresh = Model(), Slots(), defaultdict(lambda: np.zeros(3))
sl.w = np.ones(3)
opt, queue = Opt(m), deque([np.ones(3)])
def by_object(s):
    opt.step(s)
    return m.w
def by_property(s):
    opt.of.w -= s * x
    return m.w
def by_default(s, m=m):
    m.w -= s * x
    return m.w
def stored(model, s):
    model.step(s)
    return model.w
by_partial = partial(stored, m)
def by_class(s):
    Model.shift(s)
    return Model.fixed
def by_slots(s):
    sl.w -= s * x
    return sl.w
def by_deque(s):
    queue[0][:] -= s * x
    return queue[0]
def by_module(s):
    return steps.step(s)
def by_factory(s):
    fresh['k'] += s * x
    return fresh['k']
"""
CALLS = ["by_object", "by_property", "by_default", "by_partial", "by_class", "by_slots", "by_deque", "by_module"]


STEPS = (
    "import numpy as np\nw = np.ones(3)\ndef step(s):\n    global w\n    w -= s * np.arange(1.0, 4.0)\n    return w\n"
)


@pytest.fixture
def cells(notebook, tmp_path, monkeypatch):
    """A notebook with these names, and a module of the user's."""
    (tmp_path / "own_steps.py").write_text(STEPS)
    monkeypatch.syspath_prepend(tmp_path)
    notebook.ok("import own_steps as steps\n" + SETUP)
    yield notebook
    del sys.modules["own_steps"]


@pytest.mark.parametrize("name", CALLS)
def test_gradients_go_through(cells, name):
    cells.ok(f"%%tensor --grad s\nL = ({name}(s) * x).sum()\nL")
    assert float(cells["L"]) == 6.0 - 28.0
    assert float(cells["grad_s"]) == -14.0
    cells.ok(f"g = tm.grad(lambda s: ({name}(s) * x).sum())(s)")
    assert float(cells["g"]) == -14.0


def test_what_is_made_outside_is_refused_by_its_line(cells):
    ran = cells("%%tensor --grad s\nL = (by_factory(s) * x).sum()\nL")
    assert isinstance(ran.error, CaptureError)
    assert "would leave it out" in str(ran.error)
    assert "fresh['k'] += s * x" in ran.out
    cells.ok("%%tensor -q\nL = (by_factory(s) * x).sum()")
    assert float(cells["L"]) == 28.0
